"""A results folder as the report reads it: the posterior, and whatever else lies there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels, read_key
from spklink.errors import SpklinkError
from spklink.measures.evaluation import Evaluation, evaluate
from spklink.posterior.likelihood import Weight, build_model, combine_prior
from spklink.posterior.posterior import Options, Posterior, solve
from spklink.runs.assign import Database, PathName, Result, Stages, load
from spklink.runs.claims import people
from spklink.sound.speech_table import SpeechTable, read_speech_table
from spklink.tables import open_table, read_json, sha256

Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Results:
    """All that a report is made of."""

    folder: Path
    run: dict[str, Any]
    database: Database
    posterior: Posterior
    weight: Weight
    unaided: Posterior  # without the known channels; the same object where there are none
    key: Labels | None
    evaluation: Evaluation | None
    claimed: Bits | None  # (M,) -1 where nothing is claimed; None without claims
    sides: SpeechTable | None  # None where nobody listened: `assign`
    problems: list[list[str]]
    calibration: dict[str, Any] | None  # None where log-likelihood-ratios were given
    given: dict[str, dict[str, str]]  # files of this report: name and hash

    @property
    def linked(self) -> bool:
        """Whether recordings were listened to (`link`), not scores read (`assign`)."""
        return self.sides is not None

    @property
    def table(self) -> Conversations:
        return self.database.conversations

    @property
    def known(self) -> int:
        """Conversations whose channels somebody knew."""
        path = self.folder / "known.csv"
        return len({row[0] for row in read_rows(path)}) if path.exists() else 0

    def summary(self) -> dict[str, Any]:
        return Result(self.database, self.posterior).summary()

    def usable(self) -> NDArray[np.bool_]:
        """(S,) sides that were used."""
        if self.sides is None:
            return np.ones(len(self.table.sides), np.bool_)
        return self.sides.usable


def read_results(
    folder: Path,
    *,
    key: PathName | None,
    claimed: PathName | None,
    workers: int,
    stages: Stages,
) -> Results:
    """Read a finished results folder and solve it again: the posterior itself is not kept there."""
    with stages.stage("reading the results"):
        database, options = load(folder, workers=workers)
        run = read_json(folder / "run.json")
        weight = Weight(run["settings"]["weight"], run["settings"]["beta"])
        labels = None if key is None else read_key(key, database.conversations)
        linked = "scores" not in run["inputs"]  # else files of an earlier `link` may lie about
        claims = _claims(folder, database.conversations, claimed, linked)
    with stages.stage("computing the posterior"):
        posterior = solve(database.model, options=options, tell=stages.progress)
        unaided = _unaided(folder, database, posterior, weight, options)
    measured = None
    if labels is not None:
        with stages.stage("measuring"):
            measured = evaluate(
                database.model, labels.bits, foreign_key_rows=labels.foreign, options=options
            )
    given = {"key": key, "claimed": claimed}
    return Results(
        folder=folder,
        run=run,
        database=database,
        posterior=posterior,
        weight=weight,
        unaided=unaided,
        key=labels,
        evaluation=measured,
        claimed=claims,
        sides=_sides(folder, database.conversations) if linked else None,
        problems=read_rows(folder / "problems.csv") if linked else [],
        calibration=_calibration(folder),
        given={
            name: {"file": Path(path).name, "sha256": sha256(path)}
            for name, path in given.items()
            if path is not None
        },
    )


def read_rows(path: Path) -> list[list[str]]:
    """The rows of a table below its header; none where there is no such file."""
    if not path.exists():
        return []
    with open_table(path) as (_, rows):
        return [fields for _, fields in rows]


def _calibration(folder: Path) -> dict[str, Any] | None:
    path = folder / "calibration.json"
    found: dict[str, Any] | None = read_json(path) if path.exists() else None
    return found


def _unaided(
    folder: Path, database: Database, posterior: Posterior, weight: Weight, options: Options
) -> Posterior:
    """The posterior as it was before anybody said which channels they know."""
    if not (folder / "known.csv").exists():
        return posterior
    table, links = database.conversations, database.links
    prior = combine_prior(table)
    cliques = find_cliques(table, prior.clamped >= 0)
    llr = database.scores.llr
    model = build_model(table, cliques, links, llr, weight=weight, prior=prior)
    return solve(model, options=options)


def _claims(
    folder: Path, table: Conversations, claimed: PathName | None, linked: bool
) -> Bits | None:
    """The claims given or, without them, those that `link` found suspicious."""
    if claimed is not None:
        return read_key(claimed, table).bits
    path = folder / "suspects.csv"
    if not linked or not path.exists():
        return None
    bits, where = np.full(len(table), -1, np.int8), table.index()
    for name, _, said, _ in read_rows(path):
        if name not in where:
            raise SpklinkError(f"{path}: no conversation {name!r} in conversations.csv")
        bits[where[name]] = int(said != people(table, where[name], 0))
    return bits


def _sides(folder: Path, table: Conversations) -> SpeechTable | None:
    path = folder / "sides.csv"
    return read_speech_table(path, table) if path.exists() else None
