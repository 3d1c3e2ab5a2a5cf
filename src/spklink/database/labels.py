"""What people say about channels: known channels (evidence), keys (truth), claims (to be checked).

All three are tables `conversation,channel,speaker`; a known channel may carry a `probability`. A
channel is a number or what a diarization calls it; its column may be called `track`. The speaker
`*` is someone else: nobody who is listed there. A key may name people who are not listed, as lists
may be wrong; evidence and claims may not, as that is mostly a slip.

A label of two people on two channels is turned into a bit: 0 = channels as listed (first-listed
participant on channel 1), 1 = exchanged, -1 = nothing said. Of all other conversations, and of
those with someone else, only the statements themselves are kept (`Said`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.database.many_labels import read_many
from spklink.database.sides import exchanged, speakers_on
from spklink.errors import Problems, problems_in
from spklink.tables import (
    Header,
    Table,
    open_table,
    read_table,
    require_columns,
    wrong_length,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STRANGER = -1  # someone else, as a person
COLUMNS = ("conversation", "channel", "speaker", "probability")


@dataclass(frozen=True)
class Said:
    """Statements about single tracks, in the order of the table, none of them twice."""

    conversation: Ints  # (N,)
    track: Ints  # (N,) from 0
    person: Ints  # (N,) index into `speakers`, STRANGER for whoever is not listed there
    probability: Floats  # (N,)
    names: Sequence[str]  # (N,) as they are written, also of people who are not listed
    heard: frozenset[int] = frozenset()  # conversations that somebody listened to: beyond doubt

    def __len__(self) -> int:
        return len(self.names)


def said_of(rows: list[tuple[int, int, int, float, str]]) -> Said:
    """Statements from (conversation, track, person, probability, name)."""
    m, track, person = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    chance = np.array([row[3] for row in rows], np.float64)
    return Said(m, track, person, chance, [row[4] for row in rows])


@dataclass(frozen=True)
class Labels:
    """What a table says: about two people on two channels as one number a conversation."""

    exchanged: Floats  # (M,) probability that the channels are exchanged; NaN: unsaid
    foreign: int = 0  # rows about conversations that are not in the table
    said: Said = field(default_factory=lambda: said_of([]))

    @property
    def bits(self) -> NDArray[np.int8]:
        """(M,) 0 or 1 where certain, -1 elsewhere."""
        certain = (self.exchanged == 0) | (self.exchanged == 1)
        return np.where(certain, np.nan_to_num(self.exchanged), -1).astype(np.int8)

    def speakers(self, conversations: Conversations) -> Ints:
        """(sides,) who is certainly on each side, -1 where nobody says by name. People who are
        listed nowhere are numbered after those who are."""
        number = {name: k for k, name in enumerate(conversations.speakers)}
        if conversations.plain:
            found = speakers_on(conversations, self.bits)
        else:
            found = np.full(len(conversations.sides), -1, np.int64)
        sides = conversations.sides.start[self.said.conversation] + self.said.track
        sure = self.said.probability == 1.0
        for side, name in zip(sides[sure].tolist(), self._named(sure), strict=True):
            if name != OTHERS:
                found[side] = number.setdefault(name, len(number))
        return found

    def _named(self, mask: NDArray[np.bool_]) -> list[str]:
        return [self.said.names[k] for k in np.flatnonzero(mask).tolist()]


def read_known(table: Table, conversations: Conversations) -> Labels:
    """Known channels: every row must be about a conversation of the table."""
    return _Reader(conversations, evidence=True, listed=True).read(table)


def read_key(table: Table, conversations: Conversations) -> Labels:
    """Truth: certain, rows about other conversations are counted and ignored."""
    return _Reader(conversations, evidence=False, listed=False).read(table)


def read_claims(table: Table, conversations: Conversations) -> Labels:
    """Claims to be checked: as a key, but of people who are listed."""
    return _Reader(conversations, evidence=False, listed=True).read(table)


class _Reader:
    """Rows, one after the other, and what they say so far."""

    def __init__(self, conversations: Conversations, *, evidence: bool, listed: bool) -> None:
        self.conversations, self.where = conversations, conversations.index()
        self.people = {name: k for k, name in enumerate(conversations.speakers)}
        self.evidence, self.listed = evidence, listed
        self.turned = np.full(len(conversations), np.nan)
        self.strange: set[int] = set()  # conversations with someone else
        self.foreign = 0
        self.statements: dict[tuple[int, int, str], float] = {}
        self.total: dict[tuple[int, int | str], float] = {}  # probability on a track, of a person
        self.first_row: dict[int, int] = {}

    def read(self, table: Table) -> Labels:
        table = read_table(table, "labels")
        if (many := read_many(table, self.conversations, every=self.evidence)) is not None:
            return Labels(many.exchanged, many.foreign, Said(*many.said))
        problems = Problems()
        with open_table(table, "labels") as (header, rows):
            channel = (
                "track" if header.column("channel") < 0 <= header.column("track") else "channel"
            )
            require_columns(header, [COLUMNS[0], channel, COLUMNS[2]])
            at = self._columns(header, channel)
            for number, fields in rows:
                wrong = wrong_length(number, fields, header)
                if not wrong and (
                    said := self._row(number, *("" if k < 0 else fields[k].strip() for k in at))
                ):
                    wrong = f"row {number}: {said}"
                if wrong:
                    problems.append(wrong)
        if not problems and (said := self._all_strange()):
            problems.append(said)
        if problems:
            raise problems_in(header.path, problems)
        self.turned[list(self.strange)] = np.nan  # no bit is true of a list that is wrong
        people = ((m, k, self._person(m, n), p, n) for (m, k, n), p in self.statements.items())
        return Labels(self.turned, self.foreign, said_of(list(people)))

    def _columns(self, header: Header, channel: str) -> list[int]:
        found = [header.column(channel if name == "channel" else name) for name in COLUMNS]
        return found if self.evidence else [*found[:3], -1]

    def _row(self, number: int, name: str, channel: str, speaker: str, probability: str) -> str:
        """Take one row; what is wrong with it, or nothing."""
        m = self.where.get(name)
        if m is None:
            if self.evidence:
                return f"no conversation {name!r} in {self.conversations.path.name}"
            self.foreign += 1
            return ""
        track = self._track(m, channel)
        if track is None:
            return f"channel {channel!r} is not {_or(self.conversations.tracks(m))}"
        if said := self._unfit(m, speaker):
            return said
        try:
            chance = float(probability) if probability else 1.0
        except ValueError:
            chance = float("nan")
        if not 0.0 <= chance <= 1.0:
            return f"probability {probability!r} is not between 0 and 1"
        if not self._agrees(m, track, speaker, chance):
            said = f"contradicts row {self.first_row[m]} about conversation {name!r}"
            return said + self._why(m, speaker)
        self.first_row.setdefault(m, number)
        return ""

    def _track(self, m: int, channel: str) -> int | None:
        """The track that is meant; what a diarization calls it goes before its number."""
        labels = self.conversations.tracks(m)
        if channel in labels:
            return labels.index(channel)
        numbers = [str(k + 1) for k in range(len(labels))]
        return numbers.index(channel) if channel in numbers else None

    def _unfit(self, m: int, speaker: str) -> str:
        """Why nobody of this name can be meant there, or nothing."""
        table, people, name = self.conversations, self.conversations.names(m), self._id(m)
        if not speaker:
            return f"no speaker; write '{OTHERS}' for someone who is not listed"
        if not self.listed or speaker in people:
            return ""
        if speaker != OTHERS:
            shown = " and ".join(people) if people else "nobody by name"
            return f"speaker {speaker!r} takes no part in conversation {name!r} ({shown})"
        certain = int((~table.possible[table.listing.of(m)]).sum())
        if certain < table.sides.counts[m]:
            return ""
        return (
            f"someone else ('{OTHERS}') in conversation {name!r}, whose tracks are all taken by "
            f"certain people ({' and '.join(people)}); write who may be absent as ?name there"
        )

    def _agrees(self, m: int, track: int, speaker: str, chance: float) -> bool:
        """Keep a statement, unless it contradicts earlier ones."""
        key = m, track, speaker
        if key in self.statements:
            return abs(self.statements[key] - chance) <= EQUAL
        sums: list[tuple[int, int | str]] = [(m, track)]
        if speaker != OTHERS and not self.conversations.split:
            sums.append((m, speaker))
        if any(self.total.get(one, 0.0) + chance > 1.0 + EQUAL for one in sums):
            return False
        if not self._turns(m, track, speaker, chance):
            return False
        self.statements[key] = chance
        for one in sums:
            self.total[one] = self.total.get(one, 0.0) + chance
        return True

    def _why(self, m: int, speaker: str) -> str:
        """A remedy, where there is one."""
        if self.conversations.plain or self.total.get((m, speaker), 0.0) < 1.0:
            return ""
        return f": {speaker!r} is on two tracks, which needs --split-speakers"

    def _turns(self, m: int, track: int, speaker: str, chance: float) -> bool:
        """The same of the bit of a conversation, where every conversation has one."""
        people = self.conversations.names(m)
        if not self.conversations.plain:
            return True
        if speaker not in people:
            self.strange.add(m)
            return True
        turned = exchanged(people.index(speaker), track)
        value = chance if turned else 1.0 - chance
        if abs(self.turned[m] - value) > EQUAL:  # never where nothing was said
            return m in self.strange
        self.turned[m] = value
        return True

    def _person(self, m: int, name: str) -> int:
        """Who is meant, of those who are listed there."""
        person = self.people.get(name, STRANGER)
        listed = self.conversations.people[self.conversations.listing.of(m)]
        return person if person in listed else STRANGER

    def _id(self, m: int) -> str:
        return self.conversations.ids[m]

    def _all_strange(self) -> str:
        """A key in which nobody is listed is one of other names."""
        names = [name for _, _, name in self.statements]
        at = ((m, name) for m, _, name in self.statements)
        if not names or OTHERS in names or any(self._person(m, n) != STRANGER for m, n in at):
            return ""
        return (
            f"nobody in it is listed in that conversation (the first is {names[0]!r}); are the "
            f"names those of {self.conversations.path.name}?"
        )


def _or(tracks: tuple[str, ...]) -> str:
    if len(tracks) <= 2:
        return " or ".join(tracks)
    return f"one of {', '.join(tracks)}" if len(tracks) < 10 else f"one of {len(tracks)} tracks"
