"""Tables too large to be held, a block of rows at a time, column by column.

As long as blocks are well formed (`whole_columns`), they are handed on as columns; from the first
that is not, the rest is left to the reader that goes row by row, which counts on from there.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from typing import IO, Any

from spklink import whole_columns
from spklink.errors import SpklinkError
from spklink.table_forms import BEGIN, TEXT, UTF_8, Begun, OpenFile, form_of
from spklink.tables import Header
from spklink.whole_columns import Whole, parsed, well_formed

BLOCK = 1 << 24  # bytes


class Blocks:
    """The blocks of an open table of text, each with all of these columns."""

    def __init__(self, table: OpenFile, wanted: Sequence[str]) -> None:
        self.table, self.wanted = table, list(wanted)
        self.held = b""  # read, but not handed on
        self.ended = False  # whether all is read
        self.begun: Begun | None = None

    def __iter__(self) -> Iterator[Whole]:
        self.held = self.table.file.read(BLOCK)
        if len(self.held) < whole_columns.LEAST or not self._began():
            return
        while end := self._whole_lines():
            found = self._columns(end)
            if found is None:
                return
            yield found
            assert self.begun is not None
            begun = self.begun
            self.begun = Begun(begun.form, begun.names, begun.row + found.count, begun.begin)
            self.held = self.held[end:]

    def rest(self) -> OpenFile | None:
        """What is left to be read row by row; None where nothing is."""
        if self.ended and not self.held and self.begun is not None:
            return None
        joined: Any = io.BufferedReader(_Joined(self.held, self.table.file), BLOCK)
        return OpenFile(self.table.path, joined, self.begun)

    def _began(self) -> bool:
        """Read the header, if it is one that can be read so."""
        try:
            form = form_of(self.held[:BEGIN], whole=False)
        except SpklinkError:
            return False
        if form.kind != TEXT or form.encoding != UTF_8 or form.separator != "," or form.header > 1:
            return False
        line, end, _ = self.held.removeprefix(codecs.BOM_UTF8).partition(b"\n")
        if not end or b'"' in line or b"\r" in line.rstrip(b"\r") or not line.isascii():
            return False
        names = [name.strip() for name in next(csv.reader([line.decode().rstrip("\r")]), [])]
        if any(names.count(name) != 1 for name in self.wanted):
            return False
        self.begun = Begun(form, names, form.header, self.held[:BEGIN])
        self.held = self.held[self.held.index(b"\n") + 1 :]
        return True

    def _whole_lines(self) -> int:
        """Fill up what is held, and where its last whole line ends; 0 where there is none."""
        more = self.table.file.read(BLOCK)
        self.held += more
        self.ended = len(more) < BLOCK
        return len(self.held) if self.ended else self.held.rfind(b"\n") + 1

    def _columns(self, end: int) -> Whole | None:
        begun = self.begun
        assert begun is not None
        data = b"\n" + self.held[:end].removesuffix(b"\n").removesuffix(b"\r")
        if not data[1:] or data.endswith(b"\n") or not _decodes(data):
            return None
        if not well_formed(data, 1, len(data), ","):
            return None
        used = [begun.names.index(name) for name in self.wanted]
        cells = parsed(data, 1, len(data), ",", len(begun.names), used)
        if cells is None:
            return None
        columns = {name: cells[k] for name, k in zip(self.wanted, used, strict=True)}
        header = Header(self.table.path, begun.names, begun.form, begun.form.header, begun.begin)
        return Whole(header, begun.row + 1, columns, len(cells[used[0]]))


def _decodes(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Joined(io.RawIOBase):
    """Some bytes, and a file behind them."""

    def __init__(self, first: bytes, file: IO[bytes]) -> None:
        self.first, self.file = memoryview(first), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not len(self.first):
            return int(self.file.readinto(buffer))  # type: ignore[attr-defined]
        count = min(len(buffer), len(self.first))
        buffer[:count] = self.first[:count]
        self.first = self.first[count:]
        return count

    def close(self) -> None:
        self.file.close()
        super().close()
