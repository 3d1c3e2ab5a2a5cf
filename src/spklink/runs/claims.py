"""Claimed channels held against the posterior; claims are never used as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.lists import OTHERS, SOMEBODY
from spklink.database.sides import names_on
from spklink.errors import SpklinkError
from spklink.posterior.answer import STRANGER, Answer
from spklink.tables import SEPARATOR, Content, Table, read_cells

SUSPECTS = ("conversation", "probability", "claimed", "suggested")


def find_suspects(
    answer: Answer, claimed: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Calls whose claimed channels are more probably wrong than right, the worst first.

    Also (M,) the probability that the claim is wrong; it means nothing where none was made. Where
    lists may be wrong, so may a claim be in more ways than one.
    """
    if not answer.binary:
        wrong, worse = answer.against(claimed)
        doubted = np.flatnonzero((claimed >= 0) & worse & (wrong > 0.5 + EQUAL))
        return doubted[np.argsort(-wrong[doubted], kind="stable")], wrong
    exchanged = answer.bits.exchanged
    wrong = np.where(claimed == 1, 1.0 - exchanged, exchanged)
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
        if not table.plain or OTHERS in both[1].split(SEPARATOR):
            continue
        listed = [SEPARATOR.join(names_on(table, where[name], bit)) for bit in (0, 1)]
        if both not in (listed, listed[::-1]):
            raise SpklinkError(
                f"{path}: conversation {name!r} is one of {listed[0]}, not of {both[0][:80]!r} and "
                f"{both[1][:80]!r}"
            )
    return rows


def suspects_of(answer: Answer, claims: Labels) -> list[Sequence[Any]]:
    """The rows of suspects.csv."""
    return list((_rows_of_bits if answer.table.plain else _rows_of_tracks)(answer, claims))


def _rows_of_tracks(answer: Answer, claims: Labels) -> Iterator[tuple[Any, ...]]:
    """Conversations of any shape of which a claimed track is more probably wrong than right."""
    table, said = answer.table, claims.said
    wrong: dict[int, float] = {}
    worse: set[int] = set()  # something else is more probable
    claimed: dict[int, dict[int, str]] = {}
    for m, track, person, name in zip(
        said.conversation.tolist(),
        said.track.tolist(),
        said.person.tolist(),
        said.names,
        strict=True,
    ):
        chance = answer.chance_of(m, track, person)
        wrong[m] = max(wrong.get(m, 0.0), 1.0 - chance)
        # A claim about people whom no voice tells apart is as good as its mirror image.
        if answer.confidence.chance[table.sides.start[m] + track] > chance + EQUAL:
            worse.add(m)
        claimed.setdefault(m, {})[track] = name
    for m in sorted((m for m in worse if wrong[m] > 0.5 + EQUAL), key=lambda m: -wrong[m]):
        tracks = range(int(table.sides.counts[m]))
        said_names = SEPARATOR.join(claimed[m].get(track, SOMEBODY) for track in tracks)
        yield table.ids[m], f"{wrong[m]:.10g}", said_names, _names(answer, m)


def _names(answer: Answer, m: int) -> str:
    """Who is on the tracks of a conversation in the best state."""
    who = answer.speaker()[answer.table.sides.of(m)].tolist()
    return SEPARATOR.join(OTHERS if k == STRANGER else answer.table.speakers[k] for k in who)


def _rows_of_bits(answer: Answer, claims: Labels) -> Iterator[tuple[Any, ...]]:
    """Conversations of two people on two channels."""
    claimed, table = claims.bits, answer.table
    order, wrong = find_suspects(answer, claimed)
    for m in order.tolist():
        bit = int(claimed[m])
        said, other = (SEPARATOR.join(names_on(table, m, b)) for b in (bit, 1 - bit))
        suggested = other if answer.binary else _names(answer, m)
        yield table.ids[m], f"{wrong[m]:.10g}", said, suggested
