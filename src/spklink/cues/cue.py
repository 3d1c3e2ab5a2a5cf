"""What a cue is: evidence beside voices, a conversation at a time.

A cue is one file: from conversations to what it adds to every seat (a listed person on a track), in
natural log-odds, calibrated. For two people on two tracks that is one number, the log-odds of
exchanged; for others it is relative to that person's tracks being all alike. Cues are independent
of voices and of one another given who is where: their terms are added up, and the voices' come on
top in the posterior. The column `prior` of a table is a cue that needs no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import TWO, odds_of_seats, pair_seats, seat_numbers
from spklink.posterior.states.prior import SeatLayout, layout_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
PRIOR, VOICES = "prior", "voices"


@dataclass(frozen=True)
class Terms:
    """What one cue says of a database."""

    name: str
    seat: Floats  # (sum of people x tracks,) people as rows; 0 where it says nothing
    about: dict[str, Any] = field(default_factory=dict)  # what it learned, for run.json

    def said(self, table: Conversations) -> Mask:
        """(M,) conversations that it says something of."""
        number = np.repeat(np.arange(len(table)), np.diff(seat_layout(table).seat_start))
        return np.bincount(number, self.seat != 0.0, len(table)) > 0


class Cue(Protocol):
    """Something that speaks for or against who is where."""

    @property
    def name(self) -> str:
        """What people call it."""

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        """What it says, calibrated on the database itself. `elsewhere`: (seats,) how probable all
        other evidence makes each seat, where that is known: its witness."""


def seat_layout(table: Conversations) -> SeatLayout:
    """Where the seats of each conversation are in flat arrays."""
    return layout_of(table.listing.counts, table.sides.counts)


def nothing(table: Conversations) -> Floats:
    """Seats of which nothing is said."""
    return np.zeros(int(seat_layout(table).seat_start[-1]))


def pairs(table: Conversations) -> Mask:
    """(M,) conversations of two named people on two tracks: one bit each, if the list is right."""
    alike = (table.listing.counts == TWO) & (table.sides.counts == TWO)
    return np.asarray(alike & (table.unknown == 0) & ~table.open)


def from_odds(table: Conversations, odds: Floats) -> Floats:
    """Seats of (M,) log-odds of exchanged; 0 says nothing."""
    seat, there = nothing(table), np.flatnonzero(odds)
    first = seat_layout(table).seat_start[there]
    seat[first[:, None] + np.arange(TWO * TWO)] = pair_seats(odds[there]).reshape(-1, TWO * TWO)
    return seat


def chances_of_odds(table: Conversations, odds: Floats) -> Floats:
    """(seats,) probabilities, from (M,) log-odds of exchanged of two people on two tracks each."""
    entry, side = seat_numbers(table)
    other = table.listing.position[entry] != table.sides.position[side]
    here = odds[table.sides.conversation[side]]
    return np.asarray(1.0 / (1.0 + np.exp(np.where(other, -here, here))))


def odds_in(table: Conversations, seat: Floats) -> Floats:
    """(M,) log-odds of exchanged in seats; NaN where a conversation is not a pair."""
    found, those = np.full(len(table), np.nan), np.flatnonzero(pairs(table))
    first = seat_layout(table).seat_start[those]
    found[those] = odds_of_seats(seat[first[:, None] + np.arange(TWO * TWO)])
    return found


def with_cues(table: Conversations, terms: Sequence[Terms]) -> Conversations:
    """The table with what all cues together say."""
    if not terms:
        return table
    return replace(table, cues=np.sum([one.seat for one in terms], axis=0))


def for_places(table: Conversations, seat: Floats, place: NDArray[np.int64]) -> Floats:
    """(M,) what seats say for people being at these places (entries,), against the best exchange
    of two of them, or the best move of one to a free track."""
    layout, listing, found = seat_layout(table), table.listing, np.zeros(len(table))
    for m in range(len(table)):
        own, at = layout.seats(seat, m), place[listing.of(m)]
        if own.any():
            found[m] = min(_changes(own, at), default=0.0)
    return found


def _changes(own: Floats, at: NDArray[np.int64]) -> Iterable[float]:
    tracks = own.shape[1]
    there = [int(p) for p in np.flatnonzero(at < tracks)]
    free = set(range(tracks)) - {int(at[p]) for p in there}
    for k, p in enumerate(there):
        for q in there[k + 1 :]:
            now = own[p, at[p]] + own[q, at[q]]
            yield float(now - own[p, at[q]] - own[q, at[p]])
        for track in free:
            yield float(own[p, at[p]] - own[p, track])


@dataclass(frozen=True)
class PriorColumn:
    """The column `prior` of a table. The posterior knows it already: it is only shown."""

    name: str = PRIOR

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        chance = np.clip(table.prior, 1e-300, 1.0 - 1e-16)
        return Terms(self.name, from_odds(table, np.log1p(-chance) - np.log(chance)))
