"""From recordings to results, before and after, in one run: seconds, stages, memory.

    python benchmarks/end_to_end.py conversations.csv key.csv [--claimed claimed.csv]
        [--before 582d908] [--rounds 3] [--workers 2] [--calls [1446]] [--alone]

`before` is an earlier commit of this repository, taken out of git into a folder of its own; both
versions run in the same Python, in turns, each time with an empty cache, their kernels compiled and
their modules compiled to bytecode by a run that is not counted. Besides, whether both say the same:
who is where, how probable, which claims are suspect, and how many answers the key calls wrong.

`--calls` links so many, made out of those of the table (module `more_calls`): their sound is real,
but not that of so many calls. `--alone` runs the version at hand only, once where `--rounds 1`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from more_calls import by_full_paths, more_calls, rows_of
from spklink.memory import GB, held_by
from timing import Runs, ratio, seconds, show

HERE = Path(__file__).resolve().parent.parent
REPORT = "starting, report"  # what is beyond the stages of timings.json
Names = dict[tuple[str, str], tuple[str, float]]  # conversation, channel: speaker, probability


@dataclass(frozen=True)
class Linked:
    """One run."""

    seconds: float
    stages: dict[str, float]
    held: float  # gigabytes of anonymous memory, helpers and all


def taken_out(revision: str, folder: Path) -> Path:
    """The sources of an earlier commit."""
    folder.mkdir()
    archive = folder / "sources.tar"
    words = ["git", "-C", str(HERE), "archive", "-o", str(archive), revision, "src"]
    subprocess.run(words, check=True)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "src"


def run(source: Path, words: list[str], out: Path) -> Linked:
    """Linked once, in processes that know this version only."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(source)
    begin, most = time.perf_counter(), 0
    command = [sys.executable, "-m", "spklink", "link", *words, "-o", str(out)]
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while child.poll() is None:
        most = max(most, held_by(child.pid))
        time.sleep(0.02)
    whole = time.perf_counter() - begin
    if child.returncode not in (0, 1):
        raise SystemExit(f"{source}: exit code {child.returncode}")
    stages = json.loads((out / "timings.json").read_text())["seconds"]
    return Linked(whole, stages | {REPORT: whole - sum(stages.values())}, most / GB)


def names_in(path: Path) -> Names:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {
        (row["conversation"], row["channel"]): (
            row["speaker"],
            float(row.get("probability") or 1.0),
        )
        for row in rows
    }


def wrong_in(out: Path, key: Path) -> int:
    """Calls that the key calls wrong."""
    found, truth = names_in(out / "assignments.csv"), names_in(key)
    return len({side[0] for side in truth if truth[side][0] != found[side][0]})


def agreement(before: Path, after: Path) -> list[tuple[str, str]]:
    """Whether two folders of results say the same."""
    old, new = (names_in(path / "assignments.csv") for path in (before, after))
    other = sum(old[side][0] != new[side][0] for side in old)
    moved = max(abs(old[side][1] - new[side][1]) for side in old)
    rows = [
        ("sides whose speaker differs", f"{other} of {len(old)}"),
        ("largest difference of a probability", f"{moved:.2g}"),
    ]
    if (before / "suspects.csv").exists():
        claims = [
            {row["conversation"] for row in rows_of(one / "suspects.csv")}
            for one in (before, after)
        ]
        same = "the same" if claims[0] == claims[1] else "not the same"
        rows.append(("suspect claims", f"{len(claims[0])}, {len(claims[1])}: {same}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("--claimed", type=Path)
    parser.add_argument("--before", default="582d908")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--calls", type=int, nargs="?", const=1446)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        compare(given, Path(name))


def compare(given: argparse.Namespace, folder: Path) -> None:
    """Both versions in turns; before that each once, on the calls that are there, for its code to
    be compiled."""
    few = table = by_full_paths(given.table, folder)
    key, words = given.key, ["--workers", str(given.workers)]
    if given.calls is not None:
        table, key = more_calls(few, key, given.calls, folder)
    elif given.claimed is not None:
        words += ["--claimed", str(given.claimed.resolve())]
    versions = {} if given.alone else {"before": taken_out(given.before, folder / "old")}
    versions["after"] = HERE / "src"
    found: dict[str, list[Linked]] = {version: [] for version in versions}
    for k in range(given.rounds + 1):
        for version, source in versions.items():
            done = run(source, [str(table if k else few), *words], folder / f"{version}-{k}")
            found[version] += [done] if k else []
    outs = [folder / f"{version}-{given.rounds}" for version in versions]
    if given.calls is not None:
        print(f"{given.calls} calls, made out of the {len(rows_of(few))} real ones of the table\n")
    tell(found, given)
    wrong = ", ".join(str(wrong_in(out, key)) for out in outs)
    same = [] if given.alone else agreement(*outs)
    show("What they say", ["", ""], [("calls that the key calls wrong", wrong), *same])


def tell(found: dict[str, list[Linked]], given: argparse.Namespace) -> None:
    """Seconds and shares of the stages, and memory."""
    whole = {version: Runs(one.seconds for one in runs) for version, runs in found.items()}
    rows = []
    for stage in dict.fromkeys(s for runs in found.values() for one in runs for s in one.stages):
        parts = {
            version: Runs(one.stages.get(stage, 0.0) for one in runs)
            for version, runs in found.items()
        }
        rows.append(row_of(stage, parts, whole))
    rows.append(row_of("all", whole, whole))
    held = [max(one.held for one in runs) for runs in found.values()]
    cells = [cell for most in held for cell in (f"{most:.2f} GB", "")]
    rows.append(("memory, helpers and all", *cells, *[""] * (len(found) - 1)))
    named = [f"before ({given.before})", "share"] if len(found) > 1 else []
    last = ["times as fast"] if named else []
    show(
        f"{given.rounds} runs each with an empty cache, {given.workers} workers",
        ["stage", *named, "after" if named else "seconds", "share", *last],
        rows,
    )


def row_of(stage: str, parts: dict[str, Runs], whole: dict[str, Runs]) -> tuple[str, ...]:
    cells = []
    for version, part in parts.items():
        cells += [seconds(part), f"{100 * part.median / whole[version].median:.0f} %"]
    return stage, *cells, *([ratio(*parts.values())] if len(parts) > 1 else [])


if __name__ == "__main__":
    main()
