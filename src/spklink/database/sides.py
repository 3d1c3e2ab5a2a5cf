"""How the tracks of conversations are numbered, who is on them, and who certainly is not.

A *side* is one track of one conversation: a channel of its recording. Sides are numbered through,
conversation by conversation in table order, so those of conversation m are start[m] up to below
start[m + 1] however many tracks each has. Entries of participant lists are numbered the same way.
Tracks and positions in a list count from 0 in arrays, tracks from 1 in files.

Nothing here is about two tracks but the last part: what gives a conversation one bit needs exactly
two tracks and two certain people. That is said there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.database.conversations import Conversations

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Bits = NDArray[np.int8]  # (M,) 0 = as listed, 1 = exchanged, -1 = not known
NO_CONVERSATION, NO_TRACK = -1, -2  # what `SideFinder` says of a side that is not in the table
SPARSE = 64  # places of a table for each that is looked for, from which these are few


@dataclass(frozen=True)
class Numbering:
    """Things numbered conversation by conversation: sides, or entries of participant lists."""

    start: Ints  # (M + 1,)

    def __len__(self) -> int:
        """How many there are in all."""
        return int(self.start[-1])

    def of(self, m: int) -> slice:
        """Those of conversation m."""
        return slice(int(self.start[m]), int(self.start[m + 1]))

    @cached_property
    def counts(self) -> Ints:
        """(M,) how many each conversation has."""
        return np.diff(self.start)

    @cached_property
    def conversation(self) -> Ints:
        """The conversation of each."""
        return np.repeat(np.arange(len(self.start) - 1), self.counts)

    @cached_property
    def position(self) -> Ints:
        """The place of each within its conversation: the track of a side, from 0."""
        return ranges(np.zeros(len(self.start) - 1, np.int64), self.counts)

    @cached_property
    def alike(self) -> int:
        """How many every conversation has; 0 where they differ."""
        counts = self.counts
        return int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0

    def conversation_of(self, numbers: Ints) -> Ints:
        """The conversations of some; dividing is quicker than looking up."""
        return numbers // self.alike if self.alike else self.conversation[numbers]

    def position_of(self, numbers: Ints) -> Ints:
        """The places of some."""
        return numbers % self.alike if self.alike else self.position[numbers]


def numbered(counts: Iterable[int] | Ints) -> Numbering:
    """The numbering of so many things a conversation."""
    each = counts if isinstance(counts, np.ndarray) else list(counts)
    return Numbering(np.concatenate([[0], np.cumsum(each, dtype=np.int64)]))


class SideFinder:
    """From a conversation and a track as files name them to the number of a side."""

    def __init__(self, conversations: Conversations) -> None:
        self.where = conversations.index()
        self.start = conversations.sides.start
        most = int(conversations.sides.counts.max(initial=0))
        self.track = {str(k + 1): k for k in range(most)}

    def __call__(self, conversation: str, track: str) -> int:
        """The side; NO_CONVERSATION where the table has no such conversation, NO_TRACK where that
        has no such track."""
        m = self.where.get(conversation)
        if m is None:
            m = self.where.get(conversation.strip())
            if m is None:  # it may have any number of tracks
                return NO_CONVERSATION
        k = self.track.get(track)
        if k is None:
            k = self.track.get(track.strip())
        if k is None or self.start[m] + k >= self.start[m + 1]:
            return NO_TRACK
        return int(self.start[m] + k)

    def all_of(self, conversations: Sequence[str], tracks: Sequence[str]) -> Ints:
        """The same of many; those as they stand in the table need two look-ups each."""
        count = len(conversations)
        m = np.fromiter((self.where.get(name, -1) for name in conversations), np.int64, count)
        k = np.fromiter((self.track.get(track, -1) for track in tracks), np.int64, count)
        found = self.start[m] + k
        for odd in np.flatnonzero((m < 0) | (k < 0) | (found >= self.start[m + 1])).tolist():
            found[odd] = self(conversations[odd], tracks[odd])
        return np.asarray(found)

    def tracks(self) -> str:
        """What a track may be called, for messages."""
        names = list(self.track)
        return " or ".join(names) if len(names) <= 2 else f"1 to {names[-1]}"


def side_name(conversations: Conversations, side: int) -> str:
    """A side as messages name it."""
    sides = conversations.sides
    return f"{conversations.ids[sides.conversation[side]]} channel {sides.position[side] + 1}"


def seat_numbers(conversations: Conversations) -> tuple[Ints, Ints]:
    """(seats,) the entry of a list, and the side, of every seat in flat arrays: listed people as
    rows, tracks as columns, conversation by conversation."""
    listing, sides = conversations.listing, conversations.sides
    tracks = sides.counts[listing.conversation]
    entry = np.repeat(np.arange(len(conversations.people)), tracks)
    return entry, ranges(sides.start[listing.conversation], tracks)


def side_pairs(pairs: Iterable[tuple[int, int]]) -> Ints:
    """(P, 2) pairs of sides, also where there are none."""
    found = list(pairs)
    return np.array(found, np.int64).reshape(len(found), 2)


def pairs_within(sides: Numbering) -> Ints:
    """(P, 2) the pairs of sides of every conversation."""
    later = sides.start[sides.conversation + 1] - np.arange(len(sides)) - 1
    one = np.repeat(np.arange(len(sides)), later)
    return np.stack([one, ranges(np.arange(len(sides)) + 1, later)], axis=1)


# --- who is certainly somebody else ---------------------------------------------------------------


def certainly_different(conversations: Conversations, side_1: Ints, side_2: Ints) -> Mask:
    """Whether two sides belong to one conversation, or to two that share no participant. (Two of
    one conversation may be one person where people are split.)"""
    m, n = (conversations.sides.conversation_of(side) for side in (side_1, side_2))
    one, two = _lists(conversations, -1)[m], _lists(conversations, -2)[n]
    shared = (one[:, :, None] == two[:, None, :]).any(axis=(1, 2))
    if (anybody := vague(conversations)).any():
        shared |= anybody[m] | anybody[n]
    return np.asarray(~shared | ((m == n) & (conversations.split == 0.0)))


def share_some(conversations: Conversations, people: Mask, side_1: Ints, side_2: Ints) -> Mask:
    """Whether one of these people is listed in the conversations of both sides."""
    m, n = (conversations.sides.conversation_of(side) for side in (side_1, side_2))
    one, two = _lists(conversations, -1)[m], _lists(conversations, -2)[n]
    both = (one[:, :, None] == two[:, None, :]).any(axis=2)
    return np.asarray((both & people[one]).any(axis=1))


def are_strangers(
    conversations: Conversations, rows: Ints, columns: Ints, *, surely: bool = True
) -> Mask:
    """(rows, columns) true where the conversations of two sides share no participant. Not `surely`:
    no listed one, and they are two conversations."""
    found = np.ones((len(rows), len(columns)), np.bool_)
    found[no_strangers(conversations, rows, columns, surely=surely)] = False
    return found


def no_strangers(
    conversations: Conversations, rows: Ints, columns: Ints, *, surely: bool = True
) -> tuple[Ints, Ints]:
    """The places in that table which are not: rows and columns of each, in order. Few pairs of a
    large database are, and the time grows with them alone."""
    one, two = (Present.of(conversations, sides) for sides in (rows, columns))
    return one.no_strangers(two, surely=surely)


@dataclass(frozen=True)
class Present:
    """Who takes part in the conversations of some sides: all that strangers are told by."""

    call: Ints  # (sides,)
    anybody: Mask  # (sides,) whether that may be anybody
    place: Ints  # of a side among these, and
    person: Ints  # who is listed there

    @classmethod
    def of(cls, conversations: Conversations, sides: Ints) -> Present:
        calls = conversations.sides.conversation_of(sides)
        anybody = conversations.open[calls] | (conversations.unknown[calls] > 0)
        return cls(calls, anybody, *_listed(conversations, calls))

    def no_strangers(self, others: Present, *, surely: bool) -> tuple[Ints, Ints]:
        """As above, of these sides as rows and others as columns."""
        size = len(others.call)
        found = [_equal((self.place, self.person), (others.place, others.person), size)]
        if not surely:
            rows, columns = ((np.arange(len(one.call)), one.call) for one in (self, others))
            found.append(_equal(rows, columns, size))
        elif self.anybody.any() or others.anybody.any():
            found.append(np.flatnonzero(self.anybody[:, None] | others.anybody))
        row, column = np.divmod(_each_once(found, len(self.call) * size), size)
        return row, column


def _each_once(found: list[Ints], size: int) -> Ints:
    """Places of a table of this size in their order; where they are not few, to mark them in the
    table is quicker than to sort them."""
    if sum(map(len, found)) * SPARSE < size:
        return np.unique(np.concatenate(found))
    marked = np.zeros(size, np.bool_)
    for places in found:
        marked[places] = True
    return np.flatnonzero(marked)


def _listed(conversations: Conversations, calls: Ints) -> tuple[Ints, Ints]:
    """The participants of some conversations: the place of the conversation, and the person."""
    listing = conversations.listing
    count = listing.counts[calls]
    people = conversations.people[ranges(listing.start[calls], count)]
    return np.repeat(np.arange(len(calls)), count), people.astype(np.int64)


def _equal(one: tuple[Ints, Ints], two: tuple[Ints, Ints], width: int) -> Ints:
    """Of places and values twice: first place x width + second place wherever values are equal."""
    (row, a), (column, b) = one, two
    order = np.argsort(b, kind="stable")
    low, high = (np.searchsorted(b[order], a, side=side) for side in ("left", "right"))
    count = high - low
    return np.asarray(np.repeat(row, count) * width + column[order][ranges(low, count)], np.int64)


def vague(conversations: Conversations) -> Mask:
    """(M,) conversations in which anybody may take part: somebody unknown, or others."""
    return np.asarray((conversations.unknown > 0) | conversations.open)


def _lists(conversations: Conversations, nobody: int) -> NDArray[np.int32]:
    """(M, longest list) participants, filled up with `nobody`."""
    listing = conversations.listing
    if listing.alike:
        return conversations.people.reshape(-1, listing.alike)
    longest = int(listing.counts.max(initial=0))
    table = np.full((len(conversations), longest), nobody, np.int32)
    table[listing.conversation, listing.position] = conversations.people
    return table


# --- where exactly two are needed -----------------------------------------------------------------

TWO = 2  # tracks, and listed people, of every conversation


def refuse_more_than_bits(conversations: Conversations) -> None:
    """An error that names the first conversation that one bit cannot tell."""
    if conversations.plain:
        return
    counts, listing = conversations.sides.counts, conversations.listing
    unsure = np.bincount(listing.conversation, conversations.possible, len(conversations)) > 0
    odd = (counts != TWO) | (listing.counts != TWO) | (conversations.unknown > 0)
    m = int(np.flatnonzero(odd | unsure | conversations.open)[0])
    raise SpklinkError(
        f"{conversations.path}: {conversations.place(m)}: conversation {conversations.ids[m]!r} is "
        "not between two certain people on two tracks; this can be done of such conversations only"
    )


def two_each(values: NDArray[Any]) -> NDArray[Any]:
    """(M, 2) values of sides, or of the entries of participant lists, by conversation."""
    return values.reshape(-1, TWO)


def track_of(position: NDArray[np.int8], bit: NDArray[np.int8] | int) -> NDArray[np.int8]:
    """The track of the person at this place in the list: with bit 0 as listed, with 1 the other."""
    return position ^ bit


def exchanged(position: int, track: int) -> bool:
    """Whether the person at this place in the list is on this track with bit 1."""
    return position != track


def speakers_on(conversations: Conversations, bits: Bits) -> Ints:
    """(sides,) who is on each side under a configuration; -1 where nobody says."""
    refuse_more_than_bits(conversations)
    turned = np.maximum(bits, 0)
    seats = np.stack([turned, 1 - turned], axis=1)
    speaker = np.take_along_axis(two_each(conversations.people), seats, axis=1)
    return np.where(bits[:, None] >= 0, speaker, -1).ravel().astype(np.int64)


def names_on(conversations: Conversations, m: int, bit: int) -> tuple[str, ...]:
    """Who is on the tracks of one conversation, by name."""
    refuse_more_than_bits(conversations)
    first, second = conversations.names(m)
    return (second, first) if bit else (first, second)


def turned_odds(conversations: Conversations) -> NDArray[np.float64]:
    """(M,) log-odds of exchanged that other evidence than voices gives, and frequent voices."""
    refuse_more_than_bits(conversations)
    found = np.zeros(len(conversations))
    for seats in (conversations.cues, conversations.sums):
        if len(seats):
            found = found + odds_of_seats(seats)
    return found


def odds_of_seats(seats: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) log-odds of exchanged in what is added to every seat."""
    seat = squares(seats)
    return np.asarray(seat[:, 0, 1] + seat[:, 1, 0] - seat[:, 0, 0] - seat[:, 1, 1])


def chances_of_bits(exchanged: NDArray[np.float64]) -> NDArray[np.float64]:
    """(seats,) from (M,) how probable it is that a conversation is exchanged."""
    listed = 1.0 - exchanged
    return np.stack([listed, exchanged, exchanged, listed], axis=1).ravel()


def pair_seats(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M, 2, 2) and back: half of it to each of two people, so that both together have all of it;
    what is against a seat counts more than what is for it, as somebody else may be there."""
    as_listed, other = (0.5 * (np.log(2.0) - np.logaddexp(0.0, x)) for x in (odds, -odds))
    return np.stack([as_listed, other, other, as_listed], axis=1).reshape(-1, TWO, TWO)


def squares(of_pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(E, 2, 2) values of needed side pairs: track of the first conversation, of the second."""
    return of_pairs.reshape(-1, TWO, TWO)
