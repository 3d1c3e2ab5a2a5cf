"""How a table in a file is written, told from its bytes: kind, letters, separator, header.

Plain tables are UTF-8 with commas and the header in the first line; they are told by a look at that
line. All else is told from the first rows. What was recognised can be said in words, so that a
person can object.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from spklink.errors import SpklinkError

BEGIN = 1 << 16  # bytes from which a form is told
ROWS = 20  # rows from which a separator is told, and among which the header is looked for
TEXT, EXCEL, PARQUET, JSON = "text", "Excel", "Parquet", "JSON"
UTF_8 = "utf-8-sig"
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MARKS = (  # at the begin of a file; longer ones first
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CALLED = {"cp1252": "Windows-1252", "mac_roman": "Mac Roman", "cp850": "DOS (cp850)"}
FITTING = 0.7  # share of letters beyond ASCII that must look right for an old encoding
MIXED = 0.4  # share of letters beyond ASCII above which a text is of another script
DECIMAL = re.compile(r"\s*[-+]?\d+,\d+\s*")
SEP = re.compile(r'"?sep=(.)"?\s*$', re.IGNORECASE)  # the first line that Excel understands
OLD = "an Excel file of the old form, or one with a password; save it as .xlsx or CSV without one"
UNREADABLE = {b"\xd0\xcf\x11\xe0": OLD, b"%PDF": "a PDF; save the table as CSV or .xlsx"}


@dataclass(frozen=True)
class Form:
    """How a table is written."""

    kind: str = TEXT
    encoding: str = UTF_8
    separator: str = ","
    header: int = 1  # the row that has the names of the columns
    decimal_comma: bool = False

    @property
    def plain(self) -> bool:
        return self == PLAIN

    def __str__(self) -> str:
        """In words: what a person may want to object to."""
        if self.kind != TEXT:
            said = [self.kind]
        else:
            letters = self.encoding.replace(UTF_8, "UTF-8").replace("utf", "UTF")
            letters = CALLED.get(letters, letters)
            said = [f"{SEPARATORS[self.separator]}-separated", letters]
        said += ["decimal comma"] if self.decimal_comma else []
        return ", ".join(said + ([f"header in row {self.header}"] if self.header > 1 else []))


PLAIN = Form()


@dataclass(frozen=True)
class OpenFile:
    """A table in an open file, which is read once."""

    path: Path
    file: io.BufferedReader
    begun: Begun | None = None


@dataclass(frozen=True)
class Begun:
    """What was read of a table already: the rows above are whole lines."""

    form: Form
    names: list[str]
    row: int  # the last one that was read
    begin: bytes = field(repr=False)


def form_of(data: bytes, *, whole: bool, encoding: str | None = None) -> Form:
    """The form of a table that begins with these bytes, or consists of them."""
    for begin, why in UNREADABLE.items():
        if data.startswith(begin):
            raise SpklinkError(why)
    if data.startswith(b"PK"):
        return Form(EXCEL)
    if data.startswith(b"PAR1"):
        return Form(PARQUET)
    letters = known_encoding(encoding) if encoding else encoding_of(data, whole=whole)
    if letters == UTF_8 and data.lstrip(codecs.BOM_UTF8 + b" \t\r\n")[:1] in (b"{", b"["):
        return Form(JSON)
    line = data[:BEGIN].partition(b"\n")[0]
    simple = letters == UTF_8 and b"," in line and not any(mark in line for mark in (b";", b"\t"))
    if simple and b"|" not in line:
        return PLAIN
    return _of_text(first_text(data, letters), letters)


def known_encoding(name: str) -> str:
    """An encoding that somebody asked for, as Python calls it."""
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise SpklinkError(f"encoding: {name!r} is not known; try utf-8, cp1252, cp1250 or cp1251")
    return UTF_8 if found.name == "utf-8" else found.name


def first_text(data: bytes, encoding: str) -> str:
    """The text that some bytes begin with; what is cut in two at their end is left out."""
    return codecs.getincrementaldecoder(encoding)(errors="replace").decode(data[:BEGIN])


# --- letters --------------------------------------------------------------------------------------


def encoding_of(data: bytes, *, whole: bool) -> str:
    """Which encoding some bytes are written in: a mark says it, else UTF-8 if they can be that."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return name
    if data.isascii():
        return _without_mark(data[:BEGIN])
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        return _old(data, error)
    return UTF_8


def _without_mark(begin: bytes) -> str:
    """UTF-16 whose mark is missing has a zero in every other byte."""
    half = len(begin) // 2
    for name, zeros in (("utf-16-le", begin[1::2]), ("utf-16-be", begin[::2])):
        others = begin.count(0) - zeros.count(0)
        if zeros.count(0) > 0.6 * half and others < 0.1 * half:
            return name
    return UTF_8


def _old(data: bytes, error: UnicodeDecodeError) -> str:
    """The encoding of a byte a letter in which most letters beyond ASCII look right."""
    fits = {name: _fit(data[max(0, error.start - BEGIN) :][: 2 * BEGIN], name) for name in CALLED}
    best = max(fits, key=lambda name: fits[name])
    if fits[best] >= FITTING:
        return best
    line = data.count(b"\n", 0, error.start) + 1
    raise SpklinkError(
        f"line {line}: not UTF-8, and not Windows-1252 either (byte 0x{data[error.start]:02x}); "
        "save the table as UTF-8, or say what it is: --encoding cp1250 (Polish, Czech …), cp1251 "
        "(Cyrillic), cp1253 (Greek), shift_jis, gb18030 …"
    )


def _fit(data: bytes, encoding: str) -> float:
    """The share of letters beyond ASCII that stand where such letters stand in words."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return 0.0
    high = [k for k, letter in enumerate(text) if letter > "\x7f"]
    letters = sum(map(str.isalpha, text))
    if sum(text[k].isalpha() for k in high) > MIXED * letters:
        return 0.0  # Cyrillic, Greek …, of which any byte is a letter of the West too
    return sum(_fits(text[k - 1 : k], text[k], text[k + 1 : k + 2]) for k in high) / len(high)


def _fits(before: str, letter: str, after: str) -> bool:
    """Whether a letter can stand between two others: no capital inside of a word, no other mark
    between letters."""
    if not letter.isalpha():
        return letter in "’´·" or not (before.isalpha() and after.isalpha())
    small = (before + after) != (before + after).upper()
    return not (letter.isupper() and before.isalpha() and small)


# --- separator and header -------------------------------------------------------------------------


def _of_text(text: str, encoding: str) -> Form:
    said = SEP.match(text.partition("\n")[0])
    if said and said[1] in SEPARATORS:
        rest = text.partition("\n")[2]
        found = _best(rest, encoding, (said[1],))
        return Form(TEXT, encoding, said[1], found.header + 1, found.decimal_comma)
    return _best(text, encoding, tuple(SEPARATORS))


def _best(text: str, encoding: str, marks: tuple[str, ...]) -> Form:
    """The separator that divides the header into most names, and rows as the header."""
    parsed = {mark: list(islice(rows_of(text, mark), ROWS)) for mark in marks}

    def worth(mark: str) -> float:
        at = _header(parsed[mark])
        rows = parsed[mark][at:]
        width = len(rows[0]) if rows else 0
        if width < 2:
            return 0.0
        title = 0.5 if at else 1.0  # what stands above may be the header by another mark
        return title * width * sum(len(row) == width for row in rows) / len(rows)

    mark = max(marks, key=worth)
    at = _header(parsed[mark])
    cells = (cell for row in parsed[mark][at + 1 :] for cell in row)
    decimal = mark != "," and any(DECIMAL.fullmatch(cell) for cell in cells)
    return Form(TEXT, encoding, mark, at + 1, decimal)


def _header(rows: list[list[str]]) -> int:
    """Which row has the names: the first of several cells, else the first that says anything."""
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    for least in (2, 1):
        for k, count in enumerate(filled):
            if count >= least:
                return k
    return 0


def rows_of(text: str, mark: str) -> Iterator[list[str]]:
    """Rows of the begin of a text, as long as they can be read."""
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    except csv.Error:
        return
