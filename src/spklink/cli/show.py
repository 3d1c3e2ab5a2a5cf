"""Text for people: lines and tables on standard output.

All of it may hold names that others wrote, so all of it goes through `for_screen` here: a line is
one line, and no character of it is carried out by the terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from spklink.cli.progress import stages_on_stderr as stages_on_stderr
from spklink.words import for_screen, printable_json

PIPE_COLUMNS = 120  # width of running text that goes to a file or a pipe
MAX_COLUMNS = 100_000  # width that no table has
MIN_TEXT_COLUMNS = 12  # width below which text is not wrapped
GAP_COLUMNS = 3  # width between two columns of a table


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    title: str = "",
    left: int = 1,
    right: Sequence[str] | None = None,
) -> None:
    """Print aligned columns; the first `left` are text, the others numbers, or those of `right`.

    The first column, which names the row, and numbers are never cut; other text is wrapped. Where
    the screen is too narrow for that, every cell has a line. In a file or a pipe a row is a line.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    head, needed = escape(for_screen(title)) or None, 0
    made = Table(box=box.SIMPLE_HEAD, title=head, title_justify="left", pad_edge=False)
    for k, name in enumerate(columns):
        number = k >= left if right is None else name in right
        whole = number or k == 0
        widest = max(_plain(cell).cell_len for cell in (name, *(row[k] for row in rows)))
        least = widest if whole else min(widest, max(MIN_TEXT_COLUMNS, _plain(name).cell_len))
        justify: Any = "right" if number else "left"
        made.add_column(
            _plain(name), justify=justify, no_wrap=whole, min_width=least, overflow="fold"
        )
        needed += least + GAP_COLUMNS
    for row in rows:
        made.add_row(*(_plain(value) for value in row))
    screen = _console(MAX_COLUMNS)
    if needed <= screen.width:
        screen.print(made)
    else:
        _one_cell_a_line(columns, rows, title)


def _one_cell_a_line(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    if title:
        text(title)
    for name, *others in rows:
        text(f"{columns[0]} {name}".lstrip())
        for column, value in zip(columns[1:], others, strict=True):
            text("    " + ": ".join(filter(None, (column, "-" if value is None else str(value)))))


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


def _console(piped: int = PIPE_COLUMNS) -> Any:
    """`piped`: width in a file or a pipe, where nobody says how wide that is."""
    from rich.console import Console

    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if told else piped)
