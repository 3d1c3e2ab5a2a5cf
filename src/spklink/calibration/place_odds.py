"""The largest odds that a frequent person is elsewhere than in the best configuration, for module
`certificate`.

His other conversations being at their best, everybody else in the conversation may be drawn by
other conversations wherever those happen to be. Of a state c of the conversation against the best
one c* a listed link speaks at most by the largest, over all places at its far end, of what it gives
to the place in c less what it gives to that in c*; another frequent person speaks at most by what
all his other conversations together can (`alone`). All that is a sum over people, so that with it
in the seats the conversation is a matching as before (`states.matching`), and

  odds <= (sum over the states with him elsewhere) / (the best state),

on another track, and nowhere, each by itself.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.matching import marginals, value
from spklink.posterior.states.seats import Seats, score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = 1e-290  # what is less may be lost in rounding


def place_odds(seats: Seats, place: Ints, gap: Floats, alone: Floats, entries: Ints) -> Floats:
    """(2, some entries) logarithms of the odds of another track, and of none. `gap` (seats,) leads
    from the sums in use to those of the best configuration, place (entries,) is that; `alone`
    (entries,) is 0 for whoever is not frequent."""
    found = np.empty((2, len(entries)))
    _odds(seats.arrays, place, seats.seat + gap, alone, entries, found)
    return found


@nb.njit(cache=True, nogil=True)
def _odds(net, place, seat, alone, entries, found):  # type: ignore[no-untyped-def]
    for t in range(len(entries)):
        e = entries[t]
        i = net.node[e]
        people, tracks, first = net.people[i], net.tracks[i], net.person_start[i]
        table = np.empty((people, tracks))
        for p in range(people):
            f = first + p
            own = net.seat_start[i] + p * tracks
            for k in range(tracks):
                table[p, k] = seat[own + k] + _drawn(net, place, alone, f, e, k)
                table[p, k] -= _drawn(net, place, alone, f, e, tracks)
        terms = net.count[net.count_start[i] : net.count_start[i + 1]]
        person, track = np.zeros((people, tracks + 1)), np.zeros(tracks)
        whole = marginals(table, terms, person, track)
        best = value(table, terms, place[first : first + people])
        elsewhere = np.zeros(2)
        for k in range(tracks + 1):
            if k != place[e]:
                elsewhere[int(k == tracks)] += person[e - first, k]
        for kind in range(2):
            found[kind, t] = np.log(max(elsewhere[kind], LEAST)) + whole - best


@nb.njit(cache=True, nogil=True)
def _drawn(net, place, alone, f, e, here):  # type: ignore[no-untyped-def]
    """By how much other conversations draw entry f here, from where it is at best, at most; seen
    from entry e."""
    best = place[f]
    if here == best:
        return 0.0
    total = 0.0 if f == e else alone[f]
    for s in range(net.start[f], net.start[f + 1]):
        most = 0.0  # nowhere at the far end
        for there in range(net.tracks[net.node[net.other[s]]]):
            most = max(most, score(net, f, s, here, there) - score(net, f, s, best, there))
        total += most
    return total
