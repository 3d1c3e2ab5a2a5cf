"""A question where a guess needs a person: what the columns of a table are.

Asked in a terminal only; elsewhere the reader of the table says which words would answer it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from os import PathLike
from typing import Any, TypeVar

from spklink.words import for_screen

Asked = TypeVar("Asked")


def asked_table(table: str | PathLike[str], options: Asked) -> tuple[Any, Asked]:
    """The table, read once, and the options with the answer in them, so that results tell it."""
    from spklink.columns import Columns
    from spklink.database.conversation_columns import column_guess
    from spklink.runs.inputs import reading
    from spklink.tables import read_table

    given: Any = options
    how = reading(given)
    content = read_table(table, "conversations", replace(how, columns=_strict(how.columns)))
    if how.columns or not _there_is_somebody():
        return content, options
    guess = column_guess(content)
    if guess is None or not guess.whole:
        return content, options
    said = _answer(str(content.path), str(content.form), guess.columns)
    how = replace(how, columns=_strict(Columns.parsed(said)))
    return replace(content, how=how), given | {"columns": said}


def _strict(columns: Any) -> Any:
    return replace(columns, strict=True)


def _there_is_somebody() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _answer(path: str, form: str, columns: Any) -> str:
    """The guess, or what somebody types instead of it."""
    told = [f"{path}: read as {form}; its columns are not called as ours. Are they these?"]
    told += [f"  {role}: {' and '.join(names)}" for role, names in columns.entries]
    told.append("Enter for yes, or type it: conversation=…,audio=…,participants=…;… ")
    print(for_screen_lines(told), end="", file=sys.stderr, flush=True)
    return input().strip() or str(columns)


def for_screen_lines(lines: list[str]) -> str:
    return "\n".join(map(for_screen, lines))
