"""Cues that somebody computed elsewhere: a table of log-odds, taken at its word.

Two forms, told apart by the header:
  conversation,log_odds[,name]                two people on two tracks; for the first-listed person
                                              being on channel 1, as in the column `prior`
  conversation,track,speaker,log_odds[,name]  of any conversation: for this person on this track
Natural logarithms. Rows with different names are different cues.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spklink.cues.cue import Floats, Terms, nothing, pairs, seat_layout
from spklink.database.conversations import Conversations
from spklink.database.sides import pair_seats
from spklink.errors import Problems, problems_in
from spklink.tables import Table, open_table, require_columns, wrong_length

NAME = "cue"  # of rows without one
LARGEST = 700.0  # log-odds that floats can tell from certainty
COLUMNS = ("conversation", "track", "speaker", "log_odds", "name")


@dataclass(frozen=True)
class GivenCue:
    """One name of such a table."""

    name: str
    seat: Floats

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        return Terms(self.name, self.seat)


def read_cues(source: Table, table: Conversations) -> list[GivenCue]:
    """All cues of a table; every problem of it is in the one error raised."""
    problems, seats, seen = Problems(), dict[str, Floats](), dict[tuple[str, ...], int]()
    with open_table(source, "cue") as (header, rows):
        general = header.column("track") >= 0 or header.column("speaker") >= 0
        require_columns(header, COLUMNS[:4] if general else ("conversation", "log_odds"))
        at = [header.column(name) for name in COLUMNS]
        reader = _Reader(table, general)
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            cells = ["" if k < 0 else fields[k].strip() for k in at]
            own = seats.setdefault(cells[4] or NAME, nothing(table))
            key = (cells[4], *cells[:3])
            if seen.setdefault(key, number) != number:
                problems.append(f"row {number}: the same as row {seen[key]}")
            elif wrong := reader.take(cells, own):
                problems.append(f"row {number}: {wrong}")
    if not seats and not problems:
        problems.append("no rows below the header")
    if problems:
        raise problems_in(header.path, problems)
    return [GivenCue(name, seat) for name, seat in seats.items()]


class _Reader:
    """From a row to the seats that it is about."""

    def __init__(self, table: Conversations, general: bool) -> None:
        self.table, self.general = table, general
        self.where, self.layout, self.pair = table.index(), seat_layout(table), pairs(table)

    def take(self, cells: Sequence[str], seat: Floats) -> str:
        """Add one row; what is wrong with it, or nothing."""
        name, track, speaker, odds, _ = cells
        m = self.where.get(name)
        if m is None:
            return f"no conversation is called {name!r}"
        value = _number(odds)
        if not abs(value) <= LARGEST:
            return f"log_odds {odds!r} is not a number from -{LARGEST:g} to {LARGEST:g}"
        own = self.layout.seats(seat, m)
        if not self.general:
            if not self.pair[m]:
                return (
                    f"conversation {name!r} is not of two named people on two tracks; write "
                    "conversation,track,speaker,log_odds"
                )
            own[:] = pair_seats(np.array([-value]))[0]
            return ""
        tracks, people = self.table.tracks(m), self.table.names(m)
        if track not in tracks:
            return f"{name!r} has no track {track!r}, but {', '.join(tracks)}"
        if speaker not in people:
            return f"{speaker!r} is not listed in {name!r}"
        own[people.index(speaker), tracks.index(track)] += value
        return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
