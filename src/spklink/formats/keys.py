"""What a key of a Kaldi file, or of any list with one name a side, says: a conversation, a channel.

Without a table of keys a key is `conversation-channel` or `conversation_channel`. The channel, a
number from 1, is what follows the last of these marks, so ids may have as many of them as they
like. A table (key,conversation,channel) is for all other names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spklink.errors import Problems, problems_in
from spklink.tables import Table, open_table, require_columns, wrong_length

COLUMNS = ("key", "conversation", "channel")
REMEDY = "name sides as conversation-channel, or give --embedding-keys (key,conversation,channel)"
Side = tuple[str, str]  # conversation and channel, as files name them


@dataclass(frozen=True)
class Keys:
    """From keys to sides; without a table by the marks in them."""

    table: dict[str, Side] | None = field(default=None)

    def __call__(self, key: str) -> Side | None:
        """The side that a key names; None where it names none."""
        if self.table is not None:
            return self.table.get(key)
        at = max(key.rfind("-"), key.rfind("_"))
        return (key[:at], key[at + 1 :]) if at > 0 and key[at + 1 :] else None


def read_keys(table: Table) -> Keys:
    """A table of keys; everything wrong with it is in the one error."""
    problems, found, row = Problems(), dict[str, Side](), dict[str, int]()
    with open_table(table, "embedding keys") as (header, rows):
        require_columns(header, COLUMNS)
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            key, conversation, channel = (fields[k].strip() for k in at)
            if key in row:
                problems.append(f"row {number}: key {key!r} is already in row {row[key]}")
            row.setdefault(key, number)
            found[key] = (conversation, channel)
    if problems:
        raise problems_in(header.path, problems)
    return Keys(found)
