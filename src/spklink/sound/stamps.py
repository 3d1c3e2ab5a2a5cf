"""Which recordings were heard before, told without reading them: by their place and their stamp.

A stamp is which file it is, its length, when it was written to and when anything about it changed.
The last no program can set, so a file with the stamp it had is the file it was. Only a stamp that
is some seconds old is believed: within the grain of a clock a file can change and keep it.

Of a recording elsewhere that need not be here (`Job.places`) the name that it would have here says
all of that (module `places`).

The cache holds one file for each front end: a hash of the paths and tracks of every recording, its
stamp, and its name among what was heard.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.sound.heard import Heard, Job
from spklink.sound.places import Remote

VERSION = 1
SETTLED = 2.0  # seconds: no clock of a file system is coarser
NAME = 16  # bytes of a name in the cache


@dataclass(frozen=True)
class Stamps:
    """What is known of some recordings."""

    store: Store | None  # None: nobody keeps anything
    name: str
    jobs: list[bytes]  # hashes of paths and tracks; empty: never believed
    stamps: list[bytes]  # empty: no such file
    known: dict[bytes, tuple[bytes, bytes]]  # stamp and name by job

    @classmethod
    def of(cls, jobs: Sequence[Job], heard: Store) -> Stamps:
        if not jobs:
            return cls(None, "", [], [], {})
        store = Store(heard.folder.parent / "stamps", heard.damaged, changing=True)
        name = key_of({"version": VERSION, "front_end": jobs[0].front_end.key})
        kept = store.load(name)
        known = {} if kept is None else _read(kept.arrays)
        return cls(store, name, [_job(job) for job in jobs], [_stamp(job) for job in jobs], known)

    def names(self) -> list[str | None]:
        """What each recording is called in the cache; None where it may have changed."""
        found: list[str | None] = []
        for job, stamp in zip(self.jobs, self.stamps, strict=True):
            then, name = self.known.get(job, (b"", b""))
            found.append(name.hex() if job and stamp and stamp == then else None)
        return found

    def remember(self, heard: Sequence[Heard], jobs: Sequence[Job]) -> None:
        """Keep where these recordings are."""
        if self.store is None:
            return
        more, now = dict(self.known), time.time()
        for one, job, key, stamp in zip(heard, jobs, self.jobs, self.stamps, strict=True):
            if not key or not stamp or more.get(key) == (stamp, bytes.fromhex(one.key)):
                continue
            if stamp == _stamp(job) and now - _changed(job) > SETTLED:
                more[key] = stamp, bytes.fromhex(one.key)
        if more != self.known:
            self.store.write(self.name, {}, _arrays(more))


def _job(job: Job) -> bytes:
    """Nothing where the recording is not at hand."""
    if job.unreachable:
        return b""
    where = [os.path.abspath(path) for path in job.files]  # noqa: PTH100
    if job.places:
        where = [place.url if isinstance(place, Remote) else str(place) for place in job.places]
    what = where, job.tracks, job.turns
    return blake2b(repr(what).encode("utf-8", "surrogateescape"), digest_size=NAME).digest()


def _stat_of(job: Job) -> list[Path]:
    """The files of a recording that are of this machine."""
    return [place for place in job.places or job.files if isinstance(place, Path)]


def _stamp(job: Job) -> bytes:
    try:
        found = [os.stat(path) for path in _stat_of(job)]  # noqa: PTH116
    except (OSError, ValueError):
        return b""
    told: list[Any] = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in found]
    if job.places:
        told.append([path.name for path in job.files])
    return blake2b(repr(told).encode(), digest_size=NAME).digest()


def _changed(job: Job) -> float:
    try:
        return max((os.stat(path).st_ctime for path in _stat_of(job)), default=0.0)  # noqa: PTH116
    except (OSError, ValueError):
        return float("inf")


def _arrays(known: dict[bytes, tuple[bytes, bytes]]) -> dict[str, NDArray[Any]]:
    rows = [job + stamp + name for job, (stamp, name) in sorted(known.items())]
    return {"rows": np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 3 * NAME)}


def _read(arrays: dict[str, NDArray[Any]]) -> dict[bytes, tuple[bytes, bytes]]:
    rows = arrays.get("rows", np.zeros((0, 3 * NAME), np.uint8)).tobytes()
    cuts = range(0, len(rows) - 3 * NAME + 1, 3 * NAME)
    return {
        rows[k : k + NAME]: (rows[k + NAME : k + 2 * NAME], rows[k + 2 * NAME : k + 3 * NAME])
        for k in cuts
    }
