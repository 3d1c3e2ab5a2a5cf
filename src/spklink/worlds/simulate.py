"""Databases with a known truth: who talks to whom, and what a recognizer would score.

The shapes of a database are in modules `shapes` (calls between two) and `meetings` (sessions of
several people), the worlds of scores in module `scorers`.
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
from spklink.database.sides import refuse_more_than_bits, speakers_on, two_each
from spklink.errors import SpklinkError
from spklink.scores.files import COLUMNS, write_scores
from spklink.scores.needed import SideScores, known_non_targets, needed_and
from spklink.tables import write_csv
from spklink.worlds.files import (
    KEY,
    key_rows,
    table_columns,
    table_rows,
    write_key,
    write_table,
)
from spklink.worlds.meetings import Plan, as_meetings, draw_sessions, planned
from spklink.worlds.scorers import WORLDS
from spklink.worlds.shapes import SHAPES, as_table, draw_calls

Floats = NDArray[np.float64]
MEETINGS = "meetings"


@dataclass(frozen=True)
class Simulation:
    """A simulated database and its truth."""

    conversations: Conversations
    links: Links
    llr: Floats  # (P,) of the needed side pairs
    speakers: NDArray[np.int64]  # (sides,) who is on each, an index into `names`
    names: list[str]  # all people: those who are listed, as in the table, then the others
    non_targets: SideScores

    @property
    def truth(self) -> NDArray[np.int8]:
        """(M,) 0 = as listed, 1 = exchanged, -1 = neither: of two people on two channels."""
        refuse_more_than_bits(self.conversations)
        listed = two_each(self.conversations.people)
        there = two_each(self.speakers)
        exchanged = (there == listed[:, ::-1]).all(axis=1)
        return np.where(exchanged, 1, np.where((there == listed).all(axis=1), 0, -1)).astype(
            np.int8
        )

    @property
    def on_side(self) -> list[str]:
        """(sides,) who is on each by name."""
        return [self.names[k] for k in self.speakers.tolist()]

    def table(self) -> list[dict[str, Any]]:
        """The conversations as rows, for `assign`."""
        table = self.conversations
        return _dicts(table_columns(table), table_rows(table, [""] * len(table)))

    def scores(self) -> list[dict[str, Any]]:
        """All scores as rows, for `assign`."""
        return _dicts(COLUMNS, _lines(self.conversations, self.side_scores()))

    def key(self) -> list[dict[str, Any]]:
        """The truth as rows, for `evaluate`."""
        return _dicts(KEY, key_rows(self.conversations, self.on_side))

    def side_scores(self) -> SideScores:
        """The needed scores, then those of known non-targets."""
        return needed_and(self.conversations, self.links, self.llr, self.non_targets)


def _dicts(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def simulate(
    *,
    shape: str = "cgn",
    conversations: int | None = None,
    people: int | None = None,
    tracks: str | int | tuple[int, int] | None = None,
    missing: float = 0.0,
    absent: float = 0.0,
    placeholders: float = 0.0,
    split: float = 0.0,
    world: str = "gaussian",
    eer: float = 7.0,
    seed: int = 0,
) -> Simulation:
    """Make a database; `eer` in per cent. Of shape `meetings` alone: how many people there are,
    tracks a session (`"3-6"`), and shares of people who are missing from the lists, of names listed
    without being there, and of people written as `?`."""
    if shape not in (*SHAPES, MEETINGS):
        raise SpklinkError(f"shape {shape!r} is not one of {', '.join((*SHAPES, MEETINGS))}")
    if world not in WORLDS:
        raise SpklinkError(f"world {world!r} is not one of {', '.join(WORLDS)}")
    if not 0.01 <= eer <= 45.0:
        raise SpklinkError(f"--eer {eer}: an equal error rate between 0.01 and 45 per cent")
    rng = np.random.default_rng(seed)
    shares = {"missing": missing, "absent": absent, "placeholders": placeholders, "split": split}
    if shape == MEETINGS:
        plan = planned(conversations, people, tracks, shares)
        return simulate_meetings(plan, world, eer, rng)
    _refuse_shares({"people": people, "tracks": tracks, **shares})
    return simulate_table(as_table(draw_calls(shape, conversations, rng), rng), world, eer, rng)


def _refuse_shares(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value:
            raise SpklinkError(f"--{name} {value}: is about --shape {MEETINGS} only")


def simulate_table(
    table: Conversations, world: str, eer: float, rng: np.random.Generator
) -> Simulation:
    """A truth and scores for the conversations of a table; `eer` in per cent."""
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    return _scored(table, speakers_on(table, truth), list(table.speakers), world, eer, rng)


def simulate_meetings(plan: Plan, world: str, eer: float, rng: np.random.Generator) -> Simulation:
    """Sessions of several people, and scores between all that their lists link."""
    table, on_side = as_meetings(draw_sessions(plan, rng), plan.people)
    number = {name: k for k, name in enumerate(table.speakers)}
    speakers = np.array([number.setdefault(name, len(number)) for name in on_side], np.int64)
    return _scored(table, speakers, list(number), world, eer, rng)


def _scored(
    table: Conversations,
    speakers: NDArray[np.int64],
    names: list[str],
    world: str,
    eer: float,
    rng: np.random.Generator,
) -> Simulation:
    """Scores of the needed side pairs and of known non-targets, as far as the lists know them."""
    links = find_links(table)
    score = WORLDS[world](speakers, eer / 100.0, rng)
    llr = score(*needed_sides(links, table.sides))
    others = known_non_targets(table, rng)
    return Simulation(table, links, llr, speakers, names, SideScores(*others, score(*others)))


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
    return [listed, path, write_key(folder, table, simulation.on_side)]


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
