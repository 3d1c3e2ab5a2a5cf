"""Loopy belief propagation: an estimate of every marginal where no surer method can give one.

Sum-product on the pairs, started at a good configuration: every message first says what its sender
would say if it were certain of its bit there. A round visits the nodes in breadth-first order, from
last to first and back; a node sends to those that are visited after it. Without loops, one round
suffices. If messages still move after some rounds, new ones are averaged with old ones.

Conventions: message m of i to j is the log-odds that i's side of the graph gives x_j = 1. It lies
between 0 and the coupling, so nothing overflows. Entry e of the neighbours of i has its message to
i in slot e; the mirror of e is the slot of the message from i to that neighbour.

What is guaranteed: nothing, so every interval is [0, 1]. On graphs without loops the figures are
those of the exact posterior, to rounding. With loops they are usually too sure, and a clique with
two equal optima (two speakers only) is seen from the one it was started at. The number of rounds is
bounded, and the same input gives the same output.
"""

from __future__ import annotations

import math

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy import special

from spklink.posterior.inference.beliefs import (
    ESTIMATED,
    UNCOUNTED,
    Beliefs,
    Piece,
    Proposal,
    frechet,
)
from spklink.posterior.inference.flips import climb
from spklink.posterior.inference.network import TIE, Network, slots_of

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
NAME = "bp"
ROUNDS = 200  # back and forth, at most
STILL = 1e-10  # no message moves more: converged
DAMPING, DAMPED_FROM = 0.5, 30  # share of the old message, from this round on


class _Propagation:
    name, certainty = NAME, ESTIMATED

    def propose(self, piece: Piece) -> Proposal | None:
        if not piece.network.binary:
            return None

        def run() -> Beliefs:
            optimum = piece.optimum()
            return propagate(piece.network, start=optimum.best, proved=optimum.proved)

        return Proposal(UNCOUNTED, f"{ROUNDS} rounds at most", run)


METHOD = _Propagation()


def propagate(
    network: Network,
    *,
    start: Bits | None = None,
    proved: NDArray[np.bool_] | None = None,
) -> Beliefs:
    """Estimated beliefs; `proved` tells which bits of `start` are proved optimal."""
    x = climb(network) if start is None else np.asarray(start, np.int8)
    one, both = _marginals(network, x)
    rounded = climb(network, (one > 0.5).astype(np.int8))
    better = network.value(rounded) > network.value(x) + TIE
    best = rounded if better else x
    nodes, edges = len(network), len(network.a)
    return Beliefs(
        method=NAME,
        certainty=ESTIMATED,
        best=best,
        proved=np.zeros(nodes, np.bool_) if proved is None else proved & (best == x),
        zero=1.0 - one,
        one=one,
        one_low=np.zeros(nodes),
        one_high=np.ones(nodes),
        both=both,
        both_low=np.zeros(edges),
        both_high=np.ones(edges),
        log_sum=(-math.inf, math.inf),
        entropy=(0.0, nodes * math.log(2.0)),
    )


def _marginals(network: Network, start: Bits) -> tuple[Floats, Floats]:
    slots = slots_of(network, uncoupled=True)
    coupling = network.coupling[slots.edge]
    message = coupling * start[slots.other]
    order = _breadth_first(slots.start, slots.other)
    _pass(slots.start, slots.other, coupling, slots.mirror, network.field, order, message)
    total = network.field + slots.sums(message)
    one = special.expit(total)
    at_a = np.empty(len(network.a), np.int64)  # slot of each edge at its end a < b
    near = np.flatnonzero(slots.node < slots.other)
    at_a[slots.edge[near]] = near
    from_b, from_a = message[at_a], message[slots.mirror[at_a]]
    a, b = total[network.a] - from_b, total[network.b] - from_a
    stack = np.stack([np.zeros_like(a), a, b, a + b + network.coupling])
    both = special.softmax(stack, axis=0)[3] if len(a) else np.zeros(0)
    return one, frechet(network, one, both)


@nb.njit(cache=True, nogil=True)
def _breadth_first(first, other):  # type: ignore[no-untyped-def]
    """Order in which every node but the first of its component follows a neighbour."""
    n, filled = len(first) - 1, 0
    order, seen = np.empty(n, np.int64), np.zeros(n, np.bool_)
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order[filled] = root
        at, filled = filled, filled + 1
        while at < filled:
            for e in range(first[order[at]], first[order[at] + 1]):
                k = other[e]
                if not seen[k]:
                    seen[k] = True
                    order[filled] = k
                    filled += 1
            at += 1
    return order


@nb.njit(cache=True, nogil=True)
def _pass(first, other, coupling, mirror, field, order, message):  # type: ignore[no-untyped-def]
    """m_ij = log (1 + exp(theta + J)) / (1 + exp(theta)), theta = log-odds of x_i without j."""
    n = len(order)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    for r in range(ROUNDS):
        moved, damping = 0.0, DAMPING if r >= DAMPED_FROM else 0.0
        for step in range(2 * n):
            forth = step >= n
            i = order[step - n] if forth else order[n - 1 - step]
            total = field[i]
            for e in range(first[i], first[i + 1]):
                total += message[e]
            for e in range(first[i], first[i + 1]):
                if (rank[other[e]] > rank[i]) != forth:
                    continue
                low = total - message[e]
                high = low + coupling[e]
                new = max(high, 0.0) - max(low, 0.0)
                new += np.log1p(np.exp(-abs(high))) - np.log1p(np.exp(-abs(low)))
                old = message[mirror[e]]
                new = damping * old + (1.0 - damping) * new
                moved = max(moved, abs(new - old))
                message[mirror[e]] = new
        if moved <= STILL:
            return
