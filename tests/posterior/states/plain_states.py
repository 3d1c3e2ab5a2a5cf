"""Random networks of several states a node, and a slow plain reference.

`brute_force` reads the flat arrays by itself and shares no code with the package.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from spklink.posterior.inference.network import Network
from spklink.posterior.states.beliefs import StateBeliefs
from spklink.posterior.states.network import StateNetwork

CLOSE = 1e-9
MOST = 6000  # configurations that are enumerated in plain Python


def make(size, edges, unary, tables, constant=0.25) -> StateNetwork:
    """A network as it is written down: a list a node, a list of rows an edge."""
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    flat = [np.ravel(tables[tuple(e)]) for e in pairs.tolist()]
    return StateNetwork(
        size=np.array(size, np.int64),
        unary=np.concatenate([np.zeros(0), *(np.asarray(u, float) for u in unary)]),
        a=pairs[:, 0].copy(),
        b=pairs[:, 1].copy(),
        table=np.concatenate([np.zeros(0), *(t.astype(float) for t in flat)]),
        constant=constant,
    )


def random_network(size, edges, rng, scale=1.0, grid=False, silent=0.0) -> StateNetwork:
    """Normal terms of this scale; on a grid of halves they tie; a share of tables is zero."""

    def terms(*shape):
        drawn = rng.normal(size=shape) * scale
        return np.round(2 * drawn / scale) / 2 if grid else drawn

    tables = {e: terms(size[e[0]], size[e[1]]) * (rng.random() >= silent) for e in sorted(edges)}
    return make(size, edges, [terms(s) for s in size], tables, float(rng.normal()))


@st.composite
def networks(draw, most=7, states=7) -> StateNetwork:
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


def of_bits(net: Network) -> StateNetwork:
    """A two-state network in the representation of several states."""
    n = len(net)
    edges = list(zip(net.a.tolist(), net.b.tolist(), strict=True))
    tables: dict[tuple[int, int], np.ndarray] = {}
    for (a, b), j in zip(edges, net.coupling, strict=True):
        tables[a, b] = tables.get((a, b), 0.0) + np.array([[0.0, 0.0], [0.0, j]])
    unary = [np.array([0.0, f]) for f in net.field]
    return make([2] * n, sorted(tables), unary, tables, net.constant)


def plain_value(net: StateNetwork, z) -> float:
    size = net.size.tolist()
    begin = [sum(size[:t]) for t in range(len(size))]
    terms, at = [net.constant], 0
    for t, s in enumerate(z):
        terms.append(float(net.unary[begin[t] + s]))
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        terms.append(float(net.table[at + z[a] * size[b] + z[b]]))
        at += size[a] * size[b]
    return math.fsum(terms)


def brute_force(net: StateNetwork) -> dict[str, object]:
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


def check(net: StateNetwork, got: StateBeliefs | None, want: dict[str, object]) -> None:
    """Every figure of an exact answer against the reference."""
    assert got is not None
    assert got.certainty == "exact"
    assert got.proved_optimal
    assert got.log_sum[0] == got.log_sum[1]
    scale = max(1.0, abs(want["log_sum"]))
    assert abs(got.log_sum[0] - want["log_sum"]) <= CLOSE * scale
    assert got.entropy[0] == got.entropy[1]
    assert abs(got.entropy[0] - want["entropy"]) <= CLOSE
    np.testing.assert_allclose(got.marginal, want["marginal"], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(got.pair, want["pair"], rtol=0, atol=CLOSE)
    assert got.low is got.marginal or np.array_equal(got.low, got.marginal)
    assert got.high is got.marginal or np.array_equal(got.high, got.marginal)
    assert tuple(got.best.tolist()) in set(want["best"])
    assert got.ties is None or got.ties == len(want["best"])


def as_reference(got: StateBeliefs, net: StateNetwork) -> dict[str, object]:
    """One exact answer as the reference of another; ties are not compared."""
    return {
        "log_sum": got.log_sum[0],
        "marginal": got.marginal,
        "pair": got.pair,
        "entropy": got.entropy[0],
        "best_value": plain_value(net, got.best.tolist()),
        "best": [tuple(got.best.tolist())],
    }
