"""Speech detection and features against plain references written from their definitions."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtri

from spklink.errors import SpklinkError
from spklink.sound import chunks, features, speech
from spklink.sound.audio import channel_blocks
from spklink.sound.features import DEFAULT, PRESETS, Cepstra, mfcc, side_features, warp
from spklink.sound.speech import Detector, frame_energies, speech_frames, speech_seconds

RATE, STEP, WINDOW = 8000, 80, 200
Sound = NDArray[np.float32]


def babble(seconds: float, seed: int = 0, pauses: bool = True) -> Sound:
    """Noise with a changing spectrum; with pauses, silent for about half of the time."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(round(seconds * RATE))
    time = np.arange(len(noise)) / RATE
    coloured = noise + np.sin(3 * time) * np.roll(noise, 1) + np.cos(5 * time) * np.roll(noise, 3)
    loudness = np.sin(2 * np.pi * 0.4 * time + seed) > 0 if pauses else 1.0
    loudness = loudness * (0.6 + 0.4 * np.sin(2 * np.pi * 4.1 * time + seed))  # syllables
    return np.asarray(0.03 * coloured * loudness + 1e-5 * noise, np.float32)


@pytest.fixture
def call(tmp_path: Path) -> tuple[Path, ...]:
    path = tmp_path / "call.wav"
    sf.write(path, np.stack([babble(34, 1), babble(34, 2)], 1), RATE, subtype="FLOAT")
    return (path,)


# ------------------------------------------------------------------------------------ speech


def plain_energy(samples: Sound, t: int) -> float:
    frame = 32768 * samples[t * STEP : t * STEP + WINDOW].astype(np.float64)
    return float(10 * np.log10(np.mean((frame - frame.mean()) ** 2)))


def test_frame_energies_follow_their_definition() -> None:
    samples = babble(3) + np.float32(0.4)
    energy = frame_energies(samples, WINDOW, STEP)
    assert len(energy) == (len(samples) - WINDOW) // STEP + 1
    assert np.allclose(energy, [plain_energy(samples, t) for t in range(len(energy))], atol=1e-3)


def test_zero_decibels_are_one_step_of_sixteen_bits() -> None:
    steps = np.resize([1, -1], 800) / np.float32(32768)
    assert np.allclose(frame_energies(steps.astype(np.float32), WINDOW, STEP), 0, atol=1e-6)
    assert np.all(frame_energies(np.zeros(800, np.float32), WINDOW, STEP) == speech.SILENCE)
    assert len(frame_energies(np.zeros(199, np.float32), WINDOW, STEP)) == 0


def test_the_default_detector() -> None:
    energy = np.array([50.0] * 90 + [30.0, 20.1, 20.0, 19.9, 9.0] * 2)
    kept = speech_frames(energy, speech.DEFAULT)
    assert kept[:90].all()
    assert kept[90:].tolist() == [True, True, False, False, False] * 2
    assert speech_seconds(kept) == 0.94
    quiet = speech_frames(np.array([11.0, 10.0, 9.0, -100.0]), speech.DEFAULT)
    assert quiet.tolist() == [True, False, False, False]


def test_one_click_moves_the_paper_detector_only() -> None:
    energy = np.array([40.0] * 999 + [90.0])
    assert speech_frames(energy, speech.PAPER).sum() == 1
    assert speech_frames(energy, speech.DEFAULT).all()


def test_the_paper_detector_has_no_floor() -> None:
    energy = np.array([5.0, -10.0, -24.9, -25.1])
    assert speech_frames(energy, speech.PAPER).tolist() == [True, True, True, False]
    assert not speech_frames(energy, speech.DEFAULT).any()


def test_crosstalk_can_be_rejected() -> None:
    own, other = np.array([50.0, 50.0, 50.0, 50.0]), np.array([20.0, 48.0, 60.0])
    for louder_by, expected in ((0.0, [1, 1, 0, 1]), (3.0, [1, 0, 0, 1]), (None, [1, 1, 1, 1])):
        kept = speech_frames(own, Detector(louder_by=louder_by), other)
        assert kept.astype(int).tolist() == expected


def test_speech_is_found_where_it_is() -> None:
    samples = np.random.default_rng(0).normal(0, 1e-5, 4 * RATE).astype(np.float32)
    samples[RATE : 2 * RATE] = 0.1 * np.random.default_rng(1).standard_normal(RATE)
    side = side_features(samples)
    assert side.speech_seconds == pytest.approx(1.0, abs=0.03)
    assert len(side.array) == round(100 * side.speech_seconds)
    assert side.seconds == 4.0


# -------------------------------------------------------------------------------------- MFCC


def plain_cepstra(samples: Sound, settings: Cepstra) -> NDArray[np.float64]:
    """Straight from the definitions, in float64, with a matrix for the Fourier transform."""
    x = samples.astype(np.float64) * 32768
    x = x - 0.97 * np.concatenate([x[:1], x[:-1]])
    window, step = settings.rate // 40, settings.rate // 100
    size = 256 if settings.rate == 8000 else 512
    taper = [0.54 - 0.46 * np.cos(2 * np.pi * i / (window - 1)) for i in range(window)]
    fourier = np.exp(-2j * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(window)) / size)
    bank = plain_bank(settings, size)
    order, band = np.arange(settings.cepstra)[:, None], np.arange(settings.bands)
    cosines = np.sqrt(2 / settings.bands) * np.cos(np.pi * order * (band + 0.5) / settings.bands)
    cosines[0] /= np.sqrt(2)
    starts = range(0, len(x) - window + 1, step)
    power = np.abs([taper * x[start : start + window] for start in starts] @ fourier.T) ** 2
    return np.asarray(np.log(np.maximum(power @ bank.T, 1.0)) @ cosines.T)


def plain_bank(settings: Cepstra, size: int) -> NDArray[np.float64]:
    def mel(f: float) -> float:
        return 2595 * float(np.log10(1 + f / 700))

    low, high = mel(settings.lowest), mel(settings.highest)
    edges = [low + (high - low) * j / (settings.bands + 1) for j in range(settings.bands + 2)]
    bank = np.zeros((settings.bands, size // 2 + 1))
    for j, (a, b, c) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        for k in range(size // 2 + 1):
            m = mel(k * settings.rate / size)
            if a < m <= b:
                bank[j, k] = (m - a) / (b - a)
            elif b < m < c:
                bank[j, k] = (c - m) / (c - b)
    return bank


def plain_deltas(x: NDArray[np.float64]) -> NDArray[np.float64]:
    padded = np.pad(x, ((2, 2), (0, 0)), "edge")
    last = len(x) + 2
    return sum(
        n * (padded[2 + n : last + n] - padded[2 - n : last - n]) for n in (1, 2)
    ) / np.float64(10)


@pytest.mark.parametrize(
    "settings",
    [DEFAULT, Cepstra(bands=30, cepstra=13, lowest=0, highest=4000), Cepstra(rate=16000)],
)
@pytest.mark.parametrize("frames", [1, 2, 5, 8, 60, 1004, 1005, 1006, 1008, 1009, 2030])
def test_cepstra_and_deltas_follow_their_definition(settings: Cepstra, frames: int) -> None:
    window, step = settings.window, settings.step
    count = (frames - 1) * step + window + step // 2
    samples = babble(count / RATE, frames)
    samples[: len(samples) // 3] *= 1e-4  # some energies fall below the floor
    found = mfcc(samples, settings)
    cepstra = plain_cepstra(samples, settings)
    delta = plain_deltas(cepstra)
    expected = np.hstack([cepstra, delta, plain_deltas(delta)])
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (frames, 3 * settings.cepstra)
    assert np.abs(found - expected).max() < 2e-3


def test_no_whole_frame_no_features() -> None:
    for samples in (0, 1, 199):
        assert mfcc(np.zeros(samples, np.float32)).shape == (0, 60)
        assert side_features(np.zeros(samples, np.float32)).array.shape == (0, 60)


def test_pauses_are_skipped_not_cut_out() -> None:
    """Deltas are those of the whole recording, though cepstra are computed near speech only."""
    samples = babble(25, 3)
    kept = speech_frames(frame_energies(samples, WINDOW, STEP), speech.DEFAULT)
    assert 0.3 < kept.mean() < 0.7
    some = features._features(chunks.chunks_of([samples[:, None]], DEFAULT), [kept], DEFAULT)
    assert np.abs(some[0] - mfcc(samples)[kept]).max() < 1e-4


# ----------------------------------------------------------------------------------- warping


def plain_warp(x: NDArray[np.float32], window: int) -> NDArray[np.float32]:
    window = min(window, len(x))
    out = np.empty_like(x)
    for t in range(len(x)):
        start = min(max(t - window // 2, 0), len(x) - window)
        ordered = np.sort(x[start : start + window], axis=0)
        rank = 1 + (ordered < x[t]).sum(axis=0)  # the first place that it could take in this order
        out[t] = ndtri((rank - 0.5) / window)
    return out


def columns(frames: int, seed: int) -> NDArray[np.float32]:
    """Smooth, drifting, tied, constant, wild, and sorted values."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((frames, 7)).astype(np.float32)
    x[:, 1] = np.cumsum(x[:, 1])
    x[:, 2] = np.round(2 * x[:, 2])
    x[:, 3] = 7.0
    x[:, 4] = np.exp(4 * x[:, 4])
    x[:, 5] = np.arange(frames)
    x[: frames // 3, 6] = 0.0
    return x


@pytest.mark.parametrize("frames", [1, 2, 3, 399, 400, 401, 402, 403, 1200, 4095, 4096, 4097, 4400])
def test_warping_is_ranking(frames: int) -> None:
    x = columns(frames, frames)
    before = x.copy()
    assert np.array_equal(warp(x), plain_warp(before, 401))


def test_warping_over_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = columns(2000, 5)
    expected = plain_warp(x, 401)
    for rows in (401, 450, 999, 2000):
        monkeypatch.setattr(features, "WARPED", rows)
        assert np.array_equal(warp(x.copy()), expected)


@given(st.integers(1, 90), st.integers(1, 50), st.integers(0, 1000))
def test_warping_with_any_window(frames: int, window: int, seed: int) -> None:
    x = columns(frames, seed)
    assert np.array_equal(warp(x.copy(), window), plain_warp(x, window))


def test_equal_values_get_the_lowest_of_their_ranks() -> None:
    x = np.array([[3.0], [1.0], [1.0], [2.0]], np.float32)
    expected = ndtri(np.array([3.5, 0.5, 0.5, 2.5]) / 4)
    assert np.allclose(warp(x)[:, 0], expected)


def test_nothing_to_warp() -> None:
    assert warp(np.zeros((0, 60), np.float32)).shape == (0, 60)


# ------------------------------------------------------------------------------ whole front end


def front_end(
    files: tuple[Path, ...], settings: Cepstra = DEFAULT, **how: float
) -> tuple[Any, ...]:
    (first, second), problems = settings.hear(files, 2, **how)
    return first, second, problems


def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(
        x.array.tobytes() == y.array.tobytes()
        and (x.speech_seconds, x.seconds) == (y.speech_seconds, y.seconds)
        for x, y in zip(a[:2], b[:2], strict=True)
    )


def test_both_sides_are_what_each_side_gives(call: tuple[Path, ...]) -> None:
    first, second, problems = front_end(call)
    sound = np.concatenate(list(channel_blocks(call, 2)))
    assert problems == []
    alone = tuple(side_features(np.ascontiguousarray(sound[:, k])) for k in range(2))
    assert same((first, second), alone)
    assert first.array.shape == (round(100 * first.speech_seconds), 60)
    assert 10 < first.speech_seconds < 24
    assert abs(first.array.mean()) < 0.01
    assert first.array.std() == pytest.approx(1, abs=0.02)


def test_blocks_do_not_change_a_byte(call: tuple[Path, ...]) -> None:
    whole = front_end(call, block_seconds=100)
    for seconds in (0.0301, 1.7, 10.0, 12.3):
        assert same(whole, front_end(call, block_seconds=seconds))


def test_decoding_twice_does_not_change_a_byte(
    call: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = front_end(call)
    for held in (0, 1, 3):
        monkeypatch.setattr(chunks, "HELD", held)
        assert same(once, front_end(call))


def test_sides_of_unequal_length(tmp_path: Path) -> None:
    sounds = [babble(40, 1), babble(0.303, 2, pauses=False)]
    sounds[1][1500:] *= 0.01  # speech only if what fills up the shorter file were counted
    files = []
    for k, sound in enumerate(sounds):
        files.append(tmp_path / f"{k}.wav")
        sf.write(files[-1], sound, RATE, subtype="FLOAT")
    first, second, problems = front_end(tuple(files))
    assert [problem.kind for problem in problems] == ["lengths"]
    assert same((first, second), tuple(side_features(sound) for sound in sounds))


def test_one_unreadable_file_leaves_the_other_side(call: tuple[Path, ...], tmp_path: Path) -> None:
    sf.write(tmp_path / "good.wav", babble(12, 1), RATE, subtype="FLOAT")
    first, second, problems = front_end((tmp_path / "none.wav", tmp_path / "good.wav"))
    assert [(problem.kind, problem.channel) for problem in problems] == [("unreadable", 0)]
    assert first.array.shape == (0, 60)
    assert first.speech_seconds == first.seconds == 0.0
    assert same((second, second), (side_features(babble(12, 1)),) * 2)


def test_the_presets_differ_in_what_they_call_speech(call: tuple[Path, ...]) -> None:
    whole_band = {"lowest": 0.0, "highest": 4000.0}
    assert replace(PRESETS["paper"], detector=speech.DEFAULT, **whole_band) == PRESETS["default"]
    samples = babble(20, 1, pauses=False)
    samples[5000:5200] *= 300
    clicked = [side_features(samples, PRESETS[name]).speech_seconds for name in PRESETS]
    assert clicked[0] > 19
    assert clicked[1] < 1


def test_crosstalk_reaches_the_detector(tmp_path: Path) -> None:
    loud, path = babble(12, 1), tmp_path / "call.wav"
    other = 0.1 * loud * np.random.default_rng(0).choice([-1, 1], len(loud))  # no copy
    sf.write(path, np.stack([loud, other], 1), RATE, subtype="FLOAT")
    settings = replace(DEFAULT, detector=Detector(louder_by=0.0))
    first, second, _ = front_end((path,), settings)
    assert first.speech_seconds > 4
    assert second.speech_seconds < 0.3
    assert front_end((path,))[1].speech_seconds > 4


def test_memory_is_that_of_the_speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def peak(minutes: int) -> int:
        path = tmp_path / f"{minutes}.wav"
        with sf.SoundFile(path, "w", RATE, 2, "PCM_16") as out:
            out.write(np.stack([babble(20, 1), babble(20, 2)], 1))
            for _ in range(minutes):
                out.write(np.zeros((60 * RATE, 2), np.int16))
        tracemalloc.start()
        front_end((path,))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    monkeypatch.setattr(chunks, "HELD", 3)
    peak(1)
    frames = 60 * 100 * 20
    assert peak(21) - peak(1) < 50 * frames  # bytes; both sides together, energies only


def test_a_file_that_shrinks_meanwhile(
    call: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def shrinking(*args: Any) -> Iterator[Sound]:
        passes.append(1)
        blocks = channel_blocks(*args)
        return (next(blocks) for _ in range(2)) if len(passes) > 1 else blocks

    monkeypatch.setattr(chunks, "channel_blocks", shrinking)
    monkeypatch.setattr(chunks, "HELD", 0)
    with pytest.raises(SpklinkError, match=r"call\.wav: the file changed"):
        front_end(call)


def test_real_calls(real_calls: Path) -> None:
    with (real_calls / "conversations.csv").open() as table:
        rows = list(csv.DictReader(table))[::60]
    for row in rows:
        first, second, problems = front_end((real_calls / row["audio"],))
        assert not any(problem.fatal for problem in problems)
        for side in (first, second):
            assert 2 < side.speech_seconds < side.seconds
            assert np.isfinite(side.array).all()
            assert side.array.std() == pytest.approx(1, abs=0.05)
