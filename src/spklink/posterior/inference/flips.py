"""Counting from one configuration: the network in changes from it, and climbing to a better one.

A flip is a bit that is not as in the configuration. Seen from it (`turn`) a network is one of the
same kind: fields are minus the costs of single flips, couplings the gains of double ones. Where no
single flip has a gain that rounding could not feign, there is nothing left to climb.
"""

from __future__ import annotations

from dataclasses import replace

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import frechet, rest
from spklink.posterior.inference.network import Network, Slots, States, slots_of

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
EPSILON = float(np.finfo(np.float64).eps)


def turn(network: Network, best: States) -> Network:
    """The same problem in changes from `best`, whose own value becomes the constant.

    State 0 and the best state of every node change places: a bit is 1 where it is flipped.
    """
    value, states = network.value(best), np.asarray(best, np.int64)
    field, coupling = network.field.copy(), np.empty_like(network.coupling)
    graph = network.size, network.start, network.a, network.b, network.cell_start
    _turn(*graph, network.coupling, states, field, coupling)
    return replace(network, field=field, coupling=coupling, constant=value)


def turn_back(network: Network, best: States, one: Floats, both: Floats) -> tuple[Floats, ...]:
    """P(z = 0), P(z = s) and P(z_a = s, z_b = u) from those of changes from `best`."""
    left = rest(network, one)
    moved = np.flatnonzero(best)
    chosen = network.start[moved] + best[moved] - 1
    zero, back, joint = left.copy(), one.copy(), np.empty_like(both)
    zero[moved], back[chosen] = one[chosen], left[moved]
    graph = network.size, network.start, network.a, network.b, network.cell_start
    _turn_back(*graph, np.asarray(best, np.int64), left, one, both, joint)
    return zero, back, frechet(network, back, joint)


def rounding(network: Network, slots: Slots) -> Floats:
    """(n,) bound on the errors of any sum over a node's field and couplings, in any turn."""
    size = np.abs(network.field) + 3.0 * slots.sums(np.abs(network.coupling[slots.edge]))
    return (np.diff(slots.start) + 8) * 4.0 * EPSILON * size


def climb(
    network: Network,
    start: Bits | None = None,
    slots: Slots | None = None,
    error: Floats | None = None,
    *,
    far: bool = False,
) -> Bits:
    """The local optimum near `start` (the signs of the fields, where none is given).

    With `far`, one that survives any chain of greedy flips as well. `slots` and `error` (what
    rounding could feign at each node) are those of the network, unless the caller has others.
    """
    near = slots_of(network) if slots is None else slots
    least = rounding(network, near) if error is None else error
    x = (network.field > 0).astype(np.int8) if start is None else start.astype(np.int8)
    layout = near.start, near.other, network.coupling[near.edge], network.field, least
    _climb(*layout, x)
    if far:
        _climb_far(*layout, x)
    return x


@nb.njit(cache=True, nogil=True)
def _cell(coupling, first, columns, s, u):  # type: ignore[no-untyped-def]
    return coupling[first + (s - 1) * columns + u - 1] if s > 0 and u > 0 else 0.0


@nb.njit(cache=True, nogil=True)
def _turn(  # type: ignore[no-untyped-def]
    size, start, a, b, cell_start, coupling, best, field, out
):
    for e in range(len(a)):
        p, q, first = best[a[e]], best[b[e]], cell_start[e]
        rows, columns = size[a[e]] - 1, size[b[e]] - 1
        shared, cell = _cell(coupling, first, columns, p, q), first
        for r in range(1, rows + 1 if q > 0 else 1):
            field[start[a[e]] + r - 1] += _cell(coupling, first, columns, r, q)
        for c in range(1, columns + 1 if p > 0 else 1):
            field[start[b[e]] + c - 1] += _cell(coupling, first, columns, p, c)
        for r in range(1, rows + 1):
            s = 0 if r == p else r
            across = _cell(coupling, first, columns, s, q) - shared
            for c in range(1, columns + 1):
                u = 0 if c == q else c
                along = _cell(coupling, first, columns, p, u)
                out[cell] = (_cell(coupling, first, columns, s, u) - along) - across
                cell += 1
    for t in range(len(size)):
        if best[t] > 0:
            chosen = start[t] + best[t] - 1
            level = field[chosen]
            for i in range(start[t], start[t + 1]):
                field[i] -= level
            field[chosen] = -level


@nb.njit(cache=True, nogil=True)
def _turn_back(  # type: ignore[no-untyped-def]
    size, start, a, b, cell_start, best, left, one, both, out
):
    for e in range(len(a)):
        p, q, first = best[a[e]], best[b[e]], cell_start[e]
        rows, columns = size[a[e]] - 1, size[b[e]] - 1
        cell = first
        for r in range(1, rows + 1):
            for c in range(1, columns + 1):
                s0, s1 = (1, rows + 1) if r == p else (r, r + 1)
                u0, u1 = (1, columns + 1) if c == q else (c, c + 1)
                # What joins no change is what the changes leave.
                total = 0.0
                for s in range(s0, s1):
                    for u in range(u0, u1):
                        total += both[first + (s - 1) * columns + u - 1]
                if r == p and c == q:
                    others = 0.0
                    for u in range(u0, u1):
                        others += one[start[b[e]] + u - 1]
                    total = left[a[e]] - others + total
                elif r == p:
                    total = one[start[b[e]] + c - 1] - total
                elif c == q:
                    total = one[start[a[e]] + r - 1] - total
                out[cell] = total
                cell += 1


@nb.njit(cache=True, nogil=True)
def _local_fields(start, other, coupling, field, x):  # type: ignore[no-untyped-def]
    h = field.copy()
    for i in range(len(h)):
        for e in range(start[i], start[i + 1]):
            h[i] += coupling[e] * x[other[e]]
    return h


@nb.njit(cache=True, nogil=True)
def _climb(start, other, coupling, field, error, x):  # type: ignore[no-untyped-def]
    """Flip whatever improves, in turn; the error bound keeps rounding from going in circles."""
    h = _local_fields(start, other, coupling, field, x)
    changed = True
    while changed:
        changed = False
        for i in range(len(h)):
            if (1 - 2 * x[i]) * h[i] > error[i]:
                step = 1 - 2 * x[i]
                x[i] += step
                changed = True
                for e in range(start[i], start[i + 1]):
                    h[other[e]] += step * coupling[e]


@nb.njit(cache=True, nogil=True)
def _climb_far(start, other, coupling, field, error, x):  # type: ignore[no-untyped-def]
    """Kernighan and Lin: flip every node once, best first, keep the best prefix; repeat."""
    n = len(field)
    order = np.empty(n, np.int64)
    while True:
        h = _local_fields(start, other, coupling, field, x)
        free = np.ones(n, np.bool_)
        value, top, keep = 0.0, 0.0, 0
        for t in range(n):
            pick, most = -1, -np.inf
            for i in range(n):
                if free[i] and (1 - 2 * x[i]) * h[i] > most:
                    pick, most = i, (1 - 2 * x[i]) * h[i]
            free[pick], order[t] = False, pick
            step = 1 - 2 * x[pick]
            x[pick] += step
            value += most
            for e in range(start[pick], start[pick + 1]):
                h[other[e]] += step * coupling[e]
            if value > top + error[pick] + 1e-12:
                top, keep = value, t + 1
        for t in range(keep, n):
            x[order[t]] = 1 - x[order[t]]
        if keep == 0:
            return
