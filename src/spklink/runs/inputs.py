"""The inputs of a run: each table is read once, and what was read is what is hashed and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from spklink.columns import Columns
from spklink.file_names import joined, led
from spklink.options import relative
from spklink.sound.places import is_remote
from spklink.streams import Stream
from spklink.table_forms import known_encoding
from spklink.tables import (
    AS_IT_IS,
    SEPARATOR,
    Content,
    Reading,
    Table,
    csv_bytes,
    open_table,
    plain_bytes,
    read_table,
)
from spklink.texts import Texts
from spklink.whole_columns import Whole, divided, whole_columns
from spklink.written_columns import Column, columns_bytes

TRANSCRIPTS = ("turns", "tracks")  # need not be tables
TABLES = ("", ".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xlsm", ".parquet", ".jsonl", ".json")


@dataclass(frozen=True)
class Given:
    """A file of which only name and hash are known: an earlier run read it."""

    path: Path
    sha256: str
    file: bool = True


class Passing(Stream):
    """A file that is read once, later: its hash is known then."""

    file = True


@dataclass(frozen=True)
class Inputs:
    """Everything a run was given, by the name of its option."""

    given: Mapping[str, Content | Given | Passing]
    measured_by: Mapping[str, Content] = field(default_factory=dict)  # nothing depends on these

    def table(self, name: str) -> Content | None:
        """A table as it was read; None where none was given."""
        found = self.given.get(name, self.measured_by.get(name))
        return found if isinstance(found, Content) else None

    def said(self) -> list[str]:
        """How tables are written that are not plain, for somebody who may want to object."""
        every = {**self.given, **self.measured_by}.items()
        tables = (one for name, one in every if name not in TRANSCRIPTS)
        return [
            f"{one.path.name} read as {one.form}"
            for one in tables
            if isinstance(one, Content) and one.path.suffix.lower() in TABLES
            if not one.form.plain
        ]

    def with_files(self, more: Mapping[str, Given | Passing]) -> Inputs:
        """With files that were read on the way."""
        return replace(self, given={**self.given, **more})

    def as_json(self, folder: Path) -> dict[str, dict[str, str | None]]:
        """Where each file is, seen from a folder, and its hash."""
        return {
            name: {
                "file": relative(one.path, folder) if one.file else None,
                "sha256": one.sha256,
            }
            for name, one in self.given.items()
        }


def reading(asked: Mapping[str, Any]) -> Reading:
    """How tables are to be read, from the options of a command."""
    columns = Columns.parsed(asked.get("columns"), asked.get("audio"))
    if (encoding := asked.get("encoding")) is not None:
        known_encoding(encoding)
    return Reading(columns, encoding)


def read_labels(table: Table | None, asked: Mapping[str, Any]) -> Content | None:
    """A key or claims, which no run depends on."""
    return None if table is None else read_table(table, "labels", reading(asked))


def read_inputs(
    tables: Mapping[str, Table | None],
    files: Mapping[str, Any] | None = None,
    measured_by: Mapping[str, Table | None] | None = None,
    how: Reading = AS_IT_IS,
) -> Inputs:
    """Read all tables now, before any long work; `files` were read already, or will be once. What
    is said about columns must be true of the conversations; others may lack some of them."""
    strict = replace(how, columns=replace(how.columns, strict=True))
    others = replace(how, columns=replace(how.columns, pattern=""))
    found: dict[str, Content | Given | Passing] = {}
    for name, table in tables.items():
        if table is not None:
            found[name] = read_table(table, name, strict if name == "conversations" else others)
    for name, path in (files or {}).items():
        if isinstance(path, Content | Passing):
            found[name] = path
    measured = {
        name: read_table(table, name, others)
        for name, table in (measured_by or {}).items()
        if table is not None
    }
    return Inputs(found, measured)


def seen_from(table: Content, folder: Path) -> bytes:
    """A table of conversations whose paths of recordings lead to them from another folder."""
    home = table.path.parent if table.file else Path()
    if (many := whole_columns(table, None)) is not None:
        return _many_seen_from(many, home, folder)
    with open_table(table) as (header, rows):
        at = header.column("audio")
        if at < 0:
            return plain_bytes(table)
        kept = [fields for _, fields in rows]
        for fields in kept:
            files = [name.strip() for name in fields[at].split(SEPARATOR)]
            there = [_from_folder(home, name, folder) if name else "" for name in files]
            fields[at] = SEPARATOR.join(there)
        return csv_bytes(header.names, kept)


def _many_seen_from(table: Whole, home: Path, folder: Path) -> bytes:
    """The same by columns: the way to a folder is worked out once for all that is in it."""
    names, columns = table.header.names, dict(table.columns)
    if "audio" in names:
        files, counts = divided(table.column("audio"))
        there = Texts.of_arrow(files)
        moved = led(there, lambda name: _from_folder(home, name, folder), folder)
        columns["audio"] = joined(moved, counts).arrow()
    rows = np.arange(table.count)
    return columns_bytes(names, [Column(Texts.of_arrow(columns[n]), rows) for n in names])


def _from_folder(home: Path, name: str, folder: Path) -> str:
    """The name of a recording seen from another folder; one elsewhere is where it is."""
    if not is_remote(name):
        return relative(home / name, folder)
    first, mark, archive = name.rpartition("::")
    here = not mark or "://" in archive
    return name if here else f"{first}{mark}{relative(home / archive, folder)}"
