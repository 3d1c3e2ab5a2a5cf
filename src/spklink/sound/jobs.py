"""The recordings of a table as jobs of whoever listens: their files, tracks, turns and channels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from spklink.database.conversations import Conversations
from spklink.elsewhere import placed
from spklink.errors import SpklinkError, problems_in
from spklink.hands import ALONE, Hands
from spklink.sound.front_end import FrontEnd
from spklink.sound.heard import RECORDINGS, Job
from spklink.sound.places import Place, fetch_all, located, name_all

Tell = Callable[[int, int], None]


def jobs_of(
    conversations: Conversations,
    front_end: FrontEnd,
    folder: Path,
    *,
    hands: Hands = ALONE,
    tell: Tell | None = None,
) -> list[Job]:
    """One a conversation, for a cache in this folder."""
    jobs = _fetched(conversations, front_end, folder, hands, tell)
    if conversations.diarized:
        _refuse_without_turns(front_end)
        spoken = zip(jobs, conversations.diarized, strict=True)
        jobs = [replace(job, turns=one.turns or None) for job, one in spoken]
    if conversations.channel:
        chosen = zip(jobs, conversations.channel, strict=True)
        jobs = [job if k is None else replace(job, tracks=None, channel=k) for job, k in chosen]
    return jobs


def _fetched(
    conversations: Conversations, front_end: FrontEnd, folder: Path, hands: Hands, tell: Tell | None
) -> list[Job]:
    """Every recording, fetched; with a cache elsewhere whoever listens to one fetches it."""
    every, where = recordings_of(conversations), folder.parent / RECORDINGS
    tracks, later = conversations.sides.counts.tolist(), bool(placed(folder)[1])
    if not later:
        local = fetch_all(every, where, tell, hands)
        return [
            Job(files, count, front_end, folder, unreachable=why)
            for (files, why), count in zip(local, tracks, strict=True)
        ]
    named = name_all(every, where, tell)
    return [
        Job(files, count, front_end, folder, unreachable=why, places=places if far else ())
        for (files, why, far), places, count in zip(named, every, tracks, strict=True)
    ]


def recordings_of(table: Conversations) -> list[tuple[Place, ...]]:
    """The files of every conversation; a conversation without any is an error."""
    missing = [
        f"{table.place(m)}: conversation {table.ids[m]!r} names no audio"
        for m, files in enumerate(table.audio)
        if not files
    ]
    if missing:
        raise problems_in(table.path, missing)
    folder = table.path.parent
    return [tuple(located(folder, name) for name in files) for files in table.audio]


def _refuse_without_turns(front_end: FrontEnd) -> None:
    if "turns" not in inspect.signature(front_end.hear).parameters:
        raise SpklinkError(
            f"the front end {type(front_end).__name__} of this recognizer knows nothing of "
            "diarized tracks; use another recognizer, or one recording a track"
        )
