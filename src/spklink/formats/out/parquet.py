"""One table of all segments, segments.parquet: who speaks when, how sure that is, in which file.

Channels count from 1, as in our own tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spklink.formats.out.labelled import Labelled, Recording

FILE = "segments.parquet"
AT_ONCE = 100_000  # rows held
OF_SIDE = ("speaker", "probability", "low", "high", "decision", "origin")


def write(labelled: Labelled, folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    text, number = pyarrow.string(), pyarrow.float64()
    kinds = {"conversation": text, "channel": pyarrow.int32(), "start": number, "end": number}
    kinds |= dict.fromkeys(OF_SIDE, text) | dict.fromkeys(OF_SIDE[1:4], number) | {"file": text}
    schema = pyarrow.schema(list(kinds.items()))
    with parquet.ParquetWriter(folder / FILE, schema) as file:
        for rows in _some(_rows(labelled)):
            file.write_table(pyarrow.Table.from_pylist(rows, schema))


def _some(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    held: list[dict[str, Any]] = []
    for row in rows:
        held.append(row)
        if len(held) == AT_ONCE:
            yield held
            held = []
    yield held


def _rows(labelled: Labelled) -> Iterator[dict[str, Any]]:
    for one in labelled.recordings():
        for side in one.sides:
            known = {name: getattr(side, name) for name in OF_SIDE}
            place = {"conversation": one.id, "channel": side.track + 1}
            for start, end in side.times.tolist():
                when = {"start": start / 1000, "end": end / 1000}
                yield place | when | known | {"file": _file(one, side.track)}


def _file(one: Recording, track: int) -> str | None:
    if not one.files:
        return None
    return one.files[track if len(one.files) > 1 else 0]
