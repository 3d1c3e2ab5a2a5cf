"""Make a clique smaller before solving it, and put the answers together again.

Nothing here approximates: a problem falls into connected pieces (zero couplings do not connect), a
mirror-symmetric piece is solved with one conversation fixed, and (module `blocks`) a piece falls
apart wherever one conversation holds it together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import CERTAINTIES, EXACT, Beliefs
from spklink.posterior.inference.enumeration import LIMIT, NAME, enumerate_all
from spklink.posterior.inference.flips import turn
from spklink.posterior.inference.network import (
    Network,
    Networks,
    alone,
    fix,
    restrict,
    split,
    take,
)

SYMMETRY = 1e-12  # relative; fields of a mirror-symmetric clique cancel up to rounding
TIED = 16.0  # doublings of a piece up to which its ties are counted
SLACK = 1e-6  # relative; probabilities closer than this may be the same
MOST_TIES = 2**62  # of a piece
Ints = NDArray[np.int64]
Solve = Callable[[Network], Beliefs | None]


def solve_in_pieces(network: Network, solve: Solve, *, small: float = LIMIT) -> Beliefs | None:
    """Solve every connected piece by itself: those of few configurations (2^small) by enumeration,
    others by `solve`; None as soon as it has no answer for one."""
    whole = collect(network, solve, small=small, all_or_none=True)
    return whole.beliefs() if whole.solved.all() else None


def collect(
    network: Network, solve: Solve, *, small: float = LIMIT, all_or_none: bool = False
) -> Collected:
    """The same piece by piece: those that `solve` has no answer for are left out."""
    pieces = split(network)
    enumerated = pieces.doublings() <= small
    whole = Collected(network, pieces)
    whole.add_enumerated(np.flatnonzero(enumerated))
    for k in np.flatnonzero(~enumerated):
        piece = pieces.one(int(k))
        mirrored = piece.binary and is_mirrored(piece)
        found = solve_mirrored(piece, solve) if mirrored else solve(piece)
        if found is not None:
            whole.add(int(k), found)
        elif all_or_none:
            break
    return whole


def is_mirrored(network: Network) -> bool:
    """Whether turning every bit leaves all probabilities as they are (two-speaker cliques)."""
    n, half = len(network), 0.5 * network.coupling
    pull = np.bincount(network.a, half, n) + np.bincount(network.b, half, n)
    size = np.abs(network.field)
    size = size + np.bincount(network.a, np.abs(half), n) + np.bincount(network.b, np.abs(half), n)
    return bool((np.abs(network.field + pull) <= SYMMETRY * (1.0 + n * size)).all())


def solve_mirrored(network: Network, solve: Solve) -> Beliefs | None:
    """Fix the first conversation as listed, solve the rest, and unfold the mirror image."""
    first = np.arange(len(network)) == 0
    rest, kept = fix(network, np.where(first, 0, -1).astype(np.int8))
    found = solve_in_pieces(rest, solve)
    if found is None:
        return None
    at_first = network.a == 0  # a < b, so node 0 can only be a
    low, high, mid = (np.full(len(network.a), np.nan) for _ in range(3))
    far = network.b[at_first] - 1
    # P(both 1) is half the probability that the two agree.
    low[at_first] = 1.0 - found.one_high[far]
    high[at_first] = 1.0 - found.one_low[far]
    mid[at_first] = 1.0 - found.one[far]
    a, b = network.a[kept] - 1, network.b[kept] - 1
    low[kept] = 1.0 - found.one_high[a] - found.one_high[b] + 2.0 * found.both_low
    high[kept] = 1.0 - found.one_low[a] - found.one_low[b] + 2.0 * found.both_high
    mid[kept] = 1.0 - found.one[a] - found.one[b] + 2.0 * found.both
    half = np.full(len(network), 0.5)
    log_2 = float(np.log(2.0))
    return replace(
        found,
        best=np.concatenate([[0], found.best]).astype(np.int8),
        proved=np.concatenate([[True], found.proved]),
        zero=half,
        one=half,
        one_low=half,
        one_high=half,
        both=np.clip(0.5 * mid, 0.0, 0.5),
        both_low=np.clip(0.5 * low, 0.0, 0.5),
        both_high=np.clip(0.5 * high, 0.0, 0.5),
        log_sum=(found.log_sum[0] + log_2, found.log_sum[1] + log_2),
        entropy=(found.entropy[0] + log_2, found.entropy[1] + log_2),
        ties=None if found.ties is None else 2 * found.ties,
    )


def with_ties(network: Network, found: Beliefs) -> Beliefs:
    """Exact beliefs with the ties counted, if few states could be part of one.

    A configuration as probable as the best has no state less probable than itself.
    """
    if found.ties is not None or found.certainty != EXACT:
        return found
    share = np.exp(network.value(found.best) - found.log_sum[0])
    # In changes from the best, its states are the first, which are kept in any case.
    moved, level = np.flatnonzero(found.best), found.one.copy()
    level[network.start[moved] + found.best[moved] - 1] = found.zero[moved]
    kept = level >= share * (1.0 - SLACK)
    if kept.all() and network.doublings > TIED:
        return found
    pieces = split(restrict(turn(network, found.best), kept))
    if pieces.doublings().max(initial=0.0) > TIED:
        return found
    ties = 1
    for count in enumerate_all(pieces).ties.tolist():
        ties *= count
    return replace(found, ties=ties)


class Collected:
    """The beliefs of the pieces of a network as they are found; together, those of the network."""

    def __init__(self, network: Network, pieces: Networks) -> None:
        count = len(pieces)
        self.solved, self.log_sums = np.zeros(count, np.bool_), np.zeros(count)  # (pieces,)
        self.methods, self.ties = np.full(count, "", object), np.zeros(count, np.int64)
        self.network, self.pieces = network, pieces
        n, entries, cells = len(network), len(network.field), len(network.coupling)
        self.best = np.zeros(n, np.int8 if network.binary else np.int64)
        self.proved, self.zero = np.zeros(n, np.bool_), np.zeros(n)
        self.one, self.one_low, self.one_high = np.zeros((3, entries))
        self.both, self.both_low, self.both_high = np.zeros((3, cells))
        self.places = alone(network)
        self.log_sum, self.entropy = np.full(2, network.constant), np.zeros(2)
        self.tied: int | None = 1
        self.certainty, self.method, self.largest = EXACT, NAME, 0.0

    def add_enumerated(self, chosen: NDArray[np.int64]) -> None:
        if len(chosen) == 0:
            return
        part = take(self.pieces, chosen)
        found = enumerate_all(part)
        self.best[part.node], self.proved[part.node] = found.best, True
        self.zero[part.node] = found.zero
        entries, cells = self.places.entries(part.node), self.places.cells(part.edge)
        for array in (self.one, self.one_low, self.one_high):
            array[entries] = found.one
        for array in (self.both, self.both_low, self.both_high):
            array[cells] = found.both
        self.log_sum += found.log_sum.sum()
        self.entropy += np.maximum(found.entropy, 0.0).sum()
        self.solved[chosen], self.log_sums[chosen] = True, found.log_sum
        self.methods[chosen], self.ties[chosen] = NAME, found.ties
        self._tie(found.ties.tolist())

    def add(self, k: int, found: Beliefs) -> None:
        nodes = self.pieces.node[self.pieces.node_start[k] : self.pieces.node_start[k + 1]]
        edges = self.pieces.edge[self.pieces.edge_start[k] : self.pieces.edge_start[k + 1]]
        entries, cells = self.places.entries(nodes), self.places.cells(edges)
        for name in ("best", "proved", "zero"):
            getattr(self, name)[nodes] = getattr(found, name)
        for name in ("one", "one_low", "one_high"):
            getattr(self, name)[entries] = getattr(found, name)
        for name in ("both", "both_low", "both_high"):
            getattr(self, name)[cells] = getattr(found, name)
        self.log_sum += found.log_sum
        self.entropy += found.entropy
        self.solved[k], self.log_sums[k] = True, found.log_sum[0]
        self.methods[k], self.ties[k] = found.method, min(found.ties or 0, MOST_TIES)
        self._tie([found.ties])
        worse = CERTAINTIES.index(found.certainty) - CERTAINTIES.index(self.certainty)
        doublings = float(np.log2(self.network.size[nodes]).sum())
        if worse > 0 or (worse == 0 and doublings > self.largest):
            self.certainty, self.method, self.largest = found.certainty, found.method, doublings

    def _tie(self, counts: Iterable[int | None]) -> None:
        for count in counts:
            self.tied = None if count is None or self.tied is None else self.tied * count

    def piece(self) -> Ints:
        """(n,) the piece of each node."""
        found = np.zeros(len(self.network), np.int64)
        found[self.pieces.node] = np.repeat(np.arange(len(self.pieces)), self.pieces.sizes())
        return found

    def beliefs(self) -> Beliefs:
        between = np.ones(len(self.network.a), np.bool_)
        between[self.pieces.edge] = False
        cells = self.places.cells(np.flatnonzero(between))
        row, column = (end[cells] for end in self.network.ends)
        for both, one in (
            (self.both, self.one),
            (self.both_low, self.one_low),
            (self.both_high, self.one_high),
        ):
            both[cells] = one[row] * one[column]  # pieces are independent
        return Beliefs(
            method=self.method,
            certainty=self.certainty,
            best=self.best,
            proved=self.proved,
            zero=self.zero,
            one=self.one,
            one_low=self.one_low,
            one_high=self.one_high,
            both=self.both,
            both_low=self.both_low,
            both_high=self.both_high,
            log_sum=(float(self.log_sum[0]), float(self.log_sum[1])),
            entropy=(float(self.entropy[0]), float(self.entropy[1])),
            ties=self.tied,
        )
