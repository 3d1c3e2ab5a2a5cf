"""Scores between conversation sides: reading only those that are needed.

A *side* is one channel of one conversation. The four side pairs of every two conversations that
share a speaker are needed; all others are checked and passed over, never held. Two forms:
  .csv   conversation_1,channel_1,conversation_2,channel_2,score    (order of the two sides free)
  .npz   conversation, channel: one entry a side; and either side_1, side_2, score (index triples,
         from 0) or scores, a dense symmetric matrix whose diagonal is ignored. No pickle.

Held as llr[e, u, v]: pair e of `Links`, channel u of its first conversation, v of its second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.conversations import Conversations
from spklink.errors import SpklinkError, problems_in
from spklink.links import Links
from spklink.tables import write_npz

Floats = NDArray[np.float64]
CHUNK = 1 << 17  # rows or triples at a time
COLUMNS = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
NON_TARGETS = 20_000  # known non-target pairs sampled at most, and at most 10 a conversation
BAD_CHANNEL = -2
_CHANNEL = {"1": 0, "2": 1}


@dataclass(frozen=True)
class Scores:
    """The needed scores."""

    llr: Floats  # (E, 2, 2)
    others: int = 0  # scores in the file that no pair needs


@dataclass
class Collector:
    """Takes in scores by side indices (2m + channel), keeps the needed ones, gathers problems."""

    conversations: Conversations
    links: Links
    problems: list[str] = field(default_factory=list)
    others: int = 0

    def __post_init__(self) -> None:
        size = len(self.conversations)
        self.key = self.links.first.astype(np.int64) * size + self.links.second
        self.llr = np.full(4 * len(self.key), np.nan)

    def positions(self, side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> NDArray[np.int64]:
        """Place of each side pair in the flat llr, -1 where it is not needed."""
        low, high = np.minimum(side_1, side_2), np.maximum(side_1, side_2)
        key = (low // 2) * len(self.conversations) + high // 2
        e = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        needed = (low >= 0) & (self.key[e] == key if len(self.key) else False)
        return np.where(needed, 4 * e + 2 * (low % 2) + high % 2, -1)

    def add(
        self,
        side_1: NDArray[np.int64],
        side_2: NDArray[np.int64],
        score: Floats,
        place: list[int] | range,
        word: str,
    ) -> None:
        """Store one chunk; `place` and `word` name each entry in messages ("row 7")."""
        for k in np.flatnonzero(~np.isfinite(score)):
            self.problems.append(f"{word} {place[k]}: score is {score[k]}, not a finite number")
        at = self.positions(side_1, side_2)
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

    def _refuse(
        self,
        bad: NDArray[np.int64],
        other: Floats,
        kept: NDArray[np.int64],
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
        return Scores(self.llr.reshape(-1, 2, 2), self.others)

    def name(self, at: int) -> str:
        ids = self.conversations.ids
        e, u, v = at // 4, at // 2 % 2, at % 2
        first, second = ids[self.links.first[e]], ids[self.links.second[e]]
        return f"{first} channel {u + 1} with {second} channel {v + 1}"


def read_scores(path: str | PathLike[str], conversations: Conversations, links: Links) -> Scores:
    """The scores of all needed side pairs, from .csv or .npz; every problem in one error."""
    from spklink.formats import scores_csv, scores_npz

    readers = {".csv": scores_csv.read, ".npz": scores_npz.read}
    read = readers.get(Path(path).suffix.lower())
    if read is None:
        raise SpklinkError(f"{path}: scores must be a .csv or .npz file")
    collector = Collector(conversations, links)
    read(Path(path), collector)
    return collector.finish(path)


def write_scores(
    path: str | PathLike[str],
    conversations: Conversations,
    side_1: NDArray[np.int64],
    side_2: NDArray[np.int64],
    score: Floats,
) -> None:
    """Index triples as .npz; sides are numbered 2m + channel in table order."""
    write_npz(
        path,
        {
            "conversation": np.repeat(np.array(conversations.ids, dtype=np.str_), 2),
            "channel": np.tile(np.array([1, 2], np.int8), len(conversations)),
            "side_1": side_1.astype(np.int32),
            "side_2": side_2.astype(np.int32),
            "score": score,
        },
    )


def needed_sides(links: Links) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Side indices of the needed pairs, in the order of a flattened llr."""
    u, v = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    side_1 = (2 * links.first.astype(np.int64)[:, None] + u).ravel()
    side_2 = (2 * links.second.astype(np.int64)[:, None] + v).ravel()
    return side_1, side_2


def known_non_targets(
    conversations: Conversations,
    rng: np.random.Generator,
    usable: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A sample of side pairs that are certainly different people: their conversations share none.

    `usable` (2M,) leaves out sides.
    """
    sides = np.arange(2 * len(conversations)) if usable is None else np.flatnonzero(usable)
    wanted = min(NON_TARGETS, 10 * len(conversations))
    if not len(sides):
        return sides, sides
    drawn = sides[rng.integers(0, len(sides), (2, 2 * wanted))]
    people = conversations.participants[drawn // 2]
    shared = (people[0][:, :, None] == people[1][:, None, :]).any(axis=(1, 2))
    low, high = drawn.min(axis=0)[~shared], drawn.max(axis=0)[~shared]
    width = np.int64(2 * len(conversations))
    pairs = rng.permutation(np.unique(low * width + high))[:wanted]
    return pairs // width, pairs % width


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
