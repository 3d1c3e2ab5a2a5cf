"""What `--enrol` is given: a table, or a results folder whose settled sides are the enrolment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.runs.rows import SETTLED
from spklink.tables import Content, Table, csv_bytes, read_table

MOST = 10  # recordings of one person that a folder enrols: those with most speech. A choice
LIKELY = 0.9  # that a track is of the person with this label. A choice
COLUMNS = ("speaker", "audio", "channel", "recording")


def enrolment_table(given: Table | None) -> Content | None:
    """The table of recordings, read once."""
    if given is None:
        return None
    if isinstance(given, str | os.PathLike) and Path(given).is_dir():
        return _of_folder(Path(given))
    return read_table(given, "enrol")


def refuse_nobody(table: Conversations) -> None:
    """Nobody can be named where no name is known."""
    if not table.speakers:
        raise SpklinkError(
            f"{table.path}: no participant is named in any row, so nobody can be; give lists, or "
            "--enrol with recordings of people whom you know"
        )


def _of_folder(folder: Path) -> Content:
    from spklink.runs.folder import load

    result = load(folder)
    table, seconds = result.conversations, None
    if table.diarized:
        raise SpklinkError(
            f"{folder}: its tracks are diarized; enrol recordings of one person each (a table "
            "speaker,audio,channel)"
        )
    if result.listening is not None and result.listening.speech.known:
        seconds = result.listening.speech.seconds
    found: dict[str, list[tuple[float, int]]] = {}
    for side, row in enumerate(result.assignments()):
        if row[-1] == SETTLED and row[2] in set(table.speakers):
            length = 0.0 if seconds is None else float(seconds[side])
            found.setdefault(row[2], []).append((-length, side))
    for label, name, channel, chance in () if result.unknown is None else result.unknown.rows:
        if float(chance) >= LIKELY:  # who has no name is known by the label from now on
            side = int(table.sides.start[table.index()[name]]) + int(channel) - 1
            length = 0.0 if seconds is None else float(seconds[side])
            found.setdefault(label, []).append((-length, side))
    rows: list[tuple[Any, ...]] = []
    for name in sorted(found):
        for _, side in sorted(found[name])[:MOST]:
            rows.append((name, *_recording(table, side, folder)))
    if not rows:
        raise SpklinkError(f"{folder}: no side is settled, so nobody can be enrolled from it")
    return Content(folder / "enrol.csv", csv_bytes(COLUMNS, rows))


def _recording(table: Conversations, side: int, folder: Path) -> tuple[str, Any, str]:
    """File, channel and name of a side."""
    m, track = int(table.sides.conversation[side]), int(table.sides.position[side])
    files, several = table.audio[m], len(table.audio[m]) > 1
    file = files[track if several else 0] if files else ""
    alone = several or int(table.sides.counts[m]) == 1
    channel = "" if alone and not _chosen(table, m) else (_chosen(table, m) or track + 1)
    return file, channel, f"{table.ids[m]}-{track + 1}"


def _chosen(table: Conversations, m: int) -> int | None:
    """The channel of its file that a recording is, from 1."""
    channel = table.channel[m] if table.channel else None
    return None if channel is None else channel + 1
