"""Files that are written whole or not at all: under a temporary name that is then renamed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

TEMPORARY = "writing"  # ending of files that are not whole yet


def sha256(path: str | os.PathLike[str]) -> str:
    """Hash of a file's bytes, read in blocks."""
    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str], *, lasting: bool = True) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` only when the block ends without an error. One
    that need not be `lasting` may be damaged by a power cut: it must be checked before it is
    believed, and making it anew must cost nothing but time."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(f".{TEMPORARY}", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a disk that is full says of no file
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def aside(folder: Path, *, older_than_days: float = 0.0) -> Iterator[Path]:
    """A folder inside `folder` for what is not whole yet; it goes when the block ends. Those of
    killed runs go now, if they are older than this."""
    sweep(folder, older_than_days=older_than_days)
    new = Path(tempfile.mkdtemp(f".{TEMPORARY}", ".results.", folder))
    try:
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)


def sweep(folder: Path, *, older_than_days: float = 0.0) -> None:
    """Remove what a killed run left half written."""
    limit = time.time() - 86400.0 * older_than_days
    for path in folder.glob(f".*.{TEMPORARY}"):
        with suppress(OSError):  # another run may have been faster, or still be using it
            if path.lstat().st_mtime > limit:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Arrays without pickle; the same arrays give the same bytes (zip dates are fixed)."""
    import zipfile

    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
