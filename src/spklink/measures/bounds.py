"""How strong a likelihood ratio the data can vouch for: the empirical lower and upper bound.

ELUB (Vergeer, van Es, de Jongh, Alberink & Stoel, Science & Justice 56, 2016, 482-491): whoever
decides by a likelihood ratio t accepts what scores above it. With one more misleading pair in each
class than was seen, that costs

    misses(t) + t x false alarms(t)        (shares of the two classes)

for an upper bound; without any comparison it costs 1. The upper bound is the first t above 1 from
which on comparing costs more than not comparing, the lower bound the same with the classes changed.
So nobody is told of a ratio that the pairs at hand could not have shown to be misleading: of n
pairs of different people never more than n + 1.

Pairs may have weights, such as the probability that they are one person: then the bounds are as
good as these. Pairs that share a recording are not independent; a bound takes no notice of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LN10 = float(np.log(10.0))
MISLEADING = 1.0  # pairs added to each class


@dataclass(frozen=True)
class Bounds:
    """log10 likelihood ratios beyond which nothing is claimed."""

    low: float  # 0 or less
    high: float  # 0 or more
    targets: float  # pairs of one person, or their expected number
    nontargets: float  # pairs of different people
    by_key: bool = False  # whether a key told which are which

    def limited(self, log10: float) -> float:
        """What may be said of evidence that adds up to this."""
        return min(max(log10, self.low), self.high)


def elub(
    targets: Floats,
    nontargets: Floats,
    weights: tuple[Floats, Floats] | None = None,
    *,
    by_key: bool = False,
) -> Bounds:
    """The bounds from natural log-likelihood-ratios of one person and of different people, and the
    weights of both, 1 where none are given."""
    w, v = weights or (np.ones(len(targets)), np.ones(len(nontargets)))
    return Bounds(
        low=min(0.0, -_upper(-nontargets, v, -targets, w)),
        high=_upper(targets, w, nontargets, v),
        targets=float(w.sum()),
        nontargets=float(v.sum()),
        by_key=by_key,
    )


def _upper(targets: Floats, weights: Floats, others: Floats, counts: Floats) -> float:
    """log10 of the upper bound. Both shares change at the ratios only, so between two of them the
    cost is a line in t: the first line that rises above 1 has the bound."""
    ratios = np.concatenate([targets, others])
    at = np.concatenate([[0.0], np.unique(ratios[ratios > 0.0])])  # natural logarithms
    missed = _up_to(targets, weights, at) + MISLEADING
    alarms = counts.sum() - _up_to(others, counts, at) + MISLEADING
    left = np.maximum(1.0 - missed / (weights.sum() + MISLEADING), 0.0)
    with np.errstate(divide="ignore"):
        crossing = np.log(left) - np.log(alarms / (counts.sum() + MISLEADING))
    ends = np.append(at[1:], np.inf)
    first = int(np.argmax(crossing < ends))  # the last line always ends above 1
    return float(max(at[first], crossing[first])) / LN10


def _up_to(values: Floats, weights: Floats, at: Floats) -> Floats:
    """The weight of all values that are not above each of `at`."""
    order = np.argsort(values, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(summed[np.searchsorted(values[order], at, side="right")])
