"""Bounds on the odds that a person is not at his place, in databases of any shape (Peierls).

Everything counts moves from one state of everything, which should be the best. A person with links
who is on another track than there has moved; one who is not on his is absent; a conversation in
which somebody moved has changed. Absences elsewhere are summed out (`shares`). Somebody who moved
belongs to a set K of changed conversations that are held together by people who left their places
in two of them; taking all of K back maps states one to one, so his odds are at most the summed
weights of all such K. With all gains shared between the ends of links, any solution of

    odds[e] >= sum over the states of e's conversation in which it has changed and e left his place,
               of exp(-cost of the state), times exp(share) for all links of those who left, times
               (1 + odds[f]) for all other entries f of the same people

bounds those sums, by induction over the size of K (Kotecky and Preiss). The sum over states is a
matching with other seats (`matching`), whatever the number of tracks: F(odds) <= odds is all that
is needed, and it is checked. Where no solution is found the conversation is given up: it may do
what is worst for its neighbours (odds infinite, all gain of a link on the neighbour's side).

Whoever is absent while nobody moved his entries elsewhere is so with known odds; whoever is while
somebody did, at most as often as those moves and his own rate of absence allow.

The bounds hold whether or not the state is the best, whatever the conversations given up do, and
when any conversations are fixed as in the state. People without links are summed out and have no
bounds. Index conventions as in `seats`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.states.matching import log_sum, marginals, value
from spklink.posterior.states.seats import Places, Seats
from spklink.posterior.states.shares import (
    absences,
    gain,
    hold,
    present,
    rates,
    share_out,
    slopes,
    touched,
    untouched,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SWEEPS = 200  # in search of a solution
HOPELESS = 30.0  # odds at which a conversation is given up
ROUNDS = 10  # of levelling
STEP = 0.2  # by which the share of a link changes at most in a round
FAR = 60.0  # log of odds beyond all hope


class View(NamedTuple):
    """What the kernels need to know about a state."""

    held: Floats  # (seats,) all others at their places
    now: Floats  # (n,) log-weight of being as in the state
    error: Floats  # (n,)
    group: Ints  # (entries,) which person
    extra: Floats  # (places,) shares of all links together, for every place
    given_up: Mask  # (n,)


@dataclass(frozen=True)
class Moves:
    """How probable moves from a state can be at most."""

    seats: Seats
    place: Places  # (entries,) the state
    view: View
    linked: Mask  # (entries,) people who are elsewhere, too
    chance: Floats  # (entries,) bounds on the probability that a linked person is not at his place
    worth: Floats  # (n,) log of what freeing a conversation multiplies the sum by at most

    @property
    def error(self) -> Floats:
        """(n,) rounding, in log-probabilities."""
        return self.view.error

    def raised(self, solved: Mask) -> float:
        """Log of what freeing all others multiplies the sum over those solved by at most: first
        those given up, then all whose bounds hold whatever these do."""
        lost = ~solved & self.view.given_up
        reach = np.zeros(len(solved))
        _reach(self.seats.arrays, self.place, self.view, lost, solved, reach)
        held = ~solved & ~lost
        return float(self.worth[held].sum() + np.maximum(reach[lost], 0.0).sum())


def bound_moves(seats: Seats, place: Places) -> Moves:
    """Bounds on all moves from a state."""
    search = _Search(seats, place)
    before = -1
    while search.view.given_up.sum() > before:  # without what those given up had stirred up
        before = int(search.view.given_up.sum())
        search.share()
        search.level()
        search.spread()
    return search.moves()


def groups(seats: Seats) -> Ints:
    """(entries,) which person each is, as far as links tell."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = len(seats.node)
    ones = np.ones(len(seats.first), np.int8)
    graph = coo_matrix((ones, (seats.first, seats.second)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


class _Search:
    """A solution while it is being found."""

    def __init__(self, seats: Seats, place: Places) -> None:
        self.seats, self.place, self.net = seats, place, seats.arrays
        n, entries = len(seats), len(seats.node)
        self.wide = int(seats.layout.tracks.max(initial=0)) + 1
        held, error = np.zeros(len(seats.seat)), np.zeros(n)
        hold(self.net, place, held, error)
        given_up, now = np.zeros(n, np.bool_), np.zeros(n)
        present(self.net._replace(seat=held), place, now)
        given_up |= ~np.isfinite(now)
        self.eta = np.full(entries, -np.inf)
        absences(self.net, place, error, self.eta, given_up)
        extra = np.zeros(int(seats.place_start[-1]))
        self.view = View(held, now, error, groups(seats), extra, given_up)
        self.theta = np.full(len(seats.slots.link), 0.5)
        self.rate, self.slope = np.zeros(entries), np.zeros(entries)
        self.odds, self.changed = np.zeros(entries), np.zeros(n)
        self.taken = np.zeros(len(seats.slots.link) * self.wide)

    def share(self) -> None:
        """Share all gains anew, as `theta` and those given up ask for."""
        net, view = self.net, self.view
        rates(net, self.place, self.eta, view.given_up, self.rate)
        slopes(net, self.place, self.rate, view.given_up, self.slope)
        self._share_out()

    def _share_out(self) -> None:
        known = (self.rate, self.slope, self.view.given_up, self.theta)
        share_out(self.net, self.place, self.wide, *known, self.taken)
        _add_up(self.net, self.wide, self.taken, self.view.extra)

    def level(self) -> None:
        """Move shares from the conversation with less slack to the one with more."""
        links = np.bincount(self.seats.node, np.diff(self.seats.slots.start), len(self.seats))
        for _ in range(ROUNDS):
            self.odds[:] = 0.0
            _sum_all(self.net, self.place, self.view, self.odds, self.changed)
            slack = -np.log(np.clip(self.changed, 1e-300, 1e300))
            _tilt(self.net, self.place, self.view.given_up, slack, links, self.theta)
            self._share_out()

    def spread(self) -> None:
        self.odds[:], self.changed[:] = 0.0, 0.0
        _spread(self.net, self.place, self.view, self.odds, self.changed)

    def moves(self) -> Moves:
        net, view, seats = self.net, self.view, self.seats
        entries = len(seats.node)
        lost = view.given_up[seats.node]
        alone, factor = np.zeros(entries), np.zeros(entries)
        untouched(net, self.place, self.eta, self.rate, view.given_up, alone)
        touched(net, self.place, self.wide, self.rate, view.given_up, self.taken, factor)
        odds = np.where(lost, 0.0, self.odds)
        elsewhere = sums(view.group, odds, entries)[view.group] - odds
        away = alone + factor * np.maximum(elsewhere * (1.0 + 1e-9), 0.0)
        chance = np.minimum((odds / (1.0 + odds) + away) * (1.0 + 1e-9) + 1e-300, 1.0)
        linked = np.diff(seats.slots.start) > 0
        chance[lost | ~linked] = 1.0
        with np.errstate(divide="ignore"):
            freed = np.where(linked, -np.log1p(-np.minimum(away, 1.0)), 0.0)
        worth = np.log1p(self.changed) + sums(seats.node, freed, len(seats))
        return Moves(seats, self.place, view, linked, chance, worth)


@nb.njit(cache=True, nogil=True)
def _add_up(net, wide, share, extra):  # type: ignore[no-untyped-def]
    extra[:] = 0.0
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            for k in range(net.tracks[net.node[e]] + 1):
                extra[net.place_start[e] + k] += share[s * wide + k]


@nb.njit(cache=True, nogil=True)
def _tilt(net, place, given_up, slack, links, theta):  # type: ignore[no-untyped-def]
    """Change theta as the slacks of both ends ask for."""
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            i, j = net.node[e], net.node[f]
            if i > j or given_up[i] or given_up[j]:
                continue
            size = 0.1
            for k in range(net.tracks[i]):
                for l in range(net.tracks[j]):  # noqa: E741
                    if k != place[e] and l != place[f]:
                        size = max(size, gain(net, e, s, place[e], place[f], k, l))
            step = 0.5 * (slack[i] - slack[j]) / np.sqrt(links[i] * links[j]) / size
            theta[s] = min(max(theta[s] + min(max(step, -STEP), STEP), 0.0), 1.0)
            theta[net.mirror[s]] = 1.0 - theta[s]


@nb.njit(cache=True, nogil=True)
def _stirred(net, place, view, more, i, table, still):  # type: ignore[no-untyped-def]
    """Fill table (P, K) with the seats of conversation i as F has them, relative to nowhere, and
    still with those of the states in which nobody moved; returns what nowhere is worth."""
    base = 0.0
    for p in range(net.people[i]):
        e = net.person_start[i] + p
        linked = net.start[e + 1] > net.start[e]
        at = net.place_start[e]
        nowhere = 0.0
        if linked and place[e] < net.tracks[i]:
            nowhere = view.extra[at + net.tracks[i]] + more[e]
        base += nowhere
        for k in range(net.tracks[i]):
            own = view.held[net.seat_start[i] + p * net.tracks[i] + k] - nowhere
            moved = linked and k != place[e]
            table[p, k] = own + (view.extra[at + k] + more[e] if moved else 0.0)
            still[p, k] = -np.inf if moved else own
    return base


@nb.njit(cache=True, nogil=True)
def _sum_states(net, place, view, more, i, fresh):  # type: ignore[no-untyped-def]
    """F of one conversation: fills fresh (P,); returns the odds that it has changed."""
    people, tracks = net.people[i], net.tracks[i]
    table, still = np.empty((people, tracks)), np.empty((people, tracks))
    person, track = np.empty((people, tracks + 1)), np.empty(tracks)
    base = _stirred(net, place, view, more, i, table, still) - view.now[i] + view.error[i]
    terms = net.count[net.count_start[i] : net.count_start[i + 1]]
    whole = base + marginals(table, terms, person, track)
    fresh[:] = np.inf
    if not whole < FAR:
        return np.inf
    moved, total = np.zeros(people), np.exp(whole)
    for p in range(people):
        e = net.person_start[i] + p
        if net.start[e + 1] > net.start[e]:
            for k in range(tracks):
                if k != place[e]:
                    moved[p] += total * person[p, k]
    away = total * person[:, tracks] * (1.0 + 1e-12)
    rest = np.exp(base - 2.0 * view.error[i] + marginals(still, terms, person, track))
    everybody = moved.sum()
    for p in range(people):
        e = net.person_start[i] + p
        fresh[p] = moved[p]
        if net.start[e + 1] > net.start[e] and place[e] < tracks:
            other = max(away[p] - rest * person[p, tracks] * (1.0 - 1e-12), 0.0) + 1e-12 * away[p]
            fresh[p] += min(other, everybody - moved[p] + 1e-12 * everybody)
    return min(everybody, max(total * (1.0 + 1e-12) - rest * (1.0 - 1e-12), 0.0))


@nb.njit(cache=True, nogil=True)
def _sum_all(net, place, view, odds, changed):  # type: ignore[no-untyped-def]
    """Fill changed (n,) as F has it with these odds of all others."""
    more = _others(view, net.node, odds)
    for i in range(len(net.people)):
        changed[i] = 1.0
        if not view.given_up[i]:
            changed[i] = _sum_states(net, place, view, more, i, np.empty(net.people[i]))


@nb.njit(cache=True, nogil=True)
def _others(view, node, odds):  # type: ignore[no-untyped-def]
    """(entries,) log of (1 + odds) of all other entries of the same person."""
    total = np.zeros(len(odds))
    for e in range(len(odds)):
        if not view.given_up[node[e]]:
            total[view.group[e]] += np.log1p(odds[e])
    more = np.zeros(len(odds))
    for e in range(len(odds)):
        more[e] = max(total[view.group[e]] - np.log1p(odds[e]), 0.0) * (1.0 + 1e-12)
    return more


@nb.njit(cache=True, nogil=True)
def _spread(net, place, view, odds, changed):  # type: ignore[no-untyped-def]
    """Raise the odds until F(odds) <= odds everywhere; give up where that does not end."""
    stale = np.ones(len(net.node), np.bool_)  # people whose odds grew
    sweep, moving = 0, True
    while moving:
        moving = False
        more = _others(view, net.node, odds)
        grew = np.zeros(len(net.node), np.bool_)
        for i in range(len(net.people)):
            dirty = False
            for e in range(net.person_start[i], net.person_start[i + 1]):
                dirty |= stale[view.group[e]]
            if dirty and not view.given_up[i]:
                moving |= _raise(net, place, view, more, i, odds, changed, grew, sweep >= SWEEPS)
        stale = grew
        sweep += 1


@nb.njit(cache=True, nogil=True)
def _raise(net, place, view, more, i, odds, changed, grew, late):  # type: ignore[no-untyped-def]
    """Raise the odds of one conversation to F where they are below; whether they were."""
    fresh = np.empty(net.people[i])
    any_moved = _sum_states(net, place, view, more, i, fresh)
    changed[i] = max(changed[i], any_moved * (1.0 + 1e-6))
    raised, hopeless = False, False
    for p in range(net.people[i]):
        e = net.person_start[i] + p
        if not fresh[p] * (1.0 + 1e-12) <= odds[e]:
            odds[e] = fresh[p] * (1.0 + 1e-6)
            grew[view.group[e]] = True
            raised = True
            hopeless |= late or not fresh[p] <= HOPELESS
    if hopeless:
        view.given_up[i] = True
        changed[i] = np.inf
        for e in range(net.person_start[i], net.person_start[i + 1]):
            odds[e] = 0.0
    return raised


@nb.njit(cache=True, nogil=True)
def _reach(net, place, view, lost, solved, found):  # type: ignore[no-untyped-def]
    """Fill found for the lost: log of the most that all states of a conversation weigh, gains to
    others that are lost halved, all of those to solved ones, nobody else having moved."""
    for i in range(len(net.people)):
        if not lost[i]:
            continue
        table, base = np.empty((net.people[i], net.tracks[i])), 0.0
        for p in range(net.people[i]):
            e = net.person_start[i] + p
            extra = np.zeros(net.tracks[i] + 1)
            for s in range(net.start[e], net.start[e + 1]):
                j = net.node[net.other[s]]
                part = 0.5 if lost[j] else 1.0
                if lost[j] or solved[j]:
                    _add_gain(net, place, e, s, part, extra)
            base += extra[net.tracks[i]]
            for k in range(net.tracks[i]):
                own = view.held[net.seat_start[i] + p * net.tracks[i] + k]
                table[p, k] = own + extra[k] - extra[net.tracks[i]]
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        found[i] = base + log_sum(table, terms) - view.now[i] + view.error[i]


@nb.njit(cache=True, nogil=True)
def _add_gain(net, place, e, s, part, extra):  # type: ignore[no-untyped-def]
    f = net.other[s]
    for k in range(net.tracks[net.node[e]] + 1):
        most = 0.0
        for l in range(net.tracks[net.node[f]] + 1):  # noqa: E741
            if k != place[e] and l != place[f]:
                most = max(most, gain(net, e, s, place[e], place[f], k, l))
        extra[k] += part * most


def values_within(seats: Seats, held: Floats, place: Places) -> Floats:
    """(n,) values of the state of each conversation with these seats."""
    found = np.zeros(len(seats))
    _values(seats.arrays, held, place, found)
    return found


@nb.njit(cache=True, nogil=True)
def _values(net, held, place, found):  # type: ignore[no-untyped-def]
    for i in range(len(net.people)):
        own = held[net.seat_start[i] : net.seat_start[i + 1]]
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        here = place[net.person_start[i] : net.person_start[i + 1]]
        found[i] = value(own.reshape(net.people[i], net.tracks[i]), terms, here)
