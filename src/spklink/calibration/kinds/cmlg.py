"""The paper's: the scores of both classes are Gaussians of one variance, so the log-likelihood-
ratio is a straight line in the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spklink.calibration.curves import Floats, Line
from spklink.calibration.fitting import Trials
from spklink.calibration.table import Kind


class Cmlg(Kind):
    name = "cmlg"

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> Line:
        same, other = (_moments(trials.scores, weight) for weight in (trials.same, trials.other))
        return Line(*gaussian_line(*same, *other), kind=self.name, source=source)

    def read(self, found: Mapping[str, Any]) -> Line:
        return Line.from_json(found)


def _moments(scores: Floats, weight: Floats) -> tuple[float, float]:
    mean = np.average(scores, weights=weight)
    return float(mean), float(np.average((scores - mean) ** 2, weights=weight))


def gaussian_line(
    mean_same: float, variance_same: float, mean_other: float, variance_other: float
) -> tuple[float, float]:
    """CMLG: one variance for both classes, the mean of the two."""
    variance = (variance_same + variance_other) / 2.0
    scale = (mean_same - mean_other) / variance
    return scale, -scale * (mean_same + mean_other) / 2.0


KIND = Cmlg()
