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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.column_words import PEOPLE
from spklink.database.conversation_columns import needed_columns, seem_listed
from spklink.database.drafts import (
    Draft,
    Gathered,
    files_of,
    gathered,
    read_long,
    read_wide,
    refuse_repeated,
)
from spklink.database.lists import OTHERS, Listed
from spklink.database.many_conversations import read_many
from spklink.database.segments import Diarized, read_segments
from spklink.database.sides import TWO, Numbering, numbered
from spklink.database.slips import refuse_spoilt
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.tables import Table, open_table, read_table, require_columns
from spklink.texts import Lists, Texts

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
MOST_SPLIT = 0.5  # of people on two tracks


CALLS, ENTRIES, SEATS, ALL = "calls", "entries", "seats", "all"
OF = {  # what each field of `Conversations` has a value for; ALL: all together
    **dict.fromkeys(("ids", "audio", "prior", "group", "rows", "unknown", "open"), CALLS),
    **dict.fromkeys(("diarized", "channel"), CALLS),
    **dict.fromkeys(("people", "presence", "possible", "candidate"), ENTRIES),
    **dict.fromkeys(("cues", "sums", "elsewhere"), SEATS),
    **dict.fromkeys(("speakers", "listing", "sides", "groups", "path", "split", "enrolled"), ALL),
}


@dataclass(frozen=True)
class Conversations:
    """Checked conversations, in table order."""

    ids: Texts
    speakers: Texts
    listing: Numbering  # entries of the participant lists
    people: NDArray[np.int32]  # (entries,) who is listed there, an index into `speakers`
    sides: Numbering  # tracks
    audio: Lists = field(repr=False)  # the files of each
    prior: NDArray[np.float64] = field(repr=False)  # (M,), P(first-listed is on channel 1)
    groups: list[str] = field(default_factory=lambda: [""])
    group: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    path: Path = Path()
    # (M,) of the table, the first one of each; none: all in a row below the header
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
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

    def take(self, calls: Rows) -> Conversations:
        """Some conversations, in this order; people keep their numbers."""
        people, tracks = self.listing.counts, self.sides.counts
        seats = people * tracks
        which: dict[str, Rows] = {
            CALLS: calls,
            ENTRIES: ranges(self.listing.start[calls], people[calls]),
            SEATS: ranges((np.cumsum(seats) - seats)[calls], seats[calls]),
        }
        some = {
            one.name: _taken(getattr(self, one.name), which[OF[one.name]])
            for one in fields(self)
            if OF[one.name] != ALL
        }
        enrolled = int((calls >= self.asked).sum())
        listing, sides = numbered(people[calls]), numbered(tracks[calls])
        return replace(self, **some, listing=listing, sides=sides, enrolled=enrolled)

    @property
    def asked(self) -> int:
        """How many of them are asked about: all but those that are enrolled."""
        return len(self) - self.enrolled

    def index(self) -> dict[str, int]:
        """Conversation id → position in the table."""
        return {name: m for m, name in enumerate(self.ids)}

    def place(self, m: int) -> str:
        """Where conversation m stands in its table, for messages."""
        row = f"row {self.rows[m] if len(self.rows) else m + 2}"
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


def _taken(values: Any, which: Rows) -> Any:
    """Some values, in this order; all where there are none."""
    if isinstance(values, Lists):
        return Lists.of(values[m] for m in which.tolist())
    if isinstance(values, Texts):
        return values.take(which)
    if isinstance(values, list):
        return [values[m] for m in which.tolist()] if values else values
    return values[which] if len(values) else values


def read_conversations(
    table: Table, tracks: Table | None = None, *, unlisted: bool = False
) -> Conversations:
    """Read either form of the table (a file, a DataFrame or rows); every problem of it is in the
    one error raised. `tracks` says who speaks when, where a recording is one channel. `unlisted`:
    a list may be empty, or all of them missing; then anybody may take part."""
    if tracks is None:
        content = read_table(table, "conversations")
        if (many := read_many(content, unlisted=unlisted)) is not None:
            return _refused_if_spoilt(_built(many, content.path))
        table = content
    problems = Problems()
    with open_table(table, "conversations") as (header, rows):
        needed = needed_columns(header)
        if not unlisted or "conversation" not in header.names or seem_listed(header, needed):
            require_columns(header, needed)
        nobody, person = OTHERS if unlisted else "", needed[1]
        if person == PEOPLE:
            drafts = read_wide(header, rows, problems, nobody)
        else:
            drafts = read_long(header, rows, problems, person, nobody)
    if tracks is not None and drafts:
        if problems:
            raise problems_in(header.path, problems)
        voices = read_segments(tracks, [d.id for d in drafts], [files_of(d.audio) for d in drafts])
        for draft, one in zip(drafts, voices, strict=True):
            draft.diarized = one
    found = gathered(drafts, problems)
    if not drafts and not problems:
        problems.append("no conversations below the header")
    if problems:
        raise problems_in(header.path, problems)
    return _refused_if_spoilt(_built(found, header.path))


def _refused_if_spoilt(made: Conversations) -> Conversations:
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
        Draft(n, i, Listed([a, b], [None, None])) for n, (i, a, b) in enumerate(calls, start=1)
    ]
    problems = Problems()
    refuse_repeated(drafts, problems)
    found = gathered(drafts, problems)
    if problems:
        raise problems_in(path, problems)
    return _built(found, Path(path))


def _built(found: Gathered, path: Path) -> Conversations:
    possible = ~np.isnan(found.chance)
    return Conversations(
        ids=found.ids,
        speakers=found.speakers,
        listing=numbered(found.counts),
        people=found.people,
        sides=numbered(found.tracks),
        audio=found.audio,
        prior=found.prior,
        groups=found.groups,
        group=found.group,
        path=path,
        rows=found.rows,
        presence=np.where(possible, found.chance, 1.0),
        possible=possible,
        unknown=found.unknown,
        open=found.open,
        diarized=found.diarized,
    )
