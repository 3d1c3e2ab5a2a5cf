"""A rising step function: pooled adjacent violators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spklink.calibration.curves import Line, StepCurve
from spklink.calibration.fitting import Trials
from spklink.calibration.table import Kind


class Pav(Kind):
    name = "pav"
    learned_as = "lr"

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> StepCurve:
        from spklink.scores.pooling import pav  # takes seconds to load; reading needs none of it

        same, other = trials.same > 0.0, trials.other > 0.0
        classes = trials.scores[same], trials.scores[other]
        steps = pav(*classes, trials.same[same], trials.other[other])
        edges, values = tuple(steps.edges.tolist()), tuple(steps.llr.tolist())
        return StepCurve(edges, values, kind=self.name, source=source)

    def read(self, found: Mapping[str, Any]) -> StepCurve:
        return StepCurve.from_json(found)


KIND = Pav()
