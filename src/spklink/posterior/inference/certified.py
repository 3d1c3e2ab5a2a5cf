"""Intervals that provably contain the truth, for cliques too large to solve exactly.

They exist where the posterior is peaked: most nodes have a bit that is far more probable than the
other. Flips are counted from the most probable configuration found; `certified_general` bounds them
in networks of any shape, `certified_star` in dense ones, and what both say is intersected. Rounding
errors are bounded and included. None means that there is no certificate, because the bounds say
nothing about too many nodes; it does not mean that the posterior is flat.
"""

from __future__ import annotations

import numpy as np

from spklink.arrays import sums
from spklink.posterior.inference.beliefs import (
    CERTIFIED,
    UNCOUNTED,
    Beliefs,
    Optimum,
    Piece,
    Proposal,
)
from spklink.posterior.inference.certified_bounds import Bounds
from spklink.posterior.inference.certified_general import general_bounds
from spklink.posterior.inference.certified_star import LARGEST, star_bounds
from spklink.posterior.inference.flips import EPSILON, turn
from spklink.posterior.inference.network import Network, split
from spklink.posterior.inference.roof import find_optimum

NAME = "certified"
GOOD = 1e-6  # width that needs no second method
USELESS = 0.5  # width that says nothing
UNRESOLVED = 0.01  # share of the nodes that may stay so wide


class _Certified:
    name, certainty = NAME, CERTIFIED

    def propose(self, piece: Piece) -> Proposal | None:
        if not piece.network.binary:
            return None

        def run() -> Beliefs | None:
            return certified(piece.network, optimum=piece.optimum())

        # The work is bounded by the limits of the files it uses, to seconds for a million calls.
        return Proposal(UNCOUNTED, "flips from the optimum", run, silence="no certificate")


METHOD = _Certified()


def certified(network: Network, *, optimum: Optimum | None = None, seed: int = 0) -> Beliefs | None:
    """Certified beliefs about one clique, or None: no certificate."""
    found = optimum or find_optimum(network, seed=seed)
    turned = turn(network, found.best)
    bounds = general_bounds(turned, found.best)
    _add_star(bounds, turned, found)
    useless = bounds.high - bounds.low > USELESS
    if useless.sum() > UNRESOLVED * len(network):
        return None
    return _beliefs(network, turned, found, bounds)


def _add_star(bounds: Bounds, turned: Network, found: Optimum) -> None:
    """Narrow the bounds piece by piece, where pieces are not too large and it is worth the work."""
    if (bounds.high - bounds.low).max(initial=0.0) <= GOOD:
        return
    pieces = split(turned)
    piece = np.repeat(np.arange(len(pieces)), pieces.sizes())
    wide = sums(piece, (bounds.high - bounds.low)[pieces.node] > GOOD, len(pieces))
    for k in np.flatnonzero((wide > 0.0) & (pieces.sizes() <= LARGEST)):
        nodes = pieces.node[pieces.node_start[k] : pieces.node_start[k + 1]]
        edges = pieces.edge[pieces.edge_start[k] : pieces.edge_start[k + 1]]
        star = star_bounds(pieces.one(int(k)), found.best[nodes])
        if star is None:
            continue
        bounds.narrow(nodes, star.low, star.high, star.guess)
        bounds.narrow_both(edges, star.both_low, star.both_high, star.both)
        if len(pieces) == 1:
            log_sum, entropy = star.log_sum.tolist(), star.entropy.tolist()
            bounds.narrow_sums((log_sum[0], log_sum[1]), (entropy[0], entropy[1]))


def _beliefs(network: Network, turned: Network, found: Optimum, bounds: Bounds) -> Beliefs:
    """From flips to bits."""
    best = found.best
    guess = np.clip(bounds.guess, bounds.low, bounds.high)
    low = np.where(best == 0, bounds.low, 1.0 - bounds.high)
    high = np.where(best == 0, bounds.high, 1.0 - bounds.low)
    one = np.clip(np.where(best == 0, guess, 1.0 - guess), low, high)
    a, b = network.a, network.b
    # P(a and b) lies between P(a) + P(b) - 1 and the smaller of the two.
    both_low = np.maximum(bounds.both_low, low[a] + low[b] - 1.0 - EPSILON)
    both_high = np.minimum(bounds.both_high, np.minimum(high[a], high[b]))
    both = np.where(np.isnan(bounds.both), one[a] * one[b], bounds.both)
    size = abs(network.constant) + float(np.abs(network.field).sum())
    room = 64.0 * EPSILON * (size + float(np.abs(network.coupling).sum()))
    return Beliefs(
        method=NAME,
        certainty=CERTIFIED,
        best=best,
        proved=found.proved,
        zero=1.0 - one,
        one=one,
        one_low=low,
        one_high=high,
        both=np.clip(both, both_low, both_high),
        both_low=both_low,
        both_high=both_high,
        log_sum=(
            turned.constant + float(bounds.log_sum[0]) - room,
            turned.constant + float(bounds.log_sum[1]) + room,
        ),
        entropy=(float(bounds.entropy[0]), float(bounds.entropy[1])),
    )
