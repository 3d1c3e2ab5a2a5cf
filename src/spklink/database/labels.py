"""What people say about channels: known channels (evidence), keys (truth), claims (to be checked).

All three are tables `conversation,channel,speaker`; a known channel may carry a `probability`.
A label is turned into a bit: 0 = channels as listed (first-listed participant on channel 1),
1 = exchanged, -1 = nothing said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.database.conversations import Conversations
from spklink.database.sides import exchanged
from spklink.errors import Problems, problems_in
from spklink.tables import Table, open_table, require_columns, wrong_length


@dataclass(frozen=True)
class Labels:
    """One statement a conversation at most."""

    exchanged: NDArray[np.float64]  # (M,) probability that the channels are exchanged; NaN: unsaid
    foreign: int = 0  # rows about conversations that are not in the table

    @property
    def bits(self) -> NDArray[np.int8]:
        """(M,) 0 or 1 where certain, -1 elsewhere."""
        certain = (self.exchanged == 0) | (self.exchanged == 1)
        return np.where(certain, np.nan_to_num(self.exchanged), -1).astype(np.int8)


def read_known(table: Table, conversations: Conversations) -> Labels:
    """Known channels: every row must be about a conversation of the table."""
    return _read(table, conversations, evidence=True)


def read_key(table: Table, conversations: Conversations) -> Labels:
    """The truth for evaluation: certain, rows about other conversations are counted and ignored."""
    return _read(table, conversations, evidence=False)


def _read(table: Table, conversations: Conversations, *, evidence: bool) -> Labels:
    where = conversations.index()
    turned = np.full(len(conversations), np.nan)
    said_in: dict[int, int] = {}
    problems = Problems()
    foreign = 0
    with open_table(table, "labels") as (header, rows):
        require_columns(header, ["conversation", "channel", "speaker"])
        columns = [header.column(n) for n in ("conversation", "channel", "speaker")]
        chance = header.column("probability") if evidence else -1
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            name, channel, speaker = (fields[k].strip() for k in columns)
            text = fields[chance].strip() if chance >= 0 else ""
            m = where.get(name, -1)
            if m < 0 and not evidence:
                foreign += 1
                continue
            value = _exchanged(conversations, m, name, channel, speaker, text)
            if isinstance(value, str):
                problems.append(f"row {number}: {value}")
            elif m in said_in and abs(turned[m] - value) > EQUAL:
                problems.append(
                    f"row {number}: contradicts row {said_in[m]} about conversation {name!r}"
                )
            else:
                turned[m] = value
                said_in.setdefault(m, number)
    if problems:
        raise problems_in(header.path, problems)
    return Labels(turned, foreign)


def _exchanged(
    conversations: Conversations, m: int, name: str, channel: str, speaker: str, probability: str
) -> float | str:
    """Probability of exchanged that one row states, or what is wrong with the row."""
    if m < 0:
        return f"no conversation {name!r} in {conversations.path.name}"
    tracks = [str(k + 1) for k in range(int(conversations.sides.counts[m]))]
    if channel not in tracks:
        return f"channel {channel!r} is not {' or '.join(tracks)}"
    people = conversations.names(m)
    if speaker not in people:
        return (
            f"speaker {speaker!r} takes no part in conversation {name!r} ({' and '.join(people)})"
        )
    try:
        chance = float(probability) if probability else 1.0
    except ValueError:
        chance = float("nan")
    if not 0.0 <= chance <= 1.0:
        return f"probability {probability!r} is not between 0 and 1"
    turned = exchanged(people.index(speaker), tracks.index(channel))
    return chance if turned else 1.0 - chance
