"""Large files read once, whether they are files or pipes: what is parsed is what is hashed."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spklink.errors import SpklinkError

BLOCK = 1 << 20
ZIP = b"PK"  # how archives begin


class _Hashing(io.RawIOBase):
    """Bytes as they pass by."""

    def __init__(self, raw: IO[bytes], digest: Any) -> None:
        self.raw, self.digest = raw, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.raw.readinto(buffer)  # type: ignore[attr-defined]
        self.digest.update(memoryview(buffer)[:count])
        return int(count)

    def close(self) -> None:
        self.raw.close()
        super().close()


class Stream:
    """A file that is opened and read once. `sha256` is that of all that was read."""

    def __init__(self, path: str | os.PathLike[str], *, hashed: bool = True) -> None:
        self.path, self.hashed, self._digest = Path(path), hashed, hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """From begin to end."""
        try:
            raw = open(self.path, "rb", buffering=0)  # noqa: PTH123, SIM115
        except OSError as error:
            raise SpklinkError(f"{self.path}: cannot be read ({error.strerror})") from None
        source: Any = _Hashing(raw, self._digest) if self.hashed else raw
        with io.BufferedReader(source, BLOCK) as file:
            self._stamp, self._raw = _stamp(raw), raw
            yield file

    def is_pipe(self) -> bool:
        """Whether its bytes come once only."""
        return not stat.S_ISREG(self._stamp[0])

    @contextmanager
    def whole(self, file: io.BufferedReader) -> Iterator[IO[bytes]]:
        """All of it to be read in any order: a pipe is copied to a file first. A file that changes
        meanwhile is refused."""
        if self.is_pipe():
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(file, copy, BLOCK)
                copy.seek(0)
                yield copy
            return
        while self.hashed and file.read(BLOCK):
            pass
        self._raw.seek(0)
        with os.fdopen(os.dup(self._raw.fileno()), "rb") as again:
            yield again
        if _stamp(self._raw) != self._stamp:
            raise SpklinkError(f"{self.path}: changed while it was read; run the command again")


def _stamp(file: IO[bytes]) -> tuple[int, int, int]:
    found = os.fstat(file.fileno())
    return found.st_mode, found.st_size, found.st_mtime_ns
