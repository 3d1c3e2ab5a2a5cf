"""What tables say of sides by name, where no list says who may be on them: a key, known pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations, read_conversations
from spklink.database.sides import NO_CONVERSATION, NO_TRACK, SideFinder, side_pairs
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.tables import (
    Content,
    Table,
    csv_bytes,
    open_table,
    require_columns,
    wrong_length,
)

Ints = NDArray[np.int64]
ABOUT_PEOPLE = {"participants", "participant", "speaker", "status", "probability", "prior"}
SAME = {"yes": True, "1": True, "true": True, "no": False, "0": False, "false": False}
PAIRS = ("conversation_1", "channel_1", "conversation_2", "channel_2", "same")


@dataclass(frozen=True)
class SideNames:
    """Who is on which side: (S,) an index into `names`, -1 where nothing is said."""

    names: list[str]
    speaker: Ints
    foreign: int  # rows about other conversations


def read_without_lists(table: Table, tracks: Table | None = None) -> Conversations:
    """A table of conversations of which nobody is asked who takes part: participants may be missing
    in it, and what it says of them, right or wrong, is passed over."""
    with open_table(table, "conversations") as (header, rows):
        require_columns(header, ["conversation"])
        kept = [k for k, name in enumerate(header.names) if name not in ABOUT_PEOPLE]
        wide = "participants" in header.names or not {"speaker", "participant"} & {*header.names}
        at, seen, found = header.column("conversation"), set(), []
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                raise SpklinkError(f"{header.path}: {wrong}")
            if wide or fields[at] not in seen:  # the long form has a row a participant
                found.append([fields[k] for k in kept])
            seen.add(fields[at])
        data = csv_bytes([header.names[k] for k in kept], found)
        bare = Content(header.path, data, file=not isinstance(table, list))
    return read_conversations(bare, tracks, unlisted=True)


def read_side_names(table: Table, conversations: Conversations) -> SideNames:
    """A key: conversation,channel,speaker; any names will do."""
    names: dict[str, int] = {}
    speaker = np.full(len(conversations.sides), -1, np.int64)
    problems, find, foreign = Problems(), SideFinder(conversations), 0
    with open_table(table, "key") as (header, rows):
        channel = "track" if header.column("channel") < 0 <= header.column("track") else "channel"
        columns = ("conversation", channel, "speaker")
        require_columns(header, list(columns))
        at = [header.column(name) for name in columns]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            call, track, name = (fields[k].strip() for k in at)
            side = find(call, track)
            if side == NO_CONVERSATION:
                foreign += 1
            elif side == NO_TRACK:
                problems.append(f"row {number}: channel {track!r}; a channel is {find.tracks()}")
            elif not name:
                problems.append(f"row {number}: no speaker")
            elif speaker[side] >= 0 and speaker[side] != names.get(name, -1):
                problems.append(f"row {number}: another speaker than in an earlier row")
            else:
                speaker[side] = names.setdefault(name, len(names))
    if not problems and not names:
        problems.append("no row is about a conversation of the table")
    if problems:
        raise problems_in(header.path, problems)
    return SideNames(list(names), speaker, foreign)


def read_known_pairs(table: Table, conversations: Conversations) -> tuple[Ints, Ints]:
    """Pairs (P, 2) of sides that must be one person, and of sides that may not."""
    problems, find = Problems(), SideFinder(conversations)
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    with open_table(table, "pairs") as (header, rows):
        require_columns(header, list(PAIRS))
        at = [header.column(name) for name in PAIRS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            call_1, track_1, call_2, track_2, same = (fields[k].strip() for k in at)
            one, two = find(call_1, track_1), find(call_2, track_2)
            if min(one, two) < 0:
                problems.append(f"row {number}: no such side in {conversations.path.name}")
            elif one == two:
                problems.append(f"row {number}: a side with itself")
            elif same.lower() not in SAME:
                problems.append(f"row {number}: same {same!r} is not yes or no")
            else:
                found[SAME[same.lower()]].append((one, two))
    if problems:
        raise problems_in(header.path, problems)
    return side_pairs(found[True]), side_pairs(found[False])


def listed_speakers(conversations: Conversations) -> int:
    """How many people lists name, where they name everybody."""
    if not conversations.plain:
        raise SpklinkError(
            f"{conversations.path}: not every conversation lists two certain people, so nobody "
            "knows how many there are; give --speakers"
        )
    return len(conversations.speakers)
