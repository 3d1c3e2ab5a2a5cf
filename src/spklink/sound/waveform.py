"""The speech of a side as samples, for recognizers that do everything else themselves.

Speech frames, widened by some frames on both sides so that no sound is cut off, are taken in whole
steps of 10 ms: every step that a frame so widened reaches into; of a diarized track only such as
its own frames reach into. What is left is joined without a seam. Samples are float32, (samples,),
full scale 1.0, at the rate asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.sound.audio import Problem
from spklink.sound.chunks import CHUNK, Spoken, changed, find_speech
from spklink.sound.front_end import Side
from spklink.sound.speech import Framing, speech_seconds
from spklink.sound.speech_marks import runs_of

VERSION = 2  # of the samples: a change makes cached ones worthless
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Waveform(Framing):
    """A front end that leaves the sound as it is."""

    rate: int = 16000
    widen: int = 10  # frames added before and after speech
    longest: float | None = None  # seconds taken of a side, from its beginning; None: all

    @property
    def key(self) -> dict[str, Any]:
        return {"front_end": "waveform", "version": VERSION} | self.settings

    def hear(
        self,
        files: tuple[Path, ...],
        tracks: int,
        block_seconds: float = 10.0,
        *,
        turns: Turns | None = None,
    ) -> tuple[list[Side], list[Problem]]:
        spoken = find_speech(files, tracks, self, block_seconds, turns)
        samples = self._samples(spoken, files[0])
        sides = [
            Side(found, speech_seconds(kept), seconds, level, speech=runs_of(kept))
            for found, kept, seconds, level in zip(
                samples, spoken.kept, spoken.seconds, spoken.levels, strict=True
            )
        ]
        return sides, spoken.problems

    def _samples(self, spoken: Spoken, name: Path) -> list[NDArray[np.float32]]:
        """The wanted samples of every track; a side's are as many as its steps say."""
        tracks = range(len(spoken.kept))
        steps = [self._steps(spoken.kept[k], spoken.lengths[k], self.widen) for k in tracks]
        if spoken.own is not None:
            for k in tracks:
                steps[k] &= self._steps(spoken.own[k], spoken.lengths[k], 0)
        parts: list[list[NDArray[np.float32]]] = [[] for _ in tracks]
        done = 0
        for index, chunk in enumerate(spoken.chunks()):
            begin = index * CHUNK * self.step
            end = begin + chunk.shape[1]
            for k in tracks:
                wanted = self._in_samples(steps[k], spoken.lengths[k], done, end)
                own = chunk[k, done - begin :]
                parts[k].append(own[: len(wanted)][wanted])
            done = end
        if done < max(spoken.lengths):
            raise changed(name)
        most = None if self.longest is None else round(self.longest * self.rate)
        none = np.zeros(0, np.float32)
        return [np.concatenate([none, *parts[k]])[:most].copy() for k in tracks]

    def _steps(self, kept: Mask, length: int, widen: int) -> Mask:
        """Which steps of 10 ms some frames reach into, of a track of so many samples."""
        reach = (self.window - 1) // self.step  # further steps that a frame reaches into
        taken = np.zeros(-(-length // self.step), np.bool_)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
        for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            taken[max(first - widen, 0) : after + reach + widen] = True
        return taken

    def _in_samples(self, steps: Mask, length: int, begin: int, end: int) -> Mask:
        """Which of the samples begin … end - 1 are taken; none beyond the end of the track."""
        first, end = begin // self.step, min(end, length)
        spread = np.repeat(steps[first : -(-end // self.step)], self.step)
        return spread[begin - first * self.step : max(end - first * self.step, 0)]
