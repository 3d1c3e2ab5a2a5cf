"""A line by logistic regression with a floor: a share of the same-speaker scores, exp(floor), may
be outliers that look like any two people, so no score speaks against a pair more than that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spklink.calibration.curves import Line
from spklink.calibration.fitting import Trials
from spklink.calibration.logistic import FIRST_FLOOR, FLOORS, fit_line
from spklink.calibration.table import Kind


class LrFloor(Kind):
    name = "lr-floor"
    takes_least_floor = True
    first_floor = FIRST_FLOOR  # outliers are only seen by a line that allows for them at once

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> Line:
        low = FLOORS[0] if least_floor is None else least_floor
        floors = (low, max(low, FLOORS[1]))
        return fit_line(trials, self.name, source, start=start, floors=floors)

    def read(self, found: Mapping[str, Any]) -> Line:
        return Line.from_json(found)


KIND = LrFloor()
