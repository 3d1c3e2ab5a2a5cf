"""Whether a recording that somebody may still be writing is whole.

A file is at rest when nothing about it has changed for some seconds, by its own clock or by ours
(that of a network drive may be wrong). Then its header must open, and promise no more than there
is: a copy that stalls is at rest too.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from spklink.sound.decoders import RefusedError, cut_short, open_sound
from spklink.sound.files import Stamp, stamp

GIVEN_UP = 10.0  # times as long as a file must rest, until what cannot be read is called bad


@dataclass
class Arrivals:
    """What is known of files that were looked at; it lives as long as somebody watches."""

    rest: float  # seconds
    seen: dict[Path, tuple[Stamp, float]] = field(default_factory=dict)  # since when
    good: dict[Path, Stamp] = field(default_factory=dict)
    wrong: dict[Path, tuple[Stamp, str]] = field(default_factory=dict)

    def at_rest(self, path: Path, times: float = 1.0) -> bool:
        """Whether nobody has touched it for so many times the rest."""
        try:
            found = os.stat(path)  # noqa: PTH116
        except OSError:
            return False
        now, mark = time.monotonic(), stamp(path)
        before, since = self.seen.get(path, (None, now))
        if before != mark:
            since = now
            self.seen[path] = mark, now
        age = time.time() - max(found.st_mtime, found.st_ctime)
        return age >= times * self.rest or now - since >= times * self.rest

    def waits(self, path: Path) -> str:
        """Why a recording is not taken yet; nothing where it is."""
        mark = stamp(path)
        if mark is None:
            return "not there yet"
        if self.good.get(path) == mark:
            return ""
        if not self.at_rest(path):
            return "being written"
        then, why = self.wrong.get(path, (None, ""))
        if then != mark:
            why = unreadable(path)
            self.wrong[path] = mark, why
        if not why:
            self.good[path] = mark
        return why

    def given_up(self, path: Path) -> bool:
        """Whether what cannot be read has rested so long that nobody will finish it."""
        known = self.wrong.get(path)
        return known is not None and bool(known[1]) and self.at_rest(path, GIVEN_UP)


def unreadable(path: Path) -> str:
    """Why a recording is not whole, from its begin and its end; nothing where it seems to be."""
    try:
        with open_sound(path, None) as sound:
            short = cut_short(path, sound)
            if short:
                return short
            frames = int(sound.frames)
    except (RefusedError, OSError) as error:
        return str(error)
    return _end_missing(path, frames)


def _end_missing(path: Path, frames: int) -> str:
    """Formats that say their length in front may lack their end."""
    import soundfile

    try:
        with soundfile.SoundFile(str(path)) as sound:
            if not sound.seekable() or not 0 < frames < 2**40:
                return ""
            sound.seek(frames - 1)
            if len(sound.read(1)) == 1:
                return ""
    except soundfile.LibsndfileError as error:
        # what only FFmpeg reads has opened above
        return "" if "unknown" in str(error).lower() or "format" in str(error).lower() else "cut"
    except (OSError, RuntimeError):
        pass
    return "its end is missing"
