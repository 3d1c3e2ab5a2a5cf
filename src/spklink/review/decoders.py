"""Sound files that stay open, where finding a place in them has to be learned.

An MP3 has no table of its frames: the first time a decoder goes to a place it walks there, seconds
for a recording of hours. It remembers the way, so a decoder that has been to the end is kept, and
used by whoever plays that file next. All other formats are opened when they are needed.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Lock

import soundfile as sf

from spklink.sound.files import Stamp, stamp

KEPT = 6  # decoders
WALKED = "MP3"  # as libsndfile calls it
_lock = Lock()


class Decoder(sf.SoundFile):  # type: ignore[misc]
    """Goes to a place only when told to.

    The parent seeks to where it already is after every block; where a decoder has a memory (MP3,
    Opus) every block would then begin as after a jump.
    """

    def seekable(self) -> bool:
        return False

    @property
    def has_places(self) -> bool:
        return bool(super().seekable())


_idle: OrderedDict[tuple[Path, Stamp], list[Decoder]] = OrderedDict()


def take(path: Path) -> Decoder:
    """A decoder of this file as it is now, nobody else's."""
    with _lock:
        waiting = _idle.get((path, stamp(path)))
        if waiting:
            return waiting.pop()
    return Decoder(str(path))


def give_back(path: Path, sound: Decoder) -> None:
    """Done with it; it is closed unless its way around is worth keeping."""
    if sound.format != WALKED:
        sound.close()
        return
    with _lock:
        _idle.setdefault((path, stamp(path)), []).append(sound)
        while sum(map(len, _idle.values())) > KEPT:
            oldest = next(key for key, waiting in _idle.items() if waiting)
            _idle[oldest].pop(0).close()
        for key in [key for key, waiting in _idle.items() if not waiting]:
            del _idle[key]


def learn(path: Path) -> None:
    """Have a decoder that knows its way to the end of this file."""
    with _lock:
        if _idle.get((path, stamp(path))):
            return
    with suppress(sf.SoundFileError, OSError):
        sound = Decoder(str(path))
        if sound.format == WALKED and sound.frames > 1:
            sound.seek(sound.frames - 1)
        give_back(path, sound)
