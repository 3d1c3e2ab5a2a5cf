"""Arrays from .npz files that anybody may have written: checked before memory is taken, never
unpickled, read a block at a time.

An array is numbers or text (kinds of numpy: b, i, u, f, U). What its header says is held against
the bytes that the file can have: those in it as they are, or what deflate can make of them.
"""

from __future__ import annotations

import ast
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError

NUMBERS, TEXT = "iuf", "biufU"
LONGEST_HEADER = 10_000  # bytes; numpy reads no longer ones either
DEFLATED = 1032  # bytes that one byte of deflate can stand for, at most
BLOCK_BYTES = 1 << 26  # read at a time, at most
MAGIC = b"\x93NUMPY"
DTYPE = re.compile(r"[<>|=]?([biuf]\d{1,2}|U\d{1,9})")
# All that zipfile and zlib raise about bytes that are no archive.
BROKEN = (
    *(OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError),
    *(NotImplementedError, OverflowError, LookupError, TypeError),
)


@dataclass(frozen=True)
class Opened:
    """An array whose data come next."""

    name: str
    stream: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def blocks(self, step: int) -> Iterator[NDArray[Any]]:
        """All of it as stored, flat, `step` values at a time."""
        for begin in range(0, len(self), step):
            size = min(step, len(self) - begin) * self.dtype.itemsize
            with _reading(f"array '{self.name}'"):
                data = self.stream.read(size)
                if len(data) < size:
                    raise EOFError("it ends early")
                block = np.frombuffer(data, self.dtype)
                if self.dtype.kind == "U":
                    _check_text(data, self.dtype)
            yield block
        with _reading(f"array '{self.name}'"):
            self.stream.read(1)  # only then the checksum is looked at

    def whole(self) -> NDArray[Any]:
        """All of it, flat."""
        step = max(1, BLOCK_BYTES // max(self.dtype.itemsize, 1))
        blocks = list(self.blocks(step))
        return np.concatenate(blocks) if blocks else np.zeros(0, self.dtype)


def _check_text(data: bytes, dtype: np.dtype[Any]) -> None:
    """numpy takes any four bytes for a character and stumbles over them later."""
    codes = np.frombuffer(data, np.dtype(np.uint32).newbyteorder(dtype.byteorder))
    if codes.max(initial=0) > sys.maxunicode:
        raise ValueError("it is not text")


class Arrays:
    """The arrays of an open .npz file, by name."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive, self.size = archive, size
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        self.names = {name.removesuffix(".npy") for name in names}
        if len(self.names) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SpklinkError(f"array '{twice.removesuffix('.npy')}' is there twice")

    def open(self, name: str, *, ndim: int, kinds: str = NUMBERS) -> Opened:
        """One of them, its header checked."""
        if name not in self.names:
            raise SpklinkError(f"needs an array '{name}'; found {_listed(self.names)}")
        with _reading(f"array '{name}'"):
            info = self.archive.getinfo(f"{name}.npy")
            length = self._length(info)
            stream = self.archive.open(info)
            shape, dtype, header = _header(stream)
        if dtype is None or dtype.kind not in kinds:
            what = "numbers" if kinds == NUMBERS else "numbers or text"
            raise SpklinkError(f"array '{name}' holds {dtype or 'objects'}, not {what}")
        if len(shape) != ndim:
            raise SpklinkError(f"array '{name}' has the shape {shape}, not {ndim} dimensions")
        count = math.prod(shape)
        if count * dtype.itemsize > length - header or (count and not dtype.itemsize):
            raise SpklinkError(
                f"array '{name}' says that it has {_short(shape)} values of {dtype}, but the file "
                f"has {max(length - header, 0)} bytes of it"
            )
        return Opened(name, stream, shape, dtype)

    def _length(self, info: zipfile.ZipInfo) -> int:
        """Bytes of a member when it is unpacked, at most."""
        if info.flag_bits & 1:
            raise ValueError("it is encrypted")
        packed = min(info.compress_size, self.size)
        if info.compress_type == zipfile.ZIP_STORED:
            return min(info.file_size, packed)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return min(info.file_size, DEFLATED * packed)
        raise ValueError("it is compressed in a way that numpy does not use")

    def whole(self, name: str, *, kinds: str = NUMBERS) -> NDArray[Any]:
        """All of a list."""
        return self.open(name, ndim=1, kinds=kinds).whole()


@contextmanager
def open_arrays(source: str | os.PathLike[str] | IO[bytes], name: str = "") -> Iterator[Arrays]:
    """The arrays of a .npz file; `name` is what messages call one that is open already. What is
    wrong with it, also what the block finds, is said of that file."""
    try:
        with _opened(source) as file:
            with _reading("it"):
                size = os.fstat(file.fileno()).st_size
                archive = zipfile.ZipFile(file)
            with archive:
                yield Arrays(archive, size)
    except SpklinkError as error:
        raise SpklinkError(f"{name or source}: {error}") from None


@contextmanager
def _opened(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    if not isinstance(source, str | os.PathLike):
        yield source
        return
    try:
        file = open(source, "rb")  # noqa: PTH123, SIM115
    except FileNotFoundError:
        raise SpklinkError("no such file") from None
    except OSError as error:
        raise SpklinkError(f"cannot be read ({error.strerror})") from None
    with file:
        yield file


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Whatever the bytes make the readers say is said once, in one way."""
    try:
        yield
    except BROKEN as error:
        said = " ".join(str(error).split())[:120] or type(error).__name__
        raise SpklinkError(
            f"not a readable .npz without pickle ({what}: {said}); save it anew with numpy.savez"
        ) from None


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any] | None, int]:
    """Shape, type and length of the header of one .npy; no type where it is none of ours. numpy's
    own reader takes a header of any length into memory, and warns of old ones."""
    start = stream.read(8)
    if len(start) < 8 or start[:6] != MAGIC:
        raise ValueError("it does not begin as .npy does")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    text = stream.read(length).decode("latin1")
    try:
        found = ast.literal_eval(text.strip())
        descr, shape = found["descr"], found["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise ValueError("its header cannot be read") from None
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"a shape of {_short(shape)}")
    return shape, _dtype(descr), 8 + width + length


def _dtype(descr: Any) -> np.dtype[Any] | None:
    if not isinstance(descr, str) or not DTYPE.fullmatch(descr):
        return None
    try:
        return np.dtype(descr)
    except (TypeError, ValueError, OverflowError):
        return None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _listed(names: set[str]) -> str:
    shown = sorted(names)[:10]
    return (", ".join(shown) + (" …" if len(names) > len(shown) else "")) or "none"
