"""Channels whose sound is in two rows of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spklink.database.conversations import Conversations

if TYPE_CHECKING:
    from spklink.sound.heard import Heard

COPY_SECONDS = 1.0  # of speech: what is shorter may be equal by chance


def with_copies(conversations: Conversations, heard: list[Heard]) -> list[Heard]:
    """Recordings of which a channel is in two rows know of it. Neither row is the right one: the
    voices of a copy say nothing, and would be taken for the surest link of all."""
    where: dict[str, list[tuple[int, int]]] = {}
    for m, one in enumerate(heard):
        for track, own in enumerate(one.sounds):
            if own and one.speech_seconds[track] >= COPY_SECONDS and not one.fatal(track):
                where.setdefault(own, []).append((m, track))
    found: dict[int, list[tuple[int | None, bool, str]]] = {}
    for places in where.values():
        for m, track in places:
            other = next(((n, k) for n, k in places if n != m), None)
            if other is not None:
                found.setdefault(m, []).append((track, True, _copy_of(conversations, *other)))
    return [
        replace(one, problems=(*one.problems, *found.get(m, ()))) for m, one in enumerate(heard)
    ]


def _copy_of(conversations: Conversations, m: int, track: int) -> str:
    place = f"{conversations.place(m)}, conversation {conversations.ids[m]!r}"
    return f"twice: the same sound as channel {track + 1} of {place}; keep one of the two"
