"""Calibration from participant lists alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spklink import SpklinkError, build_model, find_cliques, solve
from spklink.calibration.choice import Choice, calibrated, with_speakers
from spklink.calibration.curves import load, pair_speech, save
from spklink.calibration.label_free import label_free
from spklink.calibration.pairs import make_pairs
from spklink.calibration.weight import learn_weight
from spklink.database.links import needed_sides
from spklink.posterior.truth import score_cliques
from spklink.worlds import simulate
from spklink.worlds.scorers import gaussian_mu, variance_ratio
from spklink.worlds.shapes import as_table


def world(**settings):
    made = simulate.simulate(**settings)
    cliques = find_cliques(made.conversations)

    def posterior(llr, curve=None):
        return solve(build_model(made.conversations, cliques, made.links, llr))

    return made, posterior


def pairs_of(made, scale=1.0, offset=0.0, scores=None, others=None):
    others = made.non_targets.score if others is None else others
    non_targets = made.non_targets.scored(scale * others + offset)
    scores = made.llr if scores is None else scores
    return make_pairs(made.conversations, made.links, scale * scores + offset, non_targets)


def mean_bits(posterior, truth):
    scores = score_cliques(posterior, truth)
    return scores.per_conversation[scores.resolvable].mean()


@pytest.mark.parametrize("name", ["gaussian", "plda"])
@pytest.mark.parametrize("kind", ["cmlg", "lr", "lr-floor"])
def test_no_label_is_as_good_as_all_labels(name, kind):
    free = given = 0.0
    for seed in range(6):
        made, posterior = world(world=name, eer=10.0, seed=seed)
        pairs = pairs_of(made)
        found = label_free(pairs, posterior, kind)
        assert found.converged
        assert found.agree
        free += mean_bits(found.posterior, made.truth)
        taught = with_speakers(made.conversations, pairs, made.speakers, kind)
        given += mean_bits(posterior(taught(made.llr)), made.truth)
    assert free < 1.03 * given


@pytest.mark.parametrize("kind", ["cmlg", "lr", "lr-floor", "pav"])
def test_a_factor_or_offset_changes_nothing(kind):
    made, posterior = world(eer=10.0, seed=3)
    plain = label_free(pairs_of(made), posterior, kind)
    moved = label_free(pairs_of(made, 12.5, -800.0), posterior, kind)
    assert np.allclose(plain.posterior.exchanged, moved.posterior.exchanged, atol=1e-6)


@pytest.mark.parametrize("kind", ["cmlg", "lr", "lr-floor"])
def test_a_start_that_leads_to_a_known_end_goes_no_further(kind, monkeypatch):
    made, posterior = world(eer=10.0, seed=3)
    asked = []

    def counted(llr, curve=None):
        asked.append(llr)
        return posterior(llr)

    short, fewer = label_free(pairs_of(made), counted, kind), len(asked)
    monkeypatch.setattr("spklink.calibration.label_free.ARRIVED", -1.0)
    long = label_free(pairs_of(made), counted, kind)
    assert fewer < 0.8 * (len(asked) - fewer)
    assert short.agree
    assert long.agree
    assert np.allclose(short.posterior.exchanged, long.posterior.exchanged, atol=1e-3)


def test_outliers_are_recognised_without_labels():
    """Heavy-tailed voices: a plain line is ruined by them, even with the truth; a floor is not."""
    plain = free = given = 0.0
    for seed in range(5):
        made, posterior = world(world="t5", eer=7.0, seed=seed)
        pairs = pairs_of(made)
        free += mean_bits(label_free(pairs, posterior, "lr-floor").posterior, made.truth)
        for kind in ("lr", "lr-floor"):
            taught = with_speakers(made.conversations, pairs, made.speakers, kind)
            bits = mean_bits(posterior(taught(made.llr)), made.truth)
            plain, given = (plain + bits, given) if kind == "lr" else (plain, given + bits)
    assert free < 0.5 * plain
    assert free < 1.1 * given


def test_every_round_is_told():
    made, posterior = world(eer=10.0, seed=1)
    heard = []
    found = label_free(pairs_of(made), posterior, tell=lambda done, total: heard.append(done))
    assert found.starts == 3
    assert len(heard) >= len(found.history) >= 3
    assert found.history[-1].moved <= 1e-4 < found.history[0].moved
    story = found.as_json()
    assert story["rounds"] == len(story["history"])
    assert story["expected_targets"] == pytest.approx(len(made.links.pair))


def test_two_people_and_large_cliques_count():
    """Cliques of two people cannot be resolved, but their pairs of sides still teach."""
    for settings in ({"shape": "network", "conversations": 200}, {"shape": "pairs"}):
        made, posterior = world(eer=10.0, seed=1, **settings)
        assert label_free(pairs_of(made), posterior).calibration.scale == pytest.approx(1, rel=0.2)


def test_unusable_scores_stay_out():
    made, posterior = world(eer=10.0, seed=4)
    usable = np.ones(made.llr.shape, bool)
    usable[:20] = False
    broken = made.llr.copy()
    broken[:20] = 1e6  # would ruin the fit
    pairs = replace(pairs_of(made, scores=broken), usable=usable)
    assert label_free(pairs, posterior, "cmlg").calibration.scale == pytest.approx(1.0, rel=0.3)


def test_wrong_lists_hurt_less_when_they_are_expected():
    """Some pairs that should be one person are two; with right lists nothing becomes bolder."""
    plain = wary = trusting = 0.0
    for seed in range(6):
        made, posterior = world(world="gaussian", eer=3.0, seed=seed)
        rng = np.random.default_rng(seed)
        scores = made.llr.copy()
        wrong = np.repeat(rng.random(len(made.links.first)) < 0.05, 4)
        mu = gaussian_mu(0.03)
        scores[wrong] = -mu + np.sqrt(2 * mu) * rng.standard_normal(int(wrong.sum()))
        pairs = pairs_of(made, scores=scores)
        trusting += mean_bits(label_free(pairs, posterior, "lr").posterior, made.truth)
        found = label_free(pairs, posterior, "lr", wrong_lists=0.05)
        wary += mean_bits(found.posterior, made.truth)
        assert found.calibration.floor == pytest.approx(np.log(0.05))
        right = label_free(pairs_of(made), posterior, "lr", wrong_lists=0.05).posterior
        plain += right.entropy_bits.sum() - posterior(made.llr).entropy_bits.sum()
    assert wary < trusting
    assert plain > 0.0


def test_two_people_teach_what_is_not_resolvable():
    """Calls of pairs of people alone: nothing can be resolved, the line is learned all the same."""
    calls = [(2 * k, 2 * k + 1) for k in range(40) for _ in range(4)]
    table = as_table(calls, np.random.default_rng(0))
    made = simulate.simulate_table(table, "gaussian", 7.0, np.random.default_rng(1))
    found = calibrated(table, pairs_of(made), Choice())
    assert found.note == ""
    assert found.calibration.scale == pytest.approx(1.0, abs=0.3)


def test_scores_that_tell_the_opposite_are_refused():
    made, posterior = world(eer=2.0, seed=5)
    rng = np.random.default_rng(0)
    lower = -10.0 + 0.1 * rng.standard_normal(made.llr.shape)
    pairs = pairs_of(made, scores=lower, others=rng.normal(size=len(made.non_targets)))
    with pytest.raises(SpklinkError, match="participant lists"):
        label_free(pairs, posterior, "cmlg")


def test_short_calls_are_judged_by_their_own_speech(tmp_path):
    """A slope that falls with the speech is below zero at ten seconds, which no call here has."""
    made, posterior = world(eer=5.0, seed=2)
    seconds = np.random.default_rng(1).uniform(2.0, 6.0, len(made.conversations.sides))

    def flatter(scores, sides):
        return scores / -(pair_speech(seconds, *sides) + 0.3)

    others = made.non_targets
    scores = flatter(made.llr, needed_sides(made.links, made.conversations.sides))
    non_targets = others.scored(flatter(others.score, (others.side_1, others.side_2)))
    heard = {"seconds": seconds, "usable": np.ones(len(seconds), bool)}
    pairs = make_pairs(made.conversations, made.links, scores, non_targets, **heard)
    found = label_free(pairs, posterior, "lr-dur")
    assert found.calibration.scale < 0.0
    plain = label_free(pairs_of(made), posterior, "lr")
    assert mean_bits(found.posterior, made.truth) < 1.5 * mean_bits(plain.posterior, made.truth)
    save(tmp_path / "c.json", found.calibration)
    assert load(tmp_path / "c.json") == found.calibration


def test_too_little_to_learn_from(tmp_path):
    """Nothing to learn: the stated default. A little: learned, with a warning, or a saved one."""
    made, _ = world(shape="star", conversations=5)
    found = calibrated(made.conversations, pairs_of(made), Choice())
    assert found.calibration.kind == "default"
    assert "not calibrated" in found.note
    made, _ = world(shape="cgn", conversations=20, eer=10.0)
    found = calibrated(made.conversations, pairs_of(made), Choice())
    assert found.learned is not None
    assert "at least 30 conversations" in found.note
    path = tmp_path / "c.json"
    path.write_text('{"kind": "lr", "scale": 2.0, "offset": 0.5}')
    found = calibrated(made.conversations, pairs_of(made), Choice(fallback=path))
    assert found.calibration.scale == 2.0
    assert "c.json is used instead" in found.note


def test_a_given_calibration_is_used_as_it_is(tmp_path):
    made, posterior = world(eer=10.0, seed=0)
    path = tmp_path / "c.json"
    path.write_text('{"kind": "lr", "scale": 2.0, "offset": 0.5}')
    pairs = pairs_of(made)
    found = calibrated(made.conversations, pairs, Choice(path))
    assert np.array_equal(found.llr, 2.0 * made.llr + 0.5)
    plain = calibrated(made.conversations, pairs, Choice("none"))
    assert np.array_equal(plain.answer.bits.exchanged, posterior(made.llr).exchanged)


def test_the_weight_is_learned_where_known_channels_tell():
    """Exact PLDA ratios of people with many calls ask for w(n; beta); heavy tails do not."""
    calls = [(s, 1000 + 8 * s + k) for s in range(150) for k in range(6)]
    table = as_table(calls, np.random.default_rng(0))
    cliques = find_cliques(table)
    found = {}
    for name in ("plda", "t5"):
        made = simulate.simulate_table(table, name, 20.0, np.random.default_rng(3))

        def posterior(weight, made=made):
            return solve(build_model(table, cliques, made.links, made.llr, weight=weight))

        found[name] = learn_weight(posterior, made.truth)
        assert learn_weight(posterior, np.full(len(table), -1, np.int8)) is None
    truth = variance_ratio(0.2)
    assert found["plda"] is not None
    assert truth / 4 < found["plda"].beta < truth * 4
    assert found["t5"] is None
