"""Calibration without lists: what enrolled people teach who are heard in conversations that list
nobody.

Lists teach which pairs of sides may be one person (module `label_free`). Without any there are
still people whose voices are known: on every track one of them is, or nobody known, and how
probable each is follows from the scores under the current calibration (module `open_set`). These
expectations, two recordings of one person where there are some, and pairs that are certainly
different people make the next calibration (EM).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Line, pair_speech
from spklink.calibration.fitting import TooLittleError, Trials, fit, standard
from spklink.calibration.label_free import (
    FEWEST_NON_TARGETS,
    SAME_END,
    STARTS,
    LabelFree,
    Round,
)
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.database.links import Links
from spklink.database.sides import vague
from spklink.posterior.open_set import Identified, Voices, gathered, identify, means

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Score = Callable[[Ints, Ints], Floats]
MOST_TRACKS = 1000  # that are learned from: a choice that bounds the time
STEPS = 200
SETTLED = 1e-4  # no probability of a pair moves further
SMALLEST = 1e-12  # of a variance, in units of the known non-targets
FEWEST_TRACKS = 20  # a choice: as few as the conversations that lists are learned from, two each


@dataclass(frozen=True)
class _Alone:
    """Every track by itself, as learning asks of a posterior."""

    found: Identified
    voices: Voices

    @property
    def log_evidence(self) -> Floats:
        return np.array([self.found.log_evidence])

    @property
    def seconds(self) -> Floats:
        return np.zeros(1)

    @cached_property
    def chance(self) -> Floats:
        """That each trial is one person."""
        voices = self.voices
        of_track = self.found.chance[:, voices.owner] * voices.trust
        one, two = voices.within()
        return np.concatenate([of_track.ravel(), voices.trust[one] * voices.trust[two]])

    def candidate_probabilities(self, links: Links) -> Floats:
        return self.chance


@dataclass(frozen=True)
class _Teaching:
    """Tracks and voices: the scores of all of them with each other."""

    table: Conversations
    score: Score
    pairs: Pairs  # whose non-targets are known
    seconds: Floats | None
    tracks: Ints

    def trials(self, voices: Voices) -> Pairs:
        """Every track with every voice, then the pairs of one person's voices."""
        first, second = voices.within()
        one = np.concatenate([np.repeat(self.tracks, len(voices.side)), voices.side[first]])
        two = np.concatenate([np.tile(voices.side, len(self.tracks)), voices.side[second]])
        scores = self.score(one, two)
        calls = self.table.sides.conversation
        there = np.isfinite(scores) & (calls[one] != calls[two])
        return replace(
            self.pairs,
            candidates=np.arange(len(one)),
            scores=np.where(there, scores, 0.0),
            usable=there,
            speech=None if self.seconds is None else pair_speech(self.seconds, one, two),
        )

    def answered(self, llr: Floats, usable: Mask, voices: Voices) -> _Alone:
        """Who is on the tracks, given log-likelihood-ratios of the trials."""
        size = len(self.tracks) * len(voices.side)
        llr = np.where(usable, llr, np.nan)[:size]
        value = means(llr.reshape(len(self.tracks), -1), voices)
        return _Alone(identify(value, np.ones(len(self.tracks))), voices)

    def learned(self, voices: Voices) -> tuple[LabelFree, Pairs]:
        """Two normal laws of one variance, by EM from several starts: the most probable one."""
        trials, runs = self.trials(voices), []
        centre, spread = standard(trials.non_targets.score)
        inner = trials.standardised(centre, spread)
        for start in STARTS:
            runs.append(self._run(inner, voices, Line(start, 0.0)))
        best = max(runs, key=lambda run: run.history[-1].log_evidence or -np.inf)
        ends = np.array([run.history[-1].scale for run in runs])
        agree = bool(np.ptp(ends) <= SAME_END * abs(ends[0]))
        final = best.calibration.unstandardised(centre, spread)
        return replace(best, calibration=final, starts=len(runs), agree=agree), trials

    def _run(self, trials: Pairs, voices: Voices, line: Line) -> LabelFree:
        answer = self.answered(trials.calibrated(line), trials.usable, voices)
        history: list[Round] = []
        moved = np.inf
        while len(history) < STEPS and moved > SETTLED:
            before = answer.chance
            expected = _expected(before, trials)
            line, evidence = _two_laws(expected)
            answer = self.answered(trials.calibrated(line), trials.usable, voices)
            moved = float(np.abs(answer.chance - before).max(initial=0.0))
            evidence += answer.found.log_evidence
            history.append(Round(line.scale, line.offset, evidence, moved))
        targets = float((answer.chance * trials.usable).sum())
        count = len(trials.non_targets)
        return LabelFree(line, answer, history, moved <= SETTLED, 1, True, targets, count)


def _two_laws(trials: Trials) -> tuple[Line, float]:
    """The line of two normal laws of one variance, that of all scores about their means; and how
    probable all scores would be if all were of different people. (With the mean of two variances,
    which is as good for a line, EM has no likelihood to climb, and loses the weaker targets.)"""
    scores, same, other = trials.scores, trials.same, trials.other
    mean_same, mean_other = (np.average(scores, weights=w) for w in (same, other))
    total = same.sum() + other.sum()
    square = (same * (scores - mean_same) ** 2 + other * (scores - mean_other) ** 2).sum()
    variance = max(float(square / total), SMALLEST)
    scale = float(mean_same - mean_other) / variance
    if not scale > 0.0:
        raise TooLittleError(
            "calibration without lists failed: nobody who is enrolled seems to be on any track"
        )
    line = Line(scale, -scale * float(mean_same + mean_other) / 2.0)
    apart = ((scores - mean_other) ** 2).sum() / variance
    return line, float(-0.5 * (apart + len(scores) * np.log(variance)))


def learn_identified(
    table: Conversations,
    score: Score,
    pairs: Pairs,
    kind: str,
    *,
    seconds: Floats | None,
    usable: Mask,
    order: Ints,
) -> LabelFree:
    """What tracks of conversations that list nobody teach. `pairs` has the known non-targets,
    `order` all sides in the order of their sound."""
    known, tracks = _enrolled(table, usable), _tracks(table, usable, order)
    if len(tracks) < FEWEST_TRACKS or not known:
        raise TooLittleError(
            f"calibration without lists needs at least {FEWEST_TRACKS} tracks on which enrolled "
            f"people may be; found {len(tracks)}"
        )
    if len(pairs.non_targets) < FEWEST_NON_TARGETS:
        raise TooLittleError("too few scores of people who are certainly different")
    teaching = _Teaching(table, score, pairs, seconds, tracks)
    voices = gathered(known, np.ones(len(table.sides)), tracks)
    learned, trials = teaching.learned(voices)
    expected = _expected(learned.posterior.candidate_probabilities(pairs.links), trials)
    return replace(learned, calibration=fit(expected, kind, source="labelfree"))


def _expected(chance: Floats, pairs: Pairs) -> Trials:
    """Pairs with their probability, those that are probably different people included: the known
    non-targets are few where nobody is listed."""
    same = chance[pairs.usable]
    none, speech = np.zeros(len(pairs.non_targets)), None
    if pairs.speech is not None and pairs.non_target_speech is not None:
        speech = np.concatenate([pairs.speech[pairs.usable], pairs.non_target_speech])
    return Trials(
        scores=np.concatenate([pairs.scores[pairs.usable], pairs.non_targets.score]),
        same=np.concatenate([same, none]),
        other=np.concatenate([1.0 - same, none + 1.0]),
        speech=speech,
    )


def _enrolled(table: Conversations, usable: Mask) -> list[Ints]:
    """The sides of every enrolled person."""
    sides = np.arange(table.sides.start[table.asked], len(table.sides))
    sides = sides[usable[sides]]
    who = table.people[table.listing.start[table.sides.conversation[sides]]]
    return [sides[who == one] for one in np.unique(who)]


def _tracks(table: Conversations, usable: Mask, order: Ints) -> Ints:
    """Tracks of conversations that list nobody: evenly spread in the order of the sound."""
    asked = vague(table) & (table.listing.counts == 0) & (np.arange(len(table)) < table.asked)
    found = order[(asked[table.sides.conversation] & usable)[order]]
    return np.asarray(found[:: max(1, -(-len(found) // MOST_TRACKS))])
