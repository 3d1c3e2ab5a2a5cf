"""The rate of list errors where nobody told it: estimated against planted, by how many calls
people have.

    python benchmarks/list_rates.py [--shape star centre small] [--calls 5000] [--mu 2 4.36]
                                    [--wrong 0 .01 .05] [--seeds 1] [--weight paper]

Simulated voices as in frequent.py: one person in all calls, a call centre, and groups of six people
with a dozen calls; `--agent` says how many calls an agent has. A planted error puts a voice that is
listed nowhere in the place of somebody who is. A rate has its 95 % interval; expected absences
stand before true ones, of all people, then of those with one call, two, three to 256, and more.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import frequent
from timing import show

MOST = (1, 2, 256, 1 << 40)  # calls of a person, up to so many
GROUP, CALLS_OF_A_GROUP = 6, 12
Pairs = tuple[np.ndarray, np.ndarray]


def who_talks(shape: str, calls: int, rng: np.random.Generator) -> Pairs:
    if shape != "small":
        return frequent.who_talks(shape, calls, rng)
    group = GROUP * (np.arange(calls) // CALLS_OF_A_GROUP)
    one = rng.integers(0, GROUP, calls)
    return group + one, group + (one + 1 + rng.integers(0, GROUP - 1, calls)) % GROUP


def planted(
    vectors: np.ndarray, truth: np.ndarray, beta: float, wrong: float, rng: np.random.Generator
) -> np.ndarray:
    """(calls, 2) whose voice is a stranger's, which is put in its place."""
    absent = rng.random((len(truth), 2)) < wrong
    for person, track in ((0, truth), (1, 1 - truth)):
        calls = np.flatnonzero(absent[:, person])
        size = (len(calls), vectors.shape[2])
        vectors[calls, track[calls]] = np.sqrt(1.0 + beta) * rng.standard_normal(size)
    return absent


def linked(people: Pairs, vectors: np.ndarray, options: dict[str, Any]) -> Any:
    """The answer in full."""
    import spklink

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "conversations.csv"
        with table.open("w") as file:
            file.write("conversation,participants\n")
            both = zip(*(one.tolist() for one in people), strict=True)
            file.writelines(f"c{m},p{a};p{b}\n" for m, (a, b) in enumerate(both))
        rows = vectors.reshape(-1, vectors.shape[2])
        return spklink.link(table, embeddings=rows, kind="lr", budget_gb=8.0, **options).answer


def measured(
    shape: str, calls: int, mu: float, wrong: float, seed: int, weight: str
) -> tuple[Any, ...]:
    """One database, as a row."""
    rng = np.random.default_rng([calls, int(100 * mu), seed])
    one, two = who_talks(shape, calls, rng)
    width = frequent.WIDTH.get(shape, 128)
    vectors, truth = frequent.simulated(one, two, width, mu, rng)
    beta = frequent.variance_ratio(mu, width)
    absent = planted(vectors, truth, beta, wrong, rng).ravel()
    options = {"weight": "book", "beta": beta} if weight == "book" else {}
    found = linked((one, two), vectors, options)
    rate, chance = found.rate, 1.0 - found.presence.chance
    own = np.bincount(found.table.people)[found.table.people]
    least = 0
    told = [f"{chance.sum():.1f}/{absent.sum()}"]
    for most in MOST:
        some, least = (own > least) & (own <= most), most
        told.append(f"{chance[some].sum():.1f}/{absent[some].sum()}")
    interval = f"{rate.low:.4f}-{rate.high:.4f}"
    return (shape, f"{calls:,}", mu, f"{absent.mean():.4f}", f"{rate.value:.5f}", interval, *told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shapes = ("star", "centre", "small")
    parser.add_argument("--shape", nargs="+", choices=shapes, default=shapes)
    parser.add_argument("--calls", nargs="+", type=int, default=[5000])
    parser.add_argument("--mu", nargs="+", type=float, default=list(frequent.MUS))
    parser.add_argument("--wrong", nargs="+", type=float, default=[0.0, 0.01, 0.05])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--weight", choices=("paper", "book"), default="paper")
    parser.add_argument("--agent", type=int, default=frequent.AGENT_CALLS)
    given = parser.parse_args()
    frequent.AGENT_CALLS = given.agent
    rows = [
        measured(shape, calls, mu, wrong, seed, given.weight)
        for shape in given.shape
        for calls in given.calls
        for mu in given.mu
        for wrong in given.wrong
        for seed in range(given.seeds)
    ]
    columns = ["", "calls", "mu", "true", "rate", "95 %", "all", "1 call", "2", "to 256", "more"]
    show("the rate of list errors; absences expected/true", columns, rows)


if __name__ == "__main__":
    main()
