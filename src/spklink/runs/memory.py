"""What a run leaves for the next one, and what it finds of the one before.

Two files in the cache: a *model* (module `model`), which never changes, and beside it the *answers*
of the last run by that model: what was measured of sides, the scores of pairs, the posterior of
every clique. A run on a table that grew measures new sides, scores new pairs and solves cliques
that these touch; all else is taken from the answers as it was. Without the answers, or where they
are damaged, the same is computed again.

A model is set aside, and a new one learned from all conversations, where these have outgrown it or
look different (module `drift`), or where somebody asks for it (--retrain).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink import __version__
from spklink.cache import Store, key_of
from spklink.calibration import curves
from spklink.calibration.choice import LABELFREE, Calibrated, Choice
from spklink.calibration.frequent import is_straight
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent
from spklink.database.labels import Labels
from spklink.database.links import Links, needed_sides
from spklink.database.sides import numbered, vague
from spklink.posterior.posterior import Options
from spklink.recognizers.link_wccn import LinkScorer
from spklink.recognizers.normalise import POOL, choose_pool
from spklink.runs import model as models
from spklink.runs.call_keys import Keys, call_keys, matched
from spklink.runs.clique_store import (
    Layout,
    bits_arrays,
    clique_names,
    seat_arrays,
    starts,
)
from spklink.runs.drift import grown, numbers, reference
from spklink.runs.kept_scores import (
    every_pair,
    layers_of,
    measured_arrays,
    medians,
    pair_code,
    person_keys,
    terms_arrays,
)
from spklink.runs.kept_spreads import KeptSpreads
from spklink.runs.kept_sums import sums_arrays
from spklink.runs.model import Model
from spklink.runs.recall import Answers, Recalled, Recalling
from spklink.runs.recipe import Recipe
from spklink.runs.result import Result
from spklink.runs.scoring import Scorer
from spklink.runs.sources import Source, is_given
from spklink.settings import LinkOptions
from spklink.words import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
VERSION = 2  # of the answers
# Options that a model depends on; the vectors themselves tell whether they are the same.
DEPENDS = ("list_errors", "weight", "beta", "method", "budget_seconds", "budget_gb", "seed")


@dataclass(frozen=True)
class Memory:
    """The cache of a run, as models see it."""

    folder: Path
    damaged: set[str]
    asked: str  # what models depend on beside conversations
    keys: Keys
    scorer: Scorer  # not yet normalised
    frequent: Frequent  # people whose links are not listed
    anew: bool  # whatever there is

    @property
    def models(self) -> Store:
        return Store(self.folder / "models", self.damaged)

    @property
    def answers(self) -> Store:
        return Store(self.folder / "answers", self.damaged, changing=True)

    @property
    def table(self) -> Conversations:
        return self.scorer.conversations

    def recall(
        self, known: Labels | None, links: Links, how: Options
    ) -> tuple[Recalled | None, str]:
        """What a kept model says; or nothing, and why it was set aside where there was one."""
        if self.anew:
            return None, ""
        found = models.find(self.models, self.asked, self.keys, self.table.sides)
        if found is None:
            return None, ""
        model, match = found
        why = grown(len(self.table), len(model.keys)) or self._bent(model)
        if why:
            return None, why
        answers = self.answers_of(model)
        run = Recalling(
            *(self.keys, self.scorer, answers, model, match, known, links, self.frequent, how)
        )
        recalled, drifted = run.run()
        return (None, drifted) if drifted else (recalled, "")

    def _bent(self, model: Model) -> str:
        """Why the voices of people who have become frequent cannot be summed by a model."""
        if not len(self.frequent) or is_straight(curves.load(model.about["calibration"])):
            return ""
        return (
            f"somebody has more than {self.frequent.most:,} conversations now, which can only be "
            "summed along a straight line of log-likelihood-ratios"
        )

    def answers_of(self, model: Model) -> Answers | None:
        """What the last run by a model left."""
        name, store = _name(model), self.answers
        kept = store.load(name)
        if kept is None:
            return None
        try:
            earlier = numbered(kept.arrays["tracks"].tolist())
            match = matched(self.keys, self.table.sides, kept.arrays["call"], earlier)
            if kept.about["version"] != VERSION or kept.about["model"] != model.name:
                raise KeyError
        except (LookupError, TypeError):
            store.reject(name)
            return None
        return Answers(kept, match)

    def learned(
        self,
        result: Result,
        scorer: Scorer,
        pairs: Pairs,
        every: Floats | None,
        *,
        note: str,
        why: str,
    ) -> Result:
        """Keep a model of what a run learned; the result names it."""
        found, answer = result.calibrated, result.answer
        assert found is not None
        chance = found.answer.candidate_probabilities(pairs.links) * pairs.usable[pairs.candidates]
        again = scorer.again if isinstance(scorer.again, LinkScorer) else None
        about = {
            "version": models.VERSION,
            "spklink": __version__,
            "asked": self.asked,
            "learned_on": {
                "conversations": len(self.table),
                "sides": len(self.table.sides),
                "usable_sides": int(scorer.sound.usable.sum()),
            },
            "recognizer": {"trained": None if scorer.trained is None else scorer.trained.name},
            "back_end": "cosine" if again is None else type(again.view.learned[0]).__name__.lower(),
            "reasons": [one.reason for one in layers_of(scorer)],
            "calibration": result.calibration,
            "weight": {"rule": found.weight.rule, "beta": found.weight.beta},
            "rate": None if answer.binary else answer.rate.as_json(),
            "settled_at": found.settled_at,
            "notes": {"compared": note, "calibrated": found.note},
            "why": why,
        }
        arrays = self._measured(scorer) | models.taught_arrays(again)
        arrays["pool"] = choose_pool(scorer.sound.usable, POOL, scorer.seed, scorer.sound.order)
        arrays["median"] = medians(scorer)
        if scorer.centre is not None:
            arrays["middle"] = scorer.centre.mean
        arrays["drift"] = reference(numbers(self.table, scorer, pairs, chance))
        if scorer.trained is not None and "mean" in (kept := scorer.trained.recognizer.arrays()):
            arrays["mean"] = kept["mean"]
        model = models.named(about, arrays)
        self.keep_answers(model, result, scorer, pairs, every)
        models.keep(self.models, model)
        return self.told(result, model, 0)

    def _measured(self, scorer: Scorer) -> dict[str, NDArray[Any]]:
        """Conversations, and what was measured of their sides and people."""
        found = {"call": self.keys, "tracks": self.table.sides.counts} | measured_arrays(scorer)
        if isinstance(scorer.again, LinkScorer):
            found |= {"person": person_keys(self.table), "fold": scorer.again.folds.person}
        return found

    def keep_answers(
        self, model: Model, result: Result, scorer: Scorer, pairs: Pairs, every: Floats | None
    ) -> None:
        """For the next run by this model."""
        evidence, words = result.evidence, list[str]()
        layout, sides = Layout(evidence), len(self.table.sides)
        one, two = needed_sides(evidence.links, self.table.sides)
        code = pair_code(one, two, sides)
        order, others = np.argsort(code, kind="stable"), pairs.non_targets
        arrays = self._measured(scorer) | {
            "needed_code": code[order],
            "needed_score": pairs.scores[order],
            "other_1": others.side_1,
            "other_2": others.side_2,
            "other_score": others.score,
            "clique": clique_names(evidence, self.keys),
        }
        arrays |= starts(layout) | terms_arrays(scorer)
        if every is not None:
            arrays["every"] = every[np.triu_indices(sides, 1)]
        if (found := result.calibrated) and found.sums is not None and found.chance is not None:
            arrays |= sums_arrays(self.table, self.frequent, self.keys, found.sums, found.chance)
        if evidence.conversations.plain:
            arrays |= bits_arrays(result.answer.given(lists_right=True).bits, layout, words)
        if not result.answer.binary:
            arrays |= seat_arrays(result.answer, layout, words)
        about = {"version": VERSION, "model": model.name, "words": words}
        self.answers.write(_name(model), about, arrays)

    def told(self, result: Result, model: Model, new: int) -> Result:
        """A result that names its model."""
        note = ""
        if new:
            note = (
                f"{counted(new, 'conversation')} of {len(self.table):,} came after model "
                f"{model.name[:8]} was learned (on {len(model.keys):,}): voices are compared and "
                "probabilities calibrated as it has them; --retrain learns anew"
            )
        elif model.about["why"]:
            note = f"what was learned is renewed (model {model.name[:8]}): {model.about['why']}"
        return replace(
            result,
            model=model.told(new),
            calibration=dict(model.about["calibration"]) | {"model": model.name},
            notes=[*result.notes, *filter(None, [note])],
        )


def _name(model: Model) -> str:
    return key_of({"answers": VERSION, "of": model.name})


def holds(choice: Choice, found: Calibrated | None) -> bool:
    """Whether what a run learned is good for more calls: a guess is not."""
    return found is not None and (found.learned is not None or choice.source != LABELFREE)


def memory_for(
    table: Conversations,
    recipe: Recipe,
    choice: Choice,
    source: Source,
    cache: Path,
    asked: LinkOptions,
    frequent: Frequent,
) -> Memory | None:
    """The memory of a run; None where a run learns something that no model holds: from other
    evidence than voices, of people whom nobody listed, from scores that were given."""
    scorer, trained = source.scorer, source.trained
    if not isinstance(scorer, Scorer) or trained is None:
        return None
    if len(table.cues) or table.enrolled or table.split or vague(table).any():
        return None
    scorer = replace(scorer, conversations=table)
    what: dict[str, Any] = {
        **source.about(),
        "trained": trained.name,
        **{name: getattr(recipe, name) for name in ("name", "normalise", "back_end")},
        **{name: _saved(getattr(choice, name)) for name in ("source", "fallback")},
        **{name: getattr(choice, name) for name in ("kind", "wrong_lists")},
        **{name: asked[name] for name in DEPENDS},  # type: ignore[literal-required]
        "recognizer": source.about()["name"],
    }
    if is_given(asked):  # their bytes tell whether vectors are the same
        what |= {"recipe": None, "trained": None}
    keys, damaged = call_keys(table, scorer.sound), scorer.sound.store.damaged
    return Memory(cache, damaged, key_of(what), keys, scorer, frequent, asked["retrain"])


def _saved(calibration: Any) -> Any:
    """A word, or what a saved calibration says."""
    plain = calibration is None or isinstance(calibration, str)
    return calibration if plain else curves.read_saved(calibration)


def spreads_for(memory: Memory | None, result: Result) -> KeptSpreads | None:
    """Kept parts of the proof of how far sums may be off, by the model that a result names."""
    if memory is None or result.model is None:
        return None
    return KeptSpreads(memory.answers, result.model["name"], memory.keys)


def remembered(
    memory: Memory,
    recalled: Recalled | None,
    result: Result,
    scorer: Any,
    pairs: Pairs,
    choice: Choice,
    *,
    note: str,
    why: str,
) -> tuple[Result, Floats | None]:
    """The result with the name of its model, and the scores of all pairs of a small database; what
    the next run needs is kept."""
    assert isinstance(scorer, Scorer)
    if recalled is not None:
        if recalled.fresh:
            memory.keep_answers(recalled.model, result, scorer, pairs, recalled.every)
        return memory.told(result, recalled.model, recalled.new), recalled.every
    if not holds(choice, result.calibrated):
        return result, None
    every = every_pair(scorer, None, None)
    return memory.learned(result, scorer, pairs, every, note=note, why=why), every
