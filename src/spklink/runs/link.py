"""The main job: from recordings and a table to who is on which channel.

(Or from vectors or scores of sides that somebody else computed: module `sources`.)

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
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.pairs import Pairs
from spklink.calibration.table import find_kind
from spklink.database.conversations import Conversations, read_conversations, with_splits
from spklink.database.enrolment import with_enrolment
from spklink.database.frequent import Frequent, find_frequent
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.links import Links, find_links
from spklink.database.segments import read_tracks
from spklink.database.sides import vague
from spklink.errors import SpklinkError, check_folder
from spklink.formats.turns import read_turns
from spklink.memory import limited_to
from spklink.options import described, resolved
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.list_errors import asked_rate
from spklink.posterior.posterior import Options, Posterior
from spklink.recognizers.background import has_labels
from spklink.recognizers.none import NAME as NO_VOICES
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.table import ENERGY, make_recognizer
from spklink.runs.assign import read_known_channels
from spklink.runs.claims import suspects_of
from spklink.runs.cost import refuse_beyond_memory
from spklink.runs.cues import Cues, with_conflicts
from spklink.runs.enrolled import enrolment_table, refuse_nobody
from spklink.runs.evidence import Evidence
from spklink.runs.folder import solving
from spklink.runs.given_scores import GivenScorer
from spklink.runs.inputs import Inputs, read_inputs, reading
from spklink.runs.names import Voices
from spklink.runs.other_evidence import OtherEvidence, gathered
from spklink.runs.recipe import LABELLED, ONCE, UNUSED, Recipe, recipe_of, with_back_end
from spklink.runs.result import Listening, Result
from spklink.runs.scoring import Scorer
from spklink.runs.seated import (
    learned_again,
    rate_while_learning,
    with_misfits,
    with_seating,
)
from spklink.runs.sources import (
    Source,
    background_of,
    given_embeddings,
    given_scores,
    is_given,
    listened,
    trainer_of,
)
from spklink.runs.stages import Stages
from spklink.runs.sums import with_slack
from spklink.runs.unknown import NOTHING_EARLIER, Earlier, earlier_labels
from spklink.runs.unlisted import identified, lists_are_few, with_names
from spklink.scores.needed import Scores
from spklink.settings import File, LinkOptions
from spklink.shared_options import NAME
from spklink.sound.listening import Sound, problem_rows
from spklink.tables import Table

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
    `recognizer` may also be an object of your own (see spklink.recognizers.recognizer);
    `embeddings` a file, a DataFrame, a mapping of arrays or an array of all sides in table order;
    `scores` whatever `assign` takes.
    """
    asked, stages = resolved(LinkOptions, options), stages or Stages()
    folder = None if out is None else check_folder(out)
    plan = Plan.of(asked)
    with stages.stage("reading the table"):
        case = replace(Case.read(table, asked, plan), before=earlier_labels(folder))
    with _cache(asked["cache"], folder) as cache, limited_to(asked["budget_gb"]):
        result = _linked(case, plan, cache, asked, stages)
    if folder is not None:
        result.save(folder)
    return result


@dataclass(frozen=True)
class Plan:
    """What the options ask for, checked before any listening."""

    recognizer: Recognizer | None  # None: vectors or scores are given
    recipe: Recipe
    choice: Choice
    weight: Weight | None  # None: the paper's, unless known channels ask for another
    rate: float | None  # of list errors; None: estimated
    how: Options

    @classmethod
    def of(cls, asked: LinkOptions) -> Plan:
        recipe, name = recipe_of(asked["preset"]), asked["recognizer"]
        recognizer = None if is_given(asked) else _recognizer(name, asked)
        weight = asked_weight(asked["weight"], asked["beta"])
        known = "" if recognizer is None else recognizer.name
        recipe = with_back_end(recipe, asked["back_end"], known, twice=asked["link_wccn"])
        rate, choice = asked_rate(asked["list_errors"]), Choice.of(asked, recipe.kind)
        if known == NO_VOICES:  # nothing to calibrate, and nothing against any list
            rate, choice = rate or 0.0, replace(choice, source=NONE)
        return cls(recognizer, recipe, choice, weight, rate, solving(asked))

    @property
    def silent(self) -> bool:
        """Whether voices are not compared at all."""
        return self.recognizer is not None and self.recognizer.name == NO_VOICES

    def without_seconds(self, asked: LinkOptions) -> Plan:
        """The same where nobody knows the seconds of speech: unless a kind of calibration is asked
        for, one that does without them."""
        if asked["kind"] is not None or not find_kind(self.recipe.kind).needs_speech:
            return self
        return replace(self, choice=replace(self.choice, kind=None))


def _recognizer(name: Any, asked: LinkOptions) -> Recognizer:
    """The recognizer of this name or file, or the one that a program handed over."""
    speech = asked["speech"]
    if isinstance(name, str):
        own = {"preset": asked["preset"], "components": asked["components"], "speech": speech}
        return make_recognizer(name, **own)
    if speech != ENERGY:
        raise SpklinkError("speech: a recognizer of your own says itself what speech is")
    found: Recognizer = name
    return found


@dataclass(frozen=True)
class Case:
    """The tables of a run, read."""

    inputs: Inputs
    conversations: Conversations
    known: Labels | None
    claims: Labels | None
    others: OtherEvidence
    before: Earlier = NOTHING_EARLIER  # labels of people without a name, where there are results

    @classmethod
    def read(cls, table: Table, asked: LinkOptions, plan: Plan) -> Case:
        how = reading(asked)
        names = ("known", "claimed", "sides", "embedding_keys")
        tables = {"conversations": table} | {name: asked[name] for name in names}  # type: ignore[literal-required]
        if asked["tracks"] is not None:
            tables["tracks"] = read_tracks(asked["tracks"], how=how)
        turns = None if asked["turns"] is None else read_turns(asked["turns"], how)
        if turns is not None:
            tables["turns"] = turns.content
        tables |= {"cue": asked["cue"], "speakers": asked["speakers"]}
        tables["enrol"] = enrolment_table(asked["enrol"])
        measured_by = {"key": asked["key"]}
        inputs = read_inputs(tables, plan.choice.named_files(), measured_by, how)
        people = read_conversations(
            inputs.table("conversations"), inputs.table("tracks"), unlisted=True
        )
        people = with_splits(with_enrolment(people, inputs.table("enrol")), asked["split_speakers"])
        refuse_nobody(people)
        claimed, key = inputs.table("claimed"), inputs.table("key")
        if key is not None:
            read_key(key, people)  # what is wrong with it is said now, not in an hour
        return cls(
            inputs,
            people,
            read_known_channels(inputs, people),
            None if claimed is None else read_claims(claimed, people),
            OtherEvidence.read(inputs, turns, asked, people),
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
    consecutive = plan.weight is not None and plan.weight.consecutive
    summing = not consecutive and asked["scores"] is None  # pairs that are given are all there
    frequent = find_frequent(case.conversations, plan.how.budget.gigabytes if summing else np.inf)
    if len(frequent):
        plan = replace(plan, choice=plan.choice.straight())
    if not consecutive:
        refuse_beyond_memory(case.conversations, frequent)
    links = find_links(case.conversations, consecutive=consecutive, without=frequent.person)
    source = _source(case, plan, links, cache, asked, stages)
    sound = source.sound
    if sound.known_seconds() is None:
        plan = plan.without_seconds(asked)
    cues, odd = gathered(case.conversations, case.others, sound, source.trained, stages)
    case = replace(case, conversations=cues.on(case.conversations))
    with stages.stage("scoring"):
        scorer = source.scorer
        if isinstance(scorer, Scorer):
            scorer = scorer.balanced(frequent)
        scorer = scorer.normalised() if plan.recipe.normalise else scorer
        labelled = has_labels(background_of(asked))
        if labelled and plan.recipe.back_end == LABELLED and isinstance(scorer, Scorer):
            scorer = scorer.with_background(trainer_of(plan.how, cache, asked, stages))
        pairs = scorer.pairs(links)
        if len(frequent) and isinstance(scorer, Scorer) and scorer.trained is not None:
            pairs = replace(pairs, sample=scorer.sampled(frequent))
    with stages.stage("calibrating and linking"):
        compared = compare(case, plan, scorer, pairs, stages, frequent)
    found, others = compared.found, len(compared.pairs.non_targets)
    scores = Scores(found.llr, others, found.non_targets)
    evidence = Evidence(case.conversations, links, scores, found.weight, case.known)
    evidence = evidence.with_sums(found.sums)
    if cues.terms:
        with stages.stage("other evidence once more"):
            evidence, found = _with_voices(evidence, found, cues, plan)
    unused = UNUSED if labelled and plan.recipe.back_end != LABELLED else ""
    heard = SILENT if plan.silent else scorer.note
    told = (source.note, heard, compared.note, unused, damage_note(sound.store.damaged))
    notes = [*case.inputs.said(), *(text for text in told if text)]
    inputs = case.inputs.with_files(source.files)
    result = Result("link", asked, inputs, evidence, notes=notes, stages=stages)
    result = result.with_calibrated(compared.pairs, found)
    with stages.stage("looking for wrong lists"):
        result = with_seating(result, plan.rate, plan.how)
        summed = voices_of(compared.scorer, frequent)
        result = learned_again(result, compared.pairs, plan.choice, plan.how, summed)
        voices = None if plan.silent else _voices(result, compared.scorer, sound)
    if voices is not None and asked["unlisted"] == NAME and vague(case.conversations).any():
        with stages.stage("naming who is not listed"):
            result = with_names(result, voices, sound.usable, plan.rate, plan.how, case.before)
    if summed is not None:
        with stages.stage("bounding what sums may miss"):
            result = with_slack(result, summed, plan.how)
    with stages.stage("looking for misfits"):
        result = with_conflicts(with_misfits(result, voices))
    if asked["all_pairs"]:
        every = compared.scorer.everything()
        scores = replace(scores, others=len(every) - len(scores.needed))
        result = replace(result, raw=every, evidence=replace(result.evidence, scores=scores))
    listening = _listening(result, case, plan, source)
    return replace(result, listening=replace(listening, problems=[*listening.problems, *odd]))


def _with_voices(
    evidence: Evidence, found: Calibrated, cues: Cues, plan: Plan
) -> tuple[Evidence, Calibrated]:
    """Cues learned once more with the voices as their witness, and what both say together."""
    if not plan.silent:
        cues = cues.with_voices(evidence.conversations, found.posterior)
    evidence = evidence.with_cues(cues.terms)
    if not isinstance(found.posterior, Posterior):
        return evidence, found
    return evidence, replace(found, posterior=evidence.solved(plan.how))


def _source(
    case: Case, plan: Plan, links: Links, cache: Path, asked: LinkOptions, stages: Stages
) -> Source:
    """What the scores come from."""
    table, inputs, how = case.conversations, case.inputs, plan.how
    if plan.recognizer is not None:
        return listened(table, plan.recognizer, how, cache, asked, stages)
    if asked["embeddings"] is not None:
        return given_embeddings(table, inputs, how, cache, asked, stages)
    again = plan.recipe.back_end != ONCE
    return given_scores(table, inputs, links, how, asked, stages, again=again)


@dataclass(frozen=True)
class Compared:
    """Voices compared, calibrated and linked."""

    scorer: Scorer | GivenScorer
    pairs: Pairs
    found: Calibrated
    note: str = ""  # why they were compared once only, where that was not wanted


def compare(
    case: Case,
    plan: Plan,
    scorer: Scorer | GivenScorer,
    pairs: Pairs,
    stages: Stages,
    frequent: Frequent,
) -> Compared:
    """Calibrate and link; then, where the recipe says so and the links can teach, compare the
    voices again and do both once more."""

    def linked(by: Scorer | GivenScorer, these: Pairs, *, first: bool) -> Calibrated:
        return calibrated(
            case.conversations,
            these,
            replace(plan.choice, first=first),
            known=case.known,
            weight=plan.weight,
            rate=rate_while_learning(case.conversations, plan.rate),
            options=plan.how,
            voices=voices_of(by, frequent),
            tell=stages.progress,
        )

    once = Compared(scorer, pairs, linked(scorer, pairs, first=True))
    if case.conversations.enrolled and lists_are_few(case.conversations):
        found = identified(case.conversations, scorer, pairs, once.found, plan.choice)
        once = replace(once, found=found)
    can_teach = once.found.learned or compared_twice(plan.choice)
    if plan.recipe.back_end == ONCE or not can_teach:
        return once
    if not isinstance(scorer, Scorer) or scorer.trained is None:  # no vectors
        return once
    if scorer.again is not None:  # the background has taught already
        return once
    taught = scorer.taught(pairs, once.found, plan.recipe.back_end)
    if isinstance(taught, str):
        return replace(once, note=taught)
    more = taught.added(pairs)
    second = linked(taught, more, first=False)
    if once.found.learned and not second.learned:
        return replace(once, note=f"voices were compared once only: {second.note}")
    return Compared(taught, more, replace(second, first=once.found.calibration))


def voices_of(scorer: Scorer | GivenScorer, frequent: Frequent) -> FrequentVoices | None:
    """Those of people whose links are not listed, as they are compared now."""
    return scorer.voices(frequent) if isinstance(scorer, Scorer) else None


def _voices(result: Result, scorer: Scorer | GivenScorer, sound: Sound) -> Voices:
    """Log-likelihood-ratios of any two sides, as this run calibrated them."""
    found = result.calibrated
    assert found is not None
    seconds = sound.known_seconds()

    def voices(side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> NDArray[np.float64]:
        speech = None if seconds is None else pair_speech(seconds, side_1, side_2)
        scores = scorer(side_1, side_2)
        there = ~np.isnan(scores)  # not every score is given
        llr = found.calibration(np.where(there, scores, 0.0), speech)
        return np.where(there & sound.usable[side_1] & sound.usable[side_2], llr, np.nan)

    return voices


def _listening(result: Result, case: Case, plan: Plan, source: Source) -> Listening:
    claims, table = case.claims, case.conversations
    return Listening(
        speech=source.sound.table(),
        problems=list(problem_rows(table, source.sound)),
        recognizer=recognizer_json(plan, source),
        suspects=None
        if claims is None
        else suspects_of(table, result.solution, result.seating, claims),
        marks=source.sound.speech(),
    )


def recognizer_json(plan: Plan, source: Source) -> dict[str, Any]:
    """What compared the voices: all that tells it from another."""
    trained = source.trained
    return source.about() | {
        "normalise": plan.recipe.normalise,
        "link_wccn": plan.recipe.back_end != ONCE,
        "back_end": plan.recipe.back_end,
        "kind": plan.choice.kind,
        "trained": None if trained is None else trained.name,
        "trained_on": None if trained is None else trained.trained_on,
        "recordings": None if trained is None else trained.of,
        "heard": key_of([one.key for one in source.sound.heard]),
    }
