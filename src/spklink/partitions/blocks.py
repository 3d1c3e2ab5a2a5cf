"""The value of every block: all subsets of a few items, by the bits of a number.

Bit i of a mask T says that item i is in the block. A value is log f(T): the likelihood of the block
times its prior, minus infinity where two of its items may not be together.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.partitions.items import Problem
from spklink.recognizers.plda import of_sums

Floats = NDArray[np.float64]
MOST_ITEMS = 24  # masks of 2^24 values; time ends it before
CHUNK = 1 << 14  # masks at a time


def block_values(problem: Problem) -> Floats:
    """(2^I,) log f of every block, from the log-likelihood-ratios of its pairs."""
    items = problem.items
    _check(len(items))
    return np.asarray(
        _values(
            items.size,
            items.inside,
            items.between,
            _masks(items.apart),
            problem.pair_weight,
            problem.block_prior,
        )
    )


def plda_values(problem: Problem, ratio: Floats, z: Floats) -> Floats:
    """The same in closed form: `z` (S, k) are vectors of the sides turned as in module `plda`, and
    `ratio` (k,) is its between/within variance."""
    items = problem.items
    _check(len(items))
    count, found = len(items), np.empty(1 << len(items))
    total = np.zeros((count, z.shape[1]))
    squares = np.zeros_like(total)
    np.add.at(total, items.item, z)
    np.add.at(squares, items.item, z**2)
    allowed = np.isfinite(block_values(problem.silent()))
    bit = np.arange(count)
    for begin in range(0, len(found), CHUNK):
        masks = np.arange(begin, min(begin + CHUNK, len(found)))
        member = ((masks[:, None] >> bit) & 1).astype(np.float64)
        n = (member @ items.size).astype(np.int64)
        value = of_sums(ratio, n, member @ total, member @ squares) + problem.block_prior[n]
        found[masks] = np.where(allowed[masks], value, -np.inf)
    return found


def _check(items: int) -> None:
    if items > MOST_ITEMS:
        raise SpklinkError(
            f"{items} sides are too many for an exact partition (at most {MOST_ITEMS}); "
            "use --method sample or agglomerative"
        )


def _masks(apart: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(I,) a row of a table as the bits of a number."""
    return np.asarray(apart @ (1 << np.arange(len(apart), dtype=np.int64)), np.int64)


@nb.njit(cache=True, nogil=True)
def _values(size, inside, between, apart, weight, prior):  # type: ignore[no-untyped-def]
    """Mask by mask: its lowest item, and what is known of the rest."""
    full = 1 << len(size)
    found, pairs, sides = np.zeros(full), np.zeros(full), np.zeros(full, np.int32)
    for mask in range(1, full):
        rest = mask & (mask - 1)
        i = 0
        while (mask >> i) & 1 == 0:
            i += 1
        total, other, j = pairs[rest] + inside[i], rest >> (i + 1), i + 1
        while other:
            if other & 1:
                total += between[i, j]
            other >>= 1
            j += 1
        pairs[mask], sides[mask] = total, sides[rest] + size[i]
        if found[rest] == -np.inf or apart[i] & rest:
            found[mask] = -np.inf
        else:
            found[mask] = weight[sides[mask]] * total + prior[sides[mask]]
    return found
