"""In which order to sum out the nodes of a sparse clique: always the one of least fill.

The scope of a node is the nodes still left that share a term or an earlier message with it. Least
fill: the node whose scope lacks the fewest edges, then the smallest scope, then the first in table
order. The largest scope is the width; the tree method's work is exponential in it.

Nodes may have weights (of one with several states, its bits): an edge that is lacking then counts
as the product of the weights of its ends, a scope as the sum of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.network import Network, starts

Integers = NDArray[np.int64]
WIDEST = 22  # scope; its message and the room to sum it need 150 MB
HASH = -7046029254386353131  # 2^64 over the golden ratio, as a signed number: spreads hashed keys


@dataclass(frozen=True)
class Elimination:
    """An order of summing out; one that was stopped early has a width above the limit."""

    order: Integers  # (n,) node of each step; fewer if stopped
    scope_start: Integers  # (n+1,)
    scope: Integers  # nodes, all scopes in the order of the steps
    width: int
    complete: bool

    @cached_property
    def step(self) -> Integers:
        """(n,) at which each node is summed out."""
        step = np.empty(len(self.order), np.int64)
        step[self.order] = np.arange(len(self.order))
        return step

    @cached_property
    def offset(self) -> Integers:
        """(n+1,) where the message of each step begins."""
        return starts(np.int64(1) << np.diff(self.scope_start))

    @cached_property
    def children(self) -> tuple[Integers, Integers]:
        """Steps whose message goes to step k: second[first[k] : first[k + 1]]."""
        child = np.flatnonzero(np.diff(self.scope_start))
        parent = self.step[self.scope[self.scope_start[child]]]
        count = np.bincount(parent, minlength=len(self.order))
        return starts(count), child[np.argsort(parent, kind="stable")]


def elimination(
    network: Network, *, limit: int = WIDEST, weight: Integers | None = None
) -> Elimination:
    """The order of least fill, given up as soon as a scope weighs more than `limit`.

    Weights are positive, of each node 1 where none are given.
    """
    n, edges = len(network), len(network.a)
    weight = np.ones(n, np.int64) if weight is None else weight
    most = limit // int(weight.min(initial=max(limit, 1)))  # nodes in a scope
    if n > most and edges > most * n - most * (most + 1) // 2:  # more than any such width has
        nothing = np.zeros(0, np.int64)
        return Elimination(nothing, np.zeros(1, np.int64), nothing, limit + 1, False)
    # One integer type throughout: a second would have the kernels compiled twice.
    order, sizes, scope, width = _least_fill(
        weight, network.a.astype(np.int64), network.b.astype(np.int64), limit
    )
    steps = Elimination(order, starts(sizes), scope, width, width <= limit)
    if steps.complete:
        _sort_scopes(steps.step, steps.scope_start, scope)
    return steps


@nb.njit(cache=True, nogil=True)
def _sort_scopes(step, scope_start, scope):  # type: ignore[no-untyped-def]
    for t in range(len(step)):
        for k in range(scope_start[t] + 1, scope_start[t + 1]):
            v, i = scope[k], k
            while i > scope_start[t] and step[scope[i - 1]] > step[v]:
                scope[i] = scope[i - 1]
                i -= 1
            scope[i] = v


@nb.njit(cache=True, nogil=True)
def _least_fill(weight, a, b, limit):  # type: ignore[no-untyped-def]
    """Order, sizes of the scopes, scopes (not sorted) and width.

    rank[v] = fill · unit + load is kept exact; fill: the edges that the neighbours of v lack, load:
    the weight of the neighbours, which is below one unit.
    """
    n, unit = len(weight), weight.sum() + 1
    order, sizes = np.empty(n, np.int64), np.empty(n, np.int64)
    scope, used, width = np.empty(4 * n + limit, np.int64), 0, 0
    edges, count = np.full(64, -1), 0  # a hash table
    load, head = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    # Linked lists of neighbours: entry e names the node to[e], follow[e] is the next entry.
    to, follow, entries = np.empty(4 * len(a) + 2, np.int64), np.empty(4 * len(a) + 2, np.int64), 0
    for e in range(len(a)):
        if not _joined(edges, n, a[e], b[e]):
            edges, count = _join(edges, count, n, a[e], b[e])
            entries = _link(a[e], b[e], weight, load, head, to, follow, entries)
    rank = _first_rank(weight, unit, edges, load, head, to, follow, limit)
    if len(rank) < n:
        return order[:0], sizes[:0], scope[:0], limit + 1
    heap, where = np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        heap[v] = v
        _sift(heap, where, rank, v + 1, v)
    done, near, around = np.zeros(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
    for t in range(n):
        v, left = heap[0], n - t
        d = _neighbours(v, done, head, to, follow, near)
        width = max(width, load[v])
        if load[v] > limit:
            return order[:t], sizes[:t], scope[:used], width
        for i in range(d if rank[v] >= unit else 0):
            for j in range(i):
                x, y = near[i], near[j]
                if _joined(edges, n, x, y):
                    continue
                if load[x] > load[y]:
                    x, y = y, x
                beside = around[: _neighbours(x, done, head, to, follow, around)]
                _rank_fill(weight, unit, x, y, beside, edges, load, rank, heap, where, left)
                edges, count = _join(edges, count, n, x, y)
                if entries + 2 > len(to):
                    to, follow = _longer(to), _longer(follow)
                entries = _link(x, y, weight, load, head, to, follow, entries)
        order[t], sizes[t], done[v] = v, d, True
        heap[where[v]] = heap[left - 1]
        _sift(heap, where, rank, left - 1, where[v])
        if used + d > len(scope):
            scope = _longer(scope)
        for i in range(d):
            u = near[i]
            scope[used + i] = u
            beyond = load[u] - weight[v] - (load[v] - weight[u])  # these are no neighbours of v
            rank[u] -= weight[v] * (beyond * unit + 1)
            load[u] -= weight[v]
            _sift(heap, where, rank, left - 1, where[u])
        used += d
    return order, sizes, scope[:used], width


@nb.njit(cache=True, nogil=True)
def _rank_fill(  # type: ignore[no-untyped-def]
    weight, unit, x, y, near, edges, load, rank, heap, where, left
):
    """Ranks once x and y, not neighbours so far, are joined; `near` are the neighbours of x."""
    shared, lacking = 0, weight[x] * weight[y] * unit
    for w in near:
        if _joined(edges, len(weight), w, y):
            shared += weight[w]
            rank[w] -= lacking
            _sift(heap, where, rank, left, where[w])
    rank[x] += weight[y] * ((load[x] - shared) * unit + 1)
    _sift(heap, where, rank, left, where[x])
    rank[y] += weight[x] * ((load[y] - shared) * unit + 1)
    _sift(heap, where, rank, left, where[y])


@nb.njit(cache=True, nogil=True)
def _slot(edges, key):  # type: ignore[no-untyped-def]
    """Where the edge is in the hash table, or the free slot (-1) where it would go."""
    k = (key * HASH >> 32) & (len(edges) - 1)
    while edges[k] != key and edges[k] >= 0:
        k = (k + 1) & (len(edges) - 1)
    return k


@nb.njit(cache=True, nogil=True)
def _joined(edges, n, u, v):  # type: ignore[no-untyped-def]
    return edges[_slot(edges, min(u, v) * n + max(u, v))] >= 0


@nb.njit(cache=True, nogil=True)
def _join(edges, count, n, u, v):  # type: ignore[no-untyped-def]
    key = min(u, v) * n + max(u, v)
    edges[_slot(edges, key)] = key
    if 2 * count < len(edges):
        return edges, count + 1
    larger = np.full(4 * len(edges), -1)
    for k in edges:
        if k >= 0:
            larger[_slot(larger, k)] = k
    return larger, count + 1


@nb.njit(cache=True, nogil=True)
def _longer(array):  # type: ignore[no-untyped-def]
    twice = np.empty(2 * len(array), np.int64)
    twice[: len(array)] = array
    return twice


@nb.njit(cache=True, nogil=True)
def _link(u, v, weight, load, head, to, follow, entries):  # type: ignore[no-untyped-def]
    to[entries], follow[entries], head[u] = v, head[u], entries
    to[entries + 1], follow[entries + 1], head[v] = u, head[v], entries + 1
    load[u] += weight[v]
    load[v] += weight[u]
    return entries + 2


@nb.njit(cache=True, nogil=True)
def _neighbours(v, done, head, to, follow, out):  # type: ignore[no-untyped-def]
    """List those not done, and drop the others from the list of v."""
    count, last, e = 0, -1, head[v]
    while e >= 0:
        if not done[to[e]]:
            out[count] = to[e]
            count, last = count + 1, e
        elif last < 0:
            head[v] = follow[e]
        else:
            follow[last] = follow[e]
        e = follow[e]
    return count


@nb.njit(cache=True, nogil=True)
def _first_rank(  # type: ignore[no-untyped-def]
    weight, unit, edges, load, head, to, follow, limit
):
    """The rank of every node, or less than n if there are nodes with neighbours of more than
    `limit` each among themselves: no order has a width within the limit then.

    Nodes whose neighbours weigh at most `limit` are taken off until none is left; each triangle is
    counted when the first of its nodes goes.
    """
    n = len(weight)
    left, rank = load.copy(), np.empty(n, np.int64)
    stack, near, gone = np.empty(n, np.int64), np.empty(limit, np.int64), np.zeros(n, np.bool_)
    waiting, taken = 0, 0
    for v in range(n):
        squares, e = 0, head[v]
        while e >= 0:
            squares += weight[to[e]] * weight[to[e]]
            e = follow[e]
        rank[v] = (load[v] * load[v] - squares) // 2 * unit + load[v]
        if left[v] <= limit:
            stack[waiting] = v
            waiting += 1
    while waiting > 0:
        waiting -= 1
        v = stack[waiting]
        gone[v], taken, count, e = True, taken + 1, 0, head[v]
        while e >= 0:
            u = to[e]
            e = follow[e]
            if gone[u]:
                continue
            near[count] = u
            count += 1
            left[u] -= weight[v]
            if left[u] <= limit < left[u] + weight[v]:
                stack[waiting] = u
                waiting += 1
        for i in range(count):
            for j in range(i):
                if _joined(edges, n, near[i], near[j]):
                    u, w = near[i], near[j]
                    rank[v] -= weight[u] * weight[w] * unit
                    rank[u] -= weight[v] * weight[w] * unit
                    rank[w] -= weight[v] * weight[u] * unit
    return rank[:taken]


@nb.njit(cache=True, nogil=True)
def _sift(heap, where, rank, size, k):  # type: ignore[no-untyped-def]
    """Move entry k to where it belongs; the least rank is on top, of equal ones the first node."""
    v = heap[k]
    while k > 0:
        u = heap[(k - 1) // 2]
        if rank[u] < rank[v] or (rank[u] == rank[v] and u < v):
            break
        heap[k], where[u] = u, k
        k = (k - 1) // 2
    while 2 * k + 1 < size:
        c = 2 * k + 1
        if c + 1 < size:
            u, w = heap[c], heap[c + 1]
            if rank[w] < rank[u] or (rank[w] == rank[u] and w < u):
                c += 1
        u = heap[c]
        if rank[v] < rank[u] or (rank[v] == rank[u] and v < u):
            break
        heap[k], where[u] = u, k
        k = c
    heap[k], where[v] = v, k
