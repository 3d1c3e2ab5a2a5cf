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

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import (
    BEYOND,
    EXACT,
    Beliefs,
    Cost,
    Piece,
    Proposal,
    exact_beliefs,
    frechet,
)
from spklink.posterior.inference.elimination import WIDEST, Elimination, elimination
from spklink.posterior.inference.flips import turn
from spklink.posterior.inference.network import Network

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
NAME = "tree"
REACH = 600.0  # tables whose logarithms stay within +-REACH are summed as plain numbers
# Seconds x 1e9 on one core: for a message entry in all passes, for each child it is multiplied by,
# and for a step.
OPERATIONS_ENTRY, OPERATIONS_CHILD, OPERATIONS_STEP = 20.0, 5.0, 600.0


class _Tree:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal:
        steps = elimination(piece.network)
        width = f"of width {steps.width}" if steps.complete else f"wider than {WIDEST}"
        return Proposal(tree_cost(steps), f"a tree {width}", lambda: tree(piece.network, steps))


METHOD = _Tree()


def tree_cost(steps: Elimination) -> Cost:
    """Operations and bytes; BEYOND if the order was stopped."""
    if not steps.complete:
        return BEYOND
    entries = 2.0 ** np.diff(steps.scope_start)
    children = np.diff(steps.children[0])
    an_entry = OPERATIONS_ENTRY + OPERATIONS_CHILD * children
    operations = float(entries @ an_entry) + OPERATIONS_STEP * len(entries)
    return operations, 17.0 * float(entries.sum()) + 20.0 * 2.0**steps.width


def optimum(network: Network, steps: Elimination | None = None) -> Bits:
    """A most probable configuration: proved, up to rounding."""
    steps = _complete(network, steps)
    place = places(network.a, network.b, steps)
    return _maximised(network, steps, place, np.empty(steps.offset[-1]))


def tree(network: Network, steps: Elimination | None = None) -> Beliefs:
    """Everything about one sparse clique, its nodes summed out in the order of `steps`."""
    steps = _complete(network, steps)
    place, message = places(network.a, network.b, steps), np.empty(steps.offset[-1])
    best = _maximised(network, steps, place, message)
    changes = turn(network, best)
    log_sum, one, both = _summed(changes, steps, place, message)
    mean = float(changes.field @ one + changes.coupling @ both)
    a, b, sign = network.a, network.b, 1.0 - 2.0 * best
    one = best + sign * one
    both = sign[a] * sign[b] * both + best[a] * one[b] + best[b] * one[a] - best[a] * best[b]
    one = np.clip(one, 0.0, 1.0)
    both = frechet(network, one, both)
    value, entropy = network.value(best), max(0.0, log_sum - mean)
    return exact_beliefs(network, NAME, best, one, both, value + log_sum, entropy)


def _complete(network: Network, steps: Elimination | None) -> Elimination:
    steps = elimination(network) if steps is None else steps
    if not steps.complete:
        raise ValueError(f"a width of {steps.width} is too much for the tree method")
    return steps


def places(a: NDArray[Any], b: NDArray[Any], steps: Elimination) -> Integers:
    """(E,) where in `scope` the end of each edge that is summed out later stands."""
    place = np.empty(len(a), np.int64)
    _find_places(a, b, steps.step, steps.scope_start, steps.scope, place)
    return place


def _terms(network: Network, steps: Elimination, place: Integers) -> tuple[Floats, Floats]:
    """Fields by step, and couplings by place in the scopes."""
    coupling = np.bincount(place, network.coupling, len(steps.scope))
    return network.field[steps.order], coupling.astype(np.float64)


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


@nb.njit(cache=True, nogil=True)
def _find_places(a, b, step, scope_start, scope, place):  # type: ignore[no-untyped-def]
    for e in range(len(a)):
        u, v = (a[e], b[e]) if step[a[e]] < step[b[e]] else (b[e], a[e])
        k = scope_start[step[u]]
        while scope[k] != v:
            k += 1
        place[e] = k


@nb.njit(cache=True, nogil=True)
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


@nb.njit(cache=True, nogil=True)
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


@nb.njit(cache=True, nogil=True)
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


@nb.njit(cache=True, nogil=True)
def _look_back(layout, order, choice, best):  # type: ignore[no-untyped-def]
    scope_start, scope, _, _, offset = layout
    for t in range(len(order) - 1, -1, -1):
        state = 0
        for k in range(scope_start[t], scope_start[t + 1]):
            state = 2 * state + best[scope[k]]
        best[order[t]] = choice[offset[t] + state]


@nb.njit(cache=True, nogil=True)
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


@nb.njit(cache=True, nogil=True)
def _log_add(u, v):  # type: ignore[no-untyped-def]
    return max(u, v) + np.log1p(np.exp(-abs(u - v)))


@nb.njit(cache=True, nogil=True)
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
