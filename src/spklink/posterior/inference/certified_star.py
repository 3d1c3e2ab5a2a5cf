"""Certified bounds for dense networks (stars) whose posterior is peaked around one configuration.

Everything counts flips from that configuration (`flips.turn`), as rows and sets of moves (module
`certified_moves`). All sets of one move are counted, of two and three those of the heaviest moves,
in all rows that matter; the gap is what is not counted. An event of counted weight N, out of the
counted total L, of which at most g is uncounted, and G of everything, has a probability in

    [N / (L + G), (N + g) / (L + g)].

The bounds hold whether or not the configuration is an optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.certified_bounds import TINY, Bounds, both_ones, no_bounds
from spklink.posterior.inference.certified_moves import (
    Moves,
    Rows,
    find_bundles,
    find_groups,
    find_moves,
    find_rows,
    row_table,
)
from spklink.posterior.inference.flips import EPSILON, rounding
from spklink.posterior.inference.network import Network, slots_of
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.int8]
LARGEST = 1500  # nodes
ROWS = 7  # ambiguous nodes at most
UNCLEAR = 2e-4  # flip odds from which a node is ambiguous
KEPT = 512  # moves in counted sets of two or three
WORK = 1e9  # multiplications for the sets of three
HUGE = 600.0  # log of a gain, or of three moves together, that comes near overflow


@dataclass(frozen=True)
class Count:
    """Counted weights and bounds on the gaps, over all rows; the largest row's own weight is 1."""

    top: float  # log weight of the largest row
    row: Floats  # (2^r,) counted
    row_gap: Floats
    move: Floats  # (m,) counted
    move_gap: Floats
    move_row: Floats  # (m, r) counted, together with each ambiguous node
    kept: Ints  # moves in sets of two or three
    pair: Floats  # (kept, kept) counted


def star_bounds(
    turned: Network, best: Bits, *, most_rows: int = ROWS, most_kept: int = KEPT
) -> Bounds | None:
    """Bounds for a network turned to `best`; None where the gap is not small."""
    n = len(turned)
    gain = np.zeros((n, n))
    np.add.at(gain, (turned.a, turned.b), turned.coupling)
    gain += gain.T
    error = rounding(turned, slots_of(turned))
    cost = -turned.field
    unclear = np.argsort(cost, kind="stable")
    unclear = np.sort(unclear[: min(most_rows, int((cost < -np.log(UNCLEAR)).sum()))])
    group = find_groups(turned, unclear)
    bundles = find_bundles(int(group.max(initial=-1)) + 1)
    moves = find_moves(cost, gain, group, unclear, bundles)
    table = row_table(cost[unclear], gain[np.ix_(unclear, unclear)])
    rows = find_rows(moves, bundles, table, 8.0 * float(error.max(initial=0.0)))
    count = _count(moves, rows, most_kept)
    if count is None:
        return None
    slop = TINY + KEPT**2 * EPSILON + 4.0 * float(np.sort(error)[-30:].sum())
    return _bounds(turned, best, unclear, moves, rows, count, slop)


def _count(moves: Moves, rows: Rows, most_kept: int) -> Count | None:
    """Sets of up to three moves in every row, and what is left; None if that is too much."""
    reach = moves.tops[:, 1]
    if max(reach.max(initial=0.0), 3.0 * (rows.log_weight + reach).max(initial=0.0)) > HUGE:
        return None
    far = rows.share * rows.sets[:, 2:].sum(axis=1)
    weight = np.exp(rows.log_weight)
    sure = float((rows.share * (1.0 + weight.sum(axis=1))).sum())
    if not float(far.sum()) <= 0.5 * sure:
        return None
    kept = _keep((rows.share[:, None] * weight).sum(axis=0), most_kept)
    factor = _factors(moves, kept)
    count = Count(
        *(rows.top, np.zeros_like(rows.share), far),
        *(np.zeros_like(moves.cost), rows.far, np.zeros_like(moves.rows)),
        *(kept, np.zeros_like(factor)),
    )
    left = int(WORK / max(1.0, 0.5 * len(kept) ** 3))  # rows that sets of three may be counted in
    worth = rows.share * rows.sets[:, 1]
    deep = set(np.argsort(-worth, kind="stable")[:left].tolist())
    for z in range(len(rows.share)):
        pairs = bool(rows.share[z] * rows.sets[z, 0] > 1e-13 * sure)
        triples = pairs and z in deep and bool(worth[z] > 1e-10 * sure)
        _count_row(count, moves, rows, z, factor, pairs=pairs, triples=triples)
    return count


def _keep(mean: Floats, most: int) -> Ints:
    """The heaviest moves, so many that the others hardly weigh."""
    order = np.argsort(-mean, kind="stable")
    rest = mean.sum() - np.cumsum(mean[order])
    return np.sort(order[: min(most, int((rest > 1e-8).sum()) + 1)])


def _factors(moves: Moves, kept: Ints) -> Floats:
    """(kept, kept) what two moves weigh more together than apart; 0 within a group."""
    member = moves.member[kept]
    gain = member @ (member @ moves.gain).T
    apart = moves.group[kept][:, None] != moves.group[kept][None, :]
    return np.asarray(np.exp(np.where(apart, gain, -np.inf)))


def _count_row(
    count: Count, moves: Moves, rows: Rows, z: int, factor: Floats, *, pairs: bool, triples: bool
) -> None:
    """Add one row to the count: sets of one move, and of two and three kept ones on demand."""
    share, kept = rows.share[z], count.kept
    spare = np.ones(len(moves.cost), np.bool_)  # moves in no counted set of two or three
    spare[kept] = False
    weight = np.exp(rows.log_weight[z])
    for_two, for_three = (
        np.exp(rows.log_weight[z] + rows.wobble + 0.5 * moves.tops[:, s]) for s in (0, 1)
    )
    move, row = weight.copy(), 1.0 + float(weight.sum())
    two_gap, three_gap = for_two * for_two.sum(), for_three * rows.others[z, 1]
    row_gap = rows.sets[z, :2].copy()
    if pairs:
        two = weight[kept][:, None] * factor * weight[kept]
        move[kept] += two.sum(axis=1)
        row += 0.5 * float(two.sum())
        two_gap[kept] = for_two[kept] * for_two[spare].sum()
        row_gap[0] = min(row_gap[0], for_two[spare].sum() * for_two.sum())
    if triples:
        three = two * _third(factor, weight[kept])
        move[kept] += 0.5 * three.sum(axis=1)
        row += float(three.sum()) / 6.0
        three_gap[kept] = for_three[kept] * for_three[spare].sum() * for_three.sum()
        row_gap[1] = min(row_gap[1], for_three[spare].sum() * rows.others[z, 1])
        two = two + three
    if pairs:
        count.pair[...] += share * two
    count.row[z] = share * row
    count.row_gap[z] += share * float(row_gap.sum())
    count.move[...] += share * move
    count.move_gap[...] += share * (two_gap + three_gap)
    count.move_row[...] += share * move[:, None] * rows.bits[z]


def _bounds(
    turned: Network, best: Bits, unclear: Ints, moves: Moves, rows: Rows, count: Count, slop: float
) -> Bounds:
    """From counts of moves and rows to probabilities of nodes and edges."""
    bounds = no_bounds(len(turned), len(turned.coupling))
    whole, gap = float(count.row.sum()), float(count.row_gap.sum())
    node, node_gap = moves.member.T @ count.move, moves.member.T @ count.move_gap
    node[unclear] = (count.row[:, None] * rows.bits).sum(axis=0)
    node_gap[unclear] = (count.row_gap[:, None] * rows.bits).sum(axis=0)
    node_gap = np.minimum(node_gap, gap)
    a, b = turned.a, turned.b
    both = _pairs(unclear, moves, rows, count)[a, b]
    either = both_ones(best[a], best[b], node[a], node[b], both, whole)
    most = np.where(best[b] == 0, np.minimum(node_gap[a], node_gap[b]), node_gap[a])
    most = np.where(best[a] == 0, most, np.where(best[b] == 0, node_gap[b], gap))
    for weight, own, narrow in (
        (node, node_gap, bounds.narrow),
        (either, most, bounds.narrow_both),
    ):
        low = weight / (whole + gap) * (1.0 - slop) - 1e-15
        high = (weight + own) / (whole + own) * (1.0 + slop) + 1e-15
        narrow(np.arange(len(weight)), low, high, weight / whole)
    bounds.narrow_sums(
        (count.top + np.log(whole) - slop, count.top + np.log(whole + gap) + slop),
        _entropy(turned, node, both, count.top, whole, gap, slop),
    )
    return bounds


def _pairs(unclear: Ints, moves: Moves, rows: Rows, count: Count) -> Floats:
    """(n, n) counted weight of the sets that contain both of two nodes."""
    member = moves.member[count.kept]
    pairs: Floats = np.asarray(member.T @ (member.T @ count.pair).T)
    tied = moves.member.multiply(count.move[:, None]).tocsr()
    pairs = pairs + (moves.member.T @ tied).toarray()
    with_row = moves.member.T @ count.move_row
    pairs[:, unclear] += with_row
    pairs[unclear, :] += with_row.T
    among = rows.bits[:, :, None] * rows.bits[:, None, :]
    pairs[np.ix_(unclear, unclear)] = (count.row[:, None, None] * among).sum(axis=0)
    return pairs


def _entropy(
    turned: Network, node: Floats, both: Floats, top: float, whole: float, gap: float, slop: float
) -> tuple[float, float]:
    """Interval of the entropy.

    The counted sets' own part is (whole * log sum + their mean cost) / sum, which has one maximum
    as a function of the unknown sum; the rest holds a share of at most gap / (whole + gap) of all
    probability, on at most 2^n configurations.
    """
    cost = float(-(turned.field * node).sum() - (turned.coupling * both).sum())

    def known(total: float) -> float:
        return float((whole * (top + np.log(total)) + cost) / total)

    peak = np.exp(np.clip(1.0 - top - cost / whole, -700.0, 700.0))
    ends = [known(whole), known(whole + gap)]
    most = max(*ends, known(float(np.clip(peak, whole, whole + gap))))
    rest = gap / (whole + gap)
    if rest > 0.0:
        most += rest * (len(turned) * np.log(2.0) - np.log(rest))
    size = 1.0 + abs(top) + float(np.abs(turned.field * node).sum()) / whole
    return min(ends) - slop * size, most + slop * size


def _third(factor: Floats, weight: Floats) -> Floats:
    """(m, m) sum over a third move of its weight and its factors with both."""
    scaled = factor * np.sqrt(weight)
    with one_blas_thread():  # the same bytes whoever asks
        return np.asarray(scaled @ scaled.T)
