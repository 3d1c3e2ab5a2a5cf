"""What a recording looks like: how loud its tracks are, where somebody speaks, what is wrong.

The whole recording goes by once, in blocks; what came out is kept and used as long as its files are
the same ones. Levels are 0 to 255, 255 being the loudest of their track, at most POINTS of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.database.segments import Turns
from spklink.sound.chunks import find_speech
from spklink.sound.files import stamp
from spklink.sound.levels import decibels
from spklink.sound.speech import FRAME_SECONDS, Framing

VERSION = 1  # of what is kept
POINTS = 20_000  # levels of a track
PAUSE = 30  # frames: a shorter one does not part two stretches of speech
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Outline:
    """A recording, drawn."""

    seconds: float
    levels: NDArray[np.uint8]  # (tracks, points)
    speech: list[NDArray[np.float64]]  # a track: (stretches, 2) from, to; seconds
    problems: list[str]


def outline(store: Store, files: Sequence[Path], tracks: int, turns: Turns | None) -> Outline:
    """What was kept of it, else what listening to it gives."""
    said = [[str(path), stamp(path)] for path in files]
    name = key_of(["outline", VERSION, said, tracks, turns])
    kept = store.load(name)
    if kept is not None:
        arrays = kept.arrays
        speech = [arrays[f"speech {k}"] for k in range(tracks)]
        return Outline(kept.about["seconds"], arrays["levels"], speech, kept.about["problems"])
    found = draw(files, tracks, turns)
    arrays = {f"speech {k}": stretches for k, stretches in enumerate(found.speech)}
    about = {"seconds": found.seconds, "problems": found.problems}
    with suppress(OSError):  # a disk that is full, or not ours: it is drawn again next time
        store.write(name, about, arrays | {"levels": found.levels})
    return found


def draw(files: Sequence[Path], tracks: int, turns: Turns | None) -> Outline:
    """Listen to all of it."""
    spoken = find_speech(tuple(files), tracks, Framing(), turns=turns)
    seconds = max(spoken.seconds, default=0.0)
    loud = [decibels(level) for level in spoken.levels]
    width = max(1, -(-max(map(len, loud), default=1) // POINTS))
    points = max(1, -(-max(map(len, loud), default=1) // width))
    levels = np.stack([_amplitudes(level, width, points) for level in loud])
    speech = [stretches(kept) for kept in spoken.kept]
    return Outline(seconds, levels, speech, [str(problem) for problem in spoken.problems])


def _amplitudes(level: NDArray[np.float32], width: int, points: int) -> NDArray[np.uint8]:
    """(points,) the loudest of every `width` frames."""
    filled = np.full(points * width, -np.inf)
    filled[: len(level)] = level
    loudest = filled.reshape(points, width).max(axis=1)
    top = loudest.max(initial=-np.inf)
    if not np.isfinite(top):
        return np.zeros(points, np.uint8)
    return np.asarray(np.rint(255.0 * 10.0 ** ((loudest - top) / 20.0)), np.uint8)


def stretches(kept: Mask) -> NDArray[np.float64]:
    """(stretches, 2) of frames, in seconds, those with a short pause between them as one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
    start, end = edges[::2], edges[1::2]
    apart = np.flatnonzero(start[1:] - end[:-1] > PAUSE)
    first = np.concatenate([start[:1], start[1:][apart]])
    last = np.concatenate([end[:-1][apart], end[-1:]])
    return np.stack([first, last], axis=1) * FRAME_SECONDS
