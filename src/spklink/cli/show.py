"""Text for people: lines and tables on standard output.

All of it may hold names that others wrote, so all of it goes through `for_screen` here: a line is
one line, and no character of it is carried out by the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from spklink.cli.progress import stages_on_stderr as stages_on_stderr
from spklink.words import for_screen, printable_json

WIDTH = 120  # of tables that go to a file or a pipe


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    title: str = "",
    left: int = 1,
    right: Sequence[str] | None = None,
) -> None:
    """Print aligned columns; the first `left` are text, the others numbers, or those of `right`."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    head = escape(for_screen(title)) or None
    made = Table(box=box.SIMPLE_HEAD, title=head, title_justify="left", pad_edge=False)
    for k, name in enumerate(columns):
        number = k >= left if right is None else name in right
        cells = [name, *(row[k] for row in rows)] if number else []
        widest = max([len(_plain(cell)) for cell in cells], default=1)
        justify: Any = "right" if number else "left"  # numbers are never cut off
        made.add_column(_plain(name), justify=justify, no_wrap=True, min_width=widest)
    for row in rows:
        made.add_row(*(_plain(value) for value in row))
    _console().print(made)


def text(line: str = "") -> None:
    _console().print(for_screen(line), markup=False, highlight=False, soft_wrap=True)


def progress_line(line: str) -> None:
    """What happened on the way, on standard error."""
    print(for_screen(line), file=sys.stderr)


def paragraph(words: str) -> None:
    """Running text, wrapped to the width of the screen."""
    _console().print(for_screen(words), markup=False, highlight=False)


def as_json(value: Any) -> None:
    """Results for machines, with the names as they are."""
    import json

    text_as_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def json_line(value: Any) -> None:
    """The same on one line, at once: somebody reads along."""
    import json

    print(printable_json(json.dumps(value, ensure_ascii=False, allow_nan=False)), flush=True)


def text_as_json(text: str) -> None:
    """JSON that is made already; JSON itself would leave some control characters as they are."""
    print(printable_json(text))


def number(value: float | None, digits: int = 3) -> str:
    """A figure for a table; '-' where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100.0 * value:.{digits}f} %"


def _plain(value: Any) -> Any:
    from rich.text import Text

    return Text("-" if value is None else for_screen(str(value)))


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH)
