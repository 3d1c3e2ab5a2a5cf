"""Who took part in which conversation: reading and checking the table.

Two forms, told apart by the header:
  wide   conversation,audio,participants                     participants separated by ';'
  long   conversation,speaker[,status][,probability][,audio]   one row a participant
(in the long form `participant` is as good as `speaker`). Module `lists` has what an entry may be.
Both may have the columns `tracks` (how many there are), `prior` (probability that the first-listed
participant is on channel 1) and `group` (conversations of different groups are never linked).
Other columns are ignored.

Index conventions: m = conversation in table order; its participants are people[listing.of(m)], in
the order of the list, its tracks the sides sides.of(m) (module `sides`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.column_words import PEOPLE
from spklink.database.conversation_columns import needed_columns, seem_listed
from spklink.database.lists import OTHERS, Listed, split, track_count
from spklink.database.segments import Diarized, read_segments
from spklink.database.sides import TWO, Numbering, numbered
from spklink.database.slips import refuse_spoilt
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.tables import SEPARATOR, Header, Table, open_table, require_columns, wrong_length

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]
MOST_SPLIT = 0.5  # of people on two tracks
SURE: list[float | None] = [None, None]  # of two people
ORDINARY = 0.5, TWO  # prior and tracks of most
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
    presence: Floats = field(default_factory=lambda: np.zeros(0), repr=False)  # (entries,), 1: sure
    possible: Mask = field(default_factory=lambda: np.zeros(0, np.bool_), repr=False)  # (entries,)
    unknown: Ints = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)  # (M,) of `?`
    open: Mask = field(default_factory=lambda: np.zeros(0, np.bool_), repr=False)  # (M,) with `*`
    diarized: list[Diarized] = field(default_factory=list, repr=False)  # (M,), or none at all
    split: float = 0.0  # how often somebody who is there is on two tracks
    # (sum of people x tracks,) what other evidence than voices adds to every seat; or none at all
    cues: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    # (entries,) people whom the list does not name, but who may be there (`candidates`), and
    # (sum of people x tracks,) what voices known from elsewhere add to every seat; or none at all
    # And (seats,) what voices of people with very many conversations add (`frequent`), or none.
    candidate: Mask = field(default_factory=lambda: np.zeros(0, np.bool_), repr=False)
    sums: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    elsewhere: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    enrolled: int = (
        0  # of the last conversations: recordings of one known person each (`enrolment`)
    )
    # (M,) the channel of its file that a recording of one track is, from 0; none: all are taken
    channel: list[int | None] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        """Lists of which nothing else is said are closed, and everybody on them is certain."""
        calls, entries = len(self), len(self.people)
        for name, size, usual in (
            ("presence", entries, np.float64(1.0)),
            ("possible", entries, np.False_),
            ("candidate", entries, np.False_),
            ("unknown", calls, np.int32(0)),
            ("open", calls, np.False_),
        ):
            given = getattr(self, name)
            if len(given) != size:
                if (given != usual).any():
                    raise ValueError(f"{len(given)} values of {name} for {size}")
                object.__setattr__(self, name, np.full(size, usual))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def asked(self) -> int:
        """How many of them are asked about: all but those that are enrolled."""
        return len(self) - self.enrolled

    def index(self) -> dict[str, int]:
        """Conversation id → position in the table."""
        return {name: m for m, name in enumerate(self.ids)}

    def place(self, m: int) -> str:
        """Where conversation m stands in its table, for messages."""
        row = f"row {self.rows[m] if self.rows else m + 2}"
        return row if m < self.asked else f"enrolment, {row}"

    @cached_property
    def plain(self) -> bool:
        """Whether every conversation is between two certain people on two tracks: one bit each."""
        nothing_else = not self.possible.any() and not self.unknown.any() and not self.open.any()
        return self.sides.alike == self.listing.alike == TWO and nothing_else and not self.split

    def tracks(self, m: int) -> tuple[str, ...]:
        """What the tracks of conversation m are called: as in its diarization, else 1, 2, …"""
        if self.diarized:
            return self.diarized[m].labels
        return tuple(str(k + 1) for k in range(int(self.sides.counts[m])))

    def track_name(self, m: int, track: int) -> str:
        """One of them, from 0, as messages name it."""
        return f"track {self.tracks(m)[track]}" if self.diarized else f"channel {track + 1}"

    def names(self, m: int) -> tuple[str, ...]:
        """The participants of conversation m, as listed."""
        return tuple(self.speakers[k] for k in self.people[self.listing.of(m)].tolist())


@dataclass(slots=True)
class _Draft:
    """One conversation while its table is being read."""

    row: int
    id: str
    listed: Listed
    audio: str = ""
    prior: str = ""
    group: str = ""
    tracks: str = ""
    diarized: Diarized | None = None


COLUMNS = ("audio", "prior", "group", "tracks")  # of a draft, in either form


def read_conversations(
    table: Table, tracks: Table | None = None, *, unlisted: bool = False
) -> Conversations:
    """Read either form of the table (a file, a DataFrame or rows); every problem of it is in the
    one error raised. `tracks` says who speaks when, where a recording is one channel. `unlisted`:
    a list may be empty, or all of them missing; then anybody may take part."""
    problems = Problems()
    with open_table(table, "conversations") as (header, rows):
        needed = needed_columns(header)
        if not unlisted or "conversation" not in header.names or seem_listed(header, needed):
            require_columns(header, needed)
        nobody, person = OTHERS if unlisted else "", needed[1]
        if person == PEOPLE:
            drafts = _read_wide(header, rows, problems, nobody)
        else:
            drafts = _read_long(header, rows, problems, person, nobody)
    if tracks is not None and drafts:
        if problems:
            raise problems_in(header.path, problems)
        found = read_segments(tracks, [d.id for d in drafts], [_files(d.audio) for d in drafts])
        for draft, one in zip(drafts, found, strict=True):
            draft.diarized = one
    checked = [ORDINARY if _ordinary(one) else _check(one, problems) for one in drafts]
    if not drafts and not problems:
        problems.append("no conversations below the header")
    if problems:
        raise problems_in(header.path, problems)
    made = _build(drafts, checked, header.path)
    refuse_spoilt(made)
    return made


def with_splits(conversations: Conversations, rate: float) -> Conversations:
    """The same where somebody may be on two tracks of a conversation."""
    check_split(rate)
    return replace(conversations, split=float(rate)) if rate else conversations


def check_split(rate: float) -> None:
    """Refuse what is no rate of people on two tracks."""
    if not 0.0 <= rate <= MOST_SPLIT:
        raise SpklinkError(f"--split-speakers {rate:g}: a rate from 0 to {MOST_SPLIT:g}")


def segment_rows(conversations: Conversations) -> Iterator[tuple[str, str, float, float]]:
    """Rows of a table of diarized tracks."""
    for name, one in zip(conversations.ids, conversations.diarized, strict=False):
        for track, start, end in one.turns:
            yield name, one.labels[track], start, end


def make_conversations(
    calls: Iterable[tuple[str, str, str]], *, path: str | PathLike[str] = "conversations"
) -> Conversations:
    """Conversations from (id, first participant, second participant), checked as a file is."""
    drafts = [
        _Draft(n, i, Listed([a, b], [None, None])) for n, (i, a, b) in enumerate(calls, start=1)
    ]
    problems = Problems()
    _refuse_repeated(drafts, problems)
    checked = [ORDINARY if _ordinary(one) else _check(one, problems) for one in drafts]
    if problems:
        raise problems_in(path, problems)
    return _build(drafts, checked, Path(path))


def _read_wide(
    header: Header, rows: Iterable[tuple[int, list[str]]], problems: Problems, nobody: str
) -> list[_Draft]:
    at = [header.column(n) for n in ("conversation", "participants", *COLUMNS)]
    drafts = []
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, who, audio, prior, group, tracks = ["" if k < 0 else fields[k].strip() for k in at]
        listed, said = split(who or nobody)
        for wrong in said:
            problems.append(f"row {number}: {wrong}")
        if not said:
            drafts.append(_Draft(number, name, listed, audio, prior, group, tracks))
    _refuse_repeated(drafts, problems)
    return drafts


def _read_long(
    header: Header,
    rows: Iterable[tuple[int, list[str]]],
    problems: Problems,
    person: str,
    nobody: str,
) -> list[_Draft]:
    names = ("conversation", person, "status", "probability", *COLUMNS)
    at = [header.column(n) for n in names]
    drafts: dict[str, _Draft] = {}
    unfit: set[str] = set()
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, who, status, chance, *further = ("" if k < 0 else fields[k].strip() for k in at)
        draft = drafts.setdefault(name, _Draft(number, name, Listed()))
        who = who if who or status else nobody
        if wrong := draft.listed.add(who, status.lower(), chance):
            problems.append(f"row {number}: {wrong}")
            unfit.add(name)
        for what, here in zip(COLUMNS, further, strict=True):
            if here and not getattr(draft, what):
                setattr(draft, what, here)
            elif here and here != getattr(draft, what):
                problems.append(
                    f"row {number}: {what} {here!r} of conversation {name!r} is "
                    f"{getattr(draft, what)!r} in row {draft.row}"
                )
    return [draft for name, draft in drafts.items() if name not in unfit]


def _refuse_repeated(drafts: list[_Draft], problems: Problems) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        earlier = first.setdefault(draft.id, draft.row)
        if draft.id and earlier != draft.row:
            problems.append(
                f"row {draft.row}: conversation {draft.id!r} is already in row {earlier}"
            )


def _check(draft: _Draft, problems: Problems) -> tuple[float, int]:
    """Add what is wrong with one conversation; return its prior and how many tracks it has."""

    def wrong(text: str) -> None:
        problems.append(f"row {draft.row}: {text}")

    if said := _unfit(draft):
        wrong(said)
        return 0.5, TWO
    if not draft.id:
        wrong("empty conversation id")
    files = draft.audio.split(SEPARATOR) if draft.audio else []
    if files and not all(name.strip() for name in files):
        wrong("an empty name among the audio files")
    tracks, because = _tracks(draft, len(files), wrong)
    if said := draft.listed.wrong(draft.id, tracks, because):
        wrong(said)
    prior = _prior(draft.prior, wrong)
    if prior != 0.5 and not tracks == len(draft.listed.names) == TWO:
        wrong(
            f"prior {draft.prior!r}, which is about two named people on two tracks; leave it empty "
            "and say what is known in a table for --known"
        )
    return prior, tracks


def _ordinary(draft: _Draft) -> bool:
    """Whether nothing can be wrong with it: two certain people in one recording, of whom nothing
    more is said. So are most, and all else that is looked at takes twice the time."""
    listed = draft.listed
    if draft.prior or draft.tracks or draft.diarized is not None or listed.unknown or listed.open:
        return False
    if listed.chance != SURE or not draft.id:
        return False
    one, two = listed.names
    if not one or not two or one == two:
        return False
    together = f"{draft.id}{draft.audio}{one}{two}"
    return len(together) <= LONGEST_NAME and "\0" not in together and SEPARATOR not in together


def _tracks(draft: _Draft, files: int, wrong: Callable[[str], None]) -> tuple[int, str]:
    """How many tracks a conversation has, and what says so where it is not the list."""
    usual = max(TWO, draft.listed.certain + draft.listed.unknown)
    counted = track_count(draft.tracks, files if files > 1 else usual)
    if isinstance(counted, str):
        wrong(counted)
        return usual, ""
    if draft.diarized is not None:
        voices = len(draft.diarized.labels)
        if files > 1:
            wrong(f"{files} audio files; tracks that are diarized are those of one file")
        elif draft.tracks and counted != voices:
            wrong(f"{counted} tracks, but the segments are those of {voices}")
        return voices, " (diarized)"
    if files > 1 and counted != files:
        wrong(f"{files} audio files for {counted} tracks; give one file a track, or a single one")
    if draft.tracks:
        return counted, " (column tracks)"
    return counted, f" ({files} audio files)" if files > 1 else ""


def _unfit(draft: _Draft) -> str:
    """What cannot be a name: arrays of names give each the room of the longest, and end at NUL."""
    people = draft.listed.names
    together = "".join([draft.id, draft.audio, *people])
    if len(together) <= LONGEST_NAME and "\0" not in together:
        return ""
    for what, names in (
        ("conversation id", [draft.id]),
        ("participant name", people),
        ("name of an audio file", [draft.audio]),
    ):
        longest = max(map(len, names), default=0)
        if longest > LONGEST_NAME:
            return f"{what} of {longest} characters; at most {LONGEST_NAME} are read"
        if any("\0" in name for name in names):
            return f"{what} with a NUL byte; is the file damaged?"
    return ""


def _prior(text: str, wrong: Callable[[str], None]) -> float:
    try:
        value = float(text) if text else 0.5
    except ValueError:
        value = float("nan")
    if not 0.0 <= value <= 1.0:
        wrong(f"prior {text!r} is not a probability between 0 and 1")
        return 0.5
    return value


def _files(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(SEPARATOR)) if text else ()


def _build(drafts: list[_Draft], checked: list[tuple[float, int]], path: Path) -> Conversations:
    speakers: dict[str, int] = {}
    groups: dict[str, int] = {}
    lists = [d.listed for d in drafts]
    participants = [[speakers.setdefault(p, len(speakers)) for p in one.names] for one in lists]
    group = [groups.setdefault(d.group, len(groups)) for d in drafts]
    chance = np.array([chance for one in lists for chance in one.chance], np.float64)
    possible = ~np.isnan(chance)  # None is no number
    return Conversations(
        ids=[d.id for d in drafts],
        speakers=list(speakers),
        listing=numbered(map(len, participants)),
        people=np.array([k for people in participants for k in people], np.int32),
        sides=numbered(tracks for _, tracks in checked),
        audio=[_files(d.audio) for d in drafts],
        prior=np.array([prior for prior, _ in checked], np.float64),
        groups=list(groups),
        group=np.array(group, np.int32),
        path=path,
        rows=[d.row for d in drafts],
        presence=np.where(possible, chance, 1.0),
        possible=possible,
        unknown=np.array([one.unknown for one in lists], np.int32),
        open=np.array([one.open for one in lists], np.bool_),
        diarized=[d.diarized for d in drafts if d.diarized is not None],
    )
