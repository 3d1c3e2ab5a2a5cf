"""A network solved piece by piece, and the answers put together again.

Nothing here approximates: pieces that no table ties together are independent. Small ones are
enumerated all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.posterior.inference.beliefs import CERTAINTIES, EXACT
from spklink.posterior.inference.enumeration import NAME
from spklink.posterior.states.beliefs import StateBeliefs
from spklink.posterior.states.enumeration import SMALL, enumerate_all
from spklink.posterior.states.network import StateNetwork, StateNetworks, restrict, split, take

Ints = NDArray[np.int64]
Solve = Callable[[StateNetwork], StateBeliefs | None]
TIED = 16.0  # bits of a piece up to which its ties are counted
SLACK = 1e-6  # relative; probabilities closer than this may be the same


def solve_in_pieces(
    network: StateNetwork, solve: Solve, *, small: float = SMALL
) -> StateBeliefs | None:
    """Small pieces (in bits) by enumeration, others by `solve`; None if it has none for one."""
    pieces = split(network)
    enumerated = pieces.bits() <= small
    whole = _Whole(network, pieces)
    whole.add_enumerated(np.flatnonzero(enumerated))
    for k in np.flatnonzero(~enumerated):
        found = solve(pieces.one(int(k)))
        if found is None:
            return None
        whole.add(int(k), found)
    return whole.beliefs()


def with_ties(network: StateNetwork, found: StateBeliefs) -> StateBeliefs:
    """Exact beliefs with the ties counted, if few states could be part of one.

    A configuration as probable as the best has no state less probable than itself.
    """
    if found.ties is not None or found.certainty != EXACT:
        return found
    share = np.exp(network.value(found.best) - found.log_sum[0])
    kept = found.marginal >= share * (1.0 - SLACK)
    kept[network.start[:-1] + found.best] = True
    if kept.all() and network.bits > TIED:
        return found
    pieces = split(restrict(network, kept))
    if pieces.bits().max(initial=0.0) > TIED:
        return found
    ties = 1
    for count in enumerate_all(pieces).ties.tolist():
        ties *= count
    return replace(found, ties=ties)


class _Whole:
    """Collects the beliefs of the pieces into those of the network they came from."""

    def __init__(self, network: StateNetwork, pieces: StateNetworks) -> None:
        self.network, self.pieces = network, pieces
        self.best = np.zeros(len(network), np.int64)
        self.proved = np.zeros(len(network), np.bool_)
        self.marginal, self.low, self.high = np.zeros((3, len(network.unary)))
        self.pair = np.zeros(len(network.table))
        self.log_sum, self.entropy = np.full(2, network.constant), np.zeros(2)
        self.ties: int | None = 1
        self.certainty, self.method, self.largest = EXACT, NAME, 0.0

    def add_enumerated(self, chosen: Ints) -> None:
        part = take(self.pieces, chosen)
        found = enumerate_all(part)
        self.best[part.node], self.proved[part.node] = found.best, True
        states, cells = self._places(part.node, part.edge)
        for array in (self.marginal, self.low, self.high):
            array[states] = found.marginal
        self.pair[cells] = found.pair
        self.log_sum += found.log_sum.sum()
        self.entropy += found.entropy.sum()
        self._tie(found.ties.tolist())

    def add(self, k: int, found: StateBeliefs) -> None:
        nodes = self.pieces.node[self.pieces.node_start[k] : self.pieces.node_start[k + 1]]
        edges = self.pieces.edge[self.pieces.edge_start[k] : self.pieces.edge_start[k + 1]]
        states, cells = self._places(nodes, edges)
        self.best[nodes], self.proved[nodes] = found.best, found.proved
        for name in ("marginal", "low", "high"):
            getattr(self, name)[states] = getattr(found, name)
        self.pair[cells] = found.pair
        self.log_sum += found.log_sum
        self.entropy += found.entropy
        self._tie([found.ties])
        worse = CERTAINTIES.index(found.certainty) - CERTAINTIES.index(self.certainty)
        bits = float(np.log2(self.network.size[nodes]).sum())
        if worse > 0 or (worse == 0 and bits > self.largest):
            self.certainty, self.method, self.largest = found.certainty, found.method, bits

    def _places(self, nodes: Ints, edges: Ints) -> tuple[Ints, Ints]:
        """Where the states of these nodes and the table entries of these edges stand."""
        first, count = self.network.table_start[edges], np.diff(self.network.table_start)[edges]
        states = ranges(self.network.start[nodes], self.network.size[nodes])
        return states, ranges(first, count)

    def _tie(self, counts: Iterable[int | None]) -> None:
        for count in counts:
            self.ties = None if count is None or self.ties is None else self.ties * count

    def beliefs(self) -> StateBeliefs:
        between = np.ones(len(self.network.a), np.bool_)
        between[self.pieces.edge] = False
        cell = np.repeat(between, np.diff(self.network.table_start))
        if between.any():  # pieces are independent
            row, column = (end[cell] for end in self.network.ends())
            self.pair[cell] = self.marginal[row] * self.marginal[column]
        return StateBeliefs(
            method=self.method,
            certainty=self.certainty,
            best=self.best,
            proved=self.proved,
            marginal=self.marginal,
            low=self.low,
            high=self.high,
            pair=self.pair,
            log_sum=(float(self.log_sum[0]), float(self.log_sum[1])),
            entropy=(float(self.entropy[0]), float(self.entropy[1])),
            ties=self.ties,
        )
