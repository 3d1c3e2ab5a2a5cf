"""The problem that every inference method solves: pairwise networks, one a clique.

Node t has size[t] states. Terms are counted from state 0 of every node, which adds nothing:

    log p(z) = constant + sum_t field_t[z_t] + sum_e coupling_e[z_a(e), z_b(e)]   (unnormalised)

where field_t[0], and coupling_e where either state is 0, are 0 and not stored. So where every node
has two states (`binary`: each conversation of two certain people on two tracks), a bit x = z stands
for a node, and field and coupling have one entry a node and one an edge.

Nodes are the conversations that are still open; known ones have been folded into the fields. Index
conventions: nodes of a clique are consecutive, in table order; a < b count from 0 within the
clique. Entry start[t] + s - 1 of `field` (and of whatever else has one entry a state) is state s of
node t; the cells of edge e begin at cell_start[e] and stand row by row, a row a state of a. A slot
is an edge seen from one of its ends; those of node i are start[i]:start[i + 1], in table order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL, ranges, sums
from spklink.posterior.likelihood import Model

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
States = NDArray[Any]  # integers of any width
# Log-probabilities closer than this are equal: far above the rounding errors of sums of ordinary
# scores (some 1e-12), far below any difference that scores with six digits can mean.
TIE = EQUAL
TWO = 2


def _not_given() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Network:
    """One clique of n nodes and E edges."""

    field: Floats  # (n,) if binary, else an entry for every state but the first
    a: NDArray[np.int32]  # (E,)
    b: NDArray[np.int32]  # (E,)
    coupling: Floats  # (E,) if binary, else an entry for every two states but the first
    constant: float
    size: Ints = dataclasses.field(default_factory=_not_given)  # (n,) states; two if not given

    def __post_init__(self) -> None:
        if len(self.size) == 0:
            object.__setattr__(self, "size", np.full(len(self.field), TWO, np.int64))

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def binary(self) -> bool:
        """Whether every node has two states: the methods for bits apply."""
        return bool((self.size == TWO).all())

    @cached_property
    def start(self) -> Ints:
        """(n+1,) where the entries of each node begin."""
        return starts(self.size - 1)

    @cached_property
    def cell_start(self) -> Ints:
        """(E+1,) where the cells of each edge begin."""
        return starts((self.size[self.a] - 1) * (self.size[self.b] - 1))

    @cached_property
    def ends(self) -> tuple[States, States]:
        """For each cell, the entries of its state of a and of its state of b."""
        if self.binary:
            return self.a, self.b
        count, columns = np.diff(self.cell_start), self.size[self.b] - 1
        place = ranges(np.zeros(len(count), np.int64), count)
        row, column = np.divmod(place, np.repeat(columns, count))
        row += np.repeat(self.start[self.a], count)
        column += np.repeat(self.start[self.b], count)
        return row, column

    @property
    def doublings(self) -> float:
        """log2 of the number of configurations."""
        return float(np.log2(self.size).sum())

    def tied(self) -> NDArray[np.bool_]:
        """(E,) edges that couple at all."""
        if self.binary:
            return np.asarray(self.coupling != 0.0)
        edge = np.repeat(np.arange(len(self.a)), np.diff(self.cell_start))
        return sums(edge, self.coupling != 0.0, len(self.a)) > 0.0

    def at(self, z: States) -> Floats:
        """1 for the entries of the states of configuration z, 0 for all others."""
        if self.binary:
            return np.asarray(z, np.float64)
        on = np.zeros(len(self.field))
        there = np.flatnonzero(z)
        on[self.start[there] + z[there] - 1] = 1.0
        return on

    def value(self, z: States) -> float:
        """Unnormalised log-probability of one configuration."""
        on, (row, column) = self.at(z), self.ends
        return float(self.constant + self.field @ on + self.coupling @ (on[row] * on[column]))

    def check(self) -> None:
        """Refuse edges that stand otherwise than enumeration of several states relies on."""
        if self.binary:
            return
        key = self.a.astype(np.int64) * len(self) + self.b
        if not ((self.a < self.b).all() and (np.diff(key) > 0).all()):
            raise ValueError("edges must have a < b, be sorted by (a, b) and distinct")


def gauged(
    size: Ints, unary: Floats, a: States, b: States, table: Floats
) -> tuple[Network, Floats]:
    """The network of terms and tables of all states, and what each node adds in state 0 (n,).

    `unary` has the states of each node one after the other, `table` those of edges row by row.
    What a table adds where both ends are in state 0 counts for its node a.
    """
    a, b = a.astype(np.int32), b.astype(np.int32)
    first, edge = starts(size), starts(size[a] * size[b])
    base = unary[first[:-1]]
    kept = np.ones(len(unary), np.bool_)
    kept[first[:-1]] = False
    blank = Network(
        field=(unary - np.repeat(base, size))[kept],
        a=a,
        b=b,
        coupling=np.zeros(int(((size[a] - 1) * (size[b] - 1)).sum())),
        constant=0.0,
        size=size,
    )
    ends = blank.size, blank.start, blank.a, blank.b, blank.cell_start
    _gauge(*ends, edge, table, base, blank.field, blank.coupling)
    return blank, base


@nb.njit(cache=True, nogil=True)
def _gauge(  # type: ignore[no-untyped-def]
    size, start, a, b, cell_start, edge, table, base, field, coupling
):
    for e in range(len(a)):
        rows, columns, t0, cell = size[a[e]], size[b[e]], edge[e], cell_start[e]
        base[a[e]] += table[t0]
        for c in range(1, columns):
            field[start[b[e]] + c - 1] += table[t0 + c] - table[t0]
        for r in range(1, rows):
            row = t0 + r * columns
            field[start[a[e]] + r - 1] += table[row] - table[t0]
            for c in range(1, columns):
                coupling[cell] = (table[row + c] - table[row]) - (table[t0 + c] - table[t0])
                cell += 1


def marginals(network: Network, zero: Floats, one: Floats) -> Floats:
    """The probabilities of all states, node by node, from those of state 0 and of the others."""
    full = np.empty(len(one) + len(zero))
    first = starts(network.size)[:-1]
    rest = np.ones(len(full), np.bool_)
    rest[first] = False
    full[first], full[rest] = zero, one
    return full


def joints(network: Network, zero: Floats, one: Floats, both: Floats) -> Floats:
    """The probabilities of all pairs of states, edge by edge and row by row."""
    size, a, b = network.size, network.a, network.b
    edge = starts(size[a] * size[b])
    full = np.empty(int(edge[-1]))
    _join(size, network.start, a, b, network.cell_start, edge, zero, one, both, full)
    return full


@nb.njit(cache=True, nogil=True)
def _join(  # type: ignore[no-untyped-def]
    size, start, a, b, cell_start, edge, zero, one, both, full
):
    for e in range(len(a)):
        rows, columns, t0, cell = size[a[e]], size[b[e]], edge[e], cell_start[e]
        corner = zero[a[e]]
        for c in range(1, columns):
            full[t0 + c] = one[start[b[e]] + c - 1]
        for r in range(1, rows):
            left = one[start[a[e]] + r - 1]
            for c in range(1, columns):
                full[t0 + r * columns + c] = both[cell]
                full[t0 + c] -= both[cell]
                left -= both[cell]
                cell += 1
            full[t0 + r * columns] = max(left, 0.0)
        for c in range(1, columns):
            full[t0 + c] = max(full[t0 + c], 0.0)
            corner -= full[t0 + c]
        full[t0] = max(corner, 0.0)


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
    size: Ints = dataclasses.field(default_factory=_not_given)  # (n,) states; two if not given

    def __post_init__(self) -> None:
        if len(self.size) == 0:
            object.__setattr__(self, "size", np.full(len(self.node), TWO, np.int64))

    def __len__(self) -> int:
        return len(self.constant)

    def sizes(self) -> Ints:
        """(K,) nodes of each."""
        return np.diff(self.node_start)

    @cached_property
    def binary(self) -> bool:
        return bool((self.size == TWO).all())

    @cached_property
    def start(self) -> Ints:
        """(n+1,) where the entries of each node begin."""
        return starts(self.size - 1)

    @cached_property
    def cell_start(self) -> Ints:
        """(E+1,) where the cells of each edge begin."""
        first = np.repeat(self.node_start[:-1], np.diff(self.edge_start))
        return starts((self.size[first + self.a] - 1) * (self.size[first + self.b] - 1))

    def doublings(self) -> Floats:
        """(K,) log2 of the number of configurations of each."""
        if self.binary:
            return self.sizes().astype(np.float64)
        label = np.repeat(np.arange(len(self)), self.sizes())
        return sums(label, np.log2(self.size), len(self))

    def one(self, k: int) -> Network:
        t0, t1, e0, e1 = *self.node_start[k : k + 2], *self.edge_start[k : k + 2]
        return Network(
            field=self.field[self.start[t0] : self.start[t1]],
            a=self.a[e0:e1],
            b=self.b[e0:e1],
            coupling=self.coupling[self.cell_start[e0] : self.cell_start[e1]],
            constant=float(self.constant[k]),
            size=self.size[t0:t1],
        )

    def entries(self, nodes: Ints) -> Ints:
        """Where the entries of some nodes stand."""
        return nodes if self.binary else ranges(self.start[nodes], self.size[nodes] - 1)

    def cells(self, edges: Ints) -> Ints:
        """Where the cells of some edges stand."""
        if self.binary:
            return edges
        return ranges(self.cell_start[edges], np.diff(self.cell_start)[edges])


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
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


def _starts(label: NDArray[np.int32], count: int) -> Ints:
    return starts(np.bincount(label, minlength=count))


def slots_of(network: Network, *, uncoupled: bool = False) -> Slots:
    """Both ends of every edge that couples at all, or of all edges."""
    edge = np.arange(len(network.a)) if uncoupled else np.flatnonzero(network.tied())
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


def fix(network: Network, states: States) -> tuple[Network, Ints]:
    """The problem of the nodes of state -1 when the others are fixed, and the edges it keeps."""
    free, known = states < 0, np.maximum(states, 0)
    on, (row, column), entries = network.at(known), network.ends, len(network.field)
    within = (np.cumsum(free) - 1).astype(np.int32)
    pull = sums(row, network.coupling * on[column], entries)
    pull += sums(column, network.coupling * on[row], entries)
    between = free[network.a] & free[network.b]
    kept, cells, own = np.flatnonzero(between), between, free
    if not network.binary:
        cells = np.repeat(between, np.diff(network.cell_start))
        own = np.repeat(free, network.size - 1)
    return (
        Network(
            field=(network.field + pull)[own],
            a=within[network.a[kept]],
            b=within[network.b[kept]],
            coupling=network.coupling[cells],
            constant=network.value(known),
            size=network.size[free],
        ),
        kept,
    )


def restrict(network: Network, kept: NDArray[np.bool_]) -> Network:
    """The network of state 0 and some of the others of every node; `kept` is like `field`."""
    row, column = network.ends
    node = np.repeat(np.arange(len(network)), network.size - 1)
    return replace(
        network,
        size=1 + np.bincount(node, kept, len(network)).astype(np.int64),
        field=network.field[kept],
        coupling=network.coupling[kept[row] & kept[column]],
    )


def split(network: Network) -> Networks:
    """Connected pieces, smallest node first; edges of no coupling do not connect.

    `node` and `edge` are places in `network`. Its constant is left out.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n, tied = len(network), np.flatnonzero(network.tied())
    ends = (network.a[tied], network.b[tied])
    graph = coo_matrix((np.ones(len(tied), np.int8), ends), shape=(n, n))
    count, label = connected_components(graph, directed=False) if n else (0, np.zeros(0, np.int32))
    node = np.argsort(label, kind="stable")
    node_start = _starts(label[node], count)
    within = np.empty(n, np.int32)
    within[node] = np.arange(n) - node_start[label[node]]
    edge = np.flatnonzero(label[network.a] == label[network.b])
    edge = edge[np.argsort(label[network.a[edge]], kind="stable")]
    whole = alone(network)
    return Networks(
        node=node,
        node_start=node_start,
        edge=edge,
        edge_start=_starts(label[network.a[edge]], count),
        a=within[network.a[edge]],
        b=within[network.b[edge]],
        field=network.field[whole.entries(node)],
        coupling=network.coupling[whole.cells(edge)],
        constant=np.zeros(count),
        bits=np.full(n, -1, np.int8),
        size=network.size[node],
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
        field=networks.field[networks.entries(nodes)],
        coupling=networks.coupling[networks.cells(edges)],
        constant=networks.constant[chosen],
        bits=networks.bits,
        size=networks.size[nodes],
    )


def beside(networks: Sequence[Network]) -> Networks:
    """Any networks as one collection, numbered in their order."""
    nodes = starts(np.array([len(one) for one in networks], np.int64))
    edges = starts(np.array([len(one.a) for one in networks], np.int64))
    ends = np.zeros(0, np.int32)
    empty = Network(np.zeros(0), ends, ends, np.zeros(0), 0.0)  # so that there is always something
    field, a, b, coupling, size = (
        np.concatenate([getattr(one, name) for one in (empty, *networks)])
        for name in ("field", "a", "b", "coupling", "size")
    )
    return Networks(
        node=np.arange(nodes[-1]),
        node_start=nodes,
        edge=np.arange(edges[-1]),
        edge_start=edges,
        a=a,
        b=b,
        field=field,
        coupling=coupling,
        constant=np.array([one.constant for one in networks], np.float64),
        bits=np.full(nodes[-1], -1, np.int8),
        size=size,
    )


def alone(network: Network) -> Networks:
    """One clique as a collection of one."""
    n, edges = len(network), len(network.a)
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
        size=network.size,
    )
