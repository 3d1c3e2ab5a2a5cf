"""A folder of results: written whole, read back without anything else.

`run.json` is put in place last, so a folder that has it is complete. All files are written beside
the earlier ones first and then take their places: until they are whole, the results of an earlier
run stay as they are. Paths in the folder are relative to it: it can be moved together with what it
refers to.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from filecmp import cmpfiles
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from spklink import __version__
from spklink.calibration.curves import read_saved
from spklink.database.candidates import Candidates, read_candidates, with_candidates
from spklink.database.conversations import (
    Conversations,
    check_split,
    read_conversations,
    with_splits,
)
from spklink.database.enrolment import with_enrolment
from spklink.database.frequent import chosen_frequent
from spklink.database.labels import read_known
from spklink.database.links import find_links
from spklink.errors import SpklinkError, check_folder
from spklink.json_files import ANYTHING, Each, read_json
from spklink.memory import Memory
from spklink.options import options_from, options_json
from spklink.posterior.answer import Answer
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import Weight
from spklink.posterior.list_errors import Rate
from spklink.posterior.posterior import Options
from spklink.result_tables import KeptTables, file_names
from spklink.runs.answer_file import NAME as POSTERIOR
from spklink.runs.answer_file import read_answer
from spklink.runs.cues import about_cues, read_cue_terms
from spklink.runs.evidence import Evidence
from spklink.runs.folder_files import COPIED, kept_tables, write_files
from spklink.runs.inputs import Given, Inputs, read_inputs
from spklink.runs.listening_files import LINK_TABLES, read_listening
from spklink.runs.misfits import MISFITS
from spklink.runs.naming import NUMBERS, Naming
from spklink.runs.result import Listening, Result
from spklink.runs.seated import answered
from spklink.runs.stages import Stages
from spklink.runs.sums import NAME as SUMS
from spklink.runs.sums import read_sums
from spklink.runs.unknown import UNKNOWN, Unknown
from spklink.scores.files import read_pairs, read_scores
from spklink.scores.needed import SideScores
from spklink.settings import COMMANDS
from spklink.tables import aside, read_cells, write_json
from spklink.threads import cores

FILES = (
    *("conversations.csv", "known.csv", "tracks.csv", "enrol.csv", "llrs.npz", "scores.npz"),
    *("calibration.json", "timings.json", SUMS, POSTERIOR),
    *file_names("assignments", "cliques", "methods", "presence", "misfits"),
    *file_names("cues", "evidence", "conflicts", "candidates", "unknown", *LINK_TABLES),
)
REPORTS = ("report.html", "report.json", "appendix.csv")
RUN_FILE = "run.json"
NAMED = "candidates"
ANEW = "make the results anew"
RUN = {  # what run.json must say for the rest to be read
    "spklink": str,
    "versions": Each(str),
    "command": str,
    "options": Each((str, bool, float, None)),
    "inputs": Each({"file": (str, None), "sha256": str}),
    "recognizer?": {
        **{f"{name}?": (int, None) for name in ("trained_on", "recordings")},
        **{f"{name}?": ANYTHING for name in ("name", "recipe", "front_end", "trained", "heard")},
    },
    "model?": {"name": str, "learned_on": Each(int), "new": int, "made_by": str, "why": str},
    "weight": {"rule": str, "beta": (float, None)},
    "scores": {"needed": int, "others": int},
    "result": {
        "conversations": int,
        "list_errors?": {
            **dict.fromkeys(("rate", "low", "high"), float),
            **dict.fromkeys(("expected_absences", "informative_listings"), float),
            "estimated": bool,
        },
        "naming?": dict.fromkeys(NUMBERS, (int, float)),
    },
    "notes": [str],
}


def make_folder(folder: Path) -> Path:
    """The folder, made where it is not there."""
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpklinkError(f"{folder}: cannot be made ({error.strerror})") from None
    return folder


def write_folder(result: Result, folder: Path) -> Path:
    """All files of a results folder."""
    make_folder(folder)
    with aside(folder) as new:
        with result.stages.stage("writing the results"):
            write_files(result, new, folder)
        write_json(new / "timings.json", result.stages.timings())
        write_json(new / "run.json", run_json(result, folder))
        _put_in_place(new, folder)
    return folder


def _put_in_place(new: Path, folder: Path) -> None:
    """The old run.json goes first and the new one comes last: between the two the folder says that
    it is not complete, and the same command completes it. A report of the same results stays."""
    reports = () if _same(new, folder) else REPORTS
    (folder / RUN_FILE).unlink(missing_ok=True)
    for name in (*FILES, *reports):
        if (new / name).exists():
            (new / name).replace(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)  # nothing of an earlier run survives
    (new / RUN_FILE).replace(folder / RUN_FILE)


def _same(one: Path, two: Path) -> bool:
    """Whether two folders hold the same results, whatever time they took."""
    names = [name for name in (*FILES, RUN_FILE) if name != "timings.json"]
    there = [name for name in names if (one / name).exists() or (two / name).exists()]
    return not any(cmpfiles(one, two, there, shallow=False)[1:])


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
        **({} if result.model is None else {"model": result.model}),
        **about_cues(result.evidence),
        "weight": {"rule": weight.rule, "beta": weight.beta},
        "scores": {"needed": len(scores.needed), "others": scores.others},
        "result": result.summary(),
        "notes": result.notes,
    }


def read_run(folder: Path) -> dict[str, Any]:
    """The run.json of a finished folder."""
    if not (folder / "run.json").is_file():
        raise SpklinkError(f"{folder}: no finished results here (run.json is missing)")
    path = folder / "run.json"
    run: dict[str, Any] = read_json(path, RUN, f"results of another version of spklink? {ANEW}")
    if run["command"] not in ("link", "assign"):
        raise SpklinkError(f"{path}: command {run['command']!r} is not link or assign; {ANEW}")
    if run["command"] == "link" and "recognizer" not in run:
        raise SpklinkError(f"{path}: recognizer is missing; {ANEW}")
    if "conversations" not in run["inputs"]:
        raise SpklinkError(f"{path}: inputs.conversations is missing; {ANEW}")
    try:
        options = _options(run, folder)
        solving(options | {"workers": None})
        check_split(options.get("split_speakers", 0.0))
        found = options_json(COMMANDS[run["command"]], options, folder)
    except SpklinkError as error:
        raise SpklinkError(f"{path}: options: {error}; {ANEW}") from None
    return run | {"options": found | run["options"]}  # a later version may have more of them


def _options(run: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The options of a run, checked."""
    return options_from(COMMANDS[run["command"]], run["options"], folder)


def read_evidence(folder: Path) -> Evidence:
    """What the posterior of a results folder is computed from, out of nothing but that folder."""
    run = read_run(folder)
    return _evidence(folder, run, _inputs(folder, run))


def read_people(folder: Path) -> tuple[dict[str, Any], Conversations]:
    """The run.json of a folder, and its table of conversations."""
    run = read_run(folder)
    return run, _people(folder, run, _inputs(folder, run))


def _people(folder: Path, run: dict[str, Any], inputs: Inputs) -> Conversations:
    listed = read_conversations(
        inputs.table("conversations"), inputs.table("tracks"), unlisted=run["command"] == "link"
    )
    table = with_enrolment(listed, inputs.table("enrol"))
    return with_splits(table, _options(run, folder)["split_speakers"])


def _evidence(folder: Path, run: dict[str, Any], inputs: Inputs) -> Evidence:
    weight, table = _weight(folder / "run.json", run["weight"]), _people(folder, run, inputs)
    known = inputs.table("known")
    slack, seat_slack, path = None, None, _there(folder / SUMS)
    if path is not None:
        table, slack, seat_slack = read_sums(path, table)
    frequent = chosen_frequent(table, None if slack is None else slack.most)
    links = find_links(table, consecutive=weight.consecutive, without=frequent.person)
    scores = read_scores(folder / "llrs.npz", table, links)
    said = run["result"]["conversations"], run["scores"]["needed"]
    for name, here, there in zip(
        ("conversations", "needed scores"), (table.asked, len(scores.needed)), said, strict=True
    ):
        if here != there:
            raise SpklinkError(
                f"{folder / 'conversations.csv'}: {here} {name} where run.json tells of {there}; "
                f"{ANEW}"
            )
    found = Evidence(
        conversations=table,
        links=links,
        scores=scores,
        weight=weight,
        known=None if known is None else read_known(known, table),
        slack=slack,
        seat_slack=seat_slack,
    )
    kept = kept_tables(folder, run)
    candidates = _candidates(kept, table)
    if candidates is not None:
        table = with_candidates(table, candidates)
        found = replace(found, conversations=table)
    if not kept.there("cues"):
        return found
    return found.with_cues(read_cue_terms(kept.table("cues"), table))


def _candidates(kept: KeptTables, table: Conversations) -> Candidates | None:
    return read_candidates(kept.table(NAMED), table) if kept.there(NAMED) else None


def _naming(kept: KeptTables, run: dict[str, Any], table: Conversations) -> Naming | None:
    """Who was thought of, and what was found on the way."""
    found, said = _candidates(kept, table), run["result"].get("naming")
    if found is None or said is None:
        return None
    return Naming(found, **{name: said[name] for name in NUMBERS})


def _unknown(kept: KeptTables, run: dict[str, Any]) -> Unknown | None:
    """Who recurs without a name, as it was told."""
    said = run["result"].get("unknown")
    if said is None or not kept.there("unknown"):
        return None
    rows = read_cells(kept.table("unknown"), dict.fromkeys(UNKNOWN, str) | {"channel": int})
    return Unknown([tuple(row) for row in rows], said["of"], said["last"])


def _weight(path: Path, said: dict[str, Any]) -> Weight:
    try:
        return Weight(said["rule"], said["beta"])
    except SpklinkError as error:
        raise SpklinkError(f"{path}: {error}; {ANEW}") from None


def _there(path: Path) -> Path | None:
    return path if path.exists() else None


def solving(options: Mapping[str, Any]) -> Options:
    """How cliques are solved, from the options of a run."""
    budget = Budget(options["budget_seconds"], Memory(options["budget_gb"]).clique)
    return Options(options["method"], budget, options["seed"], cores(options["workers"]))


def load(
    folder: str | PathLike[str], *, workers: int | None = None, stages: Stages | None = None
) -> Result:
    """A results folder as the object that was saved there. Its answer is read; that of an earlier
    version, which did not keep it, is solved again."""
    folder, stages = Path(folder), stages or Stages()
    with stages.stage("reading the results"):
        run = read_run(folder)
        inputs, kept = _inputs(folder, run), kept_tables(folder, run)
        evidence = _evidence(folder, run, inputs)
        calibration = _there(folder / "calibration.json")
        options = _options(run, folder) | {"workers": workers}
    answer = _answer(folder, run, evidence, solving(options), stages)
    with stages.stage("reading the results"):
        return Result(
            command=run["command"],
            options=options,
            inputs=inputs,
            evidence=evidence,
            answer=answer,
            raw=_raw(folder, evidence.conversations),
            calibration=None if calibration is None else read_saved(calibration),
            model=run.get("model"),
            listening=_listening(kept, run, evidence.conversations),
            misfits=_misfits(kept),
            naming=_naming(kept, run, evidence.conversations),
            unknown=_unknown(kept, run),
            notes=run["notes"],
            stages=stages,
        )


def _answer(
    folder: Path, run: dict[str, Any], evidence: Evidence, how: Options, stages: Stages
) -> Answer:
    """Who is where, as the run left it."""
    said = run["result"].get("list_errors")
    rate, kept = Rate.from_json(said) if said else None, _there(folder / POSTERIOR)
    if kept is not None:
        with stages.stage("reading the results"):
            return read_answer(kept, evidence, rate, how)
    with stages.stage("computing the posterior"):
        found = answered(evidence, rate.value if rate else 0.0, how, stages)
    return found if rate is None or found.binary else replace(found, rate=rate)


def _inputs(folder: Path, run: dict[str, Any]) -> Inputs:
    """The tables from the folder; of other files what was said of them."""
    if "known" not in run["inputs"] and (folder / "known.csv").exists():
        raise SpklinkError(
            f"{folder / 'known.csv'}: the run knew no channels; run again with --known known.csv"
        )
    given = [name for name in COPIED if name in run["inputs"]]
    copies = read_inputs({name: folder / f"{name}.csv" for name in given})
    others = {
        name: Given(folder / (one["file"] or name), one["sha256"], file=one["file"] is not None)
        for name, one in run["inputs"].items()
        if name not in copies.given
    }
    return Inputs({**copies.given, **others})


def _misfits(kept: KeptTables) -> list[Sequence[Any]]:
    if not kept.there("misfits"):
        return []
    return read_cells(kept.table("misfits"), dict.fromkeys(MISFITS, str))


def _raw(folder: Path, table: Conversations) -> SideScores | None:
    path = _there(folder / "scores.npz")
    return None if path is None else read_pairs(path, table)


def _listening(kept: KeptTables, run: dict[str, Any], table: Conversations) -> Listening | None:
    if run["command"] != "link":
        return None
    return read_listening(kept, run["recognizer"], table)
