"""What participant lists say before anybody listens: the value of every state of a conversation.

A certain person is absent with the rate of list errors, a possible one present with a probability
of his own, an unknown one (`?`) is somebody. A track without a listed person holds someone else.
With n of the listed people present, on any n of the K tracks, all placements alike,

    prior = product over the present of P(present) x product over the absent of P(absent)
            x (K - n)! / K! x the unknown people that K - n strangers can be, normalised,

which is a matching with a term for the number seated (module `matching`). Someone else takes the
place of whoever is absent; an open list (`*`) merely may have more tracks than entries.

What somebody knows about a track (`Said`) is believed as far as its probability goes, or as far as
the lists are where it has none: a known channel may be as wrong as a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.posterior.states.matching import log_sum, marginals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SURE = 1e-9  # probabilities of possible people, and of known channels, stay as far from 0 and 1


@dataclass(frozen=True)
class Said:
    """What somebody knows about a track: who is on it, with a probability."""

    conversation: int
    track: int
    person: int  # place in the participant list; -1 for someone else
    probability: float


@dataclass(frozen=True)
class SeatPrior:
    """The values of all seats, conversation by conversation; index conventions as in `seats`."""

    seat: Floats  # (sum of people x tracks,)
    count: Floats  # (sum of tracks + 1,)
    constant: Floats  # (M,) that makes each conversation's prior sum to one


@dataclass(frozen=True)
class SeatLayout:
    """Where the values of a conversation stand in flat arrays."""

    people: Ints  # (M,)
    tracks: Ints  # (M,)
    seat_start: Ints  # (M + 1,) of people x tracks values, people as rows
    count_start: Ints  # (M + 1,) of tracks + 1 values

    def seats(self, values: Floats, m: int) -> Floats:
        """(P, K) of one conversation, to be changed in place."""
        own = values[self.seat_start[m] : self.seat_start[m + 1]]
        return own.reshape(self.people[m], self.tracks[m])

    def counts(self, values: Floats, m: int) -> Floats:
        return values[self.count_start[m] : self.count_start[m + 1]]


def layout_of(people: Ints, tracks: Ints) -> SeatLayout:
    """The layout of conversations of so many people and tracks."""
    seats = np.concatenate([[0], np.cumsum(people * tracks)])
    return SeatLayout(people, tracks, seats, np.concatenate([[0], np.cumsum(tracks + 1)]))


def seat_prior(
    conversations: Conversations, rate: float, must: float, said: list[Said] | None = None
) -> SeatPrior:
    """Priors of all conversations. With a rate of list errors of 0 nobody certain is absent: the
    value `must`, larger than all that scores can say, keeps them seated."""
    listing, tracks = conversations.listing, conversations.sides.counts
    layout = layout_of(listing.counts, tracks)
    chance = np.clip(conversations.presence, SURE, 1.0 - SURE)
    certain = ~conversations.possible
    sure = must if rate <= 0.0 else np.log1p(-rate) - np.log(rate)
    weight = np.where(certain, sure, np.log(chance) - np.log1p(-chance))
    seat = np.repeat(weight, tracks[listing.conversation]) + _orientation(conversations, layout)
    count = _counts(tracks, conversations.unknown, rate)
    if rate <= 0.0:  # what `must` adds to those who are there is taken off again
        owed = np.bincount(listing.conversation, certain, len(conversations))
        count -= must * np.repeat(owed, tracks + 1)
    for one in said or []:
        if rate <= 0.0 and one.probability in (0.0, 1.0):
            _obey(layout, seat, count, one, must)
        else:
            _believe(layout, seat, count, one, rate)
    constant = np.empty(len(conversations))
    _normalise(
        *(layout.people, layout.tracks, layout.seat_start, layout.count_start),
        *(seat, count, constant),
    )
    return SeatPrior(seat, count, constant)


def _orientation(conversations: Conversations, layout: SeatLayout) -> Floats:
    """What the column `prior` adds to every seat: half of it to each of two people, so that both
    together have all of it."""
    added = np.zeros(int(layout.seat_start[-1]))
    with np.errstate(divide="ignore"):
        for m in np.flatnonzero(conversations.prior != 0.5):
            listed = float(conversations.prior[m])
            as_listed, other = 0.5 * np.log(2.0 * np.array([listed, 1.0 - listed]))
            layout.seats(added, int(m))[:] = np.where(np.eye(2, dtype=bool), as_listed, other)
    return added


def _counts(tracks: Ints, unknown: NDArray[np.int32], rate: float) -> Floats:
    """The terms for the number seated, of all conversations."""
    shapes, which = np.unique(np.stack([tracks, unknown]), axis=1, return_inverse=True)
    terms = [_count(int(k), int(q), rate) for k, q in shapes.T]
    return np.concatenate([terms[shape] for shape in which.reshape(-1)])


def _count(tracks: int, unknown: int, rate: float) -> Floats:
    """(K + 1,) placements of n people, and of the unknown ones among the K - n strangers."""
    n = np.arange(tracks + 1)
    strangers = tracks - n
    placements = np.array([lgamma(left + 1) for left in strangers]) - lgamma(tracks + 1)
    there, missing = np.minimum(strangers, unknown), np.maximum(unknown - strangers, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        absent = np.where(missing > 0, missing * np.log(rate), 0.0)
    return np.asarray(placements + there * np.log1p(-rate) + absent)


def _obey(layout: SeatLayout, seat: Floats, count: Floats, said: Said, must: float) -> None:
    """Forbid all states of one conversation in which what was said is not so."""
    seats, counts = layout.seats(seat, said.conversation), layout.counts(count, said.conversation)
    others = np.arange(len(seats)) != said.person
    if said.probability == 0.0:
        seats[~others, said.track] = -np.inf
        return
    seats[others, said.track] = -np.inf
    if said.person >= 0:
        elsewhere = np.arange(seats.shape[1]) != said.track
        seats[said.person, elsewhere] = -np.inf
        seats[said.person, said.track] += must
        counts -= must


def _believe(layout: SeatLayout, seat: Floats, count: Floats, said: Said, rate: float) -> None:
    """Change the seats of one conversation until what was said has its probability."""
    seats, counts = layout.seats(seat, said.conversation), layout.counts(count, said.conversation)
    chance = min(said.probability, 1.0 - max(rate, 0.0))
    wanted = np.clip(chance, SURE, 1.0 - SURE)
    person, track = np.zeros((len(seats), seats.shape[1] + 1)), np.zeros(seats.shape[1])
    marginals(seats, counts, person, track)
    if said.person < 0:
        now = track[said.track]
        seats[:, said.track] -= _more(wanted, now)
        return
    now = person[said.person, said.track]
    seats[said.person, said.track] += _more(wanted, now)


def _more(wanted: float, now: float) -> float:
    """What takes one probability to another, in log-odds; nothing helps where it is 0."""
    if not 0.0 < now < 1.0:
        return 0.0
    return float(np.log(wanted) - np.log1p(-wanted) - np.log(now) + np.log1p(-now))


@nb.njit(cache=True, nogil=True)
def _normalise(people, tracks, seat_start, count_start, seat, count, constant):  # type: ignore[no-untyped-def]
    for m in range(len(people)):
        own = seat[seat_start[m] : seat_start[m + 1]].reshape(people[m], tracks[m])
        constant[m] = -log_sum(own, count[count_start[m] : count_start[m + 1]])
