"""Where compiled code is kept: beside the modules, else in a folder of the user, as numba does.

Where neither can be written to (a read-only image, a user without a home) numba would refuse to
work at all; then a folder for temporary files serves. Kept code is run, so nobody else may have
written it: the folder must be the user's own, and closed to others.
"""

from __future__ import annotations

import os
from pathlib import Path

SAID = "NUMBA_CACHE_DIR"
CLOSED = 0o700


def user_folders() -> list[Path]:
    """Where numba keeps code of modules that it cannot write beside, by system."""
    caches = (os.environ.get("XDG_CACHE_HOME") or "~/.cache", "~/Library/Caches")
    places = [Path(one, "numba") for one in (*caches, os.environ.get("LOCALAPPDATA", ""))]
    return [one.expanduser() for one in (*places, places[-1] / "Cache")]


def keep_somewhere() -> None:
    """Must be called before numba is imported."""
    if os.environ.get(SAID) or os.access(Path(__file__).parent, os.W_OK):
        return
    if not any(map(_can_be_written, user_folders()[:2])):
        os.environ[SAID] = _temporary()


def _can_be_written(folder: Path) -> bool:
    there = next((one for one in (folder, *folder.parents) if one.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK)


def _temporary() -> str:
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"spklink-compiled-{user}")
    try:
        folder.mkdir(mode=CLOSED, exist_ok=True)
        found = folder.lstat()
        own = found.st_uid == user and found.st_mode & 0o777 == CLOSED and not folder.is_symlink()
    except OSError:
        own = False
    return str(folder) if own else tempfile.mkdtemp(prefix="spklink-compiled-")
