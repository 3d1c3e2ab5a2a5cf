"""The table of sides, sides.csv: how much speech each has, whether it can be used, and its sound.

One row a side. A mark says why a side is not used; sha256 is the hash of the recording's file that
carries it, recording_seconds how long that is. These columns may be missing, and rows about other
conversations are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import SideFinder, side_name
from spklink.errors import Problems, problems_in
from spklink.tables import Table, open_table, require_columns, wrong_length

COLUMNS = (*("conversation", "channel", "speech_seconds", "mark", "sha256", "recording_seconds"),)
NAMED = 5  # sides without a row that are named; the rest are counted


@dataclass(frozen=True)
class SpeechTable:
    """What is known of the sound of all sides, by side."""

    seconds: NDArray[np.float64]  # (S,) of speech; NaN where nobody knows
    marks: list[str]  # (S,) "" or why a side is not used
    sha256: list[str]  # (S,) "" where it is not known
    lengths: NDArray[np.float64] | None = None  # (S,) seconds of the recording; NaN: not known

    @property
    def known(self) -> bool:
        """Whether the seconds of all sides are."""
        return not bool(np.isnan(self.seconds).any())

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(S,) sides without a mark."""
        return np.array([not mark for mark in self.marks], np.bool_)


def speech_rows(conversations: Conversations, table: SpeechTable) -> Iterator[Sequence[Any]]:
    """The rows of sides.csv."""
    sides = conversations.sides
    ids = list(conversations.ids)
    names = (ids[m] for m in sides.conversation.tolist())
    tracks = (sides.position + 1).tolist()
    lengths = np.full(len(sides), np.nan) if table.lengths is None else table.lengths
    spoken, long = (
        ("" if isnan(value) else f"{value:.2f}" for value in values.tolist())
        for values in (table.seconds, lengths)
    )
    return zip(names, tracks, spoken, table.marks, table.sha256, long, strict=True)


def read_speech_table(
    table: Table, conversations: Conversations, *, unknown: bool = False
) -> SpeechTable:
    """The table of these conversations; everything wrong with the file is in the one error. In one
    of our own the seconds may be `unknown`: empty cells."""
    reader = _Reader(conversations, unknown=unknown)
    with open_table(table, "sides") as (header, rows):
        require_columns(header, COLUMNS[:3])
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                reader.problems.append(wrong)
            else:
                reader.take(number, *("" if k < 0 else fields[k].strip() for k in at))
    reader.name_missing()
    if reader.problems:
        raise problems_in(header.path, reader.problems)
    return SpeechTable(reader.seconds, reader.marks, reader.sha256, reader.lengths)


class _Reader:
    """The rows so far, and what was wrong with them."""

    def __init__(self, conversations: Conversations, *, unknown: bool = False) -> None:
        self.unknown = unknown
        self.conversations, self.find = conversations, SideFinder(conversations)
        count = len(conversations.sides)
        self.seconds, self.row = np.zeros(count), np.zeros(count, np.int64)
        self.marks, self.sha256 = [""] * count, [""] * count
        self.lengths = np.full(count, np.nan)
        self.problems = Problems()

    def take(
        self, number: int, name: str, track: str, text: str, mark: str, sha256: str, long: str
    ) -> None:
        if name not in self.find.where:
            return
        side = self.find(name, track)
        if side < 0:
            wrong = f"row {number}: channel {track!r} is not {self._tracks_of(name)}"
            self.problems.append(wrong)
            return
        value = float("nan") if self.unknown and not text else _seconds(text)
        length = _seconds(long) if long else float("nan")
        if length is None:
            wrong = f"row {number}: recording_seconds {long!r} is not a number of 0 or more"
            self.problems.append(wrong)
        elif value is None:
            wrong = f"row {number}: speech_seconds {text!r} is not a number of 0 or more"
            self.problems.append(wrong)
        elif self.row[side]:
            first = f"is already in row {self.row[side]}"
            self.problems.append(f"row {number}: {name!r} channel {track} {first}")
        else:
            self.seconds[side], self.lengths[side] = value, length
        self.row[side] = self.row[side] or number
        self.marks[side], self.sha256[side] = mark, sha256

    def _tracks_of(self, name: str) -> str:
        count = int(self.conversations.sides.counts[self.find.where[name]])
        return {1: "1", 2: "1 or 2"}.get(count, f"1 to {count}")

    def name_missing(self) -> None:
        missing = np.flatnonzero(self.row == 0).tolist()
        if not missing:
            return
        named = ", ".join(side_name(self.conversations, side) for side in missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        self.problems.append(f"{len(missing)} sides have no row: {named}{more}")


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None
