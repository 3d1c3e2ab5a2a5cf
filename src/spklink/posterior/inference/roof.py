"""The most probable configuration by roof duality, and which of its bits are proved.

The search is a maximum flow on two copies of every node (quadratic pseudo-boolean optimisation).
Its capacities are 32-bit integers, so what it finds is a suggestion only. The proof is made
afterwards, in floating point, by counting flips from the configuration found (module `flips`).
Flipping a set D of nodes changes the log-probability by

    - sum_{i in D} cost[i] + sum_{i < j in D} gain[i, j]  <=  - sum_{i in D} slack[i],
    slack[i] = cost[i] - sum_j share[i, j],   share[i, j] + share[j, i] = max(gain[i, j], 0).

Where shares exist that leave every slack in a set U positive, the edges that leave U counting in
full on the side of U, any configuration gains by taking over the bits of U: they are the same in
every optimum. To find shares is a flow problem again, repeated on what is left at ever finer
scales; only the slacks that come out, less a bound on their rounding errors, are the proof. Nodes
without one (ties among them) are solved exactly where they fall into small or narrow pieces, which
proves them up to rounding; what is left is searched locally and not proved.

Index conventions: slots as in `network`.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from spklink.arrays import sums
from spklink.posterior.inference.beliefs import Optimum
from spklink.posterior.inference.enumeration import LIMIT, enumerate_all
from spklink.posterior.inference.flips import climb, rounding, turn
from spklink.posterior.inference.network import Network, Slots, fix, slots_of, split, take
from spklink.posterior.inference.tree import find_bags, optimum, tree_cost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
LARGEST = 2**30  # capacity: an arc and its reverse together must fit in 32 bits
ROUNDS = 8  # of search and proof, each on what the ones before left without a proof
PASSES = 12  # of the flow that looks for shares; each one refines the scale of the one before
NARROW = 18  # width of the pieces left over that a bucket tree solves
TREE_WORK = 2e9  # operations for one of them
STARTS = 6  # of the local search
DEEP = 3000  # nodes up to which the local search looks beyond the nearest optimum


def find_optimum(network: Network, *, seed: int = 0) -> Optimum:
    """The best configuration found, and the bits proved; `seed` is for the local search alone."""
    best, proved = np.zeros(len(network), np.int8), np.zeros(len(network), np.bool_)
    left, slots = network, slots_of(network)
    error = rounding(network, slots)  # of all terms, also those fixed on the way
    for _ in range(ROUNDS if len(network) else 0):
        rest = np.flatnonzero(~proved)
        best[rest] = climb(left, np.maximum(_label(left), 0), slots, error[rest])
        sure = prove(turn(left, best[rest]), slots, error[rest])
        proved[rest[sure]] = True
        if sure.all() or not sure.any():
            break
        # On what is left the flow has a finer scale, and may do better.
        left, _ = fix(network, np.where(proved, best, -1).astype(np.int8))
        slots = slots_of(left)
    if not proved.all():
        _finish(network, best, proved, seed)
    return Optimum(best, proved)


def prove(turned: Network, slots: Slots, error: Floats) -> Mask:
    """(n,) nodes that are 0 in every optimum of a network turned to its best configuration.

    `error` bounds the rounding errors of sums around a node.
    """
    cost = -turned.field - error
    total = np.maximum(turned.coupling[slots.edge], 0.0)
    share = 0.5 * total
    level(slots.start, slots.other, slots.mirror, cost, total, share, 5)
    slack = cost - slots.sums(share)
    for _ in range(PASSES):
        if slack.min(initial=0.0) >= 0.0 or not _move_shares(slots, share, slack):
            break
        share = np.maximum(total - share[slots.mirror], 0.0)  # the two of an edge make its whole
        slack = cost - slots.sums(share)
    sure = slack > 0.0
    _retreat(slots.start, slots.other, share, slack, sure)
    return sure


def _move_shares(slots: Slots, share: Floats, slack: Floats) -> bool:
    """Hand shares on from nodes with negative slack to those with room, by one maximum flow."""
    n = len(slack)
    needy, roomy, arcs = (np.flatnonzero(s) for s in (slack < 0.0, slack > 0.0, share > 0.0))
    most = float(-slack[needy].sum())
    scale = (LARGEST - n) / most
    if not np.isfinite(scale):
        return False
    near = np.concatenate([slots.node[arcs], np.full(len(needy), n), roomy])
    far = np.concatenate([slots.other[arcs], needy, np.full(len(roomy), n + 1)])
    amount = np.concatenate([share[arcs], -slack[needy], slack[roomy]])
    capacity = np.floor(np.minimum(amount, most) * scale)
    capacity[len(arcs) : len(arcs) + len(needy)] += 1.0  # what is needed is rounded up
    flow, value = _flow(near, far, capacity, n + 2, n, n + 1)[1:]
    out = flow[:n, :n].tocsr()
    _hand_on(
        *(slots.start, slots.other, slots.mirror, share, 1.0 / scale),
        *(out.indptr, out.indices, out.data),
    )
    return value > 0


def _label(network: Network) -> Bits:
    """0 or 1 where the problem in whole numbers has a persistent optimum, -1 elsewhere."""
    n, i, j = len(network), network.a.astype(np.int64), network.b.astype(np.int64)
    linear, pair = _minimisation(network)
    agree = pair < 0.0
    scale = min(
        (2.0 * LARGEST - 2.0 - n) / max(float(np.abs(linear).sum()), 1e-300),
        LARGEST / max(float(np.abs(pair).max(initial=0.0)), 1e-300),
        1e200,
    )
    weight, lone = np.round(np.abs(pair) * scale), np.round(np.abs(linear) * scale)
    # Literal k is "x_k = 1", n + k is "x_k = 0", 2n is true and 2n + 1 false. A term u v is an arc
    # from each to the negation of the other; a term u alone is the term of u and true.
    k, true, false = np.arange(n), np.full(n, 2 * n), np.full(n, 2 * n + 1)
    literal = np.where(linear > 0.0, k, n + k)
    near = np.concatenate([i, np.where(agree, n + j, j), literal, true])
    far = np.concatenate([np.where(agree, j, n + j), n + i, false, (literal + n) % (2 * n)])
    graph, flow, _ = _flow(
        near, far, np.concatenate([weight, weight, lone, lone]), 2 * n + 2, 2 * n, 2 * n + 1
    )
    left = graph - flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = np.zeros(2 * n + 2, np.bool_)
    reached[breadth_first_order(left, 2 * n, return_predecessors=False)] = True
    one, zero = reached[:n], reached[n : 2 * n]
    return np.where(one & ~zero, 1, np.where(zero & ~one, 0, -1)).astype(np.int8)


def _minimisation(network: Network) -> tuple[Floats, Floats]:
    """Terms x (n,) and x y, or x (1 - y) where negative (E,), of minus the log-probability."""
    n, size = len(network), np.abs(network.coupling)
    # A field that outweighs all couplings of its node decides it; more would only cost precision.
    enough = 1.0 + 2.0 * (sums(network.a, size, n) + sums(network.b, size, n))
    linear = -np.clip(network.field, -enough, enough)
    agree = network.coupling > 0.0  # - c x y = - c x + c x (1 - y)
    return linear - sums(network.a[agree], size[agree], n), -network.coupling


def _flow(
    near: Ints, far: Ints, capacity: Floats, size: int, source: int, sink: int
) -> tuple[csr_matrix, csr_matrix, int]:
    """The graph in whole numbers, a maximum flow (arcs forth only) and its value."""
    some = capacity > 0.0
    data = capacity[some].astype(np.int32)
    graph = coo_matrix((data, (near[some], far[some])), shape=(size, size)).tocsr()
    result = maximum_flow(graph, source, sink)
    return graph, result.flow, int(result.flow_value)


def _finish(network: Network, best: Bits, proved: Mask, seed: int) -> None:
    """Solve the nodes without a proof: exactly where their piece is small or narrow."""
    rest = np.flatnonzero(~proved)
    pieces = split(fix(network, np.where(proved, best, -1).astype(np.int8))[0])
    easy = take(pieces, np.flatnonzero(pieces.sizes() <= LIMIT))
    best[rest[easy.node]] = enumerate_all(easy).best
    proved[rest[easy.node]] = True
    for k in np.flatnonzero(pieces.sizes() > LIMIT):
        nodes = rest[pieces.node[pieces.node_start[k] : pieces.node_start[k + 1]]]
        piece = pieces.one(int(k))
        bags = find_bags(piece, NARROW)
        if tree_cost(bags)[0] <= TREE_WORK:
            best[nodes], proved[nodes] = optimum(piece, bags), True
        else:
            best[nodes] = _search(piece, best[nodes], seed)


def _search(network: Network, x: Bits, seed: int) -> Bits:
    """The best of several local optima: from x, both constants and random configurations."""
    rng, slots = np.random.default_rng(seed), slots_of(network)
    starts = [x, np.zeros_like(x), np.ones_like(x)]
    starts += [rng.integers(0, 2, len(x), np.int8) for _ in range(STARTS - len(starts))]
    error = rounding(network, slots)
    ends = [climb(network, s, slots, error, far=len(x) <= DEEP) for s in starts]
    return ends[int(np.argmax([network.value(e) for e in ends]))]


@nb.njit(cache=True, nogil=True)
def level(start, other, mirror, cost, total, share, sweeps):  # type: ignore[no-untyped-def]
    """Move shares from the node with less slack to the one with more, edge by edge."""
    n = len(cost)
    slack = cost.copy()
    for i in range(n):
        for e in range(start[i], start[i + 1]):
            slack[i] -= share[e]
    for _ in range(sweeps):
        for i in range(n):
            for e in range(start[i], start[i + 1]):
                j = other[e]
                if i < j and total[e] > 0.0:
                    wish = share[e] + 0.5 * (slack[i] - slack[j])
                    new = min(max(wish, 0.0), total[e])
                    slack[i] -= new - share[e]
                    slack[j] += new - share[e]
                    share[e], share[mirror[e]] = new, total[e] - new


@nb.njit(cache=True, nogil=True)
def _hand_on(start, other, mirror, share, unit, row, column, flow):  # type: ignore[no-untyped-def]
    for i in range(len(start) - 1):
        for k in range(row[i], row[i + 1]):
            if flow[k] <= 0:
                continue
            for e in range(start[i], start[i + 1]):
                if other[e] == column[k]:
                    step = min(flow[k] * unit, share[e])
                    share[e] -= step
                    share[mirror[e]] += step
                    break


@nb.njit(cache=True, nogil=True)
def _retreat(start, other, share, slack, sure):  # type: ignore[no-untyped-def]
    """Nodes next to an unsure one take the whole of the edge; those that cannot are unsure too."""
    todo = list(np.flatnonzero(~sure))
    while len(todo) > 0:
        i = todo.pop()
        for e in range(start[i], start[i + 1]):
            j = other[e]
            if sure[j]:
                slack[j] -= share[e]
                if slack[j] <= 0.0:
                    sure[j] = False
                    todo.append(j)
