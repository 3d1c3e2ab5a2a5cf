"""Sparse networks of any size: nodes are summed out one after the other (a bucket tree); exact.

Step t sums out node order[t]. What remains is a table, the message, over its scope: the nodes still
left that share a term or an earlier message with it. It goes to the step of the first of them. Node
and scope together are a bag; the work is that of all states of all bags. The order is that of least
fill in bits (module `elimination`). Index conventions: a scope lists nodes in the order of their
own steps, and joint states are digits as in `digits`, the first node the highest; in a bag, the
node that is summed out is higher still.

A first pass takes maxima and finds the proved optimum, a second takes sums of the changes from that
optimum. Both work in logarithms, so that no term is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import BEYOND, EXACT, Cost
from spklink.posterior.inference.elimination import Elimination, elimination
from spklink.posterior.inference.network import starts
from spklink.posterior.inference.tree import NAME, places
from spklink.posterior.states.beliefs import (
    StateBeliefs,
    StatePiece,
    StateProposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.states.digits import fold, grow, volumes
from spklink.posterior.states.network import StateNetwork, turned

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WIDEST = 22.0  # bits of a bag
ROUNDING = 1e-9  # of a sum of logarithms
FINE = 4  # weights of nodes are counted in quarters of a bit
# Seconds x 1e9 on one core: for an entry of a bag in all passes, for each child it is added to, and
# for a step.
OPERATIONS_ENTRY, OPERATIONS_CHILD, OPERATIONS_STEP = 22.0, 5.0, 6e3


@dataclass(frozen=True)
class Bags:
    """How a network is summed out."""

    steps: Elimination
    message: Floats  # (n,) entries of the message of each step
    bag: Floats  # (n,) entries of its bag

    @property
    def widest(self) -> float:
        """Bits of the largest bag; infinite if the order was stopped."""
        if not self.steps.complete:
            return float("inf")
        return float(np.log2(self.bag.max(initial=1.0)))

    @property
    def fits(self) -> bool:
        return self.widest <= WIDEST + ROUNDING


class _Tree:
    name, certainty = NAME, EXACT

    def propose(self, piece: StatePiece) -> StateProposal:
        bags = find_bags(piece.network)
        width = f"of {bags.widest:.1f} bits" if bags.fits else f"of more than {WIDEST:.0f} bits"
        return StateProposal(tree_cost(bags), f"a tree {width}", lambda: tree(piece.network, bags))


METHOD = _Tree()


def find_bags(network: StateNetwork) -> Bags:
    """The order of least fill, given up where a scope has more than WIDEST bits."""
    weight = np.maximum(1, (FINE * np.log2(network.size)).astype(np.int64))
    steps = elimination(network.graph(), limit=round(FINE * WIDEST), weight=weight)
    message = volumes(steps.scope_start, steps.scope, network.size)
    return Bags(steps, message, message * network.size[steps.order])


def tree_cost(bags: Bags) -> Cost:
    """Operations and bytes; BEYOND if there is a bag of more than WIDEST bits."""
    if not bags.fits:
        return BEYOND
    an_entry = OPERATIONS_ENTRY + OPERATIONS_CHILD * np.diff(bags.steps.children[0])
    operations = float(bags.bag @ an_entry) + OPERATIONS_STEP * len(bags.bag)
    room = 8.0 * bags.bag.max(initial=0.0) + 20.0 * bags.message.max(initial=0.0)
    return operations, 12.0 * float(bags.message.sum()) + 8.0 * float(bags.bag.sum()) + room


def tree(network: StateNetwork, bags: Bags | None = None) -> StateBeliefs:
    """Everything about one sparse network."""
    bags = find_bags(network) if bags is None else bags
    if not bags.fits:
        raise ValueError(f"a bag of more than {WIDEST:.0f} bits is too much for the tree method")
    layout = _layout(network, bags)
    work, rows, index = _room(bags)
    message = np.empty(layout[-1][-1])
    choice, best = np.empty(len(message), np.int32), np.zeros(len(network), np.int64)
    _maximise(layout, network.unary, network.table, message, choice, work, index)
    _look_back(layout, choice, best)
    changes = turned(network, best)
    share = np.empty(round(bags.bag.sum()))
    marginal, pair = np.empty(len(network.unary)), np.empty(len(network.table))
    log_sum = _sum(layout, changes.unary, changes.table, message, share, work, rows, index)
    _spread(layout, message, share, marginal, pair, work, index)
    entropy = max(0.0, log_sum - mean_value(changes, marginal, pair))
    return exact_beliefs(NAME, best, marginal, pair, network.value(best) + log_sum, entropy)


def _room(bags: Bags) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """A bag, two rows of it, and an index into the message of a child."""
    bag, row = round(bags.bag.max(initial=1.0)), round(bags.message.max(initial=1.0))
    return np.empty(bag), np.empty((2, row)), np.empty(row, np.int32)


def _layout(network: StateNetwork, bags: Bags) -> tuple[Ints, ...]:
    """What the kernels read: the network's arrays, the steps, and where messages begin."""
    steps, edges = bags.steps, np.arange(len(network.a))
    place = places(network.a, network.b, steps)
    # For each place in a scope: where its table begins, or -1, and the steps in it from one state
    # of the node that is summed out to the next, and of the other.
    cell, down, along = np.full((3, len(steps.scope)), -1, np.int64)
    ahead = steps.step[network.a] < steps.step[network.b]
    columns = network.size[network.b]
    cell[place] = network.table_start[edges]
    down[place], along[place] = np.where(ahead, columns, 1), np.where(ahead, 1, columns)
    first, child = steps.children
    offset = starts(np.rint(bags.message).astype(np.int64))
    graph = network.size, network.start, steps.order, steps.scope_start, steps.scope
    return *graph, cell, down, along, first, child, offset


@nb.njit(cache=True, nogil=True)
def _align(size, scope, t0, t1, c0, c1, index):  # type: ignore[no-untyped-def]
    """index[z]: where the message of a child with scope c0:c1 meets state z of the scope t0:t1.

    The first node of the child's scope is the one summed out here, and is left out.
    """
    index[0], c, count, stride = 0, c1 - 1, 1, 1
    for k in range(t1 - 1, t0 - 1, -1):
        width, step = size[scope[k]], 0
        if c > c0 and scope[c] == scope[k]:
            step = stride
            stride *= width
            c -= 1
        for r in range(width - 1, -1, -1):
            for z in range(count):
                index[r * count + z] = index[z] + r * step
        count *= width
    return stride


@nb.njit(cache=True, nogil=True)
def _gather(layout, t, unary, table, message, work, index):  # type: ignore[no-untyped-def]
    """work[s * m + z]: the log of all terms with the node of step t at s, its scope at z."""
    size, start, order, scope_start, scope, cell, down, along, first, child, offset = layout
    v, t0, t1, m = order[t], scope_start[t], scope_start[t + 1], offset[t + 1] - offset[t]
    for s in range(size[v]):
        row, count = work[s * m : (s + 1) * m], 1
        row[0] = unary[start[v] + s]
        for k in range(t1 - 1, t0 - 1, -1):
            place = cell[k] + s * down[k] if cell[k] >= 0 else -1
            count = grow(row, count, size[scope[k]], table, place, along[k])
    for k in range(first[t], first[t + 1]):
        c = child[k]
        rest = _align(size, scope, t0, t1, scope_start[c], scope_start[c + 1], index)
        for s in range(size[v]):
            begin = offset[c] + s * rest
            for z in range(m):
                work[s * m + z] += message[begin + index[z]]


@nb.njit(cache=True, nogil=True)
def _maximise(layout, unary, table, message, choice, work, index):  # type: ignore[no-untyped-def]
    """Messages of log maxima; choice: the best state of each step's node given its scope's."""
    size, order, offset = layout[0], layout[2], layout[10]
    for t in range(len(order)):
        _gather(layout, t, unary, table, message, work, index)
        out, chosen = message[offset[t] : offset[t + 1]], choice[offset[t] : offset[t + 1]]
        m = len(out)
        out[:], chosen[:] = work[:m], 0
        for s in range(1, size[order[t]]):
            for z in range(m):
                if work[s * m + z] > out[z]:
                    out[z], chosen[z] = work[s * m + z], s
        out -= out[0]


@nb.njit(cache=True, nogil=True)
def _look_back(layout, choice, best):  # type: ignore[no-untyped-def]
    size, _, order, scope_start, scope, _, _, _, _, _, offset = layout
    for t in range(len(order) - 1, -1, -1):
        z = 0
        for k in range(scope_start[t], scope_start[t + 1]):
            z = z * size[scope[k]] + best[scope[k]]
        best[order[t]] = choice[offset[t] + z]


@nb.njit(cache=True, nogil=True)
def _sum(layout, unary, table, message, share, work, rows, index):  # type: ignore[no-untyped-def]
    """Messages of log sums, and share: P(node of the step | its scope), bag by bag."""
    size, order, offset = layout[0], layout[2], layout[10]
    log_sum, begin = 0.0, 0
    for t in range(len(order)):
        _gather(layout, t, unary, table, message, work, index)
        out, width = message[offset[t] : offset[t + 1]], size[order[t]]
        m = len(out)
        top, mass, given = rows[0, :m], rows[1, :m], share[begin : begin + width * m]
        top[:], mass[:] = work[:m], 0.0
        for s in range(1, width):
            for z in range(m):
                top[z] = max(top[z], work[s * m + z])
        for s in range(width):
            for z in range(m):
                weight = np.exp(work[s * m + z] - top[z])
                given[s * m + z] = weight
                mass[z] += weight
        level = top[0]
        for z in range(m):
            out[z] = top[z] + np.log(mass[z])
            level = max(level, out[z])
            mass[z] = 1.0 / mass[z]
        for s in range(width):
            for z in range(m):
                given[s * m + z] *= mass[z]
        out -= level
        log_sum += level
        begin += width * m
    return log_sum


@nb.njit(cache=True, nogil=True)
def _spread(layout, message, share, marginal, pair, work, index):  # type: ignore[no-untyped-def]
    """From the last step back: the messages become the probabilities of their scopes' states."""
    size, start, order, scope_start, scope, cell, down, along, first, child, offset = layout
    end = len(share)
    for t in range(len(order) - 1, -1, -1):
        v, t0, t1, m = order[t], scope_start[t], scope_start[t + 1], offset[t + 1] - offset[t]
        known, begin = message[offset[t] : offset[t + 1]], end - size[v] * m
        if t0 == t1:
            known[0] = 1.0
        for s in range(size[v]):
            for z in range(m):
                work[s * m + z] = known[z] * share[begin + s * m + z]
        for k in range(first[t], first[t + 1]):
            c = child[k]
            rest = _align(size, scope, t0, t1, scope_start[c], scope_start[c + 1], index)
            message[offset[c] : offset[c + 1]] = 0.0
            for s in range(size[v]):
                at = offset[c] + s * rest
                for z in range(m):
                    message[at + index[z]] += work[s * m + z]
        for s in range(size[v]):
            row, count = work[s * m : (s + 1) * m], m
            for k in range(t0, t1):
                place = cell[k] + s * down[k] if cell[k] >= 0 else -1
                count = fold(row, count, size[scope[k]], pair, place, along[k], 1.0)
            marginal[start[v] + s] = row[0]
        end = begin
