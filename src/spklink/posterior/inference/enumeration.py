"""All 2^n configurations of many small cliques at once: exact, and the reference for all else.

Paper symbols: the sum over C' of eq. (posterior). State z of a clique of n nodes is an integer in
which node 0 is the highest bit, so that integer order is table order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import (
    BEYOND,
    EXACT,
    Beliefs,
    Cost,
    Piece,
    Proposal,
    exact_beliefs,
)
from spklink.posterior.inference.network import TIE, Network, Networks, alone

Floats = NDArray[np.float64]
NAME = "enumerate"
LIMIT = 12  # nodes; pieces up to here are never solved otherwise: nothing is quicker
LARGEST = 20  # nodes, where it is asked for: a million configurations, 16 MB
# Seconds x 1e9 on one core, a configuration: to weigh it, and a step of the sums over supersets.
OPERATIONS_STATE, OPERATIONS_BIT = 10.0, 1.0
NEGLIGIBLE = 700.0  # nats below the best; exp would leave the range of normal numbers


@dataclass(frozen=True)
class Enumerated:
    """Exact results, flat in the order of the networks."""

    best: NDArray[np.int8]  # (n,) the first of the most probable configurations, in table order
    one: Floats  # (n,) P(x = 1)
    both: Floats  # (E,) P(x_a = x_b = 1)
    log_sum: Floats  # (K,) log of the sum over all configurations
    best_value: Floats  # (K,) its largest term
    mirror_value: Floats  # (K,) the term of the best configuration with every bit turned
    entropy: Floats  # (K,) nats
    ties: NDArray[np.int64]  # (K,) configurations that share the maximum


class _Enumeration:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal | None:
        n = len(piece)
        if n > (LARGEST if piece.by_name else LIMIT):
            return None
        why = f"{n} open conversations"
        return Proposal(enumerate_cost(n), why, lambda: enumerate_one(piece.network))


METHOD = _Enumeration()


def enumerate_cost(n: int) -> Cost:
    """Operations and bytes for a clique of n nodes."""
    if n > LARGEST:
        return BEYOND
    return (OPERATIONS_STATE + OPERATIONS_BIT * n) * 2.0**n, 16.0 * 2.0**n


def enumerate_one(network: Network) -> Beliefs:
    """One clique."""
    found = enumerate_all(alone(network))
    return exact_beliefs(
        network,
        NAME,
        found.best,
        found.one,
        found.both,
        float(found.log_sum[0]),
        max(0.0, float(found.entropy[0])),
        ties=int(found.ties[0]),
    )


def enumerate_all(networks: Networks) -> Enumerated:
    """Many cliques of at most LARGEST nodes."""
    count, nodes, edges = len(networks), len(networks.field), len(networks.coupling)
    result = Enumerated(
        best=np.zeros(nodes, np.int8),
        one=np.zeros(nodes),
        both=np.zeros(edges),
        log_sum=np.zeros(count),
        best_value=np.zeros(count),
        mirror_value=np.zeros(count),
        entropy=np.zeros(count),
        ties=np.zeros(count, np.int64),
    )
    widest = int(networks.sizes().max(initial=0))
    _enumerate(
        *(networks.node_start, networks.edge_start, networks.a, networks.b),
        *(networks.field, networks.coupling, networks.constant, widest),
        *(result.best, result.one, result.both, result.log_sum, result.best_value),
        *(result.mirror_value, result.entropy, result.ties),
    )
    return result


def k_best(network: Network, k: int) -> tuple[NDArray[np.int8], Floats]:
    """The k most probable configurations, (k, n) bits, and their log-probabilities (k,)."""
    n = len(network)
    table, growth = np.empty((2, 1 << n))
    parts = (network.field, network.a, network.b, network.coupling, network.constant)
    _fill_table(*parts, table, growth, np.empty((n, n)))
    # Rounding to the tie width first keeps tied configurations in table order.
    order = np.argsort(-np.round(table / TIE), kind="stable")[:k]
    bits = (order[:, None] >> np.arange(n - 1, -1, -1)) & 1
    top = table.max()
    return bits.astype(np.int8), table[order] - top - np.log(np.exp(table - top).sum())


@nb.njit(cache=True, nogil=True)
def _fill_table(field, a, b, coupling, constant, table, growth, dense):  # type: ignore[no-untyped-def]
    """table[z] = log-likelihood of state z, by doubling: one addition a state and bit level."""
    n = len(field)
    for t in range(n):
        for u in range(t + 1, n):
            dense[t, u] = 0.0
    for e in range(len(coupling)):
        dense[a[e], b[e]] += coupling[e]
    table[0] = constant
    for p in range(n):  # bit p is node n-1-p
        node, m = n - 1 - p, 1 << p
        growth[0] = field[node]
        for q in range(p):
            step, half = dense[node, n - 1 - q], 1 << q
            for z in range(half):
                growth[half + z] = growth[z] + step
        for z in range(m):
            table[m + z] = table[z] + growth[z]


@nb.njit(cache=True, nogil=True)
def _enumerate(  # type: ignore[no-untyped-def]
    node_start,
    edge_start,
    a,
    b,
    field,
    coupling,
    constant,
    widest,
    best,
    one,
    both,
    log_sum,
    best_value,
    mirror_value,
    entropy,
    ties,
):
    table, weight = np.empty(1 << widest), np.empty(1 << widest)
    dense = np.empty((widest, widest))
    for k in range(len(constant)):
        t0, t1, e0, e1 = node_start[k], node_start[k + 1], edge_start[k], edge_start[k + 1]
        n = t1 - t0
        states = 1 << n
        _fill_table(
            field[t0:t1], a[e0:e1], b[e0:e1], coupling[e0:e1], constant[k], table, weight, dense
        )
        top = table[0]
        for z in range(1, states):
            top = max(top, table[z])
        chosen, tied, total, surprise = -1, 0, 0.0, 0.0
        for z in range(states):
            below = top - table[z]
            if below <= TIE:
                tied += 1
                if chosen < 0:
                    chosen = z
            # A state this improbable adds nothing to any sum, and its exp is the costly part.
            weight[z] = np.exp(-below) if below < NEGLIGIBLE else 0.0
            total += weight[z]
            surprise += weight[z] * below
        log_total = np.log(total)
        log_sum[k], best_value[k], ties[k] = top + log_total, table[chosen], tied
        mirror_value[k], entropy[k] = table[states - 1 - chosen], log_total + surprise / total
        # Sums over supersets: weight[mask] becomes the total of all states that contain the mask,
        # so single bits and pairs of bits are the marginals wanted.
        for p in range(n):
            m = 1 << p
            for low in range(0, states, 2 * m):
                for z in range(low, low + m):
                    weight[z] += weight[z + m]
        for t in range(n):
            best[t0 + t] = (chosen >> (n - 1 - t)) & 1
            one[t0 + t] = weight[1 << (n - 1 - t)] / total
        for e in range(e0, e1):
            both[e] = weight[(1 << (n - 1 - a[e])) | (1 << (n - 1 - b[e]))] / total
