"""All configurations of many small networks at once: exact, and the reference for all else.

Configuration z of a network is a number whose digits are the states of its nodes, node 0 the
highest, so that the order of numbers is that of the nodes' states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import BEYOND, EXACT, Cost
from spklink.posterior.inference.enumeration import NAME, NEGLIGIBLE
from spklink.posterior.inference.network import TIE
from spklink.posterior.states.beliefs import StateBeliefs, StatePiece, StateProposal, exact_beliefs
from spklink.posterior.states.digits import fold, grow
from spklink.posterior.states.network import StateNetwork, StateNetworks, beside

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LARGEST = 22.0  # log2 of the configurations: 64 MB
SMALL = 12.0  # pieces up to here are never solved otherwise: nothing is quicker
# Seconds x 1e9 on one core: a configuration in all passes, and a network.
OPERATIONS_STATE, OPERATIONS_CALL = 18.0, 2e5
ROUNDING = 1e-9  # of a sum of logarithms


@dataclass(frozen=True)
class Enumerated:
    """Exact results, flat in the order of the networks."""

    best: Ints  # (n,) the first of the most probable configurations
    marginal: Floats  # like unary
    pair: Floats  # like table
    log_sum: Floats  # (K,) log of the sum over all configurations
    best_value: Floats  # (K,) its largest term
    entropy: Floats  # (K,) nats
    ties: Ints  # (K,) configurations that share the maximum


class _Enumeration:
    name, certainty = NAME, EXACT

    def propose(self, piece: StatePiece) -> StateProposal:
        bits = piece.network.bits
        why = f"2^{bits:.1f} configurations"
        return StateProposal(enumerate_cost(bits), why, lambda: enumerate_one(piece.network))


METHOD = _Enumeration()


def enumerate_cost(bits: float) -> Cost:
    """Operations and bytes for a network of 2^bits configurations."""
    if bits > LARGEST + ROUNDING:
        return BEYOND
    return OPERATIONS_STATE * 2.0**bits + OPERATIONS_CALL, 16.0 * 2.0**bits


def enumerate_one(network: StateNetwork) -> StateBeliefs:
    """One network."""
    found = enumerate_all(beside([network]))
    log_sum, entropy = float(found.log_sum[0]), float(found.entropy[0])
    return exact_beliefs(
        NAME, found.best, found.marginal, found.pair, log_sum, entropy, ties=int(found.ties[0])
    )


def enumerate_all(networks: StateNetworks) -> Enumerated:
    """Many networks of at most 2^LARGEST configurations each."""
    widest = float(networks.bits().max(initial=0.0))
    if widest > LARGEST + ROUNDING:
        raise ValueError(f"2^{widest:.1f} configurations: at most 2^{LARGEST:.0f} are enumerated")
    count = len(networks)
    result = Enumerated(
        best=np.zeros(len(networks.size), np.int64),
        marginal=np.zeros(len(networks.unary)),
        pair=np.zeros(len(networks.table)),
        log_sum=np.zeros(count),
        best_value=np.zeros(count),
        entropy=np.zeros(count),
        ties=np.zeros(count, np.int64),
    )
    room = np.empty((2, round(2.0**widest)))
    _enumerate(
        (networks.node_start, networks.edge_start, networks.start, networks.table_start),
        (networks.size, networks.a, networks.b),
        (networks.unary, networks.table, networks.constant),
        (result.best, result.marginal, result.pair),
        (result.log_sum, result.best_value, result.entropy, result.ties),
        room,
    )
    return result


@nb.njit(cache=True, nogil=True)
def _enumerate(places, graph, terms, states, figures, room):  # type: ignore[no-untyped-def]
    node_start, edge_start, start, table_start = places
    size, a, b = graph
    unary, table, constant = terms
    best, marginal, pair = states
    log_sum, best_value, entropy, ties = figures
    for k in range(len(constant)):
        t0, t1, e0, e1 = node_start[k], node_start[k + 1], edge_start[k], edge_start[k + 1]
        own, at = size[t0:t1], start[t0 : t1 + 1]
        edges = (a[e0:e1], b[e0:e1], table_start[e0 : e1 + 1])
        count = _fill(own, at, edges, unary, table, constant[k], room[0], room[1])
        value = room[0, :count]
        top = value.max()
        chosen, tied, total, surprise = -1, 0, 0.0, 0.0
        for z in range(count):
            below = top - value[z]
            if below <= TIE:
                tied += 1
                if chosen < 0:
                    chosen, best_value[k] = z, value[z]
            # A state this improbable adds nothing to any sum, and its exp is the costly part.
            weight = np.exp(-below) if below < NEGLIGIBLE else 0.0
            total += weight
            surprise += weight * below
            value[z] = weight
        log_sum[k], ties[k] = top + np.log(total), tied
        entropy[k] = max(0.0, np.log(total) + surprise / total)
        for t in range(t1 - t0 - 1, -1, -1):
            best[t0 + t] = chosen % own[t]
            chosen //= own[t]
        _sum_out(own, at, edges, value, room[1], 1.0 / total, marginal, pair)


@nb.njit(cache=True, nogil=True)
def _fill(size, start, edges, unary, table, constant, value, growth):  # type: ignore[no-untyped-def]
    """value[z] of every configuration, from the last node to the first: two additions each.

    Returns their number.
    """
    a, b, table_start = edges
    n, count, e1 = len(size), 1, len(a)
    value[0] = constant
    for t in range(n - 1, -1, -1):
        e0 = e1
        while e0 > 0 and a[e0 - 1] == t:
            e0 -= 1
        for s in range(size[t] - 1, -1, -1):  # state 0 last: it overwrites what the others need
            growth[0], m, e = unary[start[t] + s], 1, e1 - 1
            for u in range(n - 1, t, -1):  # edges are sorted by (a, b)
                tied = e >= e0 and b[e] == u
                place = table_start[e] + s * size[u] if tied else -1
                m = grow(growth, m, size[u], table, place, 1)
                e -= tied
            for z in range(count):
                value[s * count + z] = value[z] + growth[z]
        count *= size[t]
        e1 = e0
    return count


@nb.njit(cache=True, nogil=True)
def _sum_out(size, start, edges, weight, part, scale, marginal, pair):  # type: ignore[no-untyped-def]
    """Marginals of all nodes and edges: the first node is summed out, then the next, …

    `weight` is used up.
    """
    a, b, table_start = edges
    count, e0 = len(weight), 0
    for t in range(len(size)):
        rest, e1 = count // size[t], e0
        while e1 < len(a) and a[e1] == t:
            e1 += 1
        for s in range(size[t] if e1 > e0 else 0):
            part[:rest] = weight[s * rest : (s + 1) * rest]
            m, e = rest, e0
            for u in range(t + 1, b[e1 - 1] + 1):
                tied = b[e] == u
                place = table_start[e] + s * size[u] if tied else -1
                m = fold(part, m, size[u], pair, place, 1, scale)
                e += tied
        count = fold(weight, count, size[t], marginal, start[t], 1, scale)
        e0 = e1
