"""What a database looks like, before any listening."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Unpack

import numpy as np

from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.placeholders import is_placeholder
from spklink.measures.entropy import levels
from spklink.options import described, resolved
from spklink.posterior.likelihood import combine_prior
from spklink.runs.check_cues import describe_cues
from spklink.settings import CheckOptions
from spklink.sound.files import refusal
from spklink.tables import Table
from spklink.words import counted


@described(CheckOptions)
def check(table: Table, **options: Unpack[CheckOptions]) -> dict[str, Any]:
    """Counts, cliques by size, entropies, and things a person should look at. `table` is a file, a
    DataFrame or rows."""
    asked = resolved(CheckOptions, options)
    people = read_conversations(table, asked["tracks"], unlisted=True)
    found = describe(people)
    others, problems = describe_cues(people, asked)
    return found | others | {"problems": found["problems"] + problems}


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
    found += _placeholders(table) + _alike(table.speakers)
    return found + _bad_audio(table)


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


def _alike(speakers: list[str]) -> list[str]:
    """Names that differ only in case or spaces are counted as different people."""
    import unicodedata

    seen: dict[str, str] = {}
    found = []
    for name in speakers:
        plain = unicodedata.normalize("NFKC", "".join(name.split())).casefold()
        other = seen.setdefault(plain, name)
        if other != name:
            found.append(
                f"speakers {other!r} and {name!r} are taken for two people: a typing slip?"
            )
    return found


def _bad_audio(table: Conversations) -> list[str]:
    """Files that are not there or cannot be read, by reason."""
    folder, found = table.path.parent, defaultdict(list)
    for m, files in enumerate(table.audio):
        for name in files:
            if why := refusal(folder / name):
                found[why].append(f"{name} ({table.place(m)})")
    return [_told(why, names) for why, names in found.items()]


def _told(why: str, names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    if why == "no such file":
        return f"{len(names)} audio files are not there: {shown}"
    return f"{len(names)} audio files cannot be used: {why}: {shown}"
