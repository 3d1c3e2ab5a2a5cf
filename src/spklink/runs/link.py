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
from spklink.calibration.choice import NONE, Calibrated, Choice, calibrated, compared_twice
from spklink.calibration.curves import pair_speech
from spklink.calibration.pairs import Pairs
from spklink.cues.attributes import AttributeCue, small_voices
from spklink.cues.cue import Cue
from spklink.cues.speakers import Attribute, read_attributes
from spklink.cues.turns import Spoken, TurnCue, of_table
from spklink.database.conversations import Conversations, read_conversations, with_splits
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.links import find_links
from spklink.database.segments import read_tracks
from spklink.errors import check_folder
from spklink.formats.turns import read_turns
from spklink.options import described, resolved
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.list_errors import asked_rate
from spklink.posterior.posterior import Options, Posterior, solve
from spklink.recognizers.none import NAME as NO_VOICES
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.table import make_recognizer
from spklink.recognizers.training import Trained, Trainer, prepare
from spklink.runs.assign import read_known_channels
from spklink.runs.claims import suspects_of
from spklink.runs.cues import Cues, given_cues, with_conflicts
from spklink.runs.evidence import Evidence
from spklink.runs.folder import solving
from spklink.runs.inputs import Inputs, read_inputs
from spklink.runs.names import Voices
from spklink.runs.recipe import Recipe, recipe_of
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
from spklink.tables import SEPARATOR, Table

SILENT = "voices were not compared (--recognizer none): all that is known comes from elsewhere"


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
        recipe = replace(recipe, link_wccn=recipe.link_wccn and asked["link_wccn"])
        rate, choice = asked_rate(asked["list_errors"]), Choice.of(asked, recipe.kind)
        if recognizer.name == NO_VOICES:  # nothing to calibrate, and nothing against any list
            rate, choice = rate or 0.0, replace(choice, source=NONE)
        return cls(recognizer, recipe, choice, weight, rate, solving(asked))


@dataclass(frozen=True)
class Case:
    """The tables of a run, read."""

    inputs: Inputs
    conversations: Conversations
    known: Labels | None
    claims: Labels | None
    spoken: list[Spoken] | None = None  # who has the turn when
    given: tuple[Cue, ...] = ()  # evidence that somebody computed
    attributes: tuple[Attribute, ...] = ()  # what is known of people

    @classmethod
    def read(cls, table: Table, asked: LinkOptions, plan: Plan) -> Case:
        tables = {"conversations": table, "known": asked["known"], "claimed": asked["claimed"]}
        if asked["tracks"] is not None:
            tables["tracks"] = read_tracks(asked["tracks"])
        turns = None if asked["turns"] is None else read_turns(asked["turns"])
        if turns is not None:
            tables["turns"] = turns.content
        tables |= {"cue": asked["cue"], "speakers": asked["speakers"]}
        inputs = read_inputs(tables, plan.choice.named_files(), {"key": asked["key"]})
        people = read_conversations(inputs.table("conversations"), inputs.table("tracks"))
        people = with_splits(people, asked["split_speakers"])
        claimed, key = inputs.table("claimed"), inputs.table("key")
        if key is not None:
            read_key(key, people)  # what is wrong with it is said now, not in an hour
        return cls(
            inputs,
            people,
            read_known_channels(inputs, people),
            None if claimed is None else read_claims(claimed, people),
            None if turns is None else of_table(turns, people),
            given_cues(inputs, people),
            tuple(read_attributes(inputs.table("speakers"), asked["attribute"], people)),
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
    cues, odd = _cues(case, sound, trained, stages)
    case = replace(case, conversations=cues.on(case.conversations))
    with stages.stage("scoring"):
        consecutive = plan.weight is not None and plan.weight.consecutive
        links = find_links(case.conversations, consecutive=consecutive)
        scorer = Scorer(case.conversations, sound, trained, plan.how.seed, plan.how.workers)
        scorer = scorer.normalised() if plan.recipe.normalise else scorer
        pairs = scorer.pairs(links)
    with stages.stage("calibrating and linking"):
        compared = compare(case, plan, scorer, pairs, stages)
    found, others = compared.found, len(compared.pairs.non_targets)
    scores = Scores(found.llr, others, found.non_targets)
    evidence = Evidence(case.conversations, links, scores, found.weight, case.known)
    if cues.terms:
        with stages.stage("other evidence once more"):
            evidence, found = _with_voices(evidence, found, cues, plan)
    silent = plan.recognizer.name == NO_VOICES
    heard = SILENT if silent else scorer.note
    told = (heard, compared.note, damage_note(sound.store.damaged))
    notes = [text for text in told if text]
    result = Result("link", asked, case.inputs, evidence, notes=notes, stages=stages)
    result = result.with_calibrated(compared.pairs, found)
    with stages.stage("looking for wrong lists"):
        result = with_seating(result, plan.rate, plan.how)
        result = learned_again(result, compared.pairs, plan.choice, plan.how)
        voices = None if silent else _voices(result, compared.scorer, sound)
        result = with_conflicts(with_misfits(result, voices))
    if asked["all_pairs"]:
        every = compared.scorer.everything()
        scores = replace(scores, others=len(every) - len(scores.needed))
        result = replace(result, raw=every, evidence=replace(result.evidence, scores=scores))
    listening = _listening(result, case, plan, sound, trained)
    return replace(result, listening=replace(listening, problems=[*listening.problems, *odd]))


def _cues(
    case: Case, sound: Sound, trained: Trained | None, stages: Stages
) -> tuple[Cues, list[tuple[Any, ...]]]:
    """All other evidence than voices, and what is odd about it."""
    learners, table, odd = [*case.given], case.conversations, []
    if case.spoken is not None:
        with stages.stage("turns"):
            turns = TurnCue(table, case.spoken, sound.levels)
        learners.append(turns)
        for m, text in turns.problems:
            odd.append((table.ids[m], "", SEPARATOR.join(table.audio[m]), text))
    if not learners and not case.attributes:
        return Cues(), odd
    with stages.stage("other evidence"):
        if case.attributes and trained is not None:
            voices = small_voices(trained.unit_vectors, sound.usable, sound.order)
            learners += [AttributeCue(table, one, voices) for one in case.attributes]
        return Cues.first(learners, table), odd


def _with_voices(
    evidence: Evidence, found: Calibrated, cues: Cues, plan: Plan
) -> tuple[Evidence, Calibrated]:
    """Cues learned once more with the voices as their witness, and what both say together."""
    if plan.recognizer.name != NO_VOICES:
        cues = cues.with_voices(evidence.conversations, found.posterior)
    evidence = evidence.with_cues(cues.terms)
    if not isinstance(found.posterior, Posterior):
        return evidence, found
    return evidence, replace(found, posterior=solve(evidence.model, options=plan.how))


def _listen(
    conversations: Conversations, plan: Plan, cache: Path, asked: LinkOptions, stages: Stages
) -> tuple[Sound, Trained | None]:
    """What the recognizer hears of every side, and its vectors; no vectors where all recordings
    are bad and may be."""
    skip_bad, background = asked["on_bad_audio"] == "skip", asked["background"]
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
    if plan.recognizer.name == NO_VOICES or (skip_bad and not sound.usable.any()):
        return sound, None
    with stages.stage("training the recognizer"):
        trainer = Trainer(
            cache,
            background=None if background is None else Path(background),
            skip_bad=skip_bad,
            seed=plan.how.seed,
            threads=plan.how.workers,
            retrain=asked["retrain"],
            tell=stages.progress,
        )
        return sound, prepare(plan.recognizer, sound, trainer)


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
    if not plan.recipe.link_wccn or scorer.trained is None or not can_teach:
        return once
    taught = scorer.taught(pairs, once.found)
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
        "link_wccn": plan.recipe.link_wccn,
        "kind": plan.choice.kind,
        "trained": None if trained is None else trained.name,
        "trained_on": None if trained is None else trained.trained_on,
        "recordings": None if trained is None else trained.of,
        "heard": key_of([one.key for one in sound.heard]),
    }
