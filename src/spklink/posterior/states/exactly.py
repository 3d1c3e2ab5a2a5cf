"""Exact figures about conversations, piece by piece, wherever an exact method can be afforded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.network import joints, marginals
from spklink.posterior.inference.simplify import Solve, collect
from spklink.posterior.states.density import HOPELESS, table_bits
from spklink.posterior.states.listing import MOST, Listing, listed, state_count
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.seats import Places, Seats, fix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
MOST_CELLS = 1 << 26  # entries of all tables of one piece that are ever made: half a gigabyte


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
    found = collect(network, solve)
    piece, beliefs = found.piece(), found.beliefs()
    both = None
    if pairs:
        both = listing.both(joints(network, beliefs.zero, beliefs.one, beliefs.both))
    return ExactPart(
        piece=piece,
        solved=found.solved,
        guess=np.concatenate(listing.spread(marginals(network, beliefs.zero, beliefs.one))),
        log_sum=found.log_sums + sums(piece, base, len(found.solved)),
        place=listing.states(beliefs.best),
        method=found.methods.tolist(),
        ties=found.ties,
        both=both,
    )


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
