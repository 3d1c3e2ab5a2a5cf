"""A straight line by logistic regression, both classes with half of the weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spklink.calibration.curves import Line
from spklink.calibration.fitting import Trials
from spklink.calibration.logistic import fit_line, fixed
from spklink.calibration.table import Kind


class Lr(Kind):
    name = "lr"
    takes_least_floor = True

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> Line:
        return fit_line(trials, self.name, source, start=start, floors=fixed(least_floor))

    def read(self, found: Mapping[str, Any]) -> Line:
        return Line.from_json(found)


KIND = Lr()
