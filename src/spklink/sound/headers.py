"""What the header of a sound file says."""

from __future__ import annotations

from pathlib import Path

import soundfile as sf

from spklink.formats.out.labelled import Header
from spklink.sound.files import refusal


def header_of(path: Path) -> Header | None:
    """Length, rate and channels; None where the file cannot be opened."""
    if refusal(path):
        return None
    try:
        found = sf.info(str(path))
    except (OSError, RuntimeError, TypeError):
        return None
    if found.samplerate <= 0 or found.frames < 0:
        return None
    return Header(found.frames, found.samplerate, found.channels)
