"""Pieces that no exact method can solve, told from their links alone, before any table is made.

Whatever the order in which nodes are summed out, some table joins d + 1 of them, where d is the
largest least degree of any part (the degeneracy, found by taking away nodes of least degree first).
So (d + 1) times the bits of the smallest node of that part bound the table from below.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# A tree of such tables is out of reach by far, and so is the square root of them, which is the
# least that `trace` could get away with.
HOPELESS = 90.0


def table_bits(size: Ints, piece: Ints, a: Ints, b: Ints) -> Floats:
    """(pieces,) bits that the largest table has at the least, of conversations with so many states
    that are linked by pairs (a, b), each once."""
    free = size > 1
    inner = free[a] & free[b]
    ends = np.concatenate([a[inner], b[inner]])
    order = np.argsort(ends, kind="stable")
    other = np.concatenate([b[inner], a[inner]])[order]
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(size)))])
    core = _cores(start, other)
    count = int(piece.max(initial=-1)) + 1
    most = np.zeros(count, np.int64)
    np.maximum.at(most, piece, core)
    dense = free & (core == most[piece])
    least = np.full(count, np.inf)
    np.minimum.at(least, piece[dense], np.log2(size[dense]))
    some = sums(piece, dense, count) > 0
    return np.where(some, (most + 1) * np.where(some, least, 0.0), 0.0)


@nb.njit(cache=True)
def _cores(start, other):  # type: ignore[no-untyped-def]
    """(n,) the largest d for which a node is in a part where everybody has d neighbours: nodes of
    least degree are taken away one after the other, kept in order of their degrees."""
    n = len(start) - 1
    degree = start[1:] - start[:-1]
    largest = degree.max() if n else 0
    begin = np.zeros(largest + 2, np.int64)
    for v in range(n):
        begin[degree[v] + 1] += 1
    begin = np.cumsum(begin)
    at, order, free = np.empty(n, np.int64), np.empty(n, np.int64), begin[:-1].copy()
    for v in range(n):
        at[v] = free[degree[v]]
        order[at[v]] = v
        free[degree[v]] += 1
    first = begin[:-1].copy()  # of the nodes of each degree
    core = degree.copy()
    for position in range(n):
        v = order[position]
        for s in range(start[v], start[v + 1]):
            u = other[s]
            if core[u] > core[v]:
                # To the front of the nodes of its degree, which then begin one later.
                front = first[core[u]]
                front = max(front, position + 1)
                w = order[front]
                order[front], order[at[u]] = u, w
                at[w], at[u] = at[u], front
                first[core[u]] = front + 1
                core[u] -= 1
    return core
