from __future__ import annotations

import numpy as np
import pytest

from spklink import SpklinkError, build_model, find_cliques, simulate, solve
from spklink.calibration import gaussian_line, label_free, supervised
from spklink.evaluation import score_cliques


def world(**settings):
    made = simulate.simulate(**settings)
    cliques = find_cliques(made.conversations)

    def posterior(llr):
        return solve(build_model(made.conversations, cliques, made.links, llr))

    return made, posterior


def calibrate(made, posterior, scale=1.0, offset=0.0, usable=None):
    scores = scale * made.llr + offset
    mask = np.ones(scores.shape, bool) if usable is None else usable
    return label_free(made.links, scores, mask, scale * made.non_targets[2] + offset, posterior)


def mean_bits(posterior, truth):
    scores = score_cliques(posterior, truth)
    return scores.per_conversation[scores.resolvable].mean()


def test_calibrated_gaussians_need_no_line():
    """N(+-mu, 2 mu): the line of the definition is the identity."""
    scale, offset = gaussian_line(4.0, 8.0, -4.0, 8.0)
    assert (scale, offset) == (1.0, 0.0)


def test_supervised_line_of_shifted_scores():
    rng = np.random.default_rng(0)
    same = 3 * (4.0 + np.sqrt(8.0) * rng.standard_normal(200_000)) + 7
    other = 3 * (-4.0 + np.sqrt(8.0) * rng.standard_normal(200_000)) + 7
    line = supervised(same, other)
    assert line.scale == pytest.approx(1 / 3, rel=0.02)
    assert line(np.array([7.0]))[0] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("name", ["gaussian", "plda"])
def test_no_label_is_nearly_as_good_as_all_labels(name):
    free = given = 0.0
    for seed in range(8):
        made, posterior = world(world=name, eer=10.0, seed=seed)
        found = calibrate(made, posterior)
        assert found.converged
        free += mean_bits(found.posterior, made.truth)
        given += mean_bits(posterior(made.llr), made.truth)
    assert free < 1.05 * given


def test_a_factor_or_offset_changes_nothing():
    made, posterior = world(eer=10.0, seed=3)
    plain = calibrate(made, posterior)
    moved = calibrate(made, posterior, scale=12.5, offset=-800.0)
    assert np.allclose(plain.posterior.exchanged, moved.posterior.exchanged, atol=1e-6)
    assert moved.calibration.scale == pytest.approx(plain.calibration.scale / 12.5)


def test_large_cliques_count_too():
    made, posterior = world(shape="network", conversations=200, eer=10.0, seed=1)
    found = calibrate(made, posterior)
    assert found.calibration.scale == pytest.approx(1.0, rel=0.2)


def test_unusable_scores_stay_out():
    made, posterior = world(eer=10.0, seed=4)
    usable = np.ones(made.llr.shape, bool)
    usable[:5] = False
    broken = made.llr.copy()
    broken[:5] = 1e6  # would ruin the variance
    found = label_free(made.links, broken, usable, made.non_targets[2], posterior)
    assert found.calibration.scale == pytest.approx(1.0, rel=0.3)


def test_too_little_to_learn_from():
    made, posterior = world(shape="star", conversations=5)
    with pytest.raises(SpklinkError, match="needs at least 30"):
        calibrate(made, posterior)
    many = np.zeros(100)
    with pytest.raises(SpklinkError, match="all scores of known non-targets are equal"):
        label_free(made.links, made.llr, np.ones(made.llr.shape, bool), many, posterior)
    with pytest.raises(SpklinkError, match="needs scores of both kinds"):
        supervised(np.zeros(0), np.zeros(5))


def test_scores_that_tell_the_opposite_are_refused():
    made, posterior = world(eer=2.0, seed=5)
    rng = np.random.default_rng(0)
    lower = -10.0 + 0.1 * rng.standard_normal(made.llr.shape)
    with pytest.raises(SpklinkError, match="participant lists"):
        label_free(made.links, lower, np.ones(lower.shape, bool), rng.normal(size=500), posterior)
