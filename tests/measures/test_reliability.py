from __future__ import annotations

import numpy as np
import pytest

from spklink import build_model, find_cliques, solve
from spklink.measures.reliability import (
    error_interval,
    hide_known,
    measure_marginals,
    reliability,
    wilson,
)
from spklink.worlds import simulate


def test_reliability_bins():
    probability = np.array([0.55, 0.95, 0.995, 1.0, 0.58])
    bins = reliability(probability, np.array([True, True, False, True, False]))
    assert [(b.low, b.count) for b in bins] == [(0.5, 2), (0.95, 1), (0.99, 1), (0.999, 1)]
    assert bins[0].observed == 0.5
    assert bins[0].predicted == pytest.approx(0.565)
    low, high = wilson(0.5, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)


def test_implied_errors_against_the_binomial_law():
    from scipy.stats import binom

    low, high = error_interval(np.full(200, 0.03))
    assert (low, high) == (binom.ppf(0.025, 200, 0.03), binom.ppf(0.975, 200, 0.03))
    assert error_interval(np.zeros(10)) == (0, 0)
    assert error_interval(np.ones(10)) == (10, 10)
    assert error_interval(np.zeros(0)) == (0, 0)


def test_marginals_against_the_definitions():
    exchanged, truth = np.array([0.9, 0.2, 0.5, 0.3]), np.array([1, 1, 0, 0], np.int8)
    found = measure_marginals(exchanged, truth)
    assert (found.conversations, found.wrong) == (4, 1)
    assert found.expected_wrong == pytest.approx(0.1 + 0.2 + 0.5 + 0.3)
    assert found.brier == pytest.approx((0.01 + 0.64 + 0.25 + 0.09) / 4)
    expected = -np.log2([0.9, 0.2, 0.5, 0.7]).mean()
    assert found.log_score_bits == pytest.approx(expected)
    assert measure_marginals(np.array([1.0]), np.array([0], np.int8)).log_score_bits is None


def test_hidden_channels_are_predicted_from_the_rest():
    """Half of the channels known; each is predicted without itself, as by solving by hand."""
    made = simulate.simulate(eer=10.0, seed=2)
    model = build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)
    bits = np.where(np.arange(len(made.truth)) % 2 == 0, made.truth, -1).astype(np.int8)
    found = hide_known(model, bits)
    solvable = model.cliques.resolvable[model.cliques.label]
    assert found.conversations == int(((bits >= 0) & solvable).sum())
    assert abs(found.wrong - found.expected_wrong) < 3 * np.sqrt(found.expected_wrong)
    one = np.flatnonzero((bits >= 0) & solvable)[:1]
    alone = np.full(len(bits), -1, np.int8)
    alone[one] = bits[one]
    expected = solve(model).exchanged[one]
    assert hide_known(model, alone).brier == pytest.approx(float((expected - bits[one])[0] ** 2))
