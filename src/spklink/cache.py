"""Files that are checked before they are believed: what was heard and learned, kept for later runs.

A kept file is named by a hash of all that its content depends on (`key_of`). It holds a line that
says what it is, with the length and the checksum of the head; the head, one line of JSON with the
file's own name, what is said about it, and the name, type and shape of every array; and the bytes
of the arrays, whose checksum is in the head. So every byte is covered, and a file under another's
name is seen. What is damaged, cut off, swapped, something else or not to be read is never used: it
is as if it were not there, and its name goes on a list that people are shown (`damage_note`).

Heads are checked whenever a file is opened, arrays when a run opens it for the first time. The
checksum is CRC-32: fast, and certain to see any change within four bytes in a row. It is a guard
against damage, not against someone who forges files. Nothing is ever unpickled.

Versions of libraries are not part of a key: another decoder or matrix library may change the last
bits of what was heard, and a cache that is thrown away with each of them would cost hours for
nothing. run.json says which there were.

A cache may be on object storage (`object_store`): then every machine has a folder that copies it. A
file that is not here, or damaged here, is fetched from there, and one that is written is also put
there. Of what is only said about a file its first bytes are fetched alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import shutil
import stat
import tempfile
import weakref
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.elsewhere import url_of
from spklink.object_store import AT_ONCE, Far, opened
from spklink.tables import TEMPORARY, replacing, sweep
from spklink.threads import in_order
from spklink.words import counted

FORMAT = 1  # of kept files
ENDING = ".kept"  # another one with another format: no version takes the other's files for damaged
ALIGNED = 64  # bytes; heads and arrays are filled up to a multiple
SHOWN = 3  # damaged files that are named; the rest are counted
Arrays = Mapping[str, NDArray[Any]]
_FIRST = re.compile(rb"spklink kept %d ([0-9]{12}) ([0-9a-f]{8})\n" % FORMAT)
_LINE = len(b"spklink kept %d 000000000000 00000000\n" % FORMAT)
_NAME = re.compile(r"[0-9a-f]{32}")
HEAD = 1 << 14  # bytes that mostly hold a head


def key_of(value: Any) -> str:
    """The name of something in the cache: a hash of all it depends on."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Kept:
    """The content of a file: what is said about it, and its arrays, mapped, not read."""

    about: Any
    arrays: dict[str, NDArray[Any]]


class _DamagedError(Exception):
    """A file that is there and cannot be believed."""


UNBELIEVED = (_DamagedError, OSError, ValueError, TypeError, LookupError, RecursionError)


class Store:
    """A folder of kept files. `damaged` lists what was found there and not used, in this run. Where
    it copies one elsewhere and its names do not tell their content, for that is `changing`, what is
    there counts."""

    def __init__(
        self, folder: Path, damaged: set[str] | None = None, *, changing: bool = False
    ) -> None:
        self.folder, self.far = Far.of(folder)
        self.changing = changing
        self.damaged: set[str] = set() if damaged is None else damaged
        self._checked: dict[str, tuple[int, ...]] = {}

    def path(self, name: str) -> Path:
        return self.folder / f"{name}{ENDING}"

    def load(self, name: str) -> Kept | None:
        """The content of a file; None where there is none that can be believed."""
        return self._tried(name, whole=True)

    def about(self, name: str) -> Any:
        """What is said about a file, its arrays unchecked; None as above."""
        if self.far is not None and not self.path(name).exists():
            return self._about_far(name, self.far)
        found = self._tried(name, whole=False)
        return None if found is None else found.about

    def listed(self) -> Iterator[tuple[str, Any]]:
        """The names of all files, in order, and what is said about them."""
        names = {path.stem for path in self.folder.glob(f"*{ENDING}")}
        if self.far is not None:
            names |= {one.removesuffix(ENDING) for one in self.far.names() if ENDING in one}
        for name in filter(_NAME.fullmatch, sorted(names)):
            about = self.about(name)
            if about is not None:
                yield name, about

    def bring(self, names: Iterable[str]) -> None:
        """Fetch those of these files that are elsewhere and not here, many at a time."""
        if self.far is None:
            return
        there = self.far.names()
        paths = [path for path in map(self.path, names) if path.name in there]
        missing = [path for path in dict.fromkeys(paths) if not path.exists()]
        for _ in in_order(self.far.fetch, missing, AT_ONCE):
            pass

    def write(self, name: str, about: Any, arrays: Arrays) -> None:
        """Keep this, in place of whatever was there but the very same: another process may have
        that mapped, and on some file systems of a network would lose it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {key: np.asarray(array, order="C") for key, array in arrays.items()}
        path, head = self.path(name), _head(name, about, content)
        if path.is_dir():
            self.reject(name)  # a file cannot take its place
        if self._is_there(name, head):
            return
        if self.far is not None:
            self.far.owe(path)
        with replacing(path, lasting=False) as file:  # waiting for the disk costs more than hearing
            file.write(head)
            for array in content.values():
                file.write(_bytes_of(array))
                file.write(bytes(-array.nbytes % ALIGNED))
        if self.far is not None:
            self.far.pay(path)

    def reject(self, name: str) -> None:
        """Remove a file that cannot be believed; it is made anew where it is needed."""
        self._drop(name)
        if self.far is not None:
            self.far.remove(self.path(name).name)

    def _drop(self, name: str) -> None:
        path = self.path(name)
        self.damaged.add(f"{self.folder.name}/{path.name}")
        with suppress(OSError):  # what cannot be removed may still be replaced
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _is_there(self, name: str, head: bytes) -> bool:
        """Whether a whole file begins like this, and so ends as it should."""
        try:
            self._opened(name, whole=True)
            return _mapped(f"{self.folder}/{name}{ENDING}")[0][: len(head)] == head
        except UNBELIEVED:
            return False

    def _tried(self, name: str, *, whole: bool) -> Kept | None:
        """From here; where that cannot be believed, or there is nothing, from elsewhere."""
        fetched = self.far is not None and self.changing and self.far.fetch(self.path(name))
        found = self._tried_here(name, whole=whole)
        if found is not None or self.far is None:
            return found
        if not fetched:
            fetched = self.far.fetch(self.path(name))
            found = self._tried_here(name, whole=whole) if fetched else None
        if found is None and fetched:
            self.far.remove(self.path(name).name)
        return found

    def _about_far(self, name: str, far: Far) -> Any:
        """What is said about a file that is not here, by as little of it as says so."""
        first = far.begin(self.path(name).name, HEAD)
        if first is None:
            return None
        try:
            line = _FIRST.fullmatch(first[:_LINE])
            if line is not None and _LINE + int(line[1]) > len(first):
                first = far.begin(self.path(name).name, _LINE + int(line[1])) or b""
            return _read_head(first, name)[0]["about"]
        except UNBELIEVED:
            self.reject(name)
            return None

    def _tried_here(self, name: str, *, whole: bool) -> Kept | None:
        try:
            return self._opened(name, whole=whole)
        except FileNotFoundError:
            if not self.path(name).is_symlink():
                return None
        except UNBELIEVED:
            pass
        self._drop(name)
        return None

    def _opened(self, name: str, *, whole: bool) -> Kept:
        data, same = _mapped(f"{self.folder}/{name}{ENDING}")
        head, begin = _read_head(data, name)
        if whole and self._checked.get(name) != same:
            if _checksum(memoryview(data)[begin:]) != head["checksum"]:
                raise _DamagedError
            self._checked[name] = same
        return Kept(head["about"], _arrays_in(data, begin, head["arrays"]))


# --- the bytes of a file --------------------------------------------------------------------------


def _mapped(path: str) -> tuple[mmap.mmap, tuple[int, ...]]:
    """A file, and by what it is seen that it was exchanged."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe is not waited for
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _DamagedError
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    return data, (status.st_ino, status.st_size, status.st_mtime_ns)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(data: bytes | memoryview, before: int = 0) -> int:
    return zlib.crc32(data, before)


def _head(name: str, about: Any, arrays: Arrays) -> bytes:
    """All that stands before the arrays."""
    checksum = 0
    for array in arrays.values():
        if array.dtype.hasobject:
            raise ValueError("objects cannot be kept")
        checksum = _checksum(_bytes_of(array), checksum)
        checksum = _checksum(bytes(-array.nbytes % ALIGNED), checksum)
    shapes = [[key, array.dtype.str, list(array.shape)] for key, array in arrays.items()]
    said = {"name": name, "about": about, "arrays": shapes, "checksum": checksum}
    text = json.dumps(said, ensure_ascii=False).encode()
    text += b" " * (-(_LINE + len(text) + 1) % ALIGNED) + b"\n"
    return b"spklink kept %d %012d %08x\n" % (FORMAT, len(text), _checksum(text)) + text


def _read_head(data: mmap.mmap | bytes, name: str) -> tuple[Any, int]:
    """The head of a file of this name, and where its arrays begin."""
    first = _FIRST.fullmatch(data[:_LINE])
    if first is None:
        raise _DamagedError
    begin = _LINE + int(first[1])
    text = data[_LINE:begin]
    if len(text) != int(first[1]) or _checksum(text) != int(first[2], 16):
        raise _DamagedError
    head = json.loads(text)
    if head["name"] != name:
        raise _DamagedError
    return head, begin


def _arrays_in(data: mmap.mmap, begin: int, shapes: list[Any]) -> dict[str, NDArray[Any]]:
    """Views of the mapped file; its length must be what the shapes say."""
    found = {}
    for key, kind, shape in shapes:
        dtype, count = np.dtype(kind), math.prod(shape)
        if dtype.hasobject or min(shape, default=0) < 0:
            raise _DamagedError
        size = count * dtype.itemsize
        if begin + size > len(data):
            raise _DamagedError
        flat = np.frombuffer(data, dtype, count, begin) if size else np.zeros(count, dtype)
        found[key] = flat.reshape(shape)
        begin += size + -size % ALIGNED
    if begin != len(data):
        raise _DamagedError
    return found


# --- what people are told, and what runs leave behind ---------------------------------------------


def damage_note(damaged: Collection[str]) -> str:
    """What a person should know; nothing where nothing was damaged."""
    if not damaged:
        return ""
    named = ", ".join(sorted(damaged)[:SHOWN])
    more = f" and {len(damaged) - SHOWN} more" if len(damaged) > SHOWN else ""
    were = "was" if len(damaged) == 1 else "were"
    files = counted(len(damaged), "damaged file")
    return f"{files} in the cache {were} not used and made anew where needed: {named}{more}"


@contextmanager
def cache_folder(asked: str | os.PathLike[str] | None, results: Path | None) -> Iterator[Path]:
    """Where a run keeps what was heard: where it was asked for, in the results, or nowhere."""
    if asked is None and results is None:
        with tempfile.TemporaryDirectory(prefix="spklink-") as temporary:
            yield Path(temporary)
        return
    url = None if asked is None else url_of(asked)
    if url is not None:
        cache = opened(url)
    else:
        cache = Path(asked) if asked is not None else Path(results or "") / "cache"
    sweep_all(cache)
    yield cache


def sweep_all(cache: Path) -> None:
    """Remove what killed runs left half written; another run may be at work in the same cache."""
    for folder, _, _ in os.walk(cache):
        sweep(Path(folder), older_than_days=1.0)


def private_room(shape: tuple[int, ...], folder: Path) -> NDArray[np.float32]:
    """Zeros on a disk: a file that no other run sees, gone when nobody uses it any more."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(f".{TEMPORARY}", ".room.", folder)
    with os.fdopen(handle, "r+b") as file:
        size = max(1, 4 * math.prod(shape))
        if hasattr(os, "posix_fallocate"):  # a full disk is said now, not by a crash later
            try:
                os.posix_fallocate(handle, 0, size)
            except OSError:
                Path(name).unlink()
                raise
        room = np.memmap(file, np.float32, "r+", shape=shape)
    try:
        Path(name).unlink()  # the system keeps the bytes as long as they are mapped
    except OSError:  # some systems do not: then at the end or, after a crash, by the next sweep
        weakref.finalize(room, Path(name).unlink, missing_ok=True)
    return room
