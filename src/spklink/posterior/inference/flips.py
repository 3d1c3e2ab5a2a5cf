"""Counting from one configuration: the network in flips from it, and climbing to a better one.

A flip is a bit that is not as in the configuration. Seen from it (`turn`) a network is one of the
same kind: fields are minus the costs of single flips, couplings the gains of double ones. Where no
single flip has a gain that rounding could not feign, there is nothing left to climb.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.network import TIE, Network, Slots, slots_of

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
EPSILON = float(np.finfo(np.float64).eps)


def turn(network: Network, best: Bits) -> Network:
    """The same problem in flips from `best`, whose own value becomes the constant."""
    n, a, b = len(network), network.a, network.b
    sign = 1.0 - 2.0 * best
    field = network.field + sums(a, network.coupling * best[b], n)
    field = field + sums(b, network.coupling * best[a], n)
    value = float(network.constant + (network.field * best).sum())
    value += float((network.coupling * (best[a] * best[b])).sum())
    return Network(sign * field, a, b, network.coupling * sign[a] * sign[b], value)


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


@nb.njit(cache=True, nogil=True)
def climb_steeply(field, coupling, starts):  # type: ignore[no-untyped-def]
    """Turn the most improving node until none improves, from each start, in place.

    For dense networks: `coupling` is the full matrix.
    """
    least = TIE * (1.0 + np.abs(coupling).sum())  # rounding must not send it in circles
    for s in range(len(starts)):
        x = starts[s]
        slope = field.copy()
        for t in range(len(x)):
            if x[t]:
                slope += coupling[t]
        while True:
            gain, chosen = least, -1
            for t in range(len(x)):
                g = -slope[t] if x[t] else slope[t]
                if g > gain:
                    gain, chosen = g, t
            if chosen < 0:
                break
            if x[chosen]:
                slope -= coupling[chosen]
            else:
                slope += coupling[chosen]
            x[chosen] ^= 1
