"""How what two moves gain together is shared between them, so that each pays for itself.

A person who is merely absent, where he should be, is hardly held by others: whatever else they do
while they stay at their places or away, his odds are at most some `rate` of errors. So absences are
not moves that must be counted (`moves`): they are summed out, and what they can do for the moves of
the same person elsewhere is a share of their gains,

    log(1 + rate e^(sum of more)) - log(1 + rate e^(-sum of held)) <= sum of shares

over any set of his moves, with `held` what a link says for being there and `more` by how much a
move at its far end takes that back: the left side is convex in one sum and concave in the other,
hence at most linear in both. Gains of two moves are shared as the slack of the two conversations
asks for (`theta`). Index conventions as in `seats`; s = slot, k = a place.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.matching import log_sum, value
from spklink.posterior.states.seats import Places, SeatArrays, Seats, score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EPSILON = float(np.finfo(np.float64).eps)
SUBSETS = 10  # people at tracks of one conversation whose absences are told apart


@nb.njit(cache=True, nogil=True)
def gain(net, e, s, here, there, k, l):  # type: ignore[no-untyped-def]  # noqa: E741
    """What moving both ends of a slot gains over moving each alone."""
    both = score(net, e, s, k, l) + score(net, e, s, here, there)
    return both - score(net, e, s, k, there) - score(net, e, s, here, l)


class Gains(NamedTuple):
    """What links say and what moves gain, slot by slot; the same for all that is shared."""

    said: Floats  # (slots,) for both ends being at their places
    most: Floats  # (slots x places,) by a move of the other end to a track, at most
    back: Floats  # (slots x places,) by an absence of the other end
    more: Floats  # (slots x places,) of that, beyond what the link says for being there


def find_gains(net: SeatArrays, place: Places, wide: int) -> Gains:
    """All gains, with `wide` places a slot."""
    slots = len(net.link)
    found = Gains(np.zeros(slots), *np.zeros((3, slots * wide)))
    _find_gains(net, place, wide, found)
    return found


@nb.njit(cache=True, nogil=True)
def _find_gains(net, place, wide, found):  # type: ignore[no-untyped-def]
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            here, there, far = place[e], place[f], net.tracks[net.node[f]]
            found.said[s] = score(net, e, s, here, there)
            for k in range(net.tracks[net.node[e]] + 1):
                if k == here:
                    continue
                most = 0.0
                for l in range(far):  # noqa: E741
                    if l != there:
                        most = max(most, gain(net, e, s, here, there, k, l))
                back = max(gain(net, e, s, here, there, k, far), 0.0)
                found.most[s * wide + k], found.back[s * wide + k] = most, back
                found.more[s * wide + k] = max(back - max(found.said[s], 0.0), 0.0)


@nb.njit(cache=True, nogil=True)
def hold(net, place, held, error):  # type: ignore[no-untyped-def]
    """Fill held with the seats of every conversation, all others at their places; and what
    rounding can do to the values of a conversation."""
    for e in range(len(net.node)):
        i = net.node[e]
        own = net.seat_start[i] + (e - net.person_start[i]) * net.tracks[i]
        size = 0.0
        for k in range(net.tracks[i]):
            held[own + k] = net.seat[own + k]
            if held[own + k] > -np.inf:
                size = max(size, abs(held[own + k]))
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            largest = 0.0
            for k in range(net.tracks[i]):
                held[own + k] += score(net, e, s, k, place[f])
                for l in range(net.tracks[net.node[f]]):  # noqa: E741
                    largest = max(largest, abs(score(net, e, s, k, l)))
            size += 4.0 * largest
        error[i] += 4.0 * EPSILON * (net.start[e + 1] - net.start[e] + 16) * size
    for i in range(len(net.people)):
        for n in range(net.count_start[i], net.count_start[i + 1]):
            if net.count[n] > -np.inf:
                error[i] += 16.0 * EPSILON * abs(net.count[n])


@nb.njit(cache=True, nogil=True)
def absences(net, place, error, eta, given_up):  # type: ignore[no-untyped-def]
    """Fill eta (entries,): log-odds of absence without links, whoever else of the conversation is
    absent, with all who have no links summed out."""
    for i in range(len(net.people)):
        seated, count = np.empty(net.people[i], np.int64), 0
        for e in range(net.person_start[i], net.person_start[i + 1]):
            if net.start[e + 1] > net.start[e] and place[e] < net.tracks[i]:
                seated[count] = e
                count += 1
        if count > SUBSETS:
            given_up[i] = True
            continue
        worth = np.empty(1 << count)
        for away in range(1 << count):
            worth[away] = _worth(net, place, i, seated[:count], away)
        given_up[i] |= not worth[0] > -np.inf
        for b in range(count):
            most = -np.inf
            for away in range(1 << count):
                if not (away >> b) & 1 and worth[away] > -np.inf:
                    most = max(most, worth[away | (1 << b)] - worth[away])
            eta[seated[b]] = most + 2.0 * error[i]


@nb.njit(cache=True, nogil=True)
def present(net, place, now):  # type: ignore[no-untyped-def]
    """Fill now (n,): log of the sum over all states with all who have links at their places."""
    for i in range(len(net.people)):
        seated, count = np.empty(net.people[i], np.int64), 0
        for e in range(net.person_start[i], net.person_start[i + 1]):
            if net.start[e + 1] > net.start[e] and place[e] < net.tracks[i]:
                seated[count] = e
                count += 1
        now[i] = _worth(net, place, i, seated[:count], 0)


@nb.njit(cache=True, nogil=True)
def _worth(net, place, i, seated, away):  # type: ignore[no-untyped-def]
    """Log of the sum over all states with exactly these of the seated people away, the others of
    them at their places, and nobody else who has links."""
    total, here, taken = 0.0, 0, np.zeros(net.tracks[i] + 1, np.bool_)
    for b in range(len(seated)):
        if not (away >> b) & 1:
            e = seated[b]
            own = net.seat_start[i] + (e - net.person_start[i]) * net.tracks[i]
            total += net.seat[own + place[e]]
            taken[place[e]] = True
            here += 1
    table = np.empty((net.people[i], net.tracks[i]))
    rows, left = 0, net.tracks[i] - here
    for e in range(net.person_start[i], net.person_start[i + 1]):
        if net.start[e + 1] > net.start[e]:
            continue
        own, column = net.seat_start[i] + (e - net.person_start[i]) * net.tracks[i], 0
        for k in range(net.tracks[i]):
            if not taken[k]:
                table[rows, column] = net.seat[own + k]
                column += 1
        rows += 1
    terms = net.count[net.count_start[i] + here : net.count_start[i + 1]]
    return total + log_sum(table[:rows, :left].copy(), terms)


@nb.njit(cache=True, nogil=True)
def rates(net, place, gains, eta, given_up, rate):  # type: ignore[no-untyped-def]
    """Fill rate (entries,): log-odds of absence at most, whoever else is absent and whatever those
    given up do, everybody else being at his place."""
    for e in range(len(net.node)):
        rate[e] = eta[e]
        for s in range(net.start[e], net.start[e + 1]):
            rate[e] += _against(net, place, gains, given_up, e, s)


@nb.njit(cache=True, nogil=True)
def _against(net, place, gains, given_up, e, s):  # type: ignore[no-untyped-def]
    """The most that slot s can say against e's being at his place."""
    f = net.other[s]
    worst = max(-gains.said[s], 0.0)
    if given_up[net.node[f]]:
        for l in range(net.tracks[net.node[f]]):  # noqa: E741
            worst = max(worst, -score(net, e, s, place[e], l))
    return worst


@nb.njit(cache=True, nogil=True)
def _largest(gains, wide, s):  # type: ignore[no-untyped-def]
    """The most that a move at this end of a slot takes back."""
    largest = 0.0
    for k in range(wide):
        largest = max(largest, gains.more[s * wide + k])
    return largest


@nb.njit(cache=True, nogil=True)
def slopes(net, place, wide, gains, rate, given_up, slope):  # type: ignore[no-untyped-def]
    """Fill slope (entries,): the share of `more` for every move, by the absence of e."""
    for e in range(len(net.node)):
        slope[e], most = 0.0, 0.0
        for s in range(net.start[e], net.start[e + 1]):
            if not given_up[net.node[net.other[s]]]:
                most += _largest(gains, wide, net.mirror[s])
        if most > 0.0 and place[e] < net.tracks[net.node[e]]:
            risen = np.logaddexp(0.0, rate[e] + most) - np.logaddexp(0.0, rate[e])
            slope[e] = min(risen / most * (1.0 + 1e-9) + 1e-12, 1.0)


@nb.njit(cache=True, nogil=True)
def share_out(net, place, wide, gains, rate, slope, given_up, theta, share):  # type: ignore[no-untyped-def]
    """Fill share (slots x places,): what a move of this end to that place gains at most by what the
    other end does, the other end paying its own share; all of it where the other is given up."""
    for e in range(len(net.node)):
        tracks = net.tracks[net.node[e]]
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            odds = np.exp(min(rate[f], 700.0))
            held = odds / (1.0 + odds) * max(gains.said[s], 0.0)
            for k in range(tracks + 1):
                at = s * wide + k
                if given_up[net.node[f]]:
                    share[at] = max(gains.most[at], gains.back[at])
                elif k < tracks:
                    share[at] = theta[s] * gains.most[at]
                    if gains.back[at] > 0.0:
                        share[at] = max(share[at], slope[f] * gains.more[at] + held)
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            if not given_up[net.node[f]] and place[e] < net.tracks[net.node[e]]:
                _share_nowhere(net, wide, gains, rate[f], share, e, s)


@nb.njit(cache=True, nogil=True)
def _share_nowhere(net, wide, gains, rate, share, e, s):  # type: ignore[no-untyped-def]
    """What is left for those absent beside people who moved, when those have paid; beside others
    who are absent half of what the link says."""
    t, far = net.mirror[s], net.tracks[net.node[net.other[s]]]
    odds = np.exp(min(rate, 700.0))
    own = max(0.5, odds / (1.0 + odds)) * max(gains.said[s], 0.0)
    for l in range(far):  # noqa: E741
        own = max(own, gains.back[t * wide + l] - share[t * wide + l])
    share[s * wide + net.tracks[net.node[e]]] = own


@nb.njit(cache=True, nogil=True)
def untouched(net, place, gains, eta, rate, given_up, odds):  # type: ignore[no-untyped-def]
    """Fill odds (entries,): of absence at most while nobody moved but those given up; those absent
    elsewhere say nothing, and each is so with at most his own rate."""
    for e in range(len(net.node)):
        total = eta[e]
        for s in range(net.start[e], net.start[e + 1]):
            f, said = net.other[s], gains.said[s]
            if said > 0.0 and not given_up[net.node[f]]:
                away = np.exp(min(rate[f], 700.0))
                total += np.log1p(away / (1.0 + away) * np.expm1(min(said, 700.0))) - said
            else:
                total += _against(net, place, gains, given_up, e, s)
        odds[e] = np.exp(min(total, 700.0)) * (1.0 + 1e-9)


@nb.njit(cache=True, nogil=True)
def touched(net, wide, gains, rate, given_up, share, factor):  # type: ignore[no-untyped-def]
    """Fill factor (entries,): what the shared odds of moves of the same person elsewhere are at
    most multiplied by where he is absent here, too."""
    for e in range(len(net.node)):
        total = rate[e]
        for s in range(net.start[e], net.start[e + 1]):
            t, most = net.mirror[s], 0.0
            if not given_up[net.node[net.other[s]]]:
                for at in range(t * wide, (t + 1) * wide):
                    most = max(most, gains.more[at] - share[at])
            total += most
        factor[e] = np.exp(min(total, 0.0))


@nb.njit(cache=True, nogil=True)
def with_one(net, wide, gains, rate, given_up, odds, found):  # type: ignore[no-untyped-def]
    """Add to found (entries,) the odds of absence together with those (odds) of one linked
    conversation that has changed by itself, beyond what the rate alone makes of them."""
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            most = _largest(gains, wide, net.mirror[s])
            if most > 0.0 and not given_up[net.node[net.other[s]]]:
                risen = np.exp(min(rate[e] + most, 0.0)) - np.exp(min(rate[e], 0.0))
                found[e] += odds[net.other[s]] * max(risen, 0.0) * (1.0 + 1e-9)


@nb.njit(cache=True, nogil=True)
def singly(net, place, wide, gains, rate, given_up, share, extra):  # type: ignore[no-untyped-def]
    """Fill extra (places,): what absences, and those given up, add to a move that is the only one
    of its person."""
    extra[:] = 0.0
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            said = max(gains.said[s], 0.0)
            for k in range(net.tracks[net.node[e]] + 1):
                own = net.place_start[e] + k
                if given_up[net.node[f]]:
                    extra[own] += share[s * wide + k]
                elif gains.back[s * wide + k] > 0.0 and place[f] < net.tracks[net.node[f]]:
                    risen = np.logaddexp(0.0, rate[f] + gains.back[s * wide + k] - said)
                    extra[own] += risen - np.logaddexp(0.0, rate[f] - said)


def groups(seats: Seats) -> Ints:
    """(entries,) which person each is, as far as links tell."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = len(seats.node)
    ones = np.ones(len(seats.first), np.int8)
    graph = coo_matrix((ones, (seats.first, seats.second)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


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
