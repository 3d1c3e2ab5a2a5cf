"""Scores as a CSV table, read a block of rows at a time: by columns, or row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import NO_TRACK, SideFinder
from spklink.errors import SpklinkError
from spklink.scores.files import CHUNK, COLUMNS, Collector
from spklink.table_blocks import Blocks
from spklink.table_forms import PARQUET, Form, OpenFile
from spklink.tables import Header, Table, open_table, require_columns, wrong_length
from spklink.whole_columns import Whole, as_text


def read(table: Table, collector: Collector) -> None:
    find = SideFinder(collector.conversations)
    if isinstance(table, OpenFile):
        blocks = Blocks(table, COLUMNS)
        for block in blocks:
            add_columns(block, find, collector)
        if (rest := blocks.rest()) is None:
            return
        table = rest
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
            cells = [[fields[k] for _, fields in good] for k in at]
            score = np.array([_number(text) for text in cells[4]], np.float64)
            _add([number for number, _ in good], cells, score, find, collector)


def add_columns(block: Whole, find: SideFinder, collector: Collector) -> None:
    """The scores of some rows that were read as columns."""
    cells = [block.columns[name].to_pylist() for name in COLUMNS]
    places = range(block.first, block.first + block.count)
    _add(places, cells, _numbers(block.columns[COLUMNS[4]]), find, collector)


def read_parquet(file: IO[bytes], name: str, collector: Collector) -> None:
    """The same of a Parquet file, whose rows count as if a header stood in row 1."""
    import pyarrow as pa
    from pyarrow import parquet

    find, row = SideFinder(collector.conversations), 1
    try:
        opened = parquet.ParquetFile(file)
        header = Header(Path(name), list(opened.schema_arrow.names), Form(PARQUET))
        require_columns(header, COLUMNS)
        for batch in opened.iter_batches(CHUNK, columns=list(COLUMNS)):
            cells = {one: as_text(batch.column(one)) for one in COLUMNS}
            add_columns(Whole(header, row + 1, cells, len(batch)), find, collector)
            row += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise SpklinkError(f"{name}: no Parquet file ({str(error)[:120]})") from None


def _add(
    places: Sequence[int],
    cells: Sequence[Sequence[str]],
    score: NDArray[np.float64],
    find: SideFinder,
    collector: Collector,
) -> None:
    one, channel_1, two, channel_2, texts = cells
    sides = find.all_of(one, channel_1), find.all_of(two, channel_2)
    bad = np.flatnonzero((sides[0] == NO_TRACK) | (sides[1] == NO_TRACK))
    said = (
        f"row {places[k]}: channels {channel_1[k]!r} and {channel_2[k]!r}; a channel is "
        f"{find.tracks()}"
        for k in bad.tolist()
    )
    collector.problems.take(said, len(bad))
    for k in np.flatnonzero(np.isnan(score)).tolist():
        text = texts[k].strip()
        if text.lower().lstrip("+-") != "nan":
            collector.problems.append(f"row {places[k]}: score {text!r} is not a number")
            score[k] = 0.0
    collector.add(sides[0], sides[1], score, places, "row")


def _numbers(column: Any) -> NDArray[np.float64]:
    """The numbers of many cells; one by one where a cell is none."""
    import pyarrow as pa

    try:
        found = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        found = [_number(text) for text in column.to_pylist()]
    return np.array(found, np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
