"""The table and the key of a made database, as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spklink.database.conversations import Conversations
from spklink.database.lists import (
    CERTAIN,
    LIKELY,
    OPEN,
    OTHERS,
    POSSIBLE,
    SOMEBODY,
    UNKNOWN,
)
from spklink.tables import SEPARATOR, write_csv

TABLE = ("conversation", "audio", "participants")
TRACKS = "tracks"  # a further column where a table is not plain
LONG = ("conversation", "audio", "tracks", "speaker", "status", "probability")
KEY = ("conversation", "channel", "speaker")


def table_columns(table: Conversations) -> tuple[str, ...]:
    return TABLE if table.plain else (*TABLE, TRACKS)


def table_rows(table: Conversations, audio: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Rows of conversations.csv, with the name of a sound file for each or an empty text."""
    for m, (name, file) in enumerate(zip(table.ids, audio, strict=True)):
        row = name, file, SEPARATOR.join(_entries(table, m))
        yield row if table.plain else (*row, str(table.sides.counts[m]))


def _entries(table: Conversations, m: int) -> Iterator[str]:
    """One participant list as it is written; whoever is possible is so with one half."""
    for name, possible in zip(table.names(m), table.possible[table.listing.of(m)], strict=True):
        yield f"{SOMEBODY}{name}" if possible else name
    yield from [SOMEBODY] * int(table.unknown[m])
    if table.open[m]:
        yield OTHERS


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


def key_rows(table: Conversations, on_side: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Rows of key.csv: who is on which channel, counted from 1; `on_side` has a name a side."""
    for side, (m, track) in enumerate(
        zip(table.sides.conversation.tolist(), table.sides.position.tolist(), strict=True)
    ):
        yield table.ids[m], track + 1, on_side[side]


def write_table(
    folder: Path, table: Conversations, audio: Iterable[str], name: str = "conversations.csv"
) -> Path:
    """conversations.csv: in the wide form where that says everything."""
    path = folder / name
    if (table.presence[table.possible] == LIKELY).all():
        write_csv(path, table_columns(table), table_rows(table, audio))
    else:
        write_csv(path, LONG, long_rows(table, audio))
    return path


def write_key(folder: Path, table: Conversations, on_side: Sequence[str]) -> Path:
    path = folder / "key.csv"
    write_csv(path, KEY, key_rows(table, on_side))
    return path
