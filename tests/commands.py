"""What tests of several commands share."""

from __future__ import annotations

import csv
from pathlib import Path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def assign(run, sim, out, *more):
    return run(
        "assign", sim / "conversations.csv", "--scores", sim / "scores.csv", "-o", out, *more
    )
