"""The speech of a side as samples, against a plain mask over all samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.sound import chunks
from spklink.sound.audio import channel_blocks
from spklink.sound.speech import frame_energies, speech_frames
from spklink.sound.waveform import Waveform

RATE = 8000


def bursts(seconds: float, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(round(seconds * RATE))
    loud = np.repeat(rng.random(round(seconds * 4) + 1) < 0.4, RATE // 4)
    syllables = 0.55 + 0.45 * np.sin(np.arange(len(noise)) / 318.0)
    return np.asarray(0.1 * noise * syllables * loud[: len(noise)], np.float32)


@pytest.fixture
def call(tmp_path: Path) -> tuple[Path, ...]:
    """Three tracks; the last is shorter."""
    files = tuple(tmp_path / f"{k}.wav" for k in range(3))
    for k, (path, seconds) in enumerate(zip(files, (31.03, 31.03, 12.5), strict=True)):
        sf.write(path, bursts(seconds, k), RATE, subtype="FLOAT")
    return files


def plain(samples: NDArray[np.float32], settings: Waveform) -> NDArray[np.float32]:
    """Sample by sample: one that lies in a step that a widened speech frame reaches into."""
    step, window = settings.step, settings.window
    kept = speech_frames(frame_energies(samples, window, step), settings.detector)
    taken = np.zeros(len(samples), bool)
    for t in np.flatnonzero(kept):
        last = (t * step + window - 1) // step + settings.widen
        taken[max(t - settings.widen, 0) * step : (last + 1) * step] = True
    return samples[taken]


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("widen", [0, 10])
def test_the_speech_of_every_side(call: tuple[Path, ...], rate: int, widen: int) -> None:
    settings = Waveform(rate=rate, widen=widen)
    sides, problems = settings.hear(call, 3)
    assert [problem.kind for problem in problems] == ["lengths"]
    sound = np.concatenate(list(channel_blocks(call, 3, rate)))
    for k, side in enumerate(sides):
        length = round(12.5 * rate) if k == 2 else len(sound)
        expected = plain(np.ascontiguousarray(sound[:length, k]), settings)
        assert side.array.dtype == np.float32
        assert side.array.tobytes() == expected.tobytes()
        assert 2 < side.speech_seconds < len(side.array) / rate < side.seconds


def test_blocks_and_decoding_twice_do_not_change_a_byte(
    call: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Waveform(rate=16000)
    once = [side.array.tobytes() for side in settings.hear(call, 3)[0]]
    assert once == [side.array.tobytes() for side in settings.hear(call, 3, 0.31)[0]]
    monkeypatch.setattr(chunks, "HELD", 0)
    assert once == [side.array.tobytes() for side in settings.hear(call, 3)[0]]


def test_no_more_than_asked_for(call: tuple[Path, ...]) -> None:
    whole, _ = Waveform(rate=8000).hear(call, 3)
    some, _ = Waveform(rate=8000, longest=1.5).hear(call, 3)
    for all_of_it, part in zip(whole, some, strict=True):
        assert part.array.tobytes() == all_of_it.array[: 3 * RATE // 2].tobytes()
        assert part.speech_seconds == all_of_it.speech_seconds


def test_a_bad_track_has_no_samples(call: tuple[Path, ...]) -> None:
    call[1].write_bytes(b"no sound")
    sides, problems = Waveform().hear(call, 3)
    assert problems[0].channel == 1
    assert [len(side.array) > 0 for side in sides] == [True, False, True]


def test_a_file_that_shrinks_meanwhile(
    call: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def shrinking(*args: Any) -> Any:
        passes.append(1)
        blocks = channel_blocks(*args)
        return (next(blocks) for _ in range(2)) if len(passes) > 1 else blocks

    monkeypatch.setattr(chunks, "channel_blocks", shrinking)
    monkeypatch.setattr(chunks, "HELD", 0)
    with pytest.raises(SpklinkError, match=r"0\.wav: the file changed"):
        Waveform(rate=8000).hear(call, 3)


def test_the_key_tells_every_setting() -> None:
    settings = Waveform()
    changed = [
        replace(settings, rate=8000),
        replace(settings, widen=3),
        replace(settings, longest=20.0),
        replace(settings, detector=replace(settings.detector, floor=0.0)),
    ]
    keys = [str(one.key) for one in [settings, *changed]]
    assert len(set(keys)) == len(keys)
