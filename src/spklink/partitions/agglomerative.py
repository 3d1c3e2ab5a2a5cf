"""Linking two at a time: whichever two blocks go together best are merged, until none should be.

How well two blocks go together:
    gain      what the log-likelihood of the partition gains (prior included); stops where it falls
    average   mean log-likelihood-ratio across;   complete   the least;   single   the greatest
              these stop below a threshold, 0 unless another is given
Blocks that hold two items that may not be together are never merged. All pairs are at hand here;
module `graph` does the same with those that matter among very many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.partitions.items import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LINKAGES = ("gain", "average", "complete", "single")


@dataclass(frozen=True)
class Merges:
    """All merges in their order; blocks are called by their first items."""

    items: int
    one: Ints  # (merges,) the block that stays
    two: Ints  # and the one that joins it
    merit: Floats  # how well they went together

    def label(self, merges: int) -> Ints:
        """(I,) the partition after so many merges, blocks numbered by their first items."""
        parent = np.arange(self.items)
        for one, two in zip(self.one[:merges].tolist(), self.two[:merges].tolist(), strict=True):
            parent[two] = one
        for item in range(self.items):  # a block joins only one with a lower number
            parent[item] = parent[parent[item]]
        return np.asarray(np.unique(parent, return_inverse=True)[1], np.int64)


def merge_all(problem: Problem, linkage: str = "gain") -> Merges:
    """Merge until nothing may be merged any more."""
    if linkage not in LINKAGES:
        raise SpklinkError(f"--linkage {linkage!r} is not one of {', '.join(LINKAGES)}")
    items = problem.items
    kind = LINKAGES.index(linkage)
    mean = items.between / np.outer(items.size, items.size)
    cross = np.where(items.apart, -np.inf, items.between if kind < 2 else mean)
    one, two, merit = _merge(
        kind,
        cross,
        items.size.copy(),
        items.inside.copy(),
        problem.pair_weight,
        problem.block_prior,
    )
    return Merges(len(items), one, two, merit)


def agglomerate(
    problem: Problem, linkage: str = "gain", *, threshold: float = 0.0, speakers: int | None = None
) -> Ints:
    """(I,) the block of every item; `speakers` ends at that number, as far as it may be reached."""
    found = merge_all(problem, linkage)
    if speakers is not None:
        return found.label(len(problem.items) - speakers)
    prior, blocks = problem.count_prior, len(problem.items)
    merit = found.merit - threshold
    if linkage == "gain" and prior is not None:
        after = blocks - 1 - np.arange(len(merit))
        merit = merit + prior[after] - prior[after + 1]
    stop = np.flatnonzero(merit < 0.0)
    return found.label(int(stop[0]) if len(stop) else len(merit))


@nb.njit(cache=True, nogil=True)
def _merit(kind, cross, size, inside, weight, prior, a, b):  # type: ignore[no-untyped-def]
    x = cross[a, b]
    if kind >= 2 or x == -np.inf:
        return x
    if kind == 1:
        return x / (size[a] * size[b])
    n, m = size[a], size[b]
    apart = weight[n] * inside[a] + prior[n] + weight[m] * inside[b] + prior[m]
    return weight[n + m] * (inside[a] + inside[b] + x) + prior[n + m] - apart


@nb.njit(cache=True, nogil=True)
def _merge(kind, cross, size, inside, weight, prior):  # type: ignore[no-untyped-def]
    """Every block keeps its best partner among those after it; only where a merge touched one, or
    its best, is it looked for again."""
    items = len(size)
    alive = np.ones(items, np.bool_)
    partner, merit = np.full(items, -1), np.full(items, -np.inf)
    stale = np.ones(items, np.bool_)
    one, two = np.empty(items - 1, np.int64), np.empty(items - 1, np.int64)
    value = np.empty(items - 1)
    for step in range(items - 1):
        best = -1
        for a in range(items):
            if not alive[a]:
                continue
            if stale[a]:
                partner[a], merit[a], stale[a] = -1, -np.inf, False
                for b in range(a + 1, items):
                    if alive[b]:
                        here = _merit(kind, cross, size, inside, weight, prior, a, b)
                        if here > merit[a]:
                            partner[a], merit[a] = b, here
            if partner[a] >= 0 and (best < 0 or merit[a] > merit[best]):
                best = a
        if best < 0:
            return one[:step], two[:step], value[:step]
        a, b = best, partner[best]
        one[step], two[step], value[step] = a, b, merit[a]
        _join(kind, cross, size, inside, alive, a, b)
        stale[a] = True
        for c in range(items):
            if not alive[c] or c >= b:
                continue
            if partner[c] == a or partner[c] == b:
                stale[c] = True
            elif c < a:
                here = _merit(kind, cross, size, inside, weight, prior, c, a)
                if here > merit[c]:
                    partner[c], merit[c] = a, here
    return one, two, value


@nb.njit(cache=True, nogil=True)
def _join(kind, cross, size, inside, alive, a, b):  # type: ignore[no-untyped-def]
    """Block b becomes part of a; what may not be together has a cross value of -inf."""
    inside[a] += inside[b] + (cross[a, b] if kind < 2 else 0.0)
    size[a] += size[b]
    alive[b] = False
    for c in range(len(size)):
        if not alive[c] or c == a:
            continue
        x, y = cross[a, c], cross[b, c]
        if x == -np.inf or y == -np.inf:
            joined = -np.inf
        elif kind < 2:
            joined = x + y
        elif kind == 2:
            joined = min(x, y)
        else:
            joined = max(x, y)
        cross[a, c], cross[c, a] = joined, joined
