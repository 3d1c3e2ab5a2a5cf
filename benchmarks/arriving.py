"""Calls that keep arriving: how long one new call, or a hundred, keep somebody waiting.

python benchmarks/arriving.py real DATA [RUNS]      one new call on 420 real ones (DATA: its folder)
python benchmarks/arriving.py many [CALLS] [NEW]    100 new calls on 100,000 given as embeddings

Every run is the command itself in a fresh process. Both tables say how far the answer is from that
of a run without a past, and whether --retrain gives its bytes.
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
from pathlib import Path

import numpy as np

from spklink.worlds.files import write_table
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


def apart(one: Path, two: Path) -> tuple[float, int, int]:
    """The largest difference of a probability, and how many names and decisions differ."""
    a, b = answers(one), answers(two)
    assert a.keys() == b.keys()
    named = [key for key in a if a[key][0] != b[key][0]]
    most = max(abs(a[key][1] - b[key][1]) for key in a if a[key][0] == b[key][0])
    return most, len(named), sum(a[key][2] != b[key][2] for key in a)


def same_bytes(one: Path, two: Path) -> bool:
    """Whether two results folders are alike."""
    names = {path.name for path in one.iterdir() if path.is_file()} - MOVES
    others = {path.name for path in two.iterdir() if path.is_file()} - MOVES
    return names == others and not any(filecmp.cmpfiles(one, two, names, shallow=False)[1:])


def told(what: str, times: list[float], memory: float, found: tuple[float, int, int]) -> None:
    least, most = seconds(min(times)), seconds(max(times))
    difference, named, decided = found
    show(
        what,
        ["seconds", "memory", "largest difference", "other names", "other decisions"],
        [(f"{least} to {most}", f"{memory:.2f} GB", f"{difference:.2g}", named, decided)],
    )


def real(data: Path, runs: int) -> None:
    """Another call is the new one in every run; it has not been heard before."""
    lines = (data / "conversations.csv").read_text().splitlines()
    head, rows = lines[0], [line.replace("audio/", f"{data}/audio/") for line in lines[1:]]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        fresh, whole = work / "fresh", work / "whole.csv"
        whole.write_text("\n".join([head, *rows]) + "\n")
        print(f"fresh run: {seconds(run(whole, fresh, '--no-report')[0])}")
        plain, full, found, memory = [], [], (0.0, 0, 0), 0.0
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
            found = tuple(map(max, zip(found, apart(out, fresh), strict=True)))  # type: ignore[assignment]
            memory = max(memory, used)
            shutil.rmtree(kept)
            if k + 1 < runs:
                shutil.rmtree(out)
        told(f"one new call on {len(rows) - 1}, without report", plain, memory, found)
        print(f"the same with its report: {seconds(min(full))} to {seconds(max(full))}")
        run(whole, out, "--no-report", "--retrain")
        print(f"--retrain gives the bytes of a fresh run: {same_bytes(out, fresh)}")


def simulated(folder: Path, calls: int, new: int, rng: np.random.Generator) -> tuple[Path, Path]:
    """Small cliques; the new calls are each by somebody who was there and somebody new."""
    plans = small_calls(calls, rng)
    first = max(max(call) for call in plans) + 1
    known = rng.integers(0, first, new)
    more = [(int(who), first + k) for k, who in enumerate(known.tolist())]
    table = as_table([*plans, *more], rng)
    write_table(folder, table, [""] * len(table), "whole.csv")
    lines = (folder / "whole.csv").read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(lines[: calls + 1]) + "\n")
    turned = rng.random(len(table)) < 0.5
    people = table.people.reshape(-1, 2)
    speaker = np.where(turned[:, None], people[:, ::-1], people).ravel()
    voice = rng.standard_normal((len(table.speakers), DIMENSIONS)) * np.sqrt(BETWEEN)
    noise = rng.standard_normal((len(speaker), DIMENSIONS)) * np.sqrt(1.0 - BETWEEN + 0.6)
    vectors = (voice[speaker] + noise).astype(np.float32)
    names = np.repeat(np.array(table.ids), 2)
    channel = np.tile(np.array(["1", "2"]), len(table))
    for name, count in (("whole", len(table)), ("few", calls)):
        np.savez(
            folder / f"{name}.npz",
            conversation=names[: 2 * count],
            channel=channel[: 2 * count],
            embedding=vectors[: 2 * count],
        )
    return folder / "few.csv", folder / "whole.csv"


def many(calls: int, new: int, runs: int = 3) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        few, whole = simulated(work, calls, new, rng)

        def vectors(name: str) -> list[str]:
            return ["--embeddings", str(work / f"{name}.npz"), "--no-report"]

        fresh, other = work / "fresh", work / "other"
        took, used = run(whole, fresh, *vectors("whole"))
        print(f"fresh run: {seconds(took)}, {used:.2f} GB")
        run(whole, other, *vectors("whole"), "--seed", "1")
        most, named, decided = apart(other, fresh)
        print(f"with another seed: {most:.2g}, {named} other names, {decided} other decisions")
        out = work / "out"
        took, used = run(few, out, *vectors("few"))
        print(f"the first {calls:,}: {seconds(took)}, {used:.2f} GB")
        times, memory = [], 0.0
        for k in range(runs):
            again = work / "again"
            shutil.copytree(out, again)
            took, used = run(whole, again, *vectors("whole"))
            times.append(took)
            memory = max(memory, used)
            found = apart(again, fresh)
            stages = json.loads((again / "timings.json").read_text())["seconds"]
            if k + 1 < runs:
                shutil.rmtree(again)
        told(f"{new:,} new calls on {calls:,}", times, memory, found)
        print("stages of the last: " + ", ".join(f"{k} {v:.2f}" for k, v in stages.items()))
        run(whole, again, *vectors("whole"), "--retrain")
        print(f"--retrain gives the bytes of a fresh run: {same_bytes(again, fresh)}")


if __name__ == "__main__":
    print(machine())
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "real":
        real(Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    elif what == "many":
        sizes = [int(word) for word in sys.argv[2:4]]
        many(*(sizes + [100_000, 100][len(sizes) :]))
    else:
        sys.exit(__doc__)
