"""All conversations with their states, as inference sees them: seats, and links between people.

    log p(state) = constant + sum over conversations of the value of its matching (`matching`)
                 + sum over links of weight x llr[track of the person in one, in the other]

A link joins the same person in two conversations and says nothing where he is absent from either.
No list of states is made: one conversation given all others is a matching again (`conditional`).

Index conventions: i = conversation (node), e = entry of the participant lists, numbered through;
the entries of i are person_start[i]:person_start[i + 1]. A place is a track of the conversation, or
its number of tracks for nowhere. A slot is a link seen from one of its ends, entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.conversations import Conversations
from spklink.database.links import Links, pair_starts
from spklink.posterior.likelihood import Weight
from spklink.posterior.states.matching import value
from spklink.posterior.states.prior import (
    Said,
    SeatLayout,
    layout_of,
    normalising,
    seat_prior,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int64]  # (entries,)
ROOM = 1000.0  # by which `must` exceeds all that scores can say


@dataclass(frozen=True)
class Seats:
    """The states of a whole database, or of some conversations of it."""

    layout: SeatLayout
    person_start: Ints  # (n + 1,)
    seat: Floats
    count: Floats
    certain: NDArray[np.bool_]  # (entries,) a list is wrong where one of these is absent
    # Where people are listed twice (`copies`), else 0. Added to the seats of people who must be
    # there, as themselves or as their copies; and of copies how they weigh beside themselves, < 0.
    lift: Floats  # (entries,)
    copied: Floats  # (entries,)
    first: Ints  # (L,) entry of each link, of the earlier conversation
    second: Ints  # (L,) and of the later one
    weight: Floats  # (L,)
    offset: Ints  # (L,) of its scores, tracks of the first as rows
    llr: Floats
    # (n,) what made the priors sum to one before other conversations were fixed; None where none is
    normalised: Floats | None = None

    def __len__(self) -> int:
        return len(self.layout.people)

    @cached_property
    def constant(self) -> Floats:
        """(n,) what makes the priors sum to one. A run that solves nothing does not ask for it, nor
        for code to be compiled."""
        if self.normalised is not None:
            return self.normalised
        return normalising(self.layout, self.seat, self.count)

    @cached_property
    def node(self) -> Ints:
        """(entries,) the conversation of each."""
        return np.repeat(np.arange(len(self)), self.layout.people)

    @cached_property
    def place_start(self) -> Ints:
        """(entries + 1,) where the places of an entry begin in flat arrays: tracks + 1 each."""
        return np.concatenate([[0], np.cumsum(self.layout.tracks[self.node] + 1)])

    @cached_property
    def slots(self) -> SeatSlots:
        """The links from both ends."""
        links = np.arange(len(self.first))
        entry = np.concatenate([self.first, self.second])
        order = np.argsort(entry, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(entry, minlength=len(self.node)))])
        mirror = np.empty(len(order), np.int64)
        mirror[order] = np.arange(len(order))
        far = np.concatenate([mirror[len(links) :], mirror[: len(links)]])
        return SeatSlots(
            start=start,
            other=np.concatenate([self.second, self.first])[order],
            link=np.concatenate([links, links])[order],
            later=(order >= len(links)),
            mirror=far[order],
        )

    @cached_property
    def arrays(self) -> SeatArrays:
        """What the kernels take."""
        slots, layout = self.slots, self.layout
        return SeatArrays(
            people=layout.people,
            tracks=layout.tracks,
            seat_start=layout.seat_start,
            count_start=layout.count_start,
            person_start=self.person_start,
            place_start=self.place_start,
            seat=self.seat,
            count=self.count,
            node=self.node,
            start=slots.start,
            other=slots.other,
            link=slots.link,
            later=slots.later,
            mirror=slots.mirror,
            weight=self.weight,
            offset=self.offset,
            llr=self.llr,
            certain=self.certain,
            lift=self.lift,
        )

    def value(self, place: Places) -> float:
        """Unnormalised log-probability of one state of everything."""
        return float(self.constant.sum() + self.values(place).sum())

    def values(self, place: Places) -> Floats:
        """(n,) the parts of it, without the constants: a link belongs to its first conversation."""
        found = np.zeros(len(self))
        _values(self.arrays, place, found)
        return found

    def components(self) -> Ints:
        """(n,) numbers of the connected pieces, in order of their first conversation."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        a, b = self.node[self.first], self.node[self.second]
        graph = coo_matrix((np.ones(len(a), np.int8), (a, b)), shape=(len(self), len(self)))
        found = connected_components(graph, directed=False)[1]
        _, first, which = np.unique(found, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[which.reshape(-1)]


class SeatArrays(NamedTuple):
    """The same for kernels."""

    people: Ints
    tracks: Ints
    seat_start: Ints
    count_start: Ints
    person_start: Ints
    place_start: Ints
    seat: Floats
    count: Floats  # type: ignore[assignment]  # hides a method of tuples
    node: Ints
    start: Ints
    other: Ints
    link: Ints
    later: NDArray[np.bool_]
    mirror: Ints
    weight: Floats
    offset: Ints
    llr: Floats
    certain: NDArray[np.bool_]
    lift: Floats


@dataclass(frozen=True)
class SeatSlots:
    """The links of every entry; `later` where the entry is the link's second end."""

    start: Ints  # (entries + 1,)
    other: Ints  # (slots,) entry at the far end
    link: Ints
    later: NDArray[np.bool_]
    mirror: Ints  # slot of the same link at its far end


def build_seats(
    conversations: Conversations,
    links: Links,
    llr: Floats,
    *,
    weight: Weight | None = None,
    rate: float = 0.0,
    said: list[Said] | None = None,
    twice: bool = False,
) -> Seats:
    """The states of a database, from the log-likelihood-ratios of the needed side pairs; `twice`:
    everybody is listed twice (`copies`)."""
    listing = conversations.listing
    w = (weight or Weight()).of(links.calls)
    start = pair_starts(links, conversations.sides)
    first = listing.start[links.first[links.pair]] + links.position_first
    second = listing.start[links.second[links.pair]] + links.position_second
    most = np.maximum.reduceat(np.abs(llr), start[:-1]) if len(llr) else np.zeros(0)
    reach = np.abs(w) * most[links.pair]
    node = listing.conversation
    largest = sums(node[first], reach, len(conversations))
    largest += sums(node[second], reach, len(conversations))
    must = ROOM + 4.0 * float(largest.max(initial=0.0))
    prior = seat_prior(conversations, rate, must, said, twice=twice)
    return Seats(
        layout=layout_of(listing.counts, conversations.sides.counts),
        person_start=listing.start,
        seat=prior.seat,
        count=prior.count,
        certain=~conversations.possible,
        lift=prior.lift,
        copied=prior.copied,
        first=first,
        second=second,
        weight=w,
        offset=start[links.pair],
        llr=llr,
    )


def fix(seats: Seats, place: Places, free: NDArray[np.bool_]) -> tuple[Seats, Ints]:
    """What is left when all conversations but the free ones are at their places, and which entries
    (of all) it is about."""
    nodes = np.flatnonzero(free)
    entries = np.flatnonzero(free[seats.node])
    seat = seats.seat.copy()
    _fold(seats.arrays, place, free, seat)
    inner = free[seats.node[seats.first]] & free[seats.node[seats.second]]
    number = np.full(len(seats.node), -1, np.int64)
    number[entries] = np.arange(len(entries))
    layout = layout_of(seats.layout.people[nodes], seats.layout.tracks[nodes])
    own_seats = np.repeat(free, seats.layout.people * seats.layout.tracks)
    own_counts = np.repeat(free, seats.layout.tracks + 1)
    part = Seats(
        layout=layout,
        person_start=np.concatenate([[0], np.cumsum(layout.people)]),
        seat=seat[own_seats],
        count=seats.count[own_counts],
        normalised=seats.constant[nodes],
        certain=seats.certain[entries],
        lift=seats.lift[entries],
        copied=seats.copied[entries],
        first=number[seats.first[inner]],
        second=number[seats.second[inner]],
        weight=seats.weight[inner],
        offset=seats.offset[inner],
        llr=seats.llr,
    )
    return part, entries


@nb.njit(cache=True, nogil=True)
def score(net, e, s, here, there):  # type: ignore[no-untyped-def]
    """What slot s of entry e adds, with its person here and, at the far end, there."""
    mine, far = net.tracks[net.node[e]], net.tracks[net.node[net.other[s]]]
    if here >= mine or there >= far:
        return 0.0
    step = there * mine + here if net.later[s] else here * far + there
    return net.weight[net.link[s]] * net.llr[net.offset[net.link[s]] + step]


@nb.njit(cache=True, nogil=True)
def conditional(net, place, i, table):  # type: ignore[no-untyped-def]
    """Fill table (P, K): the seats of conversation i, all others being where they are."""
    for p in range(net.people[i]):
        e = net.person_start[i] + p
        for k in range(net.tracks[i]):
            table[p, k] = net.seat[net.seat_start[i] + p * net.tracks[i] + k]
        for s in range(net.start[e], net.start[e + 1]):
            there = place[net.other[s]]
            for k in range(net.tracks[i]):
                table[p, k] += score(net, e, s, k, there)


@nb.njit(cache=True, nogil=True)
def _fold(net, place, free, fresh):  # type: ignore[no-untyped-def]
    """Add to the seats of free conversations what those at their places say."""
    for e in range(len(net.node)):
        i = net.node[e]
        if not free[i]:
            continue
        own = net.seat_start[i] + (e - net.person_start[i]) * net.tracks[i]
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            if not free[net.node[f]]:
                for k in range(net.tracks[i]):
                    fresh[own + k] += score(net, e, s, k, place[f])


@nb.njit(cache=True, nogil=True)
def _values(net, place, found):  # type: ignore[no-untyped-def]
    for i in range(len(net.people)):
        own = net.seat[net.seat_start[i] : net.seat_start[i + 1]]
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        here = place[net.person_start[i] : net.person_start[i + 1]]
        found[i] = value(own.reshape(net.people[i], net.tracks[i]), terms, here)
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            if not net.later[s]:
                found[net.node[e]] += score(net, e, s, place[e], place[net.other[s]])
