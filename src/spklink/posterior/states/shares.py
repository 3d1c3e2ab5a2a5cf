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

import numba as nb
import numpy as np

from spklink.posterior.states.matching import log_sum
from spklink.posterior.states.seats import score

EPSILON = float(np.finfo(np.float64).eps)
SUBSETS = 10  # people at tracks of one conversation whose absences are told apart


@nb.njit(cache=True, nogil=True)
def gain(net, e, s, here, there, k, l):  # type: ignore[no-untyped-def]  # noqa: E741
    """What moving both ends of a slot gains over moving each alone."""
    both = score(net, e, s, k, l) + score(net, e, s, here, there)
    return both - score(net, e, s, k, there) - score(net, e, s, here, l)


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
def rates(net, place, eta, given_up, rate):  # type: ignore[no-untyped-def]
    """Fill rate (entries,): log-odds of absence at most, whoever else is absent and whatever those
    given up do, everybody else being at his place."""
    for e in range(len(net.node)):
        rate[e] = eta[e]
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            worst = -score(net, e, s, place[e], place[f])
            if given_up[net.node[f]]:
                for l in range(net.tracks[net.node[f]]):  # noqa: E741
                    worst = max(worst, -score(net, e, s, place[e], l))
            rate[e] += max(worst, 0.0)


@nb.njit(cache=True, nogil=True)
def _more(net, place, e, s, k):  # type: ignore[no-untyped-def]
    """What a move of e to k takes back of what slot s says for its far end's being there."""
    far = net.tracks[net.node[net.other[s]]]
    taken = gain(net, e, s, place[e], place[net.other[s]], k, far)
    return max(max(taken, 0.0) - max(score(net, e, s, place[e], place[net.other[s]]), 0.0), 0.0)


@nb.njit(cache=True, nogil=True)
def slopes(net, place, rate, given_up, slope):  # type: ignore[no-untyped-def]
    """Fill slope (entries,): the share of `more` for every move, by the absence of e."""
    for e in range(len(net.node)):
        slope[e], most = 0.0, 0.0
        if place[e] == net.tracks[net.node[e]]:
            continue
        for s in range(net.start[e], net.start[e + 1]):
            f, t, largest = net.other[s], net.mirror[s], 0.0
            if given_up[net.node[f]]:
                continue
            for k in range(net.tracks[net.node[f]]):
                if k != place[f]:
                    largest = max(largest, _more(net, place, f, t, k))
            most += largest
        if most > 0.0:
            risen = np.logaddexp(0.0, rate[e] + most) - np.logaddexp(0.0, rate[e])
            slope[e] = min(risen / most * (1.0 + 1e-9) + 1e-12, 1.0)


@nb.njit(cache=True, nogil=True)
def share_out(net, place, wide, rate, slope, given_up, theta, share):  # type: ignore[no-untyped-def]
    """Fill share (slots x places,): what a move of this end to that place gains at most by what the
    other end does, the other end paying its own share; all of it where the other is given up."""
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            _share_tracks(net, place, wide, rate, slope, given_up, theta, share, e, s)
    for e in range(len(net.node)):
        for s in range(net.start[e], net.start[e + 1]):
            if not given_up[net.node[net.other[s]]] and place[e] < net.tracks[net.node[e]]:
                _share_nowhere(net, place, wide, rate, share, e, s)


@nb.njit(cache=True, nogil=True)
def _share_tracks(net, place, wide, rate, slope, given_up, theta, share, e, s):  # type: ignore[no-untyped-def]
    f = net.other[s]
    far, lost = net.tracks[net.node[f]], given_up[net.node[f]]
    said = max(score(net, e, s, place[e], place[f]), 0.0)
    for k in range(net.tracks[net.node[e]] + 1):
        if k == place[e] or (k == net.tracks[net.node[e]] and not lost):
            continue
        most = 0.0
        for l in range(far + 1 if lost else far):  # noqa: E741
            if l != place[f]:
                most = max(most, gain(net, e, s, place[e], place[f], k, l))
        if lost:
            share[s * wide + k] = most
            continue
        own = theta[s] * most
        if place[f] == far:  # who is not there may appear, and can then not be away
            own = max(own, 0.0)
        elif gain(net, e, s, place[e], place[f], k, far) > 0.0:
            odds = np.exp(min(rate[f], 700.0))
            own = max(own, slope[f] * _more(net, place, e, s, k) + odds / (1.0 + odds) * said)
        share[s * wide + k] = own


@nb.njit(cache=True, nogil=True)
def _share_nowhere(net, place, wide, rate, share, e, s):  # type: ignore[no-untyped-def]
    """What is left for those absent beside people who moved, when those have paid."""
    f, t = net.other[s], net.mirror[s]
    here, far = net.tracks[net.node[e]], net.tracks[net.node[f]]
    odds = np.exp(min(rate[f], 700.0))
    said = max(score(net, e, s, place[e], place[f]), 0.0)
    own = 0.0
    if place[f] < far:
        own = max(0.5, odds / (1.0 + odds)) * said
    for l in range(far):  # noqa: E741
        if l != place[f]:
            both = gain(net, e, s, place[e], place[f], here, l)
            own = max(own, both - share[t * wide + l])
    share[s * wide + here] = own


@nb.njit(cache=True, nogil=True)
def untouched(net, place, eta, rate, given_up, odds):  # type: ignore[no-untyped-def]
    """Fill odds (entries,): of absence at most while nobody moved but those given up; those absent
    elsewhere say nothing, and each is so with at most his own rate."""
    for e in range(len(net.node)):
        total = eta[e]
        for s in range(net.start[e], net.start[e + 1]):
            f = net.other[s]
            said = score(net, e, s, place[e], place[f])
            if given_up[net.node[f]]:
                worst = max(-said, 0.0)
                for l in range(net.tracks[net.node[f]]):  # noqa: E741
                    worst = max(worst, -score(net, e, s, place[e], l))
                total += worst
            elif said > 0.0:
                away = np.exp(min(rate[f], 700.0))
                total += np.log1p(away / (1.0 + away) * np.expm1(min(said, 700.0))) - said
            else:
                total -= said
        odds[e] = np.exp(min(total, 700.0)) * (1.0 + 1e-9)


@nb.njit(cache=True, nogil=True)
def touched(net, place, wide, rate, given_up, share, factor):  # type: ignore[no-untyped-def]
    """Fill factor (entries,): by which moves of the same person elsewhere, whose odds are known,
    are at most made odds of those together with his absence here."""
    for e in range(len(net.node)):
        total = rate[e]
        for s in range(net.start[e], net.start[e + 1]):
            f, t, most = net.other[s], net.mirror[s], 0.0
            if given_up[net.node[f]]:
                continue
            for k in range(net.tracks[net.node[f]] + 1):
                if k != place[f]:
                    most = max(most, _more(net, place, f, t, k) - share[t * wide + k])
            total += most
        factor[e] = np.exp(min(total, 0.0))
