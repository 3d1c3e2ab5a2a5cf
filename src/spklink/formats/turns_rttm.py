"""Turns as RTTM: SPEAKER file channel start duration <NA> <NA> name …; other lines are no turns."""

from __future__ import annotations

from collections.abc import Iterator

from spklink.database.segments import COMMENT, RTTM_TYPES, SPEAKER
from spklink.formats.turn import Turn, seconds, text_of
from spklink.tables import Content


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with rows that are none."""
    for number, line in enumerate(text_of(content).split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0].startswith(COMMENT) or fields[0] in RTTM_TYPES[2:]:
            continue
        if fields[0] != SPEAKER or len(fields) < 8:
            yield f"row {number}: not a line of RTTM: {line[:80]!r}"
            continue
        start, lasts = seconds(fields[3]), seconds(fields[4])
        yield Turn(fields[1], fields[7], start, start + lasts, f"row {number}")
