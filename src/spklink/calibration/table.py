"""The kinds of calibration. A new one is a file in `kinds/` and an entry in the table below.

The table is all that the command line needs for its help, so nothing heavy is imported here: the
file of a kind is loaded when the kind is asked for. The rest of the program never compares names
of kinds; it asks what a kind says about itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.calibration.curves import Calibration, Line
    from spklink.calibration.fitting import Trials

# Name as in `--kind` and in saved calibrations: module in `kinds/`, which has one object KIND.
KINDS = {"cmlg": "cmlg", "lr": "lr", "lr-floor": "lr_floor", "lr-dur": "lr_dur", "pav": "pav"}
# Where nobody asked for a kind. Measured: on simulated worlds (examples/label_free_worlds.py), and
# with the seconds of speech on carved real calls (examples/carved_tables.py).
DEFAULT, DEFAULT_WITH_SPEECH = "lr-floor", "lr-dur"


class Kind(Protocol):
    """How one kind of calibration is fitted and read, and what the program must know about it."""

    name: str
    needs_speech: bool = False  # of every side, the seconds
    takes_least_floor: bool = False  # --wrong-lists can put a floor under it
    first_floor: float | None = None  # of the line that learning without labels starts from
    # Rounds of learning without labels fit Lines. A kind of another shape says here which kind they
    # fit in its place; it is fitted itself once, to what they end with.
    learned_as: str | None = None

    def fit(
        self, trials: Trials, *, source: str, start: Line | None, least_floor: float | None
    ) -> Calibration:
        """To weighted trials of both classes; `start` may be a line close to the answer."""
        ...

    def read(self, found: Mapping[str, Any]) -> Calibration:
        """Back from what its `as_json` wrote, checked; a ValueError says what is wrong."""
        ...


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise SpklinkError(f"calibration kind {name!r} is not one of {', '.join(KINDS)}")
    module = importlib.import_module(f"spklink.calibration.kinds.{KINDS[name]}")
    return cast("Kind", module.KIND)
