"""A results folder as the report reads it: the posterior, and whatever else lies there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import Cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.sides import names_on, refuse_more_than_bits
from spklink.decisions.fingerprints import verdicts_in
from spklink.decisions.verdicts import Verdicts
from spklink.measures.evaluation import Evaluation
from spklink.posterior.answer import Answer
from spklink.posterior.posterior import Posterior
from spklink.runs.evidence import Evidence
from spklink.runs.folder import load, read_run, solving
from spklink.runs.inputs import Inputs, read_inputs
from spklink.runs.measure import measured
from spklink.runs.result import Result, summary
from spklink.runs.rows import decisions
from spklink.runs.stages import Stages
from spklink.sound.speech_table import SpeechTable
from spklink.tables import SEPARATOR, Table

Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Results:
    """All that a report is made of."""

    folder: Path
    run: dict[str, Any]  # run.json
    evidence: Evidence
    answer: Answer
    unaided: Posterior | None  # bits without the known channels; None where bits do not do
    key: Labels | None
    evaluation: Evaluation | None
    claimed: Bits | None  # (M,) -1 where nothing is claimed; None without claims
    speech: SpeechTable | None  # None where nobody listened: `assign`
    problems: list[Sequence[Any]]
    calibration: dict[str, Any] | None  # None where log-likelihood-ratios were given
    inputs: Inputs  # of this report
    verdicts: Verdicts = field(default_factory=Verdicts)  # what people decided on the folder
    misfits: list[Sequence[Any]] = field(default_factory=list)  # rows of misfits.csv
    voices: Posterior | None = None  # without cues and known channels; None where there are no cues

    @property
    def linked(self) -> bool:
        """Whether recordings were listened to, not vectors or scores read."""
        given = {"embeddings", "scores"} & set(self.run["inputs"])
        return bool(self.run["command"] == "link" and not given)

    @property
    def table(self) -> Conversations:
        return self.evidence.conversations

    @property
    def known(self) -> int:
        """Conversations whose channels somebody knew."""
        known = self.evidence.known
        return 0 if known is None else int((~np.isnan(known.exchanged)).sum())

    @property
    def posterior(self) -> Posterior:
        """Of conversations of two on two channels, given that the lists are right."""
        refuse_more_than_bits(self.table)
        return self.answer.given(lists_right=True).bits

    @property
    def cliques(self) -> Cliques:
        return self.evidence.cliques

    @cached_property
    def decided(self) -> list[str]:
        """(sides,) what to do about each track, of the answer in full."""
        return decisions(self.answer, self._told)

    def summary(self) -> dict[str, Any]:
        return summary(self.answer, self._told, self.misfits)

    @property
    def _told(self) -> NDArray[np.bool_] | None:
        return self.evidence.told(None if self.speech is None else self.speech.usable)

    def usable(self) -> NDArray[np.bool_]:
        """(sides,) which were used."""
        if self.speech is None:
            return np.ones(len(self.table.sides), np.bool_)
        return self.speech.usable


def read_results(
    folder: Path,
    *,
    result: Result | None,
    evaluation: Evaluation | None,
    key: Table | None,
    claimed: Table | None,
    workers: int | None,
    stages: Stages,
) -> Results:
    """A finished results folder. Its posterior is that of `result`, where the run that made it is
    at hand; else it is computed again, as it is not kept there."""
    run = read_run(folder)
    solved = result or load(folder, workers=workers, stages=stages)
    table, how = solved.conversations, solving(solved.options)
    inputs = read_inputs({"key": key, "claimed": claimed})
    labels = _labels(inputs, "key", table)
    if labels is not None and evaluation is None:
        with stages.stage("measuring"):
            evaluation = measured(solved, labels)
    if "claimed" in inputs.given:
        refuse_more_than_bits(table)
    unaided = solved.posterior if table.plain else None
    if unaided is not None and solved.evidence.known is not None:
        with stages.stage("solving without the known channels"):
            unaided = solved.evidence.unaided().lists_right(how, stages.progress).bits
    voices = None
    if solved.evidence.cues and unaided is not None:
        with stages.stage("solving without other evidence"):
            voices = solved.evidence.unaided().with_cues(()).lists_right(how).bits
    heard = solved.listening
    return Results(
        folder=folder,
        run=run,
        evidence=solved.evidence,
        unaided=unaided,
        key=labels,
        evaluation=evaluation,
        claimed=_claims(solved, _labels(inputs, "claimed", table)),
        speech=None if heard is None else heard.speech,
        problems=[] if heard is None else heard.problems,
        calibration=solved.calibration,
        inputs=inputs,
        verdicts=verdicts_in(folder, solved),
        answer=solved.answer,
        misfits=solved.misfits,
        voices=voices,
    )


def _labels(inputs: Inputs, name: str, table: Conversations) -> Labels | None:
    content, read = inputs.table(name), read_claims if name == "claimed" else read_key
    return None if content is None else read(content, table)


def _claims(solved: Result, claimed: Labels | None) -> Bits | None:
    """The claims given or, without them, those that `link` found suspicious."""
    if claimed is not None:
        return claimed.bits
    if solved.listening is None or solved.listening.suspects is None:
        return None
    table = solved.conversations
    if not table.plain:
        return None  # what the page shows of claims is about bits; suspects.csv has all
    bits, where = np.full(len(table), -1, np.int8), table.index()
    for name, _, said, _ in solved.listening.suspects:
        m = where[name]
        bits[m] = int(said != SEPARATOR.join(names_on(table, m, 0)))
    return bits
