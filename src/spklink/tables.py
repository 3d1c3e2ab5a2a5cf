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
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from spklink.errors import Problems, SpklinkError, problems_in
from spklink.json_files import read_json as read_json
from spklink.shown import Probability

csv.field_size_limit(1 << 24)
TEMPORARY = "writing"  # ending of files that are not whole yet
KINDS = {str: "text", int: "a whole number", float: "a number"}  # of cells, in messages
SEPARATOR = ";"  # between several things in one cell: participants, files
# Columns of ours that hold what others wrote; all others hold figures and words of our own.
FOREIGN = {"conversation", "speaker", "file", "problem", "claimed", "suggested", "mark"} | {
    *("track", "cue", "against"),
}
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


@dataclass(frozen=True)
class OpenFile:
    """A table in an open file, which is read once."""

    path: Path
    file: BinaryIO


@contextmanager
def open_table(
    table: Table, name: str = "table"
) -> Iterator[tuple[Header, Iterator[tuple[int, list[str]]]]]:
    """The header and the (row number, fields) of a table; blank lines are passed over."""
    data: bytes | None = None
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        source: Any = path
    elif isinstance(table, OpenFile):
        path, source = table.path, table.file
    else:
        content = read_table(table, name)
        path, data = content.path, content.data
        source = io.BytesIO(data)
    reader: Any = None
    try:
        with _text(source) as file:
            reader = csv.reader(file, strict=True)
            names = [column.strip() for column in next(reader, [])]
            if not any(names):
                raise SpklinkError(f"{path}: empty; a table starts with a row of column names")
            yield Header(path, names), _numbered(reader)
    except UnicodeDecodeError:
        raise SpklinkError(f"{path}: {_undecodable_line(path, data)}") from None
    except csv.Error as error:
        raise SpklinkError(f"{path}: line {reader.line_num}: not valid CSV ({error})") from None
    except OSError as error:
        raise SpklinkError(f"{path}: cannot be read ({error.strerror})") from None


def _text(source: Path | BinaryIO) -> Any:
    if isinstance(source, Path):
        return source.open(encoding="utf-8-sig", newline="")
    return io.TextIOWrapper(source, encoding="utf-8-sig", newline="")


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for number, fields in enumerate(reader, start=2):
        if fields:
            yield number, fields


def read_cells(table: Table, columns: Mapping[str, type]) -> list[Sequence[Any]]:
    """These columns of a table that spklink wrote, each cell of its type: str, int or float."""
    problems = Problems()
    found: list[Sequence[Any]] = []
    with open_table(table) as (header, rows):
        require_columns(header, list(columns))
        at = [(name, header.column(name), kind) for name, kind in columns.items()]
        for number, fields in rows:
            wrong = wrong_length(number, fields, header)
            cells = [] if wrong else [_typed(fields[k], kind) for _, k, kind in at]
            for (name, k, kind), cell in zip(at, cells, strict=False):
                if cell is None:
                    wrong = f"row {number}: {name} {fields[k]!r} is not {KINDS[kind]}"
            problems.append(wrong) if wrong else found.append(cells)
    if problems:
        raise problems_in(header.path, problems, "make the results anew")
    return found


def _typed(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        return None


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
    count = Counter(header.names)
    twice = sorted(name for name, times in count.items() if name and times > 1)
    problems = [f"row 1: column '{name}' appears more than once" for name in twice]
    if missing:
        found = ",".join(header.names[:100])
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


def _undecodable_line(path: Path, data: bytes | None) -> str:
    """Where it is, looked for from the begin; nowhere in a pipe, which cannot be read again."""
    if data is None and not path.is_file():
        return "not UTF-8; save the table as UTF-8"
    again: BinaryIO = path.open("rb") if data is None else io.BytesIO(data)
    with again as file:
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
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a disk that is full says of no file
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def aside(folder: Path, *, older_than_days: float = 0.0) -> Iterator[Path]:
    """A folder inside `folder` for what is not whole yet; it goes when the block ends. Those of
    killed runs go now, if they are older than this."""
    sweep(folder, older_than_days=older_than_days)
    new = Path(tempfile.mkdtemp(f".{TEMPORARY}", ".results.", folder))
    try:
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)


def sweep(folder: Path, *, older_than_days: float = 0.0) -> None:
    """Remove what a killed run left half written."""
    limit = time.time() - 86400.0 * older_than_days
    for path in folder.glob(f".*.{TEMPORARY}"):
        with suppress(OSError):  # another run may have been faster, or still be using it
            if path.lstat().st_mtime > limit:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
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
    return Probability(repr(float(value)) if value < 1.0 and float(short) == 1.0 else short)
