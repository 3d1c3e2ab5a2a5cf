"""The names that people's scripts rely on, found by running spklink and looking at what it writes.

    python tests/public_names.py > tests/public_names.txt

Nothing of the package is imported but `spklink` itself, what its command starts with, and what
makes the inputs, so that modules may move. `test_public_names.py` holds what is found against
public_names.txt: sections in brackets, one name or one set of names per line.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet
import soundfile

import make_kept
import spklink
from made_calls import write_calls

Sections = dict[str, list[str]]
WORDS = (  # columns whose values are words of spklink
    *("certainty", "origin", "decision", "status", "kind", "method", "resolvable"),
    *("proved_optimal", "mark", "cue", "piece", "problem"),
)
NAMED_BY_DATA = ("reviewers", "inputs", "versions", "seconds")  # objects whose keys are no names
MEMBERS = ("Partition", "Recognizer", "Result", "Weight")  # classes that people use the inside of
METHODS = ("enumerate", "trace", "tree", "blocks", "certified", "sample", "bp")


def run(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command, in this process."""
    from spklink.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    argv = ["spklink", *map(str, words)]
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code: Any = 0
        except SystemExit as stop:
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


def done(line: str) -> str:
    """Standard output of a command that must do what it is asked."""
    code, out, err = run(*line.split())
    assert code in (0, 1), f"spklink {line}: {err}"
    return out


# --- the library ----------------------------------------------------------------------------------


def library() -> Sections:
    found = {"spklink.__all__": sorted(spklink.__all__)}
    for name in sorted(spklink.__all__):
        one = getattr(spklink, name)
        if name in MEMBERS:
            found[f"class {name}"] = _members(one)
        elif callable(one) and not inspect.isclass(one):
            found[f"function {name}"] = [
                *map(_parameter, inspect.signature(one).parameters.values())
            ]
    return found


def _members(kind: type) -> list[str]:
    own = [one for one in kind.__mro__ if one.__module__.startswith("spklink")]
    names = {name for one in own for name in (*vars(one), *vars(one).get("__annotations__", ()))}
    return sorted(name for name in names if not name.startswith("_"))


def _parameter(one: inspect.Parameter) -> str:
    mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    only = "keyword " if one.kind is one.KEYWORD_ONLY else ""
    return f"{only}{mark}{one.name}" + ("" if one.default is one.empty else f" = {one.default!r}")


# --- the command line -----------------------------------------------------------------------------


def commands() -> Sections:
    """Arguments and options of every command as its help shows them."""
    whole = done("--help")
    listed = whole.partition("\nThe job:")[2].partition("\n  Start with:")[0]
    names = [left for left, _ in _rows(listed)]
    found = {"commands": names, "command": _options(whole.partition("\nThe job:")[0])}
    for name in names:
        found[f"command {name}"] = _options(done(f"{name} --help"))
    return found


def _options(help_text: str) -> list[str]:
    body = help_text.partition("\n  Example:")[0]
    _, _, rows = body.partition("\nArguments:") if "\nArguments:" in body else body.partition(":\n")
    found = []
    for left, about in _rows(rows):
        limits = re.search(r"\[([^\[\]]*(?:default: |required|x[<>]=)[^\[\]]*)\]$", about)
        if limits:  # lines are broken anywhere, so spaces mean nothing
            left += "  " + re.sub(r"\s", "", limits[1]).replace("default:", "= ")
        found.append(left)
    return found


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """What is on the left of a list in a help, and what is said about it."""
    left, about = "", ""
    for line in text.splitlines():
        if re.match(r"  \S", line):
            if left:
                yield left, about.strip()
            left, _, about = line.strip().partition("  ")
        elif line.startswith("   "):
            about += " " + line.strip()
    if left:
        yield left, about.strip()


# --- what is written ------------------------------------------------------------------------------


def written(top: Path) -> Sections:
    """Files, columns, keys and words of the folders that `make_folders` made.

    What is before a comma in the name of a folder is its kind: what is inside the files of one kind
    is told once."""
    files: Sections = {}
    inside: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    for folder in sorted(path for path in top.iterdir() if path.is_dir()):
        names = files[f"files of {folder.name}"] = []
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if not path.is_file() or "cache" in name.split("/"):
                continue
            names.append(name)
            of_kind = inside.setdefault(folder.name.partition(",")[0], set())
            of_kind.update(f"{name}: {line}" for line in _inside(path))
            for column, values in _words(path).items():
                words.setdefault(column, set()).update(values)
    lines = {f"inside {kind}": sorted(of_kind) for kind, of_kind in inside.items()}
    said = [f"{column}: {', '.join(sorted(values))}" for column, values in sorted(words.items())]
    return files | lines | {"words in columns": said}


def _inside(path: Path) -> list[str]:
    """Columns, arrays or keys."""
    if path.suffix == ".csv":
        return [",".join(_table(path)[0])]
    if path.suffix == ".parquet":
        schema = pyarrow.parquet.read_schema(path)
        return [", ".join(f"{field.name} {field.type}" for field in schema)]
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return [", ".join(f"{name} {arrays[name].dtype.kind}" for name in arrays.files)]
    if path.name == "report.json":
        return [", ".join(json.loads(path.read_text(encoding="utf-8")))]
    if path.suffix == ".json":
        return keys(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".jsonl":
        return keys([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as log:
            tables = log.execute("select name from sqlite_master where type = 'table'").fetchall()
            columns = {name: log.execute(f"pragma table_info({name})") for (name,) in tables}
            return [f"{name}: {', '.join(one[1] for one in of)}" for name, of in columns.items()]
    return []


def _words(path: Path) -> dict[str, set[str]]:
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {f"{path.name} verdict": {row["verdict"] for row in rows}}
    if path.suffix != ".csv":
        return {}
    header, *rows = _table(path)
    return {
        f"{path.name} {name}": {row[k].partition(":")[0] for row in rows if row[k]}
        for k, name in enumerate(header)
        if name in WORDS
    }


def _table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def keys(value: Any) -> list[str]:
    """One line per object: where it is, and its keys."""
    found: dict[str, dict[str, None]] = {}
    _collect(value, "", found)
    return [f"{place or 'top'}: {', '.join(names)}".rstrip() for place, names in found.items()]


def _collect(value: Any, place: str, found: dict[str, dict[str, None]]) -> None:
    if isinstance(value, list):
        for one in value:
            _collect(one, f"{place}[]", found)
    elif isinstance(value, dict):
        data = place.rpartition(".")[2] in NAMED_BY_DATA
        found.setdefault(place, {}).update(dict.fromkeys(["…"] if data else value))
        for name, one in value.items():
            inner = "…" if data else name
            _collect(one, f"{place}.{inner}" if place else inner, found)


# --- what is run ----------------------------------------------------------------------------------


def make_folders(top: Path) -> Sections:
    """Folders of all kinds, and the keys of what commands print as JSON."""
    for name in ("plain", "lists", "parquet", "enrolled", "partition", "frequent"):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            make_kept.make(name, top / "made" / name)
        shutil.copytree(top / "made" / name / "results", top / "found" / f"results, {name}")
    with chdir(top / "made" / "plain"):
        shutil.copytree("sim", top / "found" / "simulate")
        printed = _about_plain(top / "found")
    shutil.copytree(top / "made" / "enrolled" / "handed-over", top / "found" / "decisions")
    for make in (_sound, _cues, _kinds, _compared):
        folder = top / "made" / make.__name__
        folder.mkdir()
        with chdir(folder):
            printed |= make(top / "found")
    with chdir(top / "made"):
        printed |= {
            "evaluate, lists": done("evaluate lists/results --key lists/key.csv --json"),
            "evaluate, partition": done(
                "evaluate partition/results --key partition/key.csv --json"
            ),
            "queue": done("queue enrolled/results --json --count 100"),
            "decisions": done("decisions enrolled/results --json"),
        }
    asked = [json.loads(text)["queue"] for name, text in printed.items() if "queue" in name]
    kinds = sorted({row["kind"] for rows in asked for row in rows})
    told = {name: json.loads(text) for name, text in printed.items() if "queue," not in name}
    found = {f"JSON of {name}": keys(value) for name, value in sorted(told.items())}
    return found | {"kinds of questions": kinds}


def _about_plain(found: Path) -> dict[str, str]:
    done("simulate star --shape star --conversations 18 --eer 35")
    for method in METHODS:
        table = "star/conversations.csv --scores star/scores.csv"
        done(f"assign {table} --method {method} -o results-{method}")
        shutil.copytree(f"results-{method}", found / f"results, {method}")
    done("calibrate sim/conversations.csv --scores sim/scores.csv -o calibrate/calibration.json")
    shutil.copytree("calibrate", found / "calibrate")
    report = done("report results --key key.csv --json")
    for name in ("report.html", "report.json", "appendix.csv", "figures"):
        (found / "report").mkdir(exist_ok=True)
        shutil.move(Path("results", name), found / "report" / name)
    return {
        "assign": done("assign sim/conversations.csv --scores sim/scores.csv -o json --json"),
        "check": done("check conversations.csv --json"),
        "detect": done("detect conversations.csv --scores sim/scores.csv --key key.csv --json"),
        "entropy": done("entropy sim/conversations.csv --json"),
        "evaluate": done("evaluate results --key key.csv --json"),
        "evaluate, no key": done("evaluate results --json"),
        "recognizers": done("recognizers --json"),
        "simulate": done("simulate again --shape pairs --conversations 4 --json"),
        "report": json.dumps(dict.fromkeys(json.loads(report))),
    }


def _sound(found: Path) -> dict[str, str]:
    """Six recordings, of which one is empty and one is short; claims; exports."""
    write_calls(Path())
    for name in ("conversations", "key"):
        make_kept.write(f"{name}.csv", make_kept.read(f"{name}.csv")[:6])
    shutil.copy("key.csv", "claimed.csv")
    Path("5.wav").write_bytes(b"")
    samples, rate = soundfile.read("4.wav")
    soundfile.write("4.wav", samples[: 3 * rate], rate)
    printed = done(
        "link conversations.csv -o results --components 4 --claimed claimed.csv --no-report "
        "--on-bad-audio skip --workers 1 --json"
    )
    shutil.copytree("results", found / "results, sound", ignore=shutil.ignore_patterns("cache"))
    formats = re.search(r"--to <([^>]*)>", done("export --help"))
    assert formats is not None
    for to in formats[1].split("|"):
        done(f"export results -o exported --to {to} --only all")
        shutil.move("exported", found / f"export, {to}")
    done("init . -o init.csv")
    (found / "init").mkdir()
    shutil.move("init.csv", found / "init" / "conversations.csv")
    exported = done("export results -o exported --to rttm --json")
    asked = done("queue results --json --count 100")
    return {"link": printed, "export": exported, "queue, sound": asked}


def _cues(found: Path) -> dict[str, str]:
    """Other evidence than voices, some of it against them; a track that cannot be used."""
    from_plain = Path("..", "plain")
    table = make_kept.read(str(from_plain / "sim" / "conversations.csv"))
    make_kept.write(
        "cue.csv", ({"conversation": row["conversation"], "log_odds": 9} for row in table[:8])
    )
    make_kept.write(
        "sides.csv",
        (
            {"conversation": row["conversation"], "channel": c, "speech_seconds": 9, "mark": mark}
            for row in table
            for c in (1, 2)
            for mark in ["silent" if row is table[-1] else ""]
        ),
    )
    done(
        f"assign {from_plain}/sim/conversations.csv --scores {from_plain}/sim/scores.csv "
        "--cue cue.csv --sides sides.csv --list-errors auto -o results"
    )
    shutil.copytree("results", found / "results, cues")
    return {"queue, cues": done("queue results --json --count 100")}


def _kinds(found: Path) -> dict[str, str]:
    """Lists that are wrong in other ways: NN is somebody else in every call, one person has two
    names; and two people who only call each other."""
    calls = [("a", k // 2, f"n{k}", "NN") for k in range(8)]
    calls += [("b", k // 2, "c", f"c{k % 2}") for k in range(6)]
    calls += [("x", 0, "y", "y")] * 2
    people = {
        name: k
        for k, name in enumerate(sorted({x for a, k, b, _ in calls for x in (f"{a}{k}", b)}))
    }
    make_kept.write_ratios([(people[f"{a}{k}"], people[b]) for a, k, b, _ in calls], 3)
    make_kept.write(
        "conversations.csv",
        (
            {"conversation": f"call{k}", "participants": make_kept.listed(f"{a}{n}", name)}
            for k, (a, n, _, name) in enumerate(calls)
        ),
    )
    done("assign conversations.csv --scores scores.csv --list-errors auto -o results")
    shutil.copytree("results", found / "results, kinds")
    return {"queue, lists": done("queue results --json --count 100")}


def _compared(found: Path) -> dict[str, str]:
    table = "../plain/sim/conversations.csv --key ../plain/sim/key.csv"
    scores = "../plain/sim/scores.csv"
    printed = done(f"compare {table} --scores {scores} --list-errors 0 --workers 1 -o out --json")
    shutil.copytree("out", found / "compare", ignore=shutil.ignore_patterns("cache"))
    return {"compare": printed}


def exit_codes() -> Sections:
    """Of real mistakes; and of errors that the parser raises in the place of a command."""
    codes = {
        "spklink --version": run("--version")[0],
        "a recording is missing": run("check", "missing.csv")[0],
        "no such file": run("check", "nothing.csv")[0],
        "no such option": run("check", "--nothing")[0],
    }
    for error in (MemoryError(), OSError(28, "full"), RuntimeError(), KeyboardInterrupt()):
        with patch("typer.Typer.__call__", side_effect=error):
            codes[repr(error)] = run("check", "nothing.csv")[0]
    return {"exit codes": [f"{code}: {what}" for what, code in codes.items()]}


def names_now(work: Path) -> str:
    """All of it as text."""
    (work / "found").mkdir()
    with patch.dict(os.environ), chdir(work):
        os.environ.pop("COLUMNS", None)  # the width of help
        printed = make_folders(work)
        table = [{"conversation": "1", "audio": "nothing.wav", "participants": "a;b"}]
        make_kept.write("missing.csv", table)
        sections = library() | commands() | exit_codes() | written(work / "found") | printed
    return "".join(
        f"[{title}]\n" + "".join(f"{line}\n" for line in lines) + "\n"
        for title, lines in sections.items()
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(names_now(Path(made)), end="")
