"""From a table and calibrated scores to a folder of results, and back from that folder.

A results folder is self-contained: `load` rebuilds the model from it alone. `run.json` is written
last, so a folder that has it is complete.
"""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spklink import __version__
from spklink.calibration.choice import NONE, Calibrated, Choice, calibrated, pairs_of
from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_known
from spklink.database.links import Links, find_links
from spklink.errors import SpklinkError
from spklink.measures.evaluation import configurations
from spklink.measures.reliability import Marginals, hide_known
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import Model, Prior, Weight, build_model, combine_prior
from spklink.posterior.posterior import Options, Posterior, Tell, solve
from spklink.scores.needed import Scores, SideScores, needed_and, read_scores, write_scores
from spklink.tables import (
    probability_text,
    read_json,
    sha256,
    sweep,
    write_bytes,
    write_csv,
    write_json,
)

PathName = str | PathLike[str]
COPIED = ("conversations", "known")
FILES = (
    *("assignments.csv", "cliques.csv", "methods.csv"),
    *("conversations.csv", "known.csv", "llrs.npz", "scores.npz", "calibration.json"),
)
REPORTS = ("report.html", "report.json")  # of an earlier run; figures/ goes with the next report
ASSIGNMENTS = (
    *("conversation", "channel", "speaker", "probability", "clique"),
    *("low", "high", "certainty"),
)
CLIQUES = (
    *("clique", "conversations", "speakers", "configurations", "resolvable"),
    *("entropy_bits", "best_probability", "relative_probability", "method"),
    *("certainty", "proved_optimal"),
)
METHODS = (
    *("clique", "method", "certainty", "best_low", "best_high", "entropy_low", "entropy_high"),
    *("log_evidence_low", "log_evidence_high", "reason"),
)


@dataclass
class Stages:
    """Names the stage at work and keeps how long each took."""

    tell: Callable[[str], None] | None = None  # hears the name of each stage as it begins
    progress: Tell | None = None  # hears (done, in all) within a stage
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self.tell is not None:
            self.tell(name)
        begin = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begin, 4)


@dataclass(frozen=True)
class Database:
    """All that was read: the table, which conversations share speakers, log-likelihood-ratios, the
    model; and where they were calibrated here, the scores before and how that came about."""

    conversations: Conversations
    links: Links
    scores: Scores
    model: Model
    weight: Weight
    raw: SideScores | None = None
    calibrated: Calibrated | None = None

    def ratios(self) -> SideScores:
        """The log-likelihood-ratios: of the needed pairs, then of known non-targets."""
        return needed_and(self.links, self.scores.llr, self.scores.non_targets)


@dataclass(frozen=True)
class Result:
    """A solved database."""

    database: Database
    posterior: Posterior

    def summary(self) -> dict[str, Any]:
        """The few numbers a person asks for first."""
        table, cliques = self.database.conversations, self.posterior.model.cliques
        return {
            "conversations": len(table),
            "speakers": len(table.speakers),
            "cliques": len(cliques),
            "largest_clique": int(cliques.size.max()),
            "unresolvable": cliques.attainable_bits(),
            "settled_99": int((self.posterior.confidence()[1] >= 0.99).sum()),
            "entropy_bits": [
                float(self.posterior.entropy_low.sum()),
                float(self.posterior.entropy_high.sum()),
            ],
            "proved_optimal": int(self.posterior.proved_optimal().sum()),
            "certainty": {
                name: int((self.posterior.certainty == name).sum()) for name in CERTAINTIES
            },
        }


def read_database(
    table: PathName,
    scores: PathName,
    *,
    weight: Weight,
    known: PathName | None = None,
    stages: Stages | None = None,
) -> Database:
    """Read and check all inputs."""
    stages = stages or Stages()
    with stages.stage("reading the table"):
        conversations = read_conversations(table)
        labels = read_known(known, conversations) if known is not None else None
        prior = combine_prior(conversations, labels)
        cliques = find_cliques(conversations, prior.clamped >= 0)
        links = find_links(conversations, consecutive=weight.consecutive)
    with stages.stage("reading the scores"):
        found = read_scores(scores, conversations, links)
    model = build_model(conversations, cliques, links, found.llr, weight=weight, prior=prior)
    return Database(conversations, links, found, model, weight)


def assign(
    table: PathName,
    scores: PathName,
    out: PathName,
    *,
    calibration: Choice | None = None,
    sides: PathName | None = None,
    weight: Weight | None = None,
    known: PathName | None = None,
    options: Options | None = None,
    stages: Stages | None = None,
) -> Result:
    """Who is on which channel, from scores; all of it is written to the folder `out`.

    Scores are taken for log-likelihood-ratios unless a `calibration` is chosen; `sides` is a table
    of the seconds of speech of every side.
    """
    stages, choice, how = stages or Stages(), calibration or Choice(NONE), options or Options()
    rule = weight or choice.rule()
    database = read_database(table, scores, weight=rule, known=known, stages=stages)
    if choice.source == NONE:
        with stages.stage("computing the posterior"):
            posterior = solve(database.model, options=how, tell=stages.progress)
    else:
        with stages.stage("calibrating and linking"):
            database = calibrate_database(database, choice, sides, weight, known, how, stages)
        assert database.calibrated is not None
        posterior = database.calibrated.posterior
    result = Result(database, posterior)
    with stages.stage("writing the results"):
        inputs = {"conversations": table, "scores": scores, "known": known, "sides": sides}
        inputs |= {f"calibration_{k}": path for k, path in enumerate(choice.files(), start=1)}
        given = {name: Path(path) for name, path in inputs.items() if path is not None}
        settings = {**how.as_json(), "calibration": choice.as_json()}
        write_results(result, Path(out), settings, given, how.seed)
    write_timings(Path(out), stages)
    return result


def calibrate_database(
    database: Database,
    choice: Choice,
    sides: PathName | None,
    weight: Weight | None,
    known: PathName | None,
    how: Options,
    stages: Stages,
) -> Database:
    """The same database with its scores as log-likelihood-ratios."""
    table = database.conversations
    pairs, others = pairs_of(table, database.links, database.scores, sides)
    found = calibrated(
        table,
        pairs,
        choice,
        known=read_known(known, table) if known is not None else None,
        weight=weight,
        options=how,
        tell=stages.progress,
    )
    raw = needed_and(database.links, database.scores.llr, others)
    others = replace(others, score=found.non_target_llr)
    scores = replace(database.scores, llr=found.llr, non_targets=others)
    return Database(table, database.links, scores, found.posterior.model, found.weight, raw, found)


def load(folder: PathName, *, workers: int = 1) -> tuple[Database, Options]:
    """The database of a results folder and how it was solved, from nothing but that folder."""
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        raise SpklinkError(f"{folder}: no finished results here (run.json is missing)")
    run = read_json(folder / "run.json")
    settings, known = run["settings"], folder / "known.csv"
    database = read_database(
        folder / "conversations.csv",
        folder / "llrs.npz",
        weight=Weight(settings["weight"], settings["beta"]),
        known=known if known.exists() else None,
    )
    budget = Budget(settings["budget_seconds"], settings["budget_gb"])
    return database, Options(settings["method"], budget, run["seed"], workers)


def consistency(folder: PathName, *, workers: int = 1) -> Marginals:
    """Known channels of a results folder, hidden a tenth at a time and predicted from the rest."""
    database, options = load(folder, workers=workers)
    bits = database.model.prior.clamped
    if not (bits >= 0).any():
        raise SpklinkError(
            f"{folder}: no channels are known for certain, so there is nothing to hide; "
            "give --key, or link with --known"
        )
    table, links = database.conversations, database.links
    prior = Prior(database.model.prior.log_odds, np.full(len(table), -1, np.int8))
    model = build_model(
        table, find_cliques(table), links, database.scores.llr, weight=database.weight, prior=prior
    )
    return hide_known(model, bits, seed=options.seed, options=options)


def write_results(
    result: Result, folder: Path, settings: dict[str, Any], inputs: dict[str, Path], seed: int
) -> None:
    """All files of a results folder but timings.json; run.json last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpklinkError(f"{folder}: cannot be made ({error.strerror})") from None
    sweep(folder)
    copies = {name: inputs[name].read_bytes() for name in COPIED if name in inputs}
    for name in ("run.json", *FILES, "timings.json", *REPORTS):
        (folder / name).unlink(missing_ok=True)  # nothing of an earlier run survives
    for name, content in copies.items():
        write_bytes(folder / f"{name}.csv", content)
    database = result.database
    write_scores(folder / "llrs.npz", database.conversations, database.ratios())
    if database.raw is not None and database.calibrated is not None:
        write_scores(folder / "scores.npz", database.conversations, database.raw)
        write_json(folder / "calibration.json", database.calibrated.as_json())
    write_csv(folder / "assignments.csv", ASSIGNMENTS, assignment_rows(result))
    write_csv(folder / "cliques.csv", CLIQUES, clique_rows(result))
    write_csv(folder / "methods.csv", METHODS, method_rows(result))
    write_json(folder / "run.json", {**_run(result, settings, inputs), "seed": seed})


def assignment_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """Two rows a conversation, in table order."""
    table, posterior = result.database.conversations, result.posterior
    label = posterior.model.cliques.label
    figures = [values.tolist() for values in posterior.confidence()]
    for m, (name, x) in enumerate(zip(table.ids, posterior.best.tolist(), strict=True)):
        people, clique = table.names(m), int(label[m])
        chance, low, high = (probability_text(values[m]) for values in figures)
        for channel in (0, 1):
            speaker = people[channel ^ x]
            sure = posterior.certainty[clique]
            yield name, channel + 1, speaker, chance, clique + 1, low, high, sure


def clique_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """One row a clique; figures that are not exact are the middle of their interval."""
    posterior = result.posterior
    cliques = posterior.model.cliques
    best, relative = posterior.best_probability(), posterior.relative_probability()
    proved = posterior.proved_optimal()
    for k in range(len(cliques)):
        yield (
            k + 1,
            cliques.size[k],
            cliques.speakers[k],
            configurations(int(cliques.size[k])),
            _truth(cliques.resolvable[k]),
            _middle(posterior.entropy_low[k], posterior.entropy_high[k]),
            probability_text(float(best[0][k] + best[1][k]) / 2.0),
            probability_text(float(relative[0][k] + relative[1][k]) / 2.0),
            posterior.method[k],
            posterior.certainty[k],
            _truth(proved[k]),
        )


def method_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """How every clique beyond plain enumeration was solved, with the ends of its figures."""
    posterior = result.posterior
    best = posterior.best_probability()
    for k in np.flatnonzero(posterior.method != "enumerate"):
        yield (
            k + 1,
            posterior.method[k],
            posterior.certainty[k],
            probability_text(float(best[0][k])),
            probability_text(float(best[1][k])),
            f"{posterior.entropy_low[k]:.10g}",
            f"{posterior.entropy_high[k]:.10g}",
            f"{posterior.log_evidence_low[k]:.10g}",
            f"{posterior.log_evidence_high[k]:.10g}",
            posterior.reason[k],
        )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _middle(low: float, high: float) -> str:
    return f"{(low + high) / 2.0:.10g}"


def _run(result: Result, settings: dict[str, Any], inputs: dict[str, Path]) -> dict[str, Any]:
    """What was run on what: all that is needed to do it again, and no clock time."""
    weight = result.database.weight
    return {
        "spklink": __version__,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numba", "numpy", "scipy")},
        "settings": settings | {"weight": weight.rule, "beta": weight.beta},
        "inputs": {
            name: {"file": path.name, "sha256": sha256(path)} for name, path in inputs.items()
        },
        "scores": {
            "needed": int(result.database.scores.llr.size),
            "others": result.database.scores.others,
        },
        "result": result.summary(),
    }


def write_timings(folder: Path, stages: Stages) -> None:
    """Seconds a stage and peak memory: the only file of clock times."""
    found = {"seconds": stages.seconds, "peak_memory_bytes": peak_memory()}
    write_json(folder / "timings.json", found)


def peak_memory() -> int:
    """Most bytes this process has held at any time."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include what the parent held before it started us
        lines = status.read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
