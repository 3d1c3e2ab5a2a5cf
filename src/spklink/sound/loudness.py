"""How loud a recording is and nothing else: the front end of a run that compares no voices."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spklink.database.segments import Turns
from spklink.sound.audio import Problem
from spklink.sound.chunks import find_speech
from spklink.sound.front_end import Side
from spklink.sound.levels import decibels
from spklink.sound.speech import Framing, speech_seconds
from spklink.sound.speech_marks import runs_of

VERSION = 1


@dataclass(frozen=True)
class Loudness(Framing):
    """Levels in dB of the speech frames; all levels go along, as with every front end."""

    @property
    def key(self) -> dict[str, Any]:
        return {"front_end": "loudness", "version": VERSION} | asdict(self)

    def hear(
        self,
        files: tuple[Path, ...],
        tracks: int,
        block_seconds: float = 10.0,
        *,
        turns: Turns | None = None,
    ) -> tuple[list[Side], list[Problem]]:
        spoken = find_speech(files, tracks, self, block_seconds, turns)
        sides = [
            Side(
                decibels(level[kept]).astype(np.float32),
                speech_seconds(kept),
                seconds,
                level,
                speech=runs_of(kept),
            )
            for level, kept, seconds in zip(spoken.levels, spoken.kept, spoken.seconds, strict=True)
        ]
        return sides, spoken.problems
