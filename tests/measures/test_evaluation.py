from __future__ import annotations

import math

import numpy as np
import pytest

from spklink import build_model, evaluate, find_cliques, solve
from spklink.database.labels import Labels
from spklink.measures.evaluation import (
    SCALES,
    best_scale,
    configurations,
    error_interval,
    hide_known,
    keep_cliques,
    measure_marginals,
    reliability,
    score_cliques,
    table_row,
    wilson,
)
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import combine_prior
from spklink.posterior.posterior import Options
from spklink.worlds import simulate


def database(seed=0, **settings):
    made = simulate.simulate(seed=seed, **settings)
    model = build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)
    return made, model


def test_the_papers_rows_give_its_totals():
    """57/13/26/9/5 resolvable cliques of 2 to 6 conversations at the printed bits."""
    counts, bits = [57, 13, 26, 9, 5], [0.082, 0.201, 0.032, 0.041, 0.019]
    per_conversation = np.repeat(bits, counts)
    row = table_row(per_conversation, per_conversation, np.ones(110, bool), np.arange(110) < 8)
    assert round(row["cross_entropy_bits"], 4) == 0.0780
    assert round(row["confusion"], 3) == 0.056
    assert round(row["clique_error_rate"], 3) == 0.073  # 8 of 110; 8 of 114 are the printed 7.0 %
    assert round(8 / 114, 3) == 0.070


def test_confusion_is_that_of_the_mean():
    row = table_row(*[np.array([0.0, 2.0])] * 2, np.ones(2, bool), np.zeros(2, bool))
    assert row["perplexity"] == 2.0
    assert row["confusion"] == 1.0


def test_cross_entropy_is_minus_log_probability_of_the_truth():
    made, model = database(3)
    posterior = solve(model)
    scores = score_cliques(posterior, made.truth)
    assert len(scores.clique) == len(model.cliques)
    for k in range(0, len(model.cliques), 7):
        bits, chance = posterior.best_configurations(k, 64)
        truth = made.truth[model.cliques.members(k)]
        expected = -math.log2(chance[(bits == truth).all(axis=1)][0])
        assert abs(scores.cross_high[k] - expected) < 1e-9


def test_rows_and_totals_of_a_database():
    made, model = database(0)
    result = evaluate(model, made.truth)
    assert [row.cliques for row in result.by_size] == [8, 61, 13, 26, 9, 5]
    assert [row.unresolvable for row in result.by_size] == [8, 4, 0, 0, 0, 0]
    assert (result.resolvable.cliques, result.at_least_two.cliques) == (110, 114)
    assert result.by_size[0].cross_entropy_bits == pytest.approx(1.0, abs=1e-12)
    assert result.by_size[0].clique_errors == 0  # a tie that includes the truth
    assert result.total == 348
    best = solve(model).best
    inside = model.cliques.resolvable[model.cliques.label]
    assert result.wrong == int((best != made.truth)[inside].sum())
    total = sum(score_cliques(solve(model), made.truth).cross_high)
    assert result.cross_entropy_bits == pytest.approx(total / 348)


def test_a_partial_key_marginalises_the_rest():
    made, model = database(1)
    truth = made.truth.copy()
    clique = int(np.flatnonzero(model.cliques.size == 4)[0])
    members = model.cliques.members(clique)
    truth[members[1:]] = -1
    result = evaluate(model, truth)
    assert result.without_key == 3
    scores = score_cliques(solve(model), truth)
    k = int(np.flatnonzero(scores.clique == clique)[0])
    m = members[0]
    chance = solve(model).exchanged[m]
    expected = -math.log2(chance if truth[m] else 1 - chance)
    assert scores.cross_high[k] == pytest.approx(expected)
    assert scores.keyed[k] == 1


def test_a_known_channel_that_is_wrong_is_infinitely_surprising():
    made, _ = database(2)
    said = np.full(len(made.truth), np.nan)
    said[5] = 1.0 - made.truth[5]
    prior = combine_prior(made.conversations, Labels(said))
    cliques = find_cliques(made.conversations, prior.clamped >= 0)
    model = build_model(made.conversations, cliques, made.links, made.llr, prior=prior)
    scores = score_cliques(solve(model), made.truth)
    k = int(np.flatnonzero(scores.clique == cliques.label[5])[0])
    assert np.isinf(scores.cross_high[k])
    assert scores.wrong[k]
    assert evaluate(model, made.truth).all.cross_entropy_bits is None


def test_best_scale_undoes_a_factor_on_the_scores():
    made, model = database(4)
    every = np.ones(len(model.cliques), bool)
    part, truth = keep_cliques(model, made.truth, score_cliques(solve(model), made.truth), every)
    bits, scale = best_scale(part, truth)
    bits_halved, scale_halved = best_scale(part.scaled(0.5), truth)
    assert scale_halved == pytest.approx(2 * scale, rel=1e-6)
    assert bits_halved == pytest.approx(bits, abs=1e-9)


def test_best_scale_is_the_minimum_of_a_grid():
    made, model = database(4)
    every = np.ones(len(model.cliques), bool)
    part, truth = keep_cliques(model, made.truth, score_cliques(solve(model), made.truth), every)
    bits, scale = best_scale(part, truth)

    def mean_bits(factor):
        return score_cliques(solve(part.scaled(factor)), truth).per_conversation.mean()

    grid = scale * np.exp(np.linspace(-1.0, 1.0, 41))
    values = [mean_bits(factor) for factor in grid]
    assert int(np.argmin(values)) == 20
    assert bits == pytest.approx(values[20], abs=1e-12)


def test_no_scale_without_errors_or_without_cliques():
    made, model = database(0, eer=0.05)
    every = np.ones(len(model.cliques), bool)
    part, truth = keep_cliques(model, made.truth, score_cliques(solve(model), made.truth), every)
    bits, scale = best_scale(part, truth)
    assert scale is None
    assert bits < 1e-6
    assert best_scale(part.scaled(-1.0), truth)[1] is None
    assert SCALES == (0.01, 100.0)
    assert (
        evaluate(
            model, np.where(model.cliques.size[model.cliques.label] == 1, 0, -1).astype(np.int8)
        ).resolvable.scale_ratio
        is None
    )


def test_simulated_pairs_have_the_expected_bits_and_errors():
    """Gaussian scores at EER 7 %: .09 to .11 bits and about 5 % errors on two-call cliques."""
    bits, errors = [], []
    for seed in range(300):
        made, model = database(seed)
        scores = score_cliques(solve(model), made.truth)
        pairs = scores.resolvable & (scores.size == 2)
        bits.append(scores.per_conversation[pairs].mean())
        errors.append(scores.wrong[pairs].mean())
    assert 0.09 <= np.mean(bits) <= 0.11
    assert 0.04 <= np.mean(errors) <= 0.06


def test_expected_errors_match_the_observed_ones():
    expected = observed = 0.0
    for seed in range(60):
        made, model = database(seed)
        result = evaluate_quickly(model, made.truth)
        expected, observed = expected + result[0], observed + result[1]
    assert abs(observed - expected) < 4 * math.sqrt(expected)


def evaluate_quickly(model, truth):
    scores = score_cliques(solve(model), truth)
    chosen = scores.resolvable
    return (1 - scores.best_low[chosen]).sum(), scores.wrong[chosen].sum()


def test_reliability_bins():
    probability = np.array([0.55, 0.95, 0.995, 1.0, 0.58])
    bins = reliability(probability, np.array([True, True, False, True, False]))
    assert [(b.low, b.count) for b in bins] == [(0.5, 2), (0.95, 1), (0.99, 1), (0.999, 1)]
    assert bins[0].observed == 0.5
    assert bins[0].predicted == pytest.approx(0.565)
    low, high = wilson(0.5, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)


def test_configurations_beyond_exact_integers():
    assert configurations(53) == 2**53
    assert configurations(54) == "2^54"


def test_figures_that_are_not_exact_are_null_between_two_ends():
    made, model = database(0, shape="star", conversations=24, eer=7.0)
    exact = evaluate(model, made.truth).as_json()
    bounded = evaluate(model, made.truth, options=Options(budget=Budget(seconds=1e-6))).as_json()
    row, sure = bounded["all"], exact["all"]
    assert sure["cross_entropy_bits"] is not None
    assert "cross_entropy_bits_low" not in sure
    assert row["cross_entropy_bits"] is None
    low, high = row["cross_entropy_bits_low"], row["cross_entropy_bits_high"]
    assert low <= sure["cross_entropy_bits"] + 1e-9
    assert sure["cross_entropy_bits"] <= high + 1e-9
    assert bounded["expected_clique_errors"] is None
    assert (
        bounded["expected_clique_errors_low"]
        <= exact["expected_clique_errors"] + 1e-9
        <= bounded["expected_clique_errors_high"] + 2e-9
    )
    assert row["scale_ratio"] is None


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
