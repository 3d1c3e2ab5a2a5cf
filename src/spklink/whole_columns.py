"""Tables of very many rows, a column at a time, by pyarrow: those that are well formed throughout.

Whatever is odd about a table (a row of another length, a blank line, a quote where no writer puts
one, a damaged letter) is left to the reader that goes row by row (`tables`), which alone has
words for it. So a table is read the same way and refused with the same words by either.
Columns are arrays of large strings without missing ones.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.columns import TEXTS, placed
from spklink.errors import SpklinkError
from spklink.foreign_tables import SEPARATOR, cell
from spklink.table_forms import DECIMAL, PARQUET, TEXT, UTF_8
from spklink.tables import Content, Header

LEAST = 1 << 20  # bytes: smaller tables take no time row by row, and pyarrow need not be loaded
# Everything that str.strip takes off.
SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
SPACES += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
QUOTE, NEWLINE, RETURN = b'"\n\r'
Column = Any  # an array of pyarrow
Letters = NDArray[np.uint8]


@dataclass(frozen=True)
class Whole:
    """Some columns of a table, whole."""

    header: Header
    first: int  # the row of the first cells
    columns: dict[str, Column]  # by our names; only those that the table has
    count: int  # rows

    def column(self, name: str) -> Column:
        """Cells without spaces around them; empty ones of a column that is not there."""
        import pyarrow as pa

        if name not in self.columns:
            return pa.repeat(pa.scalar("", pa.large_string()), self.count)
        return stripped(self.columns[name])


def whole_columns(content: Content, wanted: Sequence[str] | None) -> Whole | None:
    """These columns of a table, or all; None where it is small or has to be read row by row."""
    if len(content.data) < LEAST:
        return None
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())  # others keep what is freed: a quarter more in all
    if content.form.kind == TEXT:
        return _of_text(content, wanted)
    return _of_parquet(content, wanted) if content.form.kind == PARQUET else None


# --- text -----------------------------------------------------------------------------------------


def _of_text(content: Content, wanted: Sequence[str] | None) -> Whole | None:
    form, data = content.form, _as_utf_8(content)
    if data is None:
        return None
    begin = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    for _ in range(form.header):
        line, begin = begin, data.find(b"\n", begin) + 1
        if begin == 0 or data.count(b'"', line, begin) % 2:
            return None
    end = _without_empty_end(data, begin)
    if begin >= end or not well_formed(data, begin, end, form.separator):
        return None
    try:
        text = data[line:begin].decode().rstrip("\r\n")
        theirs = next(csv.reader([text], delimiter=form.separator, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    theirs = [name.strip() for name in theirs]
    names, places = _renamed(theirs, content)
    at = [names.index(name) for name in wanted or names if name in names]
    if len(theirs) < 2 or len(set(names)) < len(names) or max(map(len, places)) > 2:
        return None
    used = sorted({k for n in at for k in places[n]})
    cells = parsed(data, begin, end, form.separator, len(theirs), used)
    if cells is None:
        return None
    if form.separator != ",":
        cells = {
            k: one if theirs[k].casefold() in TEXTS else _with_points(one)
            for k, one in cells.items()
        }
    columns = {names[n]: _joined([cells[k] for k in places[n]]) for n in at}
    header = Header(content.path, names, form, form.header)
    count = len(cells[used[0]]) if used else 0
    return Whole(header, form.header + 1, columns, count) if used else None


def _as_utf_8(content: Content) -> bytes | None:
    if content.form.encoding == UTF_8:
        return content.data
    try:
        return content.data.decode(content.form.encoding).encode()
    except UnicodeError:
        return None


def _without_empty_end(data: bytes, begin: int) -> int:
    end = len(data)
    while end > begin and data[end - 1] in (NEWLINE, RETURN):
        end -= 1
    return end


def well_formed(data: bytes, begin: int, end: int, separator: str) -> bool:
    """Whether every reader of CSV must read these rows alike: quotes only around whole cells or
    twice inside of such, no line end inside of a cell, none but \\n and \\r\\n, no blank line, no
    NUL."""
    if any(data.find(odd, max(begin - 1, 0), end) >= 0 for odd in (b"\0", b"\n\n", b"\n\r\n")):
        return False
    returns = data.count(b"\r", begin, end)
    if returns and returns != data.count(b"\r\n", begin, end):
        return False
    if data.find(b'"', begin, end) < 0:
        return True
    letters = np.frombuffer(data, np.uint8, end - begin, begin)
    return _quotes_fit(letters, ord(separator))


def _quotes_fit(letters: Letters, separator: int) -> bool:
    at = np.flatnonzero(letters == QUOTE)
    if len(at) % 2:
        return False
    opening, closing = at[::2], at[1::2]
    again = closing[:-1] + 1 == opening[1:]  # two in a row inside of a cell are one
    begins = np.concatenate([[False], again]) | (opening == 0)
    begins |= np.isin(letters[opening - 1], (separator, NEWLINE))
    ends = np.concatenate([again, [False]]) | (closing == len(letters) - 1)
    after = letters[np.minimum(closing + 1, len(letters) - 1)]
    ends |= np.isin(after, (separator, NEWLINE, RETURN))
    inside = np.searchsorted(at, np.flatnonzero(letters == NEWLINE)) % 2
    return bool(begins.all() and ends.all() and not inside.any())


def parsed(
    data: bytes, begin: int, end: int, separator: str, width: int, used: list[int]
) -> dict[int, Column] | None:
    """Some columns of rows that are well formed; None where one has another length."""
    import pyarrow as pa
    from pyarrow import csv as reader

    names = [str(k) for k in range(width)]
    kept = {names[k]: pa.large_string() for k in used}
    try:
        table = reader.read_csv(
            pa.BufferReader(pa.py_buffer(data).slice(begin, end - begin)),
            reader.ReadOptions(column_names=names),
            reader.ParseOptions(delimiter=separator, ignore_empty_lines=False),
            reader.ConvertOptions(column_types=kept, include_columns=list(kept)),
        )
    except pa.ArrowInvalid:
        return None
    found = {}
    for k in used:  # pieces go as soon as they are put together
        found[k] = _one(table[str(k)])
        table = table.drop_columns([str(k)])
    release_memory()
    return found


def release_memory() -> None:
    """Let the system have what is free."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _one(column: Any) -> Column:
    """An array of what came in pieces."""
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _renamed(theirs: list[str], content: Content) -> tuple[list[str], list[list[int]]]:
    """Our names, and the columns that each is made of; one of three where that cannot be told
    column by column."""
    said = content.how.columns
    try:
        found = placed(theirs, said)
    except SpklinkError:
        found = None
    return found or (theirs, [[0, 0, 0]])


def _joined(columns: list[Column]) -> Column:
    """Cells of two columns for one list."""
    import pyarrow as pa
    from pyarrow import compute

    if len(columns) == 1:
        return columns[0]
    mark = pa.scalar(SEPARATOR, pa.large_string())
    return compute.binary_join_element_wise(*map(stripped, columns), mark)


def _with_points(column: Column) -> Column:
    """Numbers with a decimal comma as everybody else writes them."""
    import pyarrow as pa
    from pyarrow import compute

    if not compute.any(compute.match_substring(column, ",")).as_py():
        return column
    points = (
        text.replace(",", ".") if DECIMAL.fullmatch(text) else text for text in column.to_pylist()
    )
    return pa.array(points, pa.large_string())


# --- Parquet --------------------------------------------------------------------------------------


def _of_parquet(content: Content, wanted: Sequence[str] | None) -> Whole | None:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(pa.BufferReader(content.data))
        theirs = [name.strip() for name in opened.schema_arrow.names]
        names, places = _renamed(theirs, content)
        at = [names.index(name) for name in wanted or names if name in names]
        used = sorted({k for n in at for k in places[n]})
        if len(set(names)) < len(names) or max(map(len, places)) > 2 or not used:
            return None
        table = opened.read([opened.schema_arrow.names[k] for k in used])
    except (pa.ArrowException, OSError):
        return None
    if table.num_columns != len(used) or not table.num_rows:  # names with points in them
        return None
    cells = {k: as_text(_one(table.column(n))) for n, k in enumerate(used)}
    columns = {names[n]: _joined([cells[k] for k in places[n]]) for n in at}
    return Whole(Header(content.path, names, content.form, 1), 2, columns, table.num_rows)


def as_text(column: Column) -> Column:
    """Cells as a text file would have them (`cell`), quickly where that is quick."""
    import pyarrow as pa
    from pyarrow import compute

    kind, text = column.type, pa.large_string()
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        return compute.fill_null(column.cast(text), "")
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if lists and pa.types.is_string(kind.value_type) and not column.flatten().null_count:
        return compute.fill_null(compute.binary_join(column, SEPARATOR).cast(text), "")
    return pa.array([cell(value) for value in column.to_pylist()], text)


# --- cells ----------------------------------------------------------------------------------------


def stripped(column: Column) -> Column:
    """Cells without spaces around them."""
    from pyarrow import compute

    if not _has_spaces(column):
        return column
    return compute.utf8_trim(column, SPACES)


def _has_spaces(column: Column) -> bool:
    """Whether a cell may begin or end with one: told from its first and its last byte."""
    letters, start = bytes_of(column)
    full = np.diff(start) > 0
    return any(
        bool(((ends <= ord(" ")) | (ends >= 0x80)).any())
        for ends in (letters[start[:-1][full]], letters[start[1:][full] - 1])
    )


def bytes_of(column: Column) -> tuple[Letters, NDArray[np.int64]]:
    """The bytes of all cells, and where each begins in them."""
    _, start, data = column.buffers()
    places = np.frombuffer(start, np.int64, len(column) + 1, 8 * column.offset)
    return np.frombuffer(data or b"", np.uint8), places


def divided(column: Column) -> tuple[Column, NDArray[np.int64]]:
    """Parts of cells between semicolons, without spaces, one after the other; and how many each
    cell has: none where it is empty."""
    import pyarrow as pa

    letters, start = bytes_of(column)
    letters = letters[start[0] : start[-1]]
    if ord(SEPARATOR) not in letters:
        full = np.diff(start) > 0
        parts = column if full.all() else column.filter(pa.array(full))
        return stripped(parts), full.astype(np.int64)
    start = start - start[0]
    marks = letters == ord(SEPARATOR)
    at = np.flatnonzero(marks)
    before = np.searchsorted(at, start)  # marks in front of each cell
    full = np.diff(start) > 0
    # A part ends at every mark and where a cell does; places are counted without the marks.
    ends = [at - np.arange(len(at)), (start[1:] - before[1:])[full]]
    places = np.concatenate([[0], np.sort(np.concatenate(ends), kind="stable")])
    parts = pa.LargeStringArray.from_buffers(
        len(places) - 1, pa.py_buffer(places), pa.py_buffer(letters[~marks])
    )
    return stripped(parts), np.where(full, np.diff(before) + 1, 0)
