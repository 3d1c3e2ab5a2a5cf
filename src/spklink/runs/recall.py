"""A run by a kept model: from the sides of a table to the posterior, what is known as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Kept
from spklink.calibration import curves
from spklink.calibration.choice import Calibrated
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.calibration.resettling import Sums, resettled
from spklink.calibration.settling import Problem, Settling
from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent
from spklink.database.labels import Labels
from spklink.database.links import Links, needed_sides
from spklink.posterior.answer import Answer, answer_of_states
from spklink.posterior.posterior import Options
from spklink.runs.call_keys import Keys, Match
from spklink.runs.clique_store import (
    KeptCliques,
    Layout,
    clique_names,
)
from spklink.runs.drift import drift_of, numbers
from spklink.runs.evidence import Evidence
from spklink.runs.kept_scores import (
    every_pair,
    folds_by,
    sample,
    scored,
    scorer_by,
)
from spklink.runs.kept_sums import recalled_sums
from spklink.runs.model import Model
from spklink.runs.part import part_of
from spklink.runs.scoring import Scorer
from spklink.scores.needed import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """What the last run by a model kept, and where the conversations of this run are in it."""

    kept: Kept
    match: Match

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return self.kept.arrays

    def cliques(self, names: Keys) -> KeptCliques:
        """Which cliques of these names it has."""
        known = self.arrays["clique"]
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known[order], names), max(len(known) - 1, 0))
        same = known[order][at] == names if len(known) else np.zeros(len(names), np.bool_)
        now = np.flatnonzero(same)
        words = [str(word) for word in self.kept.about["words"]]
        return KeptCliques(self.arrays, words, now, order[at[now]], ~same)


@dataclass(frozen=True)
class Recalled:
    """A run by a kept model, as far as the posterior."""

    model: Model
    scorer: Scorer
    pairs: Pairs
    found: Calibrated
    answer: Answer
    every: Floats | None  # (S, S) scores of all pairs, of a small database
    new: int  # conversations the model was not learned on
    fresh: bool  # something was computed that the answers did not have


@dataclass(frozen=True)
class Recalling:
    """One run by a kept model."""

    keys: Keys  # of the conversations
    scorer: Scorer  # not yet normalised
    answers: Answers | None
    model: Model
    match: Match
    known: Labels | None
    links: Links
    frequent: Frequent  # people whose links are not listed
    how: Options

    @property
    def table(self) -> Conversations:
        return self.scorer.conversations

    def run(self) -> tuple[Recalled, str]:
        """The run, and what has drifted."""
        model, table, answers = self.model, self.table, self.answers
        scorer = self._scorer(answers)
        pairs, computed = self._pairs(scorer, answers)
        line = curves.load(model.about["calibration"])
        llr, others = pairs.calibrated(line), pairs.calibrated_non_targets(line)
        scores = Scores(llr, len(others), others)
        evidence = Evidence(table, self.links, scores, model.weight, self.known)
        summed = self._summed(scorer, evidence, pairs, line)
        if summed is not None:
            evidence = evidence.with_sums(summed.sums)
        answer, touched = self._solved(evidence, answers)
        linked = answer.given(lists_right=True) if table.plain else answer.with_pairs(self.how)
        note = model.about["notes"]["calibrated"]
        found = Calibrated(linked, line, model.weight, llr, others, note=note)
        if summed is not None:
            found = replace(found, sums=summed.sums, chance=summed.base)
        new = self.match.call < 0
        if new.any():
            chance = linked.candidate_probabilities(self.links)
            same = chance * pairs.usable[pairs.candidates]
            seen = numbers(table, scorer, pairs, same)
            drifted = drift_of(table, seen, new, np.asarray(model.arrays["drift"])).why
        else:
            drifted = ""
        gone = answers is None or answers.match.gone > 0
        fresh = bool(computed or touched or gone)
        kept = (None, None) if answers is None else (answers.arrays, answers.match)
        every = None if drifted else every_pair(scorer, *kept)
        return Recalled(model, scorer, pairs, found, answer, every, int(new.sum()), fresh), drifted

    def _scorer(self, answers: Answers | None) -> Scorer:
        model, table = self.model, self.table
        own: list[tuple[Mapping[str, NDArray[Any]], Match]] = [(model.arrays, self.match)]
        earlier = own if answers is None else [(answers.arrays, answers.match), *own]
        place = np.argsort(self.scorer.sound.order)
        people = model.arrays if answers is None else answers.arrays
        keys = people.get("person", np.zeros(0, np.uint64))
        fold = people.get("fold", np.zeros(0, np.int8))
        folds = folds_by(table, place, keys, fold)
        return scorer_by(model, self.scorer, self.match, earlier, folds)

    def _pairs(self, scorer: Scorer, answers: Answers | None) -> tuple[Pairs, int]:
        table = self.table
        kept = None if answers is None else answers.arrays
        match = None if answers is None else answers.match
        one, two = needed_sides(self.links, table.sides)
        needed, computed = scored(scorer, one, two, kept, match)
        pool = self._pool()
        others = sample(scorer, kept, match, pool, self.scorer.seed)
        sound = scorer.sound
        seconds, usable = sound.known_seconds(), sound.usable
        return make_pairs(
            table, self.links, needed, others, seconds=seconds, usable=usable
        ), computed

    def _summed(
        self, scorer: Scorer, evidence: Evidence, pairs: Pairs, line: curves.Calibration
    ) -> Sums | None:
        """What frequent voices add to every seat: as it was where nothing new touches them."""
        voices, model, answers = scorer.voices(self.frequent), self.model, self.answers
        if voices is None:
            return None
        rate = model.about["settled_at"]
        problem = Problem(self.table, pairs, voices, self.known, rate, self.how)
        kept = None
        if answers is not None:
            kept = recalled_sums(voices, self.keys, answers.arrays, answers.match)
        llr = evidence.scores.needed
        if kept is None:
            settled = Settling(problem, model.weight).finished(llr, line)
            return Sums(settled.sums, settled.chance, np.zeros(len(voices.frequent), np.bool_))
        if not kept.stale.any() and not self._moved(evidence.with_sums(kept.sums)):
            return kept
        return resettled(problem, model.weight, llr, line, kept)

    def _moved(self, evidence: Evidence) -> bool:
        """Whether a clique with frequent people is otherwise than in the answers."""
        assert self.answers is not None
        touched = self.answers.cliques(clique_names(evidence, self.keys)).touched
        calls = self.table.listing.conversation_of(self.frequent.entry)
        return bool(touched[evidence.cliques.label[calls]].any())

    def _pool(self) -> Ints:
        """Sides of this run that are in the model's pool."""
        inside = np.zeros(len(self.model.sides), np.bool_)
        inside[self.model.arrays["pool"]] = True
        there = self.match.side >= 0
        there[there] = inside[self.match.side[there]]
        return np.flatnonzero(there & self.scorer.sound.usable)

    def _solved(self, evidence: Evidence, answers: Answers | None) -> tuple[Answer, int]:
        """The answer for every clique: of those that nothing touched as it was; and how many were
        solved."""
        names = clique_names(evidence, self.keys)
        kept = None if answers is None else answers.cliques(names)
        if kept is None or kept.touched.all():
            return self._answered(evidence), len(names)
        calls = np.flatnonzero(kept.touched[evidence.cliques.label])
        fresh = self._answered(part_of(evidence, calls)) if len(calls) else None
        layout, rate = Layout(evidence), self.model.rate
        right = partial(evidence.lists_right, self.how)
        if self.table.plain:
            own = None if fresh is None else fresh.given(lists_right=True).bits
            right = partial(evidence.of_bits, kept.bits(evidence, layout, own))
        if rate is None:
            return right(), len(calls)
        beliefs = kept.seats(layout, None if fresh is None else fresh.beliefs)
        table, seats = evidence.conversations, evidence.seats(rate.value)
        answer = answer_of_states(table, evidence.cliques, rate, seats, beliefs, cache(right))
        return answer, len(calls)

    def _answered(self, evidence: Evidence) -> Answer:
        """The answer at the rate of list errors that the model has."""
        rate, right = self.model.rate, None
        if self.table.plain:
            right = evidence.lists_right(self.how)
        found = evidence.answered(rate.value if rate else 0.0, self.how, right=right, near=True)
        return found if rate is None else replace(found, rate=rate)
