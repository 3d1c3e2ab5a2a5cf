"""What the header of a sound file says."""

from __future__ import annotations

from pathlib import Path

from spklink.formats.out.labelled import Header, is_elsewhere
from spklink.sound.decoders import UNTOLD, RefusedError, open_sound


def header_of(file: str) -> Header | None:
    """Length, rate and channels; None where it cannot be opened here, or does not tell."""
    if is_elsewhere(file):
        return None
    try:
        with open_sound(Path(file), None) as sound:
            known = 0 < sound.frames < UNTOLD
            return Header(sound.frames, sound.samplerate, sound.channels) if known else None
    except RefusedError:
        return None
