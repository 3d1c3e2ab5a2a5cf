"""Bounds on tables, against orders of summing out and against another library's cores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.posterior.states.density import _cores, table_bits


def random_graph(seed, most=24):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most))
    a, b = np.triu_indices(n, 1)
    kept = rng.random(len(a)) < rng.random()
    return rng, n, a[kept], b[kept]


def plain_cores(n, a, b):
    """The largest d such that repeatedly dropping nodes of fewer neighbours leaves a node."""
    around = {v: set() for v in range(n)}
    for u, v in zip(a.tolist(), b.tolist(), strict=True):
        around[u].add(v)
        around[v].add(u)
    core = np.zeros(n, np.int64)
    for d in range(n):
        left = set(range(n))
        while weak := {v for v in left if len(around[v] & left) < d}:
            left -= weak
        core[list(left)] = d
    return core


def slots(n, a, b):
    ends = np.concatenate([a, b])
    order = np.argsort(ends, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    return start, np.concatenate([b, a])[order]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_cores(seed):
    _, n, a, b = random_graph(seed)
    assert _cores(*slots(n, a, b)).tolist() == plain_cores(n, a, b).tolist()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_no_order_has_smaller_tables(seed):
    rng, n, a, b = random_graph(seed, 12)
    size = rng.integers(1, 6, n)
    bound = table_bits(size, np.zeros(n, np.int64), a, b)[0]
    around = {v: set() for v in range(n)}
    for u, v in zip(a.tolist(), b.tolist(), strict=True):
        around[u].add(v)
        around[v].add(u)
    largest = 0.0
    for v in rng.permutation(n).tolist():
        joined = around.pop(v)
        largest = max(largest, np.log2(size[[v, *joined]]).sum())
        for u in joined:
            around[u] |= joined
            around[u] -= {u, v}
    assert bound <= largest + 1e-9


def test_pieces_are_apart():
    a, b = np.triu_indices(5, 1)
    a, b = np.append(a, 5), np.append(b, 6)
    piece = np.array([0, 0, 0, 0, 0, 1, 1])
    found = table_bits(np.array([4, 4, 4, 8, 8, 2, 16]), piece, a, b)
    assert found == pytest.approx([10.0, 2.0])
