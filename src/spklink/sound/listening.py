"""From a table of calls to cached features: every recording is listened to once.

The cache holds two files a recording, named by the hash of its bytes and of the front end's
settings: KEY.npy, the features of both sides one below the other, and KEY.json, written last, with
what else is known of it. Whatever is there is used again; a run that was killed leaves only whole
files behind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError, problems_in
from spklink.sound.features import FrontEnd
from spklink.sound.speech_table import COLUMNS as SIDES
from spklink.tables import read_json, replacing, sha256, write_csv, write_json

VERSION = 1  # of the features; a change makes cached ones worthless
FEWEST_FOR_PROCESSES = 16  # recordings; below, starting processes costs more than it saves
Tell = Callable[[int, int], None]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
PROBLEMS = ("conversation", "channel", "file", "problem")


@dataclass(frozen=True)
class Heard:
    """What is known of one recording; its features stay in the cache."""

    key: str
    frames: tuple[int, int]
    speech_seconds: tuple[float, float]
    problems: tuple[tuple[int | None, bool, str], ...]  # channel from 0 or None, fatal, text

    def fatal(self, channel: int) -> str | None:
        """Why a channel cannot be used, None where it can."""
        for where, fatal, text in self.problems:
            if fatal and where in (None, channel):
                return text
        return None


@dataclass(frozen=True)
class Sound:
    """What listening gave: every recording, and which sides can be used."""

    heard: list[Heard]
    marks: list[str]  # (2M,) "" or why a side is not used
    folder: Path  # of the cached features

    @property
    def usable(self) -> NDArray[np.bool_]:
        return np.array([not mark for mark in self.marks])

    def seconds(self) -> Floats:
        return np.array([s for one in self.heard for s in one.speech_seconds])

    def features(self, side: int) -> Singles:
        return load_features(self.folder, self.heard[side // 2], side % 2)


@dataclass(frozen=True)
class Job:
    """One recording to be listened to."""

    files: tuple[Path, ...]
    settings: FrontEnd
    cache: Path


def listen_all(
    recordings: list[tuple[Path, ...]],
    settings: FrontEnd,
    cache: Path,
    *,
    workers: int = 1,
    tell: Tell | None = None,
) -> list[Heard]:
    """Listen to every recording that is not in the cache; the order of the answers is theirs."""
    cache.mkdir(parents=True, exist_ok=True)
    jobs = [Job(files, settings, cache) for files in recordings]
    heard = []
    for done, one in enumerate(_map(listen, jobs, workers), start=1):
        heard.append(one)
        if tell is not None:
            tell(done, len(jobs))
    return heard


def _map(work: Callable[[Job], Heard], jobs: list[Job], workers: int) -> Iterator[Heard]:
    if workers == 1 or len(jobs) < FEWEST_FOR_PROCESSES:
        yield from map(work, jobs)
        return
    # Fresh processes: a forked one would inherit locks of threads that it does not have.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(work, jobs, chunksize=4)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def listen_background(
    files: list[Path], settings: FrontEnd, cache: Path, *, workers: int = 1
) -> list[Heard]:
    """Features of background speech: every channel of a file counts, its first side holds them."""
    cache.mkdir(parents=True, exist_ok=True)
    jobs = [Job((path,), settings, cache) for path in files]
    return list(_map(listen_anyhow, jobs, workers))


def listen_anyhow(job: Job) -> Heard:
    """All channels of a file one after the other, as the first side of a recording."""
    key = recording_key(job.files, job.settings) + "-background"
    found = _cached(job.cache, key)
    if found is not None:
        return found
    import soundfile
    import soxr

    from spklink.sound.features import side_features

    try:
        samples, rate = soundfile.read(job.files[0], dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise SpklinkError(f"{job.files[0]}: background cannot be read ({error})") from None
    sides = [
        side_features(soxr.resample(samples[:, c], rate, job.settings.rate), job.settings)
        for c in range(samples.shape[1])
    ]
    features = np.concatenate([side.features for side in sides])
    heard = Heard(key, (len(features), 0), (0.01 * len(features), 0.0), ())
    return _keep(job.cache, heard, features)


def listen(job: Job) -> Heard:
    """The features of one recording, from the cache or from the sound."""
    key = recording_key(job.files, job.settings)
    found = _cached(job.cache, key)
    return found if found is not None else _hear(job, key)


def recording_key(files: tuple[Path, ...], settings: FrontEnd) -> str:
    """Hash of all that the features depend on."""
    what: dict[str, Any] = {"version": VERSION, "settings": asdict(settings)}
    what["files"] = [sha256(path) if path.is_file() else None for path in files]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


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
    )


def _hear(job: Job, key: str) -> Heard:
    from spklink.sound.features import front_end

    first, second, problems = front_end(job.files, job.settings)
    heard = Heard(
        key,
        (len(first.features), len(second.features)),
        (round(first.speech_seconds, 2), round(second.speech_seconds, 2)),
        tuple((p.channel, p.fatal, f"{p.kind}: {p.text}") for p in problems),
    )
    return _keep(job.cache, heard, np.concatenate([first.features, second.features]))


def _keep(cache: Path, heard: Heard, features: NDArray[np.float32]) -> Heard:
    with replacing(cache / f"{heard.key}.npy") as file:
        np.lib.format.write_array(file, features, allow_pickle=False)
    write_json(cache / f"{heard.key}.json", asdict(heard))
    return heard


def load_features(cache: Path, heard: Heard, channel: int) -> NDArray[np.float32]:
    """Features of one side, mapped from the cache, not read."""
    both: NDArray[np.float32] = np.load(cache / f"{heard.key}.npy", mmap_mode="r")
    border = heard.frames[0]
    return both[:border] if channel == 0 else both[border:]


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


def background_recordings(folder: Path) -> Iterable[Path]:
    """All sound files below a folder, in order of their names."""
    kinds = {".wav", ".flac", ".ogg", ".opus", ".mp3", ".sph", ".au", ".aif", ".aiff"}
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in kinds)


def hear(
    conversations: Conversations,
    settings: FrontEnd,
    folder: Path,
    *,
    min_speech: float,
    skip_bad: bool,
    workers: int = 1,
    tell: Tell | None = None,
) -> Sound:
    """Features of all conversations; a bad recording is an error or, if asked for, marked."""
    recordings = recordings_of(conversations)
    heard = listen_all(recordings, settings, folder, workers=workers, tell=tell)
    marks, fatal = [], []
    for m, one in enumerate(heard):
        for channel in (0, 1):
            why = one.fatal(channel)
            little = one.speech_seconds[channel] < min_speech
            marks.append("bad audio" if why else "too little speech" if little else "")
            if why:
                fatal.append(f"{conversations.ids[m]} channel {channel + 1}: {why}")
    if fatal and not skip_bad:
        remedy = "mend or remove these recordings, or use --on-bad-audio skip"
        raise problems_in(conversations.path, fatal, remedy)
    return Sound(heard, marks, folder)


def write_sides(folder: Path, conversations: Conversations, sound: Sound) -> None:
    seconds = sound.seconds()
    rows = (
        (conversations.ids[side // 2], side % 2 + 1, f"{seconds[side]:.2f}", mark)
        for side, mark in enumerate(sound.marks)
    )
    write_csv(folder / "sides.csv", SIDES, rows)


def write_problems(folder: Path, conversations: Conversations, sound: Sound) -> None:
    """Everything that was odd about a recording; channel empty where it is about the whole."""
    rows = [
        (
            conversations.ids[m],
            "" if channel is None else channel + 1,
            ";".join(conversations.audio[m]),
            text,
        )
        for m, one in enumerate(sound.heard)
        for channel, _, text in one.problems
    ]
    write_csv(folder / "problems.csv", PROBLEMS, rows)
