"""Which conversation of a table is which of an earlier one: told by all that is said and heard.

The key of a conversation is a hash of its id, its list, its group, the sound of its tracks and
whether these can be used. A row that was changed, or whose recording was, is a new conversation;
rows in another order are the same ones.

Index conventions: m = conversation of the table at hand, n = of an earlier one; -1 where there is
none. Sides and entries of lists follow their conversations (module `sides`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import Numbering
from spklink.sound.listening import Sound

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]
NONE = -1


def hashed(texts: Iterable[str]) -> Keys:
    """64 bits of each text: among a million two alike are a chance of one in 30 million."""
    made = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(made, "<u8").astype(np.uint64)


def call_keys(table: Conversations, sound: Sound) -> Keys:
    """(M,) the key of every conversation."""
    speakers, groups = list(table.speakers), table.groups
    people, start = table.people.tolist(), table.listing.start.tolist()
    group = table.group.tolist() if len(table.group) else [0] * len(table)
    told = [""] * len(table) if table.plain else _open_ends(table)
    first = table.sides.start.tolist()

    def text(m: int, name: str) -> str:
        names = "\x1e".join([speakers[k] for k in people[start[m] : start[m + 1]]])
        one = sound.heard[m]
        marks = "\x1e".join(sound.marks[first[m] : first[m + 1]])
        heard = f"{one.sounds}\x1f{one.speech_seconds}\x1f{marks}"
        return f"{name}\x1f{names}\x1f{groups[group[m]]}\x1f{told[m]}\x1f{heard}"

    return hashed(text(m, name) for m, name in enumerate(table.ids))


def _open_ends(table: Conversations) -> list[str]:
    """What lists say beside names."""
    sure = [table.presence[table.listing.of(m)].tolist() for m in range(len(table))]
    maybe = [table.possible[table.listing.of(m)].tolist() for m in range(len(table))]
    rest = zip(sure, maybe, table.unknown.tolist(), table.open.tolist(), strict=True)
    return [repr(one) for one in rest]


@dataclass(frozen=True)
class Match:
    """Conversations of a table found again among earlier ones."""

    call: Ints  # (M,) n, or NONE
    side: Ints  # (S,) its side, or NONE
    earlier: int  # how many there were
    gone: int  # of them that are no longer there


def matched(keys: Keys, sides: Numbering, earlier: Keys, earlier_sides: Numbering) -> Match:
    """Where each conversation was. Of two rows that are all alike neither is found."""
    order = np.argsort(earlier, kind="stable")
    ranked = earlier[order]
    at = np.minimum(np.searchsorted(ranked, keys), max(len(ranked) - 1, 0))
    found = ranked[at] == keys if len(ranked) else np.zeros(len(keys), np.bool_)
    call = np.where(found, order[at] if len(order) else 0, NONE)
    if len(keys):
        count = np.bincount(np.maximum(call, 0)[found], minlength=len(earlier))
        call[found & (count[np.maximum(call, 0)] > 1)] = NONE
    same = call >= 0
    same[same] = sides.counts[same] == earlier_sides.counts[call[same]]
    call = np.where(same, call, NONE)
    of_side = call[sides.conversation]
    side = np.where(
        of_side >= 0, earlier_sides.start[np.maximum(of_side, 0)] + sides.position, NONE
    )
    return Match(call, side, len(earlier), len(earlier) - int((call >= 0).sum()))
