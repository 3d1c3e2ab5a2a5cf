"""Claimed channels held against the posterior; claims are never used as evidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spklink.assignment import Result
from spklink.labels import Labels
from spklink.tables import write_csv

SUSPECTS = ("conversation", "probability", "claimed", "suggested")


def write_suspects(folder: Path, result: Result, claims: Labels) -> int:
    """Calls whose claimed channels are more probably wrong than right, the worst first."""
    table, posterior = result.database.conversations, result.posterior
    claimed = claims.bits
    wrong = np.where(claimed == 1, 1.0 - posterior.exchanged, posterior.exchanged)
    # A claim about an unresolvable clique is as good as its mirror image, up to rounding.
    suspicious = np.flatnonzero((claimed >= 0) & (wrong > 0.5 + 1e-9))
    order = suspicious[np.argsort(-wrong[suspicious], kind="stable")]

    def people(m: int, bit: int) -> str:
        first, second = table.names(m)
        return f"{second};{first}" if bit else f"{first};{second}"

    rows = (
        (table.ids[m], f"{wrong[m]:.10g}", people(m, claimed[m]), people(m, 1 - claimed[m]))
        for m in order
    )
    write_csv(folder / "suspects.csv", SUSPECTS, rows)
    return len(order)
