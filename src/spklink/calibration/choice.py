"""From a choice of calibration to a calibrated posterior: what `link`, `assign` and `calibrate` do.

Where too little can be learned, a run does not stop: it takes the calibration given for that case,
or a default, and says so in plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from spklink.calibration import curves
from spklink.calibration.curves import Calibration, Line, Saved, name_of, read_saved
from spklink.calibration.fitting import TooLittleError, stated_default, supervised
from spklink.calibration.frequent import FrequentVoices, refuse_bent
from spklink.calibration.label_free import (
    LabelFree,
    Solve,
    label_free,
    what_is_missing,
)
from spklink.calibration.pairs import Pairs
from spklink.calibration.settling import Problem, Settling
from spklink.calibration.table import DEFAULT, DEFAULT_WITH_SPEECH, KINDS, find_kind
from spklink.calibration.weight import learn_weight
from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import needed_sides
from spklink.errors import SpklinkError
from spklink.posterior.answer import Answer, answer_of_bits, certain_calls, said_about, seat
from spklink.posterior.likelihood import Weight, build_model, combine_prior
from spklink.posterior.list_errors import next_rate
from spklink.posterior.posterior import Options, Tell, solve
from spklink.posterior.states.seats import build_seats
from spklink.scores.needed import SideScores
from spklink.tables import read_table

Floats = NDArray[np.float64]
LABELFREE, NONE = "labelfree", "none"
STRAIGHT = ("lr", "lr-dur", "cmlg")  # kinds whose curves can be summed


@dataclass(frozen=True)
class Choice:
    """How scores become log-likelihood-ratios."""

    source: Saved = LABELFREE  # labelfree, none, or a saved calibration
    kind: str | None = None  # None: lr-dur where the seconds of speech are known, else lr-floor
    fallback: Saved | None = None  # for databases that teach too little
    first: bool = False  # of a saved calibration take that of the first comparison of voices
    wrong_lists: float = 0.0  # share of pairs that wrong lists may call one person

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise SpklinkError(f"--kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if not 0.0 <= self.wrong_lists < 0.5:
            raise SpklinkError(f"--wrong-lists {self.wrong_lists}: a share from 0 to below .5")
        if self.wrong_lists and self.kind and not find_kind(self.kind).takes_least_floor:
            raise SpklinkError(f"--wrong-lists does not go with --kind {self.kind}")
        for name in ("source", "fallback"):  # files are read once, here
            object.__setattr__(self, name, _as_read(getattr(self, name)))
        for one in self.saved():  # what is wrong is named now, not after an hour of listening
            curves.load(one)
            saved_weight(one)

    @classmethod
    def of(cls, options: Mapping[str, Any], kind: str | None = None) -> Choice:
        """What options ask for; `kind` is that of the recipe, unless they name one."""
        get = options.get
        return cls(
            source=get("calibration", LABELFREE),
            kind=get("kind") or kind,
            fallback=get("fallback"),
            wrong_lists=get("wrong_lists", 0.0),
        )

    def named_files(self) -> dict[str, Saved]:
        """The saved calibrations, by the names that run.json has for them."""
        return {f"calibration_{k}": one for k, one in enumerate(self.saved(), start=1)}

    def saved(self) -> list[Saved]:
        """The saved calibrations it names."""
        return [
            one
            for one in (self.source, self.fallback)
            if one is not None and one not in (LABELFREE, NONE)
        ]

    def rule(self) -> Weight:
        """The weight rule saved with a calibration; else the paper's."""
        return Weight() if self.source in (LABELFREE, NONE) else saved_weight(self.source)

    def straight(self) -> Choice:
        """The same with a straight line, where people's voices are summed; an error where another
        curve was asked for."""
        for one in self.saved():
            for first in (False, True):
                refuse_bent(curves.load(one, first=first))
        if self.wrong_lists or (self.kind is not None and self.kind not in STRAIGHT):
            what = "--wrong-lists" if self.wrong_lists else f"--kind {self.kind}"
            raise SpklinkError(
                f"{what} bends the line of log-likelihood-ratios, and somebody has so many "
                "conversations that these can only be summed along a straight one: use --kind lr, "
                "lr-dur or cmlg, or a larger --budget-gb if that is why"
            )
        return self

    def kind_for(self, pairs: Pairs) -> str:
        if self.kind is None and pairs.sample is not None and pairs.speech is None:
            return STRAIGHT[0]
        if self.kind is None:
            return DEFAULT if pairs.speech is None else DEFAULT_WITH_SPEECH
        if pairs.speech is None and find_kind(self.kind).needs_speech:
            raise SpklinkError(
                f"--kind {self.kind} needs the seconds of speech of every side: --sides"
            )
        return self.kind


def _as_read(saved: Saved | None) -> Saved | None:
    named = isinstance(saved, str | PathLike) and saved not in (LABELFREE, NONE)
    return read_table(saved) if named else saved


@dataclass(frozen=True)
class Calibrated:
    """An answer, the calibration behind it, and how that came about."""

    answer: Answer
    calibration: Calibration
    weight: Weight
    llr: Floats  # (P,)
    non_targets: SideScores  # log-likelihood-ratios too
    learned: LabelFree | None = None
    note: str = ""  # what a person should know
    first: Calibration | None = None  # of the first comparison, where voices were compared twice
    # Where some people are frequent: (seats,) what their voices say, and how probable each seat is.
    sums: Floats | None = None
    chance: Floats | None = None
    settled_at: float = 0.0  # the rate of list errors under which these settled

    def as_json(self) -> dict[str, Any]:
        learned = {} if self.learned is None else self.learned.as_json()
        rule: dict[str, Any] = {"weight": self.weight.rule, "beta": self.weight.beta}
        if self.first is not None:
            rule["first"] = self.first.as_json()
        return self.calibration.as_json() | rule | learned


def calibrated(
    conversations: Conversations,
    pairs: Pairs,
    choice: Choice,
    *,
    known: Labels | None = None,
    weight: Weight | None = None,
    rate: float = 0.0,
    again: float | None = None,
    options: Options | None = None,
    voices: FrequentVoices | None = None,
    tell: Tell | None = None,
) -> Calibrated:
    """The posterior under the chosen calibration. Without a `weight` that of the paper is used,
    unless known channels ask for another. `rate` is that of list errors (module `list_errors`),
    `again` a scale to go on from (module `label_free`): then the rate is learned on the way.
    `voices` are those of people whose links are not listed."""
    if voices is None:
        solver = _solver(conversations, pairs, known, rate, options, learning=again is not None)
    else:
        problem = Problem(conversations, pairs, voices, known, rate, options or Options())
        solver = cache(lambda rule: Settling(problem, rule))
    rule = weight or choice.rule()

    def finished(line: Calibration, rule: Weight, found: Answer | None = None) -> Calibrated:
        return _finished(pairs, line, rule, solver(rule), found)

    if choice.source != LABELFREE:
        return finished(_given(choice), rule)
    cliques = find_cliques(conversations, certain_calls(conversations, known))
    missing, hopeless = what_is_missing(pairs, cliques)
    choice.kind_for(pairs)
    if not hopeless and not (missing and choice.fallback is not None):
        try:
            states = not conversations.plain or rate > 0.0
            learned = _learn(pairs, solver(rule), choice, tell, again=again, states=states)
            better = None
            if weight is None and conversations.plain and voices is None:
                llr = pairs.calibrated(learned.calibration)
                better = _known_rule(conversations, pairs, llr, known, options)
            if better is not None:
                rule, learned = better, _learn(pairs, solver(better), choice, tell)
            done = finished(learned.calibration, rule, cast(Answer, learned.posterior))
            return replace(done, learned=learned, note=_doubts(learned, missing))
        except TooLittleError as error:
            missing = str(error)
    line, note = _fallen_back(pairs, choice, missing)
    if weight is None and choice.fallback is not None:
        rule = saved_weight(choice.fallback)
    return replace(finished(line, rule), note=note)


def _solver(
    conversations: Conversations,
    pairs: Pairs,
    known: Labels | None,
    rate: float,
    options: Options | None,
    *,
    learning: bool = False,
) -> Callable[[Weight], Solve]:
    """How to get a posterior: one bit a conversation where that is all there is to know. While
    `learning` the rate of list errors moves with every posterior."""
    if conversations.plain and rate <= 0.0:
        return _of_bits(conversations, pairs, known, options)
    cliques = find_cliques(conversations, certain_calls(conversations, known))
    said, quick = said_about(conversations, known), (options or Options()).quick()

    def with_weight(weight: Weight) -> Solve:
        best: NDArray[np.int64] | None = None
        now = rate

        def answered(llr: Floats, curve: Calibration) -> Answer:
            nonlocal best, now
            found = seat(
                *(conversations, cliques, pairs.links, llr),
                weight=weight,
                rate=now,
                said=said,
                start=best,
                options=quick,
                pairs=True,
            )
            best = found.beliefs.place
            if learning:
                now = next_rate(1.0 - found.presence.chance[~conversations.possible])
            return found

        return answered

    return with_weight


def _of_bits(
    conversations: Conversations, pairs: Pairs, known: Labels | None, options: Options | None
) -> Callable[[Weight], Callable[[Floats, Calibration | None], Answer]]:
    prior = combine_prior(conversations, known)
    cliques = find_cliques(conversations, prior.clamped >= 0)
    states = partial(build_seats, conversations, pairs.links, said=said_about(conversations, known))

    def with_weight(weight: Weight) -> Callable[[Floats, Calibration | None], Answer]:
        def answered(llr: Floats, curve: Calibration | None = None) -> Answer:
            model = build_model(
                conversations, cliques, pairs.links, llr, weight=weight, prior=prior
            )
            found = solve(model, options=options)
            seats = cache(partial(states, llr, weight=weight))
            return answer_of_bits(conversations, cliques, found, seats)

        return answered

    return with_weight


def _learn(
    pairs: Pairs,
    solver: Solve,
    choice: Choice,
    tell: Tell | None,
    *,
    again: float | None = None,
    states: bool = False,
) -> LabelFree:
    kind, wrong = choice.kind_for(pairs), choice.wrong_lists
    return label_free(pairs, solver, kind, wrong_lists=wrong, states=states, again=again, tell=tell)


def _known_rule(
    conversations: Conversations,
    pairs: Pairs,
    llr: Floats,
    known: Labels | None,
    options: Options | None,
) -> Weight | None:
    """Another weight rule than the paper's, where known channels ask for one."""
    if known is None:
        return None
    solver = _of_bits(conversations, pairs, None, options)
    return learn_weight(lambda rule: solver(rule)(llr, None).bits, known.bits, options)


def _given(choice: Choice) -> Calibration:
    if choice.source == NONE:
        return Line(1.0, 0.0, kind=NONE)
    return curves.load(choice.source, first=choice.first)


def compared_twice(choice: Choice) -> bool:
    """Whether a saved calibration is about voices that were compared twice."""
    if choice.source in (LABELFREE, NONE):
        return False
    return read_saved(choice.source).get("first") is not None


def saved_weight(saved: Saved) -> Weight:
    """The weight rule that was learned together with a calibration. (A chain links other pairs,
    which have to be chosen before: it is asked for with --weight chain.)"""
    found = read_saved(saved)
    try:
        if found.get("weight", "paper") == "book":
            return Weight("book", float(found["beta"]))
    except (TypeError, ValueError, KeyError, SpklinkError) as error:
        raise curves.no_calibration(saved, error) from None
    return Weight()


def _fallen_back(pairs: Pairs, choice: Choice, why: str) -> tuple[Calibration, str]:
    if choice.fallback is not None:
        line = curves.load(choice.fallback, first=choice.first)
        return line, f"{why}; the calibration in {name_of(choice.fallback)} is used instead"
    scores = np.concatenate([pairs.scores[pairs.usable], pairs.non_targets.score])
    line = stated_default(scores, why)
    return line, f"{line.source}; give --calibration FILE of a similar database"


def _doubts(learned: LabelFree, missing: str) -> str:
    if missing:
        return f"probabilities are calibrated from very little: {missing}"
    if not learned.converged:
        last = learned.history[-1]
        return (
            f"calibration without labels had not settled after {len(learned.history)} rounds "
            f"(a probability still moved by {last.moved:.2g})"
        )
    if not learned.agree:
        return (
            f"calibration without labels came to different ends from its {learned.starts} starts; "
            "the most probable one is used"
        )
    return ""


def _finished(
    pairs: Pairs, line: Calibration, weight: Weight, solver: Solve, found: Answer | None
) -> Calibrated:
    """Everything together; the answer is the one that learning ended with, where it is."""
    others, llr = pairs.calibrated_non_targets(line), pairs.calibrated(line)
    if isinstance(solver, Settling):
        one = solver.finished(llr, line)
        known = Calibrated(one.answer, line, weight, llr, others, sums=one.sums)
        return replace(known, chance=one.chance, settled_at=solver.problem.rate)
    return Calibrated(found or cast(Answer, solver(llr, line)), line, weight, llr, others)


def learn(
    conversations: Conversations,
    pairs: Pairs,
    choice: Choice,
    *,
    key: Labels | None = None,
    known: Labels | None = None,
    weight: Weight | None = None,
    options: Options | None = None,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """A calibration to keep, and how it came about: by a key where there is one. Unlike a run that
    needs some answer, this refuses where there is too little to learn from."""
    if key is not None:
        line = with_speakers(conversations, pairs, key.speakers(conversations), choice.kind)
        llr = pairs.calibrated(line)
        rule = weight or _known_rule(conversations, pairs, llr, key, options) or Weight()
        return line.as_json() | {"weight": rule.rule, "beta": rule.beta}
    found = calibrated(
        conversations, pairs, choice, known=known, weight=weight, options=options, tell=tell
    )
    if found.learned is None:
        raise SpklinkError(f"{found.note.split(';')[0]}; a key would help (--key)")
    return found.as_json() | {"note": found.note}


def with_speakers(
    conversations: Conversations, pairs: Pairs, speaker: NDArray[np.int64], kind: str | None
) -> Calibration:
    """From the truth: who is on each side, -1 where it is not known. Different speakers are the
    known non-targets, as they are without labels."""
    chosen = Choice(kind=kind).kind_for(pairs)
    one, two = (speaker[side] for side in needed_sides(pairs.links, conversations.sides))
    same = (one == two) & (one >= 0) & pairs.usable
    speech = None if pairs.speech is None else pairs.speech[same]
    return supervised(
        pairs.scores[same],
        pairs.non_targets.score,
        chosen,
        speech_same=speech,
        speech_other=pairs.non_target_speech,
    )
