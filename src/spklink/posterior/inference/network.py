"""The problem that every inference method solves: independent pairwise binary models, one a clique.

    log p(x) = constant + sum_t field[t] x[t] + sum_e coupling[e] x[a[e]] x[b[e]]   (unnormalised)

Nodes are the conversations whose channels are still open; known ones have been folded into the
fields. Index conventions: nodes of a clique are consecutive, in table order; a < b count from 0
within the clique. A slot is an edge seen from one of its ends; those of node i are
start[i]:start[i + 1], in table order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL, ranges, sums
from spklink.posterior.likelihood import Model

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Log-probabilities closer than this are equal: far above the rounding errors of sums of ordinary
# scores (some 1e-12), far below any difference that scores with six digits can mean.
TIE = EQUAL


@dataclass(frozen=True)
class Network:
    """One clique."""

    field: Floats  # (n,)
    a: NDArray[np.int32]  # (E,)
    b: NDArray[np.int32]  # (E,)
    coupling: Floats  # (E,)
    constant: float

    def __len__(self) -> int:
        return len(self.field)

    def value(self, x: NDArray[np.int8]) -> float:
        """Unnormalised log-probability of one configuration."""
        both = x[self.a] * x[self.b]
        return float(self.constant + self.field @ x + self.coupling @ both)


@dataclass(frozen=True)
class Slots:
    """The edges of a network from both ends, node by node."""

    start: Ints  # (n+1,)
    node: Ints  # (2E,) near end
    other: Ints  # (2E,) far end
    edge: Ints  # (2E,) index of the undirected edge
    mirror: Ints  # (2E,) slot of the same edge at its far end

    def sums(self, values: Floats) -> Floats:
        """(n,) sums of a value a slot."""
        return sums(self.node, values, len(self.start) - 1)


@dataclass(frozen=True)
class Networks:
    """All cliques of a database, side by side in flat arrays."""

    node: Ints  # (n,) conversation of each node
    node_start: Ints  # (K+1,)
    edge: Ints  # (E,) pair of the model of each edge
    edge_start: Ints  # (K+1,)
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    field: Floats
    coupling: Floats
    constant: Floats  # (K,)
    bits: NDArray[np.int8]  # (M,) 0 or 1 where the channels are known, -1 for the nodes

    def __len__(self) -> int:
        return len(self.constant)

    def sizes(self) -> Ints:
        return np.diff(self.node_start)

    def one(self, k: int) -> Network:
        nodes = slice(self.node_start[k], self.node_start[k + 1])
        edges = slice(self.edge_start[k], self.edge_start[k + 1])
        return Network(
            field=self.field[nodes],
            a=self.a[edges],
            b=self.b[edges],
            coupling=self.coupling[edges],
            constant=float(self.constant[k]),
        )


def condition(model: Model, bits: NDArray[np.int8] | None = None) -> Networks:
    """The problem left when the prior's certain channels and those of `bits` (≥ 0) are fixed."""
    known = model.prior.clamped if bits is None else np.where(bits >= 0, bits, model.prior.clamped)
    x = np.maximum(known, 0).astype(np.float64)
    label, count = model.cliques.label, len(model.cliques)
    field = model.field + model.prior.log_odds
    i, j = model.first, model.second
    open_i, open_j = known[i] < 0, known[j] < 0
    # A pair with one known end acts as a field on the other; with two, as a constant.
    half_i, half_j, none = open_i & ~open_j, ~open_i & open_j, ~open_i & ~open_j
    constant = model.constant + _prior_constant(model)
    constant += sums(label, field * x, count)
    constant += sums(label[i[none]], model.coupling[none] * x[i[none]] * x[j[none]], count)
    field = field + sums(i[half_i], model.coupling[half_i] * x[j[half_i]], len(field))
    field = field + sums(j[half_j], model.coupling[half_j] * x[i[half_j]], len(field))
    node = model.cliques.order[known[model.cliques.order] < 0]
    node_start = _starts(label[node], count)
    within = np.zeros(len(label), np.int32)
    within[node] = np.arange(len(node)) - node_start[label[node]]
    edge = np.flatnonzero(open_i & open_j)
    edge = edge[np.argsort(label[i[edge]], kind="stable")]
    return Networks(
        node=node,
        node_start=node_start,
        edge=edge,
        edge_start=_starts(label[i[edge]], count),
        a=within[i[edge]],
        b=within[j[edge]],
        field=field[node],
        coupling=model.coupling[edge],
        constant=constant,
        bits=known.astype(np.int8),
    )


def _prior_constant(model: Model) -> Floats:
    """Log prior of "all as listed", a clique at a time."""
    as_listed = np.where(model.prior.clamped < 0, -np.logaddexp(0.0, model.prior.log_odds), 0.0)
    return sums(model.cliques.label, as_listed, len(model.cliques))


def starts(sizes: Ints) -> Ints:
    """(k+1,) where each of k runs of these sizes begins, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _starts(label: NDArray[np.int32], count: int) -> Ints:
    return starts(np.bincount(label, minlength=count))


def slots_of(network: Network, *, uncoupled: bool = False) -> Slots:
    """Both ends of every edge that couples at all, or of all edges."""
    count = len(network.coupling)
    edge = np.arange(count) if uncoupled else np.flatnonzero(network.coupling)
    n, edges = len(network), len(edge)
    near = np.concatenate([network.a[edge], network.b[edge]])
    far = np.concatenate([network.b[edge], network.a[edge]])
    order = np.argsort(near, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(2 * edges)
    return Slots(
        start=starts(np.bincount(near, minlength=n)),
        node=near[order].astype(np.int64),
        other=far[order].astype(np.int64),
        edge=edge[order % max(edges, 1)],
        mirror=place[(order + edges) % max(2 * edges, 1)],
    )


def fix(network: Network, bits: NDArray[np.int8]) -> tuple[Network, Ints]:
    """The problem of the nodes of bit -1 when the others are fixed, and the edges it keeps."""
    free = bits < 0
    x = np.maximum(bits, 0).astype(np.float64)
    within = (np.cumsum(free) - 1).astype(np.int32)
    a, b, n = network.a, network.b, len(network)
    pull = sums(a, network.coupling * x[b], n) + sums(b, network.coupling * x[a], n)
    kept = np.flatnonzero(free[a] & free[b])
    return (
        Network(
            field=(network.field + pull)[free],
            a=within[a[kept]],
            b=within[b[kept]],
            coupling=network.coupling[kept],
            constant=network.value(np.maximum(bits, 0)),
        ),
        kept,
    )


def split(network: Network) -> Networks:
    """Connected pieces, smallest node first; edges of no coupling do not connect.

    `node` and `edge` are places in `network`. Its constant is left out.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n, tied = len(network), np.flatnonzero(network.coupling)
    ends = (network.a[tied], network.b[tied])
    graph = coo_matrix((np.ones(len(tied), np.int8), ends), shape=(n, n))
    count, label = connected_components(graph, directed=False) if n else (0, np.zeros(0, np.int32))
    node = np.argsort(label, kind="stable")
    node_start = _starts(label[node], count)
    within = np.empty(n, np.int32)
    within[node] = np.arange(n) - node_start[label[node]]
    edge = np.flatnonzero(label[network.a] == label[network.b])
    edge = edge[np.argsort(label[network.a[edge]], kind="stable")]
    return Networks(
        node=node,
        node_start=node_start,
        edge=edge,
        edge_start=_starts(label[network.a[edge]], count),
        a=within[network.a[edge]],
        b=within[network.b[edge]],
        field=network.field[node],
        coupling=network.coupling[edge],
        constant=np.zeros(count),
        bits=np.full(n, -1, np.int8),
    )


def take(networks: Networks, chosen: Ints) -> Networks:
    """Some of the cliques, in the order given."""
    nodes = ranges(networks.node_start[chosen], networks.sizes()[chosen])
    count = np.diff(networks.edge_start)[chosen]
    edges = ranges(networks.edge_start[chosen], count)
    return Networks(
        node=networks.node[nodes],
        node_start=starts(networks.sizes()[chosen]),
        edge=networks.edge[edges],
        edge_start=starts(count),
        a=networks.a[edges],
        b=networks.b[edges],
        field=networks.field[nodes],
        coupling=networks.coupling[edges],
        constant=networks.constant[chosen],
        bits=networks.bits,
    )


def alone(network: Network) -> Networks:
    """One clique as a collection of one."""
    n, edges = len(network), len(network.coupling)
    return Networks(
        node=np.arange(n),
        node_start=np.array([0, n]),
        edge=np.arange(edges),
        edge_start=np.array([0, edges]),
        a=network.a,
        b=network.b,
        field=network.field,
        coupling=network.coupling,
        constant=np.array([network.constant]),
        bits=np.full(n, -1, np.int8),
    )
