"""What all benchmarks share: one core, the best of several runs, tables of ratios."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
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


def best_of(work: Callable[[], Any], *, repeat: int = 5, at_most: float = 20.0) -> float:
    """Least seconds of several runs after one to warm up; stops early when they take long."""
    work()
    begin, best = time.perf_counter(), float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > at_most:
            break
    return best


def once(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(title: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    from spklink.cli.show import table

    table(columns, rows, title=title)


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.2f} ms" if value < 1.0 else f"{value:.2f} s"


def ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f}"
