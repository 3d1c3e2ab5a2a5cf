"""Sound files of every kind, whole and damaged."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.sound.audio import (
    FATAL,
    REMARKS,
    Problem,
    Survey,
    bad_channels,
    channel_blocks,
    probe,
)
from spklink.sound.features import DEFAULT

RATE = 8000
SEED = 20240404
FORMATS = [  # suffix, libsndfile format, subtype, least signal-to-noise ratio in dB
    ("wav", "WAV", "PCM_16", 60),
    ("wav", "WAV", "PCM_U8", 20),  # libsndfile cuts off what does not fit into 8 bits
    ("wav", "WAV", "FLOAT", 120),
    ("wav", "WAV", "ULAW", 30),
    ("wav", "WAV", "ALAW", 30),
    ("flac", "FLAC", "PCM_16", 60),
    ("ogg", "OGG", "VORBIS", 8),
    ("opus", "OGG", "OPUS", 8),
    ("mp3", "MP3", "MPEG_LAYER_III", 8),
    ("sph", "NIST", "PCM_16", 60),
    ("sph", "NIST", "ULAW", 30),
]
NAMES = [f"{suffix}-{subtype}" for suffix, _, subtype, _ in FORMATS]


def voices(seconds: float, rate: int = RATE, seed: int = SEED) -> NDArray[np.float64]:
    """(samples, 2): two different sums of tones that come and go."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    tones = [
        sum(
            rng.uniform(0.2, 1) * np.sin(2 * np.pi * f * time + rng.uniform(0, 6))
            for f in rng.uniform(200, 1500, 6)
        )
        * (1 + np.sin(2 * np.pi * rng.uniform(0.5, 1.5) * time))
        for _ in range(2)
    ]
    return 0.04 * np.stack(tones, axis=1)


def read(
    *files: Path, rate: int = RATE, block_seconds: float = 10.0
) -> tuple[NDArray[np.float32], list[Problem]]:
    survey = Survey(2)
    blocks = list(channel_blocks(files, 2, rate, block_seconds, survey))
    sound = np.concatenate(blocks) if blocks else np.zeros((0, 2), np.float32)
    return sound, survey.problems()


def kinds(problems: list[Problem]) -> list[tuple[str, int | None]]:
    return [(problem.kind, problem.channel) for problem in problems]


def ratio(sound: NDArray[np.float32], truth: NDArray[np.float64]) -> float:
    """Signal-to-noise ratio in dB."""
    return float(10 * np.log10((truth**2).sum() / ((sound - truth) ** 2).sum()))


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def put(name: str, sound: NDArray[np.float64], rate: int = RATE, **how: str) -> Path:
        sf.write(tmp_path / name, sound, rate, **how)
        return tmp_path / name

    return put


# ----------------------------------------------------------------------------- whole files


@pytest.mark.parametrize(("suffix", "form", "subtype", "least"), FORMATS, ids=NAMES)
def test_every_format_comes_back(
    save: Callable[..., Path], suffix: str, form: str, subtype: str, least: float
) -> None:
    truth = voices(3)
    path = save(f"call.{suffix}", truth, format=form, subtype=subtype)
    sound, problems = read(path)
    assert problems == []
    assert sound.dtype == np.float32
    assert sound.shape == truth.shape
    assert ratio(sound, truth) > least
    assert probe((path,), 2).problems == []
    assert probe((path,), 2).seconds == pytest.approx(3, abs=0.05)


def test_gsm_in_two_files(save: Callable[..., Path]) -> None:
    truth = voices(4)
    files = [save(f"{k}.wav", truth[:, k], format="WAV", subtype="GSM610") for k in range(2)]
    sound, problems = read(*files)
    assert problems == []
    assert ratio(sound[: len(truth)], truth) > 8


def test_two_mono_files_are_one_stereo_file(save: Callable[..., Path]) -> None:
    truth = voices(2.5)
    both, _ = read(save("both.wav", truth))
    apart, problems = read(*(save(f"{k}.wav", truth[:, k]) for k in range(2)), block_seconds=0.7)
    assert problems == []
    assert np.array_equal(both, apart)


def test_the_shorter_of_two_files_is_filled_up(save: Callable[..., Path]) -> None:
    truth = voices(5)
    files = (save("a.wav", truth[:, 0]), save("b.wav", truth[: 3 * RATE, 1]))
    survey = Survey(2)
    sound = np.concatenate(list(channel_blocks(files, 2, block_seconds=0.4, survey=survey)))
    assert sound.shape == (5 * RATE, 2)
    assert not sound[3 * RATE :, 1].any()
    assert survey.lengths == [5 * RATE, 3 * RATE]
    assert kinds(survey.problems()) == [("lengths", None)]
    assert "2.0 s" in survey.problems()[0].text


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 16000, 44100, 48000, 96000])
def test_every_rate_is_resampled(save: Callable[..., Path], rate: int) -> None:
    sound, problems = read(save("call.wav", voices(2, rate), rate, subtype="FLOAT"))
    assert problems == []
    truth = voices(2)
    assert abs(len(sound) - len(truth)) <= 1
    inside = slice(800, -800)  # a filter rings at the ends
    assert ratio(sound[: len(truth)][inside], truth[: len(sound)][inside]) > 70


def test_two_files_of_different_rate(save: Callable[..., Path]) -> None:
    files = (save("a.wav", voices(2)[:, 0]), save("b.wav", voices(2, 16000)[:, 1], 16000))
    sound, problems = read(*files)
    assert problems == []
    assert ratio(sound[800:-800], voices(2)[800:-800]) > 50


@pytest.mark.parametrize(
    ("suffix", "form", "subtype"),
    [("flac", "FLAC", "PCM_16"), ("mp3", "MP3", "MPEG_LAYER_III"), ("opus", "OGG", "OPUS")],
)
@pytest.mark.parametrize("rate", [8000, 16000])
def test_blocks_do_not_change_the_samples(
    save: Callable[..., Path], suffix: str, form: str, subtype: str, rate: int
) -> None:
    path = save(f"call.{suffix}", voices(4, rate), rate, format=form, subtype=subtype)
    whole, _ = read(path, block_seconds=100)
    for seconds in (0.013, 0.5, 3.1):
        assert np.array_equal(whole, read(path, block_seconds=seconds)[0])


def test_memory_does_not_grow_with_the_length(save: Callable[..., Path]) -> None:
    def peak(path: Path) -> int:
        tracemalloc.start()
        for _ in channel_blocks((path,), 2, block_seconds=1.0):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    short = save("short.wav", voices(5, 16000), 16000)
    long = save("long.wav", np.tile(voices(5, 16000), (24, 1)), 16000)
    read(short)  # compiled before it is measured
    assert peak(long) < 1.1 * peak(short)


# ------------------------------------------------------------------------- what can be wrong


def test_every_kind_is_either_fatal_or_a_remark() -> None:
    assert not set(FATAL) & set(REMARKS)
    assert Problem("silent", "x", 1).fatal
    assert not Problem("clipped", "x", 1).fatal
    assert bad_channels([Problem("silent", "", 1), Problem("clipped", "", 0)], 2) == (False, True)
    assert bad_channels([Problem("mono", "")], 2) == (True, True)
    assert str(Problem("silent", "nothing", 1)) == "channel 2: silent: nothing"


def test_a_recording_is_one_or_two_files(tmp_path: Path) -> None:
    for files in ((), (tmp_path / "a", tmp_path / "b", tmp_path / "c")):
        with pytest.raises(SpklinkError, match=f"{len(files)} files; give one"):
            list(channel_blocks(files, 2))


def test_unreadable(tmp_path: Path, write: Callable[[str, str | bytes], Path]) -> None:
    for path in (
        tmp_path / "none.wav",
        tmp_path,
        write("note.wav", "not a sound"),
        write("samples.raw", b"\1\2" * 5000),
    ):
        assert kinds(read(path)[1]) == [("unreadable", None)], path
        assert kinds(probe((path,), 2).problems) == [("unreadable", None)], path
    assert "convert them to WAV" in read(path)[1][0].text


def test_an_impossible_rate_is_unreadable(save: Callable[..., Path]) -> None:
    sound, problems = read(save("slow.wav", voices(1), 1))
    assert kinds(problems) == [("unreadable", None)]
    assert len(sound) == 0


def test_empty(save: Callable[..., Path], write: Callable[[str, str | bytes], Path]) -> None:
    assert kinds(read(write("zero.wav", b""))[1]) == [("empty", None)]
    for samples in (0, 1, 500):
        path = save(f"{samples}.wav", voices(1)[:samples])
        assert kinds(read(path)[1]) == [("empty", 0), ("empty", 1)]


@pytest.mark.parametrize("idle", [0, 8, "offset"])
def test_a_silent_channel(save: Callable[..., Path], idle: int | str) -> None:
    sound = voices(2)
    sound[:, 1] = 0.3 if idle == "offset" else np.resize([-1, 0, 1], len(sound)) * int(idle) / 32768
    path = save("call.wav", sound)
    assert kinds(read(path)[1]) == [("silent", 1)]
    (first, second), _ = DEFAULT.hear((path,), 2)
    assert len(first.array)
    assert not len(second.array)


def test_quiet_speech_is_not_silence(save: Callable[..., Path]) -> None:
    assert read(save("call.wav", voices(2) * [1, 0.01]))[1] == []


def test_mono_where_two_are_expected(save: Callable[..., Path]) -> None:
    path = save("call.wav", voices(1)[:, 0])
    assert kinds(read(path)[1]) == [("mono", None)]
    assert kinds(probe((path,), 2).problems) == [("mono", None)]


def test_too_many_channels(save: Callable[..., Path]) -> None:
    assert kinds(read(save("six.wav", np.tile(voices(1), 3)))[1]) == [("channels", None)]
    stereo, mono = save("two.wav", voices(1)), save("one.wav", voices(1)[:, 0])
    sound, problems = read(mono, stereo)
    assert kinds(problems) == [("channels", 1)]
    assert sound[:, 0].any()  # the good file is still used


def test_identical_channels(save: Callable[..., Path]) -> None:
    one = voices(2)[:, 0]
    (first, second), problems = DEFAULT.hear((save("call.wav", np.stack([one, one], 1)),), 2)
    assert kinds(problems) == [("identical", None)]
    assert len(first.array) == len(second.array) == 0
    path = save("one.wav", one)
    assert kinds(read(path, path)[1]) == [("identical", None)]
    assert read(save("half.wav", np.stack([one, one / 2], 1)))[1] == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_samples_that_are_not_numbers(save: Callable[..., Path], value: float) -> None:
    sound = voices(2, 16000)
    sound[9000, 1] = value
    path = save("call.wav", sound, 16000, subtype="FLOAT")
    back, problems = read(path)
    assert kinds(problems) == [("invalid", 1)]
    assert np.isfinite(back).all()


@pytest.mark.parametrize("subtype", ["PCM_16", "ULAW", "ALAW", "PCM_U8", "FLOAT"])
def test_clipping_is_remarked(save: Callable[..., Path], subtype: str) -> None:
    loud = np.clip(voices(2) * [1, 12], -1, 1)
    (first, second), problems = DEFAULT.hear((save("call.wav", loud, subtype=subtype),), 2)
    assert kinds(problems) == [("clipped", 1)]
    assert len(first.array)
    assert len(second.array)


def test_a_few_full_samples_are_not_clipping(save: Callable[..., Path]) -> None:
    sound = voices(2)
    sound[5000:5010, 1] = 1.0
    assert read(save("call.wav", sound))[1] == []


@pytest.mark.parametrize(("suffix", "form", "subtype", "_"), FORMATS, ids=NAMES)
def test_truncated(
    save: Callable[..., Path], suffix: str, form: str, subtype: str, _: float
) -> None:
    path = save(f"call.{suffix}", voices(8), format=form, subtype=subtype)
    content = path.read_bytes()
    path.write_bytes(content[: int(0.7 * len(content))])
    sound, problems = read(path, block_seconds=0.5)
    assert kinds(problems) == [("truncated", None)]
    assert 3 * RATE < len(sound) < 7 * RATE  # what there is, is used


def test_a_header_without_data(save: Callable[..., Path]) -> None:
    path = save("call.wav", voices(1))
    path.write_bytes(path.read_bytes()[:44])
    assert kinds(read(path)[1]) == [("truncated", None), ("empty", 0), ("empty", 1)]


def with_length(path: Path, length: int) -> Path:
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = struct.pack("<I", length)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF])
def test_headers_of_streaming_programs_are_accepted(save: Callable[..., Path], length: int) -> None:
    sound, problems = read(with_length(save("call.wav", voices(2)), length))
    assert problems == []
    assert len(sound) == 2 * RATE


def test_a_header_that_was_never_finished(save: Callable[..., Path]) -> None:
    _, problems = read(with_length(save("call.wav", voices(2)), 0))
    assert kinds(problems) == [("truncated", None), ("empty", 0), ("empty", 1)]
    assert "repair the header" in problems[0].text


# ------------------------------------------------------------------------------ a wild bunch


def damaged(folder: Path, count: int) -> Iterator[tuple[str, Path]]:
    rng = np.random.default_rng(SEED)
    whole = {}
    for suffix, form, subtype, _ in FORMATS:
        path = folder / f"{subtype}.{suffix}"
        sf.write(path, voices(1.5), RATE, format=form, subtype=subtype)
        whole[path] = path.read_bytes()
    names = ["cut", "header", "zeros", "noise", "random", "one", "fast", "eight", "nan", "tail"]
    for n in range(count):
        how = names[n % len(names)]
        source = list(whole)[rng.integers(len(whole))]
        path = folder / f"{n}-{how}{source.suffix}"
        content = bytearray(whole[source])
        start = int(rng.integers(len(content)))
        if how == "cut":
            content = content[:start]
        elif how == "header":
            for at in rng.integers(0, 64, 3):
                content[at] = rng.integers(256)
        elif how == "zeros":
            content[start:] = bytes(len(content) - start)
        elif how == "noise":
            for at in rng.integers(0, len(content), 200):
                content[at] = rng.integers(256)
        elif how == "random":
            content = bytearray(rng.bytes(len(content)))
        elif how == "tail":
            content[64:] = rng.bytes(len(content) - 64)
        path.write_bytes(content)
        if how in ("one", "fast", "eight", "nan"):
            path = path.with_suffix(".wav")
            sound = voices(1, 96000 if how == "fast" else RATE, seed=n)
            sound = sound[:1] if how == "one" else sound
            if how == "nan":
                sound[rng.integers(len(sound), size=5)] = np.nan
            subtype = {"eight": "PCM_U8", "nan": "DOUBLE"}.get(how, "PCM_16")
            sf.write(path, sound, 96000 if how == "fast" else RATE, subtype=subtype)
        yield how, path


def test_two_hundred_damaged_files(tmp_path: Path) -> None:
    always = {"random": "unreadable", "one": "empty", "nan": "invalid"}
    for how, path in damaged(tmp_path, 200):
        (first, second), problems = DEFAULT.hear((path,), 2)
        found = {problem.kind for problem in problems}
        assert found <= set(FATAL) | set(REMARKS)
        assert how not in always or always[how] in found, (path.name, problems)
        assert how not in ("fast", "eight") or not found, (path.name, problems)
        for side, bad in zip((first, second), bad_channels(problems, 2), strict=True):
            assert np.isfinite(side.array).all()
            assert not (bad and len(side.array)), path.name
