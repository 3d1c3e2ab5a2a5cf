"""A GSM recording opened in its middle, which its decoder does not offer.

GSM 06.10 in WAV comes in blocks of 65 bytes, 320 samples each. A block needs what was decoded just
before it, and forgets it within a few blocks. So the file is shown to the decoder without its
beginning: a header of its own, then the blocks from some place on.
"""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import BinaryIO

BYTES, SAMPLES = 65, 320  # of a block
BEFORE = 50  # blocks that are decoded first, and not used: after 25 no speech sounded otherwise


def opened_at(path: Path, sample: int) -> tuple[io.RawIOBase, int] | None:
    """The file from a place before this sample on, and that place; None where it is no such WAV."""
    file = path.open("rb")
    found = _chunks(file)
    if found is None:
        file.close()
        return None
    head, begin, size = found
    block = min(max(0, sample // SAMPLES - BEFORE), max(0, size // BYTES - 1))
    return _Later(file, head, begin + block * BYTES, size - block * BYTES), block * SAMPLES


def _chunks(file: BinaryIO) -> tuple[bytes, int, int] | None:
    """The chunk of the format, where the blocks begin, and how many bytes of them there are."""
    start = file.read(12)
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        return None
    end, fmt = os.fstat(file.fileno()).st_size, b""
    while len(said := file.read(8)) == 8:
        name, size = said[:4], struct.unpack("<I", said[4:])[0]
        if name == b"data":
            begin = file.tell()
            return (fmt, begin, min(size, end - begin)) if fmt else None
        if name == b"fmt " and size <= 64:
            fmt = said + file.read(size + size % 2)
        else:
            file.seek(size + size % 2, os.SEEK_CUR)
    return None


class _Later(io.RawIOBase):
    """A WAV file that begins later than the one it is read from."""

    def __init__(self, file: BinaryIO, fmt: bytes, begin: int, size: int) -> None:
        data = struct.pack("<4sI", b"data", size)
        riff = struct.pack("<4sI4s", b"RIFF", 4 + len(fmt) + len(data) + size, b"WAVE")
        self._file, self._head, self._begin = file, riff + fmt + data, begin
        self._size, self._at = len(self._head) + size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, min(self._size, base + offset))
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read(min(len(buffer), self._size - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, count: int) -> bytes:
        head = self._head[self._at : self._at + count]
        if len(head) == count:
            return head
        self._file.seek(self._begin + max(0, self._at - len(self._head)))
        return head + self._file.read(count - len(head))

    def close(self) -> None:
        self._file.close()
        super().close()
