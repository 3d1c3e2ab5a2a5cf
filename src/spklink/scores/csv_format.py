"""Scores as a CSV table, read a chunk of rows at a time."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from spklink.database.sides import NO_TRACK, SideFinder
from spklink.scores.files import CHUNK, COLUMNS, Collector
from spklink.tables import Table, open_table, require_columns, wrong_length


def read(table: Table, collector: Collector) -> None:
    find = SideFinder(collector.conversations)
    with open_table(table, "scores") as (header, rows):
        require_columns(header, COLUMNS)
        at = [header.column(name) for name in COLUMNS]
        while chunk := list(islice(rows, CHUNK)):
            good = []
            for number, fields in chunk:
                if wrong := wrong_length(number, fields, header):
                    collector.problems.append(wrong)
                else:
                    good.append((number, fields))
            _add_rows(good, at, find, collector)


def _add_rows(
    rows: list[tuple[int, list[str]]], at: list[int], find: SideFinder, collector: Collector
) -> None:
    places = [number for number, _ in rows]
    sides = [find.all_of((f[at[c]], f[at[c + 1]]) for _, f in rows) for c in (0, 2)]
    score = np.array([_number(f[at[4]]) for _, f in rows], np.float64)
    bad = np.flatnonzero((sides[0] == NO_TRACK) | (sides[1] == NO_TRACK))
    said = (
        f"row {places[k]}: channels {rows[k][1][at[1]]!r} and {rows[k][1][at[3]]!r}; a channel is "
        f"{find.tracks()}"
        for k in bad
    )
    collector.problems.take(said, len(bad))
    for k in np.flatnonzero(np.isnan(score)):
        text = rows[k][1][at[4]].strip()
        if text.lower().lstrip("+-") != "nan":
            collector.problems.append(f"row {places[k]}: score {text!r} is not a number")
            score[k] = 0.0
    collector.add(sides[0], sides[1], score, places, "row")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
