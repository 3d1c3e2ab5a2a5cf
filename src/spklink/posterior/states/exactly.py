"""Exact figures about conversations, piece by piece, wherever an exact method can be afforded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.beliefs import Beliefs
from spklink.posterior.inference.enumeration import LIMIT, NAME, enumerate_all
from spklink.posterior.inference.network import (
    Network,
    Networks,
    alone,
    joints,
    marginals,
    split,
    take,
)
from spklink.posterior.states.density import HOPELESS, table_bits
from spklink.posterior.states.listing import MOST, Listing, listed, state_count
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.seats import Places, Seats, fix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
MOST_CELLS = 1 << 26  # entries of all tables of one piece that are ever made: half a gigabyte
Solve = Callable[[Network], Beliefs | None]  # one piece; None: it cannot be afforded


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
    network, base = listing.network()
    pieces = split(network)
    count, doublings = len(pieces), pieces.doublings()
    piece = np.zeros(len(network), np.int64)
    piece[pieces.node] = np.repeat(np.arange(count), np.diff(pieces.node_start))
    draft = _Draft(network, pieces)
    draft.enumerate(np.flatnonzero(doublings <= LIMIT))
    for k in np.flatnonzero(doublings > LIMIT):
        draft.store(int(k), solve(pieces.one(int(k))))
    guess = np.concatenate(listing.spread(marginals(network, draft.zero, draft.one)))
    place = listing.states(draft.best)
    both = listing.both(draft.joints()) if pairs else None
    log_sum = draft.log_sum + sums(piece, base, count)
    return ExactPart(piece, draft.solved, guess, log_sum, place, draft.method, draft.ties, both)


class _Draft:
    """The answers about the pieces of a network while they are being found."""

    def __init__(self, network: Network, pieces: Networks) -> None:
        self.network, self.pieces, self.places = network, pieces, alone(network)
        self.solved, self.log_sum = np.zeros(len(pieces), np.bool_), np.zeros(len(pieces))
        self.zero, self.one = np.zeros(len(network)), np.zeros(len(network.field))
        self.best, self.both = (
            np.zeros(len(network), np.int64),
            np.full(len(network.coupling), np.nan),
        )
        self.method, self.ties = [""] * len(pieces), np.zeros(len(pieces), np.int64)

    def joints(self) -> Floats:
        """Joint probabilities of all states of two nodes; products where nothing couples the nodes,
        or where they are not solved together."""
        row, column = self.network.ends
        apart = self.one[row] * self.one[column]
        both = np.where(np.isnan(self.both), apart, self.both)
        return joints(self.network, self.zero, self.one, both)

    def enumerate(self, chosen: Ints) -> None:
        part = take(self.pieces, chosen)
        found = enumerate_all(part)
        self.zero[part.node], self.one[self.places.entries(part.node)] = found.zero, found.one
        self.best[part.node] = found.best
        self.both[self.places.cells(part.edge)] = found.both
        self.solved[chosen], self.log_sum[chosen] = True, found.log_sum
        self.ties[chosen] = found.ties
        for k in chosen:
            self.method[k] = NAME

    def store(self, k: int, found: Beliefs | None) -> None:
        if found is None:
            return
        nodes = self.pieces.node[self.pieces.node_start[k] : self.pieces.node_start[k + 1]]
        edges = self.pieces.edge[self.pieces.edge_start[k] : self.pieces.edge_start[k + 1]]
        self.zero[nodes], self.one[self.places.entries(nodes)] = found.zero, found.one
        self.best[nodes] = found.best
        self.both[self.places.cells(edges)] = found.both
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
