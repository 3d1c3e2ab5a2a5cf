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
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.errors import SpklinkError
from spklink.sound.audio import (
    Problem,
    Samples,
    Survey,
    bad_channels,
    channel_blocks,
    good_channels,
)
from spklink.sound.levels import Level, kept_level
from spklink.sound.sameness import SAME_COURSE, SAME_SOUND, alike, same_course
from spklink.sound.speech import (
    SILENCE,
    Framing,
    frame_count,
    frame_energies,
    is_endless,
    is_steady,
    loudest_other,
    speech_frames,
)
from spklink.sound.turns import outside, own_frames, speech_within

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
    own: list[Mask] | None = None  # a track: frames beyond which nothing is its own; None: all are
    levels: list[Level] = field(default_factory=list)  # a track: (frames,) of all of it


def find_speech(
    files: tuple[Path, ...],
    tracks: int,
    framing: Framing,
    block_seconds: float = 10.0,
    turns: Turns | None = None,
) -> Spoken:
    """Decode a recording and tell speech from pauses. With `turns` its tracks are diarized: each
    is the same sound, of which some frames are its own."""
    if turns is not None:
        return _of_turns(turns, tracks, files, framing, block_seconds)
    survey = Survey(tracks)
    levels, heard, held, again = _gone_by(files, framing, block_seconds, survey)
    kept = [
        speech_frames(level, framing.detector, loudest_other(levels, k)) & heard[k]
        for k, level in enumerate(levels)
    ]
    problems = survey.problems()
    problems += _sent_twice(levels, held, framing, good_channels(problems, tracks))
    problems += _without_speech(levels, kept, good_channels(problems, tracks))
    bad = bad_channels(problems, tracks)
    kept = [mask & (not wrong) for mask, wrong in zip(kept, bad, strict=True)]
    loud = [kept_level(level) for level in levels]
    return Spoken(kept, survey.lengths, survey.seconds, problems, again, levels=loud)


def _of_turns(
    turns: Turns, tracks: int, files: tuple[Path, ...], framing: Framing, block_seconds: float
) -> Spoken:
    survey = Survey(1, mixed=True)
    [level], [heard], _, again = _gone_by(files, framing, block_seconds, survey)
    own = own_frames(turns, tracks, framing, len(level))
    kept = [speech_within(level, framing.detector, mask) & heard for mask in own]
    problems = [replace(problem, channel=None) for problem in survey.problems()]
    problems += outside(turns, survey.seconds[0], problems)
    problems += _without_speech([level] * tracks, kept, good_channels(problems, tracks))
    bad = bad_channels(problems, tracks)
    return Spoken(
        [mask & (not wrong) for mask, wrong in zip(kept, bad, strict=True)],
        survey.lengths * tracks,
        survey.seconds * tracks,
        problems,
        lambda: (chunk.repeat(tracks, axis=0) for chunk in again()),
        own,
        [kept_level(np.where(mask, level, SILENCE)) for mask in own],
    )


Levels = list[NDArray[np.float32]]
Chunks = Iterable[Samples]


def _gone_by(
    files: tuple[Path, ...], framing: Framing, block_seconds: float, survey: Survey
) -> tuple[Levels, list[Mask], Chunks, Callable[[], Chunks]]:
    """The energies of all channels, where they may be speech, the chunks that are remembered, and
    all of them once more."""
    energies, held = _Energies(framing), deque[Samples](maxlen=HELD + 1)
    listener, advance = framing.detector.listener(survey.tracks, framing), CHUNK * framing.step
    beyond: Samples | None = None  # samples of the last chunk that may be those of a next one

    def chunks(survey: Survey) -> Iterator[Samples]:
        blocks = channel_blocks(files, survey.tracks, framing.rate, block_seconds, survey)
        return chunks_of(blocks, framing)

    def again() -> Chunks:
        if len(held) <= HELD:
            return held
        held.clear()
        return chunks(Survey(survey.tracks, mixed=survey.mixed))

    for chunk in chunks(survey):
        energies.add(chunk)
        held.append(chunk)
        if listener is not None:
            listener.add(chunk[:, :advance])
            beyond = chunk[:, advance:]
    levels = energies.of(survey.lengths)
    counts = [len(level) for level in levels]
    if listener is None or beyond is None:
        return levels, [np.ones(count, np.bool_) for count in counts], held, again
    listener.add(beyond)
    return levels, listener.masks(counts), held, again


def chunks_of(blocks: Iterable[Samples], framing: Framing) -> Iterator[Samples]:
    """(tracks, samples): chunk c begins with frame c*CHUNK and overlaps with the next."""
    advance = CHUNK * framing.step
    length = (CHUNK + BEFORE + AFTER - 1) * framing.step + framing.window
    chunk, filled = np.empty((0, 0), np.float32), 0
    for block in blocks:
        if not chunk.size:
            chunk = np.empty((block.shape[1], length), np.float32)
        begin = 0
        while begin < len(block):
            part = block[begin : begin + length - filled].T
            chunk[:, filled : filled + part.shape[1]] = part
            begin, filled = begin + part.shape[1], filled + part.shape[1]
            if filled == length:
                yield chunk
                before, chunk, filled = chunk, np.empty_like(chunk), length - advance
                chunk[:, :filled] = before[:, advance:]
    if chunk.size:
        yield chunk[:, :filled]
        if frame_count(filled, framing.window, framing.step) > CHUNK + BEFORE:
            yield chunk[:, advance:filled]  # frames at the end that are not the last chunk's own


def _sent_twice(
    levels: list[NDArray[np.float32]],
    held: Iterable[Samples],
    framing: Framing,
    good: list[int],
) -> list[Problem]:
    """Channels that are one signal, up to its level, its sign and a delay."""
    advance, found = CHUNK * framing.step, set()
    for a, b in combinations(good, 2):
        if (
            same_course(levels[a], levels[b]) > SAME_COURSE
            and alike(held, a, b, advance, framing.rate) > SAME_SOUND
        ):
            found |= {(a, b), (b, a)}
    twin = dict(sorted(found, reverse=True))
    what = "the same sound, at another level, upside down or later, as on channel"
    return [Problem("identical", f"{what} {twin[k] + 1}", k) for k in sorted(twin)]


def _without_speech(
    levels: list[NDArray[np.float32]], kept: list[Mask], good: list[int]
) -> list[Problem]:
    """Channels whose loud frames are all about equally loud; and those that never pause."""
    steady = "equally loud all the time: noise, a tone or a hum, not speech"
    endless = "never pauses: music or noise, rather than one side of a conversation?"
    found = [Problem("steady", steady, k) for k in good if is_steady(levels[k][kept[k]])]
    quiet = {problem.channel for problem in found}
    loud = [k for k in good if k not in quiet and is_endless(kept[k])]
    return found + [Problem("endless", endless, k) for k in loud]


class ChangedError(SpklinkError):
    """A file is not what it was a moment ago."""


def changed(name: str | Path) -> ChangedError:
    """The second time a file was read it was not what it had been."""
    return ChangedError(f"{name}: the file changed while it was read; run again")


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

    def of(self, lengths: list[int]) -> list[NDArray[np.float32]]:
        """The energies of tracks of so many samples; a shorter one was filled up."""
        f, none = self.framing, np.zeros(0, np.float32)
        counts = [frame_count(length, f.window, f.step) for length in lengths]
        return [
            np.concatenate([none, *(part[k] for part in self.parts)])[:count]
            for k, count in enumerate(counts)
        ]
