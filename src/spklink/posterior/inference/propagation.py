"""Loopy belief propagation: an estimate of every marginal where no surer method can give one.

Sum-product on the pairs, started at a good configuration: every message first says what its sender
would say if it were certain of its bit there. A round visits the nodes in breadth-first order, from
last to first and back; a node sends to those that are visited after it. Without loops, one round
suffices. If messages still move after some rounds, new ones are averaged with old ones.

Conventions: message m of i to j is the log-odds that i's side of the graph gives x_j = 1. It lies
between 0 and the coupling, so nothing overflows. Entry e of the neighbours of i has its message to
i in slot e; `back[e]` is the slot of the message from i to that neighbour.

What is guaranteed: nothing, so every interval is [0, 1]. On graphs without loops the figures are
those of the exact posterior, to rounding. With loops they are usually too sure, and a clique with
two equal optima (two speakers only) is seen from the one it was started at. The number of rounds is
bounded, and the same input gives the same output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy import special

from spklink.posterior.inference.beliefs import ESTIMATED, Beliefs
from spklink.posterior.inference.network import Network

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
TIE = 1e-9  # log-probabilities closer than this are equal
ROUNDS = 200  # back and forth, at most
STILL = 1e-10  # no message moves more: converged
DAMPING, DAMPED_FROM = 0.5, 30  # share of the old message, from this round on
SEARCH = 1000  # sweeps of the local search, at most


@dataclass(frozen=True)
class Adjacency:
    """Entries first[i] to first[i + 1] are the neighbours of node i, in table order."""

    first: Integers  # (n + 1,)
    other: NDArray[np.int32]  # (2E,) the neighbour
    edge: NDArray[np.int32]  # (2E,) the edge to it


def propagate(
    network: Network,
    *,
    start: Bits | None = None,
    proved: NDArray[np.bool_] | None = None,
    seed: int = 0,
) -> Beliefs:
    """Estimated beliefs; `proved` tells which bits of `start` are proved optimal."""
    del seed  # nothing is random here
    x = climb(network) if start is None else np.asarray(start, np.int8)
    one, both = _marginals(network, x)
    rounded = climb(network, (one > 0.5).astype(np.int8))
    better = network.value(rounded) > network.value(x) + TIE
    best = rounded if better else x
    nodes, edges = len(network), len(network.a)
    return Beliefs(
        method="propagation",
        certainty=ESTIMATED,
        best=best,
        proved=np.zeros(nodes, np.bool_) if proved is None else proved & (best == x),
        one=one,
        one_low=np.zeros(nodes),
        one_high=np.ones(nodes),
        both=both,
        both_low=np.zeros(edges),
        both_high=np.ones(edges),
        log_sum=(-math.inf, math.inf),
        entropy=(0.0, nodes * math.log(2.0)),
    )


def propagate_cost(network: Network) -> tuple[float, float]:
    """Operations (some 1e9 a second on one core) and bytes, if all rounds are needed."""
    nodes, entries = len(network), 2.0 * len(network.a)
    return ROUNDS * (40.0 * entries + 10.0 * nodes), 8.0 * (6.0 * entries + 8.0 * nodes)


def adjacency(network: Network) -> Adjacency:
    ends = np.concatenate([network.a, network.b])
    order = np.argsort(ends, kind="stable")
    degree = np.bincount(ends, minlength=len(network))
    return Adjacency(
        first=np.concatenate([[0], np.cumsum(degree)]).astype(np.int64),
        other=np.concatenate([network.b, network.a])[order].astype(np.int32),
        edge=(order % max(1, len(network.a))).astype(np.int32),
    )


def climb(network: Network, start: Bits | None = None) -> Bits:
    """A configuration that no single turn improves, from `start` or the signs of the fields."""
    x = (network.field > 0).astype(np.int8) if start is None else np.array(start, np.int8)
    near = adjacency(network)
    _climb(near.first, near.other, network.coupling[near.edge], network.field, x)
    return x


def frechet(network: Network, one: Floats, both: Floats) -> Floats:
    """P(x_a = x_b = 1) as near to `both` as the P(x = 1) allow."""
    first, second = one[network.a], one[network.b]
    return np.clip(both, np.maximum(first + second - 1.0, 0.0), np.minimum(first, second))


def _marginals(network: Network, start: Bits) -> tuple[Floats, Floats]:
    near = adjacency(network)
    nodes, coupling = len(network), network.coupling[near.edge]
    slots = np.argsort(near.edge, kind="stable").reshape(-1, 2)  # of the two ends, a first
    back = np.empty(len(near.edge), np.int64)
    back[slots] = slots[:, ::-1]
    message = coupling * start[near.other]
    order = _breadth_first(near.first, near.other)
    _pass(near.first, near.other, coupling, back, network.field, order, message)
    total = network.field + np.bincount(_owners(near), message, nodes)
    one = special.expit(total)
    from_b, from_a = message[slots[:, 0]], message[slots[:, 1]]
    a, b = total[network.a] - from_b, total[network.b] - from_a
    stack = np.stack([np.zeros_like(a), a, b, a + b + network.coupling])
    both = special.softmax(stack, axis=0)[3] if len(a) else np.zeros(0)
    return one, frechet(network, one, both)


def _owners(near: Adjacency) -> Integers:
    return np.repeat(np.arange(len(near.first) - 1), np.diff(near.first))


@nb.njit(cache=True, nogil=True)
def _climb(first, other, coupling, field, x):  # type: ignore[no-untyped-def]
    """Turn bits in table order while that gains more than rounding could feign."""
    for _ in range(SEARCH):
        turns = 0
        for i in range(len(x)):
            f, size = field[i], abs(field[i])
            for e in range(first[i], first[i + 1]):
                if x[other[e]] == 1:
                    f += coupling[e]
                    size += abs(coupling[e])
            if (-f if x[i] == 1 else f) > 1e-12 * (1.0 + size):
                x[i] = 1 - x[i]
                turns += 1
        if turns == 0:
            return


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
def _pass(first, other, coupling, back, field, order, message):  # type: ignore[no-untyped-def]
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
                old = message[back[e]]
                new = damping * old + (1.0 - damping) * new
                moved = max(moved, abs(new - old))
                message[back[e]] = new
        if moved <= STILL:
            return
