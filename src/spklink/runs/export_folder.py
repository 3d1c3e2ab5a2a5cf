"""A folder of exported files: made whole, then put in the place of an earlier one.

export.json says what is in it and from which results. Only a folder in which there is nothing but
what it names is ever replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spklink import __version__
from spklink.errors import SpklinkError
from spklink.json_files import read_json
from spklink.tables import TEMPORARY, sha256, sweep, write_json

ABOUT = "export.json"
SHAPE = {"spklink": str, "to": str, "results": str, "run": str, "files": [str]}
NAMED = 3  # files of others that are named


@contextmanager
def replaced(folder: Path, results: Path, to: str) -> Iterator[Path]:
    """A new folder to fill; it takes its place when the block ends without an error."""
    _refuse_others(folder)
    home = folder.absolute().parent
    home.mkdir(parents=True, exist_ok=True)
    sweep(home, older_than_days=1.0)
    new = Path(tempfile.mkdtemp(f".{TEMPORARY}", f".{folder.name}.", home))
    try:
        yield new
        run = results / "run.json"
        said = {"spklink": __version__, "to": to, "results": results.absolute().as_posix()}
        files = sorted(path.name for path in new.iterdir())
        write_json(new / ABOUT, said | {"run": sha256(run), "files": files})
        _put_in_place(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _refuse_others(folder: Path) -> None:
    """A folder that holds what we did not write stays as it is."""
    if not folder.exists():
        return
    there = {path.name for path in folder.iterdir()}
    if not there:
        return
    if ABOUT not in there:
        raise SpklinkError(
            f"{folder}: there is something in this folder that spklink did not export; give "
            "another one"
        )
    known = read_json(folder / ABOUT, SHAPE, "remove this folder, or give another one")
    others = sorted(there - {ABOUT, *known["files"]})
    if others:
        named = ", ".join(others[:NAMED]) + (" …" if len(others) > NAMED else "")
        raise SpklinkError(
            f"{folder}: has files beside what spklink exported ({named}), which would be lost; "
            "move them, or give another folder"
        )


def _put_in_place(new: Path, folder: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    new.chmod(0o777 & ~mask)
    _refuse_others(folder)  # somebody may have put something there meanwhile
    if not folder.exists():
        new.rename(folder)
        return
    old = Path(tempfile.mkdtemp(f".{TEMPORARY}", f".{folder.name}.", folder.absolute().parent))
    folder.rename(old / "old")
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
