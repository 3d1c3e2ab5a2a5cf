"""A line by logistic regression whose slope and offset change with the seconds of speech."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spklink.calibration.curves import Line
from spklink.calibration.fitting import Trials
from spklink.calibration.logistic import fit_line, fixed
from spklink.calibration.table import Kind


class LrDur(Kind):
    name = "lr-dur"
    needs_speech = True
    takes_least_floor = True

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> Line:
        floors = fixed(least_floor)
        return fit_line(trials, self.name, source, start=start, floors=floors, speech=trials.speech)

    def read(self, found: Mapping[str, Any]) -> Line:
        return Line.from_json(found)


KIND = LrDur()
