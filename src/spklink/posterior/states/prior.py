"""What participant lists say before anybody listens: the value of every state of a conversation.

A certain person is absent with the rate of list errors, a possible one present with a probability
of his own, an unknown one (`?`) is somebody. A track without a listed person holds someone else.
With n of the listed people present, on any n of the K tracks, all placements alike,

    prior = product over the present of P(present) x product over the absent of P(absent)
            x (K - n)! / K! x the unknown people that K - n strangers can be, normalised,

which is a matching with a term for the number seated (module `matching`). Someone else takes the
place of whoever is absent; an open list (`*`) merely may have more tracks than entries.

What somebody knows about a track (`Said`) is believed as far as its probability goes, or as far as
the lists are where it has none: a known channel may be as wrong as a list. What somebody heard who
listened to the recording is so.
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
# Of r / (o (1 - r)^2) (`copies`): a is then three times b, which tells one track from two.
MOST_SPLIT = 3.0 / 16.0
SURE = 1e-9  # probabilities of possible people, and of known channels, stay as far from 0 and 1


@dataclass(frozen=True)
class Said:
    """What somebody knows about a track: who is on it, with a probability."""

    conversation: int
    track: int
    person: int  # place in the participant list; -1 for someone else
    probability: float
    heard: bool = False  # by somebody who listened: not to be doubted


@dataclass(frozen=True)
class SeatPrior:
    """The values of all seats, conversation by conversation; index conventions as in `seats`."""

    seat: Floats  # (sum of people x tracks,)
    count: Floats  # (sum of tracks + 1,)
    lift: Floats  # (entries,) see `Seats`
    copied: Floats


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
    conversations: Conversations,
    rate: float,
    must: float,
    said: list[Said] | None = None,
    *,
    twice: bool = False,
) -> SeatPrior:
    """Priors of all conversations. With a rate of list errors of 0 nobody certain is absent: the
    value `must`, larger than all that scores can say, keeps them seated. `twice`: everybody is
    listed twice, and split as often as the table says."""
    listing, tracks = conversations.listing, conversations.sides.counts
    layout = layout_of(listing.counts, tracks)
    chance = np.clip(conversations.presence, SURE, 1.0 - SURE)
    certain = ~conversations.possible
    sure = must if rate <= 0.0 else np.log1p(-rate) - np.log(rate)
    weight = np.where(certain, sure, np.log(chance) - np.log1p(-chance))
    lift, copied = np.zeros((2, len(weight)))
    if twice:
        weight, lift, copied = _twice(conversations, weight)
    seat = np.repeat(weight, tracks[listing.conversation])
    seat += _orientation(conversations, layout, twice)
    count = _counts(tracks, conversations.unknown, rate)
    if rate <= 0.0:  # what `must` adds to those who are there is taken off again
        owed = np.bincount(listing.conversation, certain, len(conversations))
        count -= must * np.repeat(owed, tracks + 1)
    for one in said or []:
        if one.heard or (rate <= 0.0 and one.probability in (0.0, 1.0)):
            _obey(layout, seat, count, one, must, twice)
        else:
            _believe(layout, seat, count, one, rate, twice)
    return SeatPrior(seat, count, lift, copied)


def normalising(layout: SeatLayout, seat: Floats, count: Floats) -> Floats:
    """(M,) what makes the prior of each conversation sum to one."""
    constant = np.empty(len(layout.people))
    _normalise(
        *(layout.people, layout.tracks, layout.seat_start, layout.count_start),
        *(seat, count, constant),
    )
    return constant


def _twice(conversations: Conversations, odds: Floats) -> tuple[Floats, Floats, Floats]:
    """(entries,) the weights of people and of their copies, from the odds of the former; what is
    added to both where he must be there: with a + b for himself, a b / (a + b) for the copy, nobody
    is there as a copy alone; and log b / a of the copies."""
    listing = conversations.listing
    half = listing.counts[listing.conversation] // 2
    person = listing.position < half
    own = np.flatnonzero(person)
    copy = own + half[own]
    weight, (lift, copied) = odds.copy(), np.zeros((2, len(odds)))
    weight[own], weight[copy] = split_weights(odds[own], conversations.split)
    copied[copy] = weight[copy] - weight[own]
    more = np.log1p(np.exp(copied[copy]))
    certain = ~conversations.possible[own]
    lift[own], lift[copy] = np.where(certain, more, 0.0), np.where(certain, -more, 0.0)
    return weight, lift, copied


def split_weights(odds: Floats, rate: float) -> tuple[Floats, Floats]:
    """Log of the weights a and b of people and their copies (`copies`), from the log of the odds
    that the people are there."""
    limit = MOST_SPLIT * np.exp(np.minimum(odds, 50.0))
    # The largest r of which the roots are far enough apart: r / (1 - r)^2 = limit.
    largest = 2.0 * limit / (2.0 * limit + 1.0 + np.sqrt(4.0 * limit + 1.0))
    r = np.minimum(rate, largest)
    x = r / (1.0 - r) ** 2 * np.exp(-np.clip(odds, -600.0, 600.0))
    root = (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * x, 0.0))) / 2.0
    a = odds + np.log1p(-r) + np.log(root)
    return a, np.asarray(odds + np.log(r) - a)


def _orientation(conversations: Conversations, layout: SeatLayout, twice: bool) -> Floats:
    """What the column `prior` adds to every seat: half of it to each of two people, so that both
    together have all of it; what cues, frequent voices and voices known from elsewhere add."""
    added = np.zeros(int(layout.seat_start[-1]))
    with np.errstate(divide="ignore"):
        for m in np.flatnonzero(conversations.prior != 0.5):
            listed = float(conversations.prior[m])
            as_listed, other = 0.5 * np.log(2.0 * np.array([listed, 1.0 - listed]))
            in_order = np.tile(np.eye(2, dtype=bool), (2 if twice else 1, 1))
            layout.seats(added, int(m))[:] = np.where(in_order, as_listed, other)
    for seats in (conversations.cues, conversations.sums, conversations.elsewhere):
        if len(seats):
            added += repeated(seats, layout) if twice else seats
    return added


def repeated(seats: Floats, layout: SeatLayout) -> Floats:
    """What is added to people is added to their copies alike."""
    once = layout_of(layout.people // 2, layout.tracks)
    parts = [once.seats(seats, m) for m in range(len(layout.people))]
    return np.concatenate([part.ravel() for part in parts for _ in range(2)])


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


def _rows(seats: Floats, person: int, twice: bool) -> Ints:
    """Where somebody stands among the people of a conversation: himself, and his copy."""
    if person < 0:
        return np.zeros(0, np.int64)
    return np.array([person, person + len(seats) // 2] if twice else [person])


def _obey(
    layout: SeatLayout, seat: Floats, count: Floats, said: Said, must: float, twice: bool
) -> None:
    """Forbid all states of one conversation in which what was said is not so."""
    seats, counts = layout.seats(seat, said.conversation), layout.counts(count, said.conversation)
    meant = _rows(seats, said.person, twice)
    if said.probability == 0.0:
        seats[meant, said.track] = -np.inf
        return
    seats[np.setdiff1d(np.arange(len(seats)), meant), said.track] = -np.inf
    if len(meant):
        if not twice:
            elsewhere = np.arange(seats.shape[1]) != said.track
            seats[said.person, elsewhere] = -np.inf
        seats[meant, said.track] += must  # of which one is on the track
        counts -= must


def _believe(
    layout: SeatLayout, seat: Floats, count: Floats, said: Said, rate: float, twice: bool
) -> None:
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
    meant = _rows(seats, said.person, twice)
    seats[meant, said.track] += _more(wanted, float(person[meant, said.track].sum()))


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
