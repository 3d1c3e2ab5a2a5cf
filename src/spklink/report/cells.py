"""Numbers as the tables of the page show them. Probabilities follow one rule (`chance_text`)."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from spklink.words import chance_text

CHANCES = {"mean probability", "predicted right", "best from", "best to"}  # one rule: chance_text
SHARES = {
    *("EER", "E", "E, paper", "settled at 99 %", "targets above", "non-targets above"),
    *("right, low end", "right, high end", "observed right", "false alarms", "misses"),
    *("95 % band, low end", "95 % band, high end"),
}
DECIMALS = {
    **dict.fromkeys(("bits", "F", "recalibrated", "bits open", "open bits a conversation"), 4),
    **dict.fromkeys(("bits, paper", "F, paper", "recalibrated, paper", "mean size"), 3),
    **dict.fromkeys(("best factor", "best factor, paper", "expected wrong", "expected"), 2),
    **dict.fromkeys(("of these expected wrong", "expected wrong cliques", "seconds"), 2),
    **dict.fromkeys(("expected errors",), 2),
}  # digits after the point, as the paper prints them
SENTENCES = {"what it is", "what it means", "why", "what is known", "problem"}  # columns
Table = dict[str, Any]


def cell(value: Any, column: str = "") -> str:
    """A value as a person reads it; '–' where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " to ".join(dict.fromkeys(cell(v, column) for v in value))  # equal ends once
    if isinstance(value, int):
        return f"{value:,}"
    if column in CHANCES:
        return chance_text(value)
    if column in SHARES:
        return percent(value)
    if column in DECIMALS:
        return f"{value:.{DECIMALS[column]}f}"
    return figure_text(value)


def figure_text(value: float) -> str:
    if value == 0.0:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:,.1f}"
    return f"{value:.4f}" if abs(value) >= 0.0001 else "under 0.0001"


def percent(value: float | None) -> str:
    """A share that was counted: all is 100 %, none 0 %, and what is between is neither."""
    if value is None:
        return "–"
    return f"{100.0 * value:.1f} %" if value in (0.0, 1.0) else chance_text(value)


def signed(log10: float) -> str:
    """A power of ten with two digits."""
    return f"{'−' if round(log10, 2) < 0 else '+'}{abs(log10):.2f}"


def length(seconds: float) -> str:
    """How long a recording is: 42.30 s, 1:02:05.10."""
    if seconds < 60.0:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds, 2), 60.0)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:05.2f}" if hours else f"{minutes}:{rest:05.2f} min"


def is_text(table: Table, column: int) -> bool:
    """Whether a column holds words: they stand left, numbers right."""
    return any(isinstance(row[column], str) for row in table["rows"])


def stacks(table: Table) -> bool:
    """Whether a table is too wide for a narrow screen: there, its cells stand below each other."""
    words = SENTENCES & set(table["columns"]) or any(
        "sha" in str(c).lower() for c in table["columns"]
    )
    return len(table["rows"]) <= 60 and (bool(words) or len(table["columns"]) > 6)


def cell_class(table: Table, column: int, printed: tuple[str, ...]) -> Markup:
    if table["columns"][column] in printed:
        return Markup(' class="printed"')
    return Markup(' class="t"') if is_text(table, column) else Markup("")
