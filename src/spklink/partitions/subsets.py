"""Sums and maxima over all partitions, by a programme over subsets: 3^n / 2 steps, not Bell(n).

    Z(S) = sum over T, a subset of S that holds the lowest item of S, of  f(T) Z(S - T)

and the same with a maximum in place of the sum, and with the number of blocks as a second index.
A number is kept as a mantissa and a power of two: f(T) = mantissa(T) 2^exponent(T), and Z(S) in
units of 2^exponent of its largest term, so no score is too strong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Exponents = NDArray[np.int32]
LN2 = float(np.log(2.0))
DEEPEST = 1070  # powers of two below one that a number can hold
POWERS = 2.0 ** (np.arange(DEEPEST + 64) - DEEPEST)
NOTHING = -(1 << 28)  # exponent of zero; three of them still are a number
WIDE = 8  # numbers of blocks that are summed in registers


@dataclass(frozen=True)
class Sums:
    """Z of the subsets of items, perhaps by the number of blocks."""

    mantissa: Floats  # (2^I,) of f
    exponent: Exponents  # (2^I,)
    unit: Exponents  # (2^I,) Z is in units of 2^unit
    total: Floats  # (2^I,) Z, or (2^I, most + 1) by the number of blocks

    def log_total(self) -> Floats:
        """log Z of all items; by the number of blocks where that is an index."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.total[-1]) + self.unit[-1] * LN2)


def best_of(value: Floats) -> tuple[Floats, Ints]:
    """(2^I,) the value of the best partition of every subset, and the block of its lowest item."""
    found, block = _best(value)
    return found, block


def add_up(
    value: Floats,
    best: Floats,
    *,
    by_count: bool,
    masks: int | None = None,
    most: int | None = None,
) -> Sums:
    """Z of all subsets, or of the first `masks`; by the number of blocks of up to `most` of them.
    `best` is that of `best_of`."""
    most = len(value).bit_length() - 1 if most is None else most
    mantissa, exponent = _taken_apart(value)
    unit = _taken_apart(best)[1]
    if not by_count:
        return Sums(mantissa, exponent, unit, _add_up(mantissa, exponent, unit, POWERS))
    some = masks or len(value)
    total = np.zeros((some, max(most, WIDE) + 1))
    total[0, 0] = 1.0
    _add_up_by_count(mantissa, exponent, unit, POWERS, total, most)
    return Sums(mantissa, exponent, unit, total[:, : most + 1])


def counts_of(value: Floats, best: Floats) -> Floats:
    """(I + 1,) log Z of all items by the number of blocks. Only subsets without the last item are
    asked for: a third of the work."""
    half = len(value) // 2
    sums = add_up(value, best, by_count=True, masks=half)
    last = np.arange(half, len(value))
    shift = np.clip(
        sums.exponent[last].astype(np.int64) + sums.unit[half - 1 - (last - half)] - sums.unit[-1],
        -DEEPEST,
        len(POWERS) - DEEPEST - 1,
    )
    scale = sums.mantissa[last] * POWERS[shift + DEEPEST]
    found = np.zeros(sums.total.shape[1])
    found[1:] = (scale @ sums.total[half - 1 - (last - half)])[:-1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found) + sums.unit[-1] * LN2)


def _taken_apart(value: Floats) -> tuple[Floats, Exponents]:
    """Mantissas in [1, 2) and powers of two."""
    there = np.isfinite(value)
    power = np.floor(np.where(there, value, 0.0) / LN2)
    mantissa = np.where(there, np.exp(np.where(there, value, 0.0) - power * LN2), 0.0)
    return mantissa, np.where(there, power, NOTHING).astype(np.int32)


@nb.njit(cache=True, nogil=True)
def _best(value):  # type: ignore[no-untyped-def]
    found, block = np.zeros(len(value)), np.zeros(len(value), np.int64)
    for whole in range(1, len(value)):
        low = whole & -whole
        rest = whole ^ low
        part, most, chosen = rest, -np.inf, 0
        while True:
            here = value[low | part] + found[rest ^ part]
            if here > most:
                most, chosen = here, low | part
            if part == 0:
                break
            part = (part - 1) & rest
        found[whole], block[whole] = most, chosen
    return found, block


@nb.njit(cache=True, nogil=True)
def _add_up(mantissa, exponent, unit, powers):  # type: ignore[no-untyped-def]
    total = np.zeros(len(mantissa))
    total[0] = 1.0
    for whole in range(1, len(mantissa)):
        low = whole & -whole
        rest = whole ^ low
        part, here, deep = rest, 0.0, DEEPEST - unit[whole]
        while True:
            other = rest ^ part
            shift = exponent[low | part] + unit[other] + deep
            if 0 <= shift < len(powers):
                here += mantissa[low | part] * total[other] * powers[shift]
            if part == 0:
                break
            part = (part - 1) & rest
        total[whole] = here
    return total


@nb.njit(cache=True, nogil=True)
def _add_up_by_count(mantissa, exponent, unit, powers, z, most):  # type: ignore[no-untyped-def]
    """Sums for up to eight blocks stay in registers: with 20 items most steps have no more."""
    bits = np.zeros(len(z), np.int8)
    for whole in range(1, len(z)):
        bits[whole] = bits[whole & (whole - 1)] + 1
        low = whole & -whole
        rest = whole ^ low
        part, deep, row = rest, DEEPEST - unit[whole], z[whole]
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        while True:
            other = rest ^ part
            shift = exponent[low | part] + unit[other] + deep
            if 0 <= shift < len(powers):
                x = mantissa[low | part] * powers[shift]
                a += x * z[other, 0]
                b += x * z[other, 1]
                c += x * z[other, 2]
                d += x * z[other, 3]
                e += x * z[other, 4]
                f += x * z[other, 5]
                g += x * z[other, 6]
                h += x * z[other, 7]
                for k in range(8, min(bits[other] + 1, most)):
                    row[k + 1] += x * z[other, k]
            if part == 0:
                break
            part = (part - 1) & rest
        row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8] = a, b, c, d, e, f, g, h


@nb.njit(cache=True, nogil=True)
def best_by_count(value, most):  # type: ignore[no-untyped-def]
    """(2^(I-1), most + 1) the best value of every subset without the last item, by the number of
    blocks."""
    half = max(len(value) // 2, 1)
    bits = np.zeros(half, np.int8)
    found = np.full((half, most + 1), -np.inf)
    found[0, 0] = 0.0
    for whole in range(1, half):
        bits[whole] = bits[whole & (whole - 1)] + 1
        low = whole & -whole
        rest = whole ^ low
        part, row = rest, found[whole]
        while True:
            here, other = value[low | part], rest ^ part
            if here > -np.inf:
                for k in range(min(bits[other] + 1, most)):
                    row[k + 1] = max(row[k + 1], here + found[other, k])
            if part == 0:
                break
            part = (part - 1) & rest
    return found


@nb.njit(cache=True, nogil=True)
def pair_sums(chance, items):  # type: ignore[no-untyped-def]
    """(I, I) how probable two items are in one block, from the probability of every block."""
    found, member = np.zeros((items, items)), np.zeros(items, np.int64)
    for mask in range(1, len(chance)):
        here = chance[mask]
        if here == 0.0:
            continue
        count = 0
        for i in range(items):
            if (mask >> i) & 1:
                member[count] = i
                count += 1
        for a in range(count):
            for b in range(a + 1):
                found[member[a], member[b]] += here
    for i in range(items):
        for j in range(i):
            found[j, i] = found[i, j]
    return found


@nb.njit(cache=True, nogil=True)
def draw(mantissa, exponent, unit, powers, z, step, blocks, chance, label):  # type: ignore[no-untyped-def]
    """One partition drawn block by block: that of the lowest item left, in proportion to what is
    left to do. `step` is 1 where z goes by the number of blocks, `blocks` that number."""
    left, k, number = len(mantissa) - 1, blocks, 0
    while left:
        low = left & -left
        rest = left ^ low
        wanted, part, deep = chance[number] * z[left, k], rest, DEEPEST - unit[left]
        chosen, sofar = 0, 0.0
        while True:
            other = rest ^ part
            shift = exponent[low | part] + unit[other] + deep
            if 0 <= shift < len(powers):
                here = mantissa[low | part] * z[other, k - step] * powers[shift]
                sofar += here
                if here > 0.0:
                    chosen = low | part  # the last one there is, should rounding pass them all
                if sofar > wanted:
                    break
            if part == 0:
                break
            part = (part - 1) & rest
        for i in range(len(label)):
            if (chosen >> i) & 1:
                label[i] = number
        left, k, number = left ^ chosen, k - step, number + 1
