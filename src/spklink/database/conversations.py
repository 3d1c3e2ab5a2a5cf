"""Who took part in which conversation: reading and checking the table.

Two forms, told apart by the header:
  wide   conversation,audio,participants        participants separated by ';'
  long   conversation,participant[,audio]       one row a participant
Both may have the columns `prior` (probability that the first-listed participant is on channel 1)
and `group` (conversations of different groups are never linked). Other columns are ignored.

Index conventions: m = conversation in table order; its participants are people[listing.of(m)], in
the order of the list, its tracks the sides sides.of(m) (module `sides`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import TWO, Numbering, numbered
from spklink.errors import Problems, problems_in
from spklink.tables import SEPARATOR, Header, Table, open_table, require_columns, wrong_length

LONGEST_NAME = 100_000  # characters of an id, a person or the files of a call


@dataclass(frozen=True)
class Conversations:
    """Checked conversations, in table order."""

    ids: list[str]
    speakers: list[str]
    listing: Numbering  # entries of the participant lists
    people: NDArray[np.int32]  # (entries,) who is listed there, an index into `speakers`
    sides: Numbering  # tracks
    audio: list[tuple[str, ...]] = field(repr=False)
    prior: NDArray[np.float64] = field(repr=False)  # (M,), P(first-listed is on channel 1)
    groups: list[str] = field(default_factory=lambda: [""])
    group: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    path: Path = Path()
    rows: list[int] = field(default_factory=list, repr=False)  # (M,) of the table, its first one

    def __len__(self) -> int:
        return len(self.ids)

    def index(self) -> dict[str, int]:
        """Conversation id → position in the table."""
        return {name: m for m, name in enumerate(self.ids)}

    def place(self, m: int) -> str:
        """Where conversation m stands in its table, for messages."""
        return f"row {self.rows[m] if self.rows else m + 2}"

    def names(self, m: int) -> tuple[str, ...]:
        """The participants of conversation m, as listed."""
        return tuple(self.speakers[k] for k in self.people[self.listing.of(m)].tolist())


@dataclass(slots=True)
class _Draft:
    """One conversation while its table is being read."""

    row: int
    id: str
    audio: str
    participants: list[str]
    prior: str
    group: str


def read_conversations(table: Table) -> Conversations:
    """Read either form of the table (a file, a DataFrame or rows); every problem of it is in the
    one error raised."""
    problems = Problems()
    with open_table(table, "conversations") as (header, rows):
        long_form = header.column("participant") >= 0 and header.column("participants") < 0
        require_columns(header, ["conversation", "participant" if long_form else "participants"])
        read = _read_long if long_form else _read_wide
        drafts = read(header, rows, problems)
    priors = [_check(draft, problems) for draft in drafts]
    if not drafts and not problems:
        problems.append("no conversations below the header")
    if problems:
        raise problems_in(header.path, problems)
    return _build(drafts, priors, header.path)


def make_conversations(
    calls: Iterable[tuple[str, str, str]], *, path: str | PathLike[str] = "conversations"
) -> Conversations:
    """Conversations from (id, first participant, second participant), checked as a file is."""
    drafts = [_Draft(n, i, "", [a, b], "", "") for n, (i, a, b) in enumerate(calls, start=1)]
    problems = Problems()
    _refuse_repeated(drafts, problems)
    priors = [_check(draft, problems) for draft in drafts]
    if problems:
        raise problems_in(path, problems)
    return _build(drafts, priors, Path(path))


def _read_wide(
    header: Header, rows: Iterable[tuple[int, list[str]]], problems: Problems
) -> list[_Draft]:
    at = [header.column(n) for n in ("conversation", "audio", "participants", "prior", "group")]
    drafts = []
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, audio, who, prior, group = ("" if k < 0 else fields[k].strip() for k in at)
        people = [person.strip() for person in who.split(SEPARATOR)] if who else []
        drafts.append(_Draft(number, name, audio, people, prior, group))
    _refuse_repeated(drafts, problems)
    return drafts


def _read_long(
    header: Header, rows: Iterable[tuple[int, list[str]]], problems: Problems
) -> list[_Draft]:
    at = [header.column(n) for n in ("conversation", "audio", "participant", "prior", "group")]
    drafts: dict[str, _Draft] = {}
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, audio, who, prior, group = ("" if k < 0 else fields[k].strip() for k in at)
        draft = drafts.setdefault(name, _Draft(number, name, audio, [], prior, group))
        draft.participants.append(who)
        for what, here in (("audio", audio), ("prior", prior), ("group", group)):
            if here and not getattr(draft, what):
                setattr(draft, what, here)
            elif here and here != getattr(draft, what):
                problems.append(
                    f"row {number}: {what} {here!r} of conversation {name!r} is "
                    f"{getattr(draft, what)!r} in row {draft.row}"
                )
    return list(drafts.values())


def _refuse_repeated(drafts: list[_Draft], problems: Problems) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        earlier = first.setdefault(draft.id, draft.row)
        if draft.id and earlier != draft.row:
            problems.append(
                f"row {draft.row}: conversation {draft.id!r} is already in row {earlier}"
            )


def _check(draft: _Draft, problems: Problems) -> float:
    """Add what is wrong with one conversation; return its prior."""

    def wrong(text: str) -> None:
        problems.append(f"row {draft.row}: {text}")

    people = draft.participants
    if said := _unfit(draft):
        wrong(said)
        return 0.5
    if not draft.id:
        wrong("empty conversation id")
    if not any(people):
        wrong("empty participants")
    elif not all(people):
        wrong("an empty participant name")
    elif unfit := next((person for person in people if SEPARATOR in person), None):
        wrong(f"participant {unfit!r} contains '{SEPARATOR}', which separates names; leave it out")
    elif len(people) < TWO:
        wrong(f"only one participant ({people[0]!r}); a call has two")
    elif len(set(people)) < len(people):
        twice = _repeated(people)
        wrong(f"participant {twice!r} twice in conversation {draft.id!r}")
    elif len(people) > TWO:
        wrong(f"{len(people)} participants; more than two are not supported yet")
    files = draft.audio.split(SEPARATOR) if draft.audio else []
    if len(files) > TWO:
        wrong(f"{len(files)} audio files; more than two channels are not supported yet")
    elif files and not all(name.strip() for name in files):
        wrong("an empty name among the audio files")
    return _prior(draft.prior, wrong)


def _unfit(draft: _Draft) -> str:
    """What cannot be a name: arrays of names give each the room of the longest, and end at NUL."""
    together = "".join([draft.id, draft.audio, *draft.participants])
    if len(together) <= LONGEST_NAME and "\0" not in together:
        return ""
    for what, names in (
        ("conversation id", [draft.id]),
        ("participant name", draft.participants),
        ("name of an audio file", [draft.audio]),
    ):
        longest = max(map(len, names), default=0)
        if longest > LONGEST_NAME:
            return f"{what} of {longest} characters; at most {LONGEST_NAME} are read"
        if any("\0" in name for name in names):
            return f"{what} with a NUL byte; is the file damaged?"
    return ""


def _repeated(people: list[str]) -> str:
    seen: set[str] = set()
    for person in people:
        if person in seen:
            return person
        seen.add(person)
    return ""


def _prior(text: str, wrong: Callable[[str], None]) -> float:
    try:
        value = float(text) if text else 0.5
    except ValueError:
        value = float("nan")
    if not 0.0 <= value <= 1.0:
        wrong(f"prior {text!r} is not a probability between 0 and 1")
    return value


def _files(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(SEPARATOR)) if text else ()


def _build(drafts: list[_Draft], priors: list[float], path: Path) -> Conversations:
    speakers: dict[str, int] = {}
    groups: dict[str, int] = {}
    participants = [[speakers.setdefault(p, len(speakers)) for p in d.participants] for d in drafts]
    group = [groups.setdefault(d.group, len(groups)) for d in drafts]
    return Conversations(
        ids=[d.id for d in drafts],
        speakers=list(speakers),
        listing=numbered(map(len, participants)),
        people=np.array([k for people in participants for k in people], np.int32),
        sides=numbered(TWO for _ in drafts),
        audio=[_files(d.audio) for d in drafts],
        prior=np.array(priors, np.float64),
        groups=list(groups),
        group=np.array(group, np.int32),
        path=path,
        rows=[d.row for d in drafts],
    )
