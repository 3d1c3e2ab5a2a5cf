"""The table and the key of a made database, as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.lists import CERTAIN, OPEN, POSSIBLE, UNKNOWN
from spklink.database.sides import names_on
from spklink.tables import SEPARATOR, write_csv

TABLE = ("conversation", "audio", "participants")
LONG = ("conversation", "audio", "tracks", "speaker", "status", "probability")
KEY = ("conversation", "channel", "speaker")


def table_rows(table: Conversations, audio: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Rows of conversations.csv, with the name of a sound file for each or an empty text."""
    for m, (name, file) in enumerate(zip(table.ids, audio, strict=True)):
        yield name, file, SEPARATOR.join(table.names(m))


def long_rows(
    table: Conversations, audio: Iterable[str]
) -> Iterator[tuple[str, str, int, str, str, float | str]]:
    """The same of lists and tracks of any kind, a row an entry."""
    tracks = table.sides.counts.tolist()
    for m, (name, file) in enumerate(zip(table.ids, audio, strict=True)):
        here = table.listing.of(m)
        for person, possible, chance in zip(
            table.names(m), table.possible[here], table.presence[here].tolist(), strict=True
        ):
            status, said = (POSSIBLE, chance) if possible else (CERTAIN, "")
            yield name, file, tracks[m], person, status, said
        for status in [UNKNOWN] * int(table.unknown[m]) + [OPEN] * int(table.open[m]):
            yield name, file, tracks[m], "", status, ""


def key_rows(table: Conversations, truth: NDArray[np.int8]) -> Iterator[tuple[str, int, str]]:
    """Rows of key.csv: who is on which channel, counted from 1."""
    for m, name in enumerate(table.ids):
        for channel, speaker in enumerate(names_on(table, m, int(truth[m])), start=1):
            yield name, channel, speaker


def write_table(folder: Path, table: Conversations, audio: Iterable[str]) -> Path:
    """conversations.csv: in the wide form where that says everything."""
    path = folder / "conversations.csv"
    if table.plain:
        write_csv(path, TABLE, table_rows(table, audio))
    else:
        write_csv(path, LONG, long_rows(table, audio))
    return path


def write_key(folder: Path, table: Conversations, truth: NDArray[np.int8]) -> Path:
    path = folder / "key.csv"
    write_csv(path, KEY, key_rows(table, truth))
    return path
