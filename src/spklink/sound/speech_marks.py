"""Where every side speaks: its speech frames as they are kept, and segments.csv.

The cache keeps the speech frames of a side as lengths of runs, in frames: a pause, speech, a pause,
speech, … A segment lasts from the begin of its first frame to the end of its last one; pauses
shorter than PAUSE are part of a segment. Times are whole milliseconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import SideFinder
from spklink.errors import Problems, problems_in
from spklink.sound.speech import Framing
from spklink.tables import Table, open_table, require_columns, wrong_length

if TYPE_CHECKING:
    from spklink.sound.heard import Job

Mask = NDArray[np.bool_]
Runs = NDArray[np.int32]
Times = NDArray[np.int32]  # (segments, 2) start and end, ms
COLUMNS = ("conversation", "channel", "start", "end")
STEP, WINDOW = 10, 25  # ms, of frames
PAUSE = 300  # ms; shorter ones are within speech
LONGEST = 2_000_000  # seconds: 23 days


@dataclass(frozen=True)
class SpeechMarks:
    """The segments of all sides, one side after the other."""

    start: NDArray[np.int64]  # (S + 1,) where those of each side begin
    times: Times = field(repr=False)

    @classmethod
    def of(cls, sides: Iterable[Times]) -> SpeechMarks:
        every = list(sides)
        counts = np.cumsum([0, *map(len, every)], dtype=np.int64)
        return cls(counts, np.concatenate([np.zeros((0, 2), np.int32), *every]))

    def of_side(self, side: int) -> Times:
        """(segments, 2) in order of time."""
        return self.times[self.start[side] : self.start[side + 1]]


def runs_of(kept: Mask) -> Runs:
    """(frames,) True where somebody speaks → lengths of runs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    return np.diff(edges, prepend=0).astype(np.int32)


def segments_of(runs: Runs) -> Times:
    """Lengths of runs → (segments, 2) in milliseconds, over short pauses."""
    edges = np.cumsum(runs, dtype=np.int64)
    times = np.stack([edges[::2] * STEP, (edges[1::2] - 1) * STEP + WINDOW], axis=1)
    return joined(times, PAUSE)


def joined(times: NDArray[np.integer[Any]], pause: int) -> Times:
    """Segments in order of time, those less than a pause apart as one."""
    if not len(times):
        return np.zeros((0, 2), np.int32)
    ends = np.maximum.accumulate(times[:, 1])
    first = np.concatenate([[True], times[1:, 0] - ends[:-1] >= max(pause, 1)])
    last = np.concatenate([first[1:], [True]])
    return np.stack([times[first, 0], ends[last]], axis=1).astype(np.int32)


def known_runs(runs: Sequence[Any]) -> tuple[Runs, ...] | None:
    """Those of all tracks; None where they are not all known."""
    known = all(one is not None for one in runs)
    return tuple(np.asarray(one, np.int32) for one in runs) if known else None


def listed(speech: tuple[Runs, ...] | None) -> list[list[int]] | None:
    """The same for JSON."""
    return None if speech is None else [runs.tolist() for runs in speech]


def kept_runs(job: Job, tracks: int) -> tuple[tuple[Runs, ...], tuple[float, ...]]:
    """The speech frames of a recording that was heard before they were kept, and how many seconds
    its tracks have: heard once more."""
    from spklink.sound.chunks import find_speech

    own = job.front_end
    framing = own if isinstance(own, Framing) else Framing()
    found = find_speech(job.files, tracks, framing, turns=job.turns)
    return tuple(map(runs_of, found.kept)), tuple(round(long, 2) for long in found.seconds)


# --- segments.csv ---------------------------------------------------------------------------------


def mark_rows(conversations: Conversations, marks: SpeechMarks) -> Iterator[Sequence[Any]]:
    """The rows of segments.csv."""
    sides = conversations.sides
    for side, m in enumerate(sides.conversation.tolist()):
        name, track = conversations.ids[m], int(sides.position[side]) + 1
        for start, end in marks.of_side(side).tolist():
            yield name, track, f"{start / 1000:.3f}", f"{end / 1000:.3f}"


def read_speech_marks(table: Table, conversations: Conversations) -> SpeechMarks:
    """The segments of these conversations, ours or given; rows about others are passed over. All
    that is wrong with a file is in the one error."""
    find, problems, found = SideFinder(conversations), Problems(), array("i")
    with open_table(table, "segments") as (header, rows):
        require_columns(header, COLUMNS)
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            name, track, start, end = (fields[k] for k in at)
            if wrong := _take(find, found, name, track, start, end):
                problems.append(f"row {number}: {wrong}")
    if problems:
        raise problems_in(header.path, problems)
    return _by_side(np.array(found, np.int32), len(conversations.sides))


def _by_side(flat: NDArray[np.int32], sides: int) -> SpeechMarks:
    """Segments one after the other, each as side, start, end: in order, none overlapping another of
    its side."""
    rows = flat.reshape(-1, 3)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    starts = np.searchsorted(rows[:, 0], np.arange(sides + 1))
    marks = SpeechMarks(starts, rows[:, 1:])
    meets = (rows[1:, 0] == rows[:-1, 0]) & (rows[1:, 1] <= rows[:-1, 2])
    if not meets.any():
        return marks
    return SpeechMarks.of(joined(marks.of_side(side), 0) for side in range(sides))


def _take(find: SideFinder, found: array[int], name: str, track: str, *ends: str) -> str:
    """Add one segment; what is wrong with it, or nothing."""
    if name.strip() not in find.where and name not in find.where:
        return ""
    side = find(name, track)
    if side < 0:
        return f"conversation {name!r} has no channel {track!r}"
    start, end = map(_milliseconds, ends)
    if start is None or end is None:
        wrong = ends[0] if start is None else ends[1]
        return f"{wrong!r} is not a number of seconds of 0 or more"
    if end <= start:
        return f"a segment from {ends[0]} s ends at {ends[1]} s"
    found.extend((side, start, end))
    return ""


def _milliseconds(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value * 1000) if 0.0 <= value < LONGEST else None
