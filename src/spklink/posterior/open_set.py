"""Who of many known people is on a track, or none of them: every track by itself.

On track x a person is as much more probable than somebody nobody knows as the mean of the
log-likelihood-ratios of x with his voices says. (The evidence of a whole block of sides says more:
w(n + 1) of the sum with x, less what the block loses. Right where calibration is; one that is
learned without lists is a little too steep, and then it is far too sure: docs/enrolment.md.)
Before listening, x is each of the N people with the probability rate / N; the rate is the share of
tracks that the voices give to people, estimated by EM.

Index conventions: x = track, s = person; values are (X, N), minus infinity where s cannot be on x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_VOICES = 10  # of one person that a track is compared with. A choice: more say little more
SURE = 0.9  # from which a track is a voice of somebody's. A choice
FIRST = 0.5  # rate with which estimating begins: nothing is known
NAMED, TRACKS = 0.5, 1.0  # what the prior of the rate is worth: half a track in one
ROUNDS = 100
SETTLED = 1e-4  # by this the rate may still move
LEAST = 1e-6  # of a rate, and of its opposite


@dataclass(frozen=True)
class Voices:
    """Known voices, person by person."""

    side: Ints  # (V,)
    trust: Floats  # (V,) how surely each is theirs
    start: Ints  # (N + 1,) where those of a person begin

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def owner(self) -> Ints:
        """(V,) whose each is."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def within(self) -> tuple[Ints, Ints]:
        """All pairs of one person's voices, by their numbers."""
        count = np.diff(self.start)
        later = np.repeat(self.start[1:], count) - np.arange(len(self.side)) - 1
        one = np.repeat(np.arange(len(self.side)), later)
        return one, ranges(np.arange(len(self.side)) + 1, later)


def gathered(
    known: Sequence[Ints], trust: Floats, tracks: Ints, chance: Floats | None = None
) -> Voices:
    """The voices of people: `known` sides of each, the surest first, then tracks that are surely
    theirs by `chance` (X, N). `trust` (sides,) is how surely the known ones are theirs."""
    every, trust = [], trust.copy()
    for s, own in enumerate(known):
        if chance is not None:
            sure = np.flatnonzero(chance[:, s] > SURE)
            sure = sure[np.argsort(-chance[sure, s], kind="stable")]
            trust[tracks[sure]] = chance[sure, s]
            own = np.concatenate([own, tracks[sure]])
        every.append(own[:MOST_VOICES])
    side = np.concatenate(every)
    start = np.concatenate([[0], np.cumsum([len(one) for one in every])])
    return Voices(side, trust[side], start)


def means(llr: Floats, voices: Voices) -> Floats:
    """(X, N) the values, from the log-likelihood-ratios (X, V) with all voices; NaN: not known."""
    known, first = np.isfinite(llr), voices.start[:-1]
    heard = np.add.reduceat(known * voices.trust, first, axis=1)
    total = np.add.reduceat(np.where(known, llr, 0.0) * voices.trust, first, axis=1)
    return np.where(heard > 0.0, total / np.where(heard > 0.0, heard, 1.0), -np.inf)


@dataclass(frozen=True)
class Identified:
    """Who is on which track, each by itself."""

    chance: Floats  # (X, N)
    rate: float  # share of tracks that are some of the people's
    log_evidence: float  # of all tracks, beside "nobody known is on any"

    def odds(self) -> float:
        """Log-odds that a track is one of the people's."""
        return float(np.log(self.rate) - np.log1p(-self.rate))


def identify(value: Floats, free: Floats) -> Identified:
    """`free` (X,) is how probable it is that a track is not somebody's who is listed."""
    found = given_rate(value, free, FIRST)
    for _ in range(ROUNDS):
        expected = float((free * found.chance.sum(axis=1)).sum())
        rate = (expected + NAMED) / (float(free.sum()) + TRACKS)
        rate = min(max(rate, LEAST), 1.0 - LEAST)
        moved = abs(rate - found.rate)
        found = given_rate(value, free, rate)
        if moved <= SETTLED:
            break
    return found


def given_rate(value: Floats, free: Floats, rate: float) -> Identified:
    """The same where the rate is known."""
    people = np.isfinite(value).sum(axis=1, keepdims=True)
    each = np.log(rate) - np.log(np.maximum(people, 1))
    top = np.maximum((value + each).max(axis=1, initial=-np.inf, keepdims=True), np.log1p(-rate))
    weighed = np.exp(value + each - top)
    whole = weighed.sum(axis=1, keepdims=True) + np.exp(np.log1p(-rate) - top)
    evidence = float((free * (np.log(whole) + top).ravel()).sum())
    return Identified(weighed / whole, rate, evidence)
