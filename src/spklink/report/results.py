"""A results folder as the report reads it: the posterior, and whatever else lies there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.sides import names_on
from spklink.measures.evaluation import Evaluation
from spklink.posterior.posterior import Posterior, solve
from spklink.runs.evidence import Evidence
from spklink.runs.folder import load, read_run, solving
from spklink.runs.inputs import Inputs, read_inputs
from spklink.runs.measure import measured
from spklink.runs.result import Result, summary
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
    posterior: Posterior
    unaided: Posterior  # without the known channels; the same object where there are none
    key: Labels | None
    evaluation: Evaluation | None
    claimed: Bits | None  # (M,) -1 where nothing is claimed; None without claims
    speech: SpeechTable | None  # None where nobody listened: `assign`
    problems: list[Sequence[Any]]
    calibration: dict[str, Any] | None  # None where log-likelihood-ratios were given
    inputs: Inputs  # of this report

    @property
    def linked(self) -> bool:
        """Whether recordings were listened to (`link`), not scores read (`assign`)."""
        return bool(self.run["command"] == "link")

    @property
    def table(self) -> Conversations:
        return self.evidence.conversations

    @property
    def known(self) -> int:
        """Conversations whose channels somebody knew."""
        known = self.evidence.known
        return 0 if known is None else int((~np.isnan(known.exchanged)).sum())

    def summary(self) -> dict[str, Any]:
        return summary(self.table, self.posterior)

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
    unaided = solved.posterior
    if solved.evidence.known is not None:
        with stages.stage("solving without the known channels"):
            unaided = solve(solved.evidence.unaided().model, options=how, tell=stages.progress)
    heard = solved.listening
    return Results(
        folder=folder,
        run=run,
        evidence=solved.evidence,
        posterior=solved.posterior,
        unaided=unaided,
        key=labels,
        evaluation=evaluation,
        claimed=_claims(solved, _labels(inputs, "claimed", table)),
        speech=None if heard is None else heard.speech,
        problems=[] if heard is None else heard.problems,
        calibration=solved.calibration,
        inputs=inputs,
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
    bits, where = np.full(len(table), -1, np.int8), table.index()
    for name, _, said, _ in solved.listening.suspects:
        m = where[name]
        bits[m] = int(said != SEPARATOR.join(names_on(table, m, 0)))
    return bits
