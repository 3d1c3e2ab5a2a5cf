"""Calls that keep arriving: how long one new call, or a hundred, keep somebody waiting.

python benchmarks/arriving.py real DATA [RUNS]      one new call on 420 real ones (DATA: its folder)
python benchmarks/arriving.py many [CALLS] [NEW] [WORK]    100 new calls on 100,000, small cliques
python benchmarks/arriving.py centre [CALLS] [NEW] [WORK]  the same in a call centre

Every run is the command itself in a fresh process. They say how far the answer is from that of a
run without a past, and whether --retrain gives its bytes; `many` and `centre`, which are given as
embeddings, also how far two such runs with other seeds are apart. With a folder WORK first runs are
kept there, and only the added calls are timed the next time.
"""

from __future__ import annotations

import csv
import filecmp
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

import frequent
from spklink.worlds.shapes import as_table, small_calls
from timing import seconds, show

DIMENSIONS, BETWEEN = 64, 0.9  # of simulated vectors, and their variance between people
MOVES = {"timings.json"}  # what may differ between two runs that are alike


def machine() -> str:
    """What it runs on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def run(table: Path, out: Path, *more: str) -> tuple[float, float]:
    """Wall seconds and peak gigabytes of one link."""
    words = [sys.executable, "-m", "spklink", "-q", "link", str(table), "-o", str(out), *more]
    begin = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - begin
    said = json.loads((out / "timings.json").read_text())
    return took, (said["peak_memory_bytes"] or 0) / 1e9


def answers(out: Path) -> dict[tuple[str, str], tuple[str, float, str]]:
    """Who is on which channel, how sure, and what was decided."""
    with (out / "assignments.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (r["conversation"], r["channel"]): (r["speaker"], float(r["probability"]), r["decision"])
        for r in rows
    }


@dataclass(frozen=True)
class Apart:
    """How far two answers are apart."""

    most: float = 0.0  # difference of a probability, where the name is the same
    mean: float = 0.0
    named: int = 0  # other names
    sure: int = 0  # other names where either is settled
    decided: int = 0  # other decisions

    def worse(self, other: Apart) -> Apart:
        return Apart(*(max(pair) for pair in zip(astuple(self), astuple(other), strict=True)))


def apart(one: Path, two: Path) -> Apart:
    a, b = answers(one), answers(two)
    assert a.keys() == b.keys()
    gaps = [abs(a[key][1] - b[key][1]) for key in a if a[key][0] == b[key][0]]
    named = [key for key in a if a[key][0] != b[key][0]]
    sure = [key for key in named if "settled" in (a[key][2], b[key][2])]
    decided = sum(a[key][2] != b[key][2] for key in a)
    return Apart(max(gaps), float(np.mean(gaps)), len(named), len(sure), decided)


def differences(found: Apart) -> str:
    return (
        f"probabilities differ by {found.most:.2g} at most, {found.mean:.2g} on average; "
        f"{found.named} other names ({found.sure} of settled ones), {found.decided} other decisions"
    )


def same_bytes(one: Path, two: Path) -> bool:
    """Whether two results folders are alike."""
    names = {path.name for path in one.iterdir() if path.is_file()} - MOVES
    others = {path.name for path in two.iterdir() if path.is_file()} - MOVES
    return names == others and not any(filecmp.cmpfiles(one, two, names, shallow=False)[1:])


def told(what: str, times: list[float], memory: float, found: Apart) -> None:
    least, most = seconds(min(times)), seconds(max(times))
    show(what, ["seconds", "memory"], [(f"{least} to {most}", f"{memory:.2f} GB")])
    print(f"from a run without a past: {differences(found)}")


def real(data: Path, runs: int) -> None:
    """Another call is the new one in every run; it has not been heard before."""
    lines = (data / "conversations.csv").read_text().splitlines()
    head, rows = lines[0], [line.replace("audio/", f"{data}/audio/") for line in lines[1:]]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        fresh, whole = work / "fresh", work / "whole.csv"
        whole.write_text("\n".join([head, *rows]) + "\n")
        print(f"fresh run: {seconds(run(whole, fresh, '--no-report')[0])}")
        plain, full, found, memory = [], [], Apart(), 0.0
        for k in range(runs):
            new = rows[k * len(rows) // runs]
            few, out = work / "few.csv", work / f"out{k}"
            few.write_text("\n".join([head, *(row for row in rows if row != new)]) + "\n")
            run(few, out, "--no-report")
            kept = work / "kept"
            shutil.copytree(out, kept)
            took, used = run(whole, out, "--no-report")
            plain.append(took)
            full.append(run(whole, kept)[0])
            found = found.worse(apart(out, fresh))
            memory = max(memory, used)
            shutil.rmtree(kept)
            if k + 1 < runs:
                shutil.rmtree(out)
        told(f"one new call on {len(rows) - 1}, without report", plain, memory, found)
        print(f"the same with its report: {seconds(min(full))} to {seconds(max(full))}")
        run(whole, out, "--no-report", "--retrain")
        print(f"--retrain gives the bytes of a fresh run: {same_bytes(out, fresh)}")


def simulated(folder: Path, calls: int, new: int, rng: np.random.Generator) -> None:
    """Small cliques; the new calls are each by somebody who was there and somebody new."""
    plans = small_calls(calls, rng)
    first = max(max(call) for call in plans) + 1
    known = rng.integers(0, first, new)
    more = [(int(who), first + k) for k, who in enumerate(known.tolist())]
    table = as_table([*plans, *more], rng)
    turned = rng.random(len(table)) < 0.5
    people = table.people.reshape(-1, 2)
    speaker = np.where(turned[:, None], people[:, ::-1], people).ravel()
    voice = rng.standard_normal((len(table.speakers), DIMENSIONS)) * np.sqrt(BETWEEN)
    noise = rng.standard_normal((len(speaker), DIMENSIONS)) * np.sqrt(1.0 - BETWEEN + 0.6)
    vectors = (voice[speaker] + noise).astype(np.float32)
    keep(folder, people[:, 0], people[:, 1], vectors, calls)


def centre(folder: Path, calls: int, new: int, rng: np.random.Generator) -> None:
    """A call centre whose agents have 500 calls each, as in benchmarks/frequent.py; the new calls
    are by agents and clients who may have been there."""
    one, two = frequent.who_talks("centre", calls + new, rng)
    width, mu = frequent.WIDTH["centre"], frequent.MUS[1]
    vectors, _ = frequent.simulated(one, two, width, mu, rng)
    keep(folder, one, two, vectors.reshape(-1, width), calls)


def keep(folder: Path, one: np.ndarray, two: np.ndarray, vectors: np.ndarray, calls: int) -> None:
    """A table and its vectors: all, and the first ones."""
    for name, count in (("whole", len(one)), ("few", calls)):
        pairs = zip(one[:count].tolist(), two[:count].tolist(), strict=True)
        rows = [f"c{m},p{a};p{b}" for m, (a, b) in enumerate(pairs)]
        text = "\n".join(["conversation,participants", *rows]) + "\n"
        (folder / f"{name}.csv").write_text(text)
        np.savez(
            folder / f"{name}.npz",
            conversation=np.repeat([f"c{m}" for m in range(count)], 2),
            channel=np.tile(["1", "2"], count),
            embedding=vectors[: 2 * count],
        )


def many(what: str, calls: int, new: int, kept: str | None = None, runs: int = 3) -> None:
    """Small cliques or a call centre; in a folder that is kept nothing is done twice but what is
    timed."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(kept or folder)
        work.mkdir(parents=True, exist_ok=True)
        if not (work / "few.npz").exists():
            make = {"many": simulated, "centre": centre}[what]
            make(work, calls, new, np.random.default_rng(0))

        def link(name: str, out: Path, *more: str) -> tuple[float, float]:
            vectors = str(work / f"{name}.npz")
            return run(work / f"{name}.csv", out, "--embeddings", vectors, "--no-report", *more)

        def once(name: str, out: Path, *more: str) -> None:
            if not (out / "run.json").exists():
                took, used = link(name, out, *more)
                print(f"{out.name} run: {seconds(took)}, {used:.2f} GB")

        fresh, other, out, again = (work / name for name in ("fresh", "seed", "first", "again"))
        once("whole", fresh)
        once("whole", other, "--seed", "1")
        once("few", out)
        print(f"two seeds: {differences(apart(other, fresh))}")
        times, memory = [], 0.0
        for _ in range(runs):
            shutil.rmtree(again, ignore_errors=True)
            shutil.copytree(out, again)
            took, used = link("whole", again)
            times.append(took)
            memory = max(memory, used)
        told(f"{new:,} new calls on {calls:,}", times, memory, apart(again, fresh))
        stages = json.loads((again / "timings.json").read_text())["seconds"]
        print("stages of the last: " + ", ".join(f"{k} {v:.2f}" for k, v in stages.items()))
        if kept is None:
            link("whole", again, "--retrain")
            print(f"--retrain gives the bytes of a fresh run: {same_bytes(again, fresh)}")


if __name__ == "__main__":
    print(machine())
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "real":
        real(Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    elif what in ("many", "centre"):
        sizes = [int(word) for word in sys.argv[2:4]]
        many(what, *(sizes + [100_000, 100][len(sizes) :]), *sys.argv[4:5])
    else:
        sys.exit(__doc__)
