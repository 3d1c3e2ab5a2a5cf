"""Carve a database of small cliques, in the paper's proportions, out of a large one.

    python examples/carve.py conversations.csv OUT --seed 0

Half of the speakers serve one half of the cliques, half the other. Every clique is connected,
resolvable, has at most five speakers and calls of its own; as many cliques as fit are carved. They
become groups of one table (OUT/conversations.csv), so that each is linked by itself.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from spklink.database.conversations import Conversations, read_conversations
from spklink.tables import write_csv

PROPORTIONS = {2: 57, 3: 13, 4: 26, 5: 9, 6: 5}  # the paper's resolvable cliques by size
MOST_SPEAKERS = 5
TRIES = 200

Cliques = list[list[int]]


def carve(table: Conversations, seed: int, half: np.ndarray | None = None) -> Cliques:
    """Calls of every clique: as many cliques in the paper's proportions as fit. `half` says in
    which half of the cliques a speaker is, where that is not left to the seed."""
    rng = np.random.default_rng(seed)
    half = rng.permutation(len(table.speakers)) % 2 if half is None else half
    halves = [set(half[table.people[table.listing.of(m)]].tolist()) for m in range(len(table))]
    pools = [np.array([m for m, h in enumerate(halves) if h == {k}], np.int64) for k in (0, 1)]
    mean = sum(size * n for size, n in PROPORTIONS.items()) / sum(PROPORTIONS.values())
    for count in range(int(sum(map(len, pools)) / mean), 0, -1):
        cliques = _fit(table, pools, _sizes(count), np.random.default_rng([seed, count]))
        if cliques is not None:
            return cliques
    return []


def _sizes(count: int) -> list[int]:
    """`count` clique sizes in the paper's proportions, the large ones first: they fit hardest."""
    share = {size: count * n / sum(PROPORTIONS.values()) for size, n in PROPORTIONS.items()}
    chosen = {size: int(value) for size, value in share.items()}
    rest = sorted(share, key=lambda size: chosen[size] - share[size])
    for size in rest[: count - sum(chosen.values())]:
        chosen[size] += 1
    return [size for size in sorted(chosen, reverse=True) for _ in range(chosen[size])]


def _fit(
    table: Conversations, pools: list[np.ndarray], sizes: list[int], rng: np.random.Generator
) -> Cliques | None:
    left = [set(pool.tolist()) for pool in pools]
    cliques: Cliques = []
    for k, size in enumerate(sizes):
        pool = left[k % 2]
        clique = next((c for _ in range(TRIES) if (c := _grow(table, pool, size, rng))), None)
        if clique is None:
            return None
        pool -= set(clique)
        cliques.append(clique)
    return cliques


def _grow(
    table: Conversations, pool: set[int], size: int, rng: np.random.Generator
) -> list[int] | None:
    """A connected, resolvable clique of unused calls, or None."""
    if len(pool) < size:
        return None
    clique = [int(rng.choice(sorted(pool)))]
    people = set(table.names(clique[0]))
    while len(clique) < size:
        near = [
            m
            for m in sorted(pool - set(clique))
            if people & set(table.names(m)) and len(people | set(table.names(m))) <= MOST_SPEAKERS
        ]
        if not near:
            return None
        clique.append(int(rng.choice(near)))
        people |= set(table.names(clique[-1]))
    return clique if len(people) > 2 else None


def write(table: Conversations, cliques: Cliques, folder: Path) -> Path:
    """conversations.csv with one group a clique; audio relative to the new place."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for k, clique in enumerate(cliques, start=1):
        for m in sorted(clique):
            files = (table.path.parent.resolve() / name for name in table.audio[m])
            audio = ";".join(os.path.relpath(path, folder.resolve()) for path in files)
            rows.append((table.ids[m], audio, ";".join(table.names(m)), f"clique{k}"))
    path = folder / "conversations.csv"
    write_csv(path, ["conversation", "audio", "participants", "group"], rows)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table = read_conversations(given.table)
    cliques = carve(table, given.seed)
    path = write(table, cliques, given.out)
    print(f"{len(cliques)} cliques of {sum(map(len, cliques))} calls: {path}")


if __name__ == "__main__":
    main()
