"""Whether a path can be a recording, and its fingerprint: told before anything waits or fails.

A pipe or a device is never opened: reading one can wait for ever. What cannot be read is a reason,
not an error: one bad recording of a thousand is a problem of that recording.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from spklink.tables import sha256

KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
Stamp = tuple[int, ...] | None


@dataclass(frozen=True)
class Fingerprint:
    """What a file held when it was looked at."""

    sha256: str  # "" where it cannot be read
    why: str  # it cannot; "" where it can
    stamp: Stamp  # another one means that it has been written to since


def refusal(path: Path) -> str:
    """Why a path cannot be read as a file; "" where it can."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return f"{KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file"
        with path.open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        return _reason(error)
    return ""


def fingerprint(path: Path) -> Fingerprint:
    """The hash of a file's bytes, or why there is none."""
    before, why = stamp(path), refusal(path)
    if why:
        return Fingerprint("", why, before)
    try:
        return Fingerprint(sha256(path), "", before)
    except OSError as error:
        return Fingerprint("", _reason(error), before)


def stamp(path: Path) -> Stamp:
    """Which file it is, its length and when it was written to; None where that cannot be told."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "no such file"
    text = getattr(error, "strerror", None) or str(error)
    return f"cannot be read ({text.rstrip('.')})"
