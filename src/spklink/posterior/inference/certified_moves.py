"""Moves: the sets of flips that the certified bounds of dense networks are built of.

A few ambiguous nodes are treated one by one: the rows are all sets of them. The other nodes fall
into groups of strongly tied ones; the moves are the non-empty subsets of the groups. Any set of
flips is a row and a set of moves, at most one a group. In a row, a set of k moves weighs

    exp(- costs + gains between the moves) <= product of exp(- cost + tops(k - 1) / 2),

where tops(k) sums a move's k largest gains with other groups. So all sets of k moves weigh at most
the elementary symmetric polynomial of order k of the groups' sums of such terms: computed for small
k; for large k replaced by Chernoff's bound, the least over t >= 1 of t^-k product(1 + t sum).

Index conventions: moves are sorted by group; row z has ambiguous node k flipped where bit k is set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from spklink.posterior.inference.certified_odds import join
from spklink.posterior.inference.network import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TIED = 0.25  # gain from which two nodes belong in a group
GROUP = 5  # nodes a group
SINGLY = 12  # orders (numbers of moves) up to here are bounded one at a time
STEP = 1.15  # ratio of the bundles of orders beyond


@dataclass(frozen=True)
class Moves:
    """Non-empty subsets of the groups."""

    group: Ints  # (m,) sorted
    member: csr_matrix  # (m, n) 1 for the nodes of each move
    cost: Floats  # (m,)
    rows: Floats  # (m, r) gain with each ambiguous node
    gain: Floats  # (n, n) of the nodes
    tops: Floats  # (m, bundles) sum of the largest gains with other groups


@dataclass(frozen=True)
class Bundles:
    """Orders (numbers of moves) that are bounded together: low to high; 2 and 3 come first."""

    low: Ints
    high: Ints


def find_groups(turned: Network, unclear: Ints) -> Ints:
    """(n,) group of each node, strongest ties first; -1 for the ambiguous nodes."""
    n = len(turned)
    clear = np.ones(n, np.bool_)
    clear[unclear] = False
    edge = np.flatnonzero(clear[turned.a] & clear[turned.b] & (turned.coupling > TIED))
    edge = edge[np.argsort(-turned.coupling[edge], kind="stable")]
    root = join(turned.a[edge], turned.b[edge], n, GROUP)
    group = np.full(n, -1, np.int64)
    group[clear] = np.unique(root[clear], return_inverse=True)[1]
    return group


def find_bundles(groups: int) -> Bundles:
    low, high = [2, 3], [2, 3]
    while high[-1] < groups:
        low.append(high[-1] + 1)
        high.append(low[-1] if low[-1] <= SINGLY else min(groups, int(low[-1] * STEP)))
    return Bundles(np.array(low), np.array(high))


def find_moves(cost: Floats, gain: Floats, group: Ints, unclear: Ints, bundles: Bundles) -> Moves:
    """All non-empty subsets of all groups."""
    order = np.argsort(group, kind="stable")[len(unclear) :]
    start = np.concatenate([[0], np.cumsum(np.bincount(group[order]))]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum((1 << np.diff(start)) - 1)])
    size = int(first[-1])
    move_cost, rows = np.zeros(size), np.zeros((size, len(unclear)))
    tops, count = np.zeros((size, len(bundles.low))), np.zeros(size + 1, np.int64)
    nodes = np.zeros(size * GROUP, np.int64)
    _fill_moves(
        *(cost, gain, order, start, first, unclear, bundles.high),
        *(move_cost, rows, tops, count, nodes),
    )
    member = csr_matrix((np.ones(count[-1]), nodes[: count[-1]], count), shape=(size, len(cost)))
    of = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return Moves(of, member, move_cost, rows, gain, tops)


def row_table(cost: Floats, gain: Floats) -> Floats:
    """(2^r,) log weights of the sets of ambiguous nodes."""
    table = np.zeros(1)
    for k in range(len(cost)):
        bits = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1
        table = np.concatenate([table, table - cost[k] + (bits * gain[k, :k]).sum(axis=1)])
    return table


@dataclass(frozen=True)
class Rows:
    """The sets of ambiguous nodes, and what the moves weigh and can add up to in each."""

    top: float  # log weight of the largest row
    share: Floats  # (2^r,) weights relative to it
    bits: Floats  # (2^r, r)
    log_weight: Floats  # (2^r, m)
    sets: Floats  # (2^r, bundles) bounds on all sets of a bundle's orders
    others: Floats  # (2^r, bundles) the same with one move less
    far: Floats  # (m,) bound on all sets of more than three moves with this one, over all rows
    wobble: float  # room for rounding in a log weight


def find_rows(moves: Moves, bundles: Bundles, table: Floats, wobble: float) -> Rows:
    width, top = moves.rows.shape[1], float(table.max())
    bits = ((np.arange(len(table))[:, None] >> np.arange(width)) & 1).astype(np.float64)
    log_weight = np.stack([(moves.rows * on).sum(axis=1) for on in bits]) - moves.cost
    sets, others = np.zeros((2, len(table), len(bundles.low)))
    share, far = np.exp(table - top), np.zeros(len(moves.cost))
    for z in range(len(table)):
        _bound_sets(
            *(log_weight[z] + wobble, moves.tops, moves.group, bundles.low, bundles.high),
            *(SINGLY, share[z], sets[z], others[z], far),
        )
    return Rows(top, share, bits, log_weight, sets, others, far, wobble)


@nb.njit(cache=True, nogil=True)
def _fill_moves(  # type: ignore[no-untyped-def]
    cost, gain, order, start, first, unclear, high, move_cost, rows, tops, count, nodes
):
    """Costs, gains with the ambiguous nodes and tops of every subset of every group."""
    groups, n = len(start) - 1, len(cost)
    sums, best = np.zeros((1 << GROUP, n)), np.zeros(groups)
    used = 0
    for g in range(groups):
        own = order[start[g] : start[g + 1]]
        for z in range(1, 1 << len(own)):
            low = 0
            while (z >> low) & 1 == 0:
                low += 1
            rest, move, added = z & (z - 1), first[g] + z - 1, own[low]
            move_cost[move] = cost[added]
            if rest:
                move_cost[move] += move_cost[first[g] + rest - 1] - sums[rest, added]
            for j in range(n):
                sums[z, j] = gain[added, j] + (sums[rest, j] if rest else 0.0)
            for k in range(len(unclear)):
                rows[move, k] = sums[z, unclear[k]]
            for k in range(len(own)):
                if (z >> k) & 1:
                    nodes[used] = own[k]
                    used += 1
            count[move + 1] = used
            for other in range(groups):
                best[other] = 0.0
                if other != g:
                    for t in range(start[other], start[other + 1]):
                        best[other] += max(sums[z, order[t]], 0.0)
            best.sort()
            total, done = 0.0, 0
            for s in range(len(high)):
                while done < min(high[s] - 1, groups):
                    done += 1
                    total += best[groups - done]
                tops[move, s] = total


@nb.njit(cache=True, nogil=True)
def _bound_sets(  # type: ignore[no-untyped-def]
    log_weight, tops, group, low, high, singly, share, sets, others, far
):
    """Bounds on all sets of each bundle's orders, and of one less; adds to far beyond order 3."""
    groups = group[-1] + 1 if len(group) else 0
    weight, total = np.empty(len(group)), np.empty(groups)
    power = np.empty(singly + 1)
    for s in range(len(low)):
        total[:] = 0.0
        for m in range(len(group)):
            weight[m] = np.exp(log_weight[m] + 0.5 * tops[m, s])
            total[group[m]] += weight[m]
        k = low[s]
        if high[s] == k and k <= singly:
            power[:] = 0.0
            power[0] = 1.0
            for g in range(groups):
                for q in range(min(k, g + 1), 0, -1):
                    power[q] += power[q - 1] * total[g]
            sets[s], others[s] = power[k], power[k - 1]
        else:
            sets[s], others[s] = _chernoff(total, k), _chernoff(total, k - 1)
        if k > 3:
            for m in range(len(group)):
                far[m] += share * weight[m] * others[s]


@nb.njit(cache=True, nogil=True)
def _chernoff(total, k):  # type: ignore[no-untyped-def]
    """Bound on the elementary symmetric polynomials of orders k and above, summed."""
    best, centre = np.inf, k / max(total.sum(), 1e-300)
    for factor in (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0):
        t = min(max(centre * factor, 1.0), 1e100)
        value = -k * np.log(t)
        for w in total:
            value += np.log1p(t * w)
        best = min(best, value)
    return np.exp(best)
