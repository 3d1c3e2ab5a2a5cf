"""What an inference method is asked, what it says about a clique, and how sure it is of it.

Every figure is an interval [low, high]. It has no width where the method is exact, provably
contains the truth where it is certified, contains it at the stated rate where it is sampled (99 %
each), and promises nothing where it is estimated.

The planner shows every `Method` a `Piece`; the method answers with a `Proposal`: what it would
cost, why, and how to have it done. Arrays over states and cells stand as in `network`: one entry a
node and one an edge where every node has two states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.network import Network, States

Floats = NDArray[np.float64]
EXACT, CERTIFIED, SAMPLED, ESTIMATED = "exact", "certified", "sampled", "estimated"
CERTAINTIES = (EXACT, CERTIFIED, SAMPLED, ESTIMATED)  # from the surest down
Cost = tuple[float, float]  # operations, about 1e9 a second on one core, and bytes
BEYOND: Cost = (float("inf"), float("inf"))  # of what cannot be done at all
UNCOUNTED: Cost = (0.0, 0.0)  # of what is quick enough to be tried within any budget


@dataclass(frozen=True)
class Beliefs:
    """The posterior of one clique of n nodes and E edges."""

    method: str
    certainty: str
    best: States  # (n,) the most probable configuration found
    proved: NDArray[np.bool_]  # (n,) this state is the same in a proved optimum
    zero: Floats  # (n,) P(z = 0), the method's best single figure
    one: Floats  # P(z = s) for each state but the first; (n,) P(x = 1) if binary
    one_low: Floats
    one_high: Floats
    both: Floats  # P(z_a = s, z_b = u) for every two states but the first; (E,) if binary
    both_low: Floats
    both_high: Floats
    log_sum: tuple[float, float]  # log of the sum over configurations; (-inf, inf): unknown
    entropy: tuple[float, float]  # nats
    ties: int | None = None  # configurations that share the maximum, where that is known

    @property
    def proved_optimal(self) -> bool:
        return bool(self.proved.all())


@dataclass(frozen=True)
class Optimum:
    """A configuration, and the bits of it that are the same in one true optimum."""

    best: NDArray[np.int8]  # (n,)
    proved: NDArray[np.bool_]  # (n,) jointly part of one optimum


@dataclass(frozen=True)
class Piece:
    """A connected network to be solved, and what a method may use for it."""

    network: Network
    seed: int
    threads: int  # at most; they never change an answer
    operations: float  # at most
    by_name: bool  # this method was asked for; there is no other choice
    optimum: Callable[[], Optimum]  # the best bits found, looked for once for all methods
    solve: Callable[[Network], Beliefs | None]  # a part of the piece, exactly; None: too much

    def __len__(self) -> int:
        return len(self.network)


@dataclass(frozen=True)
class Proposal:
    """How a method would solve a piece."""

    cost: Cost
    why: str  # what the cost comes from, as "2^30 configurations"
    run: Callable[[], Beliefs | None]  # None: it has nothing to say after all
    silence: str = "no answer"  # what None means


class Method(Protocol):
    """A way to solve connected pieces."""

    @property
    def name(self) -> str:
        """As in the table, in `--method` and in results."""
        ...

    @property
    def certainty(self) -> str:
        """One of CERTAINTIES."""
        ...

    def propose(self, piece: Piece, /) -> Proposal | None:
        """What it would do; None where the planner need not think of it."""
        ...


def proposals(
    methods: Iterable[Method], piece: Piece, *certainties: str
) -> Iterator[tuple[Method, Proposal]]:
    """What the methods of these kinds would do, kind by kind, each made when it is looked at."""
    known = list(methods)
    for certainty in certainties:
        for method in known:
            way = method.propose(piece) if method.certainty == certainty else None
            if way is not None:
                yield method, way


def exact_beliefs(
    network: Network,
    method: str,
    best: States,
    one: Floats,
    both: Floats,
    log_sum: float,
    entropy: float,
    *,
    zero: Floats | None = None,
    proved: bool = True,
    ties: int | None = None,
) -> Beliefs:
    """Beliefs without width; P(z = 0) is what the others leave where it is not given."""
    return Beliefs(
        method=method,
        certainty=EXACT,
        best=best,
        proved=np.full(len(network), proved),
        zero=rest(network, one) if zero is None else zero,
        one=one,
        one_low=one,
        one_high=one,
        both=both,
        both_low=both,
        both_high=both,
        log_sum=(log_sum, log_sum),
        entropy=(entropy, entropy),
        ties=ties,
    )


def rest(network: Network, one: Floats) -> Floats:
    """(n,) what the probabilities of the other states leave for state 0."""
    if network.binary:
        return np.maximum(1.0 - one, 0.0)
    node = np.repeat(np.arange(len(network)), network.size - 1)
    return np.maximum(1.0 - sums(node, one, len(network)), 0.0)


def mean_value(network: Network, one: Floats, both: Floats) -> float:
    """Expected log-likelihood; entropy = log_sum - mean_value where the marginals are exact."""
    return float(network.constant + network.field @ one + network.coupling @ both)


def frechet(network: Network, one: Floats, both: Floats) -> Floats:
    """Joint probabilities as near to `both` as those of single states allow."""
    row, column = network.ends
    first, second = one[row], one[column]
    return np.clip(both, np.maximum(first + second - 1.0, 0.0), np.minimum(first, second))
