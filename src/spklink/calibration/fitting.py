"""Calibrations from weighted trials: the truth (weights 0 and 1) and expectations of it (module
`label_free`) go the same way. How a kind is fitted stands in its file in `kinds/`.

All fits work in units of the scores of different speakers, so that a factor or an offset on all
scores changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spklink.calibration.curves import Calibration, Floats, Line
from spklink.calibration.table import find_kind
from spklink.errors import SpklinkError

QUARTILES = 1.349  # between those of a Gaussian, in standard deviations: 2 Phi^-1(3/4)
SMALLEST = 1e-100  # numerical: a spread whose inverse, and squares of that, are still numbers
ROUNDING = 1e-12  # numerical: a spread below this share of the scores is none


class TooLittleError(SpklinkError):
    """The data do not teach a calibration: another has to serve."""


@dataclass(frozen=True)
class Trials:
    """Scores with how much each counts as the same speaker and as different speakers."""

    scores: Floats
    same: Floats
    other: Floats
    speech: Floats | None = None


def fit(
    trials: Trials,
    kind: str,
    *,
    source: str,
    start: Line | None = None,
    least_floor: float | None = None,
) -> Calibration:
    """The calibration of one kind that suits weighted trials best; with a floor of at least
    `least_floor` where one is given and the kind takes it."""
    chosen = find_kind(kind)
    if not (trials.same.sum() > 0.0 and trials.other.sum() > 0.0):
        raise TooLittleError("calibration needs scores of the same and of different speakers")
    if chosen.needs_speech and trials.speech is None:
        raise SpklinkError(f"calibration {kind} needs the seconds of speech of every side")
    return chosen.fit(trials, source=source, start=start, least_floor=least_floor)


def supervised(
    same: Floats,
    other: Floats,
    kind: str = "cmlg",
    *,
    speech_same: Floats | None = None,
    speech_other: Floats | None = None,
) -> Calibration:
    """From scores whose truth is known."""
    if len(same) < 2 or len(other) < 2:
        raise SpklinkError(
            f"calibration needs scores of both kinds; found {len(same)} of the same speaker and "
            f"{len(other)} of different speakers"
        )
    speech = None
    if speech_same is not None and speech_other is not None:
        speech = np.concatenate([speech_same, speech_other])
    centre, spread = standard(other)
    weight = np.repeat([1.0, 0.0], [len(same), len(other)])
    scores = (np.concatenate([same, other]) - centre) / spread
    trials = Trials(scores, weight, 1.0 - weight, speech)
    return fit(trials, kind, source="supervised").unstandardised(centre, spread)


def standard(others: Floats) -> tuple[float, float]:
    """Middle and spread of different-speaker scores, such that a few wild ones do not matter: all
    fits work in these units, so that a factor or an offset on all scores changes nothing."""
    low, centre, high = (float(x) for x in np.quantile(others, [0.25, 0.5, 0.75]))
    spread = (high - low) / QUARTILES or float(others.std())
    if not np.isfinite(spread) or not spread > max(ROUNDING * abs(centre), SMALLEST):
        raise TooLittleError(
            "all scores of different speakers are equal: there is nothing to learn"
        )
    return centre, spread


def stated_default(scores: Floats, why: str) -> Line:
    """One unit of log-likelihood-ratio a standard deviation of all scores: a guess, and said so.
    (A choice, on the modest side: what it costs stands in docs/calibration.md.)"""
    spread = float(scores.std()) if len(scores) else 0.0
    scale = 1.0 / spread if spread > SMALLEST else 0.0
    centre = float(scores.mean()) if len(scores) else 0.0
    source = f"probabilities are not calibrated: {why}"
    return Line(scale, -scale * centre, kind="default", source=source)
