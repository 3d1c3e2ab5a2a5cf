"""From recordings to results, before and after, in one run: seconds, stages, memory.

    python benchmarks/end_to_end.py conversations.csv key.csv [--claimed claimed.csv]
        [--before 582d908] [--rounds 3] [--workers 2] [--copies 1]

`before` is an earlier commit of this repository, taken out of git into a folder of its own; both
versions run in the same Python, in turns, each time with an empty cache, their kernels compiled and
their modules compiled to bytecode by a run that is not counted. `--copies` links every call so many
times, its copies a little louder and with a little noise, for a larger database of the same shape.
Besides, whether both say the same: who is where, how probable, which claims are suspect, and how
many answers the key calls wrong.
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

import numpy as np
import soundfile

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


def copied(table: Path, key: Path, copies: int, folder: Path) -> tuple[Path, Path]:
    """Table and key of every call so many times, by full paths; copies sound a little different."""
    rng = np.random.default_rng(0)
    with table.open() as one, key.open() as two:
        calls, truth = list(csv.DictReader(one)), list(csv.DictReader(two))
    folder.mkdir()
    rows = []
    for call in calls:
        path = (table.parent / call["audio"]).resolve()
        sound, rate = soundfile.read(path, dtype="float32") if copies > 1 else (None, 0)
        for k in range(copies):
            name = path if k == 0 else folder / f"{call['conversation']}-{k}.flac"
            if k and sound is not None:
                louder = sound * 10 ** rng.uniform(-0.15, 0.15)
                noise = 1e-3 * rng.standard_normal(sound.shape)
                soundfile.write(name, np.clip(louder + noise, -1.0, 1.0), rate, "PCM_16")
            rows.append(call | {"conversation": f"{call['conversation']}-{k}", "audio": str(name)})
    keys = [
        row | {"conversation": f"{row['conversation']}-{k}"} for row in truth for k in range(copies)
    ]
    for name, every in (("table.csv", rows), ("key.csv", keys)):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, every[0])
            writer.writeheader()
            writer.writerows(every)
    return folder / "table.csv", folder / "key.csv"


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


def agreement(before: Path, after: Path, key: Path) -> list[tuple[str, str]]:
    """Whether two folders of results say the same."""
    old, new, truth = (
        names_in(path) for path in (before / "assignments.csv", after / "assignments.csv", key)
    )
    other = sum(old[side][0] != new[side][0] for side in old)
    moved = max(abs(old[side][1] - new[side][1]) for side in old)
    wrong = [len({s[0] for s in truth if truth[s][0] != found[s][0]}) for found in (old, new)]
    rows = [
        ("sides whose speaker differs", f"{other} of {len(old)}"),
        ("largest difference of a probability", f"{moved:.2g}"),
        ("calls that the key calls wrong, before and after", f"{wrong[0]}, {wrong[1]}"),
    ]
    if (before / "suspects.csv").exists():
        claims = [
            {row["conversation"] for row in csv.DictReader((one / "suspects.csv").open())}
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
    parser.add_argument("--copies", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, key = copied(given.table, given.key, given.copies, folder / "calls")
        words = [str(table), "--workers", str(given.workers)]
        if given.claimed is not None and given.copies == 1:
            claimed = copied(given.table, given.claimed, 1, folder / "claimed")[1]
            words += ["--claimed", str(claimed)]
        versions = {"before": taken_out(given.before, folder / "old"), "after": HERE / "src"}
        found: dict[str, list[Linked]] = {version: [] for version in versions}
        for k in range(given.rounds + 1):
            for version, source in versions.items():
                done = run(source, words, folder / f"{version}-{k}")
                found[version] += [done] if k else []
        old, new = (folder / f"{version}-{given.rounds}" for version in versions)
        tell(found, agreement(old, new, key), given)


def tell(found: dict[str, list[Linked]], same: list[tuple[str, str]], given) -> None:
    """The tables."""
    rows = []
    stages = dict.fromkeys(stage for runs in found.values() for one in runs for stage in one.stages)
    before, after = (Runs(one.seconds for one in runs) for runs in found.values())
    for stage in stages:
        old, new = (Runs(one.stages.get(stage, 0.0) for one in runs) for runs in found.values())
        share = [
            f"{100 * part.median / all_.median:.0f} %"
            for part, all_ in ((old, before), (new, after))
        ]
        rows.append((stage, seconds(old), share[0], seconds(new), share[1], ratio(old, new)))
    rows.append(("all", seconds(before), "", seconds(after), "", ratio(before, after)))
    held = [max(one.held for one in runs) for runs in found.values()]
    rows.append(("memory, helpers and all", f"{held[0]:.2f} GB", "", f"{held[1]:.2f} GB", "", ""))
    columns = ["stage", f"before ({given.before})", "share", "after", "share", "times as fast"]
    show(f"{given.rounds} runs each with an empty cache, {given.workers} workers", columns, rows)
    show("Do both say the same?", ["", ""], same)


if __name__ == "__main__":
    main()
