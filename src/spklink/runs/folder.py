"""A folder of results: written whole, read back without anything else.

`run.json` is written last, so a folder that has it is complete. Paths in the folder are relative to
it: it can be moved together with what it refers to.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spklink import __version__
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_known
from spklink.database.links import find_links
from spklink.errors import SpklinkError, check_folder
from spklink.options import options_from, options_json, relative
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options, solve
from spklink.runs.claims import SUSPECTS
from spklink.runs.evidence import Evidence
from spklink.runs.inputs import Given, Inputs, read_inputs
from spklink.runs.result import Listening, Result
from spklink.runs.rows import (
    ASSIGNMENTS,
    CLIQUES,
    METHODS,
    assignment_rows,
    clique_rows,
    method_rows,
)
from spklink.runs.stages import Stages
from spklink.scores.files import read_scores, write_scores
from spklink.scores.needed import SideScores
from spklink.settings import COMMANDS
from spklink.sound.listening import PROBLEMS
from spklink.sound.speech_table import read_speech_table, write_speech_table
from spklink.tables import (
    SEPARATOR,
    Content,
    Table,
    csv_bytes,
    open_table,
    read_json,
    read_rows,
    sweep,
    without_marks,
    write_bytes,
    write_csv,
    write_json,
)
from spklink.threads import cores

COPIED = ("conversations", "known")  # inputs that a folder needs to stand on its own
FILES = (
    *("conversations.csv", "known.csv", "llrs.npz", "scores.npz", "calibration.json"),
    *("assignments.csv", "cliques.csv", "methods.csv", "timings.json"),
)
LINK_FILES = ("sides.csv", "problems.csv", "suspects.csv")
REPORTS = ("report.html", "report.json")


def make_folder(folder: Path) -> Path:
    """The folder, made where it is not there."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpklinkError(f"{folder}: cannot be made ({error.strerror})") from None
    return folder


def write_folder(result: Result, folder: Path) -> Path:
    """All files of a results folder; run.json last."""
    make_folder(folder)
    with result.stages.stage("writing the results"):
        _write_files(result, folder)
    write_json(folder / "timings.json", result.stages.timings())
    write_json(folder / "run.json", run_json(result, folder))
    return folder


def _write_files(result: Result, folder: Path) -> None:
    sweep(folder)
    copies = _copies(result.inputs, folder)  # first: they may be the very files that go now
    for name in ("run.json", *FILES, *LINK_FILES, *REPORTS):
        (folder / name).unlink(missing_ok=True)  # nothing of an earlier run survives
    for name, content in copies.items():
        write_bytes(folder / f"{name}.csv", content)
    _write_scores(result, folder)
    _write_listening(result, folder)
    table, posterior = result.conversations, result.posterior
    rows = assignment_rows(table, posterior)
    write_csv(folder / "assignments.csv", ASSIGNMENTS, rows, safe=_safe(result.options))
    write_csv(folder / "cliques.csv", CLIQUES, clique_rows(posterior))
    write_csv(folder / "methods.csv", METHODS, method_rows(posterior))


def _copies(inputs: Inputs, folder: Path) -> dict[str, bytes]:
    """The tables that go along, as they were read."""
    found = {}
    for name in COPIED:
        table = inputs.table(name)
        if table is not None:
            found[name] = seen_from(table, folder) if name == "conversations" else table.data
    return found


def seen_from(table: Content, folder: Path) -> bytes:
    """A table of conversations whose paths of recordings lead to them from another folder."""
    home = table.path.parent if table.file else Path()
    with open_table(table) as (header, rows):
        at = header.column("audio")
        if at < 0:
            return table.data
        kept = [fields for _, fields in rows]
        for fields in kept:
            files = [name.strip() for name in fields[at].split(SEPARATOR)]
            there = [relative(home / name, folder) if name else "" for name in files]
            fields[at] = SEPARATOR.join(there)
        return csv_bytes(header.names, kept)


def _write_scores(result: Result, folder: Path) -> None:
    table = result.conversations
    write_scores(folder / "llrs.npz", table, result.evidence.ratios())
    if result.raw is not None and result.calibration is not None:
        write_scores(folder / "scores.npz", table, result.raw)
        write_json(folder / "calibration.json", result.calibration)


def _write_listening(result: Result, folder: Path) -> None:
    if result.listening is None:
        return
    heard, table, safe = result.listening, result.conversations, _safe(result.options)
    write_speech_table(folder / "sides.csv", table, heard.speech, safe=safe)
    write_csv(folder / "problems.csv", PROBLEMS, heard.problems, safe=safe)
    if heard.suspects is not None:
        write_csv(folder / "suspects.csv", SUSPECTS, heard.suspects, safe=safe)


def _safe(options: Mapping[str, Any]) -> bool:
    """Whether formulas are marked in the tables of a folder; older folders do not say."""
    return bool(options.get("safe_csv", False))


def run_json(result: Result, folder: Path) -> dict[str, Any]:
    """What was run on what: all that is needed to do it again, and no clock time."""
    weight, scores = result.evidence.weight, result.evidence.scores
    heard = {} if result.listening is None else {"recognizer": result.listening.recognizer}
    return {
        "spklink": __version__,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numba", "numpy", "scipy")},
        "command": result.command,
        "options": options_json(COMMANDS[result.command], result.options, folder),
        "inputs": result.inputs.as_json(folder),
        **heard,
        "weight": {"rule": weight.rule, "beta": weight.beta},
        "scores": {"needed": len(scores.needed), "others": scores.others},
        "result": result.summary(),
        "notes": result.notes,
    }


def read_run(folder: Path) -> dict[str, Any]:
    """The run.json of a finished folder."""
    if not (folder / "run.json").is_file():
        raise SpklinkError(f"{folder}: no finished results here (run.json is missing)")
    run = read_json(folder / "run.json")
    if not isinstance(run, dict) or run.get("command") not in ("link", "assign"):
        raise SpklinkError(f"{folder}: results of another version of spklink; make them anew")
    return run


def read_evidence(folder: Path) -> Evidence:
    """What the posterior of a results folder is computed from, out of nothing but that folder."""
    run = read_run(folder)
    weight = Weight(run["weight"]["rule"], run["weight"]["beta"])
    table = read_conversations(folder / "conversations.csv")
    known = _there(folder / "known.csv")
    links = find_links(table, consecutive=weight.consecutive)
    return Evidence(
        conversations=table,
        links=links,
        scores=read_scores(folder / "llrs.npz", table, links),
        weight=weight,
        known=None if known is None else read_known(known, table),
    )


def _there(path: Path) -> Path | None:
    return path if path.exists() else None


def solving(options: Mapping[str, Any]) -> Options:
    """How cliques are solved, from the options of a run."""
    budget = Budget(options["budget_seconds"], options["budget_gb"])
    return Options(options["method"], budget, options["seed"], cores(options["workers"]))


def load(
    folder: str | PathLike[str], *, workers: int | None = None, stages: Stages | None = None
) -> Result:
    """A results folder as the object that was saved there; its posterior is computed again."""
    folder, stages = Path(folder), stages or Stages()
    with stages.stage("reading the results"):
        run, evidence = read_run(folder), read_evidence(folder)
        options = options_from(COMMANDS[run["command"]], run["options"], folder)
        result = Result(
            command=run["command"],
            options=options | {"workers": workers},
            inputs=_inputs(folder, run),
            evidence=evidence,
            raw=_raw(folder),
            calibration=_read_if_there(folder / "calibration.json"),
            listening=_listening(folder, run, evidence.conversations),
            notes=run["notes"],
            stages=stages,
        )
    with stages.stage("computing the posterior"):
        how = solving(result.options)
        posterior = solve(evidence.model, options=how, tell=stages.progress)
    return replace(result, solution=posterior)


def _inputs(folder: Path, run: dict[str, Any]) -> Inputs:
    """The tables from the folder; of other files what was said of them."""
    copies = read_inputs({name: _there(folder / f"{name}.csv") for name in COPIED})
    others = {
        name: Given(folder / (one["file"] or name), one["sha256"], file=one["file"] is not None)
        for name, one in run["inputs"].items()
        if name not in copies.given
    }
    return Inputs({**copies.given, **others})


def _raw(folder: Path) -> SideScores | None:
    path = folder / "scores.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        one, two = (arrays[name].astype(np.int64) for name in ("side_1", "side_2"))
        return SideScores(one, two, arrays["score"])


def _read_if_there(path: Path) -> dict[str, Any] | None:
    found: dict[str, Any] | None = read_json(path) if path.exists() else None
    return found


def _listening(folder: Path, run: dict[str, Any], table: Conversations) -> Listening | None:
    if run["command"] != "link":
        return None
    read: Callable[[Path], Table] = without_marks if _safe(run["options"]) else Path
    suspects = _there(folder / "suspects.csv")
    return Listening(
        speech=read_speech_table(read(folder / "sides.csv"), table),
        problems=read_rows(read(folder / "problems.csv")),
        recognizer=run["recognizer"],
        suspects=None if suspects is None else read_rows(read(suspects)),
    )
