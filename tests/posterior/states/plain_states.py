"""Random networks of several states a node, and a slow plain reference.

`Plain` has terms and tables of all states; `brute_force` reads them by itself and shares no code
with the package.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from spklink.posterior.inference.beliefs import Beliefs
from spklink.posterior.inference.network import Network, gauged, joints, marginals

CLOSE = 1e-9
MOST = 6000  # configurations that are enumerated in plain Python


@dataclass(frozen=True)
class Plain:
    """A pairwise network: terms of all states node by node, tables edge by edge, row by row."""

    size: np.ndarray
    unary: np.ndarray
    a: np.ndarray
    b: np.ndarray
    table: np.ndarray
    constant: float

    def __len__(self) -> int:
        return len(self.size)

    def network(self) -> Network:
        found, base = gauged(self.size, self.unary, self.a, self.b, self.table)
        return replace(found, constant=self.constant + float(base.sum()))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """For each table entry, where in `unary` its state of a stands, and where that of b."""
        size, at = self.size.tolist(), [0, *np.cumsum(self.size).tolist()]
        pairs = [
            (at[a] + s, at[b] + u)
            for a, b in zip(self.a.tolist(), self.b.tolist(), strict=True)
            for s in range(size[a])
            for u in range(size[b])
        ]
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]


def make(size, edges, unary, tables, constant=0.25) -> Plain:
    """A network as it is written down: a list a node, a list of rows an edge."""
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    flat = [np.ravel(tables[tuple(e)]) for e in pairs.tolist()]
    return Plain(
        size=np.array(size, np.int64),
        unary=np.concatenate([np.zeros(0), *(np.asarray(u, float) for u in unary)]),
        a=pairs[:, 0].copy(),
        b=pairs[:, 1].copy(),
        table=np.concatenate([np.zeros(0), *(t.astype(float) for t in flat)]),
        constant=constant,
    )


def random_network(size, edges, rng, scale=1.0, grid=False, silent=0.0) -> Plain:
    """Normal terms of this scale; on a grid of halves they tie; a share of tables is zero."""

    def terms(*shape):
        drawn = rng.normal(size=shape) * scale
        return np.round(2 * drawn / scale) / 2 if grid else drawn

    tables = {e: terms(size[e[0]], size[e[1]]) * (rng.random() >= silent) for e in sorted(edges)}
    return make(size, edges, [terms(s) for s in size], tables, float(rng.normal()))


@st.composite
def networks(draw, most=7, states=7) -> Plain:
    """Any graph: no nodes, single nodes, pieces, wild values, ties, zero tables."""
    size: list[int] = []
    for _ in range(draw(st.integers(0, most))):
        left = MOST // max(1, math.prod(size))
        size.append(draw(st.integers(1, max(1, min(states, left)))))
    possible = list(itertools.combinations(range(len(size)), 2))
    share = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = [e for e in possible if rng.random() < share]
    scale = draw(st.sampled_from([0.1, 1.0, 4.0, 50.0, 200.0]))
    grid, silent = draw(st.booleans()), draw(st.sampled_from([0.0, 0.0, 0.5, 1.0]))
    return random_network(size, edges, rng, scale, grid, silent)


def complete(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


def of_bits(net: Network) -> Plain:
    """A two-state network in the representation of several states."""
    n = len(net)
    edges = list(zip(net.a.tolist(), net.b.tolist(), strict=True))
    tables: dict[tuple[int, int], np.ndarray] = {}
    for (a, b), j in zip(edges, net.coupling, strict=True):
        tables[a, b] = tables.get((a, b), 0.0) + np.array([[0.0, 0.0], [0.0, j]])
    unary = [np.array([0.0, f]) for f in net.field]
    return make([2] * n, sorted(tables), unary, tables, net.constant)


def plain_value(net: Plain, z) -> float:
    size = net.size.tolist()
    begin = [sum(size[:t]) for t in range(len(size))]
    terms, at = [net.constant], 0
    for t, s in enumerate(z):
        terms.append(float(net.unary[begin[t] + s]))
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        terms.append(float(net.table[at + z[a] * size[b] + z[b]]))
        at += size[a] * size[b]
    return math.fsum(terms)


def brute_force(net: Plain) -> dict[str, object]:
    """All figures by plain enumeration."""
    size = net.size.tolist()
    every = list(itertools.product(*(range(s) for s in size)))
    values = [plain_value(net, z) for z in every]
    top = max(values)
    weights = [math.exp(v - top) for v in values]
    total = math.fsum(weights)
    marginal = [[0.0] * s for s in size]
    pair = [np.zeros((size[a], size[b])) for a, b in zip(net.a, net.b, strict=True)]
    for z, w in zip(every, weights, strict=True):
        for t, s in enumerate(z):
            marginal[t][s] += w / total
        for e, (a, b) in enumerate(zip(net.a.tolist(), net.b.tolist(), strict=True)):
            pair[e][z[a], z[b]] += w / total
    log_sum = top + math.log(total)
    surprise = math.fsum(w * (log_sum - v) for w, v in zip(weights, values, strict=True))
    return {
        "log_sum": log_sum,
        "marginal": list(itertools.chain.from_iterable(marginal)),
        "pair": np.concatenate([np.zeros(0), *(p.ravel() for p in pair)]),
        "entropy": surprise / total,
        "best_value": top,
        "best": [z for z, v in zip(every, values, strict=True) if v >= top - 1e-9],
    }


def states_of(net: Plain, got: Beliefs) -> np.ndarray:
    """The probabilities of all states, like `unary`."""
    return marginals(net.network(), got.zero, got.one)


def pairs_of(net: Plain, got: Beliefs) -> np.ndarray:
    """The joint probabilities of all pairs of states, like `table`."""
    return joints(net.network(), got.zero, got.one, got.both)


def check(net: Plain, got: Beliefs | None, want: dict[str, object]) -> None:
    """Every figure of an exact answer against the reference."""
    assert got is not None
    assert got.certainty == "exact"
    assert got.proved_optimal
    assert got.log_sum[0] == got.log_sum[1]
    scale = max(1.0, abs(want["log_sum"]))
    assert abs(got.log_sum[0] - want["log_sum"]) <= CLOSE * scale
    assert got.entropy[0] == got.entropy[1]
    assert abs(got.entropy[0] - want["entropy"]) <= CLOSE
    np.testing.assert_allclose(states_of(net, got), want["marginal"], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(pairs_of(net, got), want["pair"], rtol=0, atol=CLOSE)
    for name in ("one", "both"):
        figure = getattr(got, name)
        assert np.array_equal(figure, getattr(got, f"{name}_low"))
        assert np.array_equal(figure, getattr(got, f"{name}_high"))
    assert tuple(got.best.tolist()) in set(want["best"])
    assert got.ties is None or got.ties == len(want["best"])


def as_reference(got: Beliefs, net: Plain) -> dict[str, object]:
    """One exact answer as the reference of another; ties are not compared."""
    return {
        "log_sum": got.log_sum[0],
        "marginal": states_of(net, got),
        "pair": pairs_of(net, got),
        "entropy": got.entropy[0],
        "best_value": plain_value(net, got.best.tolist()),
        "best": [tuple(got.best.tolist())],
    }
