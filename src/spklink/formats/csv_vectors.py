"""Vectors as rows of a table: a column a number (e1, e2, …), or all numbers in one cell."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.formats.vectors import Collector, Rows
from spklink.tables import Header, Table, open_table, require_columns, wrong_length

NUMBERED = re.compile(r"e(\d+)")
BETWEEN = re.compile(r"[\s,;]+")  # what may stand between the numbers of one cell


def read(table: Table, collector: Collector) -> None:
    """All rows into the collector."""
    with open_table(table, "embeddings") as (header, rows):
        named = naming(header.names)
        require_columns(header, named)
        columns, at = numbers(header.names, str(header.path)), [header.column(n) for n in named]
        time = header.column("seconds")
        made = Rows(collector, keyed=len(named) == 1, timed=time >= 0)
        for number, fields in rows:
            wrong = wrong_length(number, fields, header)
            vector = None if wrong else _vector(fields, header, columns)
            if vector is None or isinstance(vector, str):
                collector.problems.append(wrong or f"row {number}: {vector}")
                continue
            name = tuple(fields[k].strip() for k in at)
            made.add(f"row {number}", vector, name, fields[time] if time >= 0 else None)
        made.flush()


def naming(names: list[str]) -> list[str]:
    """The columns that name a side."""
    return (
        ["key"] if "key" in names and "conversation" not in names else ["conversation", "channel"]
    )


def numbers(names: list[str], where: str) -> list[str]:
    """The columns that hold its vector, in order: `embedding`, or e1, e2, …"""
    if "embedding" in names:
        return ["embedding"]
    found = sorted((int(m[1]), m[0]) for m in map(NUMBERED.fullmatch, names) if m)
    if not found:
        raise SpklinkError(
            f"{where}: row 1: no column 'embedding' and no columns e1, e2, …; found "
            f"{','.join(names[:20])[:200]!r}"
        )
    begin = found[0][0]
    if begin not in (0, 1) or [n for n, _ in found] != list(range(begin, begin + len(found))):
        raise SpklinkError(f"{where}: row 1: columns {found[0][1]} … {found[-1][1]} have gaps")
    return [name for _, name in found]


def _vector(fields: list[str], header: Header, columns: list[str]) -> NDArray[np.float64] | str:
    """The numbers of a row, or what is wrong with them."""
    if columns == ["embedding"]:
        cell = fields[header.column("embedding")].strip().strip("[]()").strip()
        texts = BETWEEN.split(cell) if cell else []
    else:
        texts = [fields[header.column(name)] for name in columns]
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        bad = next(text for text in texts if not _is_number(text))
        return f"{bad[:40]!r} is not a number"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
