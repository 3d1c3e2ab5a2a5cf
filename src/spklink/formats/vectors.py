"""Vectors of sides that somebody else computed, from any format to one array.

.npz      conversation, channel (from 1), embedding (sides, dimensions); seconds of speech
.csv      the same as columns: conversation,channel,e1,e2,… or one column `embedding` of numbers
.parquet  the same columns, `embedding` being lists
.ark .scp Kaldi, text or binary, also compressed; `.txt` is an ark in text

Instead of conversation and channel all of them may have one `key` (module `keys`). A format hands
over blocks; what is wrong with a side is gathered here, so that it is said the same way of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import NO_TRACK, SideFinder, side_name
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.formats.keys import REMEDY, Keys
from spklink.words import counted

Singles = NDArray[np.float32]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Room = Callable[[tuple[int, int]], Singles]  # zeros, in memory or in a file
MOST_NUMBERS = 1 << 16  # of one vector: more are no vector of a voice
ROWS = 1024  # vectors at a time, where they come one by one
NAMED = 3  # sides or conversations that a message names; the rest are counted


@dataclass(frozen=True)
class Block:
    """Some sides of a file. Named by conversation and channel, or by a key."""

    vectors: NDArray[Any]  # (n, dimensions)
    places: Sequence[str]  # where each stands, for messages
    conversation: Sequence[str] | None = None
    channel: Sequence[str] | None = None
    key: Sequence[str] | None = None
    seconds: Sequence[Any] | None = None


@dataclass(frozen=True)
class Vectors:
    """What a file has about the sides of a table."""

    vectors: Singles  # (S, dimensions), zero where there is none
    there: Mask  # (S,)
    seconds: Floats | None  # (S,) of speech; None where the file does not say
    hashes: list[str]  # (S,) of the vectors; "" where there is none that can be used
    bad: dict[int, str]  # sides whose vector cannot be used: where it is, and why
    foreign: int  # sides of conversations that are not in the table


@dataclass
class Collector:
    """Takes in blocks, gathers problems."""

    conversations: Conversations
    room: Room
    keys: Keys = field(default_factory=Keys)
    problems: Problems = field(default_factory=Problems)

    def __post_init__(self) -> None:
        self.find, count = SideFinder(self.conversations), len(self.conversations.sides)
        self.place: list[str] = [""] * count
        self.seconds: Floats | None = None
        self.vectors: Singles | None = None
        self.bad: dict[int, str] = {}
        self.foreign: list[str] = []  # the first few
        self.foreign_count = 0

    def add(self, block: Block) -> None:
        """Store one block."""
        names = self._named(block)
        width = block.vectors.shape[1]
        if self.vectors is None:
            if not 0 < width <= MOST_NUMBERS:
                raise SpklinkError(f"vectors of {width} numbers; 1 to {MOST_NUMBERS} are read")
            self.vectors = self.room((len(self.conversations.sides), width))
            self.first = block.places[0] if len(block.places) else ""
        if width != self.vectors.shape[1]:
            expected = f"{self.first} has {self.vectors.shape[1]}"
            said = (
                f"{place}: {counted(width, 'number')} where {expected}" for place in block.places
            )
            self.problems.take(said, len(block.places))
            return
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told below
            vectors = np.asarray(block.vectors, np.float32)
        wrong = _wrong(vectors)
        if not wrong and block.seconds is None and self._all(block, vectors):
            return
        for k, name in enumerate(names):
            side = self._side(name, block.places[k])
            if side is not None:
                self._put(side, vectors[k], block.places[k], wrong.get(k))
                self._speech(side, block.seconds, k, block.places[k])

    def _all(self, block: Block, vectors: Singles) -> bool:
        """Store a block with nothing to be told of, and whether it is such a one."""
        if block.conversation is None or block.channel is None or self.vectors is None:
            return False
        sides = self.find.all_of(block.conversation, block.channel)
        own = sides.tolist()
        if min(own, default=0) < 0 or len(set(own)) < len(own) or any(self.place[s] for s in own):
            return False
        self.vectors[sides] = vectors
        for side, place in zip(own, block.places, strict=True):
            self.place[side] = place
        return True

    def _named(self, block: Block) -> list[tuple[str, str] | None]:
        if block.conversation is not None and block.channel is not None:
            return list(zip(block.conversation, block.channel, strict=True))
        assert block.key is not None
        found: list[tuple[str, str] | None] = []
        for key, place in zip(block.key, block.places, strict=True):
            side = self.keys(key)
            found.append(side)
            if side is None and self.keys.table is None:
                self.problems.append(f"{place}: {key!r} names no side; {REMEDY}")
            elif side is None:
                self._other(f"{place}: {key!r} is not in the table of keys")
        return found

    def _other(self, said: str) -> None:
        self.foreign_count += 1
        if len(self.foreign) < NAMED:
            self.foreign.append(said)

    def _side(self, name: tuple[str, str] | None, place: str) -> int | None:
        if name is None:
            return None
        side = self.find(*name)
        if side == NO_TRACK:
            tracks = self.find.tracks()
            self.problems.append(f"{place}: channel {name[1]!r}; a channel is {tracks}")
        elif side < 0:
            self._other(f"{place}: conversation {name[0]!r} is not in the table")
        return None if side < 0 else side

    def _put(self, side: int, vector: Singles, place: str, wrong: str | None) -> None:
        assert self.vectors is not None
        if self.place[side]:
            named = side_name(self.conversations, side)
            self.problems.append(f"{place}: {named} is already in {self.place[side]}")
            return
        self.place[side] = place
        if wrong:
            self.bad[side] = f"{place}: {wrong}"
        else:
            self.vectors[side] = vector

    def _speech(self, side: int, seconds: Sequence[Any] | None, k: int, place: str) -> None:
        if seconds is None:
            return
        if self.seconds is None:
            self.seconds = np.zeros(len(self.place))
        try:
            value = float(seconds[k])
        except (TypeError, ValueError):
            value = float("nan")
        if not 0.0 <= value < float("inf"):
            self.problems.append(f"{place}: seconds {seconds[k]!r} is not a number of 0 or more")
            value = 0.0
        self.seconds[side] = value

    def finish(self, path: Any) -> Vectors:
        """All that was taken in, or everything that is wrong with it."""
        there = np.array([bool(place) for place in self.place], np.bool_)
        self._strangers(there)
        if not self.problems and self.vectors is None:
            self.problems.append("no vectors in it")
        if self.problems:
            raise problems_in(path, self.problems)
        assert self.vectors is not None
        hashes = self._hashes(there)
        return Vectors(self.vectors, there, self.seconds, hashes, self.bad, self.foreign_count)

    def _strangers(self, there: Mask) -> None:
        """Conversations of others are passed over; but not where the table has one without any
        vector: then the two may be one conversation under two names."""
        if not self.foreign:
            return
        table = self.conversations
        none = np.bincount(table.sides.conversation, there, len(table)) == 0
        if not none.any():
            return
        lacking = ", ".join(repr(table.ids[m]) for m in np.flatnonzero(none)[:NAMED])
        for said in self.foreign:
            self.problems.append(said)
        more = self.foreign_count - len(self.foreign)
        self.problems.append(
            (f"and {more} more such sides; " if more > 0 else "")
            + f"{counted(int(none.sum()), 'conversation')} of the table without any vector "
            f"({lacking}): name both alike, or remove the one or the other"
        )

    def _hashes(self, there: Mask) -> list[str]:
        """(S,) what tells a vector from all others. Of two sides with one and the same vector one
        is in the wrong place: voices of a copy say nothing, and would be taken for the surest link
        of all, so both are bad."""
        assert self.vectors is not None
        found, first = [""] * len(there), dict[str, int]()
        for side in np.flatnonzero(there).tolist():
            if side in self.bad:
                continue
            found[side] = hashlib.sha256(self.vectors[side].tobytes()).hexdigest()
            other = first.setdefault(found[side], side)
            if other != side:
                for one, two in ((side, other), (other, side)):
                    named = f"{side_name(self.conversations, two)} ({self.place[two]})"
                    self.bad[one] = f"{self.place[one]}: copy: the same vector as {named}"
        for side in self.bad:
            self.vectors[side], found[side] = 0.0, ""
        return found


def _wrong(vectors: Singles) -> dict[int, str]:
    """What cannot be the vector of a voice."""
    found: dict[int, str] = {}
    for k in np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist():
        at = int(np.flatnonzero(~np.isfinite(vectors[k]))[0])
        found[k] = f"no vector: number {at + 1} is {vectors[k, at]}, not a finite number"
    same = (vectors == vectors[:, :1]).all(axis=1) & np.isfinite(vectors[:, 0])
    for k in np.flatnonzero(same).tolist() if vectors.shape[1] > 1 else ():
        found[k] = f"no vector: all its numbers are {vectors[k, 0]:g}"
    return found


class Rows:
    """Vectors that come one by one, handed on in blocks: those of a block are of one length."""

    def __init__(self, collector: Collector, *, keyed: bool, timed: bool = False) -> None:
        self.collector, self.keyed, self.timed = collector, keyed, timed
        self.rows: list[tuple[str, NDArray[Any], tuple[str, ...], Any]] = []

    def add(self, place: str, vector: NDArray[Any], name: tuple[str, ...], seconds: Any) -> None:
        """`name` is a key, or a conversation and a channel."""
        if self.rows and (len(self.rows) == ROWS or len(self.rows[0][1]) != len(vector)):
            self.flush()
        self.rows.append((place, vector, name, seconds))

    def flush(self) -> None:
        if not self.rows:
            return
        places, vectors, names, seconds = zip(*self.rows, strict=True)
        self.rows = []
        columns = [list(column) for column in zip(*names, strict=True)]
        self.collector.add(
            Block(
                np.stack(vectors),
                places,
                conversation=None if self.keyed else columns[0],
                channel=None if self.keyed else columns[1],
                key=columns[0] if self.keyed else None,
                seconds=list(seconds) if self.timed else None,
            )
        )
