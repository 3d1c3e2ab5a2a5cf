"""What is believed about conversations: where people are, which tracks are strangers', which lists
are right; each with a low and a high end that promise what the certainty says (module
`inference.beliefs`).

The events of all conversations stand in one array, so that whatever narrows them does it once:
first the places of every entry (tracks + 1 each, the last one for nowhere), then whether someone
else is on a side, then whether all certain people of a list are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.matching import log_sum, marginals
from spklink.posterior.states.seats import Places, Seats, conditional

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Events:
    """Where the events of some conversations stand."""

    seats: Seats

    @property
    def places(self) -> int:
        return int(self.seats.place_start[-1])

    @property
    def sides(self) -> int:
        return int(self.seats.layout.tracks.sum())

    @property
    def count(self) -> int:
        return self.places + self.sides + len(self.seats)

    @cached_property
    def track_start(self) -> Ints:
        """(n + 1,) where the sides of a conversation begin among all sides."""
        return np.concatenate([[0], np.cumsum(self.seats.layout.tracks)])

    @cached_property
    def node(self) -> Ints:
        """(events,) the conversation of each."""
        layout, nodes = self.seats.layout, np.arange(len(self.seats))
        of_places = np.repeat(nodes, layout.people * (layout.tracks + 1))
        return np.concatenate([of_places, np.repeat(nodes, layout.tracks), nodes])

    def at(self, place: Places) -> Ints:
        """(entries,) the events that everybody is at his place."""
        return np.asarray(self.seats.place_start[:-1] + place)

    def person(self, values: Floats) -> Floats:
        return values[: self.places]

    def stranger(self, values: Floats) -> Floats:
        return values[self.places : self.places + self.sides]

    def right(self, values: Floats) -> Floats:
        return values[self.places + self.sides :]


@dataclass(frozen=True)
class Marginals:
    """Beliefs about the events of some conversations."""

    method: str
    certainty: str
    place: Places  # (entries,) the best state found
    proved: bool  # it is a best one
    guess: Floats  # (events,)
    low: Floats
    high: Floats
    log_sum: tuple[float, float]  # of all states; (-inf, inf): unknown
    reason: str = ""

    def narrow(self, events: Ints, low: Floats, high: Floats, guess: Floats) -> None:
        """Take in another interval about some events, in place."""
        self.low[events] = np.maximum(self.low[events], low)
        self.high[events] = np.minimum(self.high[events], high)
        self.guess[events] = np.clip(guess, self.low[events], self.high[events])


def conditionals(seats: Seats, place: Places) -> tuple[Floats, Floats]:
    """(events,) probabilities of all events of every conversation, all others being at their
    places; and (n,) the log of the sum over its states, with its own part of the constant."""
    events = Events(seats)
    found, sums = np.zeros(events.count), np.zeros(len(seats))
    person, track, right = events.person(found), events.stranger(found), events.right(found)
    all_conditionals(seats.arrays, place, events.track_start, person, track, right, sums)
    return found, sums


@nb.njit(cache=True, nogil=True)
def chance_right(table, terms, certain, lift):  # type: ignore[no-untyped-def]
    """How probable it is that nobody certain is absent, of a conversation by itself."""
    most, sure = 1000.0, 0
    for n in range(len(terms)):
        if terms[n] > -np.inf:
            most = max(most, 1000.0 + 2.0 * abs(terms[n]))
    for p in range(len(table)):
        for k in range(table.shape[1]):
            if table[p, k] > -np.inf:
                most = max(most, 1000.0 + 2.0 * len(table) * abs(table[p, k]))
        sure += certain[p]
    if sure == 0:
        return 1.0
    pulled = table.copy()
    for p in range(len(table)):
        pulled[p] += lift[p]
        if certain[p]:
            pulled[p] += most  # so much that nobody certain stays away if he can be there
    return np.exp(log_sum(pulled, terms) - sure * most - log_sum(table, terms))


@nb.njit(cache=True, nogil=True)
def all_conditionals(net, place, track_start, person, track, right, sums):  # type: ignore[no-untyped-def]
    """Fill the events of every conversation given all others."""
    for i in range(len(net.people)):
        table = np.empty((net.people[i], net.tracks[i]))
        conditional(net, place, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        sums[i] = one_conditional(net, i, table, terms, track_start, person, track, right)


@nb.njit(cache=True, nogil=True)
def one_conditional(net, i, table, terms, track_start, person, track, right):  # type: ignore[no-untyped-def]
    """Fill the events of one conversation whose seats are `table`."""
    first, wide = net.person_start[i], net.tracks[i] + 1
    here = person[net.place_start[first] : net.place_start[first] + net.people[i] * wide]
    others = track[track_start[i] : track_start[i + 1]]
    whole = marginals(table, terms, here.reshape(net.people[i], wide), others)
    last = first + net.people[i]
    sure, lift = net.certain[first:last], net.lift[first:last]
    right[i] = min(chance_right(table, terms, sure, lift), 1.0)
    return whole
