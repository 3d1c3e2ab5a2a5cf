"""What a database looks like, before any listening."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Unpack

import numpy as np

from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.placeholders import is_placeholder
from spklink.database.slips import slips
from spklink.measures.entropy import levels
from spklink.options import described, resolved
from spklink.posterior.likelihood import combine_prior
from spklink.runs.check_cues import describe_cues
from spklink.runs.cost import cost_of
from spklink.runs.inputs import read_inputs, reading
from spklink.sound.places import located, refusal
from spklink.table_options import CheckOptions
from spklink.tables import Table
from spklink.words import counted


@described(CheckOptions)
def check(table: Table, **options: Unpack[CheckOptions]) -> dict[str, Any]:
    """Counts, cliques by size, entropies, things a person should look at, and what `link` would
    cost. `table` is a file, a DataFrame or rows."""
    asked = resolved(CheckOptions, options)
    inputs = read_inputs({"conversations": table, "tracks": asked["tracks"]}, how=reading(asked))
    tracks = inputs.table("tracks")
    people = read_conversations(inputs.table("conversations"), tracks, unlisted=True)
    bad = _bad_audio(people)
    others, problems = describe_cues(people, asked)
    found = describe(people) | others | {"read_as": inputs.said(), "bad_recordings": bool(bad)}
    found["problems"] += problems + bad
    return found | {"cost": cost_of(people) if any(people.audio) else None}


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
        "with_audio": sum(bool(files) for files in table.audio),
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
    return found + _placeholders(table) + _alike(table)


def _placeholders(table: Conversations) -> list[str]:
    """A name is one person wherever it stands, also one that stands for nobody."""
    calls = np.bincount(table.people, minlength=len(table.speakers))
    found = [
        f"{name!r} ({counted(int(n), 'conversation')})"
        for name, n in zip(table.speakers, calls, strict=True)
        if is_placeholder(name)
    ]
    if not found:
        return []
    shown = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
    return [
        f"{counted(len(found), 'name')} may stand for nobody in particular: {shown}; each is taken "
        "for one person: write ? for somebody unknown (anna;?)"
    ]


def _alike(table: Conversations) -> list[str]:
    """Names that may be one person's."""
    calls = np.bincount(table.people, minlength=len(table.speakers)).tolist()
    where: list[set[int]] = [set() for _ in table.speakers]
    for who, m in zip(table.people.tolist(), table.listing.conversation.tolist(), strict=True):
        where[who].add(m)
    return slips(table.speakers, calls, lambda a, b: not where[a].isdisjoint(where[b]))


def _bad_audio(table: Conversations) -> list[str]:
    """Files that are not there or cannot be read, by reason."""
    folder, found = table.path.parent, defaultdict(list)
    for m, files in enumerate(table.audio):
        for name in files:
            if why := refusal(located(folder, name)):
                found[why].append(f"{name} ({table.place(m)})")
    return [_told(why, names) for why, names in found.items()]


def _told(why: str, names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    if why == "no such file":
        return f"{len(names)} audio files are not there: {shown}"
    return f"{len(names)} audio files cannot be used: {why}: {shown}"
