"""Empirical bounds: against a slow plain reference, and against the library lir."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spklink.measures.bounds import LN10, elub

FINE = np.arange(0.0, 6.0, 1e-3)
RATIOS = arrays(np.float64, st.integers(0, 30), elements=st.integers(-80, 80).map(lambda k: k / 8))


def slow_upper(targets, weights, others, counts):
    """The first threshold of a fine grid at which comparing costs more than not comparing."""
    for t in FINE:
        missed = (sum(w for x, w in zip(targets, weights, strict=True) if x <= t * LN10) + 1.0) / (
            sum(weights) + 1.0
        )
        alarms = (sum(v for x, v in zip(others, counts, strict=True) if x > t * LN10) + 1.0) / (
            sum(counts) + 1.0
        )
        if missed + 10.0**t * alarms > 1.0 + 1e-12:
            return t
    return FINE[-1]


@given(RATIOS, RATIOS, st.integers(0, 2**32 - 1))
def test_the_bound_is_where_a_slow_search_finds_it(targets, others, seed):
    rng = np.random.default_rng(seed)
    weights, counts = rng.random(len(targets)), 1.0 - 0.5 * rng.random(len(others))
    found = elub(targets, others, (weights, counts))
    assert found.high == pytest.approx(slow_upper(targets, weights, others, counts), abs=1.1e-3)
    assert found.low <= 0.0 <= found.high
    assert found.high <= np.log10(len(others) + 1.0) + 1e-9
    assert -found.low <= np.log10(weights.sum() + 1.0) + 1e-9


@given(RATIOS, RATIOS)
def test_the_two_bounds_mirror_each_other(targets, others):
    one, two = elub(targets, others), elub(-others, -targets)
    assert one.high == pytest.approx(-two.low, abs=1e-9)


@pytest.mark.parametrize(("shift", "count"), [(1.5, 200), (4.0, 1000), (0.0, 50), (9.0, 400)])
def test_the_bounds_are_those_of_lir(shift, count):
    """Its thresholds are steps of .01, and the bound is one step inside."""
    reference = pytest.importorskip("lir.algorithms.bayeserror").elub
    rng = np.random.default_rng(count)
    targets = rng.normal(shift, np.sqrt(2.0 * shift + 0.1), count)
    others = rng.normal(-shift, np.sqrt(2.0 * shift + 0.1), 3 * count)
    labels = np.repeat([1, 0], [count, 3 * count])
    low, high = reference(np.concatenate([targets, others]) / LN10, labels)
    found = elub(targets, others)
    assert found.low == pytest.approx(low, abs=0.021)
    assert found.high == pytest.approx(high, abs=0.021)


def test_nothing_is_vouched_for_without_data():
    found = elub(np.zeros(0), np.zeros(0))
    assert (found.low, found.high) == (0.0, 0.0)
    assert found.limited(12.0) == found.limited(-12.0) == 0.0


def test_a_thousand_pairs_vouch_for_a_thousand_at_most():
    """However far apart the classes are."""
    found = elub(np.full(1000, 90.0), np.full(1000, -90.0))
    assert 2.9 < found.high < 3.001
    assert found.limited(16.0) == found.high
    assert found.limited(1.25) == 1.25
