"""Intervals about flips from one configuration, as the certified methods narrow them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.int8]
TINY = 1e-12  # relative room for rounding


@dataclass(frozen=True)
class Bounds:
    """Intervals that contain the truth, and a guess inside them; narrowed in place."""

    low: Floats  # (n,) P(bit is not as in the best configuration)
    high: Floats
    guess: Floats
    both_low: Floats  # (E,) P(x_a = x_b = 1)
    both_high: Floats
    both: Floats  # nan where there is no guess
    log_sum: Floats  # (2,) interval, relative to the best configuration
    entropy: Floats  # (2,) nats

    def narrow(self, nodes: Ints, low: Floats, high: Floats, guess: Floats) -> None:
        self.low[nodes] = np.maximum(self.low[nodes], low)
        self.high[nodes] = np.minimum(self.high[nodes], high)
        self.guess[nodes] = guess

    def narrow_both(self, edges: Ints, low: Floats, high: Floats, guess: Floats) -> None:
        self.both_low[edges] = np.maximum(self.both_low[edges], low)
        self.both_high[edges] = np.minimum(self.both_high[edges], high)
        self.both[edges] = guess

    def narrow_sums(self, log_sum: tuple[float, float], entropy: tuple[float, float]) -> None:
        for mine, new in ((self.log_sum, log_sum), (self.entropy, entropy)):
            mine[0], mine[1] = max(mine[0], new[0]), min(mine[1], new[1])


def no_bounds(nodes: int, edges: int) -> Bounds:
    """What is known about any network of this size."""
    return Bounds(
        *(np.zeros(nodes), np.ones(nodes), np.full(nodes, 0.5)),
        *(np.zeros(edges), np.ones(edges), np.full(edges, np.nan)),
        np.array([0.0, np.inf]),
        np.array([0.0, nodes * np.log(2.0)]),
    )


def both_ones(
    best_a: Bits, best_b: Bits, a: Floats, b: Floats, ab: Floats, whole: float = 1.0
) -> Floats:
    """P(x_a = x_b = 1), times `whole`, from those of flips of a, of b, and of both."""
    if_a_zero = np.where(best_b == 0, ab, a - ab)
    if_a_one = np.where(best_b == 0, b - ab, whole - a - b + ab)
    return np.maximum(np.where(best_a == 0, if_a_zero, if_a_one), 0.0)


def binary_entropy(p: Floats) -> Floats:
    q = np.clip(p, 1e-300, 1.0)
    rest = np.clip(1.0 - p, 1e-300, 1.0)
    return -(q * np.log(q) + rest * np.log(rest))
