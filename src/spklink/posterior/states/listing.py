"""States listed one by one, for the methods that need them so, and back to seats.

People of a conversation who have no link here only fill tracks: states that differ in them alone
are one class, and classes are what a `Network` sees as the states of a node. Their shares come
back when its beliefs are spread over the seats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, permutations
from math import comb, perm

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.network import Network, gauged
from spklink.posterior.states.seats import Seats, score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 20_000  # states of one conversation that are ever listed
NEVER = 600.0  # log-odds, beyond all that links can say, at which a state is left out


def state_count(people: int, tracks: int) -> int:
    """All ways to seat any of the people."""
    return sum(comb(people, n) * perm(tracks, n) for n in range(min(people, tracks) + 1))


@cache
def all_states(people: int, tracks: int) -> Ints:
    """(states, P) the place of each person in every state, `tracks` for nowhere."""
    found = []
    for seated in range(min(people, tracks) + 1):
        for who in combinations(range(people), seated):
            for where in permutations(range(tracks), seated):
                place = [tracks] * people
                for p, k in zip(who, where, strict=True):
                    place[p] = k
                found.append(place)
    return np.array(found, np.int64).reshape(len(found), people)


@cache
def _classes(people: int, tracks: int, bound: tuple[bool, ...]) -> tuple[Ints, Ints]:
    """The class of every state, and the first state of every class, for these linked people."""
    states = all_states(people, tracks)
    key = np.zeros(len(states), np.int64)
    for p in np.flatnonzero(bound):
        key = key * (tracks + 1) + states[:, p]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return which.reshape(-1).astype(np.int64), first.astype(np.int64)


@dataclass(frozen=True)
class Listing:
    """The listed classes of every conversation of `seats`."""

    seats: Seats
    kind: Ints  # (n,) which shape a conversation has
    shapes: list[tuple[Ints, Ints, Ints]]  # states, class of each, first state of each class
    start: Ints  # (n + 1,) of the classes that are listed
    which: Ints  # (listed,) their numbers among the classes of the shape
    unary: Floats  # (listed,)

    def network(self) -> tuple[Network, Floats]:
        """The same problem as classes and tables between them, without the constants, and what the
        first class of each conversation adds (n,)."""
        seats, size = self.seats, np.diff(self.start)
        key, edge = self._edges
        a, b = key // max(len(seats), 1), key % max(len(seats), 1)
        begin = np.concatenate([[0], np.cumsum(size[a] * size[b])])
        table = np.zeros(int(begin[-1]))
        self._meet(edge, begin, table, begin, np.zeros(0))
        return gauged(size, self.unary, a, b, table)

    def both(self, pair: Floats) -> Floats:
        """From joint probabilities of classes, edge by edge and row by row, to those of the two
        tracks of every link, one link after the other."""
        seats, size, tracks = self.seats, np.diff(self.start), self.seats.layout.tracks
        key, edge = self._edges
        a, b = key // max(len(seats), 1), key % max(len(seats), 1)
        begin = np.concatenate([[0], np.cumsum(size[a] * size[b])])
        wide = tracks[seats.node[seats.first]] * tracks[seats.node[seats.second]]
        into = np.concatenate([[0], np.cumsum(wide)])
        found = np.zeros(int(into[-1]))
        self._meet(edge, begin, pair, into, found)
        return found

    def _meet(self, edge: Ints, begin: Ints, table: Floats, into: Ints, tracks: Floats) -> None:
        ends = self.seats.first, self.seats.second
        _meet(self.seats.arrays, ends, edge, begin, self.start, self.places, table, into, tracks)

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:
        """Pairs of linked conversations as one number each, and the pair of every link."""
        seats = self.seats
        a, b = seats.node[seats.first], seats.node[seats.second]
        key, edge = np.unique(a * len(seats) + b, return_inverse=True)
        return key, edge.reshape(-1).astype(np.int64)

    @cached_property
    def places(self) -> Ints:
        """(listed, most people) where each linked person is in every class."""
        most = int(self.seats.layout.people.max(initial=0))
        place = np.zeros((len(self.which), max(most, 1)), np.int64)
        node = np.repeat(np.arange(len(self.seats)), np.diff(self.start))
        for number, (states, _, first) in enumerate(self.shapes):
            mine = np.flatnonzero(self.kind[node] == number)
            place[mine, : states.shape[1]] = states[first[self.which[mine]]]
        return place

    def states(self, chosen: Ints) -> Ints:
        """(entries,) places in the best state of the chosen class of every conversation."""
        place = np.zeros(len(self.seats.node), np.int64)
        for number, (states, of_class, _) in enumerate(self.shapes):
            nodes = np.flatnonzero(self.kind == number)
            wanted = self.which[self.start[nodes] + chosen[nodes]]
            values = _values(self.seats, nodes, states)
            values[of_class[None, :] != wanted[:, None]] = -np.inf
            found = states[np.argmax(values, axis=1)]
            own = self.seats.person_start[nodes][:, None] + np.arange(states.shape[1])
            place[own] = found
        return place

    def spread(self, marginal: Floats) -> tuple[Floats, Floats, Floats]:
        """From probabilities of classes to those of places (entries x places), of strangers
        (sides), and of right lists (n,)."""
        seats = self.seats
        person = np.zeros(int(seats.place_start[-1]))
        track = np.zeros(int(seats.layout.tracks.sum()))
        right = np.zeros(len(seats))
        track_start = np.concatenate([[0], np.cumsum(seats.layout.tracks)])
        for number, (states, of_class, first) in enumerate(self.shapes):
            nodes = np.flatnonzero(self.kind == number)
            chance = np.zeros((len(nodes), len(first)))
            base = np.full((len(nodes), len(first)), np.inf)
            rows = np.repeat(np.arange(len(nodes)), np.diff(self.start)[nodes])
            listed = np.concatenate([np.arange(self.start[i], self.start[i + 1]) for i in nodes])
            chance[rows, self.which[listed]] = marginal[listed]
            base[rows, self.which[listed]] = self.unary[listed]
            share = np.exp(np.minimum(_values(seats, nodes, states) - base[:, of_class], 0.0))
            of_state = chance[:, of_class] * share
            _spread(seats, nodes, states, of_state, track_start, (person, track, right))
        return person, track, right


def listed(seats: Seats, *, apart: bool = False) -> Listing:
    """The listing of conversations none of which has too many states; `apart`: every state is
    a class of its own."""
    people, tracks = seats.layout.people, seats.layout.tracks
    bound = np.diff(seats.slots.start) > 0
    bound |= apart
    shape_of: dict[tuple[int, int, tuple[bool, ...]], int] = {}
    kind = np.zeros(len(seats), np.int64)
    flags, begin = bound.tolist(), seats.person_start.tolist()
    for i, (p, k) in enumerate(zip(people.tolist(), tracks.tolist(), strict=True)):
        key = p, k, tuple(flags[begin[i] : begin[i + 1]])
        kind[i] = shape_of.setdefault(key, len(shape_of))
    shapes = [(all_states(p, k), *_classes(p, k, linked)) for p, k, linked in shape_of]
    return _list(seats, kind, shapes)


def _list(seats: Seats, kind: Ints, shapes: list[tuple[Ints, Ints, Ints]]) -> Listing:
    reach = _reach(seats)
    size, parts = np.zeros(len(seats), np.int64), []
    for number, (states, of_class, first) in enumerate(shapes):
        nodes = np.flatnonzero(kind == number)
        values = _values(seats, nodes, states)
        order = np.argsort(of_class, kind="stable")
        begin = np.searchsorted(of_class[order], np.arange(len(first)))
        unary = np.logaddexp.reduceat(values[:, order], begin, axis=1)
        least = unary.max(axis=1, initial=-np.inf) - NEVER - 2.0 * reach[nodes]
        kept = unary > least[:, None]
        size[nodes] = kept.sum(axis=1)
        rows, which = np.nonzero(kept)
        parts.append((nodes[rows], which, unary[rows, which]))
    none = np.zeros(0, np.int64)
    node = np.concatenate([none, *(part[0] for part in parts)])
    order = np.argsort(node, kind="stable")
    return Listing(
        seats=seats,
        kind=kind,
        shapes=shapes,
        start=np.concatenate([[0], np.cumsum(size)]),
        which=np.concatenate([none, *(part[1] for part in parts)])[order],
        unary=np.concatenate([none.astype(np.float64), *(part[2] for part in parts)])[order],
    )


def _values(seats: Seats, nodes: Ints, states: Ints) -> Floats:
    """(nodes, states) values of the states of conversations of one shape, without links."""
    layout = seats.layout
    people, tracks = states.shape[1], int(layout.tracks[nodes[0]]) if len(nodes) else 0
    seated = (states < tracks).sum(axis=1)
    values = seats.count[layout.count_start[nodes][:, None] + seated[None, :]]
    for p in range(people):
        here = np.flatnonzero(states[:, p] < tracks)
        begin = layout.seat_start[nodes] + p * tracks
        values[:, here] += seats.seat[begin[:, None] + states[None, here, p]]
    return np.asarray(values)


def _reach(seats: Seats) -> Floats:
    """(n,) the most that links can add to or take from a conversation."""
    found = np.zeros(len(seats))
    _add_reach(seats.arrays, found)
    return found


def _spread(
    seats: Seats,
    nodes: Ints,
    states: Ints,
    chance: Floats,
    track_start: Ints,
    into: tuple[Floats, Floats, Floats],
) -> None:
    """Add up the states (nodes, states) of conversations of one shape."""
    person, track, right = into
    people, tracks = states.shape[1], int(seats.layout.tracks[nodes[0]])
    entry = seats.person_start[nodes]
    there = np.ones(chance.shape)
    for p in range(people):
        for k in range(tracks + 1):
            here = states[:, p] == k
            person[seats.place_start[entry + p] + k] = chance[:, here].sum(axis=1)
        absent = states[:, p] == tracks
        there[seats.certain[entry + p][:, None] & absent[None, :]] = 0.0
        if seats.lift.any():
            there *= np.exp(np.where(absent[None, :], 0.0, seats.lift[entry + p][:, None]))
    for k in range(tracks):
        empty = ~(states == k).any(axis=1)
        track[track_start[nodes] + k] = chance[:, empty].sum(axis=1)
    right[nodes] = (chance * there).sum(axis=1)


@nb.njit(cache=True, nogil=True)
def _add_reach(net, found):  # type: ignore[no-untyped-def]
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            most = 0.0
            for k in range(net.tracks[net.node[e]]):
                for l in range(net.tracks[net.node[net.other[s]]]):  # noqa: E741
                    most = max(most, abs(score(net, e, s, k, l)))
            found[net.node[e]] += most


@nb.njit(cache=True, nogil=True)
def _meet(net, ends, edge, begin, start, place, table, into, tracks):  # type: ignore[no-untyped-def]
    """For every link and any two classes that put its person on two tracks: add its score to the
    table of the classes; or, where `tracks` are given, the entry of the table to these tracks."""
    first, second = ends
    for m in range(len(first)):
        e, f = first[m], second[m]
        a, b = net.node[e], net.node[f]
        p, q = e - net.person_start[a], f - net.person_start[b]
        far, wide = net.tracks[b], start[b + 1] - start[b]
        for z in range(start[a], start[a + 1]):
            here = place[z, p]
            if here == net.tracks[a]:
                continue
            row = begin[edge[m]] + (z - start[a]) * wide - start[b]
            for y in range(start[b], start[b + 1]):
                there = place[y, q]
                if there == far:
                    continue
                if len(tracks):
                    tracks[into[m] + here * far + there] += table[row + y]
                else:
                    score = net.llr[net.offset[m] + here * far + there]
                    table[row + y] += net.weight[m] * score
