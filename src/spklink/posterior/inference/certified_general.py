"""Certified bounds for networks of any shape whose posterior is peaked around one configuration.

After bounds on the odds of every flip (`certified_odds`), the nodes that matter (bound above some
level) are solved exactly, in pieces, with all others clamped to the configuration. Given that its
clamped neighbours are not flipped, what happens inside a piece is exact; they are flipped with a
probability of at most epsilon, the sum of their bounds; so

    P(event) is in [q (1 - epsilon), q (1 - epsilon) + epsilon],   q = P(event | none flipped).

All levels are intersected. The bounds hold whether or not the configuration is an optimum. Index
conventions as in `network`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.certified_bounds import (
    TINY,
    Bounds,
    binary_entropy,
    both_ones,
    no_bounds,
)
from spklink.posterior.inference.certified_odds import flip_odds
from spklink.posterior.inference.enumeration import LIMIT, enumerate_all
from spklink.posterior.inference.flips import rounding
from spklink.posterior.inference.network import (
    Network,
    Networks,
    Slots,
    fix,
    slots_of,
    split,
    take,
)
from spklink.posterior.inference.tree import find_bags, tree, tree_cost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
LEVELS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)  # flip bound above which nodes are solved exactly
ENOUGH = 1e-4  # width that needs no finer level
NARROW = 16  # width of the pieces that a bucket tree solves
TREE_WORK = 1e9  # operations for all of them on a level


@dataclass(frozen=True)
class Solved:
    """Exact results of some pieces with all else clamped; nodes and edges as in the network."""

    node: Ints
    edge: Ints
    size: Ints  # (pieces,)
    edges: Ints  # (pieces,)
    one: Floats
    both: Floats
    log_sum: Floats  # (pieces,)
    entropy: Floats  # (pieces,)


@dataclass(frozen=True)
class View:
    """A network turned to its best configuration, with what every level needs of it."""

    turned: Network
    best: Bits
    slots: Slots
    error: Floats  # (n,) rounding, in log-probabilities
    odds: Floats  # (n,) bounds; inf for nodes given up
    alone: Floats  # (n,) P(flipped) where no neighbour is


def general_bounds(turned: Network, best: Bits, *, levels: tuple[float, ...] = LEVELS) -> Bounds:
    """Bounds for a network turned to `best`."""
    slots = slots_of(turned)
    error = rounding(turned, slots)
    odds = flip_odds(turned, slots, error)
    alone = 1.0 / (1.0 + np.exp(np.minimum(-turned.field, 700.0)))
    view = View(turned, best, slots, error, odds, alone)
    bounds = no_bounds(len(turned), len(turned.coupling))
    chance = np.where(np.isinf(odds), 1.0, odds / (1.0 + np.minimum(odds, 1e300)))
    bounds.narrow(np.arange(len(turned)), np.zeros(len(turned)), chance + 1e-300, alone)
    solved = None
    for threshold in levels:
        free = bounds.high > threshold
        if solved is not None and np.array_equal(free, solved):
            continue
        _refine(bounds, view, free)
        solved = free
        if (bounds.high - bounds.low).max(initial=0.0) <= ENOUGH:
            break
    return bounds


def _refine(bounds: Bounds, view: View, free: Mask) -> None:
    """Narrow the bounds by exact solutions of the free nodes, all others clamped."""
    solved = _solve(view.turned, bounds, free)
    piece = np.full(len(view.turned), -1, np.int64)
    piece[solved.node] = np.repeat(np.arange(len(solved.size)), solved.size)
    clamped = piece < 0
    epsilon = _boundary(view.slots, piece, bounds.high, len(solved.size))
    slop = TINY + 4.0 * sums(piece[~clamped], view.error[~clamped], len(solved.size))
    inside = piece[solved.node]
    bounds.narrow(solved.node, *_around(solved.one, epsilon[inside], slop[inside]), solved.one)
    _refine_edges(bounds, view, solved, epsilon, slop)
    # A clamped node is a piece of its own.
    around = np.minimum(view.slots.sums(bounds.high[view.slots.other]) * (1.0 + TINY), 1.0)
    low, high = _around(view.alone, around, TINY + 4.0 * view.error)
    nodes = np.flatnonzero(clamped)
    bounds.narrow(nodes, low[nodes], high[nodes], bounds.guess[nodes])
    bounds.narrow_sums(
        _log_sum(view, clamped, float(solved.log_sum.sum())),
        _entropy(bounds, view, solved, epsilon, slop, around, clamped),
    )


def _solve(turned: Network, bounds: Bounds, free: Mask) -> Solved:
    """All small pieces of the free nodes, and the narrow ones that need it."""
    inner, kept = fix(turned, np.where(free, -1, 0).astype(np.int8))
    nodes, pieces = np.flatnonzero(free), split(inner)
    small = pieces.sizes() <= LIMIT
    easy = take(pieces, np.flatnonzero(small))
    exact = enumerate_all(easy)
    parts = [(easy, exact.one, exact.both, exact.log_sum, exact.entropy)]
    wide = sums(
        np.repeat(np.arange(len(pieces)), pieces.sizes()),
        (bounds.high - bounds.low)[nodes[pieces.node]] > ENOUGH,
        len(pieces),
    )
    parts += _solve_narrow(pieces, np.flatnonzero(~small & (wide > 0.0)))
    return Solved(
        node=nodes[np.concatenate([part[0].node for part in parts])],
        edge=kept[np.concatenate([part[0].edge for part in parts])],
        size=np.concatenate([part[0].sizes() for part in parts]),
        edges=np.concatenate([np.diff(part[0].edge_start) for part in parts]),
        one=np.concatenate([part[1] for part in parts]),
        both=np.concatenate([part[2] for part in parts]),
        log_sum=np.concatenate([part[3] for part in parts]),
        entropy=np.concatenate([part[4] for part in parts]),
    )


def _solve_narrow(
    pieces: Networks, chosen: Ints
) -> list[tuple[Networks, Floats, Floats, Floats, Floats]]:
    """Larger pieces, the cheapest first, as far as the work goes."""
    orders = [(k, find_bags(pieces.one(int(k)), NARROW)) for k in chosen]
    priced = sorted((tree_cost(order)[0], int(k)) for k, order in orders)
    order_of, work, parts = dict(orders), 0.0, []
    for cost, k in priced:
        work += cost
        if work > TREE_WORK:
            break
        found = tree(pieces.one(k), order_of[k])
        sums_of = np.array([found.log_sum[0]]), np.array([found.entropy[0]])
        parts.append((take(pieces, np.array([k])), found.one, found.both, *sums_of))
    return parts


def _boundary(slots: Slots, piece: Ints, high: Floats, count: int) -> Floats:
    """(pieces,) bound on the probability that a clamped neighbour of the piece is flipped."""
    out = np.flatnonzero((piece[slots.node] >= 0) & (piece[slots.other] != piece[slots.node]))
    n = max(len(piece), 1)
    key = np.unique(piece[slots.node[out]] * n + slots.other[out])
    return np.minimum(sums(key // n, high[key % n], count) * (1.0 + TINY), 1.0)


def _around(q: Floats, epsilon: Floats, slop: Floats) -> tuple[Floats, Floats]:
    """Interval of an event of probability q where a premise fails with at most epsilon."""
    inner = q * (1.0 - epsilon)
    low = np.maximum(inner * (1.0 - slop) - 1e-15, 0.0)
    high = inner * (1.0 + slop) + epsilon * (1.0 + TINY) + 1e-15
    return low, np.minimum(high, 1.0)


def _refine_edges(
    bounds: Bounds, view: View, solved: Solved, epsilon: Floats, slop: Floats
) -> None:
    one = np.zeros(len(view.turned))
    one[solved.node] = solved.one
    a, b = view.turned.a[solved.edge], view.turned.b[solved.edge]
    both = both_ones(view.best[a], view.best[b], one[a], one[b], solved.both)
    inside = np.repeat(np.arange(len(solved.size)), solved.edges)
    low, high = _around(both, epsilon[inside], 4.0 * slop[inside])
    bounds.narrow_both(solved.edge, low, high, both)


def _log_sum(view: View, clamped: Mask, inside: float) -> tuple[float, float]:
    """Interval of the log of the sum over all configurations, the best one's term being 1.

    Unclamping one node after the other multiplies the sum by 1 + its odds given the clamps left: at
    most the bound, at least the flip alone while its neighbours stay. Nodes given up and not solved
    add a factor each at most, all gains of their edges counted.
    """
    slots, error, field = view.slots, view.error, view.turned.field
    lost = clamped & np.isinf(view.odds)
    held = clamped & ~lost
    gain = np.maximum(view.turned.coupling[slots.edge], 0.0)
    part = np.where(lost[slots.other], 0.5, np.where(held[slots.other], 0.0, 1.0))
    reach = field + error + slots.sums(gain * part)
    stay = np.maximum(1.0 - slots.sums(view.odds[slots.other]), 0.0)
    least = np.exp(np.minimum(field - error, 0.0)) * stay
    room = TINY * len(field) + float(error.sum())
    top = float(np.log1p(view.odds[held]).sum() + np.logaddexp(0.0, reach[lost]).sum())
    return inside + float(np.log1p(least[held]).sum()) - room, inside + top + room


def _entropy(
    bounds: Bounds,
    view: View,
    solved: Solved,
    epsilon: Floats,
    slop: Floats,
    around: Floats,
    clamped: Mask,
) -> tuple[float, float]:
    """Interval of the entropy.

    Low: the chain rule, clamped nodes first, each given all other nodes, then the pieces given the
    clamped ones; both count only where no neighbour is flipped. High: the sum of the clamped nodes'
    and the pieces' own entropies; that of a piece is at most its nodes' together, and at most that
    of whether a neighbour is flipped, plus the exact one if none is, plus the largest possible if
    one is.
    """
    widest = np.where(bounds.high < 0.5, bounds.high, np.where(bounds.low > 0.5, bounds.low, 0.5))
    single = binary_entropy(widest)
    spread = slop * (1.0 + solved.size)
    low = float((np.maximum(solved.entropy - spread, 0.0) * (1.0 - epsilon)).sum())
    low += float((binary_entropy(view.alone) * (1.0 - around))[clamped].sum())
    inside = np.repeat(np.arange(len(solved.size)), solved.size)
    apart = sums(inside, single[solved.node], len(solved.size))
    switched = binary_entropy(np.minimum(epsilon, 0.5)) + solved.entropy + spread
    switched += epsilon * solved.size * np.log(2.0)
    high = float(np.minimum(apart, switched).sum() + single[clamped].sum())
    room = 1e-9 + 8.0 * float(view.error.max(initial=0.0))
    return low * (1.0 - room) - TINY, high * (1.0 + room) + TINY
