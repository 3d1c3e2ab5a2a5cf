"""Folders that are elsewhere (s3://bucket/calls), and their copies on this machine: their names.

A copy is a folder whose name says what it copies (`elsewhere=s3%3A%2F%2Fbucket%2Fcalls`). So a path
below it is all that a helper process, or another machine, needs to be told: each finds the same
place below its own folder of copies, which is the user's cache or wherever SPKLINK_COPIES says.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import quote, unquote

from spklink.errors import SpklinkError

SAID = "SPKLINK_COPIES"  # environment: the folder of copies
MARK = "elsewhere="
LONGEST = 240  # characters of a name; file systems allow few more
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)  # one letter is a drive


def url_of(path: str | os.PathLike[str]) -> str | None:
    """The address that a path is, also one whose strokes a `Path` has drawn together; None where
    it is a path of this machine."""
    found = URL.fullmatch(os.fspath(path).replace("\\", "/"))
    if found is None:
        return None
    protocol, rest = found[1].lower(), found[2].rstrip("/")
    return f"{protocol}://{'/' if protocol in ('file', 'local') else ''}{rest}"


def copy_of(url: str) -> Path:
    """The folder of this machine that copies one elsewhere."""
    name = MARK + quote(url, safe="")
    if len(name) > LONGEST:
        raise SpklinkError(f"--cache {url}: too long a name; use a shorter one")
    return copies() / name


def copies() -> Path:
    """Where the copies of this machine are."""
    said = os.environ.get(SAID)
    if said:
        return Path(said).absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser() / "spklink"
    home = os.environ.get("XDG_CACHE_HOME")
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(home or usual).expanduser().absolute() / "spklink"


def placed(folder: Path) -> tuple[Path, str, str]:
    """A folder as this machine has it; what it copies, and which place below that it is. Both are
    "" where it copies nothing."""
    parts = folder.parts
    for k, part in enumerate(parts):
        if part.startswith(MARK):
            below = parts[k + 1 :]
            return copies().joinpath(part, *below), unquote(part[len(MARK) :]), "/".join(below)
    return folder, "", ""
