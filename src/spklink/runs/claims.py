"""Claimed channels held against the posterior; claims are never used as evidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.posterior.posterior import Posterior
from spklink.runs.assign import Result
from spklink.tables import write_csv

SUSPECTS = ("conversation", "probability", "claimed", "suggested")


def find_suspects(
    posterior: Posterior, claimed: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Calls whose claimed channels are more probably wrong than right, the worst first.

    Also (M,) the probability that the claim is wrong; it means nothing where none was made.
    """
    wrong = np.where(claimed == 1, 1.0 - posterior.exchanged, posterior.exchanged)
    # A claim about an unresolvable clique is as good as its mirror image, up to rounding.
    suspicious = np.flatnonzero((claimed >= 0) & (wrong > 0.5 + 1e-9))
    return suspicious[np.argsort(-wrong[suspicious], kind="stable")], wrong


def people(table: Conversations, m: int, bit: int) -> str:
    """Both speakers of a call, by channel."""
    first, second = table.names(m)
    return f"{second};{first}" if bit else f"{first};{second}"


def write_suspects(folder: Path, result: Result, claims: Labels) -> int:
    """The suspects.csv of a results folder; returns how many there are."""
    table, claimed = result.database.conversations, claims.bits
    order, wrong = find_suspects(result.posterior, claimed)
    rows = (
        (
            table.ids[m],
            f"{wrong[m]:.10g}",
            people(table, m, claimed[m]),
            people(table, m, 1 - claimed[m]),
        )
        for m in order
    )
    write_csv(folder / "suspects.csv", SUSPECTS, rows)
    return len(order)
