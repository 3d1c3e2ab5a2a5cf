"""What a run found, as an object: numbers, a DataFrame, a notebook's table, a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.choice import Calibrated
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.database.sides import refuse_more_than_bits
from spklink.posterior.answer import Answer, certain_calls
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.posterior.posterior import Options, Posterior
from spklink.runs.evidence import Evidence
from spklink.runs.inputs import Inputs
from spklink.runs.naming import Naming
from spklink.runs.rows import (
    ASSIGNMENTS,
    DECISIONS,
    assignment_columns,
    decisions,
)
from spklink.runs.stages import Stages
from spklink.runs.unknown import Unknown
from spklink.scores.needed import SideScores, needed_and
from spklink.shown import Rows, Shown
from spklink.sound.speech_marks import SpeechMarks
from spklink.sound.speech_table import SpeechTable
from spklink.written_columns import Column, rows_of


@dataclass(frozen=True)
class Listening:
    """What `link` knows beyond `assign`: of the sound, the recognizer, the claims."""

    speech: SpeechTable
    problems: list[Sequence[Any]]  # rows of problems.csv
    recognizer: dict[str, Any]  # what compared the voices, for run.json
    suspects: list[Sequence[Any]] | None  # rows of suspects.csv; None where nothing was claimed
    marks: SpeechMarks | None = None  # where every side speaks; None where nobody listened


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """Who is on which channel, how sure, and all that led to it."""

    command: str  # link or assign
    options: Mapping[str, Any]  # as they were settled
    inputs: Inputs
    evidence: Evidence
    answer: Answer
    misfits: list[Sequence[Any]] = field(default_factory=list)  # rows of misfits.csv
    naming: Naming | None = None  # who may be on tracks that nobody is listed on
    unknown: Unknown | None = None  # who recurs there without a name
    raw: SideScores | None = None  # scores before calibration, where they were calibrated here
    calibrated: Calibrated | None = None
    calibration: dict[str, Any] | None = None  # what calibration.json says
    model: dict[str, Any] | None = None  # what run.json says about the model; None: there is none
    listening: Listening | None = None
    notes: list[str] = field(default_factory=list)  # what a person should know about this run
    stages: Stages = field(default_factory=Stages)

    @property
    def posterior(self) -> Posterior:
        """Who is on which channel, conversation by conversation, given that the lists are right:
        of two certain people on two channels. `answer` has all others, and wrong lists."""
        refuse_more_than_bits(self.conversations)
        return self.answer.given(lists_right=True).bits

    def with_calibrated(self, pairs: Pairs, found: Calibrated) -> Result:
        """Solved by calibrating `pairs`, whose scores are kept beside the log-likelihood-ratios."""
        evidence = self.evidence
        raw = needed_and(evidence.conversations, evidence.links, pairs.scores, pairs.non_targets)
        evidence = evidence.calibrated(found)
        return replace(
            self,
            evidence=evidence,
            answer=evidence.of_bits(found.answer.bits) if found.answer.binary else found.answer,
            raw=raw,
            calibrated=found,
            calibration=found.as_json(),
            notes=[*self.notes, *filter(None, [found.note])],
        )

    def recalibrated(self, found: Calibrated, how: Options) -> Result:
        """With its scores calibrated otherwise, and lists taken at their word again."""
        evidence = self.evidence.calibrated(found)
        right = evidence.lists_right(how)
        return replace(
            self,
            evidence=evidence,
            answer=right,
            calibrated=replace(found, answer=right),
            calibration=found.as_json(),
        )

    @property
    def conversations(self) -> Conversations:
        return self.evidence.conversations

    @property
    def usable(self) -> NDArray[np.bool_] | None:
        """(sides,) of which something can be said: their sound can be used, or other evidence tells
        of them; None where nobody listened."""
        heard = None if self.listening is None else self.listening.speech.usable
        return self.evidence.told(heard)

    def assignments(self) -> Iterator[tuple[Any, ...]]:
        """The rows of assignments.csv."""
        return rows_of(self.assignment_columns())

    def assignment_columns(self) -> list[Column]:
        """Those rows by columns."""
        given = certain_calls(self.conversations, self.evidence.known)
        return assignment_columns(self.answer, given, self.usable)

    def summary(self) -> dict[str, Any]:
        """The few numbers a person asks for first."""
        found = summary(self.answer, self.usable, self.misfits)
        if not self.answer.binary:
            found |= self._unlisted()
        if self.listening is None:
            return found
        speech, suspects = self.listening.speech, self.listening.suspects
        return found | {
            "speech_hours": round(float(speech.seconds.sum()) / 3600.0, 3)
            if speech.known
            else None,
            "unused_sides": int((~speech.usable).sum()),
            "suspects": None if suspects is None else len(suspects),
        }

    def _unlisted(self) -> dict[str, Any]:
        """Of enrolled people, and of tracks that somebody was named on whom no list names."""
        table, found = self.conversations, dict[str, Any]()
        if table.enrolled:
            found["enrolled"] = table.enrolled
        if self.naming is not None:
            entry = self.answer.entry
            named = int((table.candidate[np.maximum(entry, 0)] & (entry >= 0)).sum())
            found["naming"] = self.naming.as_json() | {"named": named}
        if self.unknown is not None:
            found["unknown"] = self.unknown.as_json()
        return found

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write everything to a folder, as the command line does; returns it."""
        from spklink.runs.folder import write_folder

        return write_folder(self, Path(folder))

    def _sentence(self) -> str:
        found = self.summary()
        if "entropy_bits" not in found:
            return (
                f"{found['conversations']} conversations of {found['speakers']} speakers, "
                f"{found['decisions']['settled']} of {found['tracks']} tracks settled"
            )
        low, high = found["entropy_bits"]
        bits = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        return (
            f"{found['conversations']} conversations of {found['speakers']} speakers, "
            f"{found['settled_99']} settled, {bits} bits open"
        )

    def _rows(self) -> Rows:
        """Those of assignments.csv."""
        return ASSIGNMENTS, self.assignments()


def summary(
    answer: Answer, usable: NDArray[np.bool_] | None, misfits: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """Of a solved database: bits where lists are right; tracks and lists where these may be wrong,
    and what to do about them."""
    found = {}
    if answer.table.plain:
        found = _summary_of_bits(answer.table, answer.given(lists_right=True).bits)
    if answer.binary:
        return found
    table, cliques = answer.table, answer.cliques
    decided = decisions(answer, usable)[: int(table.sides.start[table.asked])]
    return found | {
        "conversations": table.asked,
        "speakers": len(table.speakers),
        "cliques": len(cliques),
        "largest_clique": int(cliques.size.max(initial=0)),
        "unresolvable": int((~cliques.resolvable).sum()),
        "tracks": len(decided),
        "decisions": {name: decided.count(name) for name in DECISIONS},
        "list_errors": answer.rate.as_json(),
        "wrong_lists": int((answer.wrong.chance > 0.5).sum()),
        "misfits": len(misfits),
        "certainty": {name: answer.certainty.count(name) for name in CERTAINTIES},
    }


def _summary_of_bits(table: Conversations, posterior: Posterior) -> dict[str, Any]:
    cliques = posterior.model.cliques
    return {
        "conversations": len(table),
        "speakers": len(table.speakers),
        "cliques": len(cliques),
        "largest_clique": int(cliques.size.max()),
        "unresolvable": cliques.attainable_bits(),
        "settled_99": int(posterior.settled().sum()),
        "entropy_bits": [float(posterior.entropy_low.sum()), float(posterior.entropy_high.sum())],
        "proved_optimal": int(posterior.proved_optimal().sum()),
        "certainty": {name: int((posterior.certainty == name).sum()) for name in CERTAINTIES},
    }
