"""Measure results against the truth, or against known channels; measure scores against a key."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spklink.cues.cue import VOICES
from spklink.database.conversations import read_conversations
from spklink.database.labels import Labels, read_key
from spklink.errors import SpklinkError
from spklink.measures import evaluation
from spklink.measures.cues import CueRow, measure_odds, measure_tracks
from spklink.measures.detection import Detection
from spklink.measures.detection import measure as measure_scores
from spklink.measures.evaluation import Evaluation
from spklink.measures.reliability import Marginals, hide_known
from spklink.measures.seats import evaluate_seats
from spklink.posterior.seat_truth import seat_truth
from spklink.runs.cues import cue_odds, odds_of
from spklink.runs.evidence import Evidence
from spklink.runs.folder import load, read_evidence, read_run, solving
from spklink.runs.result import Result
from spklink.runs.seated import answered
from spklink.runs.stages import Stages
from spklink.scores.trials import read_trials
from spklink.tables import Table


def evaluate(
    result: Result | str | PathLike[str],
    key: Table,
    *,
    workers: int | None = None,
    stages: Stages | None = None,
) -> Evaluation:
    """How good the probabilities are, given the truth: the paper's Tables 2 and 3 where lists are
    taken to be right, and where they may be wrong tracks, presence and lists with nothing given.

    `result` is what `link` or `assign` returned, or a folder that they wrote; `key` a file, a
    DataFrame or rows: conversation,channel,speaker.
    """
    stages = stages or Stages()
    solved = result if isinstance(result, Result) else load(result, workers=workers, stages=stages)
    labels = read_key(key, solved.conversations)
    with stages.stage("measuring"):
        return measured(solved, labels)


def measured(result: Result, key: Labels) -> Evaluation:
    """All that a key tells about a result."""
    how, seats = solving(result.options), None
    if not result.answer.binary:
        seats = evaluate_seats(result.answer, key, usable=result.usable, options=how)
    if not result.conversations.plain and seats is not None:
        return replace(evaluation.of_seats(seats, key), cues=by_cue_on_tracks(result, key))
    found = evaluation.evaluate(
        result.posterior, key.bits, foreign_key_rows=key.foreign, options=how
    )
    return replace(found, seats=seats, cues=by_cue(result, key))


def by_cue(result: Result, key: Labels) -> list[CueRow]:
    """Voices alone, every cue alone, and all together; nothing where there are voices only."""
    evidence = result.evidence
    if not evidence.cues:
        return []
    clique, bits = evidence.cliques.label, key.bits
    alone = evidence.with_cues(()).lists_right(solving(result.options)).bits
    found = {VOICES: odds_of(alone)} | cue_odds(evidence)
    found["together"] = odds_of(result.posterior)
    rows = [measure_odds(name, odds, bits, clique) for name, odds in found.items()]
    # Conversations of a clique are not open independently of one another.
    jointly = {VOICES: alone, "together": result.posterior}
    return [
        replace(row, open_bits=float(jointly[row.name].entropy_bits.sum()))
        if row.name in jointly
        else row
        for row in rows
    ]


def by_cue_on_tracks(result: Result, key: Labels) -> list[CueRow]:
    """The same where a conversation is more than one bit: track by track."""
    evidence, now = result.evidence, result.answer
    if not evidence.cues:
        return []
    silent = replace(evidence.scores, needed=np.zeros_like(evidence.scores.needed))
    kinds = {VOICES: evidence.with_cues(())} | {
        one.name: replace(evidence, scores=silent).with_cues([one]) for one in evidence.cues
    }
    how, rate, stages = solving(result.options), now.rate.value, Stages()
    found = {name: answered(one, rate, how, stages) for name, one in kinds.items()}
    truth = seat_truth(now, key).entry
    return [measure_tracks(name, one, truth) for name, one in (found | {"together": now}).items()]


def consistency(
    result: Result | str | PathLike[str],
    *,
    workers: int | None = None,
    stages: Stages | None = None,
) -> Marginals:
    """Known channels, hidden a tenth at a time and predicted from the rest."""
    stages = stages or Stages()
    with stages.stage("hiding known channels"):
        evidence, options = _unsolved(result)
        bits = evidence.model.prior.clamped
        if not (bits >= 0).any():
            raise SpklinkError(
                "no channels are known for certain, so there is nothing to hide; "
                "give --key, or link with --known"
            )
        how = solving({**options, "workers": workers})
        model = evidence.hiding_everything()
        return hide_known(model, bits, seed=how.seed, options=how)


def _unsolved(result: Result | str | PathLike[str]) -> tuple[Evidence, Any]:
    if isinstance(result, Result):
        return result.evidence, result.options
    folder = Path(result)
    return read_evidence(folder), read_run(folder)["options"]


def detect(table: Table, scores: Any, key: Table, *, stages: Stages | None = None) -> Detection:
    """How well scores tell the same speaker from others: EER, Cllr, minimum costs."""
    stages = stages or Stages()
    with stages.stage("reading the scores"):
        people = read_conversations(table, unlisted=True)
        targets, others = read_trials(scores, people, read_key(key, people))
    with stages.stage("measuring"):
        return measure_scores(targets, others)
