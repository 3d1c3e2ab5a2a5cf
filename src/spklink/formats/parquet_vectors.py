"""Vectors in a Parquet file, by pyarrow, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.formats.csv_vectors import naming, numbers
from spklink.formats.vectors import Collector, Rows

BATCH = 4096  # rows at a time


def read(file: IO[bytes], name: str, collector: Collector) -> None:
    """All rows into the collector."""
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise SpklinkError(f"{name}: no Parquet file ({str(error)[:120]})") from None
    names = list(opened.schema_arrow.names)
    named, columns = naming(names), numbers(names, name)
    missing = [one for one in named if one not in names]
    if missing:
        raise SpklinkError(f"{name}: no column {', '.join(map(repr, missing))}; found {names[:20]}")
    timed = "seconds" in names
    made = Rows(collector, keyed=len(named) == 1, timed=timed)
    wanted = [*named, *columns, *(["seconds"] if timed else [])]
    row = 0
    for batch in opened.iter_batches(BATCH, columns=wanted):
        texts = [[str(value) for value in batch.column(one).to_pylist()] for one in named]
        seconds = batch.column("seconds").to_pylist() if timed else [None] * len(batch)
        vectors = _vectors(batch, columns, name)
        for *side, vector, time in zip(*texts, vectors, seconds, strict=True):
            row += 1
            if vector is None:
                collector.problems.append(f"row {row}: its embedding is no list of numbers")
            else:
                made.add(f"row {row}", vector, tuple(side), time)
    made.flush()


def _vectors(batch: Any, columns: list[str], name: str) -> Iterator[NDArray[Any] | None]:
    if columns == ["embedding"]:
        for value in batch.column("embedding").to_pylist():
            yield _listed(value)
        return
    try:
        parts = [batch.column(one).to_numpy(zero_copy_only=False) for one in columns]
        yield from np.stack(parts, axis=1).astype(np.float64)
    except (TypeError, ValueError):
        raise SpklinkError(
            f"{name}: columns {columns[0]} … {columns[-1]} must hold numbers"
        ) from None


def _listed(value: Any) -> NDArray[Any] | None:
    if not isinstance(value, list):
        return None
    try:
        return np.array([np.nan if one is None else one for one in value], np.float64)
    except (TypeError, ValueError):
        return None
