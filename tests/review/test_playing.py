"""Recordings as browsers play them: any range of bytes, from any format, at any place."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spklink.errors import SpklinkError
from spklink.review import decoders, playing
from spklink.review.gsm import opened_at
from spklink.review.playing import ASIDE, HEADER, HIGHEST, playable

RNG = np.random.default_rng(0)
SECONDS = 4


def voice(rate: int, channels: int) -> np.ndarray:
    """Something that changes all the time, below 3 kHz, different on every channel."""
    time = np.arange(SECONDS * rate) / rate
    tones = [
        np.sin(2 * np.pi * (200 + 300 * k) * time + 4 * np.sin(3 * time)) for k in range(channels)
    ]
    return 0.3 * np.stack(tones, axis=1)


def written(path, rate, channels, **how):
    soundfile.write(path, voice(rate, channels), rate, **how)
    return path


def whole(sound, heard):
    return b"".join(sound.bytes_from(0, sound.size, heard))


def decoded(data):
    samples, rate = soundfile.read(io.BytesIO(data), always_2d=True)
    return samples, rate


FORMATS = [
    ("pcm.wav", 8000, {"subtype": "PCM_16"}),
    ("ulaw.wav", 8000, {"subtype": "ULAW"}),
    ("ulaw.sph", 8000, {"format": "NIST", "subtype": "ULAW"}),
    ("call.flac", 8000, {}),
    ("call.au", 16000, {"subtype": "ULAW"}),
    ("call.ogg", 16000, {"subtype": "VORBIS"}),
]


@pytest.mark.parametrize(("name", "rate", "how"), FORMATS, ids=[f[0] for f in FORMATS])
def test_every_format_is_16_bit_wav(tmp_path, name, rate, how):
    path = written(tmp_path / name, rate, 2, **how)
    sound = playable([path], 2, mixed=False)
    samples, found = decoded(whole(sound, [0, 1]))
    original, _ = soundfile.read(path, always_2d=True)
    first, second = original.T
    assert found == rate
    assert soundfile.info(io.BytesIO(whole(sound, [0]))).subtype == "PCM_16"
    assert np.abs(samples[:, 0] - (first + ASIDE * second)).max() < 1e-4
    assert np.abs(samples[:, 1] - (ASIDE * first + second)).max() < 1e-4


def test_gsm_of_one_channel_a_file(tmp_path):
    paths = [written(tmp_path / f"{k}.wav", 8000, 1, subtype="GSM610") for k in range(2)]
    sound = playable(paths, 2, mixed=False)
    samples, _ = decoded(whole(sound, [1]))
    original, _ = soundfile.read(paths[1])
    assert np.abs(samples - original[: len(samples), None]).max() < 1e-4


def test_gsm_is_opened_in_its_middle(tmp_path):
    """Speech has pauses, in which a decoder forgets."""
    path, rng = tmp_path / "x.wav", np.random.default_rng(2)
    bursts = np.repeat(rng.random(40) > 0.5, 4000) * 0.1 * rng.normal(size=160_000)
    soundfile.write(path, bursts, 8000, subtype="GSM610")
    sound = playable([path], 1, mixed=False)
    data = whole(sound, [0])
    for start in (0, 319, 8001, 50_000, 123_456, sound.frames - 100):
        first = HEADER + 4 * start
        assert b"".join(sound.bytes_from(first, first + 4000, [0])) == data[first : first + 4000]
    later, at = opened_at(path, 123_456)
    with later:
        assert 100_000 < at <= 123_456
        assert later.seek(0, 2) < path.stat().st_size / 2


def test_the_way_around_an_mp3_is_kept(tmp_path, monkeypatch):
    path = written(tmp_path / "x.mp3", 16_000, 2, subtype="MPEG_LAYER_III")
    decoders.learn(path)
    data = whole(playable([path], 2, mixed=False), [0, 1])
    opened = []
    monkeypatch.setattr(decoders, "Decoder", lambda *given: opened.append(given))
    sound = playing.Playable((playing.Part(path, 16_000, 4 * 16_000, 2),), 2, False, 16_000, 64_000)
    part = b"".join(sound.bytes_from(HEADER + 40_000, HEADER + 60_000, [0, 1]))
    assert opened == []
    far = (
        np.frombuffer(part, "<i2").astype(int) - np.frombuffer(data, "<i2")[22 + 20_000 :][:10_000]
    )
    assert np.abs(far).max() <= 2


def test_a_track_alone_is_in_the_middle(tmp_path):
    path = written(tmp_path / "k.wav", 8000, 3)
    sound = playable([path], 3, mixed=False)
    for k in range(3):
        samples, _ = decoded(whole(sound, [k]))
        assert np.abs(samples - soundfile.read(path)[0][:, [k, k]]).max() < 1e-4
    nothing, _ = decoded(whole(sound, []))
    assert not nothing.any()


def test_diarized_tracks_are_one_sound(tmp_path):
    path = written(tmp_path / "mix.wav", 8000, 2)
    sound = playable([path], 5, mixed=True)
    samples, _ = decoded(whole(sound, [3]))
    assert np.abs(samples[:, 0] - soundfile.read(path)[0].mean(axis=1)).max() < 1e-4


@given(st.integers(0, 200_000), st.integers(0, 200_000))
def test_any_range_is_that_of_the_whole(tmp_path_factory, first, after):
    sound, data = any_range(tmp_path_factory)
    first, after = sorted((first % (sound.size + 1), after % (sound.size + 1)))
    assert b"".join(sound.bytes_from(first, after, [0, 1])) == data[first:after]


def any_range(factory, made={}):  # noqa: B006
    if not made:
        path = written(factory.mktemp("range") / "x.flac", 8000, 2)
        made["sound"] = playable([path], 2, mixed=False)
        made["data"] = whole(made["sound"], [0, 1])
    return made["sound"], made["data"]


@pytest.mark.parametrize("rate", [44_100, 48_000, 96_000])
def test_resampled_sound_is_the_same_however_one_comes_to_it(tmp_path, rate):
    path = written(tmp_path / "high.wav", rate, 2)
    sound = playable([path], 2, mixed=False)
    assert sound.rate == HIGHEST
    data = whole(sound, [0])
    assert len(data) == sound.size == HEADER + 4 * SECONDS * HIGHEST
    samples, _ = decoded(data)
    expected = voice(HIGHEST, 2)[:, 0]
    inner = slice(2000, -2000)
    assert np.abs(samples[inner, 0] - expected[inner]).max() < 1e-3
    for start in (1, 30_001, 2 * HIGHEST, 3 * HIGHEST + 77):
        first = HEADER + 4 * start
        part = np.frombuffer(b"".join(sound.bytes_from(first, sound.size, [0])), "<i2")
        there = np.frombuffer(data[first:], "<i2")
        assert np.abs(part.astype(int) - there).max() <= 1


def test_files_of_unequal_rate_and_length(tmp_path):
    one = written(tmp_path / "one.wav", 8000, 1)
    soundfile.write(tmp_path / "two.wav", voice(16_000, 1)[: 2 * 16_000], 16_000)
    sound = playable([one, tmp_path / "two.wav"], 2, mixed=False)
    assert (sound.rate, sound.seconds) == (16_000, SECONDS)
    samples, _ = decoded(whole(sound, [1]))
    assert samples[: 2 * 16_000].any()
    assert not samples[2 * 16_000 :].any()


def test_what_is_too_long_for_wav_gets_a_lower_rate(tmp_path, monkeypatch):
    path = written(tmp_path / "x.wav", 16_000, 2)
    monkeypatch.setattr(playing, "LONGEST", 4 * SECONDS * 9000)
    assert playable([path], 2, mixed=False).rate == 8000


def test_what_cannot_be_played_is_told_in_words(tmp_path):
    good = written(tmp_path / "x.wav", 8000, 2)
    (tmp_path / "junk.wav").write_bytes(b"not sound")
    os.mkfifo(tmp_path / "pipe")
    for files, tracks, words in (
        ([], 2, "names no recording"),
        ([tmp_path / "none.wav"], 2, "no such file"),
        ([tmp_path / "junk.wav"], 2, "not a sound file"),
        ([tmp_path / "pipe"], 2, "a pipe"),
        ([tmp_path], 2, "a folder"),
        ([good], 3, "2 channels where 3"),
        ([good, good], 2, "4 channels where 2"),
    ):
        with pytest.raises(SpklinkError, match=words):
            playable(files, tracks, mixed=False)


def test_what_breaks_off_is_silence_to_the_end(tmp_path):
    path = written(tmp_path / "x.wav", 8000, 2)
    sound = playable([path], 2, mixed=False)
    with path.open("r+b") as file:
        file.truncate(20_000)
    data = whole(sound, [0, 1])
    assert len(data) == sound.size
    path.unlink()
    assert len(whole(sound, [0, 1])) == sound.size
