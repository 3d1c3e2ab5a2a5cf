"""One conversation by itself as in `matching`, with plain products: for draws by the thousand.

Weights are taken relative to the best place of each person, so that they are at most one. Sums of
their products are as exact as sums of logarithms unless all of them are tiny, which is the case
where people contradict one another beyond all measure; then nothing is answered, and `matching` is
asked. Index conventions as there.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from spklink.posterior.states.matching import ones

SMALLEST = 1e-150  # sum of all states below which products might have lost some


@nb.njit(cache=True, nogil=True)
def weights(seat, count):  # type: ignore[no-untyped-def]
    """(P, K) of being on a track and (P,) of being nowhere, the better of them 1; (K + 1,)."""
    people, tracks = seat.shape
    there, none = np.empty((people, tracks)), np.empty(people)
    for p in range(people):
        most = 0.0
        for k in range(tracks):
            most = max(most, seat[p, k])
        none[p] = np.exp(-most)
        for k in range(tracks):
            there[p, k] = np.exp(seat[p, k] - most)
    terms = np.empty(len(count))
    most = count.max()
    for n in range(len(count)):
        terms[n] = np.exp(count[n] - most) if most > -np.inf else 0.0
    return there, none, terms


@nb.njit(cache=True, nogil=True)
def _after(table, free, left, terms):  # type: ignore[no-untyped-def]
    """(rows + 1, subsets) sums over the rows that are left; `free` (rows,) and `left` (columns,)
    are the weights of those who stay without the other."""
    rows, columns = table.shape
    after = np.zeros((rows + 1, 1 << columns))
    for taken in range(1 << columns):
        seated = ones(taken)
        if seated < len(terms):
            after[rows, taken] = terms[seated]
            for c in range(columns):
                if not (taken >> c) & 1:
                    after[rows, taken] *= left[c]
    for r in range(rows - 1, -1, -1):
        for taken in range(1 << columns):
            summed = free[r] * after[r + 1, taken]
            for c in range(columns):
                if not (taken >> c) & 1:
                    summed += table[r, c] * after[r + 1, taken | (1 << c)]
            after[r, taken] = summed
    return after


@nb.njit(cache=True, nogil=True)
def _before(table, free):  # type: ignore[no-untyped-def]
    """(rows + 1, subsets) sums over the first rows."""
    rows, columns = table.shape
    before = np.zeros((rows + 1, 1 << columns))
    before[0, 0] = 1.0
    for r in range(rows):
        for taken in range(1 << columns):
            summed = free[r] * before[r, taken]
            for c in range(columns):
                if (taken >> c) & 1:
                    summed += table[r, c] * before[r, taken ^ (1 << c)]
            before[r + 1, taken] = summed
    return before


@nb.njit(cache=True, nogil=True)
def _turned(there, none):  # type: ignore[no-untyped-def]
    """Rows and columns of the tables: those who are more are rows."""
    people, tracks = there.shape
    if people < tracks:
        return True, there.T.copy(), np.ones(tracks), none
    return False, there, none, np.ones(tracks)


@nb.njit(cache=True, nogil=True)
def draw_quickly(seat, count, chance, place):  # type: ignore[no-untyped-def]
    """A state drawn from its distribution, into place (P,); returns whether that could be done."""
    there, none, terms = weights(seat, count)
    turned, table, free, left = _turned(there, none)
    after = _after(table, free, left, terms)
    if not after[0, 0] > SMALLEST:
        return False
    _walk(table, free, after, chance, turned, seat.shape[1], place)
    return True


@nb.njit(cache=True, nogil=True)
def _walk(table, free, after, chance, turned, tracks, place):  # type: ignore[no-untyped-def]
    """Row after row, each with its probability given those before."""
    rows, columns = table.shape
    place[:] = tracks
    taken = 0
    for r in range(rows):
        more = chance[r] * after[r, taken] - free[r] * after[r + 1, taken]
        if more <= 0.0 and free[r] * after[r + 1, taken] > 0.0:
            continue
        picked = -1
        for c in range(columns):
            worth = table[r, c] * after[r + 1, taken | (1 << c)]
            if not (taken >> c) & 1 and worth > 0.0:
                picked = c
                more -= worth
                if more <= 0.0:
                    break
        if picked >= 0:
            taken |= 1 << picked
            if turned:
                place[picked] = r
            else:
                place[r] = picked


@nb.njit(cache=True, nogil=True)
def figures_and_draw(seat, count, certain, lift, chance, person, track, place):  # type: ignore[no-untyped-def]
    """Fill person (P, K + 1) and track (K,) as `matching.marginals` does, and draw a state; returns
    the probability that nobody certain is absent, or -1: this could not be done."""
    there, none, terms = weights(seat, count)
    turned, table, free, left = _turned(there, none)
    after = _after(table, free, left, terms)
    whole = after[0, 0]
    if not whole > SMALLEST:
        return -1.0
    before = _before(table, free)
    rows, columns = table.shape
    joint = np.zeros((rows + 1, columns + 1))  # the last row and column: without the other
    for r in range(rows):
        for taken in range(1 << columns):
            here = before[r, taken] / whole
            if here == 0.0:
                continue
            joint[r, columns] += here * free[r] * after[r + 1, taken]
            for c in range(columns):
                if not (taken >> c) & 1:
                    joint[r, c] += here * table[r, c] * after[r + 1, taken | (1 << c)]
    for taken in range(1 << columns):
        here = before[rows, taken] * after[rows, taken] / whole
        for c in range(columns):
            if not (taken >> c) & 1:
                joint[rows, c] += here
    if turned:
        person[:] = joint[:, :columns].T
        track[:] = joint[:rows, columns]
    else:
        person[:] = joint[:rows]
        track[:] = joint[rows, :columns]
    _walk(table, free, after, chance, turned, seat.shape[1], place)
    if not certain.any():
        return 1.0
    sure = np.where(certain, 0.0, none)
    for p in range(len(lift)):
        if lift[p] != 0.0:
            there[p] *= np.exp(lift[p])
    turned, table, free, left = _turned(there, sure)
    return min(_after(table, free, left, terms)[0, 0] / whole, 1.0)
