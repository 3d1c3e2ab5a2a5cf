"""What linking costs: the constants with which `spklink check` reckons.

    python benchmarks/cost.py conversations.csv [--sizes 60 120 240 420] [--workers 2]
    python benchmarks/cost.py vectors [--sizes 5000 20000 50000]

Every size is that many rows of the table, linked in a fresh process without a cache. Listening is
reckoned by the hour of sound and core, the rest by sides and side pairs, by least squares without
negative terms. Besides, how far the reckoning is from each run. `vectors` is the same for voices
that are given as vectors: simulated call centres (benchmarks/frequent.py), whose agents' pairs are
summed, and people in rings of four calls, by relative least squares.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from spklink.database.conversations import read_conversations
from spklink.database.links import find_links, pair_starts
from spklink.sound.headers import open_recordings
from spklink.tables import csv_bytes, open_table
from timing import show

LISTENING = ("listening",)
NOT_COUNTED = ("reading the table", "writing the results")


def part_of(table: Path, rows: int, folder: Path) -> Path:
    """The first rows of a table, recordings by their full path."""
    with open_table(table) as (header, found):
        kept = [fields for _, fields in found][:rows]
        at = header.column("audio")
        for fields in kept:
            files = fields[at].split(";")
            fields[at] = ";".join(str((table.parent / name).resolve()) for name in files)
        path = folder / f"{rows}.csv"
        path.write_bytes(csv_bytes(header.names, kept))
    return path


def linked(table: Path, out: Path, workers: int) -> dict:
    words = ["link", table, "-o", out, "--workers", workers, "--no-report"]
    subprocess.run([sys.executable, "-m", "spklink", *map(str, words)], check=True)
    return json.loads((out / "timings.json").read_text())


def with_vectors(sizes: list[int]) -> None:
    """Runs on vectors, and the constants that fit them."""
    rows = []
    for what in ("rings", "centre"):
        for calls in sizes:
            words = [sys.executable, __file__, "one", what, str(calls)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    sides, pairs, summed, seconds, memory = (
        np.array([row[name] for row in rows], float)
        for name in ("sides", "pairs", "summed", "seconds", "memory")
    )
    about = np.stack([np.ones_like(sides), sides, pairs, summed], 1)
    fits = [nnls(about / found[:, None], np.ones(len(rows)))[0] for found in (seconds, memory)]
    names = "VECTORS_BEGIN, A_VECTOR, A_VECTOR_PAIR, A_SUMMED"
    print(f"{names} = {', '.join(f'{one:.2g}' for one in fits[0])}  # seconds")
    print(f"the same in MiB: {', '.join(f'{one:.2g}' for one in fits[1])}")
    reckoned = [about @ fit for fit in fits]
    show(
        "Runs on vectors and what would have been reckoned",
        ["sides", "side pairs", "summed sides", "seconds", "reckoned", "MiB", "reckoned"],
        [
            tuple(f"{one:.0f}" for one in row)
            for row in zip(
                sides, pairs, summed, seconds, reckoned[0], memory, reckoned[1], strict=True
            )
        ],
    )


def one_with_vectors(what: str, calls: int) -> None:
    """One of them, in this process."""
    import spklink
    from frequent import simulated, who_talks
    from spklink.database.frequent import find_frequent
    from spklink.runs.cost import BUDGET, side_pairs
    from spklink.runs.stages import peak_memory

    rng, calls = np.random.default_rng(calls), calls // 4 * 4
    ring = np.arange(calls)
    people = (ring, ring // 4 * 4 + (ring + 1) % 4)
    one, two = people if what == "rings" else who_talks(what, calls, rng)
    vectors, _ = simulated(one, two, 128, 4.36, rng)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "conversations.csv"
        both = enumerate(zip(one.tolist(), two.tolist(), strict=True))
        path.write_bytes(
            csv_bytes(
                ("conversation", "participants"), ((f"c{m}", f"p{a};p{b}") for m, (a, b) in both)
            )
        )
        people = read_conversations(path)
        frequent = find_frequent(people, BUDGET)
        found = spklink.link(path, embeddings=vectors.reshape(-1, vectors.shape[2]))
    told = {
        "sides": len(people.sides),
        "pairs": side_pairs(people, frequent),
        "summed": len(frequent.entry),
        "seconds": sum(found.stages.seconds.values()),
        "memory": (peak_memory() or 0) / 2**20,
    }
    print(json.dumps(told))


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        one_with_vectors(sys.argv[2], int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="a table with recordings, or the word vectors")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.table == "vectors":
        with_vectors(given.sizes or [5000, 20_000, 50_000])
        return
    given.table, given.sizes = Path(given.table), given.sizes or [60, 120, 240, 420]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in given.sizes:
            part = part_of(given.table, size, folder)
            people = read_conversations(part)
            pairs = int(pair_starts(find_links(people), people.sides)[-1])
            times = linked(part, folder / f"out{size}", given.workers)
            seconds = times["seconds"]
            heard = sum(seconds[one] for one in LISTENING)
            rest = sum(s for one, s in seconds.items() if one not in (*LISTENING, *NOT_COUNTED))
            hours = open_recordings(people).hours or 0.0
            memory = times["peak_memory_bytes"] / 2**20
            rows.append((len(people.sides), pairs, hours, heard, rest, memory))
    columns = [np.array(column, float) for column in zip(*rows, strict=True)]
    sides, pairs, hours, heard, rest, memory = columns
    one = np.ones_like(sides)
    listening = float((heard * given.workers).sum() / hours.sum())
    begin, per_side, per_pair = nnls(np.stack([one, sides, pairs], 1), rest)[0]
    base, side_mb, pair_mb = nnls(np.stack([one, sides, pairs], 1), memory)[0]
    print(f"LISTENING = {listening:.1f}  # seconds of a core an hour of sound")
    print(f"BEGINNING, A_SIDE, A_PAIR = {begin:.1f}, {per_side:.2g}, {per_pair:.2g}  # seconds")
    print(f"BASE, SIDE_MB, PAIR_MB = {base:.0f}, {side_mb:.2g}, {pair_mb:.2g}  # MiB")
    reckoned = hours * listening / given.workers + begin + per_side * sides + per_pair * pairs
    kept = base + side_mb * sides + pair_mb * pairs
    show(
        "Runs and what would have been reckoned",
        ["sides", "side pairs", "hours", "seconds", "reckoned", "MiB", "reckoned"],
        [
            (f"{s:.0f}", f"{p:.0f}", f"{h:.2f}", f"{a:.1f}", f"{b:.1f}", f"{m:.0f}", f"{k:.0f}")
            for s, p, h, a, b, m, k in zip(
                sides, pairs, hours, heard + rest, reckoned, memory, kept, strict=True
            )
        ],
    )


if __name__ == "__main__":
    main()
