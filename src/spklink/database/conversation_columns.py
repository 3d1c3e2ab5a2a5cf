"""Columns that a table of conversations must have, and seems to have under other names."""

from __future__ import annotations

from spklink.column_words import PEOPLE
from spklink.columns import Guess
from spklink.tables import Header, Table, guessed, open_table


def needed_columns(header: Header) -> tuple[str, str]:
    """The columns that a table must have: those of the wide form, unless it has a column with one
    person a row."""
    person = next((n for n in ("participant", "speaker") if header.column(n) >= 0), "")
    wide = header.column(PEOPLE) >= 0 or not person
    return "conversation", PEOPLE if wide else person


def seem_listed(header: Header, needed: tuple[str, str]) -> bool:
    """Whether a table without our columns for people seems to have others for them."""
    if needed[1] in header.names:
        return False
    return any(role in (PEOPLE, "speaker") for role, _ in guessed(header, needed).columns.entries)


def column_guess(table: Table) -> Guess | None:
    """What the columns of a table of conversations might be; None where they are called as ours."""
    with open_table(table, "conversations") as (header, _):
        needed = needed_columns(header)
        return None if set(needed) <= set(header.names) else guessed(header, needed)
