"""Agglomerative linking of very many sides: only pairs that matter are at hand.

Pairs above a floor have their log-likelihood-ratio; every other pair counts as `rest`, the mean of
those below the floor. Blocks are merged along kept pairs only, the best first, as in module
`agglomerative`, and blocks that hold two sides that may not be together never are.

Two blocks with kept pairs between them have one *record*: how many such pairs, their sum, the least
and the greatest. Records of a block hang on a chain. A merge moves those of the block that has
fewer, and puts what changed on a heap; what is stale there is passed over when it comes up.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numba as nb
import numpy as np
from numba.typed import Dict
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.errors import SpklinkError
from spklink.partitions.agglomerative import LINKAGES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Graph:
    """Sides, the log-likelihood-ratios of the pairs that matter, and of all others."""

    sides: int
    one: Ints
    two: Ints
    llr: Floats
    rest: float
    apart: Ints  # (P, 2) pairs that may not be together


def link_graph(
    graph: Graph,
    pair_weight: Floats,
    block_prior: Floats,
    linkage: str = "gain",
    *,
    threshold: float = 0.0,
    speakers: int | None = None,
) -> Ints:
    """(S,) the block of every side, numbered by their first sides; `pair_weight` and `block_prior`
    as in a Problem, their last value serving all larger blocks."""
    if linkage not in LINKAGES:
        raise SpklinkError(f"--linkage {linkage!r} is not one of {', '.join(LINKAGES)}")
    start, other = _by_side(graph)
    keys = Dict.empty(nb.int64, nb.int64)
    low, high = np.minimum(graph.one, graph.two), np.maximum(graph.one, graph.two)
    root = _link(
        LINKAGES.index(linkage),
        graph.sides,
        low.astype(np.int64),
        high.astype(np.int64),
        graph.llr.astype(np.float64),
        graph.rest,
        start,
        other,
        pair_weight,
        block_prior,
        threshold,
        0 if speakers is None else speakers,
        keys,
    )
    return np.asarray(np.unique(root, return_inverse=True)[1], np.int64)


def _by_side(graph: Graph) -> tuple[Ints, Ints]:
    """Of every side those that it may not be together with: other[start[s] : start[s + 1]]."""
    pairs = np.concatenate([graph.apart, graph.apart[:, ::-1]])
    order = np.argsort(pairs[:, 0], kind="stable")
    count = np.bincount(pairs[:, 0], minlength=graph.sides)
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64), pairs[order, 1].copy()


@nb.njit(cache=True, nogil=True)
def _valued(n, pairs, weight, prior):  # type: ignore[no-untyped-def]
    at = min(n, len(weight) - 1)
    w = weight[at] if n == at else weight[at] * at / n  # as 2/n goes on
    return w * pairs + prior[at]


@nb.njit(cache=True, nogil=True)
def _merit(kind, r, n, m, inside_n, inside_m, rest, weight, prior, record):  # type: ignore[no-untyped-def]
    total, count, least, most = record
    missing = n * m - count[r]
    if kind == 3:
        return most[r]
    if kind == 2:
        return least[r] if missing == 0 else min(least[r], rest)
    across = total[r] + missing * rest
    if kind == 1:
        return across / (n * m)
    apart = _valued(n, inside_n, weight, prior) + _valued(m, inside_m, weight, prior)
    return _valued(n + m, inside_n + inside_m + across, weight, prior) - apart


@nb.njit(cache=True, nogil=True)
def _find(parent, side):  # type: ignore[no-untyped-def]
    while parent[side] != side:
        parent[side] = parent[parent[side]]
        side = parent[side]
    return side


@nb.njit(cache=True, nogil=True)
def _clash(parent, following, start, other, a, b):  # type: ignore[no-untyped-def]
    """Whether block a holds a side that may not be together with one of block b."""
    side = a
    while side >= 0:
        for k in range(start[side], start[side + 1]):
            if _find(parent, other[k]) == b:
                return True
        side = following[side]
    return False


@nb.njit(cache=True, nogil=True)
def _absorb(a, b, width, chain, ends, record, keys):  # type: ignore[no-untyped-def]
    """Records of block b become those of a, added to what a has with the same block."""
    head, links = chain
    total, count, least, most = record
    at = head[b]
    while at >= 0:
        r, after = at // 2, links[at]
        c = ends[r, 1 - at % 2]
        if count[r] > 0 and c != a:
            keys.pop(min(b, c) * width + max(b, c))
            key = min(a, c) * width + max(a, c)
            if key in keys:
                old = keys[key]
                total[old] += total[r]
                count[old] += count[r]
                least[old], most[old] = min(least[old], least[r]), max(most[old], most[r])
                count[r] = 0
            else:
                keys[key] = r
                ends[r, at % 2] = a
                links[at], head[a] = head[a], at
        at = after


@nb.njit(cache=True, nogil=True)
def _link(kind, sides, one, two, llr, rest, start, other, weight, prior, threshold, wanted, keys):  # type: ignore[no-untyped-def]
    width = np.int64(sides)
    parent, following, last = np.arange(sides), np.full(sides, -1), np.arange(sides)
    size, degree, inside = np.ones(sides, np.int64), np.zeros(sides, np.int64), np.zeros(sides)
    head, links = np.full(sides, -1), np.full(2 * len(one), -1)
    ends = np.empty((len(one), 2), np.int64)
    record = llr.copy(), np.ones(len(one), np.int64), llr.copy(), llr.copy()
    heap = [(0.0, np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for pair in range(len(one)):
        keys[one[pair] * width + two[pair]] = pair
        for k, side in enumerate((one[pair], two[pair])):
            ends[pair, k] = side
            links[2 * pair + k], head[side] = head[side], 2 * pair + k
            degree[side] += 1
        merit = _merit(kind, pair, 1, 1, 0.0, 0.0, rest, weight, prior, record)
        if merit > threshold or wanted:
            heap.append((-merit, np.int64(pair), np.int64(1), np.int64(1)))
    heapq.heapify(heap)
    blocks = sides
    while len(heap) and blocks > wanted:
        worth, r, n, m = heapq.heappop(heap)
        a, b = ends[r, 0], ends[r, 1]
        if record[1][r] == 0 or size[a] != n or size[b] != m:
            continue
        if -worth < threshold and not wanted:
            break
        if degree[a] < degree[b]:
            a, b = b, a
        small, large = (a, b) if size[a] < size[b] else (b, a)
        keys.pop(min(a, b) * width + max(a, b))
        if _clash(parent, following, start, other, small, large):
            record[1][r] = 0
            continue
        total, count = record[0][r], record[1][r]
        inside[a] += inside[b] + total + (size[a] * size[b] - count) * rest
        record[1][r] = 0
        _absorb(a, b, width, (head, links), ends, record, keys)
        parent[b], size[a], degree[a] = a, size[a] + size[b], degree[a] + degree[b]
        following[last[a]], last[a] = b, last[b]
        blocks -= 1
        at = head[a]
        while at >= 0:
            near = at // 2
            if record[1][near] > 0:
                c, d = ends[near, 0], ends[near, 1]
                n, m = size[c], size[d]
                merit = _merit(kind, near, n, m, inside[c], inside[d], rest, weight, prior, record)
                if merit > threshold or wanted:
                    heapq.heappush(heap, (-merit, np.int64(near), n, m))
            at = links[at]
    return _roots(parent)


@nb.njit(cache=True, nogil=True)
def _roots(parent):  # type: ignore[no-untyped-def]
    """The first side of the block of every side."""
    first = np.full(len(parent), -1)
    found = np.empty(len(parent), np.int64)
    for side in range(len(parent)):
        root = _find(parent, side)
        if first[root] < 0:
            first[root] = side
        found[side] = first[root]
    return found


def put_back(
    graph: Graph, label: Ints, pair_weight: Floats, block_prior: Floats
) -> tuple[Floats, Floats]:
    """How probable every side is in its block, and every kept pair in one block: each side in turn
    taken out and put back, all others as they are. Estimates, of which nothing is promised."""
    order = np.argsort(np.concatenate([graph.one, graph.two]), kind="stable")
    near = np.concatenate([graph.two, graph.one])[order]
    value = np.concatenate([graph.llr, graph.llr])[order]
    count = np.bincount(np.concatenate([graph.one, graph.two]), minlength=graph.sides)
    start = np.concatenate([[0], np.cumsum(count)])
    size = np.bincount(label)
    same = label[graph.one] == label[graph.two]
    kept = np.bincount(label[graph.one[same]], minlength=len(size))
    inside = sums(label[graph.one[same]], graph.llr[same], len(size))
    inside = inside + (size * (size - 1) / 2.0 - kept) * graph.rest
    own, other = _put_back(
        start, near, value, label, size, inside, graph.rest, pair_weight, block_prior
    )
    pair = np.empty(len(near))
    pair[order] = other
    half = len(graph.one)
    one, two = pair[:half] * own[graph.two], pair[half:] * own[graph.one]
    return own, np.where(same, own[graph.one] * own[graph.two], np.maximum(one, two))


@nb.njit(cache=True, nogil=True)
def _put_back(start, near, value, label, size, inside, rest, weight, prior):  # type: ignore[no-untyped-def]
    """own (S,), and how probable the first side of a kept pair is in the block of its second."""
    sides = len(label)
    own, other = np.zeros(sides), np.zeros(len(near))
    total, count = np.zeros(len(size)), np.zeros(len(size), np.int64)
    gain = np.full(len(size), -np.inf)
    for side in range(sides):
        mine = label[side]
        for k in range(start[side], start[side + 1]):
            total[label[near[k]]] += value[k]
            count[label[near[k]]] += 1
        left = size[mine] - 1
        most, alone = 0.0, prior[1]
        for k in range(start[side] - 1, start[side + 1]):
            b = mine if k < start[side] else label[near[k]]
            n = size[b] - (1 if b == mine else 0)
            if n == 0:
                continue
            across = total[b] + (n - count[b]) * rest
            x = inside[b] - (across if b == mine else 0.0)
            joined = _valued(n + 1, x + across, weight, prior)
            gain[b] = joined - _valued(n, x, weight, prior) - alone
            most = max(most, gain[b])
        sum_ = np.exp(-most)
        if left > 0:
            sum_ += np.exp(gain[mine] - most)
        for k in range(start[side], start[side + 1]):
            b = label[near[k]]
            if b != mine and count[b] > 0:
                sum_ += np.exp(gain[b] - most)
                count[b] = -count[b]  # counted
        own[side] = (np.exp(gain[mine] - most) if left > 0 else np.exp(-most)) / sum_
        for k in range(start[side], start[side + 1]):
            other[k] = np.exp(gain[label[near[k]]] - most) / sum_
        for k in range(start[side], start[side + 1]):
            b = label[near[k]]
            total[b], count[b], gain[b] = 0.0, 0, -np.inf
        total[mine], count[mine], gain[mine] = 0.0, 0, -np.inf
    return own, other
