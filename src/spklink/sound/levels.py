"""How loud a track is in every frame, in a byte each: what turns are held against.

Half decibels above LOWEST, at int16 scale; quieter frames are as quiet as that. Listening knows the
energies anyway, and a byte a frame is little beside what a front end keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store
from spklink.sound.speech import Framing

if TYPE_CHECKING:
    from spklink.sound.front_end import Side
    from spklink.sound.heard import Heard

Level = NDArray[np.uint8]
LOWEST = -20.0  # dB
STEPS = 2.0  # a decibel


def kept_level(energy: NDArray[np.floating]) -> Level:
    """(frames,) energies in dB, as they are kept."""
    return np.asarray(np.clip(np.rint((energy - LOWEST) * STEPS), 0, 255), np.uint8)


def decibels(level: Level) -> NDArray[np.float32]:
    """(frames,) and back."""
    return level.astype(np.float32) / np.float32(STEPS) + np.float32(LOWEST)


def levels_of(sides: Sequence[Side]) -> dict[str, NDArray[np.generic]]:
    """The arrays that the cache keeps of them; none where a front end does not tell."""
    levels = [side.levels for side in sides if side.levels is not None]
    if len(levels) < len(sides):
        return {}
    lengths = np.array([len(level) for level in levels], np.int64)
    return {"levels": np.concatenate(levels), "level_lengths": lengths}


def load_levels(store: Store, heard: Heard) -> list[Level]:
    """How loud each track of a recording is: as it was kept, else (by an older version, or with a
    front end of one's own) from the sound once more; nothing where that cannot be used."""
    kept = store.load(heard.key)
    if kept is not None and "levels" in kept.arrays:
        return list(np.split(kept.arrays["levels"], np.cumsum(kept.arrays["level_lengths"])[:-1]))
    if heard.job is None or not any(heard.frames):
        return []
    from spklink.sound.chunks import find_speech

    return find_speech(heard.job.files, len(heard.frames), Framing(), turns=heard.job.turns).levels
