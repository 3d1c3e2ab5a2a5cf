"""Other evidence than voices, looked at before any run: what it is about, and what is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from spklink.cues.attributes import FEWEST
from spklink.cues.given import read_cues
from spklink.cues.speakers import Attribute, read_attributes
from spklink.cues.turns import Spoken, beyond_the_end, of_table, unlisted
from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns
from spklink.sound.headers import probe_recording
from spklink.table_options import CheckOptions

SHOWN = 3  # conversations that are named
Found = tuple[dict[str, Any], list[str]]  # counts, and what to look at


def describe_cues(table: Conversations, asked: CheckOptions) -> Found:
    """All that was given. What a run would refuse is something to look at."""
    given: list[tuple[str, Callable[[], Found]]] = []
    if asked["turns"] is not None:
        given.append(("turns", lambda: _turns(table, asked["turns"])))
    if asked["speakers"] is not None or asked["attribute"] is not None:
        given.append(
            ("attributes", lambda: _attributes(table, asked["speakers"], asked["attribute"]))
        )
    if asked["cue"] is not None:
        given.append(("cues", lambda: _cues(table, asked["cue"])))
    counts, problems = dict[str, Any](), list[str]()
    for name, look in given:
        try:
            counts[name], odd = look()
        except SpklinkError as error:
            odd, counts["would_stop"] = [f"a run would stop here: {error}"], True
        problems += odd
    return counts, problems


def _turns(table: Conversations, source: Any) -> Found:
    spoken = of_table(read_turns(source), table)
    there = [m for m, one in enumerate(spoken) if one.turns]
    counts = {
        "conversations": len(there),
        "turns": sum(len(one.turns) for one in spoken),
        "people": len({(m, who) for m in there for who, _, _ in spoken[m].turns}),
    }
    problems = []
    missing = [table.ids[m] for m, one in enumerate(spoken) if not one.turns]
    if missing:
        problems.append(_told(missing, "have no turns"))
    silent = [table.ids[m] for m in there if _silent(table, m, spoken[m])]
    if silent:
        problems.append(_told(silent, "have turns of only some of their people"))
    for m in there:
        seconds = probe_recording(table, m).seconds if table.audio[m] else 0.0
        odd = [*unlisted(spoken[m]), *(beyond_the_end(spoken[m], seconds) if seconds else ())]
        problems += [f"{table.ids[m]}: {text}" for text in odd]
    return counts, problems


def _silent(table: Conversations, m: int, one: Spoken) -> bool:
    entries = table.listing.of(m)
    certain = np.flatnonzero(~table.possible[entries]).tolist()
    return not set(certain) <= {who for who, _, _ in one.turns}


def _attributes(table: Conversations, source: Any, asked: str | None) -> Found:
    found = {one.name: one for one in read_attributes(source, asked, table)}
    problems = [text for one in found.values() for text in _weak(one)]
    return {name: _counted(table, one) for name, one in found.items()}, problems


def _counted(table: Conversations, one: Attribute) -> dict[str, Any]:
    people = {value: int((one.value == k).sum()) for k, value in enumerate(one.values)}
    value = one.value[table.people]
    differ = 0
    for m in range(len(table)):
        own = value[table.listing.of(m)]
        differ += len(set(own[own >= 0].tolist())) > 1
    return {"people": people, "unknown": int((one.value < 0).sum()), "differ": differ}


def _weak(one: Attribute) -> Iterator[str]:
    count = [int((one.value == k).sum()) for k in range(len(one.values))]
    good = [min(pair) >= FEWEST for pair in combinations(count, 2)]
    if not any(good):
        yield (
            f"attribute {one.name!r}: no two values have {FEWEST} people each; nothing can be "
            "learned of it"
        )


def _cues(table: Conversations, source: Any) -> Found:
    given = read_cues(source, table)
    return {one.name: int(one.terms(table).said(table).sum()) for one in given}, []


def _told(names: list[str], what: str) -> str:
    shown = ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
    return f"{len(names)} conversations {what}: {shown}"
