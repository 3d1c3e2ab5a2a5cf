"""What is known of people: a table speaker,… with a column an attribute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.tables import Table, open_table, require_columns, wrong_length

UNKNOWN = -1


@dataclass(frozen=True)
class Attribute:
    """One column: what each speaker of a database has there."""

    name: str
    values: list[str]
    value: NDArray[np.int64]  # (speakers,) which of them; UNKNOWN where it is not said


def read_attributes(
    source: Table | None, asked: str | None, table: Conversations
) -> list[Attribute]:
    """The columns that were asked for. Speakers of other databases may be in the table too."""
    names = [name.strip() for name in (asked or "").split(",") if name.strip()]
    if source is None or not names:
        if source is None and not names:
            return []
        missing = "--speakers FILE" if source is None else "--attribute sex,…"
        raise SpklinkError(f"--speakers and --attribute go together; {missing} is missing")
    if len(set(names)) < len(names):
        raise SpklinkError(f"--attribute {asked}: a column twice")
    cells = _cells(source, names)
    found = []
    for k, name in enumerate(names):
        said = [cells.get(who, [""] * len(names))[k] for who in table.speakers]
        values = sorted(set(said) - {""})
        value = np.array([values.index(v) if v else UNKNOWN for v in said], np.int64)
        found.append(Attribute(name, values, value))
    return found


def _cells(source: Table, names: list[str]) -> dict[str, list[str]]:
    problems, found, rows_of = Problems(), dict[str, list[str]](), dict[str, int]()
    with open_table(source, "speakers") as (header, rows):
        require_columns(header, ["speaker", *names])
        at = [header.column(name) for name in ("speaker", *names)]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            who, *values = (fields[k].strip() for k in at)
            if not who:
                problems.append(f"row {number}: an empty speaker")
            elif rows_of.setdefault(who, number) != number:
                problems.append(f"row {number}: speaker {who!r} is already in row {rows_of[who]}")
            found[who] = values
    if not found and not problems:
        problems.append("no speakers below the header")
    if problems:
        raise problems_in(header.path, problems)
    return found
