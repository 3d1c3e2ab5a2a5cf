"""Two people exchanged in all conversations that list both: a step that single conversations cannot
take, because each alone would contradict the others.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.matching import value
from spklink.posterior.states.seats import Places, Seats, conditional

Ints = NDArray[np.int64]
FEWEST = 2  # common conversations; with one there is nothing that climbing could not do
MOST = 20_000  # pairs of people


def people_of(seats: Seats) -> Ints:
    """(entries,) who is the same person as whom: links join the entries of one person. (Where
    people are listed twice, all copies of one are somebody of their own.)"""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = len(seats.node)
    ends = seats.first, seats.second
    graph = coo_matrix((np.ones(len(ends[0]), np.int8), ends), shape=(size, size))
    person = np.asarray(connected_components(graph, directed=False)[1], np.int64)
    return 2 * person + (seats.copied < 0.0)


def common_pairs(seats: Seats) -> tuple[Ints, Ints, Ints]:
    """Pairs of people with several common conversations: where each pair begins among the pairs of
    entries, and these."""
    who, nothing = people_of(seats), np.zeros(0, np.int64)
    found = []
    for people in np.unique(seats.layout.people[seats.layout.people > 1]):
        nodes = np.flatnonzero(seats.layout.people == people)
        for p in range(int(people)):
            for q in range(p):
                found.append((seats.person_start[nodes] + q, seats.person_start[nodes] + p))
    if not found:
        return np.zeros(1, np.int64), nothing, nothing
    one, two = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
    swap = who[one] > who[two]
    one, two = np.where(swap, two, one), np.where(swap, one, two)
    key = who[one] * (int(who.max()) + 1) + who[two]
    order = np.argsort(key, kind="stable")
    _, count = np.unique(key, return_counts=True)
    kept = np.repeat(count >= FEWEST, count)
    count = count[count >= FEWEST][:MOST]
    order = order[kept][: int(count.sum())]
    return np.concatenate([[0], np.cumsum(count)]), one[order], two[order]


@nb.njit(cache=True, nogil=True)
def exchange(net, place, one, two):  # type: ignore[no-untyped-def]
    """Exchange two people in all their common conversations, in place; returns what that gains."""
    gain = 0.0
    for m in range(len(one)):
        e, f = one[m], two[m]
        if place[e] == place[f]:  # both are nowhere
            continue
        i = net.node[e]
        table = np.empty((net.people[i], net.tracks[i]))
        conditional(net, place, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        own = place[net.person_start[i] : net.person_start[i + 1]]
        before = value(table, terms, own)
        place[e], place[f] = place[f], place[e]
        gain += value(table, terms, own) - before
    return gain


@nb.njit(cache=True, nogil=True)
def exchange_better(net, place, start, one, two, least):  # type: ignore[no-untyped-def]
    """Exchange every pair of people where that gains; returns whether any did."""
    found = False
    for pair in range(len(start) - 1):
        mine = slice(start[pair], start[pair + 1])
        gain = exchange(net, place, one[mine], two[mine])
        if gain > least:
            found = True
        else:
            exchange(net, place, one[mine], two[mine])
    return found


@nb.njit(cache=True, nogil=True)
def exchange_some(net, place, start, one, two, chosen, chance):  # type: ignore[no-untyped-def]
    """Draw one of the two states that each of the chosen pairs can have: exchanged or not. Accepted
    whenever it is as good, an exchange tried an even number of times would never be seen."""
    for m in range(len(chosen)):
        mine = slice(start[chosen[m]], start[chosen[m] + 1])
        gain = exchange(net, place, one[mine], two[mine])
        if not chance[m] * (1.0 + np.exp(-gain)) < 1.0:
            exchange(net, place, one[mine], two[mine])


def exchanged(seats: Seats, place: Places, least: float) -> bool:
    """Better a state by exchanges, in place; returns whether there was any."""
    start, one, two = common_pairs(seats)
    return bool(exchange_better(seats.arrays, place, start, one, two, least))
