"""The best state of everything that can be found: conversation after conversation, with restarts.

One conversation given all others is a matching whose best state is known exactly (`matching`), so
climbing takes steps over all of its states at once, permutations included. It ends where no single
conversation can be bettered. To get further, regions are emptied and seated anew, and two people
are exchanged in all their common conversations; whatever is better is kept. Nothing here proves an
optimum: exact methods and certificates do.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.exchange import exchanged
from spklink.posterior.states.matching import best, draw, value
from spklink.posterior.states.products import draw_quickly
from spklink.posterior.states.seats import Places, Seats, conditional

LEAST = 1e-9  # gain that rounding could not feign, relative to the values at hand
KICKS = 200  # regions emptied and seated anew, at most one a conversation
REGION = 12  # conversations
COOLING = 40  # sweeps, from hot to cold
HOT = 8.0  # temperature at which cooling begins
WARM_WORK = 4e6  # slots of all sweeps together, beyond which nothing is cooled
EAGER = 50.0  # log-odds for being there, with which states are grown


def find_best(seats: Seats, start: Places | None = None, *, seed: int = 0) -> Places:
    """The best state found; `start` may be a good guess."""
    rng = np.random.default_rng(seed)
    starts = [] if start is None else [start.astype(np.int64)]
    starts += _grown(seats, rng)
    if COOLING * len(seats.slots.link) <= WARM_WORK:
        starts += [cooled(seats, one, rng) for one in starts]
    tops = [climbed(seats, one) for one in starts]
    place = max(tops, key=lambda one: seats.value(one))
    place = _kicked(seats, place, rng)
    while exchanged(seats, place, LEAST):
        place = climbed(seats, place)
    return place


def climbed(seats: Seats, place: Places) -> Places:
    """The nearest state that no single conversation can better."""
    found = place.copy()
    _climb(seats.arrays, found, np.ones(len(seats), np.bool_))
    return found


def _grown(seats: Seats, rng: np.random.Generator) -> list[Places]:
    """States grown from nothing, with everybody eager to be there: where nobody is, nobody gains
    by being the first. The most linked conversations first, and in a random order."""
    nowhere = seats.layout.tracks[seats.node].astype(np.int64)
    links = np.bincount(seats.node, np.diff(seats.slots.start), len(seats))
    eager = seats.arrays._replace(seat=seats.seat + EAGER)
    grown = []
    for order in (np.argsort(-links, kind="stable"), rng.permutation(len(seats))):
        place = nowhere.copy()
        _seat(eager, place, _outward(seats, order))
        grown.append(place)
    return grown


def cooled(seats: Seats, place: Places, rng: np.random.Generator) -> Places:
    """A state drawn conversation by conversation while the temperature falls to nothing."""
    found = place.copy()
    widest = int(max(seats.layout.people.max(initial=0), seats.layout.tracks.max(initial=0)))
    for sweep in range(COOLING):
        heat = HOT * (1.0 - sweep / COOLING) ** 2 + 0.05
        chance = rng.random((len(seats), widest))
        _sweep(seats.arrays, found, heat, chance)
    return found


def _outward(seats: Seats, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Conversations in an order in which each, if it can, follows one that it is linked to."""
    slots, node = seats.slots, seats.node
    found = _breadth_first(seats.person_start, slots.start, slots.other, node, order)
    return np.asarray(found, np.int64)


def _kicked(seats: Seats, place: Places, rng: np.random.Generator) -> Places:
    """What is better after emptying regions and answer them anew."""
    nowhere = seats.layout.tracks[seats.node].astype(np.int64)
    slots, kept = seats.slots, place.copy()
    eager = seats.arrays._replace(seat=seats.seat + EAGER)
    rounds = min(KICKS, len(seats))
    for origin in rng.permutation(len(seats))[:rounds]:
        region = _region(seats.person_start, slots.start, slots.other, seats.node, origin, REGION)
        _retry(seats.arrays, eager, kept, nowhere, rng.permutation(region))
    return kept


@nb.njit(cache=True, nogil=True)
def _breadth_first(person_start, start, other, node, order):  # type: ignore[no-untyped-def]
    n = len(person_start) - 1
    found, seen, end = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
    for first in order:
        if seen[first]:
            continue
        head = end
        found[end], seen[first] = first, True
        end += 1
        while head < end:
            i = found[head]
            head += 1
            for e in range(person_start[i], person_start[i + 1]):
                for s in range(start[e], start[e + 1]):
                    j = node[other[s]]
                    if not seen[j]:
                        seen[j] = True
                        found[end] = j
                        end += 1
    return found


@nb.njit(cache=True, nogil=True)
def _region(person_start, start, other, node, origin, most):  # type: ignore[no-untyped-def]
    """The conversations around one, nearest first."""
    found = [origin]
    head = 0
    while head < len(found) and len(found) < most:
        i = found[head]
        head += 1
        for e in range(person_start[i], person_start[i + 1]):
            for s in range(start[e], start[e + 1]):
                j = node[other[s]]
                if len(found) < most and j not in found:
                    found.append(j)
    return np.array(found)


@nb.njit(cache=True, nogil=True)
def _best_of(net, place, i, fresh):  # type: ignore[no-untyped-def]
    """What conversation i gains by its best state, all others where they are; fills fresh (P,)."""
    table = np.empty((net.people[i], net.tracks[i]))
    conditional(net, place, i, table)
    terms = net.count[net.count_start[i] : net.count_start[i + 1]]
    most = best(table, terms, fresh)
    now = value(table, terms, place[net.person_start[i] : net.person_start[i + 1]])
    return most - now if now > -np.inf else np.inf


@nb.njit(cache=True, nogil=True)
def _seat(net, place, order):  # type: ignore[no-untyped-def]
    """Give the conversations, in this order, their best states."""
    for i in order:
        fresh = np.empty(net.people[i], np.int64)
        _best_of(net, place, i, fresh)
        place[net.person_start[i] : net.person_start[i + 1]] = fresh


@nb.njit(cache=True, nogil=True)
def _sweep(net, place, heat, chance):  # type: ignore[no-untyped-def]
    """Draw every conversation from its distribution given all others, at this temperature."""
    for i in range(len(net.people)):
        table = np.empty((net.people[i], net.tracks[i]))
        conditional(net, place, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        own = place[net.person_start[i] : net.person_start[i + 1]]
        if not draw_quickly(table / heat, terms / heat, chance[i], own):
            draw(table / heat, terms / heat, chance[i], own)


@nb.njit(cache=True, nogil=True)
def _climb(net, place, dirty):  # type: ignore[no-untyped-def]
    """Give every conversation its best state until none gains; returns what was gained."""
    gained, moving = 0.0, True
    while moving:
        moving = False
        for i in range(len(net.people)):
            if not dirty[i]:
                continue
            dirty[i] = False
            fresh = np.empty(net.people[i], np.int64)
            gain = _best_of(net, place, i, fresh)
            if not gain > LEAST:
                continue
            moving = True
            gained += gain
            for p in range(net.people[i]):
                e = net.person_start[i] + p
                if place[e] != fresh[p]:
                    place[e] = fresh[p]
                    for s in range(net.start[e], net.start[e + 1]):
                        dirty[net.node[net.other[s]]] = True
    return gained


@nb.njit(cache=True, nogil=True)
def _retry(net, eager, place, nowhere, region):  # type: ignore[no-untyped-def]
    """Seat a region anew in the given order, and keep it where that is better."""
    before = place.copy()
    for i in region:
        for e in range(net.person_start[i], net.person_start[i + 1]):
            place[e] = nowhere[e]
    _seat(eager, place, region)
    dirty = np.zeros(len(net.people), np.bool_)
    for i in region:
        dirty[i] = True
    for e in range(len(net.node)):
        if place[e] != before[e]:
            for s in range(net.start[e], net.start[e + 1]):
                dirty[net.node[net.other[s]]] = True
    _climb(net, place, dirty)
    if _difference(net, before, place) <= LEAST:
        place[:] = before


@nb.njit(cache=True, nogil=True)
def _difference(net, before, after):  # type: ignore[no-untyped-def]
    """By how much a state is better than another: conversation after conversation is exchanged, so
    that all that they share cancels exactly."""
    gain, mixed = 0.0, before.copy()
    for i in range(len(net.people)):
        changed = False
        for e in range(net.person_start[i], net.person_start[i + 1]):
            changed |= before[e] != after[e]
        if not changed:
            continue
        table = np.empty((net.people[i], net.tracks[i]))
        conditional(net, mixed, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        own = slice(net.person_start[i], net.person_start[i + 1])
        was = value(table, terms, before[own])
        gain += value(table, terms, after[own]) - was
        mixed[own] = after[own]
    return gain
