"""Scores between conversation sides: reading only those that are needed.

A *side* is one channel of one conversation. The four side pairs of every two conversations that
share a speaker are needed; all others are checked and passed over, never held. Two forms:
  .csv   conversation_1,channel_1,conversation_2,channel_2,score    (order of the two sides free)
  .npz   conversation, channel: one entry a side; and either side_1, side_2, score (index triples,
         from 0) or scores, a dense symmetric matrix whose diagonal is ignored. No pickle.

Held as llr[e, u, v]: pair e of `Links`, channel u of its first conversation, v of its second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.links import Links
from spklink.errors import SpklinkError, problems_in
from spklink.tables import write_npz

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
Observe = Callable[[Sides, Sides, Floats], None]
CHUNK = 1 << 17  # rows or triples at a time
COLUMNS = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
NON_TARGETS = 20_000  # known non-target pairs sampled at most, and at most 11 a conversation
BAD_CHANNEL = -2
_CHANNEL = {"1": 0, "2": 1}


@dataclass(frozen=True)
class SideScores:
    """Scores of pairs of sides, numbered 2m + channel."""

    side_1: Sides
    side_2: Sides
    score: Floats


def no_side_scores() -> SideScores:
    none = np.zeros(0, np.int64)
    return SideScores(none, none, np.zeros(0))


@dataclass(frozen=True)
class Scores:
    """The needed scores, and a sample of known non-targets."""

    llr: Floats  # (E, 2, 2)
    others: int = 0  # scores in the file that no pair needs
    non_targets: SideScores = field(default_factory=no_side_scores)  # certainly different people


class Sampler:
    """Keeps at most so many known non-targets of all that pass: those of the lowest hash, so that
    the sample depends neither on the order of the rows nor on how they are cut into chunks."""

    def __init__(self, conversations: Conversations, most: int) -> None:
        self.people, self.most = conversations.participants, most
        self.width = np.int64(2 * len(conversations))
        self.key, self.score = np.zeros(0, np.int64), np.zeros(0)
        self.worst = np.uint64(2**64 - 1)

    def add(self, side_1: Sides, side_2: Sides, score: Floats) -> None:
        low, high = np.minimum(side_1, side_2), np.maximum(side_1, side_2)
        key = low * self.width + high
        kept = np.flatnonzero((low >= 0) & (low != high) & np.isfinite(score))
        kept = kept[mixed(key[kept]) <= self.worst]
        kept = kept[certainly_different(self.people, low[kept], high[kept])]
        self.key = np.concatenate([self.key, key[kept]])
        self.score = np.concatenate([self.score, score[kept]])
        if len(self.key) > 2 * self.most:
            self._trim()

    def _trim(self) -> None:
        order = np.lexsort([self.score, self.key])  # a pair may be listed twice: the lowest counts
        self.key, first = np.unique(self.key[order], return_index=True)
        self.score = self.score[order][first]
        hashed = mixed(self.key)
        order = np.argsort(hashed)[: self.most]
        if len(order) == self.most:
            self.worst = hashed[order[-1]]
        self.key, self.score = self.key[order], self.score[order]

    def finish(self) -> SideScores:
        self._trim()
        order = np.argsort(self.key)
        key = self.key[order]
        return SideScores(key // self.width, key % self.width, self.score[order])


def mixed(key: Sides) -> NDArray[np.uint64]:
    """A number that looks random for each key (the finaliser of splitmix64)."""
    x = key.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def certainly_different(people: NDArray[np.int32], side_1: Sides, side_2: Sides) -> Mask:
    """Whether two sides belong to one call, or to calls that share no participant."""
    one, two = people[side_1 // 2], people[side_2 // 2]
    shared = (one[:, :, None] == two[:, None, :]).any(axis=(1, 2))
    return np.asarray(~shared | (side_1 // 2 == side_2 // 2))


@dataclass
class Collector:
    """Takes in scores by side indices (2m + channel), keeps the needed ones and a sample of known
    non-targets, gathers problems. `observe` is shown every finite score of sides in the table."""

    conversations: Conversations
    links: Links
    observe: Observe | None = None
    problems: list[str] = field(default_factory=list)
    others: int = 0

    def __post_init__(self) -> None:
        size = len(self.conversations)
        self.key = self.links.first.astype(np.int64) * size + self.links.second
        self.llr = np.full(4 * len(self.key), np.nan)
        self.sampler = Sampler(self.conversations, NON_TARGETS)

    def positions(self, side_1: Sides, side_2: Sides) -> Sides:
        """Place of each side pair in the flat llr, -1 where it is not needed."""
        low, high = np.minimum(side_1, side_2), np.maximum(side_1, side_2)
        key = (low // 2) * len(self.conversations) + high // 2
        e = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        needed = (low >= 0) & (self.key[e] == key if len(self.key) else False)
        return np.where(needed, 4 * e + 2 * (low % 2) + high % 2, -1)

    def add(
        self,
        side_1: Sides,
        side_2: Sides,
        score: Floats,
        place: list[int] | range,
        word: str,
    ) -> None:
        """Store one chunk; `place` and `word` name each entry in messages ("row 7")."""
        for k in np.flatnonzero(~np.isfinite(score)):
            self.problems.append(f"{word} {place[k]}: score is {score[k]}, not a finite number")
        at = self.positions(side_1, side_2)
        self.show(side_1, side_2, score)
        self.sampler.add(side_1[at < 0], side_2[at < 0], score[at < 0])
        self.llr[at[(at >= 0) & ~np.isfinite(score)]] = 0.0  # named already, so not missing too
        kept = np.flatnonzero((at >= 0) & np.isfinite(score))
        self.others += int((at < 0).sum())
        at, new = at[kept], score[kept]
        before = self.llr[at]
        self._refuse(kept[~np.isnan(before) & (before != new)], before, kept, place, word, score)
        self.llr[at] = new
        # A row that was overwritten within the chunk finds another value than its own.
        after = self.llr[at]
        fresh = np.isnan(before)
        self._refuse(kept[fresh & (after != new)], after, kept, place, word, score)

    def show(self, side_1: Sides, side_2: Sides, score: Floats) -> None:
        """Let `observe` see the finite scores of two different sides of the table."""
        if self.observe is not None:
            seen = (side_1 >= 0) & (side_2 >= 0) & (side_1 != side_2) & np.isfinite(score)
            self.observe(side_1[seen], side_2[seen], score[seen])

    def _refuse(
        self,
        bad: Sides,
        other: Floats,
        kept: Sides,
        place: list[int] | range,
        word: str,
        score: Floats,
    ) -> None:
        for k in bad:
            value = other[np.searchsorted(kept, k)]
            self.problems.append(
                f"{word} {place[k]}: score {score[k]:g} where the same two sides have {value:g} "
                "elsewhere in the file"
            )

    def finish(self, path: str | PathLike[str]) -> Scores:
        missing = np.flatnonzero(np.isnan(self.llr))
        if len(missing):
            shown = [self.name(int(at)) for at in missing[:3]]
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            self.problems.append(
                f"{len(missing)} needed side pairs of {len(self.llr)} have no score: "
                f"{', '.join(shown)}{more}"
            )
        if self.problems:
            raise problems_in(path, self.problems)
        return Scores(self.llr.reshape(-1, 2, 2), self.others, self.sampler.finish())

    def name(self, at: int) -> str:
        ids = self.conversations.ids
        e, u, v = at // 4, at // 2 % 2, at % 2
        first, second = ids[self.links.first[e]], ids[self.links.second[e]]
        return f"{first} channel {u + 1} with {second} channel {v + 1}"


def read_scores(path: str | PathLike[str], conversations: Conversations, links: Links) -> Scores:
    """The scores of all needed side pairs, from .csv or .npz; every problem in one error."""
    collector = Collector(conversations, links)
    _read_into(path, collector)
    return collector.finish(path)


def read_all_scores(
    path: str | PathLike[str], conversations: Conversations, links: Links, observe: Observe
) -> None:
    """Show every score of the file to `observe`, a chunk at a time; none has to be there."""
    collector = Collector(conversations, links, observe)
    _read_into(path, collector)
    if collector.problems:
        raise problems_in(path, collector.problems)


def _read_into(path: str | PathLike[str], collector: Collector) -> None:
    from spklink.scores import csv_format, npz_format

    readers = {".csv": csv_format.read, ".npz": npz_format.read}
    read = readers.get(Path(path).suffix.lower())
    if read is None:
        raise SpklinkError(f"{path}: scores must be a .csv or .npz file")
    read(Path(path), collector)


def write_scores(
    path: str | PathLike[str], conversations: Conversations, scores: SideScores
) -> None:
    """Index triples as .npz; sides are numbered 2m + channel in table order."""
    write_npz(
        path,
        {
            "conversation": np.repeat(np.array(conversations.ids, dtype=np.str_), 2),
            "channel": np.tile(np.array([1, 2], np.int8), len(conversations)),
            "side_1": scores.side_1.astype(np.int32),
            "side_2": scores.side_2.astype(np.int32),
            "score": scores.score,
        },
    )


def needed_sides(links: Links) -> tuple[Sides, Sides]:
    """Side indices of the needed pairs, in the order of a flattened llr."""
    u, v = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    side_1 = (2 * links.first.astype(np.int64)[:, None] + u).ravel()
    side_2 = (2 * links.second.astype(np.int64)[:, None] + v).ravel()
    return side_1, side_2


def needed_and(links: Links, needed: Floats, others: SideScores) -> SideScores:
    """The scores (E, 2, 2) of the needed pairs, then others, as one list."""
    one, two = needed_sides(links)
    return SideScores(
        np.concatenate([one, others.side_1]),
        np.concatenate([two, others.side_2]),
        np.concatenate([needed.ravel(), others.score]),
    )


def known_non_targets(
    conversations: Conversations,
    rng: np.random.Generator,
    usable: Mask | None = None,
) -> tuple[Sides, Sides]:
    """A sample of side pairs that are certainly different people: some of calls that share no
    participant, then the two sides of every call. `usable` (2M,) leaves out sides.
    """
    size = len(conversations)
    good = np.ones(2 * size, np.bool_) if usable is None else usable
    sides = np.flatnonzero(good)
    wanted = min(NON_TARGETS, 10 * size)
    if not len(sides):
        return sides, sides
    drawn = sides[rng.integers(0, len(sides), (2, 2 * wanted))]
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    apart = (low // 2 != high // 2) & certainly_different(conversations.participants, low, high)
    width = np.int64(2 * size)
    pairs = rng.permutation(np.unique((low * width + high)[apart]))[:wanted]
    calls = np.flatnonzero(good.reshape(-1, 2).all(axis=1))[:NON_TARGETS]
    return (
        np.concatenate([pairs // width, 2 * calls]),
        np.concatenate([pairs % width, 2 * calls + 1]),
    )


def side_index(conversation: str, channel: str, where: dict[str, int]) -> int:
    """2m + channel; -1 for a conversation that is not in the table, BAD_CHANNEL for no channel."""
    c = _CHANNEL.get(channel)
    if c is None:
        c = _CHANNEL.get(channel.strip())
        if c is None:
            return BAD_CHANNEL
    m = where.get(conversation)
    if m is None:
        m = where.get(conversation.strip(), -1)
    return 2 * m + c if m >= 0 else -1
