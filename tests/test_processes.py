"""Helper processes: results in order, deaths survived, nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from spklink import SpklinkError, processes
from spklink.processes import Died, Named, ahead, in_processes, interrupts_held, waiting

forks = pytest.mark.skipif(not processes.FORKS, reason="helpers are forked on Linux only")
posix = pytest.mark.skipif(os.name != "posix", reason="kills by signal")


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def gone_within(pids: list[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, pids))


def squared(x: int) -> int:
    time.sleep(0.01 * (x % 3))
    return x * x


class OddError(Exception):
    """Can be pickled but not unpickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def picky(x: int) -> int:
    if x == 3:
        raise SpklinkError("three is bad")
    if x == 5:
        raise OddError("five is ", "worse")
    return x


def deadly(item: tuple[int, Path]) -> int:
    """5 kills always, 7 and 8 the first time only; all leave a word of who was at work."""
    number, folder = item
    log = folder / f"{number}"
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if number == 5 or (number in (7, 8) and len(log.read_text().split()) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 11:
        os._exit(3)
    return number


def interrupted(x: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return x


def sleepy(folder: Path) -> None:
    (folder / f"{os.getpid()}").touch()
    time.sleep(60)


def late(item: tuple[int, Path]) -> int:
    """The first waits until the next two are at work, which takes them long."""
    number, folder = item
    whole = folder / f".{number}"
    whole.write_text(f"{os.getpid()}")
    whole.rename(folder / f"{number}")
    while number == 0 and not all((folder / f"{k}").exists() for k in (1, 2)):
        time.sleep(0.02)
    time.sleep(60.0 if number else 0.0)
    return number


def matrix_threads(_: int) -> list[int]:
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_info

    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_the_matrix_library_of_a_helper_has_one_thread():
    before = dict(os.environ)
    (found,) = in_processes(matrix_threads, [0], 1)
    assert found
    assert set(found) == {1}
    assert dict(os.environ) == before


def test_results_in_order():
    assert list(in_processes(squared, range(40), 3)) == [x * x for x in range(40)]
    assert list(in_processes(squared, [], 3)) == []


def who(_: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def test_helpers_started_ahead_do_the_work_and_those_too_many_go():
    before = {child.pid for child in multiprocessing.active_children()}
    ahead(Named(who.__module__, who.__name__, ("fractions",)), 3)
    started = {child.pid for child in multiprocessing.active_children()} - before
    assert (len(started), waiting(who), waiting(squared)) == (3, 3, 0)
    with closing(in_processes(who, range(8), 2)) as found:
        first = next(found)
        assert len({child.pid for child in multiprocessing.active_children()} - before) == 2
        pids = {first, *found}
    assert pids <= started
    assert waiting(who) == 0
    assert gone_within([pid for pid in started if pid is not None], 5.0)


def family(_: int) -> tuple[int, int]:
    time.sleep(0.05)
    return os.getpid(), os.getppid()


@forks
def test_the_first_helper_ahead_forks_the_others():
    before = {child.pid for child in multiprocessing.active_children()}
    ahead(Named(family.__module__, family.__name__, ("fractions",), forks=True), 4)
    (first,) = {child.pid for child in multiprocessing.active_children()} - before
    found = set(in_processes(family, range(16), 3))
    assert len(found) == 3
    assert dict(found).pop(first) == os.getpid()
    assert {parent for pid, parent in found if pid != first} == {first}
    assert gone_within([pid for pid, _ in found], 5.0)


@forks
def test_a_helper_ahead_that_has_threads_forks_nobody():
    ahead(Named(family.__module__, family.__name__, ("threaded",), forks=True), 3)
    assert {parent for _, parent in in_processes(family, range(9), 3)} == {os.getpid()}


@forks
def test_forked_helpers_may_die_of_an_item(tmp_path):
    ahead(Named(deadly.__module__, deadly.__name__, forks=True), 3)
    found = list(in_processes(deadly, [(k, tmp_path) for k in range(12)], 3))
    assert found == [*range(5), Died("signal 9"), *range(6, 11), Died("exit code 3")]


@forks
def test_forked_helpers_end_with_the_work_whatever_they_are_at(tmp_path):
    ahead(Named(late.__module__, late.__name__, forks=True), 3)
    with closing(in_processes(late, [(k, tmp_path) for k in range(4)], 3)) as found:
        assert next(found) == 0
    pids = [int((tmp_path / f"{k}").read_text()) for k in (1, 2)]
    assert gone_within(pids, 5.0)


@posix
def test_helpers_that_died_before_their_work_are_made_up_for():
    ahead(Named(squared.__module__, squared.__name__), 2)
    for child in multiprocessing.active_children():
        child.kill()
    assert list(in_processes(squared, range(10), 2)) == [x * x for x in range(10)]


@pytest.mark.parametrize("may", [False, True])
def test_helpers_that_cannot_import_what_they_need_are_made_up_for(may):
    ahead(Named(squared.__module__, squared.__name__, ("no_such_module",), forks=may), 2)
    assert list(in_processes(squared, range(4), 2)) == [0, 1, 4, 9]


def test_errors_come_in_order_too():
    found = []
    with pytest.raises(SpklinkError, match="three is bad"):
        found.extend(in_processes(picky, range(9), 2))
    with closing(in_processes(picky, [0, 5], 2)) as results:
        assert next(results) == 0
        with pytest.raises(RuntimeError, match="five is worse"):
            next(results)


@posix
def test_a_death_costs_only_the_item_that_dies_twice(tmp_path):
    found = list(in_processes(deadly, [(k, tmp_path) for k in range(20)], 2))
    assert found[5] == Died("signal 9")
    assert found[11] == Died("exit code 3")
    assert [x for k, x in enumerate(found) if k not in (5, 11)] == [
        *range(5),
        *range(6, 11),
        *range(12, 20),
    ]
    tries = {k: (tmp_path / f"{k}").read_text().split() for k in range(20)}
    assert {k for k, pids in tries.items() if len(pids) == 2} == {5, 7, 8, 11}
    for k in (5, 7, 8, 11):
        first, second = tries[k]
        others = [pid for j, pids in tries.items() for pid in pids if j < k]
        assert first != second
        assert second not in others  # a fresh one


class Unstartable:
    """Ends every process that reads it."""

    def __reduce__(self):
        return os._exit, (3,)

    def __call__(self, item):
        return item


def test_helpers_that_cannot_start_are_one_error():
    with pytest.raises(SpklinkError, match=r"cannot start \(exit code 3\); use --workers 1"):
        list(in_processes(Unstartable(), range(5), 2))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from spklink.processes import Named, ahead, in_processes
from test_processes import interrupted, sleepy
if __name__ == "__main__":
    if {ahead!r}:
        ahead(Named("test_processes", {work!r}, forks=True), 2)
    print(list(in_processes({work}, {items}, 2)))
"""


def script(work: str, items: str, *, first: bool = False) -> list[str]:
    code = SCRIPT.format(tests=str(Path(__file__).parent), work=work, items=items, ahead=first)
    return [sys.executable, "-c", code]


@posix
def test_helpers_leave_interrupts_to_their_parent():
    """From the first one on: in a program that has started no process before."""
    words = script("interrupted", "[1, 2, 3]")
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[1, 2, 3]\n", "")


@posix
def test_an_interrupt_waits_until_a_helper_is_started():
    """Whichever thread the system gives it to."""
    begin, done = threading.Event(), []

    def interrupt() -> None:  # in a thread that is older than the mask
        begin.wait()
        signal.raise_signal(signal.SIGINT)

    def start() -> None:
        with interrupts_held():
            begin.set()
            other.join()
            time.sleep(0.01)
            done.append(True)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        start()
    assert done
    with interrupts_held():  # nothing is left of it
        pass


@posix
@pytest.mark.parametrize("first", [False, True], ids=["", "ahead"])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_helpers_end_with_their_parent(how, first, tmp_path):
    words = script("sleepy", f"[Path({str(tmp_path)!r})] * 4", first=first)
    parent = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while len(pids := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            assert parent.poll() is None
            time.sleep(0.02)
        if how == "SIGINT":  # as from the keyboard: all of them get it
            os.killpg(parent.pid, signal.SIGINT)
        else:
            parent.send_signal(getattr(signal, how))
        begin = time.monotonic()
        _, said = parent.communicate(timeout=10)
        assert time.monotonic() - begin < 3
        assert gone_within(pids, 5)
        assert said.count("Traceback") == (1 if how == "SIGINT" else 0)  # the parent's own
    finally:
        parent.kill()


def own_children() -> set[int]:
    """Processes that this one has started, where the system tells."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(map(int, listed.read_text().split())) if listed.exists() else set()


@posix
def test_leaving_early_ends_them(tmp_path):
    before = own_children()  # of other tests: a browser, say
    results = in_processes(squared, range(100), 2)
    next(results)
    children = own_children() - before
    results.close()
    import multiprocessing

    assert not multiprocessing.active_children()
    assert len([pid for pid in children if alive(pid)]) <= 1  # the resource tracker stays
