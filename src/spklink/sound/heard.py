"""What is known of one recording after listening, and what is to be listened to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.elsewhere import placed
from spklink.sound.front_end import FrontEnd
from spklink.sound.places import Place, Remote, UnreachableError

RECORDINGS = "recordings"  # folder of the cache where those of elsewhere are fetched to
Runs = NDArray[np.int32]  # lengths of pauses and speech by turns (`speech_marks`)


@dataclass(frozen=True)
class Job:
    """One recording to be listened to."""

    files: tuple[Path, ...]
    tracks: int | None  # None: as many as the file has channels
    front_end: FrontEnd
    cache: Path
    turns: Turns | None = None  # where its tracks are diarized
    channel: int | None = None  # of its file, where it is that one alone
    unreachable: str = ""  # why it could not be fetched
    places: tuple[Place, ...] = ()  # where to fetch its files from; none where they are here

    def anywhere(self) -> Job:
        """The same, to be listened to by a process that is in another folder."""
        files = tuple(path.absolute() for path in self.files)
        places = tuple(one.absolute() if isinstance(one, Path) else one for one in self.places)
        return replace(self, files=files, cache=self.cache.absolute(), places=places)

    def fetched(self) -> Job:
        """The same with all its files on this machine, or with why they cannot be."""
        if not self.places or self.unreachable:
            return self
        folder = placed(self.cache)[0].parent / RECORDINGS
        try:
            files = (p.fetched(folder) if isinstance(p, Remote) else p for p in self.places)
            return replace(self, files=tuple(files))
        except UnreachableError as error:
            return replace(self, unreachable=str(error))


@dataclass(frozen=True)
class Heard:
    """What is known of one recording of K tracks; its arrays stay in the cache."""

    key: str
    frames: tuple[int, ...]  # (K,) lengths of the arrays
    speech_seconds: tuple[float, ...]  # (K,)
    problems: tuple[tuple[int | None, bool, str], ...]  # channel from 0 or None, fatal, text
    sha256: tuple[str, ...]  # of each file; "" where there is none
    sounds: tuple[str, ...]  # (K,) hashes of the arrays: a channel's own, whatever its file
    # (K,) where they speak; None where a front end does not tell
    speech: tuple[Runs, ...] | None = field(default=None, compare=False, repr=False)
    # (K,) seconds of each track; empty where nobody knows
    lengths: tuple[float, ...] = field(default=(), compare=False)
    job: Job | None = field(default=None, compare=False, repr=False)  # to listen once more
    skipped: int = 0  # rows of the cached array before those of the first track

    def anywhere(self) -> Heard:
        """What another process, perhaps in another folder, needs of it to load its arrays."""
        return replace(self, speech=None, job=None if self.job is None else self.job.anywhere())

    def only(self, channel: int) -> Heard:
        """One channel of it, as a recording of one track."""
        if channel >= len(self.frames):
            text = f"channels: channel {channel + 1} of a file that has {len(self.frames)}"
            return replace(self, **blank(1, (*self.problems, (None, True, text))))
        return replace(
            self,
            frames=self.frames[channel : channel + 1],
            speech_seconds=self.speech_seconds[channel : channel + 1],
            problems=tuple(
                (None if where is None else 0, fatal, text)
                for where, fatal, text in self.problems
                if where in (None, channel)
            ),
            sounds=self.sounds[channel : channel + 1],
            speech=None if self.speech is None else self.speech[channel : channel + 1],
            lengths=self.lengths[channel : channel + 1],
            skipped=sum(self.frames[:channel]),
        )

    @property
    def own_key(self) -> str:
        """That of the recording and, where it is one channel of several, of that channel."""
        return self.key if self.job is None or self.job.channel is None else self.sounds[0]

    def fatal(self, channel: int) -> str | None:
        """Why a channel cannot be used, None where it can."""
        for where, fatal, text in self.problems:
            if fatal and where in (None, channel):
                return text
        return None

    def hash_of(self, channel: int) -> str:
        """The hash of the file that carries a channel."""
        return self.sha256[channel if len(self.sha256) > 1 else 0]


def blank(tracks: int, problems: tuple[tuple[int | None, bool, str], ...]) -> dict[str, Any]:
    """So many tracks without any sound."""
    return {
        "frames": (0,) * tracks,
        "speech_seconds": (0.0,) * tracks,
        "problems": problems,
        "sounds": ("",) * tracks,
        "speech": (np.zeros(0, np.int32),) * tracks,
        "lengths": (),
    }
