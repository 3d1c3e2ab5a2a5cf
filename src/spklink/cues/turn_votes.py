"""Turns held against how loud the tracks are: the numbers that the model of turns works on.

Levels in dB, floored 40 dB below their 99th percentile, z-normalised a track; of each track the
mean of the others is taken off. A turn counts as often as it is a turn: what somebody says with no
turn of another in between, and no long pause, is one, however many rows a transcript makes of it;
of it only counts what no other turn overlaps. Its value on a track is the mean of that track's
levels during the turn, for every offset by which the transcript may be late or early.

A diarized track has no level of its own: it is a part of one channel. There its segments take the
place of levels, so that a turn's value tells how far it lies in segments of a track. Segments may
overlap: of whoever never speaks alone, all of his turns count.

A *voter* is what turns can decide between: for two people on two tracks the pair of them, as listed
or exchanged; else one person, on any of the tracks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns as Segments
from spklink.database.sides import TWO
from spklink.sound.levels import Level, decibels
from spklink.sound.speech import FRAME_SECONDS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
STEP = 5  # frames taken together
SECONDS = STEP * FRAME_SECONDS
LEVELS = 256
LOUD = 0.99  # of the frames are not louder than the loud ones
BELOW = 40.0  # dB under the loud frames: quieter ones are all the same
REACH, NEAR = 15.0, 2.0  # seconds of offset; finer steps up to NEAR
FINE, COARSE = 0.1, 0.25  # seconds, between offsets
PAUSE = 2.0  # seconds: a longer one ends a turn
ACTIVE = 1.6  # what a segment of a diarized track counts: about what a loud channel does
LEAST_SPREAD = 0.05  # of values at random, squared: below, a track hardly changes
Person = int  # place in a participant list; negative for people who are not on it
Turns = Sequence[tuple[Person, float, float]]  # who, start, end; seconds


@dataclass(frozen=True)
class Voter:
    """What the turns of one or two people say, option by option."""

    conversation: int
    people: tuple[Person, ...]  # two: the options are as listed and exchanged; one: his tracks
    value: NDArray[np.float32]  # (options, turns, offsets)
    spread: Floats  # (options, turns) mean square of such values at random places
    seconds: Floats  # (turns,)


@lru_cache(maxsize=1)
def offsets() -> Floats:
    """Seconds by which a transcript may be early: finely near 0, then coarsely."""
    fine = np.arange(0.0, NEAR + FINE / 2.0, FINE)
    coarse = np.arange(NEAR + COARSE, REACH + COARSE / 2.0, COARSE)
    half = np.concatenate([fine, coarse])
    return np.concatenate([-half[:0:-1], half])


def activities(segments: Segments, tracks: int, seconds: float) -> Floats:
    """(tracks, steps) the same of diarized tracks: a track's own are its segments, however loud
    they are, and where two of them overlap both are."""
    length = int(np.ceil(max([seconds, *(end for _, _, end in segments)]) / SECONDS))
    own = np.zeros((tracks, length))
    for track, start, end in segments:
        own[track, round(start / SECONDS) : round(end / SECONDS)] = ACTIVE
    return _less_others(own)


def contrasts(levels: Sequence[Level]) -> Floats:
    """(tracks, steps) how much louder than the others each track is."""
    length = max(map(len, levels)) // STEP
    own = np.zeros((len(levels), length))
    for k, level in enumerate(levels):
        steps = len(level) // STEP
        if steps:
            loud = _normalised(level[: steps * STEP])
            own[k, :steps] = loud.reshape(-1, STEP).mean(axis=1)
    return _less_others(own)


def _normalised(level: Level) -> Floats:
    """(frames,) z-normalised, floored; by a table, as there are only so many levels."""
    count = np.bincount(level, minlength=LEVELS)
    rank = np.searchsorted(np.cumsum(count), LOUD * len(level))
    loud = decibels(np.arange(LEVELS, dtype=np.uint8)).astype(np.float64)
    loud = np.maximum(loud, loud[min(int(rank), LEVELS - 1)] - BELOW)
    mean = float(count @ loud) / len(level)
    spread = float(np.sqrt(count @ (loud - mean) ** 2 / len(level))) or 1.0
    return np.asarray(((loud - mean) / spread)[level])


def _less_others(own: Floats) -> Floats:
    found = own - (own.sum(axis=0) - own) / max(len(own) - 1, 1)
    return np.asarray(found - found.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class Runs:
    """When somebody speaks, in steps: the parts of his turns, in order of time."""

    begin: Ints
    end: Ints
    turn: Ints  # which each belongs to, from 0


def _masks(turns: Turns) -> tuple[list[Person], Mask]:
    """Who has turns, and (people, steps) when."""
    length = int(np.ceil(max(end for _, _, end in turns) / SECONDS)) + 1
    people = sorted({who for who, _, _ in turns})
    has = np.zeros((len(people), length), np.bool_)
    for who, start, end in turns:
        has[people.index(who), int(start / SECONDS) : int(np.ceil(end / SECONDS))] = True
    return people, has


def spoken(turns: Turns, *, at_once: bool = False) -> dict[Person, Runs]:
    """Of each person: what he alone says. With `at_once` whoever never speaks alone has the whole
    of his turns."""
    if not turns:
        return {}
    people, has = _masks(turns)
    alone = np.where(has.sum(axis=0) == 1, has.argmax(axis=0), -1)
    never = [p for p in range(len(people)) if at_once and p not in alone]
    found = _runs(alone, people)
    for p in never:
        found |= _runs(np.where(has[p], p, -1), people)
    return found


def _runs(alone: Ints, people: Sequence[Person]) -> dict[Person, Runs]:
    """From (steps,) who speaks, or -1."""
    edges = np.flatnonzero(np.diff(alone, prepend=-1, append=-1))
    runs = [(int(i), int(j), int(alone[i])) for i, j in pairwise(edges)]
    found: dict[Person, list[tuple[int, int, int]]] = {}
    before, until, turn = -1, 0, 0
    for begin, end, who in runs:
        if who < 0:
            continue
        turn += before != who or (begin - until) * SECONDS > PAUSE
        before, until = who, end
        found.setdefault(people[who], []).append((begin, end, turn))
    parted = {}
    for person, rows in found.items():
        begin_, end_, turn_ = np.array(rows, np.int64).T
        which = np.unique(turn_, return_inverse=True)[1].reshape(-1)
        parted[person] = Runs(begin_, end_, which)
    return parted


def voters(
    m: int, course: Floats, turns: Turns, *, pair: bool, at_once: bool = False
) -> list[Voter]:
    """All voters of a conversation whose tracks take this course; `pair` where it is two listed
    people on two tracks; `at_once` where tracks that speak at once can be told apart."""
    total = np.zeros((len(course), course.shape[1] + 1))
    np.cumsum(course, axis=1, out=total[:, 1:])
    parts = {who: _values(total, one) for who, one in spoken(turns, at_once=at_once).items()}
    if not pair or not parts or any(who not in (0, 1) for who in parts):
        return [
            Voter(m, (who,), part.value, part.spread, part.seconds)
            for who, part in sorted(parts.items())
        ]
    both = [parts[who].turned(who) for who in sorted(parts)]
    order = np.argsort(np.concatenate([one.begin for one in both]), kind="stable")
    value = np.concatenate([one.value for one in both], axis=1)[:, order]
    spread = np.concatenate([one.spread for one in both], axis=1)[:, order]
    seconds = np.concatenate([one.seconds for one in both])[order]
    return [Voter(m, (0, 1), value, spread, seconds)]


@dataclass(frozen=True)
class _Part:
    """The turns of one person."""

    value: NDArray[np.float32]  # (tracks, turns, offsets)
    spread: Floats  # (tracks, turns) mean square of values of such turns at random places
    seconds: Floats  # (turns,)
    begin: Ints  # (turns,)

    def turned(self, who: Person) -> _Part:
        """By options of two people, as listed and exchanged, not by tracks."""
        if who == 0:
            return self
        return _Part(self.value[::-1], self.spread[::-1], self.seconds, self.begin)


def _values(total: Floats, runs: Runs) -> _Part:
    if len(total) == TWO:  # what is for one of two tracks is against the other
        one = _values(total[:1], runs)
        value = np.concatenate([one.value, -one.value])
        return replace(one, value=value, spread=one.spread.repeat(TWO, axis=0))
    from spklink.cues.turn_chain import turn_values

    count, shift = int(runs.turn[-1]) + 1, np.rint(offsets() / SECONDS).astype(np.int64)
    value = np.zeros((len(total), count, len(shift)))
    square, length = np.zeros((len(total), count)), np.zeros(count, np.int64)
    turn_values(total, runs.begin, runs.end, runs.turn, shift, value, square, length)
    first = np.flatnonzero(np.diff(runs.turn, prepend=-1))
    spread = np.maximum(square, LEAST_SPREAD)
    seconds = np.asarray(length * SECONDS, np.float64)
    return _Part(value.astype(np.float32), spread, seconds, runs.begin[first])
