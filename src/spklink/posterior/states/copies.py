"""One person on two tracks of a conversation, as when a diarizer has split a voice.

Whoever may be split is listed twice: as himself and as a *copy*, each on a track of its own or
nowhere, both with the same links. Inference then needs nothing new. Of the two only the set of
tracks they take means something, so with s_k all that speaks for track k, and weights a and b,

    nowhere 1,   on track k alone (a + b) s_k,   on tracks k and l  2 a b s_k s_l,

which is a person who is there with odds o and, if so, split with probability r, where
a + b = o (1 - r) and a b = o r: there are 2 a b (K - n)! / K! ways for each unordered pair, as it
should be. The roots are real unless he is improbable and r is large; r is then made smaller for him
(`prior.MOST_SPLIT`). Tracks of one recording are not compared with each other: how alike they sound
through one microphone says little about people, and calibration was learned between recordings.

What is believed of both is believed of the person again (`Split`): on a track are either of the
two, and from P(himself somewhere) = S a / (a + b) + D, P(copy somewhere) = S b / (a + b) + D, where
S and D are the probabilities of one and of two tracks, follows that of being nowhere.

Conventions: the list of a conversation of P people has its copies at P, P + 1, … in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.links import Links
from spklink.database.lists import MOST_PLACED
from spklink.database.sides import numbered
from spklink.errors import SpklinkError
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.seats import Places, Seats
from spklink.posterior.states.solve import SeatBeliefs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Doubled:
    """A database in which everybody is listed twice, and where entries went."""

    table: Conversations
    links: Links
    own: Ints  # (entries of the table as it was,)
    copy: Ints


def doubled(table: Conversations, links: Links) -> Doubled:
    """Everybody listed twice."""
    _refuse_many(table)
    listing = table.listing
    counts, node = listing.counts, listing.conversation
    own = np.arange(len(table.people)) + listing.start[:-1][node]
    copy = own + counts[node]
    people, presence = (np.empty(2 * len(own), a.dtype) for a in (table.people, table.presence))
    possible, candidate = np.ones((2, 2 * len(own)), np.bool_)
    for at in (own, copy):
        people[at], presence[at] = table.people, table.presence
        candidate[at] = table.candidate
    possible[own] = table.possible
    twice = replace(
        table,
        listing=numbered((2 * counts).tolist()),
        people=people,
        presence=presence,
        possible=possible,
        candidate=candidate,
    )
    return Doubled(twice, _four_times(links, counts), own, copy)


def _four_times(links: Links, counts: Ints) -> Links:
    """Both of a person, here and there: four blocks of links, each in the order of all."""
    first, second = (
        position.astype(np.int64) for position in (links.position_first, links.position_second)
    )
    more_first = first + counts[links.first[links.pair]]
    more_second = second + counts[links.second[links.pair]]
    return replace(
        links,
        pair=np.tile(links.pair, 4),
        position_first=np.concatenate([first, first, more_first, more_first]),
        position_second=np.concatenate([second, more_second, second, more_second]),
        calls=np.tile(links.calls, 4),
    )


def _refuse_many(table: Conversations) -> None:
    people, tracks = table.listing.counts, table.sides.counts
    many = np.flatnonzero(np.minimum(2 * people, tracks) > MOST_PLACED)
    if len(many):
        m = int(many[0])
        raise SpklinkError(
            f"{table.path}: {table.place(m)}: conversation {table.ids[m]!r} has {people[m]} named "
            f"participants on {tracks[m]} tracks; with --split-speakers at most "
            f"{MOST_PLACED // 2} people or {MOST_PLACED} tracks can be placed"
        )


@dataclass(frozen=True)
class Split:
    """The states of a database in which everybody is listed twice."""

    seats: Seats
    where: Doubled
    # (entries as they were,) second tracks in the best state, once there is one
    again: Places = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def share(self) -> Floats:
        """(entries as they were,) b / a."""
        return np.asarray(np.exp(self.seats.copied[self.where.copy]))

    def places(self, place: Places, again: Places) -> Places:
        """Those of people and copies in one array."""
        found = np.empty(2 * len(place), np.int64)
        found[self.where.own], found[self.where.copy] = place, again
        return found

    def ways(self, place: Places, again: Places) -> Floats:
        """(entries as they were,) log of what all states together, in which people are on these
        tracks, are worth beside the one in which the copy has the second track or none."""
        nowhere = self.seats.layout.tracks[self.seats.node[self.where.own]]
        one, two = place < nowhere, again < nowhere
        return np.where(two, np.log(2.0), np.where(one, np.log1p(self.share), 0.0))

    def folded(self, found: SeatBeliefs, narrow: Seats) -> tuple[SeatBeliefs, Split]:
        """Beliefs about people, from those about them and their copies."""
        nowhere = narrow.layout.tracks[narrow.node].astype(np.int64)
        one, two = found.place[self.where.own], found.place[self.where.copy]
        both = (one < nowhere) & (two < nowhere)
        place, again = np.minimum(one, two), np.where(both, np.maximum(one, two), nowhere)
        guess, low, high = self._events(found, narrow)
        pairs = None if found.both is None else found.both.reshape(4, -1).sum(axis=0)
        beliefs = replace(found, place=place, guess=guess, low=low, high=high, both=pairs)
        return beliefs, replace(self, again=again)

    def on_tracks(self, values: Floats, narrow: Seats) -> Floats:
        """(places and sides of the table as it was,) that people or their copies are there. (Of
        people who are nowhere this says nothing.)"""
        own, copy = self._places(narrow)
        sides = Events(self.seats).stranger(values)
        return np.concatenate([values[own] + values[copy], sides])

    def _places(self, narrow: Seats) -> tuple[Ints, Ints]:
        """(places as they were,) those of people, and of their copies."""
        size = narrow.layout.tracks[narrow.node] + 1
        start = self.seats.place_start
        return ranges(start[self.where.own], size), ranges(start[self.where.copy], size)

    def _events(self, found: SeatBeliefs, narrow: Seats) -> tuple[Floats, Floats, Floats]:
        """(events of the table as it was,) a guess and both ends."""
        share, (own, copy) = self.share, self._places(narrow)
        nowhere = narrow.place_start[1:] - 1
        rest = slice(Events(self.seats).places, None)

        def events(mine: Floats, other: Floats) -> Floats:
            """One end; of what is subtracted the other one."""
            places = mine[own] + mine[copy]
            away, without = mine[own[nowhere]], other[copy[nowhere]]
            places[nowhere] = 1.0 - ((1.0 - away) - share * (1.0 - without)) / (1.0 - share)
            return np.concatenate([np.clip(places, 0.0, 1.0), mine[rest]])

        low, high = events(found.low, found.high), events(found.high, found.low)
        return np.clip(events(found.guess, found.guess), low, high), low, high
