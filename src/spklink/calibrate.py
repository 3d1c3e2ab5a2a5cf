"""From a choice of calibration to a calibrated posterior: what `link`, `assign` and `calibrate` do.

Where too little can be learned, a run does not stop: it takes the calibration given for that case,
or a default, and says so in plain words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink import calibration as saved
from spklink.calibration import Calibration, Line, pair_speech, stated_default, supervised
from spklink.cliques import find_cliques
from spklink.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.labels import Labels
from spklink.learning import LabelFree, Pairs, label_free, learn_weight, what_is_missing
from spklink.likelihood import Weight, build_model, combine_prior
from spklink.links import Links
from spklink.posterior import Options, Posterior, Tell, solve
from spklink.scores import Scores, SideScores, needed_sides
from spklink.sides import read_sides
from spklink.tables import read_json
from spklink.trials import side_speakers

Floats = NDArray[np.float64]
LABELFREE, NONE = "labelfree", "none"


@dataclass(frozen=True)
class Choice:
    """How scores become log-likelihood-ratios."""

    source: str | PathLike[str] = LABELFREE  # labelfree, none, or a saved calibration
    kind: str | None = None  # None: lr-dur where the seconds of speech are known, else lr
    fallback: str | PathLike[str] | None = None  # for databases that teach too little
    wrong_lists: float = 0.0  # share of participant lists that may be wrong

    def as_json(self) -> dict[str, Any]:
        """Files by name only: a folder of results does not tell where it was made."""
        plain = self.source in (LABELFREE, NONE)
        return {
            "source": str(self.source) if plain else Path(self.source).name,
            "kind": self.kind,
            "fallback": None if self.fallback is None else Path(self.fallback).name,
            "wrong_lists": self.wrong_lists,
        }

    def kind_for(self, pairs: Pairs) -> str:
        return self.kind or ("lr" if pairs.speech is None else "lr-dur")


@dataclass(frozen=True)
class Calibrated:
    """A posterior, the calibration behind it, and how that came about."""

    posterior: Posterior
    calibration: Calibration
    weight: Weight
    llr: Floats  # (E, 2, 2)
    non_target_llr: Floats
    learned: LabelFree | None = None
    note: str = ""  # what a person should know

    def as_json(self) -> dict[str, Any]:
        learned = {} if self.learned is None else self.learned.as_json()
        rule = {"weight": self.weight.rule, "beta": self.weight.beta}
        return self.calibration.as_json() | rule | learned


def calibrated(
    conversations: Conversations,
    pairs: Pairs,
    choice: Choice,
    *,
    known: Labels | None = None,
    weight: Weight | None = None,
    options: Options | None = None,
    tell: Tell | None = None,
) -> Calibrated:
    """The posterior under the chosen calibration. Without a `weight` that of the paper is used,
    unless known channels ask for another."""
    solver = _solver(conversations, pairs, known, options)
    rule = weight or Weight()
    if choice.source != LABELFREE:
        line, saved_rule = _given(choice)
        rule = weight or saved_rule
        return _finished(pairs, line, rule, solver(rule)(pairs.calibrated(line)))
    cliques = find_cliques(conversations, combine_prior(conversations, known).clamped >= 0)
    missing, hopeless = what_is_missing(pairs, cliques)
    if not hopeless and not (missing and choice.fallback is not None):
        try:
            learned = _learn(pairs, solver(rule), choice, tell)
            better = None
            if weight is None:
                llr = pairs.calibrated(learned.calibration)
                better = _known_rule(conversations, pairs, llr, known, options)
            if better is not None:
                rule, learned = better, _learn(pairs, solver(better), choice, tell)
            done = _finished(pairs, learned.calibration, rule, learned.posterior)
            return replace(done, learned=learned, note=_doubts(learned, missing))
        except SpklinkError as error:
            missing = str(error)
    line, note = _fallen_back(pairs, choice, missing)
    return replace(_finished(pairs, line, rule, solver(rule)(pairs.calibrated(line))), note=note)


def _solver(
    conversations: Conversations, pairs: Pairs, known: Labels | None, options: Options | None
) -> Callable[[Weight], Callable[[Floats], Posterior]]:
    prior = combine_prior(conversations, known)
    cliques = find_cliques(conversations, prior.clamped >= 0)

    def with_weight(weight: Weight) -> Callable[[Floats], Posterior]:
        def posterior(llr: Floats) -> Posterior:
            model = build_model(
                conversations, cliques, pairs.links, llr, weight=weight, prior=prior
            )
            return solve(model, options=options)

        return posterior

    return with_weight


def _learn(
    pairs: Pairs,
    solver: Callable[[Floats], Posterior],
    choice: Choice,
    tell: Tell | None,
) -> LabelFree:
    kind = choice.kind_for(pairs)
    return label_free(pairs, solver, kind, wrong_lists=choice.wrong_lists, tell=tell)


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
    solver = _solver(conversations, pairs, None, options)
    return learn_weight(lambda rule: solver(rule)(llr), known.bits)


def _given(choice: Choice) -> tuple[Calibration, Weight]:
    if choice.source == NONE:
        return Line(1.0, 0.0, kind=NONE), Weight()
    return saved.load(choice.source), _saved_weight(choice.source)


def _saved_weight(path: str | PathLike[str]) -> Weight:
    """The weight rule that was learned together with a calibration."""
    found = read_json(path)
    return Weight(found.get("weight", "paper"), found.get("beta"))


def _fallen_back(pairs: Pairs, choice: Choice, why: str) -> tuple[Calibration, str]:
    if choice.fallback is not None:
        line = saved.load(choice.fallback)
        return line, f"{why}; the calibration in {choice.fallback} is used instead"
    scores = np.concatenate([pairs.scores[pairs.usable], pairs.non_targets])
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


def _finished(pairs: Pairs, line: Calibration, weight: Weight, posterior: Posterior) -> Calibrated:
    others = line(pairs.non_targets, pairs.non_target_speech)
    return Calibrated(posterior, line, weight, pairs.calibrated(line), others)


def pairs_of(
    conversations: Conversations,
    links: Links,
    scores: Scores,
    sides: str | PathLike[str] | None = None,
) -> tuple[Pairs, SideScores]:
    """What calibration learns from, with the seconds of speech where a table of sides tells them;
    and the known non-targets that are usable."""
    others, (one, two) = scores.non_targets, needed_sides(links)
    if sides is None:
        every = np.ones(scores.llr.shape, np.bool_)
        return Pairs(links, scores.llr, every, others.score), others
    seconds, usable = read_sides(sides, conversations)
    good = usable[others.side_1] & usable[others.side_2]
    others = SideScores(others.side_1[good], others.side_2[good], others.score[good])
    pairs = Pairs(
        links=links,
        scores=scores.llr,
        usable=(usable[one] & usable[two]).reshape(-1, 2, 2),
        non_targets=others.score,
        speech=pair_speech(seconds, one, two).reshape(-1, 2, 2),
        non_target_speech=pair_speech(seconds, others.side_1, others.side_2),
    )
    return pairs, others


def learn(
    conversations: Conversations,
    links: Links,
    scores: Scores,
    choice: Choice,
    *,
    sides: str | PathLike[str] | None = None,
    key: Labels | None = None,
    known: Labels | None = None,
    weight: Weight | None = None,
    options: Options | None = None,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """A calibration to keep, and how it came about: by a key where there is one. Unlike a run that
    needs some answer, this refuses where there is too little to learn from."""
    pairs, _ = pairs_of(conversations, links, scores, sides)
    if key is not None:
        line = with_key(conversations, pairs, key.bits, choice.kind)
        rule = weight
        if rule is None:
            rule = _known_rule(conversations, pairs, pairs.calibrated(line), key, options)
        rule = rule or Weight()
        return line.as_json() | {"weight": rule.rule, "beta": rule.beta}
    found = calibrated(
        conversations, pairs, choice, known=known, weight=weight, options=options, tell=tell
    )
    if found.learned is None:
        raise SpklinkError(f"{found.note.split(';')[0]}; a key would help (--key)")
    return found.as_json() | {"note": found.note}


def with_key(
    conversations: Conversations, pairs: Pairs, bits: NDArray[np.int8], kind: str | None
) -> Calibration:
    """From the truth: 0 or 1 for every conversation, -1 where it is not known. Different speakers
    are the known non-targets, as they are without labels."""
    links = pairs.links
    chosen = Choice(kind=kind).kind_for(pairs)
    speaker = side_speakers(conversations, bits).reshape(-1, 2)
    one, two = speaker[links.first][:, :, None], speaker[links.second][:, None, :]
    same = (one == two) & (one >= 0) & pairs.usable
    speech = None if pairs.speech is None else pairs.speech[same]
    return supervised(
        pairs.scores[same],
        pairs.non_targets,
        chosen,
        speech_same=speech,
        speech_other=pairs.non_target_speech,
    )
