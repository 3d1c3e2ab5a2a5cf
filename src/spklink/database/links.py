"""Which conversations share a speaker.

A *link* joins two conversations through one shared speaker; a *pair* is two conversations that have
one link or more. Speakers of different groups are never the same here.

Each pair of conversations *needs* the scores of all side pairs between them: every track of the
first with every track of the second. These are numbered through, pair by pair, the tracks of the
first conversation as rows; the *candidates* of a link are the side pairs of its pair, one of which
is its speaker twice.

Index conventions: i < j conversations in table order, e = pair, position = place in a participant
list, from 0. Pairs are sorted by (i, j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.sides import Numbering


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
    """(entries of the lists,) participants numbered apart in every group, 0..n-1. Candidates are
    nobody's participants: each has a number of its own behind those, and so no links."""
    people = conversations.people.astype(np.int64)
    if conversations.candidate.any():
        listed = ~conversations.candidate
        found = np.empty(len(people), np.int64)
        found[listed] = _apart(conversations, people)[listed]
        found[listed] = np.unique(found[listed], return_inverse=True)[1].reshape(-1)
        first = int(found[listed].max(initial=-1)) + 1
        found[~listed] = first + np.arange(int((~listed).sum()))
        return found
    return _apart(conversations, people)


def _apart(conversations: Conversations, people: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(conversations.groups) > 1:
        group = conversations.group[conversations.listing.conversation]
        people = people + group * np.int64(len(conversations.speakers))
        people = np.unique(people, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return people


def find_links(
    conversations: Conversations,
    *,
    consecutive: bool = False,
    without: NDArray[np.int64] | None = None,
) -> Links:
    """Every two conversations of every speaker, or (consecutive) only neighbours in table order;
    of some people (nodes, see `speaker_nodes`) none."""
    people = speaker_nodes(conversations)
    # Appearances sorted by speaker, and in table order within a speaker.
    order = np.argsort(people, kind="stable")
    calls = np.bincount(people)
    rank = ranges(np.zeros(len(calls), np.int64), calls)
    later = np.repeat(calls, calls) - 1 - rank
    if consecutive:
        later = np.minimum(later, 1)
    if without is not None and len(without):
        later[np.isin(people[order], without)] = 0
    a = np.repeat(np.arange(len(order)), later)
    b = ranges(np.arange(len(order)) + 1, later)
    return links_between(conversations, order[a], order[b], np.repeat(calls, calls)[a])


def links_between(
    conversations: Conversations,
    one: NDArray[np.int64],
    two: NDArray[np.int64],
    calls: NDArray[np.int64],
) -> Links:
    """Links between entries of the participant lists, that of the earlier conversation first, of
    people with so many conversations."""
    listing = conversations.listing
    i, j = (listing.conversation_of(entry).astype(np.int32) for entry in (one, two))
    key, pair = np.unique(i.astype(np.int64) * len(conversations) + j, return_inverse=True)
    return Links(
        first=(key // max(len(conversations), 1)).astype(np.int32),
        second=(key % max(len(conversations), 1)).astype(np.int32),
        pair=pair.reshape(-1).astype(np.int64),
        position_first=listing.position_of(one).astype(np.int8),
        position_second=listing.position_of(two).astype(np.int8),
        calls=calls.astype(np.int32),
    )


def joined(one: Links, two: Links) -> Links:
    """The links of both, one after the other."""
    both = {
        name: np.concatenate([getattr(one, name), getattr(two, name)])
        for name in ("first", "second", "position_first", "position_second", "calls")
    }
    return Links(pair=np.concatenate([one.pair, two.pair + len(one.first)]), **both)


def pair_starts(links: Links, sides: Numbering) -> NDArray[np.int64]:
    """(E + 1,) where the needed side pairs of each pair of conversations begin."""
    counts = sides.counts
    return np.concatenate([[0], np.cumsum(counts[links.first] * counts[links.second])])


def needed_sides(links: Links, sides: Numbering) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both sides of every needed side pair."""
    rows, columns = sides.counts[links.first], sides.counts[links.second]
    side_1 = ranges(sides.start[links.first], rows)
    side_2 = ranges(np.repeat(sides.start[links.second], rows), np.repeat(columns, rows))
    return np.repeat(side_1, np.repeat(columns, rows)), side_2


def candidates(links: Links, sides: Numbering) -> NDArray[np.int64]:
    """The needed side pairs (their numbers) of every link, one link after the other."""
    start = pair_starts(links, sides)
    return ranges(start[links.pair], np.diff(start)[links.pair])
