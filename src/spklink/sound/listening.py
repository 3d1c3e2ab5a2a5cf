"""From a table of calls to cached arrays: every recording is listened to once.

The cache holds two files a recording, named by the hash of its bytes, the number of its tracks and
the front end's key: KEY.npy, the arrays of its sides one below the other, and KEY.json, written
last, with what else is known of it. Whatever is there is used again; a run that was killed leaves
only whole files behind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import Numbering, side_name
from spklink.errors import SpklinkError, problems_in
from spklink.sound.front_end import FrontEnd
from spklink.sound.speech_table import SpeechTable
from spklink.tables import SEPARATOR, read_json, replacing, sha256, write_json
from spklink.threads import without_main

VERSION = 2  # of the files in the cache
FEWEST_FOR_PROCESSES = 16  # recordings; below, starting processes costs more than it saves
Tell = Callable[[int, int], None]
Singles = NDArray[np.float32]
PROBLEMS = ("conversation", "channel", "file", "problem")
SOUNDS = frozenset({".wav", ".flac", ".ogg", ".opus", ".mp3", ".sph", ".au", ".aif", ".aiff"})


@dataclass(frozen=True)
class Heard:
    """What is known of one recording of K tracks; its arrays stay in the cache."""

    key: str
    frames: tuple[int, ...]  # (K,) lengths of the arrays
    speech_seconds: tuple[float, ...]  # (K,)
    problems: tuple[tuple[int | None, bool, str], ...]  # channel from 0 or None, fatal, text
    sha256: tuple[str, ...]  # of each file; "" where there is none

    def fatal(self, channel: int) -> str | None:
        """Why a channel cannot be used, None where it can."""
        for where, fatal, text in self.problems:
            if fatal and where in (None, channel):
                return text
        return None

    def hash_of(self, channel: int) -> str:
        """The hash of the file that carries a channel."""
        return self.sha256[channel if len(self.sha256) > 1 else 0]


@dataclass(frozen=True)
class Sound:
    """What listening gave: every recording, and which sides can be used."""

    heard: list[Heard]
    marks: list[str]  # (S,) "" or why a side is not used
    folder: Path  # of the cached arrays
    sides: Numbering

    @property
    def usable(self) -> NDArray[np.bool_]:
        return np.array([not mark for mark in self.marks])

    def seconds(self) -> NDArray[np.float64]:
        """(S,) of speech."""
        return np.array([s for one in self.heard for s in one.speech_seconds])

    def array(self, side: int) -> Singles:
        """What the front end made of a side."""
        m, track = int(self.sides.conversation[side]), int(self.sides.position[side])
        return load_array(self.folder, self.heard[m], track)

    def table(self) -> SpeechTable:
        """What is written about the sides."""
        hashes = [one.hash_of(k) for one in self.heard for k in range(len(one.frames))]
        return SpeechTable(self.seconds(), self.marks, hashes)


@dataclass(frozen=True)
class Job:
    """One recording to be listened to."""

    files: tuple[Path, ...]
    tracks: int | None  # None: as many as the file has channels
    front_end: FrontEnd
    cache: Path


# --- the calls of a table -------------------------------------------------------------------------


def hear(
    conversations: Conversations,
    front_end: FrontEnd,
    folder: Path,
    *,
    min_speech: float,
    skip_bad: bool,
    workers: int = 1,
    tell: Tell | None = None,
) -> Sound:
    """Arrays of all conversations; a bad recording is an error or, if asked for, marked."""
    sides = conversations.sides
    recordings = zip(recordings_of(conversations), sides.counts.tolist(), strict=True)
    jobs = [Job(files, tracks, front_end, folder) for files, tracks in recordings]
    heard = listen_all(jobs, workers=workers, tell=tell)
    marks, fatal = [], []
    for side, (m, track) in enumerate(zip(sides.conversation, sides.position, strict=True)):
        why = heard[m].fatal(track)
        little = heard[m].speech_seconds[track] < min_speech
        marks.append("bad audio" if why else "too little speech" if little else "")
        if why:
            fatal.append(f"{side_name(conversations, side)}: {why}")
    if fatal and not skip_bad:
        remedy = "mend or remove these recordings, or use --on-bad-audio skip"
        raise problems_in(conversations.path, fatal, remedy)
    return Sound(heard, marks, folder, sides)


def recordings_of(table: Conversations) -> list[tuple[Path, ...]]:
    """The files of every conversation; a conversation without any is an error."""
    missing = [
        f"row {m + 2}: conversation {table.ids[m]!r} names no audio"
        for m, files in enumerate(table.audio)
        if not files
    ]
    if missing:
        raise problems_in(table.path, missing)
    folder = table.path.parent
    return [tuple(folder / name for name in files) for files in table.audio]


def problem_rows(
    conversations: Conversations, sound: Sound
) -> Iterator[tuple[str, int | str, str, str]]:
    """Everything that was odd about a recording; channel empty where it is about the whole."""
    for m, one in enumerate(sound.heard):
        for channel, _, text in one.problems:
            place = "" if channel is None else channel + 1
            yield conversations.ids[m], place, SEPARATOR.join(conversations.audio[m]), text


# --- background speech ----------------------------------------------------------------------------


def hear_background(
    background: Path,
    front_end: FrontEnd,
    folder: Path,
    *,
    skip_bad: bool = False,
    workers: int = 1,
    tell: Tell | None = None,
) -> list[Heard]:
    """All sound files below a folder, in order of their names, whatever channels they have. One
    without any good channel is an error or, if asked for, left out."""
    files = sorted(path for path in background.rglob("*") if path.suffix.lower() in SOUNDS)
    if not files:
        raise SpklinkError(f"{background}: no sound files to use as background")
    jobs = [Job((path,), None, front_end, folder) for path in files]
    heard = listen_all(jobs, workers=workers, tell=tell)
    bad = [all(one.fatal(k) for k in range(len(one.frames))) for one in heard]
    if all(bad) or (any(bad) and not skip_bad):
        named = [
            f"{path.relative_to(background)}: {one.fatal(0)}"
            for path, one, wrong in zip(files, heard, bad, strict=True)
            if wrong
        ]
        remedy = "mend or remove these files, or use --on-bad-audio skip"
        raise problems_in(background, named, "" if all(bad) else remedy)
    return [one for one, wrong in zip(heard, bad, strict=True) if not wrong]


# --- one recording after the other ----------------------------------------------------------------


def listen_all(jobs: Sequence[Job], *, workers: int = 1, tell: Tell | None = None) -> list[Heard]:
    """Listen to every recording that is not in the cache; the order of the answers is theirs."""
    for folder in {job.cache for job in jobs}:
        folder.mkdir(parents=True, exist_ok=True)
    heard = []
    for done, one in enumerate(_map(listen, jobs, workers), start=1):
        heard.append(one)
        if tell is not None:
            tell(done, len(jobs))
    return heard


def _map(work: Callable[[Job], Heard], jobs: Sequence[Job], workers: int) -> Iterator[Heard]:
    if workers == 1 or len(jobs) < FEWEST_FOR_PROCESSES:
        yield from map(work, jobs)
        return
    own = type(jobs[0].front_end).__module__ == "__main__"  # only the caller's script has it
    # Fresh processes: a forked one would inherit locks of threads that it does not have.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            with nullcontext() if own else without_main():
                heard = pool.map(work, jobs, chunksize=4)  # starts them
            yield from heard
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def listen(job: Job) -> Heard:
    """What one recording sounds like, from the cache or from the sound."""
    hashes = tuple(sha256(path) if path.is_file() else "" for path in job.files)
    what = {
        "version": VERSION,
        "front_end": job.front_end.key,
        "tracks": job.tracks,
        "files": hashes,
    }
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
    found = _cached(job.cache, key)
    return found if found is not None else _hear(job, key, hashes)


def _hear(job: Job, key: str, hashes: tuple[str, ...]) -> Heard:
    from spklink.sound.audio import channels_of

    tracks = channels_of(job.files[0]) if job.tracks is None else job.tracks
    sides, problems = job.front_end.hear(job.files, tracks)
    heard = Heard(
        key,
        tuple(len(side.array) for side in sides),
        tuple(round(side.speech_seconds, 2) for side in sides),
        tuple((p.channel, p.fatal, f"{p.kind}: {p.text}") for p in problems),
        hashes,
    )
    with replacing(job.cache / f"{key}.npy") as file:
        arrays = np.concatenate([side.array for side in sides])
        np.lib.format.write_array(file, arrays, allow_pickle=False)
    write_json(job.cache / f"{key}.json", asdict(heard))  # last: it says that the other is whole
    return heard


def _cached(cache: Path, key: str) -> Heard | None:
    path = cache / f"{key}.json"
    if not path.exists():
        return None
    found = read_json(path)
    return Heard(
        key,
        tuple(found["frames"]),
        tuple(found["speech_seconds"]),
        tuple((where, fatal, text) for where, fatal, text in found["problems"]),
        tuple(found["sha256"]),
    )


def load_array(cache: Path, heard: Heard, track: int) -> Singles:
    """What the front end made of one side, mapped from the cache, not read."""
    every: Singles = np.load(cache / f"{heard.key}.npy", mmap_mode="r")
    begin = sum(heard.frames[:track])
    return every[begin : begin + heard.frames[track]]
