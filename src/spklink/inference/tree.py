"""Sparse cliques of any size: nodes are summed out one after the other (a bucket tree); exact.

Step t sums out node order[t]. What remains is a table, the message, over its scope: the nodes still
left that share a term or an earlier message with it. It goes to the step of the first of them. The
work is exponential in the largest scope, the width. The order is that of least fill: always the
node whose scope lacks the fewest edges, then the smallest scope, then the first in table order.
Index conventions: a scope lists nodes in the order of their own steps; its first node is the
highest bit of the index into the message.

A first pass takes maxima instead of sums, in logarithms, and finds the proved optimum. The second
counts changes from that optimum and sums plain numbers: no exponential an entry. It keeps account
of the range that tables can span; a step that could leave the range of floating point is taken in
logarithms, so that no field or coupling is too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.inference.beliefs import Beliefs, exact_beliefs
from spklink.inference.network import Network

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
LIMIT = 22  # width
REACH = 600.0  # tables whose logarithms stay within +-REACH are summed as plain numbers
HASH = -7046029254386353131  # 2^64 over the golden ratio, as a signed number: spreads hashed keys
# Seconds x 1e9 on one core: for a message entry in all passes, for each child it is multiplied by,
# and for a step.
OPERATIONS_ENTRY, OPERATIONS_CHILD, OPERATIONS_STEP = 20.0, 5.0, 600.0


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
        return _starts(np.int64(1) << np.diff(self.scope_start))

    @cached_property
    def children(self) -> tuple[Integers, Integers]:
        """Steps whose message goes to step k: second[first[k] : first[k + 1]]."""
        child = np.flatnonzero(np.diff(self.scope_start))
        parent = self.step[self.scope[self.scope_start[child]]]
        count = np.bincount(parent, minlength=len(self.order))
        return _starts(count), child[np.argsort(parent, kind="stable")]


def elimination(network: Network, *, limit: int = LIMIT) -> Elimination:
    """The order of least fill, given up as soon as a scope has more than `limit` nodes."""
    n, edges = len(network), len(network.coupling)
    if n > limit and edges > limit * n - limit * (limit + 1) // 2:  # more than any such width has
        nothing = np.zeros(0, np.int64)
        return Elimination(nothing, np.zeros(1, np.int64), nothing, limit + 1, False)
    # One integer type throughout: a second would have the kernels compiled twice.
    order, sizes, scope, width = _least_fill(
        n, network.a.astype(np.int64), network.b.astype(np.int64), limit
    )
    steps = Elimination(order, _starts(sizes), scope, width, width <= limit)
    if steps.complete:
        _sort_scopes(steps.step, steps.scope_start, scope)
    return steps


def _starts(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)])


def tree_cost(elimination: Elimination) -> tuple[float, float]:
    """Operations (about 1e9 a second on one core) and bytes; infinite if the order was stopped."""
    if not elimination.complete:
        return np.inf, np.inf
    entries = 2.0 ** np.diff(elimination.scope_start)
    children = np.diff(elimination.children[0])
    an_entry = OPERATIONS_ENTRY + OPERATIONS_CHILD * children
    operations = float(entries @ an_entry) + OPERATIONS_STEP * len(entries)
    return operations, 17.0 * float(entries.sum()) + 20.0 * 2.0**elimination.width


def optimum(network: Network, elimination: Elimination | None = None) -> Bits:
    """A most probable configuration: proved, up to rounding."""
    steps = _complete(network, elimination)
    return _maximised(network, steps, _places(network, steps), np.empty(steps.offset[-1]))


def tree(
    network: Network,
    *,
    elimination: Elimination | None = None,
    start: Bits | None = None,
    seed: int = 0,
) -> Beliefs:
    """Everything about one sparse clique. `start`, `seed`: as other methods; there is no search."""
    steps = _complete(network, elimination)
    place, message = _places(network, steps), np.empty(steps.offset[-1])
    best = _maximised(network, steps, place, message)
    changes = _turned(network, best)
    log_sum, one, both = _summed(changes, steps, place, message)
    mean = float(changes.field @ one + changes.coupling @ both)
    a, b, sign = network.a, network.b, 1.0 - 2.0 * best
    one = best + sign * one
    both = sign[a] * sign[b] * both + best[a] * one[b] + best[b] * one[a] - best[a] * best[b]
    one = np.clip(one, 0.0, 1.0)
    both = np.clip(both, np.maximum(0.0, one[a] + one[b] - 1.0), np.minimum(one[a], one[b]))
    value, entropy = network.value(best), max(0.0, log_sum - mean)
    return exact_beliefs(network, "tree", best, one, both, value + log_sum, entropy)


def _complete(network: Network, steps: Elimination | None) -> Elimination:
    steps = elimination(network) if steps is None else steps
    if not steps.complete:
        raise ValueError(f"a width of {steps.width} is too much for the tree method")
    return steps


def _places(network: Network, steps: Elimination) -> Integers:
    """(E,) where in `scope` the end of each edge that is summed out later stands."""
    place = np.empty(len(network.coupling), np.int64)
    _find_places(network.a, network.b, steps.step, steps.scope_start, steps.scope, place)
    return place


def _terms(network: Network, steps: Elimination, place: Integers) -> tuple[Floats, Floats]:
    """Fields by step, and couplings by place in the scopes."""
    coupling = np.bincount(place, network.coupling, len(steps.scope))
    return network.field[steps.order], coupling.astype(np.float64)


def _turned(network: Network, best: Bits) -> Network:
    """The clique in changes from `best`, less the value of `best`."""
    n, a, b, sign = len(network), network.a, network.b, 1.0 - 2.0 * best
    slope = network.field + np.bincount(a, network.coupling * best[b], n)
    slope += np.bincount(b, network.coupling * best[a], n)
    return Network(sign * slope, a, b, sign[a] * sign[b] * network.coupling, 0.0)


def _layout(steps: Elimination) -> tuple[Integers, ...]:
    return steps.scope_start, steps.scope, *steps.children, steps.offset


def _maximised(network: Network, steps: Elimination, place: Integers, message: Floats) -> Bits:
    choice, best = np.empty(len(message), np.int8), np.zeros(len(network), np.int8)
    _maximise(_layout(steps), steps.width, *_terms(network, steps, place), message, choice)
    _look_back(_layout(steps), steps.order, choice, best)
    return best


def _summed(
    network: Network, steps: Elimination, place: Integers, message: Floats
) -> tuple[float, Floats, Floats]:
    """log_sum, P(x = 1) and P(x_a = x_b = 1)."""
    upper, one, both = np.empty_like(message), np.empty(len(network)), np.empty(len(steps.scope))
    terms = _terms(network, steps, place)
    log_sum = _sum(_layout(steps), steps.width, *terms, message, upper)
    _spread(_layout(steps), steps.width, message, upper, one, both)
    return log_sum, one[steps.step], both[place]


@nb.njit(cache=True)
def _find_places(a, b, step, scope_start, scope, place):  # type: ignore[no-untyped-def]
    for e in range(len(a)):
        u, v = (a[e], b[e]) if step[a[e]] < step[b[e]] else (b[e], a[e])
        k = scope_start[step[u]]
        while scope[k] != v:
            k += 1
        place[e] = k


@nb.njit(cache=True)
def _align(scope, t0, t1, c0, c1, index):  # type: ignore[no-untyped-def]
    """index[z]: where the message of a child with scope c0:c1 meets state z of the scope t0:t1.

    The first node of the child's scope is the one summed out here; its half for 1 comes second.
    """
    index[0], c = 0, c1 - 1
    for p in range(t1 - t0):
        bit, m = 0, 1 << p
        if c > c0 and scope[c] == scope[t1 - 1 - p]:
            bit = 1 << (c1 - 1 - c)
            c -= 1
        for z in range(m):
            index[m + z] = index[z] + bit


@nb.njit(cache=True)
def _gather(  # type: ignore[no-untyped-def]
    layout, t, field, coupling, message, plain, low, high, index
):
    """low, high: the terms with the node of step t at 0 and at 1, for each state of its scope.

    They are plain numbers, or logarithms, as plain[t] says; so are the messages by plain[child].
    """
    scope_start, scope, first, child, offset = layout
    t0, t1 = scope_start[t], scope_start[t + 1]
    low[: 1 << (t1 - t0)] = 1.0 if plain[t] else 0.0
    high[0] = np.exp(field[t]) if plain[t] else field[t]
    for p in range(t1 - t0):
        m, step = 1 << p, coupling[t1 - 1 - p]
        factor = np.exp(step) if plain[t] else 0.0
        for z in range(m):
            high[m + z] = high[z] * factor if plain[t] else high[z] + step
    for k in range(first[t], first[t + 1]):
        c = child[k]
        _align(scope, t0, t1, scope_start[c], scope_start[c + 1], index)
        middle = (offset[c] + offset[c + 1]) // 2
        zero, one = message[offset[c] : middle], message[middle : offset[c + 1]]
        if plain[t]:
            for z in range(1 << (t1 - t0)):
                low[z] *= zero[index[z]]
                high[z] *= one[index[z]]
        elif plain[c]:
            for z in range(1 << (t1 - t0)):
                low[z] += np.log(zero[index[z]])
                high[z] += np.log(one[index[z]])
        else:
            for z in range(1 << (t1 - t0)):
                low[z] += zero[index[z]]
                high[z] += one[index[z]]


@nb.njit(cache=True)
def _maximise(layout, width, field, coupling, message, choice):  # type: ignore[no-untyped-def]
    """Messages of log maxima; choice: the better state of each step's node given its scope's."""
    offset, plain = layout[4], np.zeros(len(field), np.bool_)
    low, high, index = np.empty(1 << width), np.empty(1 << width), np.empty(1 << width, np.int32)
    for t in range(len(field)):
        _gather(layout, t, field, coupling, message, plain, low, high, index)
        out, chosen = message[offset[t] : offset[t + 1]], choice[offset[t] : offset[t + 1]]
        level = max(low[0], high[0])
        for z in range(len(out)):
            chosen[z] = high[z] > low[z]
            out[z] = (high[z] if high[z] > low[z] else low[z]) - level


@nb.njit(cache=True)
def _look_back(layout, order, choice, best):  # type: ignore[no-untyped-def]
    scope_start, scope, _, _, offset = layout
    for t in range(len(order) - 1, -1, -1):
        state = 0
        for k in range(scope_start[t], scope_start[t + 1]):
            state = 2 * state + best[scope[k]]
        best[order[t]] = choice[offset[t] + state]


@nb.njit(cache=True)
def _sum(layout, width, field, coupling, message, upper):  # type: ignore[no-untyped-def]
    """Messages of sums relative to state 0, and upper: P(node of the step = 1 | its scope)."""
    scope_start, _, first, child, offset = layout
    plain, reach = np.ones(len(field), np.bool_), np.zeros(len(field))  # reach: largest |log|
    low, high, index = np.empty(1 << width), np.empty(1 << width), np.empty(1 << width, np.int32)
    log_sum = 0.0
    for t in range(len(field)):
        span = abs(field[t])
        for k in range(scope_start[t], scope_start[t + 1]):
            span += abs(coupling[k])
        for k in range(first[t], first[t + 1]):
            span += reach[child[k]] if plain[child[k]] else np.inf
        plain[t] = span <= REACH
        _gather(layout, t, field, coupling, message, plain, low, high, index)
        out, share = message[offset[t] : offset[t + 1]], upper[offset[t] : offset[t + 1]]
        if plain[t]:
            level, least, most = low[0] + high[0], 1.0, 1.0
            log_sum += np.log(level)
            for z in range(len(out)):
                total = low[z] + high[z]
                share[z] = high[z] / total
                out[z] = total / level
                least = out[z] if out[z] < least else least
                most = out[z] if out[z] > most else most
            reach[t] = max(np.log(most), -np.log(least))
        else:
            level = _log_add(low[0], high[0])
            log_sum += level
            for z in range(len(out)):
                share[z] = 1.0 / (1.0 + np.exp(low[z] - high[z]))
                out[z] = _log_add(low[z], high[z]) - level
                reach[t] = max(reach[t], abs(out[z]))
            if reach[t] <= REACH:
                plain[t] = True
                for z in range(len(out)):
                    out[z] = np.exp(out[z])
    return log_sum


@nb.njit(cache=True)
def _log_add(u, v):  # type: ignore[no-untyped-def]
    return max(u, v) + np.log1p(np.exp(-abs(u - v)))


@nb.njit(cache=True)
def _spread(layout, width, message, upper, one, both):  # type: ignore[no-untyped-def]
    """From the last step back: the messages become the probabilities of their scopes' states."""
    scope_start, scope, first, child, offset = layout
    low, high, index = np.empty(1 << width), np.empty(1 << width), np.empty(1 << width, np.int32)
    for t in range(len(one) - 1, -1, -1):
        t0, t1, begin, m = scope_start[t], scope_start[t + 1], offset[t], 1 << width
        m = offset[t + 1] - begin
        if t0 == t1:
            message[begin] = 1.0
        for z in range(m):
            high[z] = message[begin + z] * upper[begin + z]
            low[z] = message[begin + z] - high[z]
        for k in range(first[t], first[t + 1]):
            c = child[k]
            _align(scope, t0, t1, scope_start[c], scope_start[c + 1], index)
            message[offset[c] : offset[c + 1]] = 0.0
            middle = (offset[c] + offset[c + 1]) // 2
            zeros, ones = message[offset[c] : middle], message[middle : offset[c + 1]]
            for z in range(m):
                zeros[index[z]] += low[z]
                ones[index[z]] += high[z]
        for k in range(t0, t1):  # fold the highest bit: its upper half is where its node is 1
            m >>= 1
            total = 0.0
            for z in range(m):
                total += high[m + z]
                high[z] += high[m + z]
            both[k] = total
        one[t] = high[0]


@nb.njit(cache=True)
def _sort_scopes(step, scope_start, scope):  # type: ignore[no-untyped-def]
    for t in range(len(step)):
        for k in range(scope_start[t] + 1, scope_start[t + 1]):
            v, i = scope[k], k
            while i > scope_start[t] and step[scope[i - 1]] > step[v]:
                scope[i] = scope[i - 1]
                i -= 1
            scope[i] = v


@nb.njit(cache=True)
def _least_fill(n, a, b, limit):  # type: ignore[no-untyped-def]
    """Order, sizes of the scopes, scopes (not sorted) and width.

    rank[v] = fill (n + 1) + degree is kept exact; fill: the edges that the neighbours of v lack.
    """
    order, sizes = np.empty(n, np.int64), np.empty(n, np.int64)
    scope, used, width = np.empty(4 * n + limit, np.int64), 0, 0
    edges, count = np.full(64, -1), 0  # a hash table
    degree, head = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    # Linked lists of neighbours: entry e names the node to[e], follow[e] is the next entry.
    to, follow, entries = np.empty(4 * len(a) + 2, np.int64), np.empty(4 * len(a) + 2, np.int64), 0
    for e in range(len(a)):
        if not _joined(edges, n, a[e], b[e]):
            edges, count = _join(edges, count, n, a[e], b[e])
            entries = _link(a[e], b[e], degree, head, to, follow, entries)
    rank = _first_rank(n, edges, degree, head, to, follow, limit)
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
        width = max(width, d)
        if d > limit:
            return order[:t], sizes[:t], scope[:used], width
        for i in range(d if rank[v] > n else 0):
            for j in range(i):
                x, y = near[i], near[j]
                if _joined(edges, n, x, y):
                    continue
                if degree[x] > degree[y]:
                    x, y = y, x
                shared = 0
                for k in range(_neighbours(x, done, head, to, follow, around)):
                    w = around[k]
                    if _joined(edges, n, w, y):
                        shared += 1
                        rank[w] -= n + 1
                        _sift(heap, where, rank, left, where[w])
                rank[x] += (degree[x] - shared) * (n + 1) + 1
                _sift(heap, where, rank, left, where[x])
                rank[y] += (degree[y] - shared) * (n + 1) + 1
                _sift(heap, where, rank, left, where[y])
                edges, count = _join(edges, count, n, x, y)
                if entries + 2 > len(to):
                    to, follow = _longer(to), _longer(follow)
                entries = _link(x, y, degree, head, to, follow, entries)
        order[t], sizes[t], done[v] = v, d, True
        heap[where[v]] = heap[left - 1]
        _sift(heap, where, rank, left - 1, where[v])
        if used + d > len(scope):
            scope = _longer(scope)
        for i in range(d):
            u = near[i]
            scope[used + i] = u
            rank[u] -= (degree[u] - d) * (n + 1) + 1  # v is no neighbour of these neighbours of u
            degree[u] -= 1
            _sift(heap, where, rank, left - 1, where[u])
        used += d
    return order, sizes, scope[:used], width


@nb.njit(cache=True)
def _slot(edges, key):  # type: ignore[no-untyped-def]
    """Where the edge is in the hash table, or the free slot (-1) where it would go."""
    k = (key * HASH >> 32) & (len(edges) - 1)
    while edges[k] != key and edges[k] >= 0:
        k = (k + 1) & (len(edges) - 1)
    return k


@nb.njit(cache=True)
def _joined(edges, n, u, v):  # type: ignore[no-untyped-def]
    return edges[_slot(edges, min(u, v) * n + max(u, v))] >= 0


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _longer(array):  # type: ignore[no-untyped-def]
    twice = np.empty(2 * len(array), np.int64)
    twice[: len(array)] = array
    return twice


@nb.njit(cache=True)
def _link(u, v, degree, head, to, follow, entries):  # type: ignore[no-untyped-def]
    to[entries], follow[entries], head[u] = v, head[u], entries
    to[entries + 1], follow[entries + 1], head[v] = u, head[v], entries + 1
    degree[u] += 1
    degree[v] += 1
    return entries + 2


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _first_rank(n, edges, degree, head, to, follow, limit):  # type: ignore[no-untyped-def]
    """The rank of every node, or less than n if there are nodes with more than `limit` neighbours
    each among themselves: no order has a width within the limit then.

    Nodes of at most `limit` neighbours are taken off until none is left; each triangle is counted
    when the first of its nodes goes.
    """
    left, rank = degree.copy(), np.empty(n, np.int64)
    stack, near, gone = np.empty(n, np.int64), np.empty(limit, np.int64), np.zeros(n, np.bool_)
    waiting, taken = 0, 0
    for v in range(n):
        rank[v] = degree[v] * (degree[v] - 1) // 2 * (n + 1) + degree[v]
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
            left[u] -= 1
            if left[u] == limit:
                stack[waiting] = u
                waiting += 1
        for i in range(count):
            for j in range(i):
                if _joined(edges, n, near[i], near[j]):
                    rank[v] -= n + 1
                    rank[near[i]] -= n + 1
                    rank[near[j]] -= n + 1
    return rank[:taken]


@nb.njit(cache=True)
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
