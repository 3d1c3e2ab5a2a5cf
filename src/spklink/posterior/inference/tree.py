"""Sparse cliques of any size: nodes are summed out one after the other (a bucket tree); exact.

Step t sums out node order[t]. What remains is a table, the message, over its scope: the nodes still
left that share a term or an earlier message with it. It goes to the step of the first of them. Node
and scope together are a bag; the work is that of all states of all bags. The order is that of least
fill (module `elimination`), in which nodes weigh as much as their bits. Index conventions: a scope
lists nodes in the order of their own steps; the states of its nodes are the digits of the index
into the message, its first node the highest.

A first pass takes maxima instead of sums, in logarithms, and finds the proved optimum. The second
counts changes from that optimum and sums plain numbers: no exponential an entry. It keeps account
of the range that tables can span; a step that could leave the range of floating point is taken in
logarithms, so that no term is too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.beliefs import (
    BEYOND,
    EXACT,
    Beliefs,
    Cost,
    Piece,
    Proposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.inference.elimination import WIDEST, Elimination, elimination
from spklink.posterior.inference.flips import turn, turn_back
from spklink.posterior.inference.network import TIE, Network, starts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAME = "tree"
REACH = 600.0  # tables whose logarithms stay within +-REACH are summed as plain numbers
WIDEST_BAG = 22.0  # bits, where nodes have several states
ROUNDING = 1e-9  # of a sum of logarithms
FINE = 4  # several states are weighed in quarters of a bit
# Seconds x 1e9 on one core: for an entry of a bag but those of state 0 of the node summed out, in
# all passes, for each child it is multiplied by, and for a step.
OPERATIONS_ENTRY, OPERATIONS_CHILD, OPERATIONS_STEP = 20.0, 5.0, 600.0


@dataclass(frozen=True)
class Bags:
    """How a network is summed out."""

    network: Network
    steps: Elimination

    @cached_property
    def message(self) -> Floats:
        """(n,) entries of the message of each step."""
        steps = self.steps
        return np.asarray(_volumes(steps.scope_start, steps.scope, self.network.size))

    @cached_property
    def share(self) -> Floats:
        """(n,) entries of each bag but those of state 0 of the node summed out."""
        return self.message * (self.network.size[self.steps.order] - 1)

    @property
    def widest(self) -> float:
        """Bits of the largest bag; infinite if the order was stopped."""
        if not self.steps.complete:
            return float("inf")
        return float(np.log2((self.message + self.share).max(initial=1.0)))

    @property
    def fits(self) -> bool:
        return self.steps.complete and (self.network.binary or self.widest <= WIDEST_BAG + ROUNDING)

    @property
    def told(self) -> str:
        if self.network.binary:
            return f"of width {self.steps.width}" if self.fits else f"wider than {WIDEST}"
        return f"of {self.widest:.1f} bits" if self.fits else f"of more than {WIDEST_BAG:.0f} bits"


class _Tree:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal:
        bags = find_bags(piece.network)
        return Proposal(tree_cost(bags), f"a tree {bags.told}", lambda: tree(piece.network, bags))


METHOD = _Tree()


def find_bags(network: Network, limit: int = WIDEST) -> Bags:
    """The order of least fill, given up where a scope has more than `limit` bits."""
    if network.binary:
        return Bags(network, elimination(network, limit=limit))
    weight = np.maximum(1, (FINE * np.log2(network.size)).astype(np.int64))
    return Bags(network, elimination(network, limit=FINE * limit, weight=weight))


def tree_cost(bags: Bags) -> Cost:
    """Operations and bytes; BEYOND if there is too wide a bag."""
    if not bags.fits:
        return BEYOND
    an_entry = OPERATIONS_ENTRY + OPERATIONS_CHILD * np.diff(bags.steps.children[0])
    operations = float(bags.share @ an_entry) + OPERATIONS_STEP * len(bags.share)
    message, share = float(bags.message.sum()), float(bags.share.sum())
    row = float(bags.message.max(initial=1.0))
    room = 8.0 * float((bags.message + bags.share).max(initial=1.0)) + 4.0 * row
    return operations, 10.0 * message + 8.0 * share + room


def optimum(network: Network, bags: Bags | None = None) -> Ints:
    """A most probable configuration: proved, up to rounding."""
    plan = _plan(_fitting(network, bags))
    return _maximised(network, plan, _places(network, plan), np.empty(plan.offset[-1]))


def tree(network: Network, bags: Bags | None = None) -> Beliefs:
    """Everything about one sparse clique."""
    bags = _fitting(network, bags)
    plan = _plan(bags)
    place, message = _places(network, plan), np.empty(plan.offset[-1])
    best = _maximised(network, plan, place, message)
    changes = turn(network, best)
    share = np.empty(plan.share[-1])
    one, cells = np.empty(len(network.field)), np.empty(plan.cell[-1])
    terms = sums(place, changes.coupling, int(plan.cell[-1]))
    log_sum = _sum(plan, changes.field, terms, message, share)
    _spread(plan, message, share, one, cells)
    both = cells[place]
    entropy = max(0.0, log_sum - mean_value(changes, one, both) + changes.constant)
    zero, one, both = turn_back(network, best, np.clip(one, 0.0, 1.0), both)
    log_sum += changes.constant
    return exact_beliefs(network, NAME, best, one, both, log_sum, entropy, zero=zero)


def _fitting(network: Network, bags: Bags | None) -> Bags:
    bags = find_bags(network) if bags is None else bags
    if not bags.fits:
        raise ValueError(f"a tree {bags.told}: too much for the tree method")
    return bags


class Plan(NamedTuple):
    """What the kernels read: the nodes, the steps, and where tables begin."""

    size: Ints  # (n,) states of each node
    start: Ints  # (n+1,) entries of each node
    order: Ints  # (n,) node of each step
    step: Ints  # (n,) step of each node
    scope_start: Ints  # (n+1,)
    scope: Ints
    first: Ints  # (n+1,) the children of step t are child[first[t] : first[t + 1]]
    child: Ints
    offset: Ints  # (n+1,) messages
    share: Ints  # (n+1,) shares
    cell: Ints  # for each place in a scope, couplings of the node summed out with that one
    widest: int  # entries of the largest bag
    row: int  # and of the largest message


def _plan(bags: Bags) -> Plan:
    network, steps = bags.network, bags.steps
    size, length = network.size, np.diff(steps.scope_start)
    if network.binary:
        cell = np.arange(len(steps.scope) + 1)
    else:
        cell = starts((np.repeat(size[steps.order], length) - 1) * (size[steps.scope] - 1))
    return Plan(
        size=size,
        start=network.start,
        order=steps.order,
        step=steps.step,
        scope_start=steps.scope_start,
        scope=steps.scope,
        first=steps.children[0],
        child=steps.children[1],
        offset=starts(bags.message.astype(np.int64)),
        share=starts(bags.share.astype(np.int64)),
        cell=cell,
        widest=round((bags.message + bags.share).max(initial=1.0)),
        row=round(bags.message.max(initial=1.0)),
    )


def _places(network: Network, plan: Plan) -> Ints:
    """For each coupling, its place in the scopes."""
    place = np.empty(len(network.coupling), np.int64)
    layout = plan.size, plan.step, plan.scope_start, plan.scope, plan.cell
    _find_places(network.a, network.b, network.cell_start, *layout, place)
    return place


def _maximised(network: Network, plan: Plan, place: Ints, message: Floats) -> Ints:
    choice, best = np.empty(len(message), np.int16), np.zeros(len(network), np.int64)
    terms = sums(place, network.coupling, int(plan.cell[-1]))
    _maximise(plan, network.field, terms, message, choice)
    _look_back(plan, choice, best)
    return best


@nb.njit(cache=True, nogil=True)
def _volumes(scope_start, scope, size):  # type: ignore[no-untyped-def]
    """Joint states of each scope."""
    volume = np.ones(len(scope_start) - 1)
    for t in range(len(volume)):
        for k in range(scope_start[t], scope_start[t + 1]):
            volume[t] *= size[scope[k]]
    return volume


@nb.njit(cache=True, nogil=True)
def _find_places(a, b, cell_start, size, step, scope_start, scope, cell, place):  # type: ignore[no-untyped-def]
    """Where in the scopes the cell of every coupling stands."""
    for e in range(len(a)):
        u, v = a[e], b[e]
        ahead = step[u] < step[v]
        near, far = (u, v) if ahead else (v, u)
        k = scope_start[step[near]]
        while scope[k] != far:
            k += 1
        rows, columns, edge = size[u] - 1, size[v] - 1, cell_start[e]
        for r in range(rows):
            for c in range(columns):
                place[edge] = cell[k] + (r * columns + c if ahead else c * rows + r)
                edge += 1


@nb.njit(cache=True, nogil=True, inline="always")  # arrays that are handed on cost more than this
def _align(size, scope, t0, t1, c0, c1, index):  # type: ignore[no-untyped-def]
    """index[z]: where the message of a child with scope c0:c1 meets state z of the scope t0:t1.

    The first node of the child's scope is the one summed out here, and is left out. Returns how far
    apart its states stand.
    """
    index[0], c, count, stride = 0, c1 - 1, 1, 1
    for k in range(t1 - 1, t0 - 1, -1):
        width, step = size[scope[k]], 0
        if c > c0 and scope[c] == scope[k]:
            step = stride
            stride *= width
            c -= 1
        for r in range(1, width):
            for z in range(count):
                index[r * count + z] = index[z] + r * step
        count *= width
    return stride


@nb.njit(cache=True, nogil=True, inline="always")
def _gather(plan, t, field, cells, message, plain, work, index):  # type: ignore[no-untyped-def]
    """work[s * m + z]: all terms with the node of step t in state s, its scope in z.

    They are plain numbers, or logarithms, as plain[t] says; so are the messages by plain[child].
    """
    size, scope_start, scope, offset, cell = (
        plan.size,
        plan.scope_start,
        plan.scope,
        plan.offset,
        plan.cell,
    )
    v, t0, t1, own = plan.order[t], scope_start[t], scope_start[t + 1], plain[t]
    m, states = offset[t + 1] - offset[t], size[v]
    work[:m] = 1.0 if own else 0.0
    for s in range(1, states):
        row, count, term = work[s * m : (s + 1) * m], 1, field[plan.start[v] + s - 1]
        row[0] = np.exp(term) if own else term
        for k in range(t1 - 1, t0 - 1, -1):
            width = size[scope[k]]
            first = cell[k] + (s - 1) * (width - 1) - 1
            for r in range(1, width):
                step, begin = cells[first + r], r * count
                if own:
                    factor = np.exp(step)
                    for z in range(count):
                        row[begin + z] = row[z] * factor
                else:
                    for z in range(count):
                        row[begin + z] = row[z] + step
            count *= width
    for j in range(plan.first[t], plan.first[t + 1]):
        c = plan.child[j]
        rest = _align(size, scope, t0, t1, scope_start[c], scope_start[c + 1], index)
        for s in range(states):
            begin = offset[c] + s * rest
            row, part = work[s * m : (s + 1) * m], message[begin : begin + rest]
            if own:
                for z in range(m):
                    row[z] *= part[index[z]]
            elif plain[c]:
                for z in range(m):
                    row[z] += np.log(part[index[z]])
            else:
                for z in range(m):
                    row[z] += part[index[z]]


@nb.njit(cache=True, nogil=True)
def _maximise(plan, field, cells, message, choice):  # type: ignore[no-untyped-def]
    """Messages of log maxima; choice: the best state of each step's node given its scope's."""
    size, order, offset = plan.size, plan.order, plan.offset
    plain = np.zeros(len(order), np.bool_)
    work, index = np.empty(plan.widest), np.empty(plan.row, np.int32)
    for t in range(len(order)):
        _gather(plan, t, field, cells, message, plain, work, index)
        begin, m = offset[t], offset[t + 1] - offset[t]
        out, chosen = message[begin : begin + m], choice[begin : begin + m]
        out[:], chosen[:] = work[:m], 0
        for s in range(1, size[order[t]]):
            row = work[s * m : (s + 1) * m]
            for z in range(m):  # of states that are as good the first one, whatever the rounding
                better = row[z] > out[z] + TIE
                chosen[z] = s if better else chosen[z]
                out[z] = row[z] if better else out[z]
        level = out[0]
        for z in range(m):
            out[z] -= level


@nb.njit(cache=True, nogil=True)
def _look_back(plan, choice, best):  # type: ignore[no-untyped-def]
    for t in range(len(plan.order) - 1, -1, -1):
        state = 0
        for k in range(plan.scope_start[t], plan.scope_start[t + 1]):
            state = plan.size[plan.scope[k]] * state + best[plan.scope[k]]
        best[plan.order[t]] = choice[plan.offset[t] + state]


@nb.njit(cache=True, nogil=True, inline="always")
def _span(plan, t, field, cells, plain, reach):  # type: ignore[no-untyped-def]
    """The largest |log| that a term of step t can have."""
    v, most = plan.order[t], 0.0
    for i in range(plan.start[v], plan.start[v + 1]):
        most = max(most, abs(field[i]))
    span = most
    for k in range(plan.scope_start[t], plan.scope_start[t + 1]):
        most = 0.0
        for i in range(plan.cell[k], plan.cell[k + 1]):
            most = max(most, abs(cells[i]))
        span += most
    for j in range(plan.first[t], plan.first[t + 1]):
        c = plan.child[j]
        span += reach[c] if plain[c] else np.inf
    return span


@nb.njit(cache=True, nogil=True)
def _sum(plan, field, cells, message, share):  # type: ignore[no-untyped-def]
    """Messages of sums relative to state 0, and share: P(node of the step = s > 0 | its scope)."""
    steps = len(plan.order)
    plain, reach = np.ones(steps, np.bool_), np.zeros(steps)  # reach: largest |log|
    work, index = np.empty(plan.widest), np.empty(plan.row, np.int32)
    log_sum = 0.0
    for t in range(steps):
        plain[t] = _span(plan, t, field, cells, plain, reach) <= REACH
        _gather(plan, t, field, cells, message, plain, work, index)
        out = message[plan.offset[t] : plan.offset[t + 1]]
        given = share[plan.share[t] : plan.share[t + 1]]
        m, states = len(out), plan.size[plan.order[t]]
        if plain[t]:
            log_sum += _sum_plain(work, states, out, given)
            least, most = 1.0, 1.0
            for z in range(m):
                least = out[z] if out[z] < least else least
                most = out[z] if out[z] > most else most
            reach[t] = max(np.log(most), -np.log(least))
        else:
            log_sum += _sum_logs(work, states, out, given)
            for z in range(m):
                reach[t] = max(reach[t], abs(out[z]))
            if reach[t] <= REACH:
                plain[t] = True
                for z in range(m):
                    out[z] = np.exp(out[z])
    return log_sum


@nb.njit(cache=True, nogil=True, inline="always")
def _sum_plain(work, states, out, given):  # type: ignore[no-untyped-def]
    m = len(out)
    out[:] = work[:m]
    for s in range(1, states):
        row = work[s * m : (s + 1) * m]
        for z in range(m):
            out[z] += row[z]
    level = out[0]
    for s in range(1, states):
        row, part = work[s * m : (s + 1) * m], given[(s - 1) * m : s * m]
        for z in range(m):
            part[z] = row[z] / out[z]
    for z in range(m):
        out[z] /= level
    return np.log(level)


@nb.njit(cache=True, nogil=True, inline="always")
def _sum_logs(work, states, out, given):  # type: ignore[no-untyped-def]
    m = len(out)
    for z in range(m):
        top = work[z]
        for s in range(1, states):
            top = max(top, work[s * m + z])
        mass = np.exp(work[z] - top)
        for s in range(1, states):
            weight = np.exp(work[s * m + z] - top)
            given[(s - 1) * m + z] = weight
            mass += weight
        for s in range(1, states):
            given[(s - 1) * m + z] /= mass
        out[z] = top + np.log(mass)
    level = out[0]
    for z in range(m):
        out[z] -= level
    return level


@nb.njit(cache=True, nogil=True)
def _spread(plan, message, share, one, cells):  # type: ignore[no-untyped-def]
    """From the last step back: the messages become the probabilities of their scopes' states."""
    size, scope_start, scope, offset, cell = (
        plan.size,
        plan.scope_start,
        plan.scope,
        plan.offset,
        plan.cell,
    )
    work, index = np.empty(plan.widest), np.empty(plan.row, np.int32)
    for t in range(len(plan.order) - 1, -1, -1):
        v, t0, t1, begin = plan.order[t], scope_start[t], scope_start[t + 1], offset[t]
        m, states = offset[t + 1] - begin, size[v]
        known, none = message[begin : begin + m], work[:m]
        if t0 == t1:
            known[0] = 1.0
        none[:] = known
        for s in range(1, states):
            at = plan.share[t] + (s - 1) * m
            row, given = work[s * m : (s + 1) * m], share[at : at + m]
            for z in range(m):
                row[z] = known[z] * given[z]
                none[z] -= row[z]
        for j in range(plan.first[t], plan.first[t + 1]):
            c = plan.child[j]
            rest = _align(size, scope, t0, t1, scope_start[c], scope_start[c + 1], index)
            for s in range(states):
                at = offset[c] + s * rest
                row, part = work[s * m : (s + 1) * m], message[at : at + rest]
                part[:] = 0.0
                for z in range(m):
                    part[index[z]] += row[z]
        for s in range(1, states):
            row, count = work[s * m : (s + 1) * m], m
            for k in range(t0, t1):  # fold the highest digit
                width = size[scope[k]]
                first = cell[k] + (s - 1) * (width - 1) - 1
                count //= width
                for r in range(1, width):
                    above, total = r * count, 0.0
                    for z in range(count):
                        total += row[above + z]
                        row[z] += row[above + z]
                    cells[first + r] = total
            one[plan.start[v] + s - 1] = row[0]
