"""From a table and scores to who is on which channel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any, Unpack

from spklink.calibration.choice import NONE, Choice, calibrated
from spklink.calibration.doubts import doubts
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.database.conversations import Conversations, read_conversations, with_splits
from spklink.database.labels import Labels, read_known
from spklink.database.links import find_links
from spklink.errors import check_folder
from spklink.memory import limited_to
from spklink.options import described, resolved
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.list_errors import asked_rate
from spklink.runs.cost import refuse_beyond_memory
from spklink.runs.cues import given_cues, with_conflicts
from spklink.runs.evidence import Evidence
from spklink.runs.folder import solving
from spklink.runs.inputs import Inputs, Passing, read_inputs, reading
from spklink.runs.names import Voices
from spklink.runs.result import Result
from spklink.runs.seated import (
    answered,
    learned_again,
    rate_while_learning,
    with_doubted_lists,
    with_misfits,
)
from spklink.runs.stages import Stages
from spklink.scores.files import read_scores
from spklink.scores.lookup import Lookup
from spklink.settings import AssignOptions
from spklink.sound.speech_table import read_speech_table
from spklink.tables import Table


@described(AssignOptions)
def assign(
    table: Table,
    scores: Any,
    out: str | PathLike[str] | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[AssignOptions],
) -> Result:
    """Who is on which channel, from scores between sides.

    `table` is a file, a DataFrame or rows; `scores` a file, a DataFrame, a square array of all
    sides in table order, or a function of two sides, each a pair (conversation, channel). Scores
    are taken for log-likelihood-ratios unless a calibration is chosen. With `out` everything is
    also written to that folder.
    """
    asked, stages = resolved(AssignOptions, options), stages or Stages()
    folder = None if out is None else check_folder(out)
    choice = Choice.of(asked)
    weight = asked_weight(asked["weight"], asked["beta"])
    if isinstance(scores, str | PathLike):
        scores = Passing(scores)
    with stages.stage("reading the table"):
        inputs = _read_inputs(table, scores, asked, choice)
        conversations = read_conversations(inputs.table("conversations"))
        conversations = with_splits(conversations, asked["split_speakers"])
        known = read_known_channels(inputs, conversations)
    with limited_to(asked["budget_gb"]):
        evidence = read_evidence(conversations, scores, weight or choice.rule(), known, stages)
    evidence = evidence.with_cues(
        [c.terms(conversations) for c in given_cues(inputs, conversations)]
    )
    rate = asked_rate(asked["list_errors"])
    result = with_conflicts(_solved(asked, inputs, evidence, choice, weight, rate, stages))
    if folder is not None:
        result.save(folder)
    return result


def _read_inputs(table: Table, scores: Any, asked: AssignOptions, choice: Choice) -> Inputs:
    tables = {"conversations": table, "known": asked["known"], "sides": asked["sides"]}
    tables["cue"] = asked["cue"]
    return read_inputs(tables, {"scores": scores} | choice.named_files(), how=reading(asked))


def read_known_channels(inputs: Inputs, conversations: Conversations) -> Labels | None:
    known = inputs.table("known")
    return None if known is None else read_known(known, conversations)


def read_evidence(
    conversations: Conversations,
    scores: Any,
    weight: Weight,
    known: Labels | None,
    stages: Stages,
) -> Evidence:
    """The scores that are needed, read and checked."""
    with stages.stage("reading the scores"):
        if not weight.consecutive:
            refuse_beyond_memory(conversations)
        links = find_links(conversations, consecutive=weight.consecutive)
        found = read_scores(scores, conversations, links)
    return Evidence(conversations, links, found, weight, known)


def _solved(
    asked: Mapping[str, Any],
    inputs: Inputs,
    evidence: Evidence,
    choice: Choice,
    weight: Weight | None,
    rate: float | None,
    stages: Stages,
) -> Result:
    """What was found, with scores calibrated where that was chosen."""
    how = solving(asked)
    made = partial(Result, "assign", asked, inputs, evidence, stages=stages)
    if choice.source == NONE:
        with stages.stage("computing the posterior"):
            pairs = evidence_pairs(evidence, inputs.table("sides"))
            said = doubts(pairs, evidence.conversations.sides)
            notes = [*inputs.said(), *filter(None, [said])]
            result = made(answered(evidence, rate, how, stages), notes=notes)
            return with_misfits(result, _voices(result))
    with stages.stage("calibrating and linking"):
        pairs = evidence_pairs(evidence, inputs.table("sides"))
        found = calibrated(
            evidence.conversations,
            pairs,
            choice,
            known=evidence.known,
            weight=weight,
            rate=rate_while_learning(evidence.conversations, rate),
            options=how,
            tell=stages.progress,
        )
        result = made(found.answer, notes=inputs.said()).with_calibrated(pairs, found)
        result = with_doubted_lists(result, rate, how)
        result = learned_again(result, pairs, choice, how)
        return with_misfits(result, _voices(result))


def _voices(result: Result) -> Voices:
    """Log-likelihood-ratios of the pairs of sides that were kept of the scores; NaN elsewhere."""
    return Lookup(result.evidence.ratios(), len(result.conversations.sides))


def evidence_pairs(evidence: Evidence, sides: Table | None) -> Pairs:
    """What calibration learns from; `sides` is a table of the seconds of speech."""
    table, links, scores = evidence.conversations, evidence.links, evidence.scores
    if sides is None:
        return make_pairs(table, links, scores.needed, scores.non_targets)
    speech = read_speech_table(sides, table)
    return make_pairs(
        table,
        links,
        scores.needed,
        scores.non_targets,
        seconds=speech.seconds,
        usable=speech.usable,
    )
