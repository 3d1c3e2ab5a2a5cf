"""Claimed channels held against the posterior; claims are never used as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.sides import names_on
from spklink.errors import SpklinkError
from spklink.posterior.posterior import Posterior
from spklink.tables import SEPARATOR, Content, Table, read_cells

SUSPECTS = ("conversation", "probability", "claimed", "suggested")


def find_suspects(
    posterior: Posterior, claimed: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Calls whose claimed channels are more probably wrong than right, the worst first.

    Also (M,) the probability that the claim is wrong; it means nothing where none was made.
    """
    wrong = np.where(claimed == 1, 1.0 - posterior.exchanged, posterior.exchanged)
    # A claim about an unresolvable clique is as good as its mirror image, up to rounding.
    suspicious = np.flatnonzero((claimed >= 0) & (wrong > 0.5 + EQUAL))
    return suspicious[np.argsort(-wrong[suspicious], kind="stable")], wrong


def read_suspects(suspects: Table, table: Conversations) -> list[Sequence[Any]]:
    """The rows of suspects.csv, which are about conversations of the table."""
    rows, where = read_cells(suspects, dict.fromkeys(SUSPECTS, str)), table.index()
    path = suspects.path if isinstance(suspects, Content) else suspects
    for name, _, *both in rows:
        if name not in where:
            raise SpklinkError(f"{path}: no conversation {name[:40]!r} in conversations.csv")
        listed = [SEPARATOR.join(names_on(table, where[name], bit)) for bit in (0, 1)]
        if both not in (listed, listed[::-1]):
            raise SpklinkError(
                f"{path}: conversation {name!r} is one of {listed[0]}, not of {both[0][:80]!r} and "
                f"{both[1][:80]!r}"
            )
    return rows


def suspect_rows(
    table: Conversations, posterior: Posterior, claims: Labels
) -> Iterator[tuple[Any, ...]]:
    """The rows of suspects.csv."""
    claimed = claims.bits
    order, wrong = find_suspects(posterior, claimed)
    for m in order.tolist():
        bit = int(claimed[m])
        said, suggested = (SEPARATOR.join(names_on(table, m, b)) for b in (bit, 1 - bit))
        yield table.ids[m], f"{wrong[m]:.10g}", said, suggested
