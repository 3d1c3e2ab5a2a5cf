"""What linking costs: the constants with which `spklink check` reckons.

    python benchmarks/cost.py conversations.csv [--sizes 60 120 240 420] [--workers 2]

Every size is that many rows of the table, linked in a fresh process without a cache. Listening is
reckoned by the hour of sound and core, the rest by sides and side pairs, by least squares without
negative terms. Besides, how far the reckoning is from each run.
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
from spklink.runs.cost import hours_of
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 120, 240, 420])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
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
            hours = hours_of(people).hours
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
