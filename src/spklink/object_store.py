"""A folder on object storage, through fsspec: files that are fetched, put, listed and removed.

Whatever is there is whole: an object store shows an object when all of it has arrived, and where
there are only files elsewhere they are put under another name and renamed. A file of this machine
that is still to be put is marked beside it (`owe`) until it is, so that what a kill or a store that
fails has kept back is put by the next run. An error of the store is one line that names it.
"""

from __future__ import annotations

import errno
import filecmp
import posixpath
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from spklink.elsewhere import copy_of, placed
from spklink.errors import SpklinkError
from spklink.whole_files import TEMPORARY

EXTRA = '"spklink[remote]"'
NEEDS = dict.fromkeys(("az", "abfs", "abfss"), "adlfs") | {"sftp": "paramiko", "smb": "smbprotocol"}
FILES = frozenset({"file", "local", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs"})  # no objects
OWED = ".unsent"  # ending of the mark of a file that is still to be put
SIGN, SIGNED = "sign", b"spklink was here\n"
AT_ONCE = 16  # files fetched side by side: each waits for the network
LEFT = 7.0  # days after which what a killed run left is removed
TRIES, PAUSE = 2, 1.0  # of what may go well the next time, seconds between; most try again, too
FINAL = (FileNotFoundError, PermissionError, NotImplementedError, IsADirectoryError)
FULL = (errno.ENOSPC, errno.EDQUOT)  # a disk of this machine
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Far:
    """A folder elsewhere, below a cache that is."""

    url: str  # of the cache
    below: str = ""

    @classmethod
    def of(cls, folder: Path) -> tuple[Path, Far | None]:
        """A folder as this machine has it, and what it copies; None where it copies nothing."""
        here, url, below = placed(folder)
        return here, cls(url, below) if url else None

    # --- files --------------------------------------------------------------------------------

    def fetch(self, path: Path) -> bool:
        """Bring a file of this name here, unless it is here as it is there; whether it is there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        there = self._path(path.name)
        new = path.with_name(f".{path.name}.{uuid4().hex}.{TEMPORARY}")
        try:
            self._asked(lambda fs: fs.get_file(there, str(new)))
            if not (path.is_file() and filecmp.cmp(new, path, shallow=False)):
                new.replace(path)
        except FileNotFoundError:
            return False
        finally:
            new.unlink(missing_ok=True)
        return True

    def begin(self, name: str, size: int) -> bytes | None:
        """The first bytes of a file; None where there is no such file."""
        there = self._path(name)

        def first(fs: Any) -> bytes:
            try:
                found: bytes = fs.cat_file(there, start=0, end=size)
            except OSError as error:
                if error.errno != errno.EINVAL:  # an empty file has no first bytes
                    raise
                return b""
            return found

        try:
            return self._asked(first)
        except FileNotFoundError:
            return None

    def names(self) -> set[str]:
        """Of all files in this folder."""

        def listed(fs: Any) -> list[Any]:
            fs.invalidate_cache()  # others write there
            found: list[Any] = fs.ls(self._path(), detail=False)
            return found

        try:
            return {posixpath.basename(str(one).rstrip("/")) for one in self._asked(listed)}
        except FileNotFoundError:
            return set()

    def put(self, path: Path) -> None:
        """A file of this machine, under its name."""
        whole = self._path(path.name)
        files = self.url.partition(":")[0] in FILES
        there = self._path(f".{path.name}.{uuid4().hex}.{TEMPORARY}") if files else whole

        def sent(fs: Any) -> None:
            if files:
                fs.makedirs(posixpath.dirname(whole), exist_ok=True)
            fs.put_file(str(path), there)
            if files:
                fs.mv(there, whole)

        self._asked(sent, absent=True)

    def remove(self, name: str) -> None:
        """It may be gone; and whoever may not remove it may still replace it."""
        with suppress(Exception):
            _system(self.url)[0].rm_file(self._path(name))

    def clear(self) -> None:
        """Remove the folder, and all in it; nothing depends on whether that can be done."""
        with suppress(Exception):
            fs, _ = _system(self.url)
            fs.invalidate_cache()
            fs.rm(self._path(), recursive=True)

    # --- what is still to be put --------------------------------------------------------------

    def owe(self, path: Path) -> None:
        path.with_name(path.name + OWED).touch()

    def pay(self, path: Path) -> None:
        """Put a file that is owed, where it is there."""
        with suppress(FileNotFoundError):
            path.stat()
            self.put(path)
        path.with_name(path.name + OWED).unlink(missing_ok=True)

    # --- the store ----------------------------------------------------------------------------

    def _path(self, *names: str) -> str:
        root = _system(self.url)[1]
        return "/".join(filter(None, (root.rstrip("/") or root, self.below, *names)))

    def _asked(self, what: Callable[[Any], Answer], *, absent: bool = False) -> Answer:
        """What the store answers; no such file is an error of ours only where it is `absent`."""
        fs, _ = _system(self.url)
        for k in range(TRIES):
            try:
                return what(fs)
            except FileNotFoundError as error:
                if not absent:
                    raise
                raise failure(self.url, error) from None
            except Exception as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    error.filename = error.filename or str(copy_of(self.url))
                    raise  # not the store's fault
                if isinstance(error, FINAL) or _without_credentials(error) or k == TRIES - 1:
                    raise failure(self.url, error) from None
            time.sleep(PAUSE)
        raise AssertionError


@cache
def _system(url: str) -> tuple[Any, str]:
    """What speaks to a store, and where in it the cache is."""
    protocol = url.partition(":")[0]
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(url)
    except ImportError:
        need = " ".join(filter(None, (EXTRA, NEEDS.get(protocol))))
        raise SpklinkError(f"--cache {url}: for {protocol}:// run pip install {need}") from None
    except ValueError:
        raise SpklinkError(
            f"--cache {url}: there is no {protocol}://; use s3://, gs:// or a folder"
        ) from None
    except Exception as error:
        raise failure(url, error) from None
    return found


def opened(url: str) -> Path:
    """The folder of this machine that copies a cache elsewhere, once that can be read and written
    and has all that this machine owes it."""
    folder, far = copy_of(url), Far(url)
    folder.mkdir(parents=True, exist_ok=True)
    far.begin(f"no-{SIGN}", 1)  # who may not list is told that what is not there is forbidden
    sign = folder / SIGN
    sign.write_bytes(SIGNED)
    far.put(sign)
    pay_all(folder)
    _sweep(far)
    return folder


def pay_all(folder: Path) -> None:
    """Put all that this machine owes a folder."""
    for mark in folder.rglob(f"*{OWED}"):
        here, far = Far.of(mark.parent)
        if far is not None:
            far.pay(here / mark.name.removesuffix(OWED))


def _sweep(far: Far) -> None:
    """Remove what killed runs have laid out for their workers."""
    for name in far.names():
        if name.startswith(".") and name.endswith(f".{TEMPORARY}"):
            run = Far(far.url, name)
            with suppress(Exception):  # some stores tell no times
                made = _system(far.url)[0].modified(run._path(SIGN))
                if (datetime.now(UTC) - made.replace(tzinfo=UTC)).days >= LEFT:
                    run.clear()


def failure(url: str, error: Exception) -> SpklinkError:
    """What is wrong with a store, and what can be done about it."""
    if isinstance(error, FileNotFoundError):
        why = "there is no such bucket or folder; make it first"
    elif isinstance(error, PermissionError):
        why = "no permission to list, read and write there; are you signed in as who may?"
    elif isinstance(error, NotImplementedError):
        why = "nothing can be written there; use s3://, gs:// or a folder"
    elif _without_credentials(error):
        why = "no credentials; sign in as for its own tools (environment, ~/.aws, gcloud auth)"
    else:
        text = " ".join(str(error).split())[:160].rstrip(".") or type(error).__name__
        why = f"cannot be used now ({text}); is it up, and reached from here?"
    kept = f" What is done is kept in {copy_of(url)}: the same command goes on"
    return SpklinkError(f"--cache {url}: {why}{kept if any(copy_of(url).glob('*/')) else ''}")


def _without_credentials(error: Exception) -> bool:
    return "Credentials" in type(error).__name__
