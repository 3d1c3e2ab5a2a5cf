"""Which Gaussian a frame belongs to: from densities to posteriors, block by block.

Conventions: `table` (frames, Gaussians) + `constant` (Gaussians,) = log2 of weight x density.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def _bits_of_float(context, value):  # type: ignore[no-untyped-def]
    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], target.get_value_type(types.int32))

    return types.int32(types.float32), generate


@intrinsic
def _float_of_bits(context, bits):  # type: ignore[no-untyped-def]
    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], target.get_value_type(types.float32))

    return types.float32(types.int32), generate


@nb.njit(cache=True, nogil=True, fastmath=True)
def exp2(x):  # type: ignore[no-untyped-def]
    """2^x for x in [-100, 0], relative error under 3e-7; vectorised, unlike np.exp2."""
    k = np.floor(x + np.float32(0.5))
    f = x - k
    p = np.float32(0.0013390917)
    p = p * f + np.float32(0.009676037)
    p = p * f + np.float32(0.055503570)
    p = p * f + np.float32(0.24022107)
    p = p * f + np.float32(0.69314719)
    p = p * f + np.float32(1.0)
    return p * _float_of_bits((np.int32(k) + np.int32(127)) << np.int32(23))  # type: ignore[call-arg]


@nb.njit(cache=True, nogil=True)
def _in_order_of_floats(bits):  # type: ignore[no-untyped-def]
    """Integers that compare as the floats of these bits do; its own inverse."""
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@nb.njit(cache=True, nogil=True)
def _highest(row, constant):  # type: ignore[no-untyped-def]
    """max(row + constant), by integers: a maximum of floats is not vectorised."""
    top = np.int32(-0x80000000)
    for j in range(row.size):
        value = row[j] + constant[j]
        top = max(top, _in_order_of_floats(_bits_of_float(value)))  # type: ignore[call-arg]
    return _float_of_bits(_in_order_of_floats(top))  # type: ignore[call-arg]


@nb.njit(cache=True, nogil=True, fastmath=True)
def softmax(table, constant, n):  # type: ignore[no-untyped-def]
    """Turn log2 densities into posteriors in place, add them to n; sum of the log2 likelihoods."""
    total = 0.0
    for t in range(table.shape[0]):
        row = table[t]
        top = _highest(row, constant)
        mass = np.float32(0.0)
        for j in range(row.size):
            # No posterior is taken as less than 2^-80: far below notice, and never denormal (slow).
            value = exp2(max(row[j] + constant[j] - top, np.float32(-80.0)))
            row[j] = value
            mass += value
        total += top + np.log2(np.float64(mass))
        scale = np.float32(1.0) / mass
        for j in range(row.size):
            value = row[j] * scale
            row[j] = value
            n[j] += value
    return total


@nb.njit(cache=True, nogil=True, fastmath=True)
def _insert(best, which, kept, value, j):  # type: ignore[no-untyped-def]
    """Put a value into its place among the largest so far, largest first; how many there are."""
    if kept == len(best) and value <= best[-1]:
        return kept
    at = min(kept, len(best) - 1)
    while at > 0 and best[at - 1] < value:
        best[at], which[at] = best[at - 1], which[at - 1]
        at -= 1
    best[at], which[at] = value, j
    return min(kept + 1, len(best))


@nb.njit(cache=True, nogil=True, fastmath=True)
def _raise_peaks(row, constant, peak):  # type: ignore[no-untyped-def]
    for s in range(row.size):
        row[s] += constant[s]
        peak[s] = max(peak[s], row[s])


@nb.njit(cache=True, nogil=True, fastmath=True)
def _add_scaled(scale, values, sums):  # type: ignore[no-untyped-def]
    for d in range(values.size):
        sums[d] += scale * values[d]


@nb.njit(cache=True, nogil=True, fastmath=True)
def sparse_sums(table, constant, values, top, n, sums):  # type: ignore[no-untyped-def]
    """As softmax and posterior.T @ values, with the `top` largest posteriors of each frame."""
    stripes = min(64, table.shape[1])  # stripe s holds Gaussians s, s + stripes, ...
    peak = np.empty(stripes, np.float32)
    best, which = np.empty(top, np.float32), np.empty(top, np.int64)
    total = 0.0
    for t in range(table.shape[0]):
        row = table[t]
        peak[:] = np.float32(-3e38)
        for s in range(0, row.size, stripes):
            _raise_peaks(row[s : s + stripes], constant[s : s + stripes], peak)
        # The top-th highest peak is no higher than the top-th highest value, so it bounds the rest.
        kept = 0
        for s in range(stripes):
            kept = _insert(best, which, kept, peak[s], s)
        highest = best[0]
        enough = max(highest - np.float32(24.0), best[-1] if kept == top else np.float32(-3e38))
        kept = 0
        for s in range(stripes):
            if peak[s] >= enough:
                for j in range(s, row.size, stripes):
                    if row[j] >= enough:
                        kept = _insert(best, which, kept, row[j], j)
        mass = np.float32(0.0)
        for i in range(kept):
            best[i] = exp2(best[i] - highest)
            mass += best[i]
        total += highest + np.log2(np.float64(mass))
        for i in range(kept):
            share = best[i] / mass
            n[which[i]] += share
            _add_scaled(share, values[t], sums[which[i]])
    return total
