"""Seconds of speech do not depend on how long a recording goes on before and after the call."""

from __future__ import annotations

import numpy as np
import pytest

from spklink.sound.features import side_features
from spklink.sound.speech import Detector, frame_energies, reference_level
from spklink.worlds.voices import RATE, call, make_voices


@pytest.fixture(scope="module")
def side() -> np.ndarray:
    voices = make_voices(2, np.random.default_rng(8))
    return (call(*voices, np.random.default_rng(8), 20.0)[:, 0] / 32768.0).astype(np.float32)


def idle(how: str, seconds: float) -> np.ndarray:
    """Nobody on the line: nothing at all, the last bit, or the smallest steps of mu-law."""
    rng = np.random.default_rng(1)
    steps = {"nothing": [0], "one step": [-1, 0, 1], "mu-law": [-8, 0, 8]}[how]
    return (rng.choice(steps, round(seconds * RATE)) / 32768.0).astype(np.float32)


@pytest.mark.parametrize("how", ["nothing", "one step", "mu-law"])
@pytest.mark.parametrize("where", ["before", "after"])
def test_silence_is_not_speech(side, how, where):
    plain = side_features(side)
    parts = [idle(how, 600.0), side]
    more = side_features(np.concatenate(parts if where == "before" else parts[::-1]))
    assert abs(more.speech_seconds - plain.speech_seconds) <= 0.03  # frames across the seam
    assert plain.speech_seconds > 4


@pytest.mark.parametrize("level", [20.0, 30.0, 40.0])
def test_a_long_hiss_is_not_speech(side, level):
    rng = np.random.default_rng(2)
    hiss = 10 ** (level / 20) / 32768.0 * rng.standard_normal(600 * RATE)
    loud = side / np.abs(side).max()
    plain, more = (side_features(x) for x in (loud, np.concatenate([hiss, loud])))
    assert abs(more.speech_seconds - plain.speech_seconds) <= 0.03


def test_a_click_is_not_the_reference(side):
    energy = frame_energies(side, 200, 80)
    clicked = energy.copy()
    clicked[100:103] = 90.0
    assert reference_level(clicked, Detector()) < reference_level(energy, Detector()) + 2
