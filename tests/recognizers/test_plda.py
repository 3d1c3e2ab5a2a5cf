"""PLDA against plain Gaussians, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from spklink.database.links import find_links, needed_sides
from spklink.database.sides import speakers_on
from spklink.posterior.likelihood import Weight, build_model
from spklink.posterior.posterior import solve
from spklink.recognizers.link_wccn import candidate_sides, link_of_candidates, within_scatter
from spklink.recognizers.plda import of_sums, pair_terms, set_llr, two_covariance
from spklink.recognizers.plda_training import (
    Speakers,
    _next_covariances,
    covariances,
    learn,
    log_likelihood,
)

WIDTH = 4
SEEDS = st.integers(0, 2**32 - 1)


def random_model(rng, width=WIDTH):
    """Mean, within and between."""
    a, b = rng.standard_normal((2, width, width + 2))
    return rng.standard_normal(width), a @ a.T / width, b @ b.T / width


def plain_set_llr(mean, within, between, x):
    """One person against all different, as joint Gaussians of all numbers."""
    n = len(x)
    joint = np.kron(np.eye(n), within) + np.kron(np.ones((n, n)), between)
    alone = multivariate_normal(mean, within + between)
    together = multivariate_normal(np.tile(mean, n), joint).logpdf(x.ravel())
    return together - sum(alone.logpdf(row) for row in x)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_sets_are_as_probable_as_joint_gaussians_say(count):
    rng = np.random.default_rng(count)
    mean, within, between = random_model(rng)
    x = mean + 2.0 * rng.standard_normal((count, WIDTH))
    model = two_covariance(mean, within, between)
    expected = plain_set_llr(mean, within, between, x)
    assert set_llr(model.ratio, model.turned(x)) == pytest.approx(expected, abs=1e-9)


def test_people_who_do_not_differ_in_some_directions():
    rng = np.random.default_rng(5)
    mean, within, _ = random_model(rng)
    narrow = np.outer(mean, mean)  # rank one
    model, x = two_covariance(mean, within, narrow), rng.standard_normal((3, WIDTH))
    expected = plain_set_llr(mean, within, narrow, x)
    assert set_llr(model.ratio, model.turned(x)) == pytest.approx(expected, abs=1e-8)
    none = two_covariance(mean, within, -np.eye(WIDTH))  # what an estimate may come out as
    assert set_llr(none.ratio, none.turned(x)) == 0.0


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_pairs_are_sets_of_two_and_symmetric(seed):
    rng = np.random.default_rng(seed)
    model, x = two_covariance(*random_model(rng)), rng.standard_normal((5, WIDTH))
    z = model.turned(x)
    terms, rows = pair_terms(model.ratio, z), np.arange(5)
    near = 1e-6 * (1.0 + float(np.abs(z).max()) ** 2)  # sides of pairs are of single precision
    table = terms.table(rows, rows)
    assert np.allclose(table, table.T, atol=near)
    one, two = np.triu_indices(5, 1)
    assert np.array_equal(terms.pairs(one, two), terms.pairs(two, one))
    assert np.allclose(terms.pairs(one, two), table[one, two], atol=near)
    for i, j in zip(one, two, strict=True):
        assert table[i, j] == pytest.approx(set_llr(model.ratio, z[[i, j]]), abs=near)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_an_invertible_map_of_all_vectors_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    mean, within, between = random_model(rng)
    a = rng.standard_normal((WIDTH, WIDTH)) + 3.0 * np.eye(WIDTH)
    shift, x = rng.standard_normal(WIDTH), rng.standard_normal((4, WIDTH))
    plain = two_covariance(mean, within, between)
    mapped = two_covariance(mean @ a + shift, a.T @ within @ a, a.T @ between @ a)
    before = set_llr(plain.ratio, plain.turned(x))
    assert set_llr(mapped.ratio, mapped.turned(x @ a + shift)) == pytest.approx(before, abs=1e-6)


@given(SEEDS, st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_the_order_of_a_set_does_not_matter(seed, count):
    rng = np.random.default_rng(seed)
    ratio, z = rng.gamma(1.0, 2.0, WIDTH), rng.standard_normal((count, WIDTH))
    mixed = z[rng.permutation(count)]
    assert set_llr(ratio, mixed) == pytest.approx(set_llr(ratio, z), abs=1e-9)


def test_many_sets_at_once():
    rng = np.random.default_rng(0)
    ratio, sets = rng.gamma(1.0, 2.0, WIDTH), [rng.standard_normal((n, WIDTH)) for n in (1, 2, 5)]
    found = of_sums(
        ratio,
        np.array([len(z) for z in sets]),
        np.stack([z.sum(0) for z in sets]),
        np.stack([(z**2).sum(0) for z in sets]),
    )
    assert np.allclose(found, [set_llr(ratio, z) for z in sets])


def test_the_same_ratio_everywhere_makes_the_book_weight_exact():
    """With one ratio in all directions a set is its pairs, up to a number that depends on the size
    alone: w(n) = (1 + 2 beta) / (1 + n beta) (module `likelihood`)."""
    rng = np.random.default_rng(1)
    beta, n = 1.7, 4
    ratio = np.full(3, beta)
    one, two = np.triu_indices(n, 1)
    weight = Weight("book", beta).of(np.array([n], np.int32))[0]
    rest = []
    for _ in range(5):
        z = rng.standard_normal((n, 3))
        pairs = pair_terms(ratio, z).pairs(one, two).sum()
        rest.append(set_llr(ratio, z) - weight * pairs)
    assert np.allclose(rest, rest[0])


# --- learning -------------------------------------------------------------------------------------


def people(seed=0, speakers=60, width=WIDTH):
    rng = np.random.default_rng(seed)
    mean, within, between = random_model(rng, width)
    count = rng.integers(1, 6, speakers)
    speaker = np.repeat(np.arange(speakers), count)
    own = rng.multivariate_normal(mean, 3.0 * between, speakers)
    x = own[speaker] + rng.multivariate_normal(np.zeros(width), within, len(speaker))
    return Speakers(x, speaker), within, 3.0 * between


def test_likelihood_against_joint_gaussians():
    found, within, between = people(speakers=4)
    mean = found.vectors.mean(axis=0)
    model = two_covariance(mean, within, between)
    expected = multivariate_normal(mean, within + between).logpdf(found.vectors).sum()
    for who in range(4):
        x = found.vectors[found.speaker == who]
        expected += plain_set_llr(mean, within, between, x)
    assert log_likelihood(model, found) == pytest.approx(expected, rel=1e-10)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_likelihood_never_falls(seed):
    found, _, _ = people(seed, speakers=25)
    history = np.array(learn(found).history)
    assert (np.diff(history) >= -1e-8 * abs(history[0])).all()
    assert history[-1] > history[0]


def test_the_covariances_are_found_again():
    found, within, between = people(1, speakers=3000)
    model = learn(found).model
    got_within, got_between = covariances(model)
    even = 0.8 * within + 0.2 * np.trace(within) / WIDTH * np.eye(WIDTH)
    assert np.allclose(got_within, even, atol=0.06 * np.abs(within).max())
    assert np.allclose(got_between, between, atol=0.1 * np.abs(between).max())


def test_a_round_against_the_definition():
    """Both moments of every person by the joint Gaussian, one person at a time."""
    found, within, between = people(2, speakers=5)
    model = two_covariance(found.vectors.mean(axis=0), within, between)
    w, b = (np.zeros((WIDTH, WIDTH)) for _ in range(2))
    z = model.turned(found.vectors)
    for who in range(5):
        own = z[found.speaker == who]
        spread = np.linalg.inv(np.diag(1 / model.ratio) + len(own) * np.eye(WIDTH))
        y = spread @ own.sum(0)
        b += (np.outer(y, y) + spread) / 5
        for row in own:
            w += (np.outer(row - y, row - y) + spread) / len(z)
    got = _next_covariances(model, found)
    assert np.allclose(got[0], w)
    assert np.allclose(got[1], b)


def test_learning_without_labels_is_expectation_maximisation():
    """The posterior is the E-step and the weighted scatter of pairs the M-step of one model: a link
    is log N(x_i - x_j; 2W) / N(x_i - x_j; 2T). So the evidence never falls."""
    from spklink.database.cliques import find_cliques
    from spklink.worlds.shapes import as_table, small_calls

    rng = np.random.default_rng(7)
    table = as_table(small_calls(60, rng), rng)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    speaker = speakers_on(table, truth)
    x = rng.standard_normal((len(speaker), WIDTH)) * 0.8
    x += 1.3 * rng.standard_normal((len(table.speakers), WIDTH))[speaker]
    links, total = find_links(table), np.cov(x.T)
    gap = np.subtract(*(x[side] for side in needed_sides(links, table.sides)))
    one, two = candidate_sides(links, table.sides)
    weight = Weight().of(links.calls)[link_of_candidates(links, table.sides)]
    within, evidence = total * 0.9, []
    for _ in range(8):
        llr = multivariate_normal(cov=2 * within).logpdf(gap)
        llr -= multivariate_normal(cov=2 * total).logpdf(gap)
        found = solve(build_model(table, find_cliques(table), links, llr))
        evidence.append(float(found.log_evidence.sum()))
        same = found.candidate_probabilities(links)
        within = within_scatter(x, one, two, same * weight)
    assert (np.diff(evidence) >= -1e-9).all()
    assert evidence[-1] > evidence[0] + 1.0
