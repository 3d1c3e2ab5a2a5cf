"""From a table of calls to cached arrays: every recording is listened to once.

The cache holds one file a recording, named by the hash of its bytes, the ending of its name (some
formats are told by that alone), the number of its tracks, the segments of tracks that are diarized
and the front end's key: the arrays of its
sides one below the other, and what else is known of it. Whatever is there and whole is used again.
A recording that ends the process that listens to it is a bad recording, and not kept: it may have
been the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.database.conversations import Conversations
from spklink.database.sides import Numbering
from spklink.errors import SpklinkError, problems_in
from spklink.hands import ALONE, Hands, Here
from spklink.object_store import AT_ONCE
from spklink.processes import Died
from spklink.sound.copies import with_copies
from spklink.sound.files import Fingerprint, fingerprint, stamp
from spklink.sound.front_end import FrontEnd
from spklink.sound.heard import Heard, Job, blank
from spklink.sound.jobs import jobs_of
from spklink.sound.levels import Level, levels_of, load_levels
from spklink.sound.speech_marks import (
    SpeechMarks,
    kept_runs,
    known_runs,
    listed,
    segments_of,
)
from spklink.sound.speech_table import SpeechTable
from spklink.sound.stamps import Stamps
from spklink.tables import SEPARATOR
from spklink.threads import in_order

VERSION = 4  # of the files in the cache
FEWEST_FOR_PROCESSES = 16  # recordings; below, starting several costs more than it saves
Tell = Callable[[int, int], None]
Singles = NDArray[np.float32]
KEPT = ("frames", "speech_seconds", "problems", "sha256", "sounds", "lengths")  # beside the arrays
SPEECH = "speech"  # the runs of its speech frames, in what is said about a recording
CHANGED = "the file changed while it was read; run again"
PROBLEMS = ("conversation", "channel", "file", "problem")


@dataclass(frozen=True)
class Sound:
    """What listening gave: every recording, and which sides can be used."""

    heard: list[Heard]
    marks: list[str]  # (S,) "" or why a side is not used
    store: Store  # of the cached arrays
    sides: Numbering

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(S,) not to be written to."""
        found = np.array([not mark for mark in self.marks])
        found.flags.writeable = False
        return found

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """(S,) all sides in an order of their sound alone: whatever is drawn or added up in this
        order does not depend on rows, names, or which channel is the first."""
        calls = [tuple(sorted(one.sounds)) for one in self.heard]
        keys = [(own, calls[m]) for m, one in enumerate(self.heard) for own in one.sounds]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)

    def seconds(self) -> NDArray[np.float64]:
        """(S,) of speech; NaN where nobody listened and nobody says."""
        return np.array([s for one in self.heard for s in one.speech_seconds])

    def known_seconds(self) -> NDArray[np.float64] | None:
        """The same; None where they are not known."""
        found = self.seconds()
        return None if np.isnan(found).any() else found

    def array(self, side: int) -> Singles:
        """What the front end made of a side."""
        m, track = int(self.sides.conversation[side]), int(self.sides.position[side])
        return load_array(self.store, self.heard[m], track)

    def levels(self, m: int) -> list[Level]:
        """How loud the tracks of a recording are, frame by frame; nothing where nobody knows."""
        return load_levels(self.store, self.heard[m])

    def speech(self) -> SpeechMarks | None:
        """Where all sides speak; None where nobody listened, or a front end does not tell."""
        if any(one.speech is None for one in self.heard):
            return None
        return SpeechMarks.of(segments_of(runs) for one in self.heard for runs in one.speech or ())

    def table(self) -> SpeechTable:
        """What is written about the sides."""
        hashes = [one.hash_of(k) for one in self.heard for k in range(len(one.frames))]
        unknown = float("nan")
        lengths = [s for one in self.heard for s in one.lengths or (unknown,) * len(one.frames)]
        return SpeechTable(self.seconds(), self.marks, hashes, np.array(lengths))


Listened = tuple[Heard, set[str]]  # and the names of damaged files in the cache


# --- the calls of a table -------------------------------------------------------------------------


def hear(
    conversations: Conversations,
    front_end: FrontEnd,
    folder: Path,
    *,
    min_speech: float,
    skip_bad: bool,
    hands: Hands = ALONE,
    tell: Tell | None = None,
) -> Sound:
    """Arrays of all conversations; a bad recording is an error or, if asked for, marked."""
    sides = conversations.sides
    jobs = jobs_of(conversations, front_end, folder, hands=hands, tell=tell)
    store = Store(folder)
    heard = with_copies(conversations, listen_all(jobs, store, hands=hands, tell=tell))
    fatal = [text for m, one in enumerate(heard) for text in _fatal(conversations, m, one)]
    if fatal and not skip_bad:
        remedy = "mend or remove these recordings, or use --on-bad-audio skip"
        raise problems_in(conversations.path, fatal, remedy)
    marks = []
    for m, track in zip(sides.conversation, sides.position, strict=True):
        little = heard[m].speech_seconds[track] < min_speech
        bad = heard[m].fatal(track) is not None
        marks.append("bad audio" if bad else "too little speech" if little else "")
    return Sound(heard, marks, store, sides)


def _fatal(conversations: Conversations, m: int, one: Heard) -> Iterator[str]:
    """What makes a recording unusable, as a message names it: row, call, channel, cause, file."""
    files = conversations.audio[m]
    for where, fatal, text in one.problems:
        if fatal:
            channel = "" if where is None else f" {conversations.track_name(m, where)}"
            single = where is not None and len(files) > 1
            file = files[where or 0] if single else SEPARATOR.join(files)
            yield f"{conversations.place(m)}: {conversations.ids[m]}{channel}: {text} ({file})"


def problem_rows(
    conversations: Conversations, sound: Sound
) -> Iterator[tuple[str, int | str, str, str]]:
    """Everything that was odd about a recording; channel empty where it is about the whole."""
    for m, one in enumerate(sound.heard):
        for channel, _, text in one.problems:
            place = "" if channel is None else channel + 1
            yield conversations.ids[m], place, SEPARATOR.join(conversations.audio[m]), text


# --- one recording after the other ----------------------------------------------------------------


def listen_all(
    jobs: Sequence[Job], store: Store, *, hands: Hands = ALONE, tell: Tell | None = None
) -> list[Heard]:
    """Listen to every recording that is not in the cache; the order of the answers is theirs."""
    stamps, heard = Stamps.of(jobs, store), list[Heard]()
    known = _known(store, stamps.names())
    unknown = [job for job, one in zip(jobs, known, strict=True) if one is None]
    few = len(jobs) < FEWEST_FOR_PROCESSES
    if unknown and tell is not None:
        tell(0, len(jobs))
    with closing(_listened(unknown, hands, few=few)) as found:
        for job, one in zip(jobs, known, strict=True):
            new, damaged = (one, set()) if one is not None else next(found)
            heard.append(replace(new, job=job))
            store.damaged.update(damaged)
            if tell is not None:
                tell(len(heard), len(jobs))
    stamps.remember(heard, jobs)
    pairs = zip(heard, jobs, strict=True)
    return [one if job.channel is None else one.only(job.channel) for one, job in pairs]


def _known(store: Store, names: list[str | None]) -> list[Heard | None]:
    """What is in the cache of recordings that have not changed; of those elsewhere many at once."""

    def one(name: str | None) -> Heard | None:
        return None if name is None else _cached(store, name)[0]

    return list(in_order(one, names, 1 if store.far is None else AT_ONCE))


def _listened(jobs: Sequence[Job], hands: Hands, *, few: bool) -> Generator[Listened, None, None]:
    """What is heard of every recording, in their order."""
    if not hands.far:
        yield from _listened_here(jobs, hands.count, few=few)
        return
    with closing(hands.apart(listen, [job.anywhere() for job in jobs])) as found:
        for job, new in zip(jobs, found, strict=True):
            yield (_deadly(job, new), set()) if isinstance(new, Died) else new


def _listened_here(
    jobs: Sequence[Job], workers: int, *, few: bool
) -> Generator[Listened, None, None]:
    """Helpers listen, so that a decoder that crashes ends one of them and not the run: to few
    recordings a single one, and only to what is not in the cache, as it takes a second to start."""
    home = type(jobs[0].front_end).__module__ if jobs else ""
    if workers == 1 or (few and not home.startswith("spklink.")):  # another need not be there
        yield from map(listen, jobs)
        return
    known = [_remembered(job) if few else (None, set()) for job in jobs]
    unheard = [job for job, (one, _) in zip(jobs, known, strict=True) if one is None]
    main = home == "__main__"  # only the caller's script has it
    heavy = bool(jobs) and getattr(jobs[0].front_end, "heavy", False)
    helpers = 1 if few and not heavy else max(1, min(workers, len(unheard)))
    with closing(Here(helpers).apart(listen, unheard, main=main)) as found:
        for job, (one, damaged) in zip(jobs, known, strict=True):
            if one is None:
                new = next(found)
                one, more = (_deadly(job, new), set()) if isinstance(new, Died) else new
                damaged |= more
            yield one, damaged


def listen(job: Job) -> Listened:
    """What one recording sounds like, from the cache or from the sound."""
    job = job.fetched()
    store, prints = Store(job.cache), [fingerprint(path) for path in job.files]
    if job.unreachable:
        return _nothing(job, prints, f"unreadable: {job.unreachable}", job.tracks or 1), set()
    key = _key(job, prints)
    heard, old = _cached(store, key)
    if heard is None and old is not None:
        heard = _with_speech(job, store, old)
    if heard is None:
        heard = _hear(job, prints, store, key)
    return heard, store.damaged


def _with_speech(job: Job, store: Store, old: Heard) -> Heard | None:
    """What a version kept that did not keep where people speak and how long, with that."""
    kept = store.load(old.key)
    if kept is None:
        return None
    runs, lengths = kept_runs(job, len(old.frames))
    about = kept.about | {SPEECH: listed(runs), "lengths": lengths}
    store.write(old.key, about, kept.arrays)
    return replace(old, speech=runs, lengths=lengths)


def _remembered(job: Job) -> tuple[Heard | None, set[str]]:
    """The same, from the cache alone."""
    job = job.fetched()
    store, prints = Store(job.cache), [fingerprint(path) for path in job.files]
    return _cached(store, _key(job, prints))[0], store.damaged


def _key(job: Job, prints: list[Fingerprint]) -> str:
    what = {
        "version": VERSION,
        "front_end": job.front_end.key,
        "tracks": job.tracks,
        "files": [one.sha256 or one.why for one in prints],
        "endings": [path.suffix.lower() for path in job.files],
    }
    return key_of(what if job.turns is None else what | {"turns": job.turns})


def _hear(job: Job, prints: list[Fingerprint], store: Store, key: str) -> Heard:
    from spklink.sound.audio import channels_of
    from spklink.sound.chunks import ChangedError

    tracks = channels_of(job.files[0]) if job.tracks is None else job.tracks
    try:
        more = {} if job.turns is None else {"turns": job.turns}
        sides, problems = job.front_end.hear(job.files, tracks, **more)
    except ChangedError:
        return _nothing(job, prints, f"changed: {CHANGED}", tracks)
    # What was heard may not be what was hashed.
    if [stamp(path) for path in job.files] != [one.stamp for one in prints]:
        return _nothing(job, prints, f"changed: {CHANGED}", tracks)
    heard = Heard(
        key,
        tuple(len(side.array) for side in sides),
        tuple(round(side.speech_seconds, 2) for side in sides),
        tuple((p.channel, p.fatal, f"{p.kind}: {p.text}") for p in problems),
        tuple(one.sha256 for one in prints),
        tuple(side.sound or _sound_hash(side.array) for side in sides),
        known_runs([side.speech for side in sides]),
        tuple(round(side.seconds, 2) for side in sides),
    )
    about = {name: getattr(heard, name) for name in KEPT} | {SPEECH: listed(heard.speech)}
    arrays = {"sides": np.concatenate([side.array for side in sides])}
    store.write(heard.key, about, arrays | levels_of(sides))
    return heard


def _sound_hash(array: Singles) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() if len(array) else ""


def _cached(store: Store, key: str) -> tuple[Heard | None, Heard | None]:
    """What is in the cache; and, in its place, what an earlier version left there."""
    found = store.about(key)
    if found is None:
        return None, None
    said = found.get(SPEECH)
    heard = Heard(
        key,
        tuple(found["frames"]),
        tuple(found["speech_seconds"]),
        tuple((where, fatal, text) for where, fatal, text in found["problems"]),
        tuple(found["sha256"]),
        tuple(found["sounds"]),
        None if said is None else known_runs(said),
        tuple(found.get("lengths", ())),
    )
    return (heard, None) if {SPEECH, "lengths"} <= found.keys() else (None, heard)


def _deadly(job: Job, died: Died) -> Heard:
    """A recording that nobody could listen to and live."""
    named = SEPARATOR.join(path.name for path in job.files)
    text = f"unreadable: listening to {named} ended the process, twice ({died.how})"
    return _nothing(job, [fingerprint(path) for path in job.files], text, job.tracks or 1)


def _nothing(job: Job, prints: list[Fingerprint], why: str, tracks: int) -> Heard:
    """Of a recording nothing of which is used or goes into the cache: the next run tries again."""
    hashes = tuple(one.sha256 for one in prints)
    return Heard(_key(job, prints), sha256=hashes, **blank(tracks, ((None, True, why),)))


def load_array(store: Store, heard: Heard, track: int) -> Singles:
    """What the front end made of one side, mapped from the cache, not read; made once more where
    it is damaged or gone."""
    kept = store.load(heard.key)
    if kept is None and heard.job is not None:
        again, _ = listen(heard.job)
        again = again if heard.job.channel is None else again.only(heard.job.channel)
        if (again.key, again.sounds) != (heard.key, heard.sounds):
            raise SpklinkError(f"{heard.job.files[0]}: {CHANGED}")
        kept = store.load(heard.key)
    if kept is None:
        raise SpklinkError(f"{store.path(heard.key)}: cannot be kept; use another --cache")
    begin = heard.skipped + sum(heard.frames[:track])
    every: Singles = kept.arrays["sides"]
    return every[begin : begin + heard.frames[track]]
