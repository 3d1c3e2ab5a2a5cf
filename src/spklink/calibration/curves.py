"""Curves from raw scores to log-likelihood-ratios: small frozen objects, saved as JSON.

A line is lambda = (scale + scale_speech l) s + offset + offset_speech l, where l tells how much
speech a pair of sides has: l = ln(t_1 t_2) / 2 - ln 10, 0 at ten seconds each. With a floor f it
becomes log((1 - e^f) e^lambda + e^f).

Which kinds there are stands in `table.py`, how they are fitted in `fitting.py`. Two kinds of line
are not fitted to trials: `none` takes scores as they are, `default` is a guess for where there is
nothing to learn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.table import KINDS, find_kind
from spklink.errors import SpklinkError
from spklink.json_files import ANYTHING, Each, json_in, misfit
from spklink.tables import Content, read_table, write_json

Floats = NDArray[np.float64]
# Seconds of speech; less counts as this. Numerical: the logarithm stays finite. Any value below the
# two seconds (--min-speech) that a side needs to take part at all does.
SHORTEST = 0.1
# Seconds at which l is 0. A choice: about the median of real calls (11 s, docs/recognizer.md), so
# that scale and offset tell of a usual pair.
USUAL = 10.0
# A calibration in a file, what is in it, or that file as it was when it was read.
Saved = str | PathLike[str] | Mapping[str, Any] | Content
LARGEST = 1e100  # of the numbers of a saved curve: what it makes of scores is still a number
UNFITTED = ("none", "default")  # kinds of line that no trials were asked for
STEP = (float, None, Each((float, None)))  # of learning: a scale, or several values
CURVE: dict[str, Any] = {  # what every file says, whatever the kind; of each kind more
    "kind": str,
    "source?": str,
    **{f"{name}?": float for name in ("scale", "offset", "scale_speech", "offset_speech")},
    **{f"{name}?": (float, None) for name in ("speech_low", "speech_high", "floor")},
    **{f"{name}?": [float] for name in ("edges", "values")},
}
SAVED = CURVE | {
    "weight?": str,
    "beta?": (float, None),
    "first?": (None, CURVE),
    "history?": [STEP],
    "note?": ANYTHING,
}


class Calibration(Protocol):
    """What every curve can do. The kind and where it comes from: supervised, labelfree, given..."""

    @property
    def kind(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def needs_speech(self) -> bool: ...

    def __call__(self, scores: Floats, speech: Floats | None = None) -> Floats:
        """Log-likelihood-ratios; `speech` is l of the same pairs."""
        ...

    def unstandardised(self, centre: float, spread: float) -> Calibration:
        """This curve of (score - centre) / spread, as a curve of the score."""
        ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Line:
    """A straight line from score to log-likelihood-ratio, perhaps another for each l."""

    scale: float
    offset: float
    scale_speech: float = 0.0
    offset_speech: float = 0.0
    speech_low: float | None = None  # what l it was fitted to; beyond, the ends serve
    speech_high: float | None = None
    floor: float | None = None
    kind: str = "cmlg"
    source: str = "given"

    @property
    def needs_speech(self) -> bool:
        return self.scale_speech != 0.0 or self.offset_speech != 0.0

    def __call__(self, scores: Floats, speech: Floats | None = None) -> Floats:
        if speech is None or not self.needs_speech:
            if self.needs_speech:
                raise SpklinkError(
                    f"this calibration ({self.kind}) needs the seconds of speech of every side; "
                    "give --sides sides.csv, or calibrate with --kind lr"
                )
            return self._floored(self.scale * scores + self.offset)
        speech = np.clip(speech, self.speech_low, self.speech_high)
        slope = np.maximum(self.scale + self.scale_speech * speech, 0.0)
        return self._floored(slope * scores + self.offset + self.offset_speech * speech)

    def slope(self, speech: float) -> float:
        """How steep it is with so much speech."""
        return self.scale + self.scale_speech * speech

    def _floored(self, line: Floats) -> Floats:
        return line if self.floor is None else floored(line, self.floor)

    def unstandardised(self, centre: float, spread: float) -> Line:
        scale, scale_speech = self.scale / spread, self.scale_speech / spread
        return replace(
            self,
            scale=scale,
            offset=self.offset - scale * centre,
            scale_speech=scale_speech,
            offset_speech=self.offset_speech - scale_speech * centre,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Line:
        line = cls(**_fields_of(cls, found))
        _check_line(line)
        return line


@dataclass(frozen=True)
class StepCurve:
    """Scores from edges[k - 1] up to below edges[k] mean values[k]."""

    edges: tuple[float, ...]
    values: tuple[float, ...]
    kind: str = "pav"
    source: str = "given"

    @property
    def needs_speech(self) -> bool:
        return False

    def __call__(self, scores: Floats, speech: Floats | None = None) -> Floats:
        place = np.searchsorted(np.array(self.edges), scores, side="right")
        return np.asarray(np.array(self.values)[place], np.float64)

    def unstandardised(self, centre: float, spread: float) -> StepCurve:
        return replace(self, edges=tuple(centre + spread * edge for edge in self.edges))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StepCurve:
        values = _fields_of(cls, found)
        curve = cls(**values | {k: tuple(values[k]) for k in ("edges", "values")})
        _check_curve(curve)
        return curve


def save(path: str | PathLike[str], calibration: Calibration, **more: Any) -> None:
    """JSON that a person can read; `more` says how it came about."""
    write_json(path, calibration.as_json() | more)


def read_saved(saved: Saved) -> dict[str, Any]:
    """What `save` wrote, from its file or as it was handed over."""
    if isinstance(saved, Mapping):
        found: Any = saved
    else:
        content = read_table(saved)
        found = json_in(content.data, content.path)
    if wrong := misfit(found, SAVED):
        raise no_calibration(saved, wrong)
    return dict(found)


def name_of(saved: Saved) -> str:
    """What messages call it."""
    if isinstance(saved, Content):
        return str(saved.path)
    return "calibration" if isinstance(saved, Mapping) else str(saved)


def no_calibration(saved: Saved, error: Exception | str) -> SpklinkError:
    """What to raise about something that was not saved by us."""
    return SpklinkError(f"{name_of(saved)}: not a calibration saved by spklink ({error})")


def load(saved: Saved, *, first: bool = False) -> Calibration:
    """A calibration that `save` wrote; the one of the first comparison, where there were two."""
    found = read_saved(saved)
    try:
        if first and found.get("first") is not None:
            found = found["first"]
        if found["kind"] not in (*KINDS, *UNFITTED):
            raise ValueError(f"kind {found['kind']!r} is not one of {', '.join(KINDS)}")
        if found["kind"] in UNFITTED:
            return Line.from_json(found)
        return find_kind(found["kind"]).read(found)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise no_calibration(saved, error) from None


def _fields_of(curve: type[Line] | type[StepCurve], found: Mapping[str, Any]) -> dict[str, Any]:
    """A file tells more than the curve: how it came about."""
    return {field.name: found[field.name] for field in fields(curve) if field.name in found}


def _check_line(line: Line) -> None:
    maybe = (line.speech_low, line.speech_high, line.floor)
    numbers = [line.scale, line.offset, line.scale_speech, line.offset_speech]
    numbers += [x for x in maybe if x is not None]
    if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in numbers):
        raise ValueError("its values are not numbers")
    rises = max(line.slope(line.speech_low or 0.0), line.slope(line.speech_high or 0.0)) >= 0.0
    if not np.isfinite(numbers).all() or not rises or (line.floor or 0.0) > 0.0:
        raise ValueError("its numbers are not finite, its scale is below or its floor above 0")
    if max(map(abs, numbers)) > LARGEST:
        raise ValueError(f"a number beyond {LARGEST:g}")


def _check_curve(curve: StepCurve) -> None:
    edges, values = np.array(curve.edges, np.float64), np.array(curve.values, np.float64)
    if len(values) != len(edges) + 1 or not np.isfinite(np.concatenate([edges, values])).all():
        raise ValueError("its steps are not finite numbers, one more than its edges")
    if max(np.abs(edges).max(initial=0.0), np.abs(values).max()) > LARGEST:
        raise ValueError(f"a number beyond {LARGEST:g}")
    if (np.diff(edges) <= 0.0).any() or (np.diff(values) < 0.0).any():
        raise ValueError("its steps do not rise")


def pair_speech(seconds: Floats, side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> Floats:
    """l of pairs of sides."""
    log = np.log(np.maximum(seconds, SHORTEST) / USUAL)
    return np.asarray((log[side_1] + log[side_2]) / 2.0)


def floored(line: Floats, floor: float) -> Floats:
    """log((1 - e^floor) e^line + e^floor): never much below the floor."""
    return np.asarray(np.logaddexp(np.log1p(-np.exp(floor)) + line, floor))
