"""What a comparison found: a row a recognizer, and the tracks on which they disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from spklink.shown import Rows, Shown
from spklink.tables import write_csv, write_json

DISAGREEMENTS = ("conversation", "channel")


@dataclass(frozen=True)
class Measures:
    """Of one run. The first need a key, `evidence` to `open_bits` none."""

    eer: float | None = None  # share, of all side pairs, or of the pairs that were kept
    cllr: float | None = None  # bits
    min_cllr: float | None = None
    cross_entropy_bits: float | None = None  # H, a conversation
    confusion: float | None = None  # F
    clique_error_rate: float | None = None  # E
    expected_wrong: float | None = None  # of what has a key
    wrong: int | None = None
    trials: int | None = None  # side pairs that EER and Cllr are of
    evidence_bits: float | None = None  # a conversation
    expected_errors: float | None = None  # tracks that the answer itself expects to be wrong
    settled: int | None = None  # tracks
    tracks: int | None = None
    unused_sides: int | None = None
    list_errors: float | None = None  # estimated rate
    weight: str = ""
    seconds: float | None = None
    listening_seconds: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Compared:
    """One recognizer: what it measured, or why it failed."""

    name: str
    measures: Measures = field(default_factory=Measures)
    disagreements: int | None = None  # tracks on which another names somebody else
    failed: str = ""

    def row(self) -> dict[str, Any]:
        found = {"name": self.name, **asdict(self.measures)}
        return found | {"disagreements": self.disagreements, "failed": self.failed}


Answers = Mapping[tuple[str, str], tuple[str, str]]  # conversation, channel → who, probability


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Several recognizers on one database."""

    runs: list[Compared]
    places: list[tuple[str, str]]  # tracks on which two of them disagree
    answers: Mapping[str, Answers]  # by the name of the run
    notes: list[str]

    def _sentence(self) -> str:
        done = sum(not one.failed for one in self.runs)
        return f"{done} of {len(self.runs)} recognizers, {len(self.places)} tracks in dispute"

    def _rows(self) -> Rows:
        columns = ["name", *(one.name for one in fields(Measures)), "disagreements", "failed"]
        return columns, ([one.row()[name] for name in columns] for one in self.runs)

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": [one.row() for one in self.runs],
            "disagreements": len(self.places),
            "notes": self.notes,
        }

    def disputes(self) -> tuple[Sequence[str], list[list[str]]]:
        """Columns and rows of disagreements.csv."""
        names = list(self.answers)
        columns = [
            *DISAGREEMENTS,
            *(f"{part} {n}" for n in names for part in ("speaker", "probability")),
        ]
        rows = [
            [*place, *(part for n in names for part in self.answers[n].get(place, ("", "")))]
            for place in self.places
        ]
        return columns, rows

    def save(self, folder: Path, *, safe: bool = False) -> None:
        """compare.csv, compare.json and disagreements.csv."""
        columns, rows = self._rows()
        write_csv(folder / "compare.csv", columns, rows, safe=safe)
        write_csv(folder / "disagreements.csv", *self.disputes(), safe=safe)
        write_json(folder / "compare.json", self.as_json())
