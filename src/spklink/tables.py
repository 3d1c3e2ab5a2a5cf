"""Reading and writing what people see: tables.

A table is a file or, in the library, a pandas DataFrame or plain rows (a mapping each); every
reader takes all of them. A file may be text with any separator in any usual encoding (module
`table_forms`), Excel, Parquet or JSON (`foreign_tables`), and its columns may have other names than
ours (`columns`). Rows are counted as a spreadsheet does: the header is row 1, unless something
stands above it. Cells are written as they are; a `safe` table marks those that a spreadsheet would
take for a formula.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO

from spklink.columns import TEXTS, Columns, Guess, Odd, guess, renamed
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.foreign_tables import SEPARATOR as SEPARATOR
from spklink.foreign_tables import foreign_rows, given_rows
from spklink.json_files import read_json as read_json
from spklink.shown import Probability
from spklink.table_forms import (
    BEGIN,
    DECIMAL,
    PLAIN,
    ROWS,
    TEXT,
    Form,
    OpenFile,
    first_text,
    form_of,
    rows_of,
)
from spklink.whole_files import TEMPORARY as TEMPORARY
from spklink.whole_files import aside as aside
from spklink.whole_files import replacing as replacing
from spklink.whole_files import sha256 as sha256
from spklink.whole_files import sweep as sweep
from spklink.whole_files import write_bytes as write_bytes
from spklink.whole_files import write_json as write_json
from spklink.whole_files import write_npz as write_npz

csv.field_size_limit(1 << 24)
KINDS = {str: "text", int: "a whole number", float: "a number"}  # of cells, in messages
# Columns of ours that hold what others wrote; all others hold figures and words of our own.
FOREIGN = {"conversation", "speaker", "file", "problem", "claimed", "suggested", "mark"} | {
    *("track", "cue", "against"),
}
# Where a formula begins: in a cell, or after what some spreadsheets divide cells by. Apostrophes
# that stand there already count in, so that a mark can be told from a name and be taken off again.
FORMULA = r"(?='*[=+\-@\t\r\n＝＋－＠])"
BEGINNING = r"(?<![^;\t\r\n])"
Table = Any  # a path, a Content, a DataFrame, or an iterable of mappings: pandas is not imported


Rows = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True)
class Header:
    """Column positions of one table, and how it is written."""

    path: Path
    names: list[str]
    form: Form = PLAIN
    row: int = 1
    begin: bytes = field(default=b"", repr=False)  # of a table in text

    def column(self, name: str) -> int:
        """Position of a column, -1 where the table has none of that name."""
        return self.names.index(name) if name in self.names else -1

    def sample(self) -> list[list[str]]:
        """The first rows below it, as they are written."""
        text = first_text(self.begin, self.form.encoding)
        return list(islice(rows_of(text, self.form.separator), self.row, self.row + ROWS))


@dataclass(frozen=True)
class Reading:
    """How a person says that tables are to be read."""

    columns: Columns = field(default_factory=Columns)
    encoding: str | None = None


AS_IT_IS = Reading()


@dataclass(frozen=True)
class Content:
    """A table as it was when it was read: what is parsed, hashed and kept is the same."""

    path: Path  # a name for messages, where it was no file
    data: bytes
    file: bool = True
    how: Reading = AS_IT_IS

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def form(self) -> Form:
        """How it is written."""
        if not self.file:
            return PLAIN
        try:
            return form_of(self.data, whole=True, encoding=self.how.encoding)
        except SpklinkError as error:
            raise SpklinkError(f"{self.path}: {error}") from None


def read_table(table: Table, name: str = "table", how: Reading = AS_IT_IS) -> Content:
    """All of a table, read once; `name` is what messages call rows that come from no file."""
    if isinstance(table, Content):
        return table
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        try:
            return Content(path, path.read_bytes(), how=how)
        except OSError as error:
            raise SpklinkError(f"{path}: cannot be read ({error.strerror})") from None
    columns, rows = given_rows(table, name)
    return Content(Path(name), csv_bytes(columns, rows), file=False, how=how)


@contextmanager
def open_table(table: Table, name: str = "table") -> Iterator[tuple[Header, Rows]]:
    """The header and the (row number, fields) of a table; blank lines are passed over."""
    one = _opened(table, name)
    begun = table.begun if isinstance(table, OpenFile) else None
    reader: Any = None
    try:
        if one.form.kind != TEXT:
            rows = _of_file(one.path, foreign_rows(one.form.kind, one.file.read()))
            row, names = next(rows, (1, []))
        else:
            text = io.TextIOWrapper(one.file, encoding=one.form.encoding, newline="")
            reader = csv.reader(text, delimiter=one.form.separator, strict=True)
            row = one.form.header
            names = begun.names if begun else next(islice(reader, row - 1, None), [])
            rows = _numbered(reader, begun.row if begun else row)
        names = [column.strip() for column in names]
        if not any(names):
            raise SpklinkError(f"{one.path}: empty; a table starts with a row of column names")
        if one.form.kind == TEXT and one.form.separator != ",":
            rows = _with_points(names, rows)
        names, rows = _as_ours(one.path, names, rows, one.how.columns)
        yield Header(one.path, names, one.form, row, one.begin), rows
    except UnicodeDecodeError:
        raise SpklinkError(f"{one.path}: {one.undecodable()}") from None
    except csv.Error as error:
        line = reader.line_num + (begun.row if begun else 0)
        raise SpklinkError(f"{one.path}: line {line}: not valid CSV ({error})") from None
    except OSError as error:
        raise SpklinkError(f"{one.path}: cannot be read ({error.strerror})") from None
    finally:
        one.file.close()


@dataclass(frozen=True)
class _Opened:
    """A table about to be parsed."""

    path: Path
    file: BinaryIO
    form: Form
    begin: bytes
    how: Reading

    def undecodable(self) -> str:
        """Where it is, looked for from the begin; nowhere in a pipe."""
        remedy = f"not {self.form.encoding.removesuffix('-sig').upper()}; save the table as UTF-8"
        if not self.path.is_file():
            return remedy
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode(self.form.encoding)
                except UnicodeDecodeError as error:
                    return f"line {number}: (byte 0x{line[error.start]:02x}) {remedy}"
        return remedy


def _opened(table: Table, name: str) -> _Opened:
    if isinstance(table, OpenFile) and table.begun is not None:
        return _Opened(table.path, table.file, table.begun.form, table.begun.begin, AS_IT_IS)
    if isinstance(table, OpenFile):
        begin = table.file.peek(BEGIN)[:BEGIN]
        try:
            form = form_of(begin, whole=False)
        except SpklinkError as error:
            raise SpklinkError(f"{table.path}: {error}") from None
        return _Opened(table.path, table.file, form, begin, AS_IT_IS)
    content = read_table(table, name)
    return _Opened(
        content.path,
        io.BytesIO(content.data),
        content.form,
        content.data[:BEGIN],
        content.how,
    )


def _numbered(reader: Iterator[list[str]], header: int) -> Rows:
    for number, fields in enumerate(reader, start=header + 1):
        if fields:
            yield number, fields


def _as_ours(path: Path, names: list[str], rows: Rows, said: Columns) -> tuple[list[str], Rows]:
    try:
        return renamed(names, rows, said)
    except SpklinkError as error:
        raise SpklinkError(f"{path}: {error}") from None


def _of_file(path: Path, rows: Rows) -> Rows:
    """The same; what is wrong with them is said of their file."""
    try:
        yield from rows
    except SpklinkError as error:
        raise SpklinkError(f"{path}: {error}") from None


def _with_points(names: list[str], rows: Rows) -> Rows:
    """Numbers with a decimal comma as everybody else writes them."""
    at = [k for k, name in enumerate(names) if name.casefold() not in TEXTS]
    for number, fields in rows:
        for k in at:
            if k < len(fields) and "," in fields[k] and DECIMAL.fullmatch(fields[k]):
                fields[k] = fields[k].replace(",", ".")
        yield number, fields


def plain_bytes(content: Content) -> bytes:
    """A table as plain CSV with our names; its own bytes where it is that already."""
    if content.form.plain and not content.how.columns:
        return content.data
    with open_table(content) as (header, rows):
        return csv_bytes(header.names, (fields for _, fields in rows))


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
    found, wanted = len(fields), len(header.names)
    if isinstance(fields, Odd):
        found, wanted = fields.found, fields.wanted
    lists = header.form.separator == SEPARATOR and found > wanted
    hint = '; put lists in quotes ("anna;ben")' if lists else ""
    return f"row {number}: {found} fields where the header has {wanted}{hint}"


def require_columns(header: Header, names: Sequence[str]) -> None:
    """Refuse a table without these columns, or with a column twice."""
    missing = [name for name in names if name not in header.names]
    count = Counter(header.names)
    twice = sorted(name for name, times in count.items() if name and times > 1)
    row = f"row {header.row}"
    problems = [f"{row}: column '{name}' appears more than once" for name in twice]
    if missing:
        found = header.form.separator.join(header.names[:100])
        form = "" if header.form.plain else f", read as {header.form}"
        problems.append(
            f"{row}: no column {', '.join(map(repr, missing))}; found {found[:200]!r}{form}"
            f"{_remedy(header, names, missing)}"
        )
    if problems:
        raise problems_in(header.path, problems)


def _remedy(header: Header, needed: Sequence[str], missing: Sequence[str]) -> str:
    """What would make these columns ours."""
    found = guessed(header, needed)
    if found.whole:
        return f"; if the columns mean that, give --columns {quote(str(found.columns))}"
    said = ",".join(f"{role}=…" for role in missing)
    head = "; is the header row missing?" if len(missing) == len(needed) else ""
    return f"{head}; which columns are these? give --columns '{said}'"


def guessed(header: Header, needed: Sequence[str]) -> Guess:
    """What the columns of a table might be."""
    return guess(header.names, needed, header.sample() if header.form.kind == TEXT else ())


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


def probability_text(value: float) -> Probability:
    """A probability for a table: ten significant digits, never rounded up to certainty."""
    short = f"{value:.10g}"
    return Probability(repr(float(value)) if value < 1.0 and float(short) == 1.0 else short)
