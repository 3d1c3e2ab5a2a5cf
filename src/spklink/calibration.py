"""From raw scores to log-likelihood-ratios, with the truth or without a single label.

CMLG (the paper's choice): same- and different-speaker scores are taken for Gaussians of one
variance, so the log-likelihood-ratio is a straight line, lambda = scale * score + offset.

Without labels the participant lists give enough. Two sides of one call, and sides of calls that
share no participant, are certainly different people; and of the side pairs through which two calls
share a speaker exactly one is the same person. So the unknown channels are summed out: under the
current line, the posterior says how probable each pair is the same person (E-step), and those
expectations make the next line (M-step).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.links import Links
from spklink.posterior import Posterior

Floats = NDArray[np.float64]
ROUNDS = 40
SETTLED = 1e-4  # relative change of the scale
START = 0.5  # first scale, a standard deviation of the known non-targets
FEWEST_NON_TARGETS = 30


@dataclass(frozen=True)
class Calibration:
    """A straight line from score to log-likelihood-ratio, and where it comes from."""

    scale: float
    offset: float
    kind: str = "cmlg"
    source: str = "given"

    def __call__(self, scores: Floats) -> Floats:
        return self.scale * scores + self.offset


@dataclass(frozen=True)
class LabelFree:
    """The outcome of calibration without labels, and how it came about."""

    calibration: Calibration
    rounds: int
    converged: bool
    history: list[float]  # scale after every round, a standard deviation of the non-targets
    posterior: Posterior


def gaussian_line(
    mean_same: float, variance_same: float, mean_other: float, variance_other: float
) -> tuple[float, float]:
    """CMLG: one variance for both classes, the mean of the two."""
    variance = (variance_same + variance_other) / 2.0
    scale = (mean_same - mean_other) / variance
    return scale, -scale * (mean_same + mean_other) / 2.0


def supervised(same: Floats, other: Floats) -> Calibration:
    """CMLG from scores whose truth is known."""
    if len(same) < 2 or len(other) < 2:
        raise SpklinkError(
            f"calibration needs scores of both kinds; found {len(same)} of the same speaker and "
            f"{len(other)} of different speakers"
        )
    line = gaussian_line(same.mean(), same.var(), other.mean(), other.var())
    return Calibration(*line, source="supervised")


def label_free(
    links: Links,
    scores: Floats,
    usable: NDArray[np.bool_],
    non_targets: Floats,
    solve: Callable[[Floats], Posterior],
) -> LabelFree:
    """Constraint EM. `scores` and `usable` are (E, 2, 2); `solve` maps log-likelihood-ratios of the
    pairs to the posterior. Scores that are not usable stay at a log-likelihood-ratio of 0.
    """
    if len(non_targets) < FEWEST_NON_TARGETS:
        raise SpklinkError(
            f"calibration without labels needs at least {FEWEST_NON_TARGETS} scores of sides that "
            f"are certainly different people; found {len(non_targets)}: the table has too few "
            "conversations that share no participant; give --calibration"
        )
    centre, spread = float(non_targets.mean()), float(non_targets.std())
    if not spread > 0.0:
        raise SpklinkError("all scores of known non-targets are equal: there is nothing to learn")
    # Standardised, so that a factor or an offset on all scores changes nothing.
    z, scale, offset = (scores - centre) / spread, START, 0.0
    history: list[float] = []
    posterior = solve(np.where(usable, START * z, 0.0))
    for _ in range(ROUNDS):
        scale, offset = _maximise(links, z, usable, posterior)
        history.append(scale)
        posterior = solve(np.where(usable, scale * z + offset, 0.0))
        if len(history) > 1 and abs(history[-1] - history[-2]) <= SETTLED * abs(history[-1]):
            break
    line = Calibration(scale / spread, offset - scale * centre / spread, source="labelfree")
    settled = len(history) < ROUNDS
    return LabelFree(line, len(history), settled, history, posterior)


def _maximise(
    links: Links, z: Floats, usable: NDArray[np.bool_], posterior: Posterior
) -> tuple[float, float]:
    """The line from expected same-speaker scores; non-targets have mean 0 and variance 1."""
    weight = posterior.link_probabilities(links) * usable[links.pair]
    total = weight.sum()
    if not total > 0.0:
        raise SpklinkError("no two conversations with usable sound share a speaker")
    value = z[links.pair]
    mean = float((weight * value).sum() / total)
    variance = float((weight * (value - mean) ** 2).sum() / total)
    scale, offset = gaussian_line(mean, variance, 0.0, 1.0)
    if not scale > 0.0:
        raise SpklinkError(
            "calibration without labels failed: same-speaker scores do not come out higher than "
            "different-speaker ones; are the participant lists right?"
        )
    return scale, offset
