"""Turns as a table: conversation,speaker,start,end (seconds)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spklink.formats.turn import Turn, seconds, unpacked
from spklink.tables import Content, open_table, require_columns, wrong_length

COLUMNS = ("conversation", "speaker", "start", "end")


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with rows that are none."""
    with open_table(replace(content, data=unpacked(content))) as (header, rows):
        require_columns(header, COLUMNS)
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                yield wrong
            else:
                name, who, start, end = (fields[k].strip() for k in at)
                yield Turn(name, who, seconds(start), seconds(end), f"row {number}")
