"""What a database looks like, before any listening."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.placeholders import placeholders
from spklink.database.slips import slips
from spklink.errors import SHOWN as FILES_SHOWN
from spklink.measures.entropy import levels
from spklink.options import described, resolved
from spklink.posterior.likelihood import combine_prior
from spklink.runs.cost import cost_of
from spklink.runs.inputs import read_inputs, reading
from spklink.runs.stages import Stages
from spklink.sound.headers import UNREADABLE, Opened, open_recordings
from spklink.sound.presence import NO_FILE
from spklink.table_options import CheckOptions
from spklink.tables import Table
from spklink.words import counted

Ints = NDArray[np.int64]
Found = tuple[dict[str, Any], list[str]]  # counts, and what to look at
SHOWN = 3  # names of one kind that are told


@described(CheckOptions)
def check(
    table: Table, *, stages: Stages | None = None, **options: Unpack[CheckOptions]
) -> dict[str, Any]:
    """Counts, cliques by size, entropies, things a person should look at, and what `link` would
    cost. `table` is a file, a DataFrame or rows."""
    asked, stages = resolved(CheckOptions, options), stages or Stages()
    inputs = read_inputs({"conversations": table, "tracks": asked["tracks"]}, how=reading(asked))
    tracks = inputs.table("tracks")
    people = read_conversations(inputs.table("conversations"), tracks, unlisted=True)
    with stages.stage("opening recordings"):
        opened = open_recordings(people, stages.progress)
    bad = _bad_audio(people, opened)
    others, problems = _other_evidence(people, asked)
    found = describe(people) | {"would_stop": False} | others
    found |= {"read_as": inputs.said(), "bad_recordings": bool(bad)}
    found["problems"] += problems + bad
    return found | {"cost": cost_of(people, opened)}


def _other_evidence(table: Conversations, asked: CheckOptions) -> Found:
    if all(asked[name] is None for name in ("turns", "speakers", "attribute", "cue")):
        return {}, []
    from spklink.runs.check_cues import describe_cues  # loads compiled code

    return describe_cues(table, asked)


def describe(table: Conversations) -> dict[str, Any]:
    prior = combine_prior(table)
    cliques = find_cliques(table, prior.clamped >= 0)
    calls = np.bincount(table.people, minlength=len(table.speakers))
    most = int(calls.argmax()) if len(calls) else None  # lists may have no name at all
    by_list = {} if table.plain else {"lists": _lists(table)}
    return {
        "conversations": len(table),
        "speakers": len(table.speakers),
        "groups": len(table.groups),
        "with_audio": int((table.audio.counts > 0).sum()),
        "with_prior": int((table.prior != 0.5).sum()),
        "most_calls": None
        if most is None
        else {"speaker": table.speakers[most], "calls": int(calls[most])},
        "cliques": len(cliques),
        "by_size": _by_size(cliques),
        "unresolvable": cliques.attainable_bits(),
        "levels": [vars(level) for level in levels(len(table), len(table.speakers))]
        if table.plain
        else [],  # they are about two people on two channels
        "attainable_bits": cliques.attainable_bits(),
        "problems": _problems(table, cliques),
    } | by_list


def _lists(table: Conversations) -> dict[str, Any]:
    """What is unusual about lists and tracks, counted."""
    tracks, count = np.unique(table.sides.counts, return_counts=True)
    unsure = np.unique(table.listing.conversation[table.possible])
    return {
        "tracks": [
            {"tracks": int(k), "conversations": int(n)} for k, n in zip(tracks, count, strict=True)
        ],
        "diarized": bool(table.diarized),
        "possible": int(table.possible.sum()),
        "with_possible": len(unsure),
        "unknown": int(table.unknown.sum()),
        "with_unknown": int((table.unknown > 0).sum()),
        "open": int(table.open.sum()),
        "without_names": int((table.listing.counts == 0).sum()),
    }


def _by_size(cliques: Cliques) -> list[dict[str, int]]:
    sizes, count = np.unique(cliques.size, return_counts=True)
    return [
        {
            "conversations": int(size),
            "cliques": int(n),
            "unresolvable": int((~cliques.resolvable & (cliques.size == size)).sum()),
        }
        for size, n in zip(sizes, count, strict=True)
    ]


def _problems(table: Conversations, cliques: Cliques) -> list[str]:
    """Nothing that stops a run, but what often turns out to be a slip in the table."""
    found = []
    alone = int((cliques.size == 1).sum())
    if alone:
        found.append(
            f"{alone} conversations share no speaker with any other: voices cannot tell their "
            "channels apart"
        )
    pairs = int((~cliques.resolvable & (cliques.size > 1)).sum())
    if pairs:
        found.append(
            f"{pairs} cliques have the same {'two ' if table.plain else ''}speakers in every "
            "conversation: a known channel in "
            "one of their conversations would resolve each"
        )
    calls = np.bincount(table.people, minlength=len(table.speakers))
    return found + _placeholders(table, calls) + _alike(table, calls)


def _placeholders(table: Conversations, calls: Ints) -> list[str]:
    """A name is one person wherever it stands, also one that stands for nobody."""
    found = placeholders(table.speakers)
    if not len(found):
        return []
    told = [
        f"{table.speakers[k]!r} ({counted(int(calls[k]), 'conversation')})"
        for k in found[:SHOWN].tolist()
    ]
    shown = ", ".join(told) + (" …" if len(found) > SHOWN else "")
    return [
        f"{counted(len(found), 'name')} may stand for nobody in particular: {shown}; each is taken "
        "for one person: write ? for somebody unknown (anna;?)"
    ]


def _alike(table: Conversations, calls: Ints) -> list[str]:
    """Names that may be one person's."""
    order = np.argsort(table.people, kind="stable")
    ends = np.cumsum(calls)

    def where(person: int) -> Ints:
        entries = order[ends[person] - calls[person] : ends[person]]
        return table.listing.conversation_of(entries)

    return slips(table.speakers, calls, lambda a, b: bool(np.isin(where(a), where(b)).any()))


def _bad_audio(table: Conversations, opened: Opened) -> list[str]:
    """Files that cannot be used, by reason, and what a run would do about them."""
    found = [_told(table, why, which) for why, which in opened.bad.items()]
    if not found:
        return []
    remedy = "fix or remove them, or use --on-bad-audio skip, which leaves them out"
    return [*found, f"link would stop because of these recordings: {remedy}"]


def _told(table: Conversations, why: str, which: list[int]) -> str:
    names = ", ".join(_named(table, k) for k in which[:FILES_SHOWN])
    more = len(which) - FILES_SHOWN
    shown = names + (f" and {more:,} more" if more > 0 else "")
    files = counted(len(which), "audio file")
    if why == f"{UNREADABLE}: {NO_FILE}":
        return f"{files} {'is' if len(which) == 1 else 'are'} not there: {shown}"
    return f"{files} cannot be used: {why}: {shown}"


def _named(table: Conversations, file: int) -> str:
    """Conversation, track where that has a file of its own, row and file."""
    m = int(np.searchsorted(table.audio.start, file, "right")) - 1
    track = f" {table.track_name(m, file - int(table.audio.start[m]))}"
    alone = table.audio.counts[m] == 1
    return f"{table.ids[m]}{'' if alone else track} ({table.place(m)}, {table.audio.names[file]})"
