"""Whether numbers that are taken for log-likelihood-ratios can be some.

Of the side pairs of two calls that share a participant a known share is one person: one of four, or
two of four where both take part in both. All other pairs, and the known non-targets, are different
people. So if lambda is the log-likelihood-ratio of one person against two, these pairs are to the
known non-targets as (1 - share) + share e^lambda to 1, whatever the recognizer: a logistic
regression without any label. Its best line a lambda + b is that of lambda itself, a = 1 and b = 0,
or the numbers are something else: cosines, scores in standard deviations, ratios of another base.

Only what is far off is told. Heavy tails make a line steeper than one (in the world `t5` up to 20)
but do not move the point where it is even; nothing makes it flat. What is told of calibrated
scores, and what is not told of others, stands in docs/calibration.md (examples/uncalibrated.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.fitting import TooLittleError, standard
from spklink.calibration.pairs import Pairs
from spklink.database.links import pair_starts
from spklink.database.sides import Numbering

Floats = NDArray[np.float64]
FEWEST = 30  # needed pairs, and known non-targets: fewer tell nothing. A choice
MOST = 50_000  # of either that are looked at. A choice, for the time
# Natural logarithms by which the best line is more probable than the scores as they are. Pairs that
# have a side in common are not independent: of calibrated scores up to 8 were seen.
TELLING = 12.0
FLATTEST, STEEPEST = 0.6, 8.0  # slopes of the best line that pass for one
# A steeper one is still no wonder, if one person usually scores more than this: heavy tails.
STRONG = 1.5
# Natural logarithms that its even point may be from zero, and as a share of what one person usually
# scores above it: in a wide gap between the two classes hardly anything tells where it is.
FARTHEST, GAP = 1.0, 0.24
STARTS = (1.0, 3.0)  # slopes in standard deviations of the non-targets
REMEDY = "learn how to read them with --calibration labelfree, or give them to `link --scores`"


@dataclass(frozen=True)
class Line:
    """The line that reads the scores best."""

    slope: float
    even: float  # the score at which one person is as probable as two
    usual: float  # score of one person: the middle of as many of the highest as are one
    gain: float  # by which it is more probable than taking the scores as they are

    @property
    def doubt(self) -> str:
        """What is wrong with the scores, empty where nothing is."""
        if not self.gain > TELLING:
            return ""
        if self.slope < FLATTEST:
            return f"they say too much, about {1.0 / max(self.slope, 1e-9):.2g} times as much"
        if self.slope > STEEPEST and self.usual < STRONG:
            return f"they say too little, about {self.slope:.2g} times"
        if abs(self.even) > max(FARTHEST, GAP * (self.usual - self.even)):
            return f"one person is as probable as two at {self.even:+.2g}, not at 0"
        return ""


def doubts(pairs: Pairs, sides: Numbering) -> str:
    """What a person should know about scores that are taken for log-likelihood-ratios."""
    line = best_line(pairs, sides)
    if line is None or not line.doubt:
        return ""
    return (
        f"the scores do not look like log-likelihood-ratios: held against people who are certainly "
        f"different {line.doubt}. Probabilities computed from them mislead; {REMEDY}"
    )


def best_line(pairs: Pairs, sides: Numbering) -> Line | None:
    """How needed pairs are best told from known non-targets; None where too little is there."""
    share = target_share(pairs, sides)
    kept = _thinned(np.flatnonzero(pairs.usable & (share > 0.0)))
    others = pairs.non_targets.score[_thinned(np.arange(len(pairs.non_targets)))]
    if min(len(kept), len(others)) < FEWEST:
        return None
    try:
        centre, spread = standard(others)
    except TooLittleError:
        return None
    trials = _Trials.of(pairs.scores[kept], share[kept], others, centre, spread)
    slope, offset = trials.best()
    # In units of the scores: slope (s - centre) / spread + offset.
    plain = trials.cost(np.array([spread, centre]))
    return Line(
        slope / spread,
        centre - offset * spread / max(slope, 1e-12),
        float(np.quantile(pairs.scores[kept], 1.0 - 0.5 * share[kept].mean())),
        plain - trials.cost(np.array([slope, offset])),
    )


def target_share(pairs: Pairs, sides: Numbering) -> Floats:
    """(P,) the share of the side pairs of two conversations that are one person."""
    links = pairs.links
    count = np.diff(pair_starts(links, sides))
    shared = np.bincount(links.pair, minlength=len(count))
    return np.repeat(np.minimum(shared / np.maximum(count, 1), 0.5), count)


def _thinned(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Not more than MOST of them, evenly spread."""
    if len(places) <= MOST:
        return places
    return places[np.linspace(0, len(places) - 1, MOST).astype(np.int64)]


@dataclass(frozen=True)
class _Trials:
    """Needed pairs and known non-targets, scores in standard deviations of the latter."""

    score: Floats
    share: Floats  # of targets, were it a needed pair
    needed: Floats  # 1 or 0
    ratio: float  # natural logarithm of the number of needed pairs to that of the others

    @classmethod
    def of(
        cls, scores: Floats, share: Floats, others: Floats, centre: float, spread: float
    ) -> _Trials:
        every = (np.concatenate([scores, others]) - centre) / spread
        shares = np.concatenate([share, np.full(len(others), share.mean())])
        needed = np.repeat([1.0, 0.0], [len(scores), len(others)])
        return cls(every, shares, needed, float(np.log(len(scores) / len(others))))

    def cost(self, theta: Floats) -> float:
        """Cross entropy in natural logarithms."""
        return self._cost(theta)[0]

    def best(self) -> tuple[float, float]:
        """Slope and offset of least cost."""
        from scipy.optimize import minimize

        found = [
            minimize(
                self._cost,
                np.array([slope, -0.5 * slope * slope]),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 50.0), (-700.0, 50.0)],
            )
            for slope in STARTS
        ]
        first = min(found, key=lambda one: float(one.fun))
        return float(first.x[0]), float(first.x[1])

    def _cost(self, theta: Floats) -> tuple[float, Floats]:
        from scipy.special import expit

        line = np.clip(theta[0] * self.score + theta[1], -1e6, 1e6)
        inside = np.log(self.share) + line
        outside = np.log1p(-self.share)
        odds = np.logaddexp(outside, inside) + self.ratio
        cost = self.needed @ np.logaddexp(0.0, -odds)
        cost += (1.0 - self.needed) @ np.logaddexp(0.0, odds)
        pull = (expit(odds) - self.needed) * expit(inside - outside)
        return float(cost), np.array([pull @ self.score, pull.sum()])
