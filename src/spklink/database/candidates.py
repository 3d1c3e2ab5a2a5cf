"""People who may be on the tracks of conversations that do not list them.

Where a list says `?` or `*`, or is empty, somebody unlisted may be a person who is known from other
conversations or enrolled. Module `naming` chooses who comes into question; here such *candidates*
become possible participants: entries behind those of the list, each with a probability before this
conversation is listened to, and with what his voices elsewhere say for every track. They make no
links: so many candidates cost no more than their own conversation. A `?` may be one of them, so it
is an open end of the list then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import Numbering, numbered, vague
from spklink.errors import SpklinkError
from spklink.tables import Table, read_cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
COLUMNS = ("conversation", "speaker", "channel", "prior", "log_likelihood_ratio")


@dataclass(frozen=True)
class Candidates:
    """Who may be where, in order of conversations."""

    conversation: Ints  # (C,)
    person: Ints  # (C,)
    prior: Floats  # (C,) that they are there, before listening
    value: Floats  # (sum of the tracks of each,) what their voices say for every track

    def __len__(self) -> int:
        return len(self.conversation)

    def rows(self, table: Conversations) -> Iterator[tuple[str, str, int, str, str]]:
        """Those of candidates.csv."""
        at = 0
        for m, who, prior in zip(
            self.conversation.tolist(), self.person.tolist(), self.prior.tolist(), strict=True
        ):
            for track in range(int(table.sides.counts[m])):
                value = repr(float(self.value[at]))
                yield table.ids[m], table.speakers[who], track + 1, repr(prior), value
                at += 1


def with_candidates(table: Conversations, found: Candidates) -> Conversations:
    """The same conversations where these people are possible participants too."""
    if not len(found):
        return table
    listing, calls, tracks = table.listing, len(table), table.sides.counts
    more = np.bincount(found.conversation, minlength=calls)
    numbers = numbered((listing.counts + more).tolist())
    own = numbers.start[listing.conversation] + listing.position
    fresh = np.ones(len(numbers), np.bool_)
    fresh[own] = False

    def merged(old: NDArray[Any], added: NDArray[Any]) -> NDArray[Any]:
        both = np.empty(len(numbers), old.dtype)
        both[own], both[fresh] = old, added
        return both

    elsewhere = np.zeros(int((numbers.counts * tracks).sum()))
    elsewhere[np.repeat(fresh, tracks[numbers.conversation])] = found.value
    return replace(
        table,
        listing=numbers,
        people=merged(table.people, found.person),
        presence=merged(table.presence, found.prior),
        possible=merged(table.possible, np.ones(len(found), np.bool_)),
        candidate=fresh,
        unknown=np.where(more > 0, 0, table.unknown).astype(np.int32),
        open=table.open | (more > 0),
        cues=widened(table.cues, table, numbers),
        sums=widened(table.sums, table, numbers),
        elsewhere=elsewhere,
    )


def widened(seat: Floats, table: Conversations, numbers: Numbering) -> Floats:
    """What other evidence says of seats, in lists that are longer: nothing of candidates."""
    if not len(seat):
        return seat
    listing, tracks = table.listing, table.sides.counts
    kept = np.zeros(len(numbers), np.bool_)
    kept[numbers.start[listing.conversation] + listing.position] = True
    found = np.zeros(int((numbers.counts * tracks).sum()))
    found[np.repeat(kept, tracks[numbers.conversation])] = seat
    return found


def read_candidates(table: Table, conversations: Conversations) -> Candidates:
    """A candidates.csv of our own."""
    where = conversations.index()
    people = {name: k for k, name in enumerate(conversations.speakers)}
    kinds = dict(zip(COLUMNS, (str, str, int, float, float), strict=True))
    rows = read_cells(table, kinds)
    anew = SpklinkError(f"{table}: not as it was written; make the results anew")
    if any(row[0] not in where or row[1] not in people for row in rows):
        raise anew
    first = [row for row in rows if row[2] == 1]
    conversation = np.array([where[row[0]] for row in first], np.int64)
    counts = conversations.sides.counts[conversation]
    in_order = not (np.diff(conversation) < 0).any() and int(counts.sum()) == len(rows)
    if not in_order or not vague(conversations)[conversation].all():
        raise anew
    prior = np.array([row[3] for row in first], np.float64)
    value = np.array([row[4] for row in rows], np.float64)
    if not ((prior > 0.0) & (prior < 1.0)).all() or not np.isfinite(value).all():
        raise anew
    return Candidates(
        conversation,
        np.array([people[row[1]] for row in first], np.int64),
        prior,
        value,
    )
