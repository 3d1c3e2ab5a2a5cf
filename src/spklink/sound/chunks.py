"""The frames of a recording that are speech, and its sound once more in chunks of frames.

Which frames are speech is known only when the whole recording has gone by, so every front end goes
over it twice. Chunk c begins with frame c x CHUNK and reaches BEFORE + AFTER frames into the next:
what needs the frames around a frame finds them in its chunk. Chunks are (tracks, samples), and do
not depend on the blocks the sound came in. Some are remembered; a longer recording is decoded twice
instead, so that beside the energies only bounded buffers are held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.sound.audio import Problem, Samples, Survey, bad_channels, channel_blocks
from spklink.sound.speech import (
    Framing,
    frame_count,
    frame_energies,
    loudest_other,
    speech_frames,
)

Mask = NDArray[np.bool_]
CHUNK = 1000  # frames worked on at a time
BEFORE, AFTER = 5, 4  # frames a chunk also has: the reach of two deltas, and of the pre-emphasis
HELD = 60  # chunks of audio remembered (10 minutes); longer recordings are decoded twice


@dataclass(frozen=True)
class Spoken:
    """Where the tracks of a recording carry speech."""

    kept: list[Mask]  # a track: (frames,); nothing of a bad channel is kept
    lengths: list[int]  # samples of each track
    seconds: list[float]
    problems: list[Problem]
    chunks: Callable[[], Iterable[Samples]]  # the sound once more; to be asked for once


def find_speech(
    files: tuple[Path, ...], tracks: int, framing: Framing, block_seconds: float = 10.0
) -> Spoken:
    """Decode a recording and tell speech from pauses."""
    survey, energies = Survey(tracks), _Energies(framing)
    held: deque[Samples] = deque(maxlen=HELD + 1)
    blocks = channel_blocks(files, tracks, framing.rate, block_seconds, survey)
    for chunk in chunks_of(blocks, framing):
        energies.add(chunk)
        held.append(chunk)
    problems = survey.problems()
    kept = energies.speech(survey.lengths, bad_channels(problems, tracks))

    def again() -> Iterable[Samples]:
        if len(held) <= HELD:
            return held
        held.clear()
        return chunks_of(channel_blocks(files, tracks, framing.rate, block_seconds), framing)

    return Spoken(kept, survey.lengths, survey.seconds, problems, again)


def chunks_of(blocks: Iterable[Samples], framing: Framing) -> Iterator[Samples]:
    """(tracks, samples): chunk c begins with frame c*CHUNK and overlaps with the next."""
    advance = CHUNK * framing.step
    length = (CHUNK + BEFORE + AFTER - 1) * framing.step + framing.window
    rest: Samples | None = None
    for block in blocks:
        rest = np.ascontiguousarray(block.T) if rest is None else np.hstack([rest, block.T])
        start = 0
        while rest.shape[1] - start >= length:
            yield rest[:, start : start + length].copy()
            start += advance
        rest = rest[:, start:]
    if rest is not None:
        yield rest
        if frame_count(rest.shape[1], framing.window, framing.step) > CHUNK + BEFORE:
            yield rest[:, advance:]  # frames at the end that are not the last chunk's own


def changed(name: str | Path) -> SpklinkError:
    """The second time a file was read it was not what it had been."""
    return SpklinkError(f"{name}: the file changed while it was read; run again")


class _Energies:
    """Frame energies of the tracks, gathered chunk by chunk."""

    def __init__(self, framing: Framing) -> None:
        self.framing = framing
        self.parts: list[tuple[NDArray[np.float32], ...]] = []

    def add(self, chunk: Samples) -> None:
        f = self.framing
        skipped = BEFORE if self.parts else 0
        length = (CHUNK + BEFORE - skipped - 1) * f.step + f.window
        own = chunk[:, skipped * f.step :][:, :length]
        self.parts.append(tuple(frame_energies(track, f.window, f.step) for track in own))

    def speech(self, lengths: list[int], bad: tuple[bool, ...]) -> list[Mask]:
        """Which frames to keep, a track."""
        f, none = self.framing, np.zeros(0, np.float32)
        energies = [
            np.concatenate([none, *(part[k] for part in self.parts)])[
                : frame_count(
                    length, f.window, f.step
                )  # a shorter track was filled up
            ]
            for k, length in enumerate(lengths)
        ]
        return [
            speech_frames(energy, f.detector, loudest_other(energies, k)) & (not bad[k])
            for k, energy in enumerate(energies)
        ]
