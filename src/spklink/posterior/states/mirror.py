"""Conversations of always the same two people: an image of every state is as probable.

Exchanging the two everywhere changes nothing, so there are two best states, and no bound that
counts moves from one of them can hold. Instead one conversation is held to one of the two images
(states that are their own image, with neither of the two, count half): the sum over all states is
twice what is left, and every figure the mean of both images.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.exchange import people_of
from spklink.posterior.states.marginals import Events, Marginals
from spklink.posterior.states.seats import Places, Seats

TWO = 2
Ints = NDArray[np.int64]


def is_mirrored(seats: Seats) -> bool:
    """Whether everybody is one of two people who are always listed together, and everything that
    is known of one is known of the other."""
    layout = seats.layout
    if len(seats) < TWO or (layout.people != TWO).any() or (layout.tracks != TWO).any():
        return False
    who = people_of(seats)
    if len(np.unique(who)) != TWO:
        return False
    seat = seats.seat.reshape(-1, TWO, TWO)
    alike = seats.certain.reshape(-1, TWO)
    return bool((seat == seat[:, ::-1, :]).all() and (alike[:, 0] == alike[:, 1]).all())


def held(seats: Seats, place: Places) -> Seats:
    """The same with one conversation, the clearest, held to its present image."""
    i = _clearest(seats, place)
    here = place[seats.person_start[i] : seats.person_start[i + 1]]
    seat, count = seats.seat.copy(), seats.count.copy()
    own = seats.layout.seats(seat, i)
    track = int(here[0]) if here[0] < TWO else 1 - int(here[1])
    own[0, 1 - track] = own[1, track] = -np.inf
    seats.layout.counts(count, i)[0] -= np.log(2.0)
    return replace(seats, seat=seat, count=count, normalised=seats.constant)


def _clearest(seats: Seats, place: Places) -> int:
    """A conversation with both people there, the one with most links."""
    there = (place.reshape(-1, TWO) < TWO).sum(axis=1)
    links = np.bincount(seats.node, np.diff(seats.slots.start), len(seats))
    return int(np.lexsort((-links, -there))[0])


def both_images(seats: Seats, found: Marginals) -> Marginals:
    """Figures about one image made those about both."""
    events = Events(seats)
    places = np.arange(events.places).reshape(-1, TWO, TWO + 1)
    image = np.arange(events.count)
    image[: events.places] = places[:, ::-1, :].ravel()
    low, high = found.log_sum
    return replace(
        found,
        guess=(found.guess + found.guess[image]) / 2.0,
        low=(found.low + found.low[image]) / 2.0,
        high=(found.high + found.high[image]) / 2.0,
        log_sum=(low + np.log(2.0), high + np.log(2.0)),
    )
