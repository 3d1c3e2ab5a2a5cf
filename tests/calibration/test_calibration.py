"""Calibrators as objects, and how they are fitted to weighted trials."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from spklink import SpklinkError
from spklink.calibration.curves import Line, StepCurve, load, pair_speech, save
from spklink.calibration.fitting import Trials, fit, stated_default, supervised
from spklink.calibration.kinds.cmlg import gaussian_line
from spklink.calibration.logistic import Regression, logistic
from spklink.calibration.table import KINDS


def gaussians(mu=4.0, count=20_000, seed=0):
    rng = np.random.default_rng(seed)
    spread = np.sqrt(2 * mu)
    return mu + spread * rng.standard_normal(count), -mu + spread * rng.standard_normal(count)


def test_calibrated_gaussians_need_no_line():
    """N(+-mu, 2 mu): the line of the definition is the identity."""
    assert gaussian_line(4.0, 8.0, -4.0, 8.0) == (1.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_the_way_back(kind):
    """Calibrated scores, moved and stretched: each kind undoes that where there are trials."""
    same, other = gaussians()
    speech = np.zeros(len(same))
    found = supervised(3 * same + 7, 3 * other + 7, kind, speech_same=speech, speech_other=speech)
    assert (found.kind, found.source) == (kind, "supervised")
    at = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    assert np.allclose(found(3 * at + 7, np.zeros(5)), at, atol=0.25)


def test_logistic_regression_finds_the_least_cost():
    """Against a general minimiser, with weights and priors of all kinds."""
    rng = np.random.default_rng(1)
    columns = np.column_stack([rng.normal(size=(300, 2)), np.ones(300)])
    same, other = rng.random(300) * (columns[:, 0] > -0.5), rng.random(300)
    prior = np.array([0.1, 0.5, 0.0])

    def loss(theta):
        llr = columns @ theta
        cost = same @ np.logaddexp(0, -llr) + other @ np.logaddexp(0, llr)
        return cost + 0.5 * prior @ theta**2

    found = logistic(Regression(columns, same, other, prior), np.zeros(3))
    best = minimize(
        loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    assert np.allclose(found, best.x, atol=1e-4)
    assert loss(found) <= best.fun + 1e-9


def test_separated_scores_do_not_ask_for_infinity():
    line = supervised(np.array([5.0, 6.0, 7.0]), np.linspace(-1, 1, 100), "lr")
    assert 0.0 < line.scale < 100.0


def test_speech_changes_what_a_score_is_worth():
    """Scores whose slope grows with the speech: lr-dur finds both, lr a compromise."""
    rng = np.random.default_rng(2)
    seconds = rng.uniform(3, 60, 40_000)
    speech = np.log(seconds / 10)
    slope = 1.0 + 0.5 * speech
    same, other = gaussians(2.0, len(seconds), seed=3)
    found = supervised(
        same / slope, other / slope, "lr-dur", speech_same=speech, speech_other=speech
    )
    assert found.scale == pytest.approx(1.0, abs=0.05)
    assert found.scale_speech == pytest.approx(0.5, abs=0.05)
    assert not supervised(same / slope, other / slope, "lr").needs_speech


def test_pair_speech_is_zero_at_ten_seconds():
    found = pair_speech(
        np.array([10.0, 10.0, 1000.0, 0.0]), np.array([0, 0, 0]), np.array([1, 2, 3])
    )
    assert np.allclose(found, [0.0, np.log(100.0) / 2, np.log(0.01) / 2])


@given(
    st.sampled_from(list(KINDS)),
    st.floats(0.01, 1000.0),
    st.floats(-1e4, 1e4),
    st.integers(0, 3),
)
def test_a_factor_or_an_offset_changes_nothing(kind, factor, offset, seed):
    same, other = gaussians(2.0, 200, seed)
    speech = np.random.default_rng(seed).normal(size=200)
    more = {"speech_same": speech, "speech_other": -speech}
    plain = supervised(same, other, kind, **more)
    moved = supervised(factor * same + offset, factor * other + offset, kind, **more)
    assert np.allclose(plain(same, speech), moved(factor * same + offset, speech), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(tmp_path, kind):
    same, other = gaussians(count=100)
    speech = np.linspace(-1, 1, 100)
    made = supervised(same, other, kind, speech_same=speech, speech_other=speech)
    save(tmp_path / "c.json", made, rounds=3)
    assert load(tmp_path / "c.json") == made
    assert json.loads((tmp_path / "c.json").read_text())["rounds"] == 3


@pytest.mark.parametrize(
    "content",
    [
        '{"kind": "lr"}',
        '{"kind": "lr", "scale": "x", "offset": 0}',
        '{"kind": "pav", "edges": [1, 0], "values": [0, 1, 2]}',
        '{"kind": "pav", "edges": [0], "values": [1]}',
        '{"kind": "pav", "edges": [0], "values": [2, 1]}',
        "[1, 2]",
        '{"kind": "spline", "scale": 1, "offset": 0}',
        '{"kind": "lr", "scale": true, "offset": 0}',
        '{"kind": "lr", "scale": -1, "offset": 0}',
        '{"kind": "lr-floor", "scale": 1, "offset": 0, "floor": 3}',
    ],
)
def test_other_files_are_refused(write, content):
    with pytest.raises(SpklinkError, match=r"c\.json: not a calibration"):
        load(write("c.json", content))


def test_a_line_by_speech_needs_speech():
    line = Line(1.0, 0.0, 0.5, 0.0, kind="lr-dur")
    with pytest.raises(SpklinkError, match="--sides"):
        line(np.zeros(3))
    with pytest.raises(SpklinkError, match="seconds of speech"):
        fit(Trials(np.zeros(2), np.array([1.0, 0]), np.array([0, 1.0])), "lr-dur", source="")


def test_beyond_the_speech_it_knows_the_ends_serve():
    line = Line(1.0, 0.0, -2.0, 0.5, speech_low=-1.0, speech_high=0.25, kind="lr-dur")
    at = np.array([2.0, 2.0, 2.0])
    assert line(at, np.array([-9.0, 0.25, 9.0])).tolist() == [5.5, 1.125, 1.125]
    steep = Line(1.0, 0.0, -2.0, 0.0, speech_low=-1.0, speech_high=3.0, kind="lr-dur")
    assert steep(at, np.full(3, 3.0)).tolist() == [0.0, 0.0, 0.0]  # never falling


def test_what_cannot_be_fitted():
    with pytest.raises(SpklinkError, match="needs scores of both kinds"):
        supervised(np.zeros(0), np.zeros(5))
    with pytest.raises(SpklinkError, match="are equal"):
        supervised(np.zeros(5), np.zeros(5))
    with pytest.raises(SpklinkError, match="not one of cmlg"):
        supervised(*gaussians(count=9), "spline")


def test_the_default_says_that_it_is_a_guess():
    line = stated_default(np.array([1.0, 3.0]), "no calls")
    assert (line.scale, line.kind) == (1.0, "default")
    assert "not calibrated: no calls" in line.source
    assert stated_default(np.zeros(0), "").scale == 0.0


def test_steps_rise_and_end():
    curve = StepCurve((0.0, 1.0), (-2.0, 0.5, 3.0))
    assert curve(np.array([-9.0, 0.0, 0.5, 1.0])).tolist() == [-2.0, 0.5, 0.5, 3.0]
