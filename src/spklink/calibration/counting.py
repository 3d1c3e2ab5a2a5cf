"""How many conversations of one person may be otherwise than in the best configuration, at most.

Let z_i be the largest odds that conversation i is flipped, all his other conversations being at
their best, and G_ij what two flips gain together beyond the two by themselves. A set B of flips
then has at most the odds

  product over i in B of z_i x exp(half the sum over i, j in B of G_ij),

and the half sum is at most half the sum over i in B of g_i = min((|B| - 1) max_j G_ij, r_i), where
r_i bounds the sum of the positive G_ij; and it is at most half the sum over i in B of e_i where
these bound any set together (the largest eigenvalue of G, module `norms`). The latter bounds no
single row, so it serves for all of B or not at all. The sets of more than a and up to b flips have
together at most the probability

  min over t >= 1 of  t^-(a + 1) product over all i of (1 + t z_i e^(g_i / 2)),

with g_i of |B| = b or with e_i, whichever is less,
and adding these up from all conversations downwards gives a number that is exceeded with hardly any
probability. Nothing is assumed of the rest of the database: to undo the flips of one person in any
configuration leaves another one, and no two sets of flips lead to the same one.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TAIL = 1e-6  # probability with which more are flipped
STEP = 1.3  # between the bounds of runs of sizes
HALVINGS = 26  # of the interval in which log t is sought
WIDEST = 40.0  # of that interval


def most_flips(log_odds: Floats, pair: Floats, row: Floats, together: Floats) -> tuple[int, float]:
    """How many are flipped at most, and with which probability more are: from the logarithms of
    z_i, and (n,) the largest of G_ij over j, the bound r_i on all, and e_i."""
    size = len(log_odds)
    edges = [0]
    while edges[-1] < size:
        edges.append(min(max(edges[-1] + 1, int(edges[-1] * STEP)), size))
    bounds, every = np.empty((2, len(edges) - 1))
    _bounds(log_odds, pair, row, np.array(edges, np.int64), bounds)
    _bounds(log_odds, np.full(size, np.inf), together, np.array(edges, np.int64), every)
    bounds = np.minimum(bounds, every)
    total = 0.0
    for k in range(len(bounds) - 1, -1, -1):
        more = total + float(np.exp(min(bounds[k], 0.0)))
        if more > TAIL:
            return edges[k + 1], total
        total = more
    return 0, total


@nb.njit(cache=True, nogil=True)
def _bounds(log_odds, pair, row, edges, bounds):  # type: ignore[no-untyped-def]
    size = len(log_odds)
    lifted = np.empty(size)
    for k in range(len(bounds)):
        a, b = edges[k], edges[k + 1]
        for i in range(size):
            most = (b - 1) * pair[i] if b > 1 else 0.0
            lifted[i] = log_odds[i] + 0.5 * min(most, row[i])
        low, high = 0.0, WIDEST
        for _ in range(HALVINGS):  # the slope in log t rises
            middle = 0.5 * (low + high)
            slope = -(a + 1.0)
            for i in range(size):
                slope += 1.0 / (1.0 + np.exp(-middle - lifted[i]))
            if slope > 0.0:
                high = middle
            else:
                low = middle
        found = -(a + 1.0) * low
        for i in range(size):
            x = low + lifted[i]
            found += x + np.log1p(np.exp(-x)) if x > 0.0 else np.log1p(np.exp(x))
        bounds[k] = found
