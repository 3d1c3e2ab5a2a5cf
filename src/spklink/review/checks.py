"""What cannot be a decision is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.decisions.log import HEARD, RESOLVE, UNSURE
from spklink.decisions.verdicts import Seats
from spklink.errors import SpklinkError

LONGEST = 1000  # characters of a name that is not listed, a reviewer, a reason, a request
SHOWN = 20_000  # characters of what was shown


def checked_seats(table: Conversations, m: int, seats: Seats, verdict: str) -> Seats:
    """The seats, if they can be so."""
    if not 0 <= m < len(table):
        raise SpklinkError(f"there is no conversation {m}")
    name, tracks = table.ids[m], int(table.sides.counts[m])
    if verdict == UNSURE:
        return (None,) * tracks
    if verdict not in (HEARD, RESOLVE):
        raise SpklinkError(f"verdict {verdict!r} is not {HEARD}, {UNSURE} or {RESOLVE}")
    if len(seats) != tracks:
        raise SpklinkError(f"{len(seats)} seats where {name!r} has {tracks} tracks")
    if not any(seats):
        raise SpklinkError(f"nobody is named on any track of {name!r}")
    named = [who for who in seats if who not in (None, OTHERS)]
    strange = [who for who in named if who not in table.names(m)]
    if any(not who or not who.strip() or len(who) > LONGEST for who in strange):
        raise SpklinkError(f"a name for {name!r} is empty or too long")
    if not table.split and len(set(named)) < len(named):
        raise SpklinkError(f"one person on two tracks of {name!r} needs --split-speakers")
    return seats


def checked_shown(shown: Mapping[str, Any] | None) -> dict[str, Any]:
    found = dict(shown or {})
    if len(repr(found)) > SHOWN:
        raise SpklinkError("what was shown is too long to be stored")
    return found


def check_words(**words: str) -> None:
    for name, text in words.items():
        if len(text) > LONGEST:
            raise SpklinkError(f"{name} is longer than {LONGEST} characters")
