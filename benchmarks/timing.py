"""What all benchmarks share: one core, several runs and their range, the machine, tables."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ONE_CORE = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


def use_one_core() -> None:
    """Must be called before numpy is imported; binds the process to one core where that works."""
    os.environ.update(ONE_CORE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Runs(float):
    """Seconds of several runs: as a number their least, which the rest of the machine disturbs
    least; shown with their median and most."""

    every: tuple[float, ...]

    def __new__(cls, every: Iterable[float]) -> Runs:
        ordered = tuple(sorted(every))
        made = super().__new__(cls, ordered[0])
        made.every = ordered
        return made

    @property
    def median(self) -> float:
        return statistics.median(self.every)

    @property
    def most(self) -> float:
        return self.every[-1]


def best_of(
    work: Callable[[], Any],
    *,
    repeat: int = 5,
    at_most: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Runs:
    """Seconds of several runs after one to warm up; stops early when they take long."""
    work()
    begin, taken = time.perf_counter(), []
    for _ in range(repeat):
        start = clock()
        work()
        taken.append(clock() - start)
        if time.perf_counter() - begin > at_most:
            break
    return Runs(taken)


def in_turns(
    works: dict[str, Callable[[], Any]], repeat: int, clock: Callable[[], float]
) -> dict[str, Runs]:
    """The same of several, taking turns so that a busy moment does not hit only one."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat + 1):
        for name, work in works.items():
            start = clock()
            work()
            found[name].append(clock() - start)
    return {name: Runs(taken[1:]) for name, taken in found.items()}


def once(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def where() -> str:
    """The machine that figures are of, and how busy it is with something else."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines if ":" in line)
        words = {key.strip(): value.strip() for key, value in found.items()}
        name = words.get("model name", name)
        if "model" in words:
            name += f" (family {words.get('cpu family')}, model {words['model']})"
        name += ", AVX-512" if "avx512f" in words.get("flags", "") else ""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}{load}"


@cache
def say_where() -> None:
    """Once, before the first table."""
    print(f"on {where()}; times: least (median, most) of several runs\n", flush=True)


def show(title: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    from spklink.cli.show import table

    say_where()
    table(columns, rows, title=title)


def seconds(value: float) -> str:
    unit, by = ("s", 1.0) if value >= 1.0 else ("ms", 1e3) if value >= 1e-3 else ("µs", 1e6)
    digits = 0 if unit == "µs" else 2
    text = f"{by * value:.{digits}f} {unit}"
    if not isinstance(value, Runs) or len(value.every) < 2:
        return text
    return f"{text} ({by * value.median:.{digits}f}, {by * value.most:.{digits}f})"


def ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f}"
