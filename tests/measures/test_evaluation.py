from __future__ import annotations

import math

import numpy as np
import pytest

from spklink import build_model, find_cliques, solve
from spklink.database.labels import Labels
from spklink.measures import evaluation
from spklink.measures.evaluation import (
    SCALES,
    best_scale,
    configurations,
    evaluate,
    keep_cliques,
    table_row,
)
from spklink.posterior import truth as posterior_truth
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import combine_prior
from spklink.posterior.posterior import Options
from spklink.posterior.truth import score_cliques
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
    result = evaluate(solve(model), made.truth)
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


def test_the_posterior_is_not_solved_again(monkeypatch):
    """Measuring solves once for the truth, and Table 3 small parts; the whole never without it."""
    made, model = database(0)
    posterior, asked = solve(model), []

    def watch(model, bits=None, **more):
        asked.append((len(model.field), bits is not None))
        return solve(model, bits, **more)

    for module in (evaluation, posterior_truth):
        monkeypatch.setattr(module, "solve", watch)
    evaluate(posterior, made.truth)
    assert [given for size, given in asked if size == len(model.field)] == [True]


def test_a_partial_key_marginalises_the_rest():
    made, model = database(1)
    truth = made.truth.copy()
    clique = int(np.flatnonzero(model.cliques.size == 4)[0])
    members = model.cliques.members(clique)
    truth[members[1:]] = -1
    result = evaluate(solve(model), truth)
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
    assert evaluate(solve(model), made.truth).all.cross_entropy_bits is None


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
            solve(model),
            np.where(model.cliques.size[model.cliques.label] == 1, 0, -1).astype(np.int8),
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


def test_configurations_beyond_exact_integers():
    assert configurations(53) == 2**53
    assert configurations(54) == "2^54"


def test_figures_that_are_not_exact_are_null_between_two_ends():
    made, model = database(0, shape="star", conversations=24, eer=7.0)
    exact = evaluate(solve(model), made.truth).as_json()
    hasty = Options(budget=Budget(seconds=1e-6))
    bounded = evaluate(solve(model, options=hasty), made.truth, options=hasty).as_json()
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
