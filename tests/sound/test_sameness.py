"""One signal on two channels is noticed; two people with an echo of each other are not."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile as sf

from spklink.sound.features import DEFAULT
from spklink.worlds.voices import RATE, call, make_voices

VOICES = make_voices(4, np.random.default_rng(3))


def talk(seed: int, seconds: float = 12.0) -> np.ndarray:
    """(samples, 2) a call, full scale 1.0."""
    return call(VOICES[seed % 2], VOICES[2], np.random.default_rng(seed), seconds) / 32768.0


def problems_of(tmp_path, sound: np.ndarray, rate: int = RATE, subtype: str = "PCM_16"):
    path = tmp_path / "x.wav"
    sf.write(path, sound, rate, subtype=subtype)
    sides, problems = DEFAULT.hear((path,), sound.shape[1])
    for side, found in zip(sides, range(len(sides)), strict=True):
        if any(p.fatal and p.channel in (None, found) for p in problems):
            assert len(side.array) == 0
    return [(p.kind, p.channel) for p in problems if p.fatal]


def later(sound: np.ndarray, samples: int) -> np.ndarray:
    return np.concatenate([np.zeros(samples), sound])[: len(sound)]


VARIANTS = {
    "softer": lambda x: 0.2 * x,
    "much softer": lambda x: 0.02 * x,
    "upside down": lambda x: -x,
    "later": lambda x: later(x, 173),
    "50 ms later": lambda x: later(x, 400),
    "all of it": lambda x: -0.3 * later(x, 87),
    "with noise": lambda x: 0.7 * x + 0.002 * np.random.default_rng(1).standard_normal(len(x)),
}


@pytest.mark.parametrize("how", VARIANTS)
@pytest.mark.parametrize("first", [0, 1])
def test_one_signal_twice(tmp_path, how, first):
    one = talk(5).sum(axis=1)
    pair = [one, VARIANTS[how](one)]
    sound = np.stack([pair[first], pair[1 - first]], 1)
    assert problems_of(tmp_path, sound) == [("identical", 0), ("identical", 1)]


def test_in_mu_law(tmp_path):
    one = talk(5).sum(axis=1)
    sound = np.stack([one, -0.4 * later(one, 100)], 1)
    assert problems_of(tmp_path, sound, subtype="ULAW") == [("identical", 0), ("identical", 1)]


@pytest.mark.parametrize("echo", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_an_echo_is_no_copy(tmp_path, echo, seed):
    sound = talk(seed)
    mixed = sound + echo * np.stack([later(sound[:, 1], 160), later(sound[:, 0], 160)], 1)
    assert problems_of(tmp_path, mixed) == []


def test_only_the_copies_of_three_tracks(tmp_path):
    sound = talk(7)
    three = np.stack([sound[:, 0], sound[:, 1], -0.5 * sound[:, 0]], 1)
    assert problems_of(tmp_path, three) == [("identical", 0), ("identical", 2)]


# ------------------------------------------------------------------------- sound without speech


def steady_sounds(seconds: float = 8.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    time = np.arange(round(seconds * RATE)) / RATE
    tone = np.sin(2 * np.pi * 425 * time)
    return {
        "noise": 0.1 * rng.standard_normal(len(time)),
        "tone": 0.2 * tone,
        "engaged": 0.2 * tone * (time % 1.0 < 0.5),
        "hum": 0.1 * sum(np.sin(2 * np.pi * 50 * k * time) / k for k in range(1, 6)),
        "chord": 0.1 * sum(np.sin(2 * np.pi * f * time) for f in (262, 330, 392)),
    }


@pytest.mark.parametrize("what", steady_sounds())
def test_what_is_equally_loud_is_no_speech(tmp_path, what):
    own = talk(1, 8.0)[:, 0]
    sound = np.stack([steady_sounds()[what], own], 1)
    assert problems_of(tmp_path, sound) == [("steady", 0)]
