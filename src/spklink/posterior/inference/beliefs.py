"""What an inference method says about one clique, and how sure it is of it.

Every figure is an interval [low, high]. It has no width where the method is exact, provably
contains the truth where it is certified, contains it at the stated rate where it is sampled (99 %
each), and promises nothing where it is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.network import Network

Floats = NDArray[np.float64]
EXACT, CERTIFIED, SAMPLED, ESTIMATED = "exact", "certified", "sampled", "estimated"
CERTAINTIES = (EXACT, CERTIFIED, SAMPLED, ESTIMATED)  # from the surest down


@dataclass(frozen=True)
class Beliefs:
    """The posterior of one clique of n nodes and E edges."""

    method: str
    certainty: str
    best: NDArray[np.int8]  # (n,) the most probable configuration found
    proved: NDArray[np.bool_]  # (n,) this bit is the same in a proved optimum
    one: Floats  # (n,) P(x = 1), the method's best single figure
    one_low: Floats
    one_high: Floats
    both: Floats  # (E,) P(x_a = x_b = 1)
    both_low: Floats
    both_high: Floats
    log_sum: tuple[float, float]  # log of the sum over configurations; (-inf, inf): unknown
    entropy: tuple[float, float]  # nats
    ties: int | None = None  # configurations that share the maximum, where that is known

    @property
    def proved_optimal(self) -> bool:
        return bool(self.proved.all())


class Method(Protocol):
    """A way to solve one clique. `seed` is used by the sampled methods only."""

    def __call__(self, network: Network, *, seed: int) -> Beliefs | None:
        """The beliefs, or None where the method has nothing to say about this clique."""
        ...


def exact_beliefs(
    network: Network,
    method: str,
    best: NDArray[np.int8],
    one: Floats,
    both: Floats,
    log_sum: float,
    entropy: float,
    *,
    proved: bool = True,
    ties: int | None = None,
) -> Beliefs:
    """Beliefs without width."""
    return Beliefs(
        method=method,
        certainty=EXACT,
        best=best,
        proved=np.full(len(network), proved),
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


def mean_value(network: Network, one: Floats, both: Floats) -> float:
    """Expected log-likelihood; entropy = log_sum - mean_value where the marginals are exact."""
    return float(network.constant + network.field @ one + network.coupling @ both)
