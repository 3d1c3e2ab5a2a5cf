"""Bounds on the odds that a person is not at his place, in databases of any shape (Peierls).

Everything counts moves from one state of everything, which should be the best. A person who moved
belongs to a set K of conversations that are not as in that state and are held together by links
that gain by both of their ends moving; taking all of K back maps states one to one, so his odds are
at most the summed weights of all such K. With the gain of every link shared between its ends, by
where each end moved to, any solution of

    odds[e] >= sum over the states of e's conversation in which e moved, of exp(-cost of the state)
               times exp(share) (1 + odds[f]) for all links of moved people, f at their far ends

bounds those sums, by induction over the size of K (Kotecky and Preiss). The sum over states is a
matching with other seats (`matching`), whatever the number of tracks: F(odds) <= odds is all that
is needed, and it is checked. Where no solution is found the conversation is given up: it may do
what is worst for its neighbours (odds infinite, all gain of a link on the neighbour's side).

The bounds hold whether or not the state is the best, whatever the conversations given up do, and
when any conversations are fixed as in the state. Index conventions as in `seats`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.matching import log_sum, marginals, value
from spklink.posterior.states.seats import Places, Seats, conditional, score

Floats = NDArray[np.float64]
SWEEPS = 200  # in search of a solution
HOPELESS = 30.0  # odds at which a conversation is given up
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Moves:
    """What moving from a state costs, gains and how probable it can be at most."""

    seats: Seats
    place: Places  # (entries,) the state
    share: Floats  # (slots x places,) half of the most that a link gains by a move of this end
    error: Floats  # (n,) rounding, in log-probabilities
    odds: Floats  # (entries,) bounds; inf in conversations given up
    any_odds: Floats  # (n,) bounds on the odds that anybody of a conversation moved

    @property
    def chance(self) -> Floats:
        """(entries,) bounds on the probability that a person moved."""
        return np.where(np.isinf(self.odds), 1.0, self.odds / (1.0 + np.minimum(self.odds, 1e300)))


def bound_moves(seats: Seats, place: Places) -> Moves:
    """Bounds on all moves from a state."""
    share = np.zeros(len(seats.slots.link) * _widest(seats))
    error = np.zeros(len(seats))
    net = seats.arrays
    _share(net, place, _widest(seats), share, error)
    given_up, before = np.zeros(len(seats), np.bool_), -1
    odds = np.zeros(len(seats.node))
    while given_up.sum() > before:  # once more without what those given up had stirred up
        before = int(given_up.sum())
        odds = np.where(given_up[seats.node], np.inf, 0.0)
        _spread(net, place, _widest(seats), share, error, odds, given_up)
    any_odds = np.zeros(len(seats))
    np.add.at(any_odds, seats.node, odds)
    any_odds[given_up] = np.inf
    return Moves(seats, place, share, error, odds, any_odds)


def _widest(seats: Seats) -> int:
    """Places that every slot has room for."""
    return int(seats.layout.tracks.max(initial=0)) + 1


def reaches(moves: Moves, lost: NDArray[np.bool_]) -> Floats:
    """(n,) log of the most that the states of a conversation together can be, beside its present
    one: gains to the lost ones shared, and all gains to those that are not lost its own."""
    found = np.zeros(len(moves.seats))
    _reach(moves.seats.arrays, moves.place, _widest(moves.seats), moves.share, lost, found)
    return found + moves.error


@nb.njit(cache=True, nogil=True)
def _gain(net, e, s, here, there, k, l):  # type: ignore[no-untyped-def]  # noqa: E741
    """What moving both ends of a slot gains over moving each alone."""
    both = score(net, e, s, k, l) + score(net, e, s, here, there)
    return both - score(net, e, s, k, there) - score(net, e, s, here, l)


@nb.njit(cache=True, nogil=True)
def _share(net, place, wide, share, error):  # type: ignore[no-untyped-def]
    """Fill the shares; and what rounding can do to the values of a conversation."""
    for e in range(len(net.node)):
        i = net.node[e]
        size = 0.0
        for k in range(net.tracks[i]):
            own = net.seat[net.seat_start[i] + (e - net.person_start[i]) * net.tracks[i] + k]
            if own > -np.inf:
                size = max(size, abs(own))
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            largest = 0.0
            for k in range(net.tracks[i] + 1):
                if k == place[e]:
                    continue
                most = 0.0
                for l in range(net.tracks[net.node[f]] + 1):  # noqa: E741
                    largest = max(largest, abs(score(net, e, s, k, l)))
                    if l != place[f]:
                        most = max(most, _gain(net, e, s, place[e], place[f], k, l))
                share[s * wide + k] = 0.5 * most
            size += 4.0 * largest
        slots = net.start[e + 1] - net.start[e]
        error[i] += 4.0 * EPSILON * (slots + 16) * size
    for i in range(len(net.people)):
        for n in range(net.count_start[i], net.count_start[i + 1]):
            if net.count[n] > -np.inf:
                error[i] += 16.0 * EPSILON * abs(net.count[n])


@nb.njit(cache=True, nogil=True)
def _stirred(net, place, wide, share, odds, given_up, i, table):  # type: ignore[no-untyped-def]
    """Fill table (P, K) with the seats of conversation i as F has them, relative to nowhere;
    returns what nowhere is worth for all people together, and the value of the present state."""
    conditional(net, place, i, table)
    terms = net.count[net.count_start[i] : net.count_start[i + 1]]
    now = value(table, terms, place[net.person_start[i] : net.person_start[i + 1]])
    base = 0.0
    extra = np.zeros(net.tracks[i] + 1)
    for p in range(net.people[i]):
        e = net.person_start[i] + p
        extra[:] = 0.0
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            lost = given_up[net.node[f]]
            more = 0.0 if lost else np.log1p(odds[f])
            for k in range(net.tracks[i] + 1):
                own = share[s * wide + k]
                if own > 0.0:
                    extra[k] += 2.0 * own if lost else own + more
        nowhere = extra[net.tracks[i]] if place[e] != net.tracks[i] else 0.0
        base += nowhere
        for k in range(net.tracks[i]):
            table[p, k] += (extra[k] if k != place[e] else 0.0) - nowhere
    return base, now


@nb.njit(cache=True, nogil=True)
def _spread(net, place, wide, share, error, odds, given_up):  # type: ignore[no-untyped-def]
    """Raise the odds until F(odds) <= odds everywhere; give up where that does not end."""
    dirty = np.ones(len(net.people), np.bool_)
    sweep, moving = 0, True
    while moving:
        moving = False
        for i in range(len(net.people)):
            if not dirty[i] or given_up[i]:
                continue
            dirty[i] = False
            if _raise(net, place, wide, share, error, odds, given_up, i, sweep >= SWEEPS):
                moving = True
                for e in range(net.person_start[i], net.person_start[i + 1]):
                    for s in range(net.start[e], net.start[e + 1]):
                        dirty[net.node[net.other[s]]] = True
        sweep += 1


@nb.njit(cache=True, nogil=True)
def _raise(net, place, wide, share, error, odds, given_up, i, late):  # type: ignore[no-untyped-def]
    """Raise the odds of one conversation to F where they are below; whether they were."""
    table = np.empty((net.people[i], net.tracks[i]))
    person, track = np.empty((net.people[i], net.tracks[i] + 1)), np.empty(net.tracks[i])
    base, now = _stirred(net, place, wide, share, odds, given_up, i, table)
    terms = net.count[net.count_start[i] : net.count_start[i + 1]]
    whole = base + marginals(table, terms, person, track) - now + error[i]
    grew, hopeless = False, False
    for p in range(net.people[i]):
        e = net.person_start[i] + p
        moved = 1e-290
        for k in range(net.tracks[i] + 1):
            if k != place[e]:
                moved += person[p, k]
        fresh = np.exp(min(whole + np.log(moved), 700.0))
        if not fresh * (1.0 + 1e-12) <= odds[e]:
            odds[e] = fresh * (1.0 + 1e-6)
            grew = True
            hopeless |= late or not fresh <= HOPELESS
    if hopeless:
        given_up[i] = True
        odds[net.person_start[i] : net.person_start[i + 1]] = np.inf
    return grew


@nb.njit(cache=True, nogil=True)
def _reach(net, place, wide, share, lost, found):  # type: ignore[no-untyped-def]
    nothing = np.zeros(len(net.node))
    table_of = ~lost
    for i in range(len(net.people)):
        if not lost[i]:
            continue
        table = np.empty((net.people[i], net.tracks[i]))
        base, now = _stirred(net, place, wide, share, nothing, table_of, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        found[i] = base + log_sum(table, terms) - now
