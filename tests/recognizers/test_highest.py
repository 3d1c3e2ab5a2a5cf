"""The highest scores of a row, found without sorting it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.recognizers.normalise import highest_moments


def plainly(scores, there, share):
    """Sorted, one row after the other."""
    found = []
    for row, size in zip(scores, there, strict=True):
        count = min(max(int(np.ceil(share * size - 1e-9)), 2), size)
        values = np.sort(row.astype(np.float64))[::-1][:count]
        found.append((values.mean(), values.std()))
    return np.array(found).T


@given(
    st.integers(0, 2**32),
    st.integers(3, 400),
    st.sampled_from([0.0, 0.02, 0.5, 0.9]),
    st.sampled_from([0.15, 0.5, 1.0]),
    st.sampled_from([None, 1, 0]),
)
@settings(max_examples=120, deadline=None)
def test_they_are_those_of_sorted_rows(seed, width, missing, share, digits):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(7, width)).astype(np.float32)
    scores[3] = np.sort(scores[3])  # a sample of every fourth is far off here
    scores[4, ::4] += 50.0
    if digits is not None:  # ties
        scores = np.round(scores, digits)
    scores[rng.random(scores.shape) < missing] = -np.inf
    scores[:, :2] = 1.0  # no row is empty
    there = np.isfinite(scores).sum(axis=1)
    mean, spread = highest_moments(scores.copy(), there, share)
    expected = plainly(scores, there, share)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(spread, np.maximum(expected[1], 1e-6), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_wide_rows(kind):
    scores = np.random.default_rng(1).normal(size=(50, 2000)).astype(kind)
    mean, spread = highest_moments(scores.copy(), np.full(50, 2000))
    expected = plainly(scores, np.full(50, 2000), 0.15)
    np.testing.assert_allclose([mean, spread], expected, rtol=1e-6)
