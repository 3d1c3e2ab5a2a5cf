"""Who may hold how much: the gigabytes of a run, divided among the parts that hold much.

What counts is memory that nobody else can use meanwhile: the anonymous memory of the main process
and its helpers together. Files of the cache that are mapped do not count: the system takes their
pages back whenever it needs them.

The parts that hold much take turns (helpers listen, then training holds frames, then scores are
made of tiles of vectors, then cliques are solved), so each may have a share of all that is beyond
the base. No share depends on the number of workers, as answers may depend on shares; how many work
side by side follows from them instead. What grows with the table and cannot be divided, pairs of
sides above all, is reckoned before anything is done, and refused where it is too much.

Constants are what `python benchmarks/end_to_end.py` and `benchmarks/cost.py` show, rounded up.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from spklink.errors import SpklinkError

GB = 2**30
USUAL = 4.0  # gigabytes
BASE = 0.25  # of them: interpreter, libraries, a small table
LEAST = 0.5  # the base, and the frames that a recognizer learns from
HELPER = 0.125  # a helper with a recording of some minutes
PER_PAIR, PER_SIDE = 390.0, 2_000.0  # bytes that linking holds, all in all
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Memory:
    """What a run may hold."""

    gigabytes: float = USUAL

    @property
    def free(self) -> float:
        """Bytes beyond the base."""
        there = machine_memory()
        most = self.gigabytes if there is None else min(self.gigabytes, there / GB)
        return max(most - BASE, LEAST - BASE) * GB

    @property
    def vectors(self) -> float:
        """Bytes of vectors that are held; more are mapped from a file."""
        return self.free / 4.0

    @property
    def tile(self) -> float:
        """Bytes of one table of the sides of a tile."""
        return self.free / 16.0

    @property
    def clique(self) -> float:
        """Gigabytes that solving one clique may take, or all that are solved side by side."""
        return self.free / 2.0 / GB

    def at_once(self, wanted: int, each: float) -> int:
        """How many of `wanted` can work side by side that hold so many bytes each."""
        return max(1, min(wanted, int(self.free // max(each, 1.0))))

    def refuse_less(self) -> None:
        """An error where nothing at all can be done."""
        if self.gigabytes < LEAST:
            raise SpklinkError(
                f"--budget-gb {self.gigabytes:g}: a run needs {LEAST:g} GB at least, most of them "
                "for the libraries it is made of"
            )

    def needed(self, pairs: int, sides: int) -> float:
        """Gigabytes that a table of so many asks for, whatever is kept on disk."""
        return BASE + (PER_PAIR * pairs + PER_SIDE * sides) / GB


_NOW: ContextVar[Memory | None] = ContextVar("memory", default=None)


def now() -> Memory:
    """What the run at work may hold."""
    return _NOW.get() or Memory()


@contextmanager
def limited_to(gigabytes: float) -> Iterator[Memory]:
    """Inside, a run may hold so much."""
    before = _NOW.set(Memory(gigabytes))
    try:
        yield now()
    finally:
        _NOW.reset(before)


class _Allotment:
    """Bytes that threads take, use and give back; who asks for more than is left waits."""

    def __init__(self) -> None:
        self.taken, self.change, self.own = 0, threading.Condition(), threading.local()

    @contextmanager
    def of(self, needed: float, most: float) -> Iterator[None]:
        if getattr(self.own, "inside", False):  # part of what this thread has taken already
            yield
            return
        asked = int(min(needed, most))  # integers: sums of them come back to nothing
        with self.change:
            self.change.wait_for(lambda: self.taken == 0 or self.taken + asked <= most)
            self.taken += asked
        self.own.inside = True
        try:
            yield
        finally:
            self.own.inside = False
            with self.change:
                self.taken -= asked
                self.change.notify_all()


ALLOTMENT = _Allotment()


def machine_memory() -> int | None:
    """Bytes that this machine, or the container, has; None where the system does not tell."""
    found = []
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CGROUPS:
        with suppress(OSError, ValueError):  # "max": no limit
            found.append(int(Path(path).read_text()))
    return min(found, default=None)


def held_by(process: int) -> int:
    """Bytes of anonymous memory of a process and all that it started (Linux)."""
    total = 0
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            total += 1024 * int(line.split()[1]) if line.startswith("RssAnon") else 0
        for task in Path(f"/proc/{process}/task").iterdir():
            children = (task / "children").read_text().split()
            total += sum(held_by(int(child)) for child in children)
    return total
