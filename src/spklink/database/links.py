"""Which conversations share a speaker.

A *link* joins two conversations through one shared speaker; a *pair* is two conversations that have
one link or two. Speakers of different groups are never the same here.

Index conventions: i < j conversations in table order, e = pair, positions 0 and 1 = first- and
second-listed participant. Pairs are sorted by (i, j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations


@dataclass(frozen=True)
class Links:
    """All links of a database, and the distinct pairs of conversations they join."""

    first: NDArray[np.int32]  # (E,) conversation i of each pair
    second: NDArray[np.int32]  # (E,) conversation j
    pair: NDArray[np.int64]  # (L,) pair of each link
    position_first: NDArray[np.int8]  # (L,) the shared speaker's position in i
    position_second: NDArray[np.int8]  # (L,) and in j
    calls: NDArray[np.int32]  # (L,) conversations of the shared speaker: M_s


def speaker_nodes(conversations: Conversations) -> NDArray[np.int64]:
    """(M, 2) participants numbered apart in every group, 0..n-1."""
    people = conversations.participants.astype(np.int64)
    if len(conversations.groups) > 1:
        people = people + conversations.group[:, None] * np.int64(len(conversations.speakers))
        people = np.unique(people, return_inverse=True)[1].reshape(people.shape).astype(np.int64)
    return people


def find_links(conversations: Conversations, *, consecutive: bool = False) -> Links:
    """Every two conversations of every speaker, or (consecutive) only neighbours in table order."""
    people = speaker_nodes(conversations)
    # Appearances sorted by speaker, and in table order within a speaker.
    order = np.argsort(people.ravel(), kind="stable")
    conversation, position = (order // 2).astype(np.int32), (order % 2).astype(np.int8)
    calls = np.bincount(people.ravel())
    rank = ranges(np.zeros(len(calls), np.int64), calls)
    later = np.repeat(calls, calls) - 1 - rank
    if consecutive:
        later = np.minimum(later, 1)
    a = np.repeat(np.arange(len(order)), later)
    b = ranges(np.arange(len(order)) + 1, later)
    i, j = conversation[a], conversation[b]
    key, pair = np.unique(i.astype(np.int64) * len(conversations) + j, return_inverse=True)
    return Links(
        first=(key // max(len(conversations), 1)).astype(np.int32),
        second=(key % max(len(conversations), 1)).astype(np.int32),
        pair=pair.reshape(-1).astype(np.int64),
        position_first=position[a],
        position_second=position[b],
        calls=np.repeat(calls, calls)[a].astype(np.int32),
    )
