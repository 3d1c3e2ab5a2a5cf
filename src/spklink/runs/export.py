"""Results in formats of others: who speaks when, by name.

Segments are those of segments.csv, of a table that is given or, of diarized tracks, those of the
diarization. Only what is settled is written, or everything that has a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.database.sides import SideFinder
from spklink.errors import SpklinkError, check_folder
from spklink.formats.out.labelled import Labelled, LabelledSide, is_elsewhere
from spklink.formats.out.names import COLUMNS, Names
from spklink.formats.out.table import writer
from spklink.options import checked, described, resolved
from spklink.result_tables import KeptTables
from spklink.runs.export_folder import replaced
from spklink.runs.folder import ANEW, read_people
from spklink.runs.folder_files import kept_tables
from spklink.runs.listening_files import SEGMENTS
from spklink.runs.partition_folder import is_partition
from spklink.runs.rows import ASSIGNMENTS, SETTLED
from spklink.runs.stages import Stages
from spklink.settings import ExportOptions, To, described_as
from spklink.sound.headers import header_of
from spklink.sound.speech_marks import SpeechMarks, joined, read_speech_marks
from spklink.tables import read_cells, write_csv

NAMES = "names.csv"  # those that a format could not carry
KINDS = dict.fromkeys(ASSIGNMENTS, str) | dict.fromkeys(("probability", "low", "high"), float)


@dataclass(frozen=True)
class Exported:
    """What was written."""

    to: str
    folder: Path
    sides: int
    segments: int
    hours: float  # of speech
    left_out: Mapping[str, int]  # sides, by their decision
    silent: int  # sides with a name and no segment
    changed: int  # names that had to be written otherwise

    def as_json(self) -> dict[str, Any]:
        return {
            "to": self.to,
            "out": str(self.folder),
            "sides": self.sides,
            "segments": self.segments,
            "speech_hours": round(self.hours, 4),
            "left_out": dict(self.left_out),
            "without_speech": self.silent,
            "changed_names": self.changed,
        }


@described(ExportOptions)
def export(
    results: str | PathLike[str],
    out: str | PathLike[str],
    to: str,
    *,
    stages: Stages | None = None,
    **options: Unpack[ExportOptions],
) -> Exported:
    """Write the results of a folder in another format, into a folder of its own.

    `to` is one of kaldi, lhotse, rttm, textgrid, elan, ctm, nist, parquet, stm.
    """
    asked, stages = resolved(ExportOptions, options), stages or Stages()
    about = described_as(To)
    assert about is not None
    to = checked("to", *about, to)
    folder = check_folder(out)
    with replaced(folder, Path(results), to) as new:
        with stages.stage("reading the results"):
            source = _read(Path(results), asked)
        with stages.stage(f"writing {to}"):
            writer(to)(source.labelled, new)
            names = source.labelled.names
            if names.changed:
                write_csv(new / NAMES, COLUMNS, names.rows())
    times = [side.times for side in source.labelled.sides]
    return Exported(
        to=to,
        folder=folder,
        sides=len(times),
        segments=sum(map(len, times)),
        hours=sum(int((one[:, 1] - one[:, 0]).sum()) for one in times) / 3.6e6,
        left_out=source.left_out,
        silent=source.silent,
        changed=len(names.changed),
    )


@dataclass(frozen=True)
class _Source:
    labelled: Labelled
    left_out: Mapping[str, int]
    silent: int


def _read(folder: Path, asked: ExportOptions) -> _Source:
    if is_partition(folder):
        raise SpklinkError(f"{folder}: results of partition; export takes those of link and assign")
    run, table = read_people(folder)
    kept = kept_tables(folder, run)
    marks = _marks(kept, table, asked["segments"])
    rows = _rows(kept, table)
    whole, people = asked["only"] == "all", set(table.speakers)
    left_out = Counter(row["decision"] for row in rows if not _wanted(row, whole=whole))
    sides = [
        one
        for side, row in enumerate(rows)
        if _wanted(row, whole=whole)
        for one in [_labelled(table, side, row, marks, asked, people)]
    ]
    spoken = [one for one in sides if len(one.times)]
    return _Source(
        Labelled(spoken, whole, _about(table), header_of, Names()),
        dict(left_out),
        len(sides) - len(spoken),
    )


def _wanted(row: Mapping[str, Any], *, whole: bool) -> bool:
    """A side that is not used has no name."""
    return bool(row["speaker"]) and (whole or row["decision"] == SETTLED)


def _rows(kept: KeptTables, table: Conversations) -> list[dict[str, Any]]:
    """The rows of assignments.csv, one a side, in their order."""
    find, found, path = SideFinder(table), {}, kept.path("assignments")
    for cells in read_cells(kept.table("assignments"), KINDS):
        row = dict(zip(KINDS, cells, strict=True))
        side = find(row["conversation"], row["channel"])
        if side < 0 or side in found:
            place = f"{row['conversation']!r} channel {row['channel']}"
            raise SpklinkError(f"{path}: {place} is twice there, or not in the table; {ANEW}")
        found[side] = row
    sides = int(table.sides.start[table.asked])
    if len(found) != sides:
        raise SpklinkError(f"{path}: {len(found)} rows where the table has {sides} sides; {ANEW}")
    return [found[side] for side in range(len(found))]


def _marks(kept: KeptTables, table: Conversations, given: Any) -> SpeechMarks:
    """When every side speaks."""
    if given is not None:
        return read_speech_marks(given, table)
    if table.diarized:
        return SpeechMarks.of(_diarized(table))
    if kept.there(SEGMENTS):
        return read_speech_marks(kept.table(SEGMENTS), table)
    raise SpklinkError(
        f"{kept.folder}: nothing says when anybody speaks ({SEGMENTS}.csv is missing): if these "
        "are results of link by an earlier version, run the same command again (what was heard is "
        "kept, so it is quick); if scores or vectors were given, give --segments "
        "conversation,channel,start,end"
    )


def _diarized(table: Conversations) -> Iterator[Any]:
    for m, one in enumerate(table.diarized):
        for track in range(int(table.sides.counts[m])):
            own = sorted((start, end) for k, start, end in one.turns if k == track)
            times = np.rint(1000.0 * np.array(own, np.float64)).astype(np.int64)
            yield joined(times[times[:, 1] > times[:, 0]] if own else times, 0)


def _labelled(
    table: Conversations,
    side: int,
    row: Mapping[str, Any],
    marks: SpeechMarks,
    asked: ExportOptions,
    people: set[str],
) -> LabelledSide:
    listed = row["speaker"] != OTHERS
    track = int(table.sides.position[side])
    times = joined(marks.of_side(side), round(1000 * asked["join"]))
    long = times[:, 1] - times[:, 0] >= round(1000 * asked["shortest"])
    return LabelledSide(
        conversation=row["conversation"],
        track=track,
        speaker=row["speaker"] if listed else _stranger(people, row["conversation"], track),
        listed=listed,
        probability=row["probability"],
        low=row["low"],
        high=row["high"],
        decision=row["decision"],
        origin=row["origin"],
        times=times[long],
    )


def _stranger(people: set[str], conversation: str, track: int) -> str:
    """Whoever is on a side without being listed: nobody else's name."""
    name = f"unknown-{conversation}-{track + 1}"
    while name in people:
        name = f"unknown-{name}"
    return name


def _about(table: Conversations) -> Callable[[str], tuple[tuple[str, ...], int, bool]]:
    where, home = table.index(), table.path.parent

    def place(file: str) -> str:
        return file if is_elsewhere(file) else str(Path(home, file).resolve())

    def about(name: str) -> tuple[tuple[str, ...], int, bool]:
        m = where[name]
        files = tuple(place(file) for file in table.audio[m] if file)
        return files, int(table.sides.counts[m]), bool(table.diarized)

    return about
