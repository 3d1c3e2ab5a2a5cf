"""What else could be: of every conversation the best state in which one of its tracks holds another
person than is said, whoever that is or a given one, all other conversations being at their places.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spklink.posterior.states.matching import best
from spklink.posterior.states.seats import Ints, Places, Seats, conditional

FORCED = 1e7  # above all that scores, lists and `must` can say
NOBODY, ANYBODY = -1, -2  # of those who are listed


def alternatives(
    seats: Seats, place: Places, track: Ints, who: Ints | None = None
) -> tuple[Places, Ints]:
    """(entries,) places in the strongest other possibility about a track (n,) of each conversation;
    and (n,) 1 where there is one, else 0: then the places are those that were given. `who` (n,) is
    to be on the track then: a place in the list, NOBODY of the list, or ANYBODY else."""
    found, there = place.copy(), np.zeros(len(seats), np.int64)
    wanted = np.full(len(seats), ANYBODY) if who is None else who
    _alternatives(seats.arrays, place, track, wanted, found, there)
    return found, there


@nb.njit(cache=True, nogil=True)
def _alternatives(net, place, track, who, found, there):  # type: ignore[no-untyped-def]
    for i in range(len(net.people)):
        first, last = net.person_start[i], net.person_start[i] + net.people[i]
        table = np.empty((net.people[i], net.tracks[i]))
        conditional(net, place, i, table)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        other, k = np.empty(net.people[i], np.int64), track[i]
        on = -1
        for p in range(net.people[i]):
            if place[first + p] == k:
                on = p
        most = -np.inf
        if who[i] == NOBODY or (who[i] == ANYBODY and on >= 0):
            for p in range(net.people[i]):
                if who[i] == NOBODY or p == on:
                    table[p, k] = -np.inf
            most = best(table, terms, other)
            if most > -np.inf:
                found[first:last] = other
        else:  # whoever of the list would be the best there, or he who is asked for
            for p in range(net.people[i]):
                if who[i] >= 0 and p != who[i]:
                    continue
                own = table[p, k]
                table[p, k] = own + FORCED
                worth = best(table, terms, other) - FORCED
                table[p, k] = own
                if other[p] == k and worth > most:
                    most = worth
                    found[first:last] = other
        there[i] = most > -np.inf
