"""Work side by side with the same bytes on any number of threads."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

MOST_THREADS = 64  # where there are fewer cores
Item = TypeVar("Item")
Result = TypeVar("Result")


def cores(workers: int | None) -> int:
    """How many to use: all there are, unless a number was asked for. Far more than there are only
    cost memory."""
    there = os.cpu_count() or 1
    return min(workers or there, max(there, MOST_THREADS))


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """work(item) on so many threads, results in the order of the items, few of them held."""
    if threads <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Result]] = deque()
        for item in items:
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
            pending.append(pool.submit(work, item))
        while pending:
            yield pending.popleft().result()


@contextmanager
def without_main() -> Iterator[None]:
    """Processes that are started inside do not run the caller's script again: it may have no guard
    against that, and nothing of it is needed."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    try:
        main.__spec__ = None
        vars(main).pop("__file__", None)
        yield
    finally:
        vars(main).update(kept)


class _OneThread:
    """Holds the matrix library to one thread from the first to enter until the last has left."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = matrix_library().limit(limits=1, user_api="blas")
                self.limit.__enter__()
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.__exit__(None, None, None)


@cache
def matrix_library() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_one_thread = _OneThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, a matrix product runs on the thread that asks for it, with the same bytes always."""
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()
