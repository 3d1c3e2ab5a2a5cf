"""What results have in common for people who look at them: a sentence, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from spklink.words import printable

if TYPE_CHECKING:
    import pandas

FIRST_ROWS = 10  # of a notebook's table
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]  # columns, rows


class Shown:
    """A result: give `_sentence` and `_rows`."""

    def _sentence(self) -> str:
        """What was found, on one line."""
        raise NotImplementedError

    def _rows(self) -> Rows:
        """The same as a table."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a DataFrame, numbers as numbers."""
        try:
            import pandas
        except ImportError:
            raise ImportError("DataFrames need pandas: pip install 'spklink[pandas]'") from None
        columns, rows = self._rows()
        return pandas.DataFrame(map(_numbers, rows), columns=list(columns))

    def __repr__(self) -> str:
        return f"<spklink: {self._sentence()}>"

    def _repr_html_(self) -> str:
        """The sentence and the first rows, for notebooks; names are text and nothing else."""
        columns, rows = self._rows()
        every = iter(rows)
        shown = list(islice(every, FIRST_ROWS))
        more = sum(1 for _ in every)
        rest = f"<p>and {more} more rows: .to_pandas()</p>" if more else ""
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
        return (
            f"<p>{escape(self._sentence())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{rest}"
        )


class Probability(str):
    """A probability with the digits that a file has; as a number it is that."""


def _numbers(row: Sequence[Any]) -> list[Any]:
    return [float(value) if isinstance(value, Probability) else value for value in row]


def _cell(value: Any) -> str:
    return f"<td><bdi>{'' if value is None else escape(printable(str(value)))}</bdi></td>"
