"""Pairwise networks whose nodes have several states: the problem of the exact methods of this room.

    log p(z) = constant + sum_t unary_t[z_t] + sum_e table_e[z_a(e), z_b(e)]   (unnormalised)

Index conventions: the states of a node are consecutive in `unary`, nodes in order; those of node t
are start[t]:start[t + 1]. A table stands row by row, edges in order, a row a state of a; that of
edge e is table_start[e]:table_start[e + 1]. Edges have a < b, are sorted by (a, b) and distinct.
Everything is finite: a state that cannot be is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges, sums
from spklink.posterior.inference import network as two_states
from spklink.posterior.inference.network import Network, starts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StateNetwork:
    """One clique."""

    size: Ints  # (n,) states of each node, at least 1
    unary: Floats
    a: Ints  # (E,)
    b: Ints  # (E,)
    table: Floats
    constant: float

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def start(self) -> Ints:
        """(n+1,) where the states of each node begin."""
        return starts(self.size)

    @cached_property
    def table_start(self) -> Ints:
        """(E+1,) where the table of each edge begins."""
        return starts(self.size[self.a] * self.size[self.b])

    def check(self) -> None:
        """Refuse edges that stand otherwise than all methods rely on."""
        key = self.a * len(self) + self.b
        if not ((self.a < self.b).all() and (np.diff(key) > 0).all()):
            raise ValueError("edges must have a < b, be sorted by (a, b) and distinct")

    @property
    def bits(self) -> float:
        """log2 of the number of configurations."""
        return float(np.log2(self.size).sum())

    def cell(self, z: Ints) -> Ints:
        """(E,) the table entry of each edge in configuration z."""
        return self.table_start[:-1] + z[self.a] * self.size[self.b] + z[self.b]

    def value(self, z: Ints) -> float:
        """Unnormalised log-probability of one configuration."""
        own, shared = self.unary[self.start[:-1] + z], self.table[self.cell(z)]
        return float(self.constant + own.sum() + shared.sum())

    def ends(self) -> tuple[Ints, Ints]:
        """For each table entry, where in `unary` its state of a stands, and where that of b."""
        columns = self.size[self.b]
        count = self.size[self.a] * columns
        place = ranges(np.zeros(len(count), np.int64), count)
        row, column = np.divmod(place, np.repeat(columns, count))
        row += np.repeat(self.start[self.a], count)
        column += np.repeat(self.start[self.b], count)
        return row, column

    def graph(self) -> Network:
        """Who is tied to whom, as a network of bits: what is known about graphs serves both."""
        tied = np.zeros(len(self.a))
        if len(self.a):
            tied += np.logical_or.reduceat(self.table != 0.0, self.table_start[:-1])
        return Network(
            np.zeros(len(self)), self.a.astype(np.int32), self.b.astype(np.int32), tied, 0.0
        )


@dataclass(frozen=True)
class StateNetworks:
    """Many cliques side by side in flat arrays; a < b count from 0 within the clique."""

    node: Ints  # (n,) place of each node in what the cliques came from
    node_start: Ints  # (K+1,)
    edge: Ints  # (E,) likewise of each edge
    edge_start: Ints  # (K+1,)
    size: Ints
    unary: Floats
    a: Ints
    b: Ints
    table: Floats
    constant: Floats  # (K,)

    def __len__(self) -> int:
        return len(self.constant)

    @cached_property
    def start(self) -> Ints:
        """(n+1,) where the states of each node begin."""
        return starts(self.size)

    @cached_property
    def table_start(self) -> Ints:
        """(E+1,) where the table of each edge begins."""
        first = np.repeat(self.node_start[:-1], np.diff(self.edge_start))
        return starts(self.size[first + self.a] * self.size[first + self.b])

    def bits(self) -> Floats:
        """(K,) log2 of the number of configurations of each."""
        label = np.repeat(np.arange(len(self)), np.diff(self.node_start))
        return sums(label, np.log2(self.size), len(self))

    def one(self, k: int) -> StateNetwork:
        t0, t1, e0, e1 = *self.node_start[k : k + 2], *self.edge_start[k : k + 2]
        return StateNetwork(
            size=self.size[t0:t1],
            unary=self.unary[self.start[t0] : self.start[t1]],
            a=self.a[e0:e1],
            b=self.b[e0:e1],
            table=self.table[self.table_start[e0] : self.table_start[e1]],
            constant=float(self.constant[k]),
        )


def beside(networks: Sequence[StateNetwork]) -> StateNetworks:
    """Any networks as one collection, numbered in their order."""
    nodes = starts(np.array([len(one) for one in networks], np.int64))
    edges = starts(np.array([len(one.a) for one in networks], np.int64))
    empty = StateNetwork(*_nothing(), constant=0.0)  # so that there is always something to join
    size, unary, a, b, table = (
        np.concatenate([getattr(one, name) for one in (empty, *networks)])
        for name in ("size", "unary", "a", "b", "table")
    )
    return StateNetworks(
        node=np.arange(nodes[-1]),
        node_start=nodes,
        edge=np.arange(edges[-1]),
        edge_start=edges,
        size=size,
        unary=unary,
        a=a,
        b=b,
        table=table,
        constant=np.array([one.constant for one in networks], np.float64),
    )


def _nothing() -> tuple[Ints, Floats, Ints, Ints, Floats]:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return none, nothing, none, none, nothing


def take(networks: StateNetworks, chosen: Ints) -> StateNetworks:
    """Some of the cliques, in the order given."""
    nodes_of, edges_of = np.diff(networks.node_start)[chosen], np.diff(networks.edge_start)[chosen]
    nodes = ranges(networks.node_start[chosen], nodes_of)
    edges = ranges(networks.edge_start[chosen], edges_of)
    return StateNetworks(
        node=networks.node[nodes],
        node_start=starts(nodes_of),
        edge=networks.edge[edges],
        edge_start=starts(edges_of),
        size=networks.size[nodes],
        unary=_runs(networks.unary, networks.start, nodes),
        a=networks.a[edges],
        b=networks.b[edges],
        table=_runs(networks.table, networks.table_start, edges),
        constant=networks.constant[chosen],
    )


def split(network: StateNetwork) -> StateNetworks:
    """Connected pieces, smallest node first; tables that couple nothing do not connect.

    `node` and `edge` are places in `network`. Its constant is left out.
    """
    network = folded(network)
    pieces = two_states.split(network.graph())
    return StateNetworks(
        node=pieces.node,
        node_start=pieces.node_start,
        edge=pieces.edge,
        edge_start=pieces.edge_start,
        size=network.size[pieces.node],
        unary=_runs(network.unary, network.start, pieces.node),
        a=pieces.a.astype(np.int64),
        b=pieces.b.astype(np.int64),
        table=_runs(network.table, network.table_start, pieces.edge),
        constant=pieces.constant,
    )


def _runs(values: Floats, start: Ints, chosen: Ints) -> Floats:
    """Some of the runs that begin at `start`, in the order given."""
    return np.asarray(values[ranges(start[chosen], np.diff(start)[chosen])], np.float64)


def folded(network: StateNetwork) -> StateNetwork:
    """The same network in which a table that couples nothing (row + column) has become zero.

    That of a node of one state is such a table.
    """
    return _turned(network, np.zeros(len(network), np.int64), uncoupled=True)


def turned(network: StateNetwork, z: Ints) -> StateNetwork:
    """The same network counted in changes from z: terms in which z takes part are 0.

    unary_t[s] is what changing node t alone to s would add, and the constant is 0.
    """
    own = network.unary - np.repeat(network.unary[network.start[:-1] + z], network.size)
    return _turned(replace(network, unary=own, constant=0.0), z, uncoupled=False)


def _turned(network: StateNetwork, z: Ints, *, uncoupled: bool) -> StateNetwork:
    unary, table = network.unary.copy(), network.table.copy()
    graph = network.size, network.a, network.b, network.start, network.table_start
    _turn(*graph, network.table, z, uncoupled, unary, table)
    return replace(network, unary=unary, table=table)


@nb.njit(cache=True, nogil=True)
def _turn(  # type: ignore[no-untyped-def]
    size, a, b, start, table_start, table, z, uncoupled, unary, out
):
    """Row and column of z become unary terms, less the value of z; `out` is what is left.

    With `uncoupled` only those tables of which nothing is left; they keep the value of z.
    """
    for e in range(len(a)):
        rows, columns, first = size[a[e]], size[b[e]], table_start[e]
        row, column = first + z[a[e]] * columns, first + z[b[e]]
        shared, coupled = table[row + z[b[e]]], False
        for r in range(rows):
            for c in range(columns):
                cell = first + r * columns + c
                below = table[column + r * columns]
                out[cell] = (table[cell] - below) - (table[row + c] - shared)
                coupled = coupled or out[cell] != 0.0
        if uncoupled and coupled:
            out[first : first + rows * columns] = table[first : first + rows * columns]
            continue
        for r in range(rows):
            unary[start[a[e]] + r] += table[column + r * columns] - (0.0 if uncoupled else shared)
        for c in range(columns):
            unary[start[b[e]] + c] += table[row + c] - shared


def restrict(network: StateNetwork, kept: NDArray[np.bool_]) -> StateNetwork:
    """The network of some of the states: `kept` is flat like `unary`, at least one a node."""
    row, column = network.ends()
    size = np.add.reduceat(kept, network.start[:-1]) if len(network) else network.size
    return replace(
        network,
        size=np.asarray(size, np.int64),
        unary=network.unary[kept],
        table=network.table[kept[row] & kept[column]],
    )


def fix(network: StateNetwork, states: Ints) -> tuple[StateNetwork, Ints]:
    """The problem of the nodes of state -1 when the others are fixed, and the edges it keeps."""
    free = states < 0
    only = np.ones(len(network.unary), np.bool_)
    held = np.repeat(~free, network.size)
    only[held] = False
    only[(network.start[:-1] + states)[~free]] = True
    # A held node has one state now: its tables are rows that belong to the other end.
    small = restrict(network, only)
    at_a, at_b = free[small.a] & ~free[small.b], ~free[small.a] & free[small.b]
    unary, width = small.unary.copy(), np.diff(small.table_start)
    for tied, end in ((at_a, small.a), (at_b, small.b)):
        cells = ranges(small.table_start[:-1][tied], width[tied])
        states_of = ranges(small.start[end[tied]], width[tied])
        unary += sums(states_of, small.table[cells], len(unary))
    within = np.cumsum(free) - 1
    kept = np.flatnonzero(free[small.a] & free[small.b])
    none = np.flatnonzero(~free[small.a] & ~free[small.b])
    constant = (
        small.unary[small.start[:-1][~free]].sum() + small.table[small.table_start[none]].sum()
    )
    return (
        StateNetwork(
            size=small.size[free],
            unary=unary[np.repeat(free, small.size)],
            a=within[small.a[kept]],
            b=within[small.b[kept]],
            table=_runs(small.table, small.table_start, kept),
            constant=float(network.constant + constant),
        ),
        kept,
    )
