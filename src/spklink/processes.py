"""Work in helper processes, which end with the process that started them.

A helper is a fresh process: a forked one would inherit locks of threads that it does not have. It
is handed one item at a time, so that the item is known if it dies (a decoder crashes, the memory is
full). That item is tried once more, in a fresh process and with no other at work; if that dies too,
its result is a `Died`, and all other items are still worked on.

A helper takes most of a second to start and to import what it needs. Where it is known that there
will be work, helpers can be started `ahead` of it, while this process does something else. If the
work allows it, on Linux, only the first of these is fresh, and forks the others once it has
imported what all need: it has no threads then, and nothing is imported twice.

Helpers leave Ctrl-C to their parent, which kills them however it leaves. A thread in each waits for
the end of the parent, so that nothing is left behind where it was killed itself.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, Generic, TypeVar

from spklink.errors import SpklinkError
from spklink.memory import GB, HELPER, now
from spklink.serving import serve
from spklink.threads import without_main

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST = 60  # helpers; some systems cannot wait for more at a time
AHEAD = 8  # items a helper that may be done before they are asked for
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
# Bytes that GNU's allocator keeps, or takes at once, before it asks the system: a helper needs the
# same few megabytes again and again, and to be given clean pages each time costs a tenth of it.
KEPT_PAGES = {"MALLOC_TRIM_THRESHOLD_": f"{32 << 20}", "MALLOC_MMAP_THRESHOLD_": f"{16 << 20}"}
FORKS = sys.platform == "linux"  # elsewhere system libraries do not survive it
FAILED_STARTS = 3  # helpers that died before they were ready, until this is no accident


@dataclass(frozen=True)
class Died:
    """Instead of a result: helpers died of this item, twice."""

    how: str


def in_processes(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    count: int,
    *,
    main: bool = False,
    parents: bool = False,
) -> Generator[Result | Died, None, None]:
    """work(item) in so many processes, results in the order of the items, few of them held. With
    `main` they run the caller's script: for objects whose class only that has; `parents` may have
    helpers of their own."""
    fitting = now().at_once(min(count, MOST), HELPER * GB)
    crew = _Crew(work, items, fitting, main, parents)
    if not main and not parents:
        crew.join(_AHEAD.pop(_name_of(work), []))
    try:
        for index in range(len(items)):
            good, value = crew.outcome(index)
            if not good:
                raise value
            yield value
    finally:
        crew.end()


# --- ahead of their work --------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A function by its name and what else it needs, imported where it is unpickled only."""

    module: str
    name: str
    needed: tuple[str, ...] = ()  # modules
    forks: bool = False  # whether a process that has imported these may be forked

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _imported, (self.module, self.name, self.needed)


def _imported(module: str, name: str, needed: tuple[str, ...]) -> Any:
    for one in needed:
        import_module(one)
    return getattr(import_module(module), name)


def ahead(work: Named, count: int) -> None:
    """Start so many helpers, or as many as can be held, for work that `in_processes` will be asked
    for by this name. Those that never are end with this process."""
    fitting = now().at_once(min(count, MOST), HELPER * GB)
    with suppress(OSError):  # then they are started when they are needed, or it is said why not
        others = [_Forked() for _ in range(fitting - 1 if FORKS and work.forks else 0)]
        helpers = [_Helper(work, main=False, parent=False, forked=others), *others]
        while len(helpers) < fitting:
            helpers.append(_Helper(work, main=False, parent=False))
        _AHEAD[work.module, work.name] += helpers


def waiting(work: Callable[..., Any]) -> int:
    """How many helpers were started ahead of this work."""
    return len(_AHEAD.get(_name_of(work), []))


def _name_of(work: Any) -> tuple[str, str]:
    return getattr(work, "__module__", ""), getattr(work, "__qualname__", "")


# --- helpers, seen from their parent --------------------------------------------------------------


class _Helper:
    """A process, and the index of the item it is at."""

    def __init__(
        self,
        work: Callable[[Any], Any] | Named,
        main: bool,
        parent: bool,
        forked: Sequence[_Forked] = (),
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.index, self.ready = -1, False
        self.pipe, theirs = context.Pipe()
        ends = theirs, *(one.theirs for one in forked)
        self.process = context.Process(target=serve, args=ends, daemon=not parent)
        alone = nullcontext() if parent else _fit_for_helpers()
        with nullcontext() if main else without_main(), alone, interrupts_held():
            self.process.start()
        for end in ends:
            end.close()
        self.send(work)

    def send(self, value: Any) -> None:
        data = pickle.dumps(value)
        with suppress(OSError):  # it has died, and whoever listens to it will see that
            self.pipe.send_bytes(data)

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> str:
        """How it ended; it is killed where it has not."""
        self.pipe.close()
        self.process.join(1.0)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        self.process.close()
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


class _Forked(_Helper):
    """One that another forks. It is no child of this process, but ends with its pipe."""

    def __init__(self) -> None:
        self.index, self.ready = -1, False
        self.pipe, self.theirs = multiprocessing.get_context("spawn").Pipe()

    def kill(self) -> None:
        """Its end will do."""

    def end(self) -> str:
        self.pipe.close()
        return "its end"


_AHEAD: defaultdict[tuple[str, str], list[_Helper]] = defaultdict(list)  # by the name of the work


class _Crew(Generic[Item, Result]):
    """All helpers, what they are at, and what they have found."""

    def __init__(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        count: int,
        main: bool,
        parents: bool,
    ) -> None:
        self.work, self.items, self.count = work, items, count
        self.main, self.parents = main, parents
        self.waiting = deque(range(len(items)))
        self.suspects: deque[int] = deque()  # to be tried alone
        self.tried: set[int] = set()  # those that a helper died of
        self.idle: list[_Helper] = []
        self.busy: dict[Any, _Helper] = {}  # by their pipes
        self.done: dict[int, tuple[bool, Any]] = {}
        self.failed_starts = 0

    def join(self, helpers: list[_Helper]) -> None:
        """Take on helpers that are there already; those that are too many go."""
        self.idle += helpers[: self.count]
        for helper in helpers[self.count :]:
            helper.kill()
            helper.end()

    def outcome(self, index: int) -> tuple[bool, Any]:
        """Whether work on an item went well, and its result or error."""
        while index not in self.done:
            self._hand_out(index)
            for pipe in wait(list(self.busy)):
                self._receive(self.busy[pipe])
        return self.done.pop(index)

    def _hand_out(self, index: int) -> None:
        """Give the next items to whoever has nothing to do."""
        if any(helper.index in self.tried for helper in self.busy.values()):
            return
        if self.suspects:
            if not self.busy:
                self._give(_Helper(self.work, self.main, self.parents), self.suspects.popleft())
            return
        last = index + AHEAD * self.count
        while self.waiting and self.waiting[0] < last and len(self.busy) < self.count:
            helper = self.idle.pop() if self.idle else _Helper(self.work, self.main, self.parents)
            self._give(helper, self.waiting.popleft())

    def _give(self, helper: _Helper, index: int) -> None:
        helper.index = index
        self.busy[helper.pipe] = helper
        helper.send(self.items[index])

    def _receive(self, helper: _Helper) -> None:
        try:
            message = pickle.loads(helper.pipe.recv_bytes())
        except (EOFError, OSError):
            self._bury(helper)
            return
        if not helper.ready:
            helper.ready = True
            return
        self.done[helper.index] = message
        self.idle.append(self.busy.pop(helper.pipe))

    def _bury(self, helper: _Helper) -> None:
        """A helper has died: was it the item?"""
        del self.busy[helper.pipe]
        how, index = helper.end(), helper.index
        if not helper.ready:
            self.failed_starts += not isinstance(helper, _Forked)  # nobody may have forked it
            if self.failed_starts > FAILED_STARTS:
                raise SpklinkError(f"helper processes cannot start ({how}); use --workers 1")
            (self.suspects if index in self.tried else self.waiting).appendleft(index)
        elif index in self.tried:
            self.done[index] = True, Died(how)
        else:
            self.tried.add(index)
            self.suspects.append(index)

    def end(self) -> None:
        """Nobody is left."""
        every = [*self.idle, *self.busy.values()]
        for helper in every:
            helper.kill()
        for helper in every:
            helper.end()


@contextmanager
def _fit_for_helpers() -> Iterator[None]:
    """The matrix library of a process that is started inside has one thread: there is a helper a
    core, and threads of one that wait, busily, take the cores of the others. Memory as above."""
    chosen = ONE_THREAD | {k: v for k, v in KEPT_PAGES.items() if k not in os.environ}
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def interrupts_held() -> Iterator[None]:
    """A process that is started inside never sees Ctrl-C; the caller sees it a moment later, so
    that no process is half started."""
    from multiprocessing import resource_tracker

    masked = hasattr(signal, "pthread_sigmask")
    if masked:
        resource_tracker.ensure_running()  # now: to start it would let interrupts through again
    with _interrupt_later():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masked else set()
        try:
            yield
        finally:
            if masked:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """What comes inside is handled at the end: the mask holds for one thread, but any other may
    take the signal and have it handled here."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield  # only the main thread handles signals
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        usual(*came[0])
