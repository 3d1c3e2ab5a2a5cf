"""One conversation by itself: all ways to seat listed people on tracks, without listing them.

A state puts each person on a track of his own or on none; its value is

    count[number of people seated] + sum over the people seated of seat[person, track].

Sums, marginals, the best state and samples come from a table over the subsets of tracks (or of
people, whichever are fewer) that are taken after each row: rows x columns x 2^columns steps, where
the states themselves would be as many as permutations. Every entry of a table is kept as its
largest term and the sum relative to it, so nothing under- or overflows; -inf forbids a seat.

Index conventions: p = person, k = track, k = tracks stands for nowhere; the same in all arrays.
"""

from __future__ import annotations

import numba as nb
import numpy as np

MOST = 16  # people or tracks, whichever are fewer: 65,536 subsets
FAR = -46.0  # log of what is lost in rounding beside a larger term


@nb.njit(cache=True, nogil=True)
def ones(mask):  # type: ignore[no-untyped-def]
    """How many bits are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def forward(seat):  # type: ignore[no-untyped-def]
    """(rows + 1, subsets) largest term and relative sum over the states of the first rows."""
    rows, columns = seat.shape
    top = np.full((rows + 1, 1 << columns), -np.inf)
    total = np.zeros((rows + 1, 1 << columns))
    top[0, 0], total[0, 0] = 0.0, 1.0
    for r in range(rows):
        for taken in range(1 << columns):
            most = top[r, taken]
            for c in range(columns):
                if (taken >> c) & 1:
                    most = max(most, top[r, taken ^ (1 << c)] + seat[r, c])
            if most == -np.inf:
                continue
            summed = 0.0
            if top[r, taken] - most > FAR:
                summed = total[r, taken] * np.exp(top[r, taken] - most)
            for c in range(columns):
                if (taken >> c) & 1:
                    before = taken ^ (1 << c)
                    gap = top[r, before] + seat[r, c] - most
                    if gap > FAR:
                        summed += total[r, before] * np.exp(gap)
            top[r + 1, taken], total[r + 1, taken] = most, summed
    return top, total


@nb.njit(cache=True, nogil=True)
def backward(seat, count):  # type: ignore[no-untyped-def]
    """(rows + 1, subsets) the same over the states of the rows that are left, with `count`."""
    rows, columns = seat.shape
    top = np.full((rows + 1, 1 << columns), -np.inf)
    total = np.zeros((rows + 1, 1 << columns))
    for taken in range(1 << columns):
        seated = ones(taken)
        if seated < len(count) and count[seated] > -np.inf:
            top[rows, taken], total[rows, taken] = count[seated], 1.0
    for r in range(rows - 1, -1, -1):
        for taken in range(1 << columns):
            most = top[r + 1, taken]
            for c in range(columns):
                if not (taken >> c) & 1:
                    most = max(most, top[r + 1, taken | (1 << c)] + seat[r, c])
            if most == -np.inf:
                continue
            summed = 0.0
            if top[r + 1, taken] - most > FAR:
                summed = total[r + 1, taken] * np.exp(top[r + 1, taken] - most)
            for c in range(columns):
                if not (taken >> c) & 1:
                    after = taken | (1 << c)
                    gap = top[r + 1, after] + seat[r, c] - most
                    if gap > FAR:
                        summed += total[r + 1, after] * np.exp(gap)
            top[r, taken], total[r, taken] = most, summed
    return top, total


@nb.njit(cache=True, nogil=True)
def log_sum(seat, count):  # type: ignore[no-untyped-def]
    """Log of the sum over all states; -inf where none is allowed."""
    turned = seat.shape[0] < seat.shape[1]
    top, total = backward(seat.T.copy() if turned else seat, count)
    if top[0, 0] == -np.inf:
        return -np.inf
    return top[0, 0] + np.log(total[0, 0])


@nb.njit(cache=True, nogil=True)
def marginals(seat, count, person, track):  # type: ignore[no-untyped-def]
    """Log of the sum over all states; fills person (P, K + 1): where each person is, and track
    (K,): whether somebody else is on it. Small probabilities are sums, never differences."""
    turned = seat.shape[0] < seat.shape[1]
    table = seat.T.copy() if turned else seat
    rows, columns = table.shape
    top, total = forward(table)
    top_after, total_after = backward(table, count)
    person[:], track[:] = 0.0, 0.0
    if top_after[0, 0] == -np.inf:
        return -np.inf
    whole = top_after[0, 0] + np.log(total_after[0, 0])
    for r in range(rows):
        for taken in range(1 << columns):
            if total[r, taken] == 0.0:
                continue
            here = top[r, taken] - whole
            gap = here + top_after[r + 1, taken]
            if gap > -700.0:
                left = np.exp(gap) * total[r, taken] * total_after[r + 1, taken]
                if turned:
                    track[r] += left
                else:
                    person[r, columns] += left
            for c in range(columns):
                if (taken >> c) & 1:
                    continue
                after = taken | (1 << c)
                gap = here + table[r, c] + top_after[r + 1, after]
                if gap > -700.0:
                    chance = np.exp(gap) * total[r, taken] * total_after[r + 1, after]
                    if turned:
                        person[c, r] += chance
                    else:
                        person[r, c] += chance
    for taken in range(1 << columns):
        gap = top[rows, taken] + top_after[rows, taken] - whole
        if total[rows, taken] > 0.0 and gap > -700.0:
            chance = np.exp(gap) * total[rows, taken]
            for c in range(columns):
                if not (taken >> c) & 1:
                    if turned:
                        person[c, rows] += chance
                    else:
                        track[c] += chance
    return whole


@nb.njit(cache=True, nogil=True)
def best(seat, count, place):  # type: ignore[no-untyped-def]
    """The largest value; fills place (P,) with a state that has it, the same one every time."""
    people, tracks = seat.shape
    turned = people < tracks
    table = seat.T.copy() if turned else seat
    rows, columns = table.shape
    top, _ = backward(table, count)
    place[:] = tracks
    taken = 0
    for r in range(rows):
        if top[r + 1, taken] >= top[r, taken]:
            continue
        for c in range(columns):
            after = taken | (1 << c)
            if after != taken and top[r + 1, after] + table[r, c] >= top[r, taken]:
                if turned:
                    place[c] = r
                else:
                    place[r] = c
                taken = after
                break
    return top[0, 0]


@nb.njit(cache=True, nogil=True)
def draw(seat, count, chance, place):  # type: ignore[no-untyped-def]
    """A state drawn from its distribution, into place (P,); chance (rows,) are uniform numbers, as
    many as there are people or tracks, whichever are more."""
    people, tracks = seat.shape
    turned = people < tracks
    table = seat.T.copy() if turned else seat
    rows, columns = table.shape
    top, total = backward(table, count)
    place[:] = tracks
    taken = 0
    for r in range(rows):
        left = chance[r] * total[r, taken]
        gap = top[r + 1, taken] - top[r, taken]
        if gap > FAR:
            left -= total[r + 1, taken] * np.exp(gap)
        if left <= 0.0 and gap > FAR:
            continue
        picked = -1
        for c in range(columns):
            if (taken >> c) & 1:
                continue
            gap = top[r + 1, taken | (1 << c)] + table[r, c] - top[r, taken]
            if gap > FAR:
                picked = c
                left -= total[r + 1, taken | (1 << c)] * np.exp(gap)
                if left <= 0.0:
                    break
        if picked >= 0:
            taken |= 1 << picked
            if turned:
                place[picked] = r
            else:
                place[r] = picked
    return top[0, 0] + np.log(total[0, 0])


@nb.njit(cache=True, nogil=True)
def value(seat, count, place):  # type: ignore[no-untyped-def]
    """The value of one state."""
    tracks, seated, worth = seat.shape[1], 0, 0.0
    for p in range(len(place)):
        if place[p] < tracks:
            seated += 1
            worth += seat[p, place[p]]
    return worth + count[seated]
