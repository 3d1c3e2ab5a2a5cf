"""What speech of known speakers teaches: PLDA from a background folder that has a speakers.csv.

`speakers.csv` lies in the folder and tells whose voice is on which recording: `audio,speaker`, with
paths from the folder, and `channel` (from 1) where a recording has several. How one person's
recordings differ is told by people with two or more, best of different days and telephones.

Background and calls are each seen from their own mean, reduced to the main directions of the calls,
and the calls compared by the model of the background. It never heard the calls: no folds are
needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import numbered
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.recognizers import normalise
from spklink.recognizers.link_wccn import DIMENSIONS, Reduction, Units
from spklink.recognizers.plda import PairTerms, pair_terms
from spklink.recognizers.plda_training import Speakers, learn
from spklink.recognizers.products import unit_vectors
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.sums import Comparison, compared_again
from spklink.recognizers.training import Trainer, vectors_of
from spklink.sound.heard import Heard, Job
from spklink.sound.listening import Sound, listen_all
from spklink.tables import open_table, require_columns, wrong_length
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
NAME = "speakers.csv"
SHORTEST = 2.0  # seconds of speech a recording needs to teach. A choice, as --min-speech


@dataclass(frozen=True)
class Labelled:
    """Recordings and whose voice is on them."""

    path: Path  # of the table
    audio: list[str]
    channel: list[int | None]  # from 0; None: the only one
    speaker: list[str]


@dataclass(frozen=True)
class BackgroundScorer:
    """Compares sides as the background teaches."""

    terms: PairTerms
    normaliser: normalise.Normaliser

    def scores(self, side_1: Sides, side_2: Sides) -> Floats:
        """Of pairs."""
        return self.normaliser.apply(self.terms.pairs(side_1, side_2), side_1, side_2)

    def comparison(self, person: int) -> Comparison:
        """How the sides of anybody are compared, for sums."""
        return self._comparison

    @cached_property
    def _comparison(self) -> Comparison:
        return compared_again(self.terms, self.normaliser)


def has_labels(folder: Path | None) -> bool:
    """Whether a background says who speaks."""
    return folder is not None and (folder / NAME).is_file()


def read_speakers(folder: Path) -> Labelled:
    """The table of a background, checked; all problems in one error."""
    problems, found = Problems(), Labelled(folder / NAME, [], [], [])
    seen: dict[tuple[str, int | None], int] = {}
    with open_table(found.path) as (header, rows):
        require_columns(header, ["audio", "speaker"])
        at = [header.column(name) for name in ("audio", "speaker", "channel")]
        for number, fields in rows:
            wrong = wrong_length(number, fields, header)
            if not wrong:
                audio, speaker, channel = ("" if k < 0 else fields[k].strip() for k in at)
                wrong = _take(found, seen, number, folder, audio, speaker, channel)
            if wrong:
                problems.append(wrong)
    if problems:
        raise problems_in(found.path, problems)
    return found


def _take(
    found: Labelled,
    seen: dict[tuple[str, int | None], int],
    number: int,
    folder: Path,
    audio: str,
    speaker: str,
    channel: str,
) -> str:
    """Take one row; what is wrong with it, or nothing."""
    if not audio or not speaker:
        return f"row {number}: no {'speaker' if audio else 'audio'}"
    if channel and not (channel.isascii() and channel.isdigit() and int(channel) > 0):
        return f"row {number}: channel {channel!r} is not a number from 1"
    if not (folder / audio).is_file():
        return f"row {number}: there is no file {audio!r} in {folder}"
    key = audio, int(channel) - 1 if channel else None
    if key in seen:
        return f"row {number}: {audio!r} is in row {seen[key]} already"
    seen[key] = number
    found.audio.append(audio)
    found.channel.append(key[1])
    found.speaker.append(speaker)
    return ""


def fit(
    recognizer: Recognizer,
    sound: Sound,
    conversations: Conversations,
    units: Units,
    trainer: Trainer,
) -> BackgroundScorer:
    """Learn from the trainer's background how to compare the sides of `sound`."""
    assert trainer.background is not None
    labelled = read_speakers(trainer.background)
    vectors, speaker = _speakers(labelled, recognizer, sound, trainer)
    usable, order = sound.usable, sound.order
    with one_blas_thread():  # a matrix product may depend on the number of threads
        reduction = Reduction.of(units, usable, trainer.seed, order)
        spare = len(speaker) - int(speaker.max()) - 1  # recordings beyond the first of each speaker
        size = min(DIMENSIONS, spare, reduction.size)
        background = reduction.reduced(vectors, size)
        model = learn(Speakers(background - background.mean(axis=0), speaker)).model
        reduced = reduction.all_sides(units, len(usable), order)[:, :size]
        terms = pair_terms(model.ratio, model.turned(reduced - reduced[usable].mean(axis=0)))
        normaliser = normalise.fit(
            terms.table, conversations, usable, seed=trainer.seed, order=order
        )
    return BackgroundScorer(terms, normaliser)


def _speakers(
    labelled: Labelled, recognizer: Recognizer, sound: Sound, trainer: Trainer
) -> tuple[NDArray[np.float32], Sides]:
    """Unit vectors of the recordings that can teach, and whose they are, in the order of their
    sound: other names or rows give the same bytes."""
    heard = _hear(labelled, recognizer, sound, trainer)
    rows = {audio: k for k, audio in enumerate(sorted(set(labelled.audio)))}
    sides = numbered(len(one.frames) for one in heard)
    own = Sound(heard, [""] * len(sides), sound.store, sides)
    track = [0 if k is None else k for k in labelled.channel]
    side = np.array(
        [sides.start[rows[a]] + k for a, k in zip(labelled.audio, track, strict=True)], np.int64
    )
    row = np.argsort(own.order)[side]
    taught = np.argsort(row, kind="stable")
    taught = taught[own.seconds()[side[taught]] >= SHORTEST]
    speaker = _numbered([labelled.speaker[k] for k in taught.tolist()])
    if np.bincount(speaker, minlength=1).max() < 2:
        raise SpklinkError(
            f"{labelled.path}: no speaker has two recordings with {SHORTEST:g} seconds of speech; "
            "how one person's recordings differ cannot be learned: give several of each speaker"
        )
    if speaker.max() == 0:
        raise SpklinkError(f"{labelled.path}: all recordings are of one speaker; give others too")
    vectors = vectors_of(recognizer, own, trainer)
    usable = np.zeros(len(sides), np.bool_)
    usable[row[taught]] = True
    product = recognizer.centred(vectors, usable).product
    return unit_vectors(product, vectors, row[taught]), speaker


def _numbered(names: list[str]) -> Sides:
    """Names as numbers from 0, in the order in which they come."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)


def _hear(
    labelled: Labelled, recognizer: Recognizer, sound: Sound, trainer: Trainer
) -> list[Heard]:
    """Every recording of the table, in order of their names."""
    folder, files = labelled.path.parent, sorted(set(labelled.audio))
    jobs = [Job((folder / name,), None, recognizer.front_end, sound.store.folder) for name in files]
    heard = listen_all(jobs, sound.store, hands=trainer.hands)
    known = dict(zip(files, heard, strict=True))
    problems = Problems()
    for name, channel in zip(labelled.audio, labelled.channel, strict=True):
        tracks = len(known[name].frames)
        if channel is None and tracks > 1:
            problems.append(f"{name}: has {tracks} channels; say which in a column channel")
        elif channel is not None and channel >= tracks:
            problems.append(f"{name}: has no channel {channel + 1}")
        elif not trainer.skip_bad and (why := known[name].fatal(channel or 0)):
            problems.append(f"{name}: {why}")
    if problems:
        raise problems_in(labelled.path, problems)
    return heard
