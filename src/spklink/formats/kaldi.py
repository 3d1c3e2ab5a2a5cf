"""Kaldi archives: vectors by key, from .ark (binary or text) and .scp, compressed ones too.

A binary entry is a key, a space, NUL, B and a token: FV and DV are vectors of floats and doubles,
FM and DM matrices, CM, CM2 and CM3 compressed matrices (one byte with quartiles a column, two
bytes, one byte). A matrix must have one row: the vector of a side. In text it is `key [ 1 2 3 ]`. A
.scp lists `key file:offset`; commands in it (`… |`) are never run.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.formats.vectors import MOST_NUMBERS, Collector, Rows
from spklink.streams import Stream

Floats = NDArray[np.float64]
LONGEST_KEY = 10_000  # characters
LONGEST_NUMBER = 40  # characters, in text
PLAIN = {
    b"FV": (np.float32, 1),
    b"DV": (np.float64, 1),
    b"FM": (np.float32, 2),
    b"DM": (np.float64, 2),
}
SAVE = "write one vector a side, as ivector-copy or copy-vector do"


def read_ark(file: IO[bytes], name: str, collector: Collector) -> None:
    """All entries of an open archive into the collector."""
    made = Rows(collector, keyed=True)
    for key, vector in entries(file, name):
        made.add(f"key {key!r}", vector, (key,), None)
    made.flush()


def read_scp(file: IO[bytes], path: Path, collector: Collector) -> list[Stream]:
    """The entries that a script lists; the archives they came from, read and hashed."""
    made, archives = Rows(collector, keyed=True), dict[Path, Stream]()
    opened: tuple[Path, IO[bytes]] | None = None
    try:
        for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8"), start=1):
            if not line.strip():
                continue
            key, archive, offset = _script(line, path, number)
            if opened is None or opened[0] != archive:
                if opened is not None:
                    opened[1].close()
                archives.setdefault(archive, Stream(archive))
                opened = archive, _open(archive, path, number)
            opened[1].seek(offset)
            where = f"{archive}: {key!r}"
            made.add(f"key {key!r}", _value(opened[1], where), (key,), None)
        made.flush()
    except UnicodeDecodeError:
        raise SpklinkError(f"{path}: not UTF-8; a .scp is text") from None
    finally:
        if opened is not None:
            opened[1].close()
    return [_hashed(stream) for stream in archives.values()]


def _script(line: str, path: Path, number: int) -> tuple[str, Path, int]:
    key, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    place = f"{path}: line {number}: {key!r}"
    if not rest:
        raise SpklinkError(f"{place}: no file; a line is: key file:offset")
    if rest.endswith("|") or rest.startswith("|"):
        raise SpklinkError(f"{place}: a command, which is not run; copy the vectors to an .ark")
    if rest.endswith("]"):
        raise SpklinkError(f"{place}: a range of a matrix; {SAVE}")
    name, mark, offset = rest.rpartition(":")
    if not mark or not offset.isdigit():
        name, offset = rest, "0"
    here = Path(name)
    if not here.is_absolute() and not here.exists():  # Kaldi means the working directory
        here = path.parent / name
    return key, here, int(offset)


def _open(archive: Path, path: Path, number: int) -> IO[bytes]:
    try:
        return archive.open("rb")
    except OSError as error:
        raise SpklinkError(
            f"{path}: line {number}: {archive}: cannot be read ({error.strerror})"
        ) from None


def _hashed(stream: Stream) -> Stream:
    with stream.open() as file:
        while file.read(1 << 20):
            pass
    return stream


def entries(file: IO[bytes], name: str) -> Iterator[tuple[str, Floats]]:
    """Keys and vectors of an archive, from begin to end."""
    while (key := _key(file, name)) is not None:
        yield key, _value(file, f"{name}: {key!r}")


def _key(file: IO[bytes], name: str) -> str | None:
    """What stands before the next space; None at the end."""
    found = bytearray()
    while byte := file.read(1):
        if byte in b" \t" and found:
            break
        if byte not in b" \t\r\n":
            found += byte
        elif found:  # a line that ends after its first word
            break
        if len(found) > LONGEST_KEY:
            raise SpklinkError(f"{name}: no Kaldi archive (a key of over {LONGEST_KEY} characters)")
    if not found:
        return None
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise SpklinkError(f"{name}: no Kaldi archive (a key that is not UTF-8)") from None


def _value(file: IO[bytes], where: str) -> Floats:
    """The vector that comes next."""
    start = _skip_blank(file)
    if start == b"[":
        return _text(file, where)
    if start != b"\0" or file.read(1) != b"B":
        raise SpklinkError(f"{where}: neither a Kaldi vector nor a matrix; {SAVE}")
    token = bytearray()
    while (byte := file.read(1)) not in (b" ", b"") and len(token) < 5:
        token += byte
    kind = bytes(token)
    if kind in PLAIN:
        return _plain(file, *PLAIN[kind], where)
    if kind in (b"CM", b"CM2", b"CM3"):
        return _compressed(file, kind, where)
    raise SpklinkError(f"{where}: of kind {kind!r}, which is no vector of numbers; {SAVE}")


def _skip_blank(file: IO[bytes]) -> bytes:
    byte = file.read(1)
    while byte in (b" ", b"\t"):
        byte = file.read(1)
    return byte


def _bytes(file: IO[bytes], count: int, where: str) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise SpklinkError(f"{where}: the archive ends early; is it whole?")
    return data


def _size(file: IO[bytes], where: str) -> int:
    """A number of four bytes, after a byte that says so."""
    data = _bytes(file, 5, where)
    if data[0] != 4:
        raise SpklinkError(f"{where}: no Kaldi archive (a number of {data[0]} bytes)")
    return int(np.frombuffer(data[1:], "<i4")[0])


def _checked(rows: int, columns: int, where: str) -> None:
    if rows != 1:
        raise SpklinkError(f"{where}: a matrix of {rows} rows, not one vector; {SAVE}")
    if not 0 < columns <= MOST_NUMBERS:
        raise SpklinkError(f"{where}: {columns} numbers; 1 to {MOST_NUMBERS} are read")


def _plain(file: IO[bytes], dtype: type, dimensions: int, where: str) -> Floats:
    rows = _size(file, where) if dimensions > 1 else 1
    columns = _size(file, where)
    _checked(rows, columns, where)
    little = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(_bytes(file, columns * little.itemsize, where), little).astype(np.float64)


def _compressed(file: IO[bytes], kind: bytes, where: str) -> Floats:
    """One row of a matrix whose numbers are steps between its least and its largest."""
    least, spread = np.frombuffer(_bytes(file, 8, where), "<f4").astype(np.float64)
    rows, columns = np.frombuffer(_bytes(file, 8, where), "<i4").tolist()
    _checked(rows, columns, where)
    if kind == b"CM2":
        steps = np.frombuffer(_bytes(file, 2 * columns, where), "<u2")
        return np.asarray(least + spread / 65535.0 * steps)
    if kind == b"CM3":
        steps = np.frombuffer(_bytes(file, columns, where), "u1")
        return np.asarray(least + spread / 255.0 * steps)
    marks = np.frombuffer(_bytes(file, 8 * columns, where), "<u2").reshape(columns, 4)
    step = np.frombuffer(_bytes(file, columns, where), "u1").astype(np.float64)
    low, first, third, high = (least + spread / 65535.0 * marks.astype(np.float64)).T
    found = np.where(
        step <= 64.0,
        low + (first - low) * step / 64.0,
        np.where(
            step <= 192.0,
            first + (third - first) * (step - 64.0) / 128.0,
            third + (high - third) * (step - 192.0) / 63.0,
        ),
    )
    return np.asarray(found, np.float64)


def _text(file: IO[bytes], where: str) -> Floats:
    """The numbers up to the next bracket; lines are the rows of a matrix."""
    found = bytearray()
    while (byte := file.read(1)) != b"]":
        if not byte or len(found) > LONGEST_NUMBER * MOST_NUMBERS:
            raise SpklinkError(f"{where}: no ] after its [; is the archive whole?")
        found += byte
    lines = [line for line in found.decode("ascii", "replace").splitlines() if line.strip()]
    _checked(max(len(lines), 1), len(lines[0].split()) if lines else 0, where)
    try:
        return np.array([float(word) for word in lines[0].split()])
    except ValueError as error:
        raise SpklinkError(f"{where}: {str(error)[:80]}; {SAVE}") from None
