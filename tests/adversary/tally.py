"""What the adversary tried and what went wrong, as one table at the end of `make torture`.

Tests may run in several processes: each adds its rows to one file.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TORTURE = bool(os.environ.get("SPKLINK_TORTURE"))
PLACE = "SPKLINK_TALLY"  # the file of the rows, from the first process to all others
WRONG = ("tracebacks", "hangs", "silent uses", "other bytes", "scripts")
ROWS = (  # in this order, each with what could go wrong
    ("spoilt tables", "tracebacks hangs"),
    ("spoilt scores", "tracebacks hangs"),
    ("spoilt calibrations", "tracebacks hangs"),
    ("spoilt results folders", "tracebacks hangs"),
    ("spoilt files, command line", "tracebacks hangs"),
    ("spoilt cached files, read", "tracebacks hangs silent uses"),
    ("damaged and odd recordings", "tracebacks hangs silent uses"),
    ("damaged caches, whole runs", "tracebacks hangs silent uses other bytes"),
    ("kills: main process", "tracebacks hangs"),
    ("kills: helper", "tracebacks hangs"),
    ("kills: Ctrl-C to all", "tracebacks hangs"),
    ("kills: terminal closed", "tracebacks hangs"),
    ("runs resumed after kills", "tracebacks hangs other bytes"),
    ("pairs of runs, one cache", "tracebacks hangs other bytes"),
    ("kills: page of a review", "tracebacks hangs other bytes"),
    ("hostile names in Chromium", "tracebacks scripts"),
)


def count(what: str, tries: int, wrong: Mapping[str, int] | None = None) -> None:
    """Add to a row of the table; nothing is kept where nobody asked for one."""
    assert what in dict(ROWS), what
    if place := os.environ.get(PLACE):
        found = {name: int(n) for name, n in (wrong or {}).items() if n}
        assert set(found) <= set(WRONG), found
        with Path(place).open("a") as file:
            file.write(json.dumps([what, tries, found]) + "\n")


def table(place: Path) -> str:
    """All rows; a dash where that could not happen."""
    tries, wrong = Counter(), Counter()
    for line in place.read_text().splitlines():
        what, number, found = json.loads(line)
        tries[what] += number
        wrong.update({(what, name): n for name, n in found.items()})
    head = f"{'':28}{'tries':>8}" + "".join(f"{name:>13}" for name in WRONG)
    lines = [head, "─" * len(head)]
    for what, possible in ROWS:
        cells = [f"{wrong[what, name]:,}" if name in possible else "-" for name in WRONG]
        lines.append(f"{what:28}{tries[what]:>8,}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """What takes longer hangs: a TimeoutError."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
