"""How many conversations of one person may be otherwise than in the best configuration, at most.

A change in conversation i is of a kind c: another track or, where lists may be wrong, no track at
all. Let z_ic be the largest odds of it, all his other conversations being at their best, and G what
two changes gain together beyond the two by themselves. A set B of changes then has at most the odds

  product over i in B of z_ic x exp(sum over the pairs in B of G).

What a pair gains is divided between its two ends, in a way that depends on nothing but their kinds.
Then the sum over pairs is at most the sum over i in B of g_ic, the |B| - 1 largest of its shares,
for which several straight lines in |B| - 1 are upper bounds: so often the largest share; the sum of
all positive ones; so often any number, and by how much shares exceed that. Or the sum over pairs is
at most the sum of some e_ic that bound any set together (half the largest eigenvalue of G, module
`norms`); those bound no single row, so they serve for all of B or not at all. Lines that serve
together are a *way*, and the best of several ways is taken. The sets of more than a and up to b
changes have together at most the probability

  min over t >= 1 of  t^-(a + 1) product over all i of (1 + t sum over c of z_ic e^g_ic),

with g_ic of |B| = b; and adding these up from all conversations downwards gives a number that is
exceeded with hardly any probability. Nothing is assumed of the rest of the database: to undo the
changes of one person in any configuration leaves another one, and no two sets of changes lead to
the same one.

Why kinds: to be nowhere costs less than to be on another track, and gains less with others that are
nowhere too; the cost of the one with the gain of the other would let everything be possible.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TAIL = 1e-6  # probability with which more are changed
NOTHING = -60.0  # logarithm of a probability that is added as if it were this
STEP = 1.3  # between the bounds of runs of sizes
STEPS = 30  # at most, when log t is sought
WIDEST = 40.0  # log t
FLAT = 1e-3  # slope, below which a value is all but the least
TINY, MOST = 1e-12, 1e200


def most_flips(log_odds: Floats, slope: Floats, base: Floats) -> tuple[int, float]:
    """How many are changed at most, and with which probability more are: from (kinds, n) logarithms
    of z, and (ways, lines, kinds, n) lines that bound what a change gains with others."""
    size = log_odds.shape[1]
    edges = [0]
    while edges[-1] < size:
        edges.append(min(max(edges[-1] + 1, int(edges[-1] * STEP)), size))
    total = 0.0
    for a, b in zip(edges[-2::-1], edges[:0:-1], strict=True):
        more = total + float(np.exp(min(_bound(log_odds, slope, base, a, b), 0.0)))
        if more > TAIL:
            return b, total
        total = more
    return 0, total


@nb.njit(cache=True, nogil=True)
def _bound(log_odds, slope, base, a, b):  # type: ignore[no-untyped-def]
    """Logarithm of the probability of more than a and up to b changes, at most."""
    least = np.inf
    lifted = np.empty(log_odds.shape[1])
    for way in range(len(slope)):
        _lift(log_odds, slope[way], base[way], b, lifted)
        least = min(least, _smallest(lifted, a))
        if least < NOTHING:
            return NOTHING
    return least


@nb.njit(cache=True, nogil=True)
def _lift(log_odds, slope, base, b, lifted):  # type: ignore[no-untyped-def]
    for i in range(len(lifted)):
        found = -np.inf
        for c in range(len(log_odds)):
            gain = np.inf if b > 1 else 0.0
            for k in range(len(slope) if b > 1 else 0):
                gain = min(gain, (b - 1) * slope[k, c, i] + base[k, c, i])
            one = log_odds[c, i] + gain
            high, low = max(found, one), min(found, one)
            found = high if low == -np.inf else high + np.log1p(np.exp(low - high))
        lifted[i] = found


@nb.njit(cache=True, nogil=True)
def _smallest(lifted, a):  # type: ignore[no-untyped-def]
    """The least value over log t, whose slope rises: by Newton's steps, halved where they leave the
    interval that it must be in. Any t gives a bound, so the search ends where one is as good as
    nothing, or nearly the least."""
    low, high, log_t, least = 0.0, WIDEST, 0.0, np.inf
    for _ in range(STEPS):
        value, slope, bend = _value(lifted, a, log_t)
        least = min(least, value)
        if least < NOTHING or abs(slope) < FLAT:
            break
        if slope > 0.0:
            high = log_t
        else:
            low = log_t
        if high <= 0.0:
            break
        log_t -= slope / max(bend, TINY)
        if not low < log_t < high:
            log_t = 0.5 * (low + high)
    return least


@nb.njit(cache=True, nogil=True)
def _value(lifted, a, log_t):  # type: ignore[no-untyped-def]
    """The logarithm of the bound, its slope and how that bends, in log t."""
    value, slope, bend, product = -(a + 1.0) * log_t, -(a + 1.0), 0.0, 1.0
    for i in range(len(lifted)):
        x = log_t + lifted[i]
        small = np.exp(-abs(x))
        product *= 1.0 + small
        if product > MOST:  # one logarithm for many factors
            value, product = value + np.log(product), 1.0
        part = (1.0 if x > 0.0 else small) / (1.0 + small)
        value, slope, bend = value + max(x, 0.0), slope + part, bend + part * (1.0 - part)
    return value + np.log(product), slope, bend
