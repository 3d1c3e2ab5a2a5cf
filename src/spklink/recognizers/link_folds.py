"""Who may teach about whom: two folds of people, so that no covariance judges what taught it.

Where the calls fall into sets of people without a common call (`disjoint_folds`), a fold is some of
these sets: the sides of one fold are compared under what the other teaches. Pairs across folds, who
are strangers, are judged by either.

Where all people hang together (`people_folds`), they are cut in two all the same. A fold then
teaches by the calls among its own people alone; calls between people of both folds teach nothing.
The calls of a person are compared under what the other fold teaches: none of them has taught it,
as a call with this person is none among people of the other fold. What remains is that the *other*
person in such a call may have taught it, in calls of his own. It does not show: docs/back-ends.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import connected
from spklink.database.conversations import Conversations
from spklink.database.links import Links
from spklink.database.sides import share_some

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Fold = NDArray[np.int8]
BOTH = 2  # people of both folds take part in a call
GRAIN = 1e-6  # of an expected target: what is closer counts as equal


@dataclass(frozen=True)
class Folds:
    """People in two folds."""

    conversations: Conversations
    person: Fold  # (people,) 0 or 1
    call: Fold  # (M,) that of all its people, or BOTH
    place: Sides  # (S,) of each side in the order of all

    def judging(self, side_1: Sides, side_2: Sides) -> Fold:
        """(pairs,) as which fold two sides are compared: that of the person they may both be; of
        strangers that of the earlier side. (The mean of both ways would vary less than what is
        compared within a fold.)"""
        earlier = self.place[side_1] < self.place[side_2]
        first, last = np.where(earlier, side_1, side_2), np.where(earlier, side_2, side_1)
        one, two = (self.call[self.conversations.sides.conversation_of(s)] for s in (first, last))
        fold = np.where(one == BOTH, two, one)
        open_ = np.flatnonzero((one == BOTH) & (two == BOTH))
        if len(open_):
            fold[open_] = self.place[first[open_]] % 2
            for f in (1, 0):
                shared = share_some(self.conversations, self.person == f, first[open_], last[open_])
                fold[open_[shared]] = f
        return np.asarray(fold, np.int8)


def taught_by(folds: Folds, links: Links) -> Fold:
    """(L,) the fold that learns from each link: that of both its calls; -1 for none."""
    one, two = folds.call[links.first[links.pair]], folds.call[links.second[links.pair]]
    return np.where((one == two) & (one != BOTH), one, -1).astype(np.int8)


def disjoint_folds(
    conversations: Conversations, links: Links, targets: Floats, place: Sides
) -> Folds:
    """No person, by name, is in calls of both. Sets of people that calls join go, the largest
    first, to the fold with fewer expected targets (L,); of equal ones that with the earliest
    side."""
    part = connected(conversations, conversations.people.astype(np.int64))
    fold = _shared_out(conversations, links, targets, place, part.astype(np.int64))
    person = np.zeros(len(conversations.speakers), np.int8)
    person[conversations.people] = fold[conversations.listing.conversation]
    return Folds(conversations, person, fold, place)


def _shared_out(
    conversations: Conversations, links: Links, targets: Floats, place: Sides, part: Sides
) -> Fold:
    """(M,) 0 or 1: that of the part (M,) a call belongs to."""
    count = int(part.max(initial=-1)) + 1
    # Whole numbers: equal loads stay equal whatever the order they are added up in.
    load = np.rint(np.bincount(part[links.first[links.pair]], targets, count) / GRAIN)
    earliest = np.full(count, len(place))
    np.minimum.at(earliest, part[conversations.sides.conversation], place)
    fold, total = np.zeros(count, np.int8), [0.0, 0.0]
    for c in np.lexsort([earliest, -load]):
        fold[c] = int(total[1] < total[0])
        total[fold[c]] += load[c]
    return np.asarray(fold[part], np.int8)


def people_folds(
    conversations: Conversations, links: Links, targets: Floats, place: Sides
) -> Folds:
    """People in two folds, whoever speaks with whom: those with the most expected targets first,
    each to the fold with fewer; of equal ones the one whose calls have the earliest side."""
    entry = conversations.listing.start[links.first[links.pair]] + links.position_first
    count = len(conversations.speakers)
    load = np.rint(np.bincount(conversations.people[entry], targets, count) / GRAIN)
    first, earliest = np.full(len(conversations), len(place)), np.full(count, len(place))
    np.minimum.at(first, conversations.sides.conversation, place)
    np.minimum.at(earliest, conversations.people, first[conversations.listing.conversation])
    person, total = np.zeros(count, np.int8), [0.0, 0.0]
    for who in np.lexsort([earliest, -load]):
        person[who] = int(total[1] < total[0])
        total[person[who]] += load[who]
    low, high = np.ones(len(conversations), np.int8), np.zeros(len(conversations), np.int8)
    np.minimum.at(low, conversations.listing.conversation, person[conversations.people])
    np.maximum.at(high, conversations.listing.conversation, person[conversations.people])
    return Folds(conversations, person, np.where(low == high, low, BOTH).astype(np.int8), place)
