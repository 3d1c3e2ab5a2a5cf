"""People nobody knows by name who are heard again: unknown-1, unknown-2, … in unknown.csv.

Tracks that are someone else's are partitioned into people (room `partitions`): tracks of one
conversation are never one person, and whoever has a name is not among them. A block of two tracks
or more is a person who recurs, and gets a label; a track that is alone gets none.

Labels are kept. Where the results folder has labels already, a block that shares tracks with an
earlier one has the label of the one it shares most with; all others get new numbers, in the order
of their first tracks. No number is given twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.json_files import ANYTHING, read_json
from spklink.partitions.items import make_items, make_problem
from spklink.partitions.prior import PartitionPrior
from spklink.partitions.solve import How, solve_partition
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.result_tables import KeptTables
from spklink.runs.names import Voices
from spklink.tables import probability_text, read_cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Side = tuple[str, int]  # conversation and channel, as files have them
UNKNOWN = ("label", "conversation", "channel", "probability")
KINDS = (str, str, int, float)
NAME = "unknown-"
PRIOR = PartitionPrior("crp", 1.0)  # who was heard often is heard again
SAMPLED = 400  # tracks; more are linked two at a time, as chains would take minutes. A choice
MOST = 2000  # tracks whose pairs are all compared: a choice that bounds the time
MANY = (
    f"someone else is on {{count:,}} tracks; who of them is heard again is told of up to {MOST:,}: "
    "spklink partition"
)


@dataclass(frozen=True)
class Earlier:
    """Labels that were given before."""

    label: Mapping[Side, str] = field(default_factory=dict)
    last: int = 0  # number


NOTHING_EARLIER = Earlier()


@dataclass(frozen=True)
class Unknown:
    """Who recurs without a name."""

    rows: list[tuple[Any, ...]]  # of unknown.csv
    tracks: int  # on which someone else is
    last: int  # number that was given
    note: str = ""

    def as_json(self) -> dict[str, int]:
        people = len({row[0] for row in self.rows})
        return {"people": people, "tracks": len(self.rows), "of": self.tracks, "last": self.last}


def earlier_labels(folder: Path | None) -> Earlier:
    """Those in a results folder, as far as it has any; a run must not fail for them."""
    if folder is None or not KeptTables(folder).there("unknown"):
        return NOTHING_EARLIER
    run = read_json(folder / "run.json", {"result": ANYTHING, "options": ANYTHING}, "")
    kept = KeptTables(folder, bool((run["options"] or {}).get("safe_csv", False)))
    rows = read_cells(kept.table("unknown"), dict(zip(UNKNOWN, KINDS, strict=True)))
    said = (run["result"] or {}).get("unknown") or {}
    numbers = [_number(row[0]) for row in rows]
    last = max([int(said.get("last", 0)), *numbers], default=0)
    return Earlier({(row[1], row[2]): row[0] for row in rows}, last)


def _number(label: str) -> int:
    found = re.fullmatch(NAME + r"(\d{1,9})", label)
    return int(found[1]) if found else 0


def find_unknown(
    answer: Answer,
    voices: Voices,
    usable: Mask,
    weight: Weight,
    how: Options,
    before: Earlier,
) -> Unknown:
    """All groups, one after the other."""
    table = answer.table
    asked = table.sides.conversation < table.asked
    strange = (answer.speaker() == STRANGER) & (answer.stranger.chance > 0.5) & usable & asked
    sides = np.flatnonzero(strange)
    last = max([before.last, *map(_number, table.speakers)])  # enrolled from an earlier folder
    if len(sides) > MOST:
        return Unknown([], len(sides), last, MANY.format(count=len(sides)))
    blocks: list[tuple[Ints, Floats]] = []
    group = table.group[table.sides.conversation[sides]]
    for g in np.unique(group).tolist():
        blocks += _blocks(sides[group == g], answer, voices, weight, how)
    blocks.sort(key=lambda block: int(block[0][0]))
    labels, last = _labelled(
        [_names(answer, own) for own, _ in blocks], Earlier(before.label, last)
    )
    rows = [
        (label, *name, probability_text(chance))
        for label, (own, chances) in zip(labels, blocks, strict=True)
        for name, chance in zip(_names(answer, own), chances.tolist(), strict=True)
    ]
    return Unknown(sorted(rows, key=lambda row: _number(row[0])), len(sides), last)


def _blocks(
    sides: Ints, answer: Answer, voices: Voices, weight: Weight, how: Options
) -> list[tuple[Ints, Floats]]:
    """The sides of everybody who recurs, and how probable each is theirs."""
    if len(sides) < 2:
        return []
    one, two = np.triu_indices(len(sides), 1)
    llr = np.zeros((len(sides), len(sides)))
    llr[one, two] = llr[two, one] = np.nan_to_num(voices(sides[one], sides[two]))
    call = answer.table.sides.conversation[sides]
    together = call[one] == call[two]
    apart = np.stack([one[together], two[together]], axis=1)
    rule = Weight() if weight.consecutive else weight
    problem = make_problem(make_items(llr, apart=apart), rule, PRIOR)
    method = "auto" if len(sides) <= SAMPLED else "agglomerative"
    found = solve_partition(problem, How(method, seed=how.seed, threads=how.workers))
    chance = found.side.value * answer.stranger.chance[sides]
    members = [np.flatnonzero(found.label == k) for k in range(found.speakers)]
    return [(sides[own], chance[own]) for own in members if len(own) > 1]


def _names(answer: Answer, sides: Ints) -> list[Side]:
    table = answer.table
    calls, tracks = table.sides.conversation[sides], table.sides.position[sides]
    return [(table.ids[m], k + 1) for m, k in zip(calls.tolist(), tracks.tolist(), strict=True)]


def _labelled(blocks: list[list[Side]], before: Earlier) -> tuple[list[str], int]:
    """The label of every block, and the last number: where two claim an earlier label, it is that
    of the one with more of its tracks."""
    claims: list[tuple[int, int, str]] = []
    for k, block in enumerate(blocks):
        shared = Counter(before.label[side] for side in block if side in before.label)
        claims += [(-count, k, label) for label, count in shared.items()]
    found: dict[int, str] = {}
    taken: set[str] = set()
    for _, k, label in sorted(claims):
        if k not in found and label not in taken:
            found[k] = label
            taken.add(label)
    last = before.last
    for k in range(len(blocks)):
        if k not in found:
            last += 1
            found[k] = f"{NAME}{last}"
    return [found[k] for k in range(len(blocks))], last
