"""What happens in a helper process: work on whatever comes in, until its parent has gone.

The first of several may fork the others, once it has imported what all need.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any


def serve(pipe: Connection, *forked: Connection) -> None:
    """Work on what comes in until nothing more can; another process for each of the other pipes
    does the same."""
    if not forked:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work = pickle.loads(pipe.recv_bytes())
        pipe = _own_pipe(pipe, forked) if forked else pipe
        pipe.send_bytes(pickle.dumps("ready"))
        while True:
            item = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(_outcome(work, item))
    if pipe in forked:
        os._exit(0)  # what else its process would do at its end is that of another


def _own_pipe(pipe: Connection, forked: tuple[Connection, ...]) -> Connection:
    """Fork; the pipe that is left to this process."""
    own = next((one for one in forked if _can_fork() and os.fork() == 0), pipe)
    for one in (pipe, *forked):
        if one is not own:
            one.close()
    ends = _end_with_parent if own is pipe else partial(_end_with_pipe, own)
    threading.Thread(target=ends, daemon=True).start()
    return own


def _can_fork() -> bool:
    """Threads, and the locks they hold, would be missing in the other process."""
    return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208


def _end_with_pipe(pipe: Connection) -> None:
    """Once nobody is at its other end."""
    import select

    hanging_up = select.poll()
    hanging_up.register(pipe, 0)
    hanging_up.poll()
    os._exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _outcome(work: Callable[[Any], Any], item: Any) -> bytes:
    """Whether work went well, and its result or error, in bytes that the parent can read."""
    try:
        return pickle.dumps((True, work(item)))
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            data = pickle.dumps((False, error))
            pickle.loads(data)  # some errors can be written but not read
        except Exception:
            return pickle.dumps((False, RuntimeError(traceback.format_exc())))
        return data
