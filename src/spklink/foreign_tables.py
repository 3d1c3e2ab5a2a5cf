"""Tables that are not text: Excel, Parquet, JSON and JSON Lines, as rows of text cells.

Rows are counted as their own program does: of Excel as on the sheet, of JSON Lines by lines, of
Parquet and a JSON array as if a header stood in row 1.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from spklink.errors import SpklinkError
from spklink.table_forms import EXCEL, JSON, PARQUET, ROWS

SEPARATOR = ";"  # between several things in one cell: participants, files
Rows = Iterator[tuple[int, list[str]]]  # the header first
LARGEST = 1 << 30  # bytes of a sheet, unpacked: more than Excel can hold
BATCH = 10_000  # rows of Parquet at a time
OTHERS = {  # archives that are no Excel file
    "mimetype": "an OpenDocument file; save it as .xlsx or CSV",
    "Index/Document.iwa": "a file of Numbers; export it as .xlsx or CSV",
    "word/document.xml": "a Word document; save its table as CSV",
}


def cell(value: Any) -> str:
    """A cell as a text file would have it: nothing for None and NaN, several things with
    semicolons, whole numbers without a point."""
    if value is None or value != value:
        return ""
    if isinstance(value, list | tuple):
        return SEPARATOR.join(map(cell, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def foreign_rows(kind: str, data: bytes) -> Rows:
    """The rows of a table of this kind, its names first; empty ones are passed over."""
    read: Callable[[bytes], Rows] = {EXCEL: _excel, PARQUET: _parquet, JSON: _json}[kind]
    return read(data)


def _excel(data: bytes) -> Rows:
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        raise SpklinkError('Excel files need openpyxl: pip install "spklink[excel]"') from None
    _check_archive(data)
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            rows = _numbered(sheet.iter_rows(values_only=True))
            if (first := next(rows, None)) is not None:
                yield from _below_title(first, rows)
                return
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, SyntaxError) as error:
        raise SpklinkError(f"an Excel file that cannot be read ({str(error)[:120]})") from None


def _check_archive(data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names, size = archive.namelist(), sum(one.file_size for one in archive.infolist())
    except zipfile.BadZipFile:
        raise SpklinkError("a damaged archive, where a table belongs") from None
    for name, why in OTHERS.items():
        if name in names:
            raise SpklinkError(why)
    if "xl/workbook.xml" not in names:
        raise SpklinkError("an archive, but not an Excel file; unpack it")
    if size > LARGEST:
        raise SpklinkError(f"{size >> 20} MB of sheets; save the table as CSV")


def _numbered(rows: Iterable[Iterable[Any]]) -> Rows:
    for number, values in enumerate(rows, start=1):
        fields = [_cell_of_sheet(number, value) for value in values]
        if any(fields):
            yield number, fields


def _cell_of_sheet(number: int, value: Any) -> str:
    text = cell(value)
    if text.startswith("#") and text.rstrip("!?").upper() in ERRORS:
        raise SpklinkError(f"row {number}: a cell with the error {text}; mend its formula")
    return text.removesuffix(" 00:00:00")  # a day is a day


ERRORS = {"#REF", "#N/A", "#NAME", "#VALUE", "#DIV/0", "#NULL", "#NUM"}


def _below_title(first: tuple[int, list[str]], rows: Rows) -> Rows:
    """From the header on, without columns that have no name and no cell."""
    head = [first]
    while sum(map(bool, head[-1][1])) < 2 and len(head) < ROWS:
        if (row := next(rows, None)) is None:
            break
        head.append(row)
    number, names = next((row for row in head if sum(map(bool, row[1])) > 1), first)
    width = max(k + 1 for k, name in enumerate(names) if name)
    yield number, names[:width]
    below = (row for row in head if row[0] > number)
    for part in (below, rows):
        for place, fields in part:
            full = fields + [""] * (width - len(fields))
            yield place, full if any(full[width:]) else full[:width]


def _parquet(data: bytes) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(pyarrow.BufferReader(data))
        yield 1, list(opened.schema_arrow.names)
        number = 1
        for batch in opened.iter_batches(BATCH):
            columns = [map(cell, column.to_pylist()) for column in batch.columns]
            for fields in zip(*columns, strict=True):
                number += 1
                yield number, list(fields)
    except (pyarrow.ArrowException, OSError) as error:
        raise SpklinkError(f"no Parquet file ({str(error)[:120]})") from None


def _json(data: bytes) -> Rows:
    text = data.decode("utf-8-sig")
    rows = _array(text) if text.lstrip()[:1] == "[" else list(_lines(text))
    names = list(dict.fromkeys(str(name) for _, row in rows for name in row))
    yield (rows[0][0] - 1 if rows else 1), names
    for number, row in rows:
        yield number, [cell(row.get(name)) for name in names]


def _array(text: str) -> list[tuple[int, Mapping[str, Any]]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpklinkError(f"no JSON ({str(error)[:120]})") from None
    for number, row in enumerate(rows, start=2):
        _check_row(number, row)
    return list(enumerate(rows, start=2))


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise SpklinkError(
                    f"row {number}: no line of JSON Lines, which has one object a line: "
                    f"{line[:60]!r}"
                ) from None
            _check_row(number, row)
            yield number, row


def _check_row(number: int, row: Any) -> None:
    if not isinstance(row, dict):
        raise SpklinkError(f"row {number}: no object with a value a column: {str(row)[:60]!r}")
    for name, value in row.items():
        inner = value if isinstance(value, list) else [value]
        if any(isinstance(one, dict | list) for one in inner):
            raise SpklinkError(f"row {number}: {name!r} is no text, number or list of such")


def given_rows(table: Any, name: str) -> tuple[list[str], list[list[str]]]:
    """The columns and cells of a DataFrame or of rows that a program handed over."""
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        columns = [str(column) for column in table.columns]
        return columns, [[cell(v) for v in row] for row in table.itertuples(index=False)]
    rows = list(table) if isinstance(table, Iterable) and not isinstance(table, bytes) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise SpklinkError(
            f"{name}: give a file, a DataFrame, or rows as a list of dictionaries, "
            f"not {type(table).__name__}"
        )
    columns = list(dict.fromkeys(str(column) for row in rows for column in row))
    return columns, [[cell(row.get(column)) for column in columns] for row in rows]
