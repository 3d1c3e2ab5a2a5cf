"""Turns as CGN's .sea: a line `number start end SPEAKER utterance` (milliseconds) opens an
utterance, which lines of words and marks (ORT, MAR, …) follow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spklink.formats.turn import NOBODY, Turn, stem_of, text_of
from spklink.tables import Content

OPENED = re.compile(r"\s*\d+\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s*$")
NUMBERED = re.compile(r"\s*\d+\s+\d+\s")  # what looks like such a line
MILLISECONDS = 1000.0


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with rows that are none."""
    name = stem_of(content)
    for number, line in enumerate(text_of(content, old=True).split("\n"), start=1):
        opened = OPENED.match(line)
        if opened is None:
            if NUMBERED.match(line):
                yield f"row {number}: not `number start end SPEAKER utterance`: {line[:80]!r}"
            continue
        start, end, who, _ = opened.groups()
        if who not in NOBODY:
            times = int(start) / MILLISECONDS, int(end) / MILLISECONDS
            yield Turn(name, who, *times, f"row {number}")
