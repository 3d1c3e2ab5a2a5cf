"""The tables of a results folder: CSV, Parquet or both, and read back whichever is there.

A table is called by its name without ending. Marks for spreadsheets are in CSV alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spklink.tables import Table, without_marks, write_csv
from spklink.written_columns import Column, write_columns

CSV, PARQUET, BOTH = "csv", "parquet", "both"
FORMS = (CSV, PARQUET, BOTH)
ENDINGS = (".csv", ".parquet")  # the first of them that is there is read


@dataclass(frozen=True)
class NewTables:
    """Tables as they are written."""

    folder: Path
    form: str = CSV
    safe: bool = False  # marked for spreadsheets

    def columns(self, name: str, names: Sequence[str], columns: Sequence[Column]) -> None:
        """A table by columns."""
        if self.form != PARQUET:
            write_columns(self.folder / f"{name}.csv", names, columns, safe=self.safe)
        if self.form != CSV:
            from spklink.parquet_tables import write_parquet

            write_parquet(self.folder / f"{name}.parquet", names, columns)

    def rows(self, name: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table row by row."""
        if self.form == BOTH:
            rows = list(rows)
        if self.form != PARQUET:
            write_csv(self.folder / f"{name}.csv", names, rows, safe=self.safe)
        if self.form != CSV:
            from spklink.parquet_tables import write_parquet_rows

            write_parquet_rows(self.folder / f"{name}.parquet", names, rows)


@dataclass(frozen=True)
class KeptTables:
    """Tables of a folder that was written."""

    folder: Path
    safe: bool = False

    def path(self, name: str) -> Path:
        """Where a table is; where CSV would be if it is nowhere."""
        every = [self.folder / f"{name}{ending}" for ending in ENDINGS]
        return next((path for path in every if path.exists()), every[0])

    def there(self, name: str) -> bool:
        return self.path(name).exists()

    def table(self, name: str) -> Table:
        """What a reader of tables takes."""
        path = self.path(name)
        return without_marks(path) if self.safe and path.suffix == ".csv" else path


def file_names(*tables: str) -> list[str]:
    """All files that these tables may be in."""
    return [f"{name}{ending}" for name in tables for ending in ENDINGS]
