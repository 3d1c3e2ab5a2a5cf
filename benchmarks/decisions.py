"""What a decision takes: stored, its clique solved again, the queue and the view made anew.

python benchmarks/decisions.py [--conversations 10000] [--results OUT]

On a simulated database in the shape of the paper's corpus, lists taken at their word and not, or on
a results folder of yours (of which a copy is reviewed). Prints medians and the longest, and memory.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from timing import show, use_one_core

use_one_core()

import numpy as np

from spklink import assign
from spklink.review.desk import Desk
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import simulate

DECISIONS = 60


def timed(work) -> tuple[float, object]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def review(folder: Path) -> list[str]:
    """Seconds of opening; milliseconds of a decision, of the queue and of a view after it."""
    opening, desk = timed(lambda: Desk.open(folder))
    open_ = desk.progress().open
    took = {"decide": [], "queue": [], "view": []}
    for k in range(DECISIONS):
        asked = desk.queue(0, 50)
        m = asked[0].m if asked else k * len(desk.table) // DECISIONS
        part, i = desk.place_of(m)
        names = [who or None for who in part.names(i)]
        decide = {"reviewer": "benchmark", "request": str(k)}
        took["decide"].append(timed(lambda m=m, n=names, d=decide: desk.decide(m, n, **d))[0])
        took["queue"].append(timed(lambda: desk.queue(0, 50))[0])
        took["view"].append(timed(lambda m=m: desk.view(m))[0])
    figures = [f"{1e3 * np.median(x):.0f}, {1e3 * max(x):.0f}" for x in took.values()]
    memory = (peak_memory() or 0) / 1e6
    return [f"{len(desk.table):,}", f"{open_:,}", f"{opening:.1f}", *figures, f"{memory:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    rows = []
    with TemporaryDirectory() as work:
        if given.results:
            folder = Path(work, "copy")
            shutil.copytree(given.results, folder, ignore=shutil.ignore_patterns("review.sqlite*"))
            rows.append([given.results.name, *review(folder)])
        else:
            made = simulate(shape="cgn", conversations=given.conversations, eer=12, seed=5)
            for words, rate in (("lists taken at their word", 0.0), ("lists may be wrong", 0.01)):
                folder = Path(work, f"{rate}")
                assign(made.table(), made.scores(), list_errors=rate).save(folder)
                rows.append([words, *review(folder)])
    columns = ["results", "conversations", "open", "opened, s"]
    columns += ["decide, ms", "queue, ms", "view, ms", "MB"]
    show("A decision; ms: median, most", columns, rows)


if __name__ == "__main__":
    main()
