"""Speed and memory of an earlier commit against this one, in one run.

    python benchmarks/before_after.py OLD [--rounds 7] [--only star]

OLD is a checkout of an earlier commit (its own .venv is used, where it has one). Every piece of
work runs in fresh processes of both versions in turn, bound to one core; of each the least time
counts. A ratio above 1 means that this version is faster. Pieces are those of the other benchmarks,
without peers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from timing import ONE_CORE, seconds, show

HERE = Path(__file__).resolve().parent.parent
SLOWER = 0.95  # a ratio below this is worth a look

# Where modules of commits before the rooms were.
HOMES = """
def get(name, *homes):
    import importlib
    for home in homes:
        try:
            return getattr(importlib.import_module(f"spklink.{home}"), name)
        except (ImportError, AttributeError):
            pass
    raise ImportError(name)
"""
START = (
    HOMES
    + """
import json, os, resource, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
def least(work, repeat):
    work()
    best = 1e9
    for _ in range(repeat):
        begin = time.perf_counter(); work(); best = min(best, time.perf_counter() - begin)
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([best, memory]))
simulate = get("simulate", "worlds.simulate", "simulate")
find_cliques = get("find_cliques", "database.cliques", "cliques")
build_model = get("build_model", "posterior.likelihood", "likelihood")
solve = get("solve", "posterior.posterior", "posterior")
Options = get("Options", "posterior.posterior", "posterior")
def model(made):
    return build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)
"""
)
FEATURES = """
features = get("side_features", "sound.features", "features")
rng = np.random.default_rng(0)
sound = (0.1 * rng.standard_normal(8000 * 120)).astype(np.float32)
"""
WORK = {
    "1000 small cliques": START
    + """
join = get("join", "posterior.likelihood", "likelihood")
whole = join([model(simulate(seed=s)) for s in range(9)])
least(lambda: solve(whole), 20)
""",
    "a star of 24, exact": START
    + "made = model(simulate(shape='star', conversations=24))\nleast(lambda: solve(made), 20)\n",
    "a star of 500, certified": START
    + """
made = model(simulate(shape='star', conversations=500, eer=15.87))
least(lambda: solve(made), 3)
""",
    "a star of 60 at 30 %, sampled": START
    + """
made = model(simulate(shape='star', conversations=60, eer=30.0))
least(lambda: solve(made), 3)
""",
    "a network of 20,000": START
    + """
made = model(simulate(shape='network', conversations=20000))
least(lambda: solve(made), 3)
""",
    "links and model of 20,000": START
    + """
find_links = get("find_links", "database.links", "links")
made = simulate(shape='network', conversations=20000)
def work():
    links = find_links(made.conversations)
    return build_model(made.conversations, find_cliques(made.conversations), links, made.llr)
least(work, 10)
""",
    "front end, two minutes": START + FEATURES + "least(lambda: features(sound.copy()), 10)\n",
    "EM step, 256 x 60": START
    + """
from concurrent.futures import ThreadPoolExecutor
train = get("train", "recognizers.mixture", "gmm")
rng = np.random.default_rng(0)
frames = rng.standard_normal((60000, 60)).astype(np.float32)
least(lambda: train(lambda: [frames], 256, seed=0, iterations=2), 3)
""",
    "detection measures, 10 million": START
    + """
measure = get("measure", "measures.detection", "detection")
rng = np.random.default_rng(0)
targets, others = (rng.normal(m, 1, n).astype(np.float32) for m, n in ((2, 100000), (0, 9900000)))
least(lambda: measure(targets, others, threads=1), 3)
""",
    "reading 200,000 conversations": START
    + """
import pathlib, tempfile
read = get("read_conversations", "database.conversations", "conversations")
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "conversations.csv"
    rows = (f"c{k},calls/{k}.wav,s{k % 5000};s{(k * 7 + 1) % 5000}x" for k in range(200000))
    path.write_text("\\n".join(["conversation,audio,participants", *rows]) + "\\n")
    least(lambda: read(path), 3)
""",
    "reading 380,000 scores": START
    + """
import pathlib, tempfile
write = get("write_simulation", "worlds.simulate", "simulate")
read = get("read_scores", "scores.files", "scores")
made = simulate(shape='network', conversations=20000)
with tempfile.TemporaryDirectory() as folder:
    write(made, folder)
    least(lambda: read(pathlib.Path(folder) / "scores.csv", made.conversations, made.links), 3)
""",
    "calibration without labels": START
    + """
import pathlib, tempfile
write = get("write_simulation", "worlds.simulate", "simulate")
assign = get("assign", "runs.assign", "assignment")
try:
    Choice = get("Choice", "calibrate"); chosen = Choice("labelfree")
except ImportError:
    chosen = "labelfree"
made = simulate(seed=1)
with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    write(made, here)
    words = here / "conversations.csv", here / "scores.csv", here / "out"
    least(lambda: assign(*words, calibration=chosen), 3)
""",
}


def python_of(checkout: Path) -> str:
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def measured(checkout: Path, code: str) -> tuple[float, int]:
    """Seconds and peak memory of one piece of work in a process of its own."""
    environment = os.environ | ONE_CORE | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [python_of(checkout), "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr.strip()}")
    best, memory = json.loads(done.stdout.splitlines()[-1])
    return best, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="pieces whose name contains this")
    given = parser.parse_args()
    rows = []
    for name, code in ((name, code) for name, code in WORK.items() if given.only in name):
        runs: dict[Path, list[tuple[float, int]]] = {given.old: [], HERE: []}
        for _ in range(given.rounds):
            for checkout, found in runs.items():
                found.append(measured(checkout, code))
        (old, old_memory), (new, new_memory) = (
            (min(t for t, _ in found), min(m for _, m in found)) for found in runs.values()
        )
        ratio = old / new
        note = "" if ratio >= SLOWER else f"below {SLOWER}"
        memory = f"{new_memory / old_memory:.2f}"
        rows.append((name, seconds(old), seconds(new), f"{ratio:.2f}", memory, note))
    columns = ["", "before", "after", "times as fast", "memory, of before", ""]
    show("Before and after", columns, rows)


if __name__ == "__main__":
    main()
