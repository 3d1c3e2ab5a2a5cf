"""The stages of a run: their names for people, their seconds and the memory for timings.json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Tell = Callable[[int, int], None]


@dataclass
class Stages:
    """Names the stage at work and keeps how long each took."""

    tell: Callable[[str], None] | None = None  # hears the name of each stage as it begins
    progress: Tell | None = None  # hears (done, in all) within a stage
    seconds: dict[str, float] = field(default_factory=dict)
    ended: Callable[[str, float], None] | None = None  # hears name and seconds of each
    say: Callable[[str], None] | None = None  # hears what a person should know meanwhile

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self.tell is not None:
            self.tell(name)
        begin = time.perf_counter()
        try:
            yield
        except (MemoryError, OSError) as error:
            error.add_note(f"while {name}")  # for the one line that a person sees
            raise
        self.seconds[name] = round(time.perf_counter() - begin, 4)
        if self.ended is not None:
            self.ended(name, self.seconds[name])

    def timings(self) -> dict[str, Any]:
        """Seconds a stage and peak memory: all that differs between two equal runs."""
        return {"seconds": dict(self.seconds), "peak_memory_bytes": peak_memory()}


def peak_memory() -> int | None:
    """Most bytes this process has held at any time; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include what the parent held before it started us
        lines = status.read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
