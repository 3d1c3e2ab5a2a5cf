"""Tables over the joint states of several nodes, in numbers whose digits are the nodes' states.

The last node is the lowest digit. A table is grown from the last node to the first and summed out
from the first to the last; each step is one of these loops. `place` and `step` say where the
entries for the states of one digit stand in another array: place, place + step, …; a place of -1
stands for none.
"""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def grow(table, count, width, terms, place, step):  # type: ignore[no-untyped-def]
    """A new highest digit: table[r * count + z] = table[z] + its term. Returns the new count."""
    for r in range(width - 1, -1, -1):  # state 0 last: it overwrites what the others need
        term = terms[place + r * step] if place >= 0 else 0.0
        for z in range(count):
            table[r * count + z] = table[z] + term
    return count * width


@nb.njit(cache=True, nogil=True)
def fold(table, count, width, out, place, step, scale):  # type: ignore[no-untyped-def]
    """Sums out the highest digit; out is given the total of each of its states times scale."""
    count //= width
    if place >= 0:
        for r in range(width):
            out[place + r * step] = scale * total(table, r * count, count)
    for r in range(1, width):
        for z in range(count):
            table[z] += table[r * count + z]
    return count


@nb.njit(cache=True, nogil=True)
def total(table, first, count):  # type: ignore[no-untyped-def]
    """Four sums side by side: one would wait for each addition to end."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    last = first + count
    whole = last - count % 4
    for z in range(first, whole, 4):
        p += table[z]
        q += table[z + 1]
        r += table[z + 2]
        s += table[z + 3]
    for z in range(whole, last):
        p += table[z]
    return (p + q) + (r + s)


@nb.njit(cache=True, nogil=True)
def volumes(scope_start, scope, size):  # type: ignore[no-untyped-def]
    """Joint states of each scope."""
    volume = np.ones(len(scope_start) - 1)
    for t in range(len(volume)):
        for k in range(scope_start[t], scope_start[t + 1]):
            volume[t] *= size[scope[k]]
    return volume
