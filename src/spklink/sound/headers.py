"""What the header of a sound file says."""

from __future__ import annotations

from pathlib import Path

import soundfile as sf

from spklink.formats.out.labelled import Header, is_elsewhere
from spklink.sound.files import refusal


def header_of(file: str) -> Header | None:
    """Length, rate and channels; None where it cannot be opened here."""
    if is_elsewhere(file) or refusal(Path(file)):
        return None
    try:
        found = sf.info(file)
    except (OSError, RuntimeError, TypeError):
        return None
    if found.samplerate <= 0 or found.frames < 0:
        return None
    return Header(found.frames, found.samplerate, found.channels)
