"""Databases with a known truth: who talks to whom, and what a recognizer would score.

The shapes of a database are in module `shapes`, the worlds of scores in module `scorers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.links import Links, find_links, needed_sides
from spklink.database.sides import speakers_on
from spklink.errors import SpklinkError
from spklink.scores.files import COLUMNS, write_scores
from spklink.scores.needed import SideScores, known_non_targets, needed_and
from spklink.tables import write_csv
from spklink.worlds.files import KEY, TABLE, key_rows, table_rows, write_key, write_table
from spklink.worlds.scorers import WORLDS
from spklink.worlds.shapes import SHAPES, as_table, draw_calls

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Simulation:
    """A simulated database and its truth."""

    conversations: Conversations
    links: Links
    llr: Floats  # (P,) of the needed side pairs
    truth: NDArray[np.int8]  # (M,) 0 = as listed, 1 = exchanged
    non_targets: SideScores

    def table(self) -> list[dict[str, Any]]:
        """The conversations as rows, for `assign`."""
        return _dicts(TABLE, table_rows(self.conversations, [""] * len(self.conversations)))

    def scores(self) -> list[dict[str, Any]]:
        """All scores as rows, for `assign`."""
        return _dicts(COLUMNS, _lines(self.conversations, self.side_scores()))

    def key(self) -> list[dict[str, Any]]:
        """The truth as rows, for `evaluate`."""
        return _dicts(KEY, key_rows(self.conversations, self.truth))

    def side_scores(self) -> SideScores:
        """The needed scores, then those of known non-targets."""
        return needed_and(self.conversations, self.links, self.llr, self.non_targets)


def _dicts(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def simulate(
    *,
    shape: str = "cgn",
    conversations: int | None = None,
    world: str = "gaussian",
    eer: float = 7.0,
    seed: int = 0,
) -> Simulation:
    """Make a database; `eer` in per cent."""
    if shape not in SHAPES:
        raise SpklinkError(f"shape {shape!r} is not one of {', '.join(SHAPES)}")
    if world not in WORLDS:
        raise SpklinkError(f"world {world!r} is not one of {', '.join(WORLDS)}")
    if not 0.01 <= eer <= 45.0:
        raise SpklinkError(f"--eer {eer}: an equal error rate between 0.01 and 45 per cent")
    rng = np.random.default_rng(seed)
    return simulate_table(as_table(draw_calls(shape, conversations, rng), rng), world, eer, rng)


def simulate_table(
    table: Conversations, world: str, eer: float, rng: np.random.Generator
) -> Simulation:
    """A truth and scores for the conversations of a table; `eer` in per cent."""
    links = find_links(table)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    score = WORLDS[world](speakers_on(table, truth), eer / 100.0, rng)
    llr = score(*needed_sides(links, table.sides))
    others = known_non_targets(table, rng)
    return Simulation(table, links, llr, truth, SideScores(*others, score(*others)))


def write_simulation(
    simulation: Simulation, folder: str | PathLike[str], *, npz: bool = False
) -> list[Path]:
    """conversations.csv, scores.csv or scores.npz, key.csv; the paths written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table = simulation.conversations
    every = simulation.side_scores()
    path = folder / ("scores.npz" if npz else "scores.csv")
    listed = write_table(folder, table, [""] * len(table))
    if npz:
        write_scores(path, table, every)
    else:
        write_csv(path, COLUMNS, _lines(table, every))
    return [listed, path, write_key(folder, table, simulation.truth)]


def _lines(table: Conversations, scores: SideScores) -> Iterator[tuple[str, int, str, int, float]]:
    """Rows of scores.csv."""
    ids, of_side = table.ids, table.sides
    sides = [
        values[side].tolist()
        for side in (scores.side_1, scores.side_2)
        for values in (of_side.conversation, of_side.position)
    ]
    for m, u, n, v, score in zip(*sides, scores.score.tolist(), strict=True):
        yield ids[m], u + 1, ids[n], v + 1, score
