"""Recordings of any number of tracks: one file of K channels, or K mono files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.sound.audio import Problem, Survey, channel_blocks, channels_of, probe
from spklink.sound.features import DEFAULT, side_features
from spklink.sound.speech import Detector, loudest_other

RATE = 8000


def tracks(count: int, seconds: float = 4.0) -> NDArray[np.float32]:
    """(samples, count) noise that comes and goes at another pace on every track."""
    rng = np.random.default_rng(count)
    time = np.arange(round(seconds * RATE)) / RATE
    pace = 0.5 + 0.2 * np.arange(count)
    loud = np.sin(2 * np.pi * time[:, None] * pace + np.arange(count)) > 0
    loud = loud * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * time[:, None]))  # syllables
    return np.asarray(0.1 * rng.standard_normal((len(time), count)) * loud, np.float32)


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., tuple[Path, ...]]:
    """One file of all channels, or (`apart`) one a channel."""

    def put(sound: NDArray[np.float32], *, apart: bool) -> tuple[Path, ...]:
        parts = list(sound.T) if apart else [sound]
        files = tuple(tmp_path / f"{apart}-{k}.wav" for k in range(len(parts)))
        for path, part in zip(files, parts, strict=True):
            sf.write(path, part, RATE, subtype="FLOAT")
        return files

    return put


def read(files: tuple[Path, ...], count: int) -> tuple[NDArray[np.float32], list[Problem]]:
    survey = Survey(count)
    blocks = list(channel_blocks(files, count, block_seconds=0.7, survey=survey))
    return np.concatenate(blocks) if blocks else np.zeros((0, count)), survey.problems()


def found(problems: list[Problem]) -> list[str]:
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_every_track_comes_back(
    save: Callable[..., tuple[Path, ...]], count: int, apart: bool
) -> None:
    sound = tracks(count)
    files = save(sound, apart=apart)
    back, problems = read(files, count)
    assert problems == probe(files, count).problems == []
    assert np.array_equal(back, sound)
    assert channels_of(files[0]) == (1 if apart else count)
    sides, problems = DEFAULT.hear(files, count)
    assert problems == []
    for k in range(count):
        alone = side_features(np.ascontiguousarray(sound[:, k]))
        assert sides[k].array.tobytes() == alone.array.tobytes()
        assert sides[k].speech_seconds == alone.speech_seconds > 1


@pytest.mark.parametrize(
    ("files", "count", "remedy"),
    [(2, 3, "one file of 3 channels or 3 mono files"), (2, 1, "one file"), (0, 4, "one file of 4")],
)
def test_another_number_of_files(files: int, count: int, remedy: str) -> None:
    with pytest.raises(SpklinkError, match=f"{files} files; give {remedy}"):
        list(channel_blocks((Path("x.wav"),) * files, count))


def test_another_number_of_channels(save: Callable[..., tuple[Path, ...]]) -> None:
    assert found(read(save(tracks(1), apart=False), 3)[1]) == [
        "mono: one channel where 3 are expected"
    ]
    for have, want in ((2, 4), (4, 3), (2, 1)):
        _, problems = read(save(tracks(have), apart=False), want)
        assert found(problems) == [f"channels: {have} channels where {want} expected"]


@pytest.mark.parametrize("apart", [False, True])
def test_two_tracks_alike_leave_the_third(
    save: Callable[..., tuple[Path, ...]], apart: bool
) -> None:
    sound = tracks(3)
    sound[:, 2] = sound[:, 0]
    sides, problems = DEFAULT.hear(save(sound, apart=apart), 3)
    assert found(problems) == [
        "channel 1: identical: the same sound as on channel 3",
        "channel 3: identical: the same sound as on channel 1",
    ]
    assert [len(side.array) > 0 for side in sides] == [False, True, False]
    sound[:, 1] = sound[:, 0]
    assert found(read(save(sound, apart=apart), 3)[1]) == [
        "identical: all channels carry the same sound"
    ]


def test_alike_in_two_pairs(save: Callable[..., tuple[Path, ...]]) -> None:
    sound = tracks(4)[:, [0, 1, 0, 1]]
    _, problems = read(save(sound, apart=False), 4)
    assert [problem.channel for problem in problems] == [0, 1, 2, 3]


def test_files_of_unequal_length(save: Callable[..., tuple[Path, ...]]) -> None:
    sound = tracks(3, 6.0)
    files = save(sound, apart=True)
    sf.write(files[1], sound[: 3 * RATE, 1], RATE, subtype="FLOAT")
    back, problems = read(files, 3)
    assert found(problems) == ["lengths: the 3 files differ by 3.0 s"]
    assert not back[3 * RATE :, 1].any()
    sides, _ = DEFAULT.hear(files, 3)
    assert [side.seconds for side in sides] == [6.0, 3.0, 6.0]
    files[1].write_bytes(b"no sound")  # what is left is of one length
    sides, problems = DEFAULT.hear(files, 3)
    assert [(problem.kind, problem.channel) for problem in problems] == [("unreadable", 1)]
    assert [len(side.array) > 0 for side in sides] == [True, False, True]


def test_crosstalk_is_held_against_the_loudest_other(
    save: Callable[..., tuple[Path, ...]],
) -> None:
    """The second track is a soft shadow of the third, the first is silent meanwhile."""
    sound = tracks(3, 6.0)
    sound[:, 0] *= np.abs(sound[:, 2]) == 0
    signs = np.random.default_rng(0).choice([-1, 1], len(sound))  # no copy: only as loud
    sound[:, 1] = 0.2 * sound[:, 2] * signs
    files = save(sound, apart=False)
    strict = replace(DEFAULT, detector=Detector(louder_by=0.0))
    assert DEFAULT.hear(files, 3)[0][1].speech_seconds > 2
    first, second, third = strict.hear(files, 3)[0]
    assert second.speech_seconds < 0.3
    assert min(first.speech_seconds, third.speech_seconds) > 1


def test_the_loudest_other() -> None:
    energies = [np.array(e, np.float32) for e in ([9, 9, 9], [1, 5], [4, 2, 7, 3])]
    assert loudest_other(energies, 0).tolist() == [4, 5, 7, 3]
    assert loudest_other(energies, 2).tolist() == [9, 9, 9]
    assert loudest_other(energies[:1], 0) is None
