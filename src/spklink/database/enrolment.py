"""People whose voices are known from elsewhere: recordings of one person each.

A table speaker,audio[,channel][,recording][,group], one row a recording; a person may have several.
`channel`, from 1, tells which one of a file of several it is; `recording` is what files of vectors
or scores call it, whose channel 1 it is there.

For all that follows an enrolment recording is a conversation of one track with one person on it,
who is certainly there: it stands behind the conversations that are asked about, is compared with
them as they are with each other, and is not written among the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spklink.database.conversations import Conversations
from spklink.database.drafts import LONGEST_NAME
from spklink.database.lists import OTHERS, SOMEBODY
from spklink.database.segments import Diarized
from spklink.database.sides import Numbering
from spklink.errors import Problems, problems_in
from spklink.tables import SEPARATOR, Table, open_table, require_columns, wrong_length
from spklink.texts import Lists, Texts

COLUMNS = ("speaker", "audio", "channel", "recording", "group")


@dataclass(frozen=True)
class Enrolled:
    """One recording of a known person."""

    row: int
    speaker: str
    audio: str
    channel: int | None  # from 0; None: the file has one
    recording: str
    group: str


def with_enrolment(conversations: Conversations, table: Table | None) -> Conversations:
    """Conversations and, behind them, what is enrolled; all that is wrong is in the one error."""
    if table is None:
        return conversations
    path, rows, problems = _read(table)
    taken = {name: conversations.place(m) for m, name in enumerate(conversations.ids)}
    for one in rows:
        first = taken.setdefault(one.recording, f"row {one.row}")
        if first != f"row {one.row}" or one.recording in conversations.index():
            problems.append(
                f"row {one.row}: recording {one.recording!r} is already in {first} of "
                f"{conversations.path if one.recording in conversations.index() else 'this table'}"
            )
    if problems:
        raise problems_in(path, problems)
    return _appended(conversations, rows, path.parent.resolve())


def _read(table: Table) -> tuple[Path, list[Enrolled], Problems]:
    problems, found = Problems(), list[Enrolled]()
    times: dict[str, int] = {}
    where: dict[tuple[str, int | None], int] = {}
    with open_table(table, "enrol") as (header, rows):
        require_columns(header, ["speaker"])
        if header.column("audio") < 0:
            require_columns(header, ["recording"])
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            who, audio, channel, name, group = ("" if k < 0 else fields[k].strip() for k in at)
            times[who] = times.get(who, 0) + 1
            name = name or f"{who}-enrolled-{times[who]}"
            one = Enrolled(number, who, audio, _channel(channel), name, group)
            if wrong := _wrong(one, channel):
                problems.append(f"row {number}: {wrong}")
            first = where.setdefault((audio, one.channel), number) if audio else number
            if first != number:
                problems.append(f"row {number}: the same recording as in row {first}; keep one")
            found.append(one)
        if not found and not problems:
            problems.append("nobody below the header")
    return header.path, found, problems


def _channel(text: str) -> int | None:
    digits = text.removesuffix(".0")
    return int(digits) - 1 if digits.isascii() and digits.isdigit() and len(digits) < 9 else None


def _wrong(one: Enrolled, channel: str) -> str:
    """What is wrong with a row, or nothing."""
    who = one.speaker
    if not who:
        return "an empty speaker"
    if SEPARATOR in who or who.startswith((SOMEBODY, OTHERS)):
        return f"speaker {who!r}: a name has no '{SEPARATOR}' and begins with neither ? nor *"
    if max(map(len, (who, one.audio, one.recording))) > LONGEST_NAME or "\0" in who + one.audio:
        return f"a name with a NUL byte, or of more than {LONGEST_NAME} characters"
    if channel and (one.channel is None or one.channel < 0):
        return f"channel {channel!r} is not a whole number from 1"
    if SEPARATOR in one.audio:
        return f"audio {one.audio!r}: one file a row"
    return ""


def _appended(table: Conversations, rows: list[Enrolled], folder: Path) -> Conversations:
    speakers = {name: k for k, name in enumerate(table.speakers)}
    groups = {name: k for k, name in enumerate(table.groups)}
    people = [speakers.setdefault(one.speaker, len(speakers)) for one in rows]
    group = [groups.setdefault(one.group, len(groups)) for one in rows]
    more, ones = len(rows), np.ones(len(rows))
    whole = [None] * len(table)
    files = [(str(folder / one.audio),) if one.audio else () for one in rows]
    return replace(
        table,
        ids=Texts.of([*table.ids, *(one.recording for one in rows)]),
        speakers=Texts.of(speakers),
        groups=list(groups),
        group=np.concatenate([table.group, np.array(group, np.int32)]),
        listing=_longer(table.listing, more),
        sides=_longer(table.sides, more),
        people=np.concatenate([table.people, np.array(people, np.int32)]),
        audio=Lists.of([*table.audio, *files]),
        channel=[*(table.channel or whole), *(one.channel for one in rows)],
        prior=np.concatenate([table.prior, 0.5 * ones]),
        rows=np.concatenate([table.rows, [one.row for one in rows]]).astype(np.int64),
        # Possible with probability 1: no list can be wrong about them.
        presence=np.concatenate([table.presence, ones]),
        possible=np.concatenate([table.possible, ones.astype(np.bool_)]),
        candidate=np.concatenate([table.candidate, np.zeros(more, np.bool_)]),
        unknown=np.concatenate([table.unknown, np.zeros(more, np.int32)]),
        open=np.concatenate([table.open, np.zeros(more, np.bool_)]),
        diarized=[*table.diarized, *[Diarized(("1",), ())] * more] if table.diarized else [],
        enrolled=more,
    )


def _longer(numbering: Numbering, more: int) -> Numbering:
    """With so many further conversations of one each."""
    last = int(numbering.start[-1])
    return Numbering(np.concatenate([numbering.start, last + 1 + np.arange(more)]))
