"""Exact figures about conversations, piece by piece, wherever an exact method can be afforded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.posterior.inference.enumeration import NAME
from spklink.posterior.states.beliefs import StateBeliefs
from spklink.posterior.states.density import HOPELESS, table_bits
from spklink.posterior.states.enumeration import SMALL, enumerate_all
from spklink.posterior.states.listing import MOST, Listing, listed, state_count
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.network import StateNetwork, StateNetworks, split, take
from spklink.posterior.states.seats import Places, Seats, fix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
MOST_CELLS = 1 << 26  # entries of all tables of one piece that are ever made: half a gigabyte
Solve = Callable[[StateNetwork], StateBeliefs | None]  # one piece; None: it cannot be afforded


@dataclass(frozen=True)
class ExactPart:
    """Exact figures about some conversations by themselves, piece by piece."""

    piece: Ints  # (n,) number of the piece of each conversation
    solved: Mask  # (pieces,)
    guess: Floats  # (events,) where solved
    log_sum: Floats  # (pieces,) where solved, without the constants
    place: Places  # (entries,) the best state, where solved
    method: list[str]  # (pieces,)
    ties: Ints  # (pieces,) states that share the maximum, 0 where that is not known
    both: Floats | None = None  # of both ends of every link, track by track, where asked for


def solve_pieces(seats: Seats, solve: Solve, *, pairs: bool = False) -> ExactPart:
    """Every piece that is small enough, or that `solve` can solve; `pairs` asks for `both`."""
    good = _listable(seats)
    listing, entries = _listed(seats, good)
    heavy = _heavy(listing)
    if heavy.any():
        good[np.flatnonzero(good)[heavy]] = False
        listing, entries = _listed(seats, good)
    inner = _solved(listing, solve, pairs=pairs)
    return inner if good.all() else _among(seats, good, entries, inner)


def _listed(seats: Seats, good: Mask) -> tuple[Listing, Ints]:
    """The good conversations with their states, and which entries they have."""
    if good.all():
        return listed(seats), np.arange(len(seats.node))
    nowhere = seats.layout.tracks[seats.node]
    part, entries = fix(seats, nowhere, good)
    return listed(part), entries


def _heavy(listing: Listing) -> Mask:
    """(n,) conversations of pieces whose tables would be too large to make: a link of two sessions
    of six has a hundred million entries. Or would be made in vain: no exact method can use them."""
    seats, size = listing.seats, np.diff(listing.start)
    piece = seats.components()
    pairs = np.unique(seats.node[seats.first] * len(seats) + seats.node[seats.second])
    a, b = pairs // max(len(seats), 1), pairs % max(len(seats), 1)
    each = size[a].astype(np.float64) * size[b]
    cells = np.bincount(piece[a], each, int(piece.max(initial=-1)) + 1)
    in_vain = table_bits(size, piece, a, b) > HOPELESS
    return np.asarray((cells > MOST_CELLS)[piece] | in_vain[piece])


def _listable(seats: Seats) -> Mask:
    """(n,) conversations whose whole piece has lists of states that are not too long."""
    pairs = np.stack([seats.layout.people, seats.layout.tracks])
    shapes, which = np.unique(pairs, axis=1, return_inverse=True)
    long = np.array([state_count(p, k) > MOST for p, k in shapes.T.tolist()], np.bool_)
    piece = seats.components()
    bad = np.zeros(int(piece.max(initial=-1)) + 1, np.bool_)
    bad[piece[long[which.reshape(-1)]]] = True
    return ~bad[piece]


def _solved(listing: Listing, solve: Solve, *, pairs: bool) -> ExactPart:
    network = listing.network()
    pieces = split(network)
    count, bits = len(pieces), pieces.bits()
    piece = np.zeros(len(network), np.int64)
    piece[pieces.node] = np.repeat(np.arange(count), np.diff(pieces.node_start))
    draft = _Draft(network, pieces)
    draft.enumerate(np.flatnonzero(bits <= SMALL))
    for k in np.flatnonzero(bits > SMALL):
        draft.store(int(k), solve(pieces.one(int(k))))
    guess = np.concatenate(listing.spread(draft.marginal))
    place = listing.states(draft.best)
    both = listing.both(draft.joint()) if pairs else None
    return ExactPart(
        *(piece, draft.solved, guess, draft.log_sum, place, draft.method, draft.ties, both)
    )


class _Draft:
    """The answers about the pieces of a network while they are being found."""

    def __init__(self, network: StateNetwork, pieces: StateNetworks) -> None:
        self.network, self.pieces = network, pieces
        self.solved, self.log_sum = np.zeros(len(pieces), np.bool_), np.zeros(len(pieces))
        self.marginal, self.best = np.zeros(len(network.unary)), np.zeros(len(network), np.int64)
        self.method, self.ties = [""] * len(pieces), np.zeros(len(pieces), np.int64)
        self.pair = np.full(len(network.table), np.nan)

    def joint(self) -> Floats:
        """Joint probabilities, flat like the tables; products where nothing couples two nodes, or
        where they are not solved together."""
        row, column = self.network.ends()
        alone = self.marginal[row] * self.marginal[column]
        return np.where(np.isnan(self.pair), alone, self.pair)

    def _cells(self, edges: Ints) -> Ints:
        """Where the tables of some edges stand among all."""
        begin = self.network.table_start
        return ranges(begin[edges], np.diff(begin)[edges])

    def _states(self, nodes: Ints) -> Ints:
        """Where the states of some nodes stand among all."""
        return ranges(self.network.start[nodes], self.network.size[nodes])

    def enumerate(self, chosen: Ints) -> None:
        part = take(self.pieces, chosen)
        found = enumerate_all(part)
        self.marginal[self._states(part.node)] = found.marginal
        self.best[part.node] = found.best
        self.pair[self._cells(part.edge)] = found.pair
        self.solved[chosen], self.log_sum[chosen] = True, found.log_sum
        self.ties[chosen] = found.ties
        for k in chosen:
            self.method[k] = NAME

    def store(self, k: int, found: StateBeliefs | None) -> None:
        if found is None:
            return
        nodes = self.pieces.node[self.pieces.node_start[k] : self.pieces.node_start[k + 1]]
        self.marginal[self._states(nodes)] = found.marginal
        self.best[nodes] = found.best
        edges = self.pieces.edge[self.pieces.edge_start[k] : self.pieces.edge_start[k + 1]]
        self.pair[self._cells(edges)] = found.pair
        self.solved[k], self.log_sum[k] = True, found.log_sum[0]
        self.method[k], self.ties[k] = found.method, found.ties or 0


def _among(seats: Seats, good: Mask, entries: Ints, inner: ExactPart) -> ExactPart:
    """The same among all conversations; the pieces of the others are not solved."""
    found, others = np.unique(seats.components()[~good], return_inverse=True)
    more = len(found)
    piece = np.empty(len(seats), np.int64)
    piece[good] = inner.piece
    piece[~good] = len(inner.solved) + others.reshape(-1)
    events = Events(seats)
    guess = np.zeros(events.count)
    guess[good[events.node]] = inner.guess
    place = seats.layout.tracks[seats.node].astype(np.int64)
    place[entries] = inner.place
    return ExactPart(
        piece=piece,
        solved=np.concatenate([inner.solved, np.zeros(more, np.bool_)]),
        guess=guess,
        log_sum=np.concatenate([inner.log_sum, np.zeros(more)]),
        place=place,
        method=inner.method + [""] * more,
        ties=np.concatenate([inner.ties, np.zeros(more, np.int64)]),
        both=None if inner.both is None else _all_both(seats, good, inner.both),
    )


def _all_both(seats: Seats, good: Mask, inner: Floats) -> Floats:
    """Joint probabilities of all links; 0 where nothing is solved."""
    tracks, node = seats.layout.tracks, seats.node
    wide = tracks[node[seats.first]] * tracks[node[seats.second]]
    both = np.zeros(int(wide.sum()))
    both[np.repeat(good[node[seats.first]], wide)] = inner
    return both
