"""What a recognizer wants to hear: a front end turns the speech of a recording into arrays.

One file a front end: `features` (cepstra), `waveform` (samples), `embedded` (vectors of a network).
The cache asks a front end for a key and for arrays and knows nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.sound.audio import Problem
from spklink.sound.speech_marks import Runs


@dataclass(frozen=True)
class Side:
    """One track of one conversation."""

    array: NDArray[np.float32]  # (length, …) of its speech alone, in order of time
    speech_seconds: float
    seconds: float  # of the track
    levels: NDArray[np.uint8] | None = None  # (frames,) of all of it, see `levels`
    sound: str = ""  # the hash of its sound, where the array is no good for that
    speech: Runs | None = None  # which of its frames are speech, see `speech_marks`


class FrontEnd(Protocol):
    """From sound files to one array a side. It is sent to other processes: it must be picklable."""

    @property
    def key(self) -> dict[str, Any]:
        """JSON-able: all that the arrays depend on beside the files, its version included."""

    def hear(
        self, files: tuple[Path, ...], tracks: int, *, turns: Turns | None = None
    ) -> tuple[list[Side], list[Problem]]:
        """All sides of a recording, and what is wrong with it; a side with a fatal problem has an
        array of length 0. `turns` is given where the tracks are diarized (`find_speech` takes it);
        a front end without it is for all other recordings."""
