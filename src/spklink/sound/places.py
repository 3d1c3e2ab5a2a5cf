"""Where a recording is: a file beside the table, or somewhere else that fsspec can reach.

Names such as `s3://bucket/1.wav`, `https://host/1.wav` and `zip://calls/1.wav::archive.zip` are
fetched into the cache before they are listened to, by what is there now: one that has changed since
is fetched again. Nothing is fetched but by the protocols listed here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from spklink.hands import ALONE, Hands, Here
from spklink.sound.files import refusal as file_refusal
from spklink.sound.files import stamp
from spklink.whole_files import replacing

REMOTE = re.compile(r"[a-z][a-z0-9+.-]+://|.*::", re.IGNORECASE)
NEEDS = {  # protocol → the package beside fsspec that speaks it
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    "sftp": "paramiko",
    **dict.fromkeys(("ftp", "zip", "tar", "memory"), ""),
}
EXTRA = 'pip install "spklink[remote]"'
BROUGHT = ("s3fs", "gcsfs", "aiohttp")  # by that
TELLING = ("size", "mtime", "ETag", "etag", "LastModified", "last_modified", "created", "md5Hash")
BLOCK = 1 << 20
TRIES = 2
FULL = (errno.ENOSPC, errno.EDQUOT)
AT_ONCE = 8  # recordings fetched side by side: it is the network that takes time


class UnreachableError(Exception):
    """Why a recording cannot be fetched."""


@dataclass(frozen=True)
class Remote:
    """A recording that is not a file beside the table."""

    url: str  # archives by their full path
    given: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.given.partition("::")[0]).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name.partition("?")[0]).suffix

    def refusal(self) -> str:
        """Why it cannot be fetched; "" where it seems to be there."""
        try:
            self._asked(lambda fs, path: fs.info(path))
        except UnreachableError as error:
            return str(error)
        return ""

    def fetched(self, folder: Path) -> Path:
        """The same as a file of this folder."""
        info = self._asked(lambda fs, path: fs.info(path))
        path = folder / self._named(info)
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._asked(lambda fs, there: _copy(fs, there, path, info.get("size")))
        return path

    def local_name(self) -> str:
        """What the file is called once it is fetched: as it is there now."""
        return self._named(self._asked(lambda fs, path: fs.info(path)))

    def _named(self, info: Any) -> str:
        known = {key: str(info[key]) for key in TELLING if key in info}
        archive = Path(self.url.rpartition("::")[2])
        state = [self.url, known, stamp(archive) if "::" in self.url else None]
        key = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
        return f"{key}{self.suffix.lower()}"

    def _asked(self, what: Callable[[Any, str], Any]) -> Any:
        """What a file system answers; some fail once, and answer when asked again."""
        fs, path = self._system()
        for left in reversed(range(TRIES)):
            try:
                return what(fs, path)
            except Exception as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise  # no recording's fault
                final = isinstance(error, FileNotFoundError | PermissionError | RuntimeError)
                if final or not left:
                    raise UnreachableError(_reason(error)) from None
        raise AssertionError

    def _system(self) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise UnreachableError(f"files elsewhere need fsspec: {EXTRA}") from None
        parts = [part.partition("://") for part in self.url.split("::")]
        spoken = [protocol.lower() for protocol, mark, _ in parts if mark]
        for one in spoken:
            if one not in NEEDS:
                raise UnreachableError(f"{one}:// is not fetched; there are {', '.join(NEEDS)}")
        try:
            found: tuple[Any, str] = url_to_fs(self.url)
        except ImportError:
            needs = [*filter(None, dict.fromkeys(NEEDS[one] for one in spoken))]
            more = "".join(f" {one}" for one in needs if one not in BROUGHT)
            raise UnreachableError(
                f"{spoken[-1]}:// needs {' and '.join(needs)}: {EXTRA}{more}"
            ) from None
        except Exception as error:
            raise UnreachableError(_reason(error)) from None
        return found


Place = Path | Remote


def is_remote(name: str) -> bool:
    """Whether the name of a recording is not simply a path."""
    return REMOTE.match(name) is not None


def located(folder: Path, name: str) -> Place:
    """The recording of this name, seen from the folder of its table."""
    if not is_remote(name):
        return folder / name
    first, mark, archive = name.rpartition("::")
    if mark and "://" not in archive:
        archive = str((folder / archive).absolute())
    return Remote(f"{first}{mark}{archive}", name)


def refusal(place: Place) -> str:
    """Why a recording cannot be read; "" where it seems that it can."""
    return place.refusal() if isinstance(place, Remote) else file_refusal(place)


def fetch_all(
    recordings: list[tuple[Place, ...]],
    folder: Path,
    tell: Callable[[int, int], None] | None,
    hands: Hands = ALONE,
) -> list[tuple[tuple[Path, ...], str]]:
    """The files of every recording, and why one of them could not be had; "" where all could."""
    if not any(isinstance(one, Remote) for places in recordings for one in places):
        return [(tuple(one for one in some if isinstance(one, Path)), "") for some in recordings]
    found, hands = [], hands if hands.far else Here(AT_ONCE)
    for one in hands.each(partial(_fetched, folder.absolute()), recordings):
        found.append(one)
        if tell is not None:
            tell(len(found), len(recordings))
    return found


def name_all(
    recordings: list[tuple[Place, ...]], folder: Path, tell: Callable[[int, int], None] | None
) -> list[tuple[tuple[Path, ...], str, bool]]:
    """The files that every recording will be, why one of them cannot be had, and whether there is
    anything to fetch; nothing is."""
    if not any(isinstance(one, Remote) for places in recordings for one in places):
        return [(files, why, False) for files, why in fetch_all(recordings, folder, tell)]
    found = []
    for one in Here(AT_ONCE).each(partial(_local_names, folder), recordings):
        found.append(one)
        if tell is not None:
            tell(len(found), len(recordings))
    return found


def _local_names(folder: Path, places: tuple[Place, ...]) -> tuple[tuple[Path, ...], str, bool]:
    far = any(isinstance(one, Remote) for one in places)
    try:
        named = (folder / p.local_name() if isinstance(p, Remote) else p for p in places)
        return tuple(named), "", far
    except UnreachableError as error:
        return tuple(Path(p.name) for p in places), str(error), far


def _fetched(folder: Path, places: tuple[Place, ...]) -> tuple[tuple[Path, ...], str]:
    try:
        local = (p.fetched(folder) if isinstance(p, Remote) else p for p in places)
        return tuple(local), ""
    except UnreachableError as error:
        return tuple(Path(p.name) for p in places), str(error)


def _copy(fs: Any, there: str, path: Path, size: int | None) -> None:
    with fs.open(there, "rb") as source, replacing(path) as file:
        shutil.copyfileobj(source, file, BLOCK)
        if isinstance(size, int) and file.tell() < size:
            raise OSError(f"ended after {file.tell()} of {size} bytes")


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError | FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "cannot be read (no permission; are you signed in?)"
    text = " ".join(str(error).split()) or type(error).__name__
    if "encrypted" in text or "password" in text:
        return "encrypted in its archive; unpack the archive with its password"
    return f"cannot be fetched ({text[:160].rstrip('.')})"
