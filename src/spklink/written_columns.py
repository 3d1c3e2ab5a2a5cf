"""Tables of millions of rows as they are written: every column as its distinct cells, and which of
them each row has. The bytes are those of `tables.write_csv`, which takes the same table row by row.

A column of names is as long as there are names, one of probabilities as there are different ones:
only these are put into words.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spklink.shown import Probability
from spklink.tables import FOREIGN, marked, probability_text, replacing, write_csv
from spklink.texts import Texts

Cells = Sequence[Any]
AT_ONCE = 100_000  # rows
SPECIAL = (b",", b'"', b"\n", b"\r")  # letters for which a cell may need quotes
NEARLY = 1.0 - 1e-9  # ten digits of what is between here and 1 may be 1
FEW = 10_000  # rows that are written one by one, without pyarrow


@dataclass(frozen=True)
class Column:
    """Cells by number."""

    cells: Cells  # distinct ones, as `write_csv` is given them
    which: NDArray[Any]  # (rows,) an index into `cells`
    kind: type[str] | None = None  # of which texts are in rows

    def __len__(self) -> int:
        return len(self.which)

    def of(self, rows: NDArray[Any]) -> Column:
        """The cells of these rows."""
        return replace(self, which=self.which[rows])

    def part(self, first: int, last: int) -> Iterator[Any]:
        """The cells of some rows."""
        cells, kind = self.cells, self.kind
        some = (cells[k] for k in self.which[first:last].tolist())
        return some if kind is None else map(kind, some)


def whole_numbers(values: NDArray[Any]) -> Column:
    """A column of whole numbers."""
    found, which = np.unique(values, return_inverse=True)
    return Column(found.tolist(), which.reshape(-1))


def words(values: Iterable[str] | NDArray[Any]) -> Column:
    """A column of a few words."""
    found, which = np.unique(np.asarray(values, dtype=np.str_), return_inverse=True)
    return Column(found.tolist(), which.reshape(-1))


def probabilities(*figures: NDArray[np.float64]) -> list[Column]:
    """Columns of probabilities (`probability_text`), those that are in several put into words
    once."""
    return [replace(one, kind=Probability) for one in numbers(*figures, certain=False)]


def numbers(*figures: NDArray[np.float64], certain: bool = True) -> list[Column]:
    """Columns of numbers with ten digits. Not `certain`: never rounded up to 1."""
    together = np.concatenate([np.asarray(one, np.float64) for one in figures])
    # By their bits, as 0 and -0 are two texts.
    found, which = np.unique(together.view(np.int64), return_inverse=True)
    values = found.view(np.float64)
    cells = _ten_digits(values)
    if not certain and len(near := np.flatnonzero((values < 1.0) & (values > NEARLY))):
        which = _moved(which.reshape(-1), near, len(values))
        cells = Texts.of_parts([cells, Texts.of(map(probability_text, values[near].tolist()))])
    ends = np.cumsum([len(one) for one in figures])
    return [Column(cells, part) for part in np.split(which.reshape(-1), ends[:-1])]


def _moved(which: NDArray[Any], some: NDArray[Any], first: int) -> NDArray[Any]:
    """With new places for some cells, from `first` on."""
    place = np.arange(first)
    place[some] = first + np.arange(len(some))
    return np.asarray(place[which])


def _ten_digits(values: NDArray[np.float64]) -> Texts:
    """Many at a time, as that takes a third of the time."""
    parts = []
    for first in range(0, len(values), AT_ONCE):
        some = values[first : first + AT_ONCE].tolist()
        text = ("%.10g\n" * len(some) % tuple(some)).encode()
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        sizes = np.diff(ends, prepend=-1) - 1
        start = np.concatenate([[0], np.cumsum(sizes)])
        parts.append(Texts(text.replace(b"\n", b""), start))
    return Texts.of_parts(parts)


def rows_of(columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """The same row by row."""
    for first in range(0, len(columns[0]), AT_ONCE):
        parts = [column.part(first, first + AT_ONCE) for column in columns]
        yield from zip(*parts, strict=True)


def write_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    columns: Sequence[Column],
    *,
    safe: bool = False,
) -> None:
    """Write a table; `safe` for people who open it in a spreadsheet."""
    if len(columns[0]) <= FEW:
        write_csv(path, names, rows_of(columns), safe=safe)
        return
    with replacing(path) as file:
        _put(file, names, columns, safe=safe)


def columns_bytes(names: Sequence[str], columns: Sequence[Column]) -> bytes:
    """The content of such a file."""
    file = io.BytesIO()
    _put(file, names, columns, safe=False)
    return file.getvalue()


def _put(file: BinaryIO, names: Sequence[str], columns: Sequence[Column], *, safe: bool) -> None:
    import pyarrow as pa
    from pyarrow import compute

    made = [
        _texts(column.cells, safe=safe and name in FOREIGN)
        for name, column in zip(names, columns, strict=True)
    ]
    made[-1] = Texts.of(f"{cell}\n" for cell in made[-1])
    arrays, comma = [one.arrow() for one in made], pa.scalar(",", pa.large_string())
    file.write(_line(names).encode())
    for first in range(0, len(columns[0]), AT_ONCE):
        parts = [
            cells.take(pa.array(column.which[first : first + AT_ONCE]))
            for cells, column in zip(arrays, columns, strict=True)
        ]
        lines = compute.binary_join_element_wise(*parts, comma)
        file.write(Texts.of_arrow(lines).data)


def _texts(cells: Cells, *, safe: bool) -> Texts:
    """Cells as they stand in a file, with quotes where they need them."""
    if safe:
        cells = [marked(cell) if isinstance(cell, str) else cell for cell in cells]
    texts = Texts.of(cells if isinstance(cells, Texts) else map(cell_text, cells))
    if not any(letter in texts.data for letter in SPECIAL):
        return texts
    return Texts.of(_quoted(text) if _special(text) else text for text in texts)


def cell_text(cell: Any) -> str:
    """A cell as the csv module writes it but for quotes."""
    return cell if isinstance(cell, str) else _line([cell, ""])[:-2]


def _special(text: str) -> bool:
    return any(letter.decode() in text for letter in SPECIAL)


def _quoted(text: str) -> str:
    return _line([text, ""])[:-2]


def _line(cells: Sequence[Any]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(cells)
    return file.getvalue()
