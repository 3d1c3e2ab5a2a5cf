"""The problem that every inference method solves: independent pairwise binary models, one a clique.

    log p(x) = constant + sum_t field[t] x[t] + sum_e coupling[e] x[a[e]] x[b[e]]   (unnormalised)

Nodes are the conversations whose channels are still open; known ones have been folded into the
fields. Index conventions: nodes of a clique are consecutive, in table order; a < b count from 0
within the clique.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.likelihood import Model

Floats = NDArray[np.float64]


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
class Networks:
    """All cliques of a database, side by side in flat arrays."""

    node: NDArray[np.int64]  # (n,) conversation of each node
    node_start: NDArray[np.int64]  # (K+1,)
    edge: NDArray[np.int64]  # (E,) pair of the model of each edge
    edge_start: NDArray[np.int64]  # (K+1,)
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    field: Floats
    coupling: Floats
    constant: Floats  # (K,)
    bits: NDArray[np.int8]  # (M,) 0 or 1 where the channels are known, -1 for the nodes

    def __len__(self) -> int:
        return len(self.constant)

    def sizes(self) -> NDArray[np.int64]:
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


def _starts(label: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
