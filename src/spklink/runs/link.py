"""The main job: from recordings and a table to who is on which channel.

listen → train the recognizer → a vector a side → scores → calibration → posterior → results. Every
stage leaves its outcome in a cache under a name that is the hash of all it depends on, so the same
command after a kill, or with ten more calls, does only what is missing, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from spklink.cache import damage_note, key_of, sweep_all
from spklink.calibration.choice import Calibrated, Choice, calibrated, compared_twice
from spklink.calibration.curves import pair_speech
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.links import find_links
from spklink.database.segments import read_tracks
from spklink.errors import check_folder
from spklink.options import described, resolved
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.list_errors import asked_rate
from spklink.posterior.posterior import Options
from spklink.recognizers.background import has_labels
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.table import make_recognizer
from spklink.recognizers.training import Trained, Trainer, prepare
from spklink.runs.assign import read_known_channels
from spklink.runs.claims import suspects_of
from spklink.runs.evidence import Evidence
from spklink.runs.folder import solving
from spklink.runs.inputs import Inputs, read_inputs
from spklink.runs.names import Voices
from spklink.runs.recipe import LABELLED, ONCE, UNUSED, Recipe, recipe_of, with_back_end
from spklink.runs.result import Listening, Result
from spklink.runs.scoring import Scorer
from spklink.runs.seated import (
    learned_again,
    rate_while_learning,
    with_misfits,
    with_seating,
)
from spklink.runs.stages import Stages
from spklink.scores.needed import Scores
from spklink.settings import File, LinkOptions
from spklink.sound.listening import Sound, hear, problem_rows
from spklink.tables import Table


@described(LinkOptions)
def link(
    table: Table,
    out: str | PathLike[str] | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[LinkOptions],
) -> Result:
    """Listen to all calls and find who is on which channel.

    `table` is a file, a DataFrame or rows. With `out` everything is also written to that folder,
    and what was heard is kept there; without it, and without a `cache`, nothing is kept.
    `recognizer` may also be an object of your own (see spklink.recognizers.recognizer).
    """
    asked, stages = resolved(LinkOptions, options), stages or Stages()
    folder = None if out is None else check_folder(out)
    plan = Plan.of(asked)
    with stages.stage("reading the table"):
        case = Case.read(table, asked, plan)
    with _cache(asked["cache"], folder) as cache:
        result = _linked(case, plan, cache, asked, stages)
    if folder is not None:
        result.save(folder)
    return result


@dataclass(frozen=True)
class Plan:
    """What the options ask for, checked before any listening."""

    recognizer: Recognizer
    recipe: Recipe
    choice: Choice
    weight: Weight | None  # None: the paper's, unless known channels ask for another
    rate: float | None  # of list errors; None: estimated
    how: Options

    @classmethod
    def of(cls, asked: LinkOptions) -> Plan:
        recipe, name = recipe_of(asked["preset"]), asked["recognizer"]
        own = {"preset": asked["preset"], "components": asked["components"]}
        recognizer: Any = make_recognizer(name, **own) if isinstance(name, str) else name
        weight = asked_weight(asked["weight"], asked["beta"])
        recipe = with_back_end(recipe, asked["back_end"], recognizer.name, twice=asked["link_wccn"])
        rate = asked_rate(asked["list_errors"])
        return cls(recognizer, recipe, Choice.of(asked, recipe.kind), weight, rate, solving(asked))


@dataclass(frozen=True)
class Case:
    """The tables of a run, read."""

    inputs: Inputs
    conversations: Conversations
    known: Labels | None
    claims: Labels | None

    @classmethod
    def read(cls, table: Table, asked: LinkOptions, plan: Plan) -> Case:
        tables = {"conversations": table, "known": asked["known"], "claimed": asked["claimed"]}
        if asked["tracks"] is not None:
            tables["tracks"] = read_tracks(asked["tracks"])
        inputs = read_inputs(tables, plan.choice.named_files(), {"key": asked["key"]})
        people = read_conversations(inputs.table("conversations"), inputs.table("tracks"))
        claimed, key = inputs.table("claimed"), inputs.table("key")
        if key is not None:
            read_key(key, people)  # what is wrong with it is said now, not in an hour
        return cls(
            inputs,
            people,
            read_known_channels(inputs, people),
            None if claimed is None else read_claims(claimed, people),
        )


@contextmanager
def _cache(asked: File, folder: Path | None) -> Iterator[Path]:
    """Where to keep what was heard: where it was asked for, in the results, or nowhere."""
    if asked is None and folder is None:
        with TemporaryDirectory(prefix="spklink-") as temporary:
            yield Path(temporary)
        return
    cache = Path(asked) if asked is not None else Path(folder or "") / "cache"
    sweep_all(cache)
    yield cache


def _linked(case: Case, plan: Plan, cache: Path, asked: LinkOptions, stages: Stages) -> Result:
    sound, trained = _listen(case.conversations, plan, cache, asked, stages)
    with stages.stage("scoring"):
        consecutive = plan.weight is not None and plan.weight.consecutive
        links = find_links(case.conversations, consecutive=consecutive)
        scorer = Scorer(case.conversations, sound, trained, plan.how.seed, plan.how.workers)
        scorer = scorer.normalised() if plan.recipe.normalise else scorer
        labelled = has_labels(background_of(asked))
        if labelled and plan.recipe.back_end == LABELLED:
            scorer = scorer.with_background(trainer_of(plan, cache, asked, stages))
        pairs = scorer.pairs(links)
    with stages.stage("calibrating and linking"):
        compared = compare(case, plan, scorer, pairs, stages)
    found, others = compared.found, len(compared.pairs.non_targets)
    scores = Scores(found.llr, others, found.non_targets)
    evidence = Evidence(case.conversations, links, scores, found.weight, case.known)
    unused = UNUSED if labelled and plan.recipe.back_end != LABELLED else ""
    told = (scorer.note, compared.note, unused, damage_note(sound.store.damaged))
    notes = [text for text in told if text]
    result = Result("link", asked, case.inputs, evidence, notes=notes, stages=stages)
    result = result.with_calibrated(compared.pairs, found)
    with stages.stage("looking for wrong lists"):
        result = with_seating(result, plan.rate, plan.how)
        result = learned_again(result, compared.pairs, plan.choice, plan.how)
        result = with_misfits(result, _voices(result, compared.scorer, sound))
    if asked["all_pairs"]:
        every = compared.scorer.everything()
        scores = replace(scores, others=len(every) - len(scores.needed))
        result = replace(result, raw=every, evidence=replace(result.evidence, scores=scores))
    return replace(result, listening=_listening(result, case, plan, sound, trained))


def _listen(
    conversations: Conversations, plan: Plan, cache: Path, asked: LinkOptions, stages: Stages
) -> tuple[Sound, Trained | None]:
    """What the recognizer hears of every side, and its vectors; no vectors where all recordings
    are bad and may be."""
    skip_bad = asked["on_bad_audio"] == "skip"
    with stages.stage("listening"):
        sound = hear(
            conversations,
            plan.recognizer.front_end,
            cache / "features",
            min_speech=asked["min_speech"],
            skip_bad=skip_bad,
            workers=plan.how.workers,
            tell=stages.progress,
        )
    if skip_bad and not sound.usable.any():
        return sound, None
    with stages.stage("training the recognizer"):
        return sound, prepare(plan.recognizer, sound, trainer_of(plan, cache, asked, stages))


def background_of(asked: LinkOptions) -> Path | None:
    """The folder of other speech, where there is one."""
    return None if asked["background"] is None else Path(asked["background"])


def trainer_of(plan: Plan, cache: Path, asked: LinkOptions, stages: Stages) -> Trainer:
    """Where and how recognizers are made in this run."""
    return Trainer(
        cache,
        background=background_of(asked),
        skip_bad=asked["on_bad_audio"] == "skip",
        seed=plan.how.seed,
        threads=plan.how.workers,
        retrain=asked["retrain"],
        tell=stages.progress,
    )


@dataclass(frozen=True)
class Compared:
    """Voices compared, calibrated and linked."""

    scorer: Scorer
    pairs: Pairs
    found: Calibrated
    note: str = ""  # why they were compared once only, where that was not wanted


def compare(case: Case, plan: Plan, scorer: Scorer, pairs: Pairs, stages: Stages) -> Compared:
    """Calibrate and link; then, where the recipe says so and the links can teach, compare the
    voices again and do both once more."""

    def linked(these: Pairs, *, first: bool) -> Calibrated:
        return calibrated(
            case.conversations,
            these,
            replace(plan.choice, first=first),
            known=case.known,
            weight=plan.weight,
            rate=rate_while_learning(case.conversations, plan.rate),
            options=plan.how,
            tell=stages.progress,
        )

    once = Compared(scorer, pairs, linked(pairs, first=True))
    can_teach = once.found.learned or compared_twice(plan.choice)
    taught_already = scorer.trained is None or scorer.again is not None
    if plan.recipe.back_end == ONCE or taught_already or not can_teach:
        return once
    taught = scorer.taught(pairs, once.found, plan.recipe.back_end)
    if isinstance(taught, str):
        return replace(once, note=taught)
    more = taught.added(pairs)
    second = linked(more, first=False)
    if once.found.learned and not second.learned:
        return replace(once, note=f"voices were compared once only: {second.note}")
    return Compared(taught, more, replace(second, first=once.found.calibration))


def _voices(result: Result, scorer: Scorer, sound: Sound) -> Voices:
    """Log-likelihood-ratios of any two sides, as this run calibrated them."""
    found = result.calibrated
    assert found is not None
    seconds = sound.seconds()

    def voices(side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> NDArray[np.float64]:
        speech = pair_speech(seconds, side_1, side_2)
        llr = found.calibration(scorer(side_1, side_2), speech)
        return np.where(sound.usable[side_1] & sound.usable[side_2], llr, np.nan)

    return voices


def _listening(
    result: Result, case: Case, plan: Plan, sound: Sound, trained: Trained | None
) -> Listening:
    claims, table = case.claims, case.conversations
    return Listening(
        speech=sound.table(),
        problems=list(problem_rows(table, sound)),
        recognizer=recognizer_json(plan, sound, trained),
        suspects=None
        if claims is None
        else suspects_of(table, result.solution, result.seating, claims),
    )


def recognizer_json(plan: Plan, sound: Sound, trained: Trained | None) -> dict[str, Any]:
    """What compared the voices: all that tells it from another."""
    return {
        "name": plan.recognizer.name,
        "recipe": plan.recognizer.recipe,
        "front_end": plan.recognizer.front_end.key,
        "normalise": plan.recipe.normalise,
        "link_wccn": plan.recipe.back_end != ONCE,
        "back_end": plan.recipe.back_end,
        "kind": plan.choice.kind,
        "trained": None if trained is None else trained.name,
        "trained_on": None if trained is None else trained.trained_on,
        "recordings": None if trained is None else trained.of,
        "heard": key_of([one.key for one in sound.heard]),
    }
