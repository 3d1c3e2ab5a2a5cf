"""Bounds on the odds that a node is flipped, in networks of any shape (Peierls).

Everything counts flips from a configuration that should be the best (`flips.turn`: fields are minus
the costs of single flips, couplings the gains of double ones). A flipped node belongs to a set K of
flipped nodes that gains connect; taking K back maps configurations one to one, so the node's odds
are at most the summed weights of all such K. With the gain of an edge shared between its ends, and
ambiguous nodes put together in blocks that are summed over exactly, any solution of

    odds[i] >= sum over subsets D of i's block, i in D, of exp(weight of D within the block) times
               exp(share[k, j]) (1 + odds[j]) for all k in D and j outside with gain[k, j] > 0

bounds those sums, by induction over the size of K (Kotecky and Preiss): F(odds) <= odds is all that
is needed, and it is checked. Where no solution is found the block is given up: its nodes may do
what is worst for their neighbours (odds infinite, all gain of an edge on the neighbour's side), so
that one unclear region leaves the others certified.

The bounds hold whether or not the configuration is an optimum, whatever the nodes given up do, and
when any nodes are clamped to the configuration. Index conventions as in `network`.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.network import Network, Slots, starts
from spklink.posterior.inference.roof import level

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AMBIGUOUS = 0.004  # bound on a node's flip odds from which it looks for a block
BLOCK = 10  # nodes a block
SWEEPS = 200  # in search of a solution
HOPELESS = 30.0  # odds at which a block is given up


def flip_odds(turned: Network, slots: Slots, error: Floats) -> Floats:
    """(n,) bounds on P(flipped) / P(not flipped), whatever the given-up nodes (inf) do."""
    cost, gain = -turned.field, turned.coupling[slots.edge]
    total = np.maximum(gain, 0.0)
    share = 0.5 * total
    level(slots.start, slots.other, slots.mirror, cost, total, share, 6)
    block = _blocks(turned, cost - slots.sums(share))
    order = np.argsort(block, kind="stable")
    layout = (slots.start, slots.other, block, starts(np.bincount(block)), order)
    # Inside a block nothing is shared; its nodes' own odds tell what they can bear from outside.
    across = np.where(block[slots.node] == block[slots.other], 0.0, total)
    odds, given_up = np.zeros(len(cost)), np.zeros(len(cost), np.bool_)
    eased = _ease(*layout, cost, gain)
    share = 0.5 * across
    level(slots.start, slots.other, slots.mirror, eased, across, share, 8)
    before = -1
    while given_up.sum() > before:  # once more without what the given-up blocks had stirred up
        before = int(given_up.sum())
        odds = np.where(given_up, np.inf, 0.0)
        _spread(*layout, cost - error, gain, share, across, odds, given_up, SWEEPS)
    return odds


def _blocks(turned: Network, slack: Floats) -> Ints:
    """(n,) block of each node: ambiguous ones together, the strongest ties first."""
    unclear = slack < -np.log(AMBIGUOUS)
    edge = np.flatnonzero(unclear[turned.a] & unclear[turned.b] & (turned.coupling != 0.0))
    order = edge[np.argsort(-turned.coupling[edge], kind="stable")]
    root = join(turned.a[order], turned.b[order], len(turned), BLOCK)
    return np.unique(root, return_inverse=True)[1].astype(np.int64)


@nb.njit(cache=True, nogil=True)
def join(a, b, n, most):  # type: ignore[no-untyped-def]
    """(n,) root of each node after joining the ends of the edges in order, `most` nodes a set."""
    root, size = np.arange(n), np.ones(n, np.int64)
    for e in range(len(a)):
        i, j = a[e], b[e]
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        while root[j] != j:
            root[j] = root[root[j]]
            j = root[j]
        if i != j and size[i] + size[j] <= most:
            root[max(i, j)] = min(i, j)
            size[min(i, j)] += size[max(i, j)]
    for i in range(n):  # a root is the smallest of its set
        root[i] = root[root[i]]
    return root


@nb.njit(cache=True, nogil=True)
def _subset_sums(fields, couplings, s, table, growth, odds):  # type: ignore[no-untyped-def]
    """odds[k] = sum of exp(value) over the subsets of s nodes that contain node k."""
    table[0] = 0.0
    for p in range(s):
        m = 1 << p
        growth[0] = fields[p]
        for q in range(p):
            half = 1 << q
            for z in range(half):
                growth[half + z] = growth[z] + couplings[p, q]
        for z in range(m):
            table[m + z] = table[z] + growth[z]
    odds[:s] = 0.0
    for z in range(1, 1 << s):
        w = np.exp(table[z])
        for p in range(s):
            if (z >> p) & 1:
                odds[p] += w


@nb.njit(cache=True, nogil=True)
def _ease(start, other, block, block_start, block_node, cost, gain):  # type: ignore[no-untyped-def]
    """(n,) costs of flipping each node when the others of its block may follow."""
    eased = cost.copy()
    nothing, never = np.zeros(len(gain)), np.zeros(len(cost), np.bool_)
    desk = _desk(block_start, block_node, len(cost))
    for b in range(len(block_start) - 1):
        t0, s = block_start[b], block_start[b + 1] - block_start[b]
        if s > 1:
            _sum_block(
                *(start, other, block, b, block_node[t0 : t0 + s]),
                *(cost, gain, nothing, nothing, eased, never, desk),
            )
            for t in range(s):
                eased[block_node[t0 + t]] = -np.log(desk[4][t])
    return eased


@nb.njit(cache=True, nogil=True)
def _desk(block_start, block_node, n):  # type: ignore[no-untyped-def]
    """Room for the sums over one block: table, growth, fields, couplings, odds; places."""
    widest, place = 1, np.zeros(n, np.int64)
    for b in range(len(block_start) - 1):
        widest = max(widest, block_start[b + 1] - block_start[b])
        for t in range(block_start[b], block_start[b + 1]):
            place[block_node[t]] = t - block_start[b]
    states = 1 << widest
    return (
        np.empty(states),
        np.empty(states),
        np.empty(widest),
        np.empty((widest, widest)),
        np.empty(widest),
        place,
    )


@nb.njit(cache=True, nogil=True)
def _sum_block(  # type: ignore[no-untyped-def]
    start, other, block, b, nodes, cost, gain, share, total, odds, given_up, desk
):
    """F of one block. A given-up neighbour may take all of an edge, any other one its share.

    Neighbours that win nothing by a joint flip (total 0) do not connect.
    """
    table, growth, fields, couplings, fresh, place = desk
    s = len(nodes)
    couplings[:s, :s] = 0.0
    for t in range(s):
        i = nodes[t]
        fields[t] = -cost[i]
        for e in range(start[i], start[i + 1]):
            j = other[e]
            if block[j] == b:
                couplings[t, place[j]] += gain[e]
            elif given_up[j]:
                fields[t] += total[e]
            elif total[e] > 0.0:
                fields[t] += share[e] + np.log1p(odds[j])
    _subset_sums(fields, couplings, s, table, growth, fresh)


@nb.njit(cache=True, nogil=True)
def _spread(  # type: ignore[no-untyped-def]
    start,
    other,
    block,
    block_start,
    block_node,
    cost,
    gain,
    share,
    total,
    odds,
    given_up,
    sweeps,
):
    """Raise the odds until F(odds) <= odds everywhere; give up blocks where that does not end."""
    blocks = len(block_start) - 1
    desk = _desk(block_start, block_node, len(cost))
    fresh = desk[4]
    dirty = np.ones(blocks, np.bool_)
    sweep, moving = 0, True
    while moving:
        moving = False
        for b in range(blocks):
            nodes = block_node[block_start[b] : block_start[b + 1]]
            if not dirty[b] or given_up[nodes[0]]:
                continue
            dirty[b] = False
            _sum_block(
                *(start, other, block, b, nodes),
                *(cost, gain, share, total, odds, given_up, desk),
            )
            grew, hopeless = False, False
            for t in range(len(nodes)):
                if not fresh[t] * (1.0 + 1e-12) <= odds[nodes[t]]:
                    odds[nodes[t]] = fresh[t] * (1.0 + 1e-6)
                    grew = True
                    hopeless |= sweep >= sweeps or not fresh[t] <= HOPELESS
            if not grew:
                continue
            moving = True
            for i in nodes:
                if hopeless:
                    given_up[i], odds[i] = True, np.inf
                for e in range(start[i], start[i + 1]):
                    dirty[block[other[e]]] = True
        sweep += 1
