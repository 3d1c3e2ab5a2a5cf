"""The inputs of a run: each table is read once, and what was read is what is hashed and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spklink.options import relative
from spklink.streams import Stream
from spklink.tables import Content, Table, read_table


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


def read_inputs(
    tables: Mapping[str, Table | None],
    files: Mapping[str, Any] | None = None,
    measured_by: Mapping[str, Table | None] | None = None,
) -> Inputs:
    """Read all tables now, before any long work; `files` were read already, or will be once."""
    found: dict[str, Content | Given | Passing] = {**_read(tables)}
    for name, path in (files or {}).items():
        if isinstance(path, Content | Passing):
            found[name] = path
    return Inputs(found, _read(measured_by or {}))


def _read(tables: Mapping[str, Table | None]) -> dict[str, Content]:
    return {name: read_table(table, name) for name, table in tables.items() if table is not None}
