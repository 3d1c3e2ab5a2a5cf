"""Reading and writing what people see: CSV tables, JSON, arrays.

A table is a CSV file or, in the library, a pandas DataFrame or plain rows (a mapping each); every
reader takes all of them. Reading a file accepts a byte-order mark and either line ending, and
nothing but UTF-8. Rows are counted as a spreadsheet does: the header is row 1. Writing goes to a
temporary name that is then renamed, so a file is either whole or as it was before. Cells are
written as they are; a `safe` table marks those that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from spklink.errors import SpklinkError, problems_in
from spklink.shown import Probability

csv.field_size_limit(1 << 24)
TEMPORARY = "writing"  # ending of files that are not whole yet
SEPARATOR = ";"  # between several things in one cell: participants, files
# Columns of ours that hold what others wrote; all others hold figures and words of our own.
FOREIGN = {"conversation", "speaker", "file", "problem", "claimed", "suggested", "mark"}
# Where a formula begins: in a cell, or after what some spreadsheets divide cells by. Apostrophes
# that stand there already count in, so that a mark can be told from a name and be taken off again.
FORMULA = r"(?='*[=+\-@\t\r\n＝＋－＠])"
BEGINNING = r"(?<![^;\t\r\n])"
Table = Any  # a path, a Content, a DataFrame, or an iterable of mappings: pandas is not imported


@dataclass(frozen=True)
class Header:
    """Column positions of one table."""

    path: Path
    names: list[str]

    def column(self, name: str) -> int:
        """Position of a column, -1 where the table has none of that name."""
        return self.names.index(name) if name in self.names else -1


@dataclass(frozen=True)
class Content:
    """A table as it was when it was read: what is parsed, hashed and kept is the same."""

    path: Path  # a name for messages, where it was no file
    data: bytes
    file: bool = True

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def read_table(table: Table, name: str = "table") -> Content:
    """All of a table, read once; `name` is what messages call rows that come from no file."""
    if isinstance(table, Content):
        return table
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        try:
            return Content(path, path.read_bytes())
        except OSError as error:
            raise SpklinkError(f"{path}: cannot be read ({error.strerror})") from None
    columns, rows = _given_rows(table, name)
    return Content(Path(name), csv_bytes(columns, rows), file=False)


def _given_rows(table: Any, name: str) -> tuple[list[str], list[list[str]]]:
    """The columns and cells of a DataFrame or of rows."""
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        columns = [str(column) for column in table.columns]
        return columns, [[_cell(v) for v in row] for row in table.itertuples(index=False)]
    rows = list(table) if isinstance(table, Iterable) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise SpklinkError(
            f"{name}: give a file, a DataFrame, or rows as a list of dictionaries, "
            f"not {type(table).__name__}"
        )
    columns = list(dict.fromkeys(str(column) for row in rows for column in row))
    return columns, [[_cell(row.get(column)) for column in columns] for row in rows]


def _cell(value: Any) -> str:
    """A cell as a file would have it: nothing for None and NaN, several things with semicolons."""
    if value is None or value != value:
        return ""
    if isinstance(value, list | tuple):
        return SEPARATOR.join(map(str, value))
    return str(value)


@contextmanager
def open_table(
    table: Table, name: str = "table"
) -> Iterator[tuple[Header, Iterator[tuple[int, list[str]]]]]:
    """The header and the (row number, fields) of a table; blank lines are passed over."""
    if isinstance(table, str | os.PathLike):  # as a stream: scores may be larger than memory
        path = Path(table)
        source: Any = path
    else:
        content = read_table(table, name)
        path, source = content.path, io.BytesIO(content.data)
    reader: Any = None
    try:
        with _text(source) as file:
            reader = csv.reader(file, strict=True)
            names = [column.strip() for column in next(reader, [])]
            if not any(names):
                raise SpklinkError(f"{path}: empty; a table starts with a row of column names")
            yield Header(path, names), _numbered(reader)
    except UnicodeDecodeError:
        raise SpklinkError(f"{path}: {_undecodable_line(source)}") from None
    except csv.Error as error:
        raise SpklinkError(f"{path}: line {reader.line_num}: not valid CSV ({error})") from None
    except OSError as error:
        raise SpklinkError(f"{path}: cannot be read ({error.strerror})") from None


def _text(source: Path | io.BytesIO) -> Any:
    if isinstance(source, Path):
        return source.open(encoding="utf-8-sig", newline="")
    return io.TextIOWrapper(source, encoding="utf-8-sig", newline="")


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for number, fields in enumerate(reader, start=2):
        if fields:
            yield number, fields


def read_rows(table: Table) -> list[Sequence[Any]]:
    """The rows of a table below its header; none where there is no such file."""
    if isinstance(table, Path) and not table.exists():
        return []
    with open_table(table) as (_, rows):
        return [fields for _, fields in rows]


def without_marks(path: Path) -> Content:
    """A table that was written `safe`, as it would have been without."""
    with open_table(path) as (header, rows):
        kept = [_per_cell(header.names, fields, unmarked) for _, fields in rows]
        return Content(path, csv_bytes(header.names, kept))


def marked(text: str) -> str:
    """With an apostrophe wherever a spreadsheet would see the beginning of a formula."""
    return re.sub(BEGINNING + FORMULA, "'", text)


def unmarked(text: str) -> str:
    """What `marked` was given."""
    return re.sub(f"{BEGINNING}'{FORMULA}", "", text)


def _per_cell(
    columns: Sequence[str], row: Sequence[Any], change: Callable[[str], str]
) -> list[Any]:
    """The row with its foreign cells changed; fields too many or too few are left to the reader."""
    changed = [
        change(value) if name in FOREIGN and isinstance(value, str) else value
        for name, value in zip(columns, row, strict=False)
    ]
    return [*changed, *row[len(changed) :]]


def wrong_length(number: int, fields: Sequence[str], header: Header) -> str | None:
    """The problem of a row with too many or too few fields, None where it is right."""
    if len(fields) == len(header.names):
        return None
    return f"row {number}: {len(fields)} fields where the header has {len(header.names)}"


def require_columns(header: Header, names: Sequence[str]) -> None:
    """Refuse a table without these columns, or with a column twice."""
    missing = [name for name in names if name not in header.names]
    twice = sorted({name for name in header.names if name and header.names.count(name) > 1})
    problems = [f"row 1: column '{name}' appears more than once" for name in twice]
    if missing:
        found = ",".join(header.names)
        hint = ""
        if len(header.names) == 1 and any(mark in found for mark in ";\t"):
            hint = " (columns must be separated by commas)"
        elif len(missing) == len(names):
            hint = " (is the header row missing?)"
        problems.append(
            f"row 1: no column {', '.join(map(repr, missing))}; found {found[:200]!r}{hint}"
        )
    if problems:
        raise problems_in(header.path, problems)


def _undecodable_line(source: Path | io.BytesIO) -> str:
    with source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue()) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return (
                    f"line {number}: not UTF-8 (byte 0x{line[error.start]:02x} at column "
                    f"{error.start + 1}); save the table as UTF-8"
                )
    return "not UTF-8; save the table as UTF-8"


def sha256(path: str | os.PathLike[str]) -> str:
    """Hash of a file's bytes, read in blocks."""
    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` only when the block ends without an error."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(f".{TEMPORARY}", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sweep(folder: Path, *, older_than_days: float = 0.0) -> None:
    """Remove what a killed run left half written."""
    limit = time.time() - 86400.0 * older_than_days
    for path in folder.glob(f".*.{TEMPORARY}"):
        with suppress(OSError):  # another run may have been faster, or still be using it
            if path.stat().st_mtime <= limit:
                path.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


def write_csv(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    safe: bool = False,
) -> None:
    """Write a table; `safe` for people who open it in a spreadsheet."""
    if safe:
        rows = (_per_cell(columns, row, marked) for row in rows)
    with replacing(path) as file:
        _put_csv(file, columns, rows)


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """The content of a CSV file."""
    file = io.BytesIO()
    _put_csv(file, columns, rows)
    return file.getvalue()


def _put_csv(file: BinaryIO, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    text.flush()
    text.detach()


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpklinkError(f"{path}: cannot be read as JSON ({error})") from None


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Arrays without pickle; the same arrays give the same bytes (zip dates are fixed)."""
    import zipfile

    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def probability_text(value: float) -> Probability:
    """A probability for a table: ten significant digits, never rounded up to certainty."""
    short = f"{value:.10g}"
    return Probability(repr(value) if value < 1.0 and float(short) == 1.0 else short)
