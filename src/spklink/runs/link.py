"""The main job: from recordings and a table to who is on which channel.

(Or from vectors or scores of sides that somebody else computed: module `sources`.)

listen → train the recognizer → a vector a side → scores → calibration → posterior → results. Every
stage leaves its outcome in a cache under a name that is the hash of all it depends on, so the same
command after a kill, or with ten more calls, does only what is missing, to the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from spklink.cache import cache_folder, damage_note, key_of
from spklink.calibration.choice import Calibrated, calibrated, compared_twice
from spklink.calibration.pairs import Pairs
from spklink.cluster import check_address, joined
from spklink.database.frequent import Frequent, find_frequent
from spklink.database.links import Links, find_links
from spklink.database.sides import vague
from spklink.errors import check_folder
from spklink.hands import Here
from spklink.memory import limited_to
from spklink.options import described, resolved
from spklink.recognizers.background import has_labels
from spklink.recognizers.centre import leading
from spklink.runs.case import Case, Plan
from spklink.runs.claims import suspects_of
from spklink.runs.cost import refuse_beyond_memory
from spklink.runs.cues import Cues, with_conflicts
from spklink.runs.evidence import Evidence
from spklink.runs.given_scores import GivenScorer
from spklink.runs.kept_scores import MOST_SIDES
from spklink.runs.memory import Memory, memory_for, remembered, spreads_for
from spklink.runs.other_evidence import gathered
from spklink.runs.recipe import LABELLED, ONCE, UNUSED
from spklink.runs.result import Listening, Result
from spklink.runs.scoring import Scorer
from spklink.runs.seated import (
    learned_again,
    rate_while_learning,
    with_doubted_lists,
    with_misfits,
)
from spklink.runs.sources import (
    Source,
    background_of,
    given_embeddings,
    given_scores,
    listened,
    trainer_of,
)
from spklink.runs.stages import Stages
from spklink.runs.sums import with_slack
from spklink.runs.unknown import earlier_labels
from spklink.runs.unlisted import identified, lists_are_few, with_names
from spklink.runs.voices import any_voices, frequent_voices, with_all_pairs
from spklink.scores.needed import Scores
from spklink.settings import LinkOptions
from spklink.shared_options import NAME
from spklink.sound.listening import problem_rows
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
    check_address(asked["cluster"])
    plan = Plan.of(asked)
    with stages.stage("reading the table"):
        case = replace(Case.read(table, asked, plan), before=earlier_labels(folder))
    with (
        cache_folder(asked["cache"], folder) as cache,
        limited_to(asked["budget_gb"]),
        joined(asked["cluster"], cache, Here(plan.how.workers), stages.say) as cluster,
    ):
        how = replace(plan.how, cluster=cluster)
        result = _linked(case, replace(plan, how=how), cache, asked, stages)
    if folder is not None:
        result.save(folder)
    return result


def _linked(case: Case, plan: Plan, cache: Path, asked: LinkOptions, stages: Stages) -> Result:
    links, frequent = _links(case, plan, asked)
    if len(frequent):
        plan = replace(plan, choice=plan.choice.straight())
    source = _source(case, plan, links, cache, asked, stages)
    sound = source.sound
    if sound.known_seconds() is None:
        plan = plan.without_seconds(asked)
    cues, odd = gathered(case.conversations, case.others, sound, source.trained, stages)
    case = replace(case, conversations=cues.on(case.conversations))
    memory = _memory(case, plan, source, cache, asked, frequent)
    with stages.stage("looking for what is known"):
        recalled, why = memory.recall(case.known, links, plan.how) if memory else (None, "")
    if recalled is None:
        compared = _learned(case, plan, source, links, cache, asked, stages, frequent)
    else:
        note = recalled.model.about["notes"]["compared"]
        compared = Compared(recalled.scorer, recalled.pairs, recalled.found, note)
    found, others = compared.found, len(compared.pairs.non_targets)
    scores = Scores(found.llr, others, found.non_targets)
    evidence = Evidence(case.conversations, links, scores, found.weight, case.known)
    evidence = evidence.with_sums(found.sums)
    if cues.terms:
        with stages.stage("other evidence once more"):
            evidence, found = _with_voices(evidence, found, cues, plan)
    labelled = has_labels(background_of(asked))
    unused = UNUSED if labelled and plan.recipe.back_end != LABELLED else ""
    heard = SILENT if plan.silent else compared.scorer.note
    told = (source.note, heard, compared.note, unused, damage_note(sound.store.damaged))
    notes = [*case.inputs.said(), *(text for text in told if text)]
    inputs = case.inputs.with_files(source.files)
    result = Result("link", asked, inputs, evidence, found.answer, notes=notes, stages=stages)
    result = result.with_calibrated(compared.pairs, found)
    with stages.stage("looking for wrong lists"):
        summed = frequent_voices(compared.scorer, frequent)
        if recalled is None:
            result = with_doubted_lists(result, plan.rate, plan.how)
            result = learned_again(result, compared.pairs, plan.choice, plan.how, summed)
        else:
            result = replace(result, answer=recalled.answer)
        every = None
        if memory is not None:
            result, every = remembered(
                *(memory, recalled, result, compared.scorer, compared.pairs, plan.choice),
                note=compared.note,
                why=why,
            )
        voices = None if plan.silent else any_voices(result, compared.scorer, sound, every)
    if voices is not None and asked["unlisted"] == NAME and vague(case.conversations).any():
        with stages.stage("naming who is not listed"):
            result = with_names(result, voices, sound.usable, plan.rate, plan.how, case.before)
    if summed is not None:
        with stages.stage("bounding what sums may miss"):
            result = with_slack(result, summed, plan.how, spreads_for(memory, result))
    with stages.stage("looking for misfits"):
        result = with_conflicts(with_misfits(result, voices))
    if asked["all_pairs"]:
        result = with_all_pairs(result, compared.scorer, every)
    listening = _listening(result, case, plan, source)
    return replace(result, listening=replace(listening, problems=[*listening.problems, *odd]))


def _links(case: Case, plan: Plan, asked: LinkOptions) -> tuple[Links, Frequent]:
    """Calls that share a participant, and people whose links are too many to be listed; refused
    where either would not fit."""
    consecutive = plan.weight is not None and plan.weight.consecutive
    summing = not consecutive and asked["scores"] is None  # pairs that are given are all there
    frequent = find_frequent(case.conversations, plan.how.budget.gigabytes if summing else np.inf)
    if not consecutive:
        refuse_beyond_memory(case.conversations, frequent)
    links = find_links(case.conversations, consecutive=consecutive, without=frequent.person)
    return links, frequent


def _memory(
    case: Case,
    plan: Plan,
    source: Source,
    cache: Path,
    asked: LinkOptions,
    frequent: Frequent,
) -> Memory | None:
    """What earlier runs have kept; None where something is learned that no model holds, or more
    is asked for than is kept."""
    many = asked["all_pairs"] and len(source.sound.marks) > MOST_SIDES
    seen_from = leading(case.conversations)  # who moves the middle of all voices
    if many or (seen_from and not len(frequent)) or has_labels(background_of(asked)):
        return None
    return memory_for(case.conversations, plan.recipe, plan.choice, source, cache, asked, frequent)


def _learned(
    case: Case,
    plan: Plan,
    source: Source,
    links: Links,
    cache: Path,
    asked: LinkOptions,
    stages: Stages,
    frequent: Frequent,
) -> Compared:
    """Voices compared and calibrated by what these calls teach."""
    labelled = has_labels(background_of(asked))
    with stages.stage("scoring"):
        scorer = source.scorer
        if isinstance(scorer, Scorer):
            scorer = scorer.balanced(frequent)
        scorer = scorer.normalised() if plan.recipe.normalise else scorer
        if labelled and plan.recipe.back_end == LABELLED and isinstance(scorer, Scorer):
            scorer = scorer.with_background(trainer_of(plan.how, cache, asked, stages))
        pairs = scorer.pairs(links)
        if len(frequent) and isinstance(scorer, Scorer) and scorer.trained is not None:
            pairs = replace(pairs, sample=scorer.sampled(frequent))
    with stages.stage("calibrating and linking"):
        return compare(case, plan, scorer, pairs, stages, frequent)


def _with_voices(
    evidence: Evidence, found: Calibrated, cues: Cues, plan: Plan
) -> tuple[Evidence, Calibrated]:
    """Cues learned once more with the voices as their witness, and what both say together."""
    if not plan.silent:
        cues = cues.with_voices(evidence.conversations, found.answer)
    evidence = evidence.with_cues(cues.terms)
    if not found.answer.binary:
        return evidence, found
    return evidence, replace(found, answer=evidence.lists_right(plan.how))


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
            voices=frequent_voices(by, frequent),
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


def _listening(result: Result, case: Case, plan: Plan, source: Source) -> Listening:
    claims, table = case.claims, case.conversations
    return Listening(
        speech=source.sound.table(),
        problems=list(problem_rows(table, source.sound)),
        recognizer=recognizer_json(plan, source),
        suspects=None if claims is None else suspects_of(result.answer, claims),
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
