"""Tables of results as Parquet: the values of the CSV file in the same order, each column of its
type.

What is empty in a column of numbers is missing; a text is never missing, only empty. Cells are as
`tables.write_csv` is given them, without marks for spreadsheets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from spklink.tables import replacing
from spklink.texts import Texts
from spklink.written_columns import Column, cell_text

GROUP = 250_000  # rows that are held, and found again, together
WHOLE = {
    *("channel", "channel_1", "channel_2", "clique", "conversations", "speakers"),
}
NUMBERS = {
    *("probability", "low", "high", "entropy_bits", "best_probability", "relative_probability"),
    *("best_low", "best_high", "entropy_low", "entropy_high"),
    *("log_evidence_low", "log_evidence_high", "speech_seconds", "recording_seconds"),
    *("start", "end", "prior", "log_likelihood_ratio", "log_odds", "log_odds_against"),
}
YES_OR_NO = {"resolvable", "proved_optimal"}
Array = Any  # of pyarrow


def write_parquet(
    path: str | os.PathLike[str], names: Sequence[str], columns: Sequence[Column]
) -> None:
    """A table by columns."""
    import pyarrow as pa

    cells = [_typed(name, one.cells) for name, one in zip(names, columns, strict=True)]
    count = len(columns[0])
    parts = (
        [
            one.take(pa.array(column.which[first : first + GROUP]))
            for one, column in zip(cells, columns, strict=True)
        ]
        for first in range(0, count, GROUP)
    )
    _write(path, names, parts)


def write_parquet_rows(
    path: str | os.PathLike[str], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """A table row by row."""
    parts = (
        [_typed(name, column) for name, column in zip(names, zip(*some, strict=True), strict=True)]
        for some in _some(iter(rows))
    )
    _write(path, names, parts)


def _some(rows: Iterator[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    while some := list(islice(rows, GROUP)):
        yield some


def _write(
    path: str | os.PathLike[str], names: Sequence[str], parts: Iterable[Sequence[Array]]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, _kind(name)) for name in names])
    with (
        replacing(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for arrays in parts:
            whole = [one.cast(kind) for one, kind in zip(arrays, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(whole, schema=schema), row_group_size=GROUP)


def _kind(name: str) -> Any:
    import pyarrow as pa

    if name in WHOLE:
        return pa.int64()
    if name in NUMBERS:
        return pa.float64()
    return pa.bool_() if name in YES_OR_NO else pa.string()


def _typed(name: str, cells: Iterable[Any]) -> Array:
    """Cells of one column."""
    import pyarrow as pa
    from pyarrow import compute

    texts = Texts.of(cells if isinstance(cells, Texts) else map(cell_text, cells)).arrow()
    kind = _kind(name)
    if kind == pa.string():
        return texts  # long ones as long as all are together
    return compute.if_else(compute.equal(texts, ""), None, texts).cast(kind)
