"""What linking a database would cost, before any listening: sound, side pairs, minutes, memory.

Constants are those that `python benchmarks/cost.py` prints on two cores of a virtual machine, with
the word `vectors` those of voices that are given as vectors; other machines, recognizers and
recordings differ, so that every figure is a range. The length of recordings is read from headers
(`sound.headers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent, find_frequent
from spklink.database.links import speaker_nodes
from spklink.database.sides import TWO, two_each
from spklink.errors import SpklinkError
from spklink.memory import GB, PER_PAIR, PER_SIDE, machine_memory, now
from spklink.sound.headers import Opened
from spklink.threads import cores
from spklink.words import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LISTENING = 6.8  # seconds of a core an hour of sound
BEGINNING, A_SIDE, A_PAIR = 6.9, 0.018, 1e-4  # seconds
BASE, SIDE_MB, PAIR_MB = 299.0, 0.23, 3.7e-4  # MiB
# Seconds where vectors are given: a side, and one more of somebody whose pairs are summed.
A_VECTOR, A_SUMMED = 0.0014, 5.3e-5
VECTOR_MB = 0.004  # of a side whose vector is given: 512 numbers
SPREAD = 2.5  # how many times more or less it may be
BUDGET = 4.0  # GB: the default of --budget-gb, which says whose pairs are listed


def pairs_of(sides: NDArray[Any], squares: NDArray[Any]) -> Floats:
    """(people,) side pairs between the conversations of each, given how many sides these have in
    all, and the sum of the squares of how many each of them has."""
    return np.asarray((sides**2 - squares) / 2.0)


def side_pairs(table: Conversations, frequent: Frequent | None = None) -> int:
    """How many side pairs linking compares, without a list of them: those of every person but
    frequent ones, less what two people who meet again and again would count twice."""
    people, tracks = speaker_nodes(table), table.sides.counts.astype(np.float64)
    if frequent is not None and len(frequent):
        listed = np.ones(len(people), np.bool_)
        listed[frequent.entry] = False
        every = tracks[table.listing.conversation]
        return int(_pairs(people[listed], every[listed]))
    pairs = _pairs(people, tracks[table.listing.conversation])
    if table.listing.alike == TWO:
        couple = np.sort(two_each(people), axis=1) @ np.array([len(people), 1])
        order = np.argsort(couple, kind="stable")
        new = np.diff(couple[order], prepend=-1) > 0
        pairs -= _pairs(np.cumsum(new) - 1, tracks[order])
    return int(pairs)


def _pairs(who: Ints, tracks: Floats) -> float:
    """All that somebody has in common, given who it is and how many tracks, one entry each."""
    return float(pairs_of(np.bincount(who, tracks), np.bincount(who, tracks**2)).sum())


def memory_of(sides: int, pairs: int, *, heard: bool = True) -> float:
    """MiB that linking so many needs, where recordings are listened to, or where not."""
    return BASE + (SIDE_MB if heard else VECTOR_MB) * sides + PAIR_MB * pairs


def refuse_beyond_memory(table: Conversations, frequent: Frequent | None = None) -> None:
    """An error before any work where the table alone asks for more than the run may hold."""
    sides, pairs, allowed = len(table.sides), side_pairs(table, frequent), now()
    allowed.refuse_less()
    needed, there = allowed.needed(pairs, sides), machine_memory()
    scarce = there is not None and there < allowed.gigabytes * GB
    limit = there / GB if there is not None and scarce else allowed.gigabytes
    if needed <= limit:
        return
    has, more = (
        (f"this machine has {limit:,.0f} GB", "take a larger machine")
        if scarce
        else (f"--budget-gb allows {limit:g}", "allow more (--budget-gb)")
    )
    raise SpklinkError(
        f"{table.path}: {sides:,} sides and {pairs:,} side pairs need about {needed:,.1f} GB of "
        f"memory, and {has}{_most_pairs(table, pairs, sides)}: divide the calls by a column group, "
        f"link part of them, or {more}"
    )


def _most_pairs(table: Conversations, pairs: int, sides: int) -> str:
    """Whose pairs they are, where it is the pairs that are too many."""
    if PER_PAIR * pairs < PER_SIDE * sides:
        return ""
    calls = np.bincount(table.people, minlength=1)
    most = int(calls.argmax())
    return (
        "; most pairs are those of people with very many calls "
        f"({table.speakers[most]!r} has {calls[most]:,})"
    )


def cost_of(table: Conversations, opened: Opened, workers: int | None = None) -> dict[str, Any]:
    """What `link` would need of time and memory, each from least to most."""
    hours, hands = opened.hours, cores(workers)
    frequent = find_frequent(table, BUDGET)
    pairs, sides = side_pairs(table, frequent), len(table.sides)
    seconds = LISTENING * (hours or 0.0) / hands + BEGINNING + A_SIDE * sides + A_PAIR * pairs
    if not opened.of:
        seconds = A_VECTOR * sides + A_SUMMED * len(frequent.entry)
    memory = memory_of(sides, pairs, heard=opened.of > 0)
    return {
        "hours": hours,
        "recordings": opened.of,
        "opened": opened.count,
        "headers_read": len(opened.seconds),
        "sides": sides,
        "side_pairs": pairs,
        "summed": len(frequent),
        "most_listed": frequent.most,
        "workers": hands,
        "minutes": _range(seconds / 60.0) if hours is not None or not opened.of else None,
        "memory_mb": _range(memory),
    }


def _range(value: float) -> list[float]:
    return [round(value / SPREAD, 3), round(value * SPREAD, 3)]


def in_words(cost: dict[str, Any]) -> list[str]:
    """The same for people."""
    pairs = f"{cost['sides']:,} sides, {cost['side_pairs']:,} side pairs to compare"
    if cost["summed"]:
        who = counted(cost["summed"], "person", several="people")
        pairs += f", and {who} with more than {cost['most_listed']} calls, whose pairs are summed"
    memory = f"{_memory(cost['memory_mb'])}{_beyond(cost)}"
    if not cost["recordings"]:
        time = f"with vectors from elsewhere linking would take {_minutes(cost['minutes'])}"
        return [f"{pairs}; {time} and {memory}"]
    if cost["minutes"] is None:
        return [
            f"{pairs}; how long it would take is not known: no recording tells its length",
            f"linking would need {memory}",
        ]
    hands = "1 core" if cost["workers"] == 1 else f"{cost['workers']} cores"
    return [
        f"{cost['hours']:.1f} hours of recordings, {pairs}",
        f"linking would take {_minutes(cost['minutes'])} on {hands} and "
        f"{_memory(cost['memory_mb'])}, with the default recognizer{_beyond(cost)}",
    ]


def _beyond(cost: dict[str, Any]) -> str:
    there = machine_memory()
    if there is None or cost["memory_mb"][0] * 2**20 <= there:
        return ""
    return f": more than the {there / 2**30:.0f} GB of this machine"


def _minutes(some: Sequence[float]) -> str:
    low, high = some
    if high < 1.0:
        return f"{60 * low:.0f} to {60 * high:.0f} seconds"
    unit, by = ("minutes", 1.0) if high < 99 else ("hours", 60.0)
    return f"{low / by:.2g} to {high / by:.2g} {unit}"


def _memory(some: Sequence[float]) -> str:
    low, high = (value / 1024 for value in some)
    return f"{low:,.1f} to {high:,.1f} GB of memory"
