"""What linking a database would cost, before any listening: sound, side pairs, minutes, memory.

Constants are those that `python benchmarks/cost.py` prints on two cores of a virtual machine; other
machines, recognizers and recordings differ, so that every figure is a range. The length of
recordings is read from headers; of many recordings some are looked at, spread over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spklink.database.conversations import Conversations
from spklink.database.links import find_links, pair_starts
from spklink.sound.places import located, refusal
from spklink.threads import cores

LISTENING = 6.8  # seconds of a core an hour of sound
BEGINNING, A_SIDE, A_PAIR = 6.9, 0.018, 1e-4  # seconds
BASE, SIDE_MB, PAIR_MB = 299.0, 0.23, 3.7e-4  # MiB
SPREAD = 2.5  # how many times more or less it may be
LOOKED_AT = 500  # recordings whose headers are read


@dataclass(frozen=True)
class Length:
    """How much sound there is."""

    hours: float
    looked_at: int  # conversations whose headers were read
    of: int  # conversations with recordings

    @property
    def known(self) -> bool:
        return self.looked_at > 0


def hours_of(table: Conversations) -> Length:
    """Hours of recordings, those of several files counted once."""
    from spklink.sound.audio import probe

    with_files = [m for m, files in enumerate(table.audio) if files]
    step = max(1, len(with_files) // LOOKED_AT)
    seconds: list[float] = []
    for m in with_files[::step]:
        places = [located(table.path.parent, name) for name in table.audio[m]]
        files = tuple(one for one in places if isinstance(one, Path) and not refusal(one))
        if len(files) == len(places):
            tracks = 1 if table.diarized else int(table.sides.counts[m])
            seconds += [probe(files, tracks).seconds]
    known = [one for one in seconds if one > 0.0]
    mean = sum(known) / len(known) if known else 0.0
    return Length(mean * len(with_files) / 3600.0, len(known), len(with_files))


def cost_of(table: Conversations, workers: int | None = None) -> dict[str, Any]:
    """What `link` would need of time and memory, each from least to most."""
    length, hands = hours_of(table), cores(workers)
    pairs = int(pair_starts(find_links(table), table.sides)[-1])
    sides = len(table.sides)
    seconds = LISTENING * length.hours / hands + BEGINNING + A_SIDE * sides + A_PAIR * pairs
    memory = BASE + SIDE_MB * sides + PAIR_MB * pairs
    return {
        "hours": length.hours if length.known else None,
        "headers_read": length.looked_at,
        "sides": sides,
        "side_pairs": pairs,
        "workers": hands,
        "minutes": _range(seconds / 60.0) if length.known else None,
        "memory_mb": _range(memory),
    }


def _range(value: float) -> list[float]:
    return [round(value / SPREAD, 3), round(value * SPREAD, 3)]


def in_words(cost: dict[str, Any]) -> list[str]:
    """The same for people."""
    pairs = f"{cost['sides']:,} sides, {cost['side_pairs']:,} side pairs to compare"
    if cost["minutes"] is None:
        return [f"{pairs}; how long it would take is not known: no recording can be opened"]
    hands = "1 core" if cost["workers"] == 1 else f"{cost['workers']} cores"
    return [
        f"{cost['hours']:.1f} hours of recordings, {pairs}",
        f"linking would take {_minutes(cost['minutes'])} on {hands} and "
        f"{_memory(cost['memory_mb'])} of memory, with the default recognizer",
    ]


def _minutes(some: Sequence[float]) -> str:
    low, high = some
    if high < 1.0:
        return f"{60 * low:.0f} to {60 * high:.0f} seconds"
    unit, by = ("minutes", 1.0) if high < 120 else ("hours", 60.0)
    return f"{low / by:.2g} to {high / by:.2g} {unit}"


def _memory(some: Sequence[float]) -> str:
    low, high = (value / 1024 for value in some)
    return f"{low:.1f} to {high:.1f} GB"
