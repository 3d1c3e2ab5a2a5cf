"""What the workers of a cluster are asked to do in tests: functions that they can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def square(k: int) -> int:
    return k * k


def slow_square(k: int) -> int:
    time.sleep(0.05)
    return k * k


def worker(_: int) -> int:
    """Who did it."""
    time.sleep(0.02)
    return os.getpid()


def refuse(k: int) -> int:
    if k == 7:
        raise ZeroDivisionError("seven")
    return k


def deadly(k: int) -> int:
    if k == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return k


def deadly_once(task: tuple[Path, int]) -> int:
    """Ends its process the first time that it meets 5."""
    mark, k = task
    if k == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return k
