"""What a method says about a network of several states a node, and what the planner asks of it.

As in `inference/beliefs.py`: every figure is an interval of no width where the method is exact, and
the kinds of certainty are the same. Flat arrays stand as in `network`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import EXACT, AnyMethod, AnyProposal
from spklink.posterior.states.network import StateNetwork

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StateBeliefs:
    """The posterior of one network."""

    method: str
    certainty: str
    best: Ints  # (n,) the most probable configuration found
    proved: NDArray[np.bool_]  # (n,) this state is the same in a proved optimum
    marginal: Floats  # like unary: P(z_t = s), the method's best single figure
    low: Floats
    high: Floats
    pair: Floats  # like table: P(z_a = s, z_b = u)
    log_sum: tuple[float, float]  # log of the sum over configurations; (-inf, inf): unknown
    entropy: tuple[float, float]  # nats
    ties: int | None = None  # configurations that share the maximum, where that is known

    @property
    def proved_optimal(self) -> bool:
        return bool(self.proved.all())


@dataclass(frozen=True)
class StatePiece:
    """A connected network to be solved, and what a method may use for it."""

    network: StateNetwork
    seed: int
    threads: int  # at most; they never change an answer
    operations: float  # at most
    solve: Callable[[StateNetwork], StateBeliefs | None]  # a part of it, exactly

    def __len__(self) -> int:
        return len(self.network)


StateProposal = AnyProposal[StateBeliefs]
StateMethod = AnyMethod[StatePiece, StateBeliefs]


def exact_beliefs(
    method: str,
    best: Ints,
    marginal: Floats,
    pair: Floats,
    log_sum: float,
    entropy: float,
    *,
    ties: int | None = None,
) -> StateBeliefs:
    """Beliefs without width, of a proved optimum."""
    return StateBeliefs(
        method=method,
        certainty=EXACT,
        best=best,
        proved=np.ones(len(best), np.bool_),
        marginal=marginal,
        low=marginal,
        high=marginal,
        pair=pair,
        log_sum=(log_sum, log_sum),
        entropy=(entropy, entropy),
        ties=ties,
    )


def mean_value(network: StateNetwork, marginal: Floats, pair: Floats) -> float:
    """Expected log-likelihood; entropy = log_sum - mean_value where the marginals are exact."""
    return float(network.constant + network.unary @ marginal + network.table @ pair)
