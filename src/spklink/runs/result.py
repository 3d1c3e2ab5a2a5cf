"""What a run found, as an object: numbers, a DataFrame, a notebook's table, a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from spklink.calibration.choice import Calibrated
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.database.sides import refuse_more_than_bits
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.posterior.posterior import Posterior
from spklink.posterior.seating import Seating
from spklink.runs.evidence import Evidence
from spklink.runs.inputs import Inputs
from spklink.runs.rows import ASSIGNMENTS, assignment_rows
from spklink.runs.stages import Stages
from spklink.scores.needed import SideScores, needed_and
from spklink.shown import Rows, Shown
from spklink.sound.speech_table import SpeechTable


@dataclass(frozen=True)
class Listening:
    """What `link` knows beyond `assign`: of the sound, the recognizer, the claims."""

    speech: SpeechTable
    problems: list[Sequence[Any]]  # rows of problems.csv
    recognizer: dict[str, Any]  # what compared the voices, for run.json
    suspects: list[Sequence[Any]] | None  # rows of suspects.csv; None where nothing was claimed


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """Who is on which channel, how sure, and all that led to it."""

    command: str  # link or assign
    options: Mapping[str, Any]  # as they were settled
    inputs: Inputs
    evidence: Evidence
    solution: Posterior | None = None  # None while a run is at work, and where bits do not do
    seating: Seating | None = None  # None where the bits of the posterior say all of it
    raw: SideScores | None = None  # scores before calibration, where they were calibrated here
    calibrated: Calibrated | None = None
    calibration: dict[str, Any] | None = None  # what calibration.json says
    listening: Listening | None = None
    notes: list[str] = field(default_factory=list)  # what a person should know about this run
    stages: Stages = field(default_factory=Stages)

    @property
    def posterior(self) -> Posterior:
        """Who is on which channel, conversation by conversation, given that the lists are right:
        of two certain people on two channels. `seating` has all others, and wrong lists."""
        if self.solution is None:
            refuse_more_than_bits(self.conversations)
        assert self.solution is not None
        return self.solution

    def with_calibrated(self, pairs: Pairs, found: Calibrated) -> Result:
        """Solved by calibrating `pairs`, whose scores are kept beside the log-likelihood-ratios."""
        evidence = self.evidence
        raw = needed_and(evidence.conversations, evidence.links, pairs.scores, pairs.non_targets)
        scores = replace(evidence.scores, needed=found.llr, non_targets=found.non_targets)
        return replace(
            self,
            evidence=replace(evidence, scores=scores, weight=found.weight),
            solution=found.posterior if isinstance(found.posterior, Posterior) else None,
            raw=raw,
            calibrated=found,
            calibration=found.as_json(),
            notes=[*self.notes, *filter(None, [found.note])],
        )

    def recalibrated(self, found: Calibrated) -> Result:
        """The same scores calibrated otherwise."""
        scores = replace(self.evidence.scores, needed=found.llr, non_targets=found.non_targets)
        assert isinstance(found.posterior, Posterior)
        return replace(
            self,
            evidence=replace(self.evidence, scores=scores, weight=found.weight),
            solution=found.posterior,
            calibrated=found,
            calibration=found.as_json(),
        )

    @property
    def conversations(self) -> Conversations:
        return self.evidence.conversations

    def summary(self) -> dict[str, Any]:
        """The few numbers a person asks for first."""
        found = summary(self.conversations, self.posterior)
        if self.listening is None:
            return found
        speech, suspects = self.listening.speech, self.listening.suspects
        return found | {
            "speech_hours": round(float(speech.seconds.sum()) / 3600.0, 3),
            "unused_sides": int((~speech.usable).sum()),
            "suspects": None if suspects is None else len(suspects),
        }

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write everything to a folder, as the command line does; returns it."""
        from spklink.runs.folder import write_folder

        return write_folder(self, Path(folder))

    def _sentence(self) -> str:
        found = summary(self.conversations, self.posterior)
        low, high = found["entropy_bits"]
        bits = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        return (
            f"{found['conversations']} conversations of {found['speakers']} speakers, "
            f"{found['settled_99']} settled, {bits} bits open"
        )

    def _rows(self) -> Rows:
        """Those of assignments.csv."""
        return ASSIGNMENTS, assignment_rows(self.conversations, self.posterior)


def summary(table: Conversations, posterior: Posterior) -> dict[str, Any]:
    """Of a solved database."""
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
