"""All configurations of many small cliques at once: exact, and the reference for all else.

Paper symbols: the sum over C' of eq. (posterior). Configuration z of a clique is a number whose
digits are the states of its nodes, node 0 the highest, so that integer order is table order. Where
every node has two states a kernel for bits does the same, up to six times as fast.
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
from spklink.posterior.inference.network import TIE, Network, Networks, States, alone

Floats = NDArray[np.float64]
NAME = "enumerate"
LIMIT = 12  # doublings; pieces up to here are never solved otherwise: nothing is quicker
LARGEST = 20  # bits, where it is asked for: a million configurations, 16 MB
WIDEST = 22.0  # doublings of several states: 64 MB
# Seconds x 1e9 on one core, a configuration: to weigh it, and a step of the sums over supersets;
# of several states to do all, and a clique.
OPERATIONS_STATE, OPERATIONS_BIT = 10.0, 1.0
OPERATIONS_WIDE, OPERATIONS_CALL = 18.0, 2e5
NEGLIGIBLE = 700.0  # nats below the best; exp would leave the range of normal numbers
ROUNDING = 1e-9  # of a sum of logarithms


@dataclass(frozen=True)
class Enumerated:
    """Exact results, flat in the order of the networks."""

    best: States  # (n,) the first of the most probable configurations, in table order
    zero: Floats  # (n,) P(z = 0)
    one: Floats  # P(z = s), like the fields
    both: Floats  # P(z_a = s, z_b = u), like the couplings
    log_sum: Floats  # (K,) log of the sum over all configurations
    best_value: Floats  # (K,) its largest term
    mirror_value: Floats  # (K,) of bits: the term of the best configuration with every bit turned
    entropy: Floats  # (K,) nats
    ties: NDArray[np.int64]  # (K,) configurations that share the maximum


class _Enumeration:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal | None:
        network, n = piece.network, len(piece)
        if network.binary and n > (LARGEST if piece.by_name else LIMIT):
            return None
        doublings = network.doublings
        why = f"{n} open conversations" if network.binary else f"2^{doublings:.1f} configurations"
        cost = enumerate_cost(doublings, binary=network.binary)
        return Proposal(cost, why, lambda: enumerate_one(network))


METHOD = _Enumeration()


def enumerate_cost(doublings: float, *, binary: bool) -> Cost:
    """Operations and bytes for a clique of 2^doublings configurations."""
    if doublings > (LARGEST if binary else WIDEST) + ROUNDING:
        return BEYOND
    each, call = OPERATIONS_WIDE, OPERATIONS_CALL
    if binary:
        each, call = OPERATIONS_STATE + OPERATIONS_BIT * doublings, 0.0
    return each * 2.0**doublings + call, 16.0 * 2.0**doublings


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
        zero=found.zero,
        ties=int(found.ties[0]),
    )


def enumerate_all(networks: Networks) -> Enumerated:
    """Many cliques of at most 2^WIDEST configurations each; edges sorted by (a, b) and distinct."""
    count, nodes = len(networks), len(networks.node)
    widest = float(networks.doublings().max(initial=0.0))
    if widest > WIDEST + ROUNDING:
        raise ValueError(f"2^{widest:.1f} configurations: at most 2^{WIDEST:.0f} are enumerated")
    result = Enumerated(
        best=np.zeros(nodes, np.int8 if networks.binary else np.int64),
        zero=np.zeros(nodes),
        one=np.zeros(len(networks.field)),
        both=np.zeros(len(networks.coupling)),
        log_sum=np.zeros(count),
        best_value=np.zeros(count),
        mirror_value=np.full(count, np.nan),
        entropy=np.zeros(count),
        ties=np.zeros(count, np.int64),
    )
    if networks.binary:
        _enumerate_bits(
            (networks.node_start, networks.edge_start, networks.a, networks.b),
            (networks.field, networks.coupling, networks.constant),
            (result.best, result.one, result.both),
            (result.log_sum, result.best_value, result.mirror_value, result.entropy, result.ties),
            round(widest),
        )
        np.subtract(1.0, result.one, out=result.zero)
        return result
    _enumerate(
        (networks.node_start, networks.edge_start, networks.start, networks.cell_start),
        (networks.size, networks.a, networks.b),
        (networks.field, networks.coupling, networks.constant),
        (result.best, result.zero, result.one, result.both),
        (result.log_sum, result.best_value, result.entropy, result.ties),
        np.empty((2, round(2.0**widest))),
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
def _enumerate_bits(graph, terms, states, figures, widest):  # type: ignore[no-untyped-def]
    node_start, edge_start, a, b = graph
    field, coupling, constant = terms
    best, one, both = states
    log_sum, best_value, mirror_value, entropy, ties = figures
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


@nb.njit(cache=True, nogil=True)
def _enumerate(places, graph, terms, states, figures, room):  # type: ignore[no-untyped-def]
    node_start, edge_start, start, cell_start = places
    size, a, b = graph
    field, coupling, constant = terms
    best, zero, one, both = states
    log_sum, best_value, entropy, ties = figures
    for k in range(len(constant)):
        t0, t1, e0, e1 = node_start[k], node_start[k + 1], edge_start[k], edge_start[k + 1]
        own, at = size[t0:t1], start[t0 : t1 + 1]
        edges = (a[e0:e1], b[e0:e1], cell_start[e0 : e1 + 1])
        count = _fill(own, at, edges, field, coupling, constant[k], room[0], room[1])
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
        _sum_out(own, at, edges, value, room[1], 1.0 / total, zero[t0:t1], one, both)


@nb.njit(cache=True, nogil=True)
def _fill(size, start, edges, field, coupling, constant, value, growth):  # type: ignore[no-untyped-def]
    """value[z] of every configuration, from the last node to the first: two additions each.

    Returns their number.
    """
    a, b, cell_start = edges
    n, count, e1 = len(size), 1, len(a)
    value[0] = constant
    for t in range(n - 1, -1, -1):
        e0 = e1
        while e0 > 0 and a[e0 - 1] == t:
            e0 -= 1
        for s in range(1, size[t]):
            growth[0], m, e = field[start[t] + s - 1], 1, e1 - 1
            for u in range(n - 1, t, -1):  # edges are sorted by (a, b)
                tied = e >= e0 and b[e] == u
                place = cell_start[e] + (s - 1) * (size[u] - 1) if tied else -1
                m = _grow(growth, m, size[u], coupling, place)
                e -= tied
            for z in range(count):
                value[s * count + z] = value[z] + growth[z]
        count *= size[t]
        e1 = e0
    return count


@nb.njit(cache=True, nogil=True)
def _sum_out(  # type: ignore[no-untyped-def]
    size, start, edges, weight, part, scale, zero, one, both
):
    """Marginals of all nodes and edges: the first node is summed out, then the next, …

    `weight` is used up.
    """
    a, b, cell_start = edges
    count, e0 = len(weight), 0
    for t in range(len(size)):
        rest, e1 = count // size[t], e0
        while e1 < len(a) and a[e1] == t:
            e1 += 1
        for s in range(1, size[t] if e1 > e0 else 1):
            part[:rest] = weight[s * rest : (s + 1) * rest]
            m, e = rest, e0
            for u in range(t + 1, b[e1 - 1] + 1):
                tied = b[e] == u
                place = cell_start[e] + (s - 1) * (size[u] - 1) if tied else -1
                m = _fold(part, m, size[u], both, place, scale)
                e += tied
        zero[t] = scale * _total(weight, 0, rest)
        count = _fold(weight, count, size[t], one, start[t], scale)
        e0 = e1


@nb.njit(cache=True, nogil=True)
def _grow(table, count, width, terms, place):  # type: ignore[no-untyped-def]
    """A new highest digit: table[r * count + z] = table[z] + its term. Returns the new count.

    The terms of its states but the first begin at `place`; -1 stands for none.
    """
    for r in range(1, width):
        term = terms[place + r - 1] if place >= 0 else 0.0
        for z in range(count):
            table[r * count + z] = table[z] + term
    return count * width


@nb.njit(cache=True, nogil=True)
def _fold(table, count, width, out, place, scale):  # type: ignore[no-untyped-def]
    """Sums out the highest digit; out is given the total of each of its states times scale."""
    count //= width
    for r in range(1, width):
        if place >= 0:
            out[place + r - 1] = scale * _total(table, r * count, count)
        for z in range(count):
            table[z] += table[r * count + z]
    return count


@nb.njit(cache=True, nogil=True)
def _total(table, first, count):  # type: ignore[no-untyped-def]
    """Four sums side by side: one would wait for each addition to end."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    last = first + count
    whole = last - count % 4
    for z in range(first, whole, 4):
        p += table[z]
        q += table[z + 1]
        r += table[z + 2]
        s += table[z + 3]
    for z in range(whole, last):
        p += table[z]
    return (p + q) + (r + s)
