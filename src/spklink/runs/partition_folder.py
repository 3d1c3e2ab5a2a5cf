"""A folder of a partition: written whole, run.json last; read back without anything else."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink import __version__
from spklink.database.conversations import Conversations, segment_rows
from spklink.database.segments import COLUMNS as SEGMENTS
from spklink.database.side_names import read_known_pairs, read_without_lists
from spklink.database.sides import SideFinder, pairs_within
from spklink.errors import SpklinkError
from spklink.json_files import ANYTHING, Each, read_json
from spklink.options import options_json
from spklink.partitions.items import Ints, Problem, make_items, make_problem
from spklink.partitions.prior import read_prior
from spklink.posterior.likelihood import Weight
from spklink.result_tables import file_names
from spklink.runs.folder import ANEW, RUN_FILE, make_folder
from spklink.runs.folder_files import kept_tables, new_tables
from spklink.runs.inputs import seen_from
from spklink.runs.partition_result import COLUMNS, COUNT_COLUMNS, PAIR_COLUMNS, Partition
from spklink.scores.files import read_pairs, write_scores
from spklink.scores.needed import SideScores
from spklink.settings import PartitionOptions
from spklink.sound.listening import PROBLEMS, problem_rows
from spklink.sound.speech_table import COLUMNS as SIDES
from spklink.sound.speech_table import speech_rows
from spklink.tables import (
    aside,
    csv_bytes,
    read_cells,
    write_bytes,
    write_json,
)

Floats = NDArray[np.float64]
COMMAND = "partition"
KEPT_PAIRS = "known_pairs.csv"
FILES = (
    *("conversations.csv", "tracks.csv", KEPT_PAIRS, "llrs.npz", "scores.npz"),
    *("calibration.json", "report.html", "timings.json"),
    *file_names("sides", "problems", "partition", "pairs", "speakers"),
)
RUN = {
    "spklink": str,
    "versions": Each(str),
    "command": str,
    "options": Each((str, bool, float, None)),
    "inputs": Each({"file": (str, None), "sha256": str}),
    "recognizer?": ANYTHING,
    "weight": {"rule": str, "beta": (float, None)},
    "prior": str,
    "result": ANYTHING,
    "notes": [str],
}


def write_partition(found: Partition, folder: Path) -> Path:
    """All files of a partition."""
    make_folder(folder)
    with aside(folder) as new:
        with found.stages.stage("writing the results"):
            _write_files(found, new, folder)
        write_json(new / "timings.json", found.stages.timings())
        write_json(new / RUN_FILE, run_json(found, folder))
        (folder / RUN_FILE).unlink(missing_ok=True)
        for name in FILES:
            if (new / name).exists():
                (new / name).replace(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)  # nothing of an earlier run survives
        (new / RUN_FILE).replace(folder / RUN_FILE)
    return folder


def _write_files(found: Partition, new: Path, folder: Path) -> None:
    table, tables = found.conversations, new_tables(new, found.options)
    content, pairs = found.inputs.table("conversations"), found.inputs.table("pairs")
    assert content is not None
    write_bytes(new / "conversations.csv", seen_from(content, folder))
    if found.inputs.table("tracks") is not None:
        write_bytes(new / "tracks.csv", csv_bytes(SEGMENTS, segment_rows(table)))
    if pairs is not None:
        write_bytes(new / KEPT_PAIRS, pairs.data)
    if found.llr is not None:
        write_scores(new / "llrs.npz", table, _listed(found, found.llr))
    if found.scores is not None:
        write_scores(new / "scores.npz", table, _listed(found, found.scores))
    if found.calibration is not None:
        write_json(new / "calibration.json", found.calibration)
    if found.sound is not None:
        tables.rows("sides", SIDES, speech_rows(table, found.sound.table()))
        tables.rows("problems", PROBLEMS, problem_rows(table, found.sound))
    tables.rows("partition", COLUMNS, found.rows())
    tables.rows("pairs", PAIR_COLUMNS, found.pair_rows())
    tables.rows("speakers", COUNT_COLUMNS, found.count_rows())


def _listed(found: Partition, scores: Floats) -> SideScores:
    """The upper half of a matrix, by sides; pairs without a score are left out."""
    one, two = np.triu_indices(len(found.used), 1)
    there = ~np.isnan(scores[one, two])
    one, two = one[there], two[there]
    return SideScores(found.used[one], found.used[two], scores[one, two])


def run_json(found: Partition, folder: Path) -> dict[str, Any]:
    """What was run on what: all that is needed to do it again, and no clock time."""
    heard = {} if found.recognizer is None else {"recognizer": found.recognizer}
    return {
        "spklink": __version__,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numba", "numpy", "scipy")},
        "command": COMMAND,
        "options": options_json(PartitionOptions, found.options, folder),
        "inputs": found.inputs.as_json(folder),
        **heard,
        "weight": {"rule": found.weight.rule, "beta": found.weight.beta},
        "prior": str(found.prior),
        "result": found.summary(),
        "notes": found.notes,
    }


def is_partition(folder: str | PathLike[str]) -> bool:
    """Whether a results folder is that of a partition."""
    path = Path(folder) / RUN_FILE
    try:
        return bool(read_json(path, ANYTHING, "").get("command") == COMMAND)
    except (SpklinkError, AttributeError):
        return False  # whoever reads it next says what is wrong


@dataclass(frozen=True)
class Saved:
    """A partition as a folder has it."""

    conversations: Conversations
    run: dict[str, Any]
    label: Ints  # (S,) the block of every side, -1 where it is not used
    one: Ints  # pairs.csv, by sides
    two: Ints
    chance: Floats
    count: list[tuple[int, float]]  # speakers.csv
    problem: Problem | None  # of the used sides; None of very many

    @property
    def used(self) -> Ints:
        return np.flatnonzero(self.label >= 0)


def read_partition(folder: str | PathLike[str]) -> Saved:
    """A folder that `partition` wrote, checked."""
    folder = Path(folder)
    run = read_json(folder / RUN_FILE, RUN, f"results of another version of spklink? {ANEW}")
    if run["command"] != COMMAND:
        raise SpklinkError(f"{folder / RUN_FILE}: command {run['command']!r} is not {COMMAND}")
    tracks = folder / "tracks.csv"
    known = tracks if tracks.exists() else None
    table = read_without_lists(folder / "conversations.csv", known)
    kept, find = kept_tables(folder, run), SideFinder(table)
    names: dict[str, int] = {}
    label = np.full(len(table.sides), -1, np.int64)
    columns = {"conversation": str, "channel": str, "label": str}
    for call, channel, name in read_cells(kept.table("partition"), columns):
        side = find(call, channel)
        if side < 0:
            raise SpklinkError(f"{kept.path('partition')}: {call!r} is in no table; {ANEW}")
        if name:
            label[side] = names.setdefault(name, len(names))
    kinds = dict.fromkeys(PAIR_COLUMNS[:4], str) | {"probability": float}
    pairs = read_cells(kept.table("pairs"), kinds)
    one, two = (
        find.all_of([row[k] for row in pairs], [row[k + 1] for row in pairs]) for k in (0, 2)
    )
    if len(pairs) and min(one.min(), two.min()) < 0:
        raise SpklinkError(f"{kept.path('pairs')}: a side that is in no table; {ANEW}")
    counts = read_cells(kept.table("speakers"), {"speakers": int, "probability": float})
    chance = np.array([row[4] for row in pairs], np.float64)
    problem = _problem(folder, run, table, np.flatnonzero(label >= 0))
    numbers = [(int(row[0]), float(row[1])) for row in counts]
    return Saved(table, run, label, one, two, chance, numbers, problem)


def _problem(folder: Path, run: dict[str, Any], table: Conversations, used: Ints) -> Problem | None:
    """What the posterior was computed from, out of the folder."""
    if not (folder / "llrs.npz").exists():
        return None
    kept = read_pairs(folder / "llrs.npz", table)
    place = np.full(len(table.sides), -1)
    place[used] = np.arange(len(used))
    llr = np.zeros((len(used), len(used)))
    one, two = place[kept.side_1], place[kept.side_2]
    llr[one, two] = llr[two, one] = kept.score
    together = apart = np.zeros((0, 2), np.int64)
    if (folder / KEPT_PAIRS).exists():
        together, apart = read_known_pairs(folder / KEPT_PAIRS, table)
    if run["options"].get("level") == 3:
        apart = np.concatenate([pairs_within(table.sides), apart])
    known = [place[pairs][(place[pairs] >= 0).all(axis=1)] for pairs in (together, apart)]
    try:
        weight = Weight(run["weight"]["rule"], run["weight"]["beta"])
        items = make_items(llr, together=known[0], apart=known[1])
        speakers = run["result"].get("speakers_given")
        return make_problem(items, weight, read_prior(run["prior"]), speakers)
    except (SpklinkError, AttributeError) as error:
        raise SpklinkError(f"{folder / RUN_FILE}: {error}; {ANEW}") from None
