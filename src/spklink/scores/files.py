"""Scores in and out of files: only what is needed is kept. Three forms:

.csv   conversation_1,channel_1,conversation_2,channel_2,score    (order of the two sides free)
.parquet   the same columns
.npz   conversation, channel: one entry a side; and either side_1, side_2, score (index triples,
       from 0) or scores, a dense symmetric matrix whose diagonal is ignored. No pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spklink.database.conversations import Conversations
from spklink.database.links import Links, needed_sides, pair_starts
from spklink.database.sides import side_name
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.scores.needed import (
    NON_TARGETS,
    Floats,
    Mask,
    Scores,
    Sides,
    SideScores,
    bounded,
    known_non_targets,
    no_score,
)
from spklink.scores.sample import Sampler
from spklink.streams import ZIP, Stream
from spklink.table_forms import OpenFile
from spklink.tables import write_npz

Side = tuple[str, int]  # conversation, channel from 1
Observe = Callable[[Sides, Sides, Floats], None]
CHUNK = 1 << 17  # rows or triples at a time
COLUMNS = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")


@dataclass
class Collector:
    """Takes in scores by the numbers of their sides, keeps the needed ones and a sample of known
    non-targets, gathers problems. `observe` is shown every finite score of sides in the table."""

    conversations: Conversations
    links: Links
    observe: Observe | None = None
    problems: Problems = field(default_factory=Problems)
    others: int = 0

    def __post_init__(self) -> None:
        size = len(self.conversations)
        self.key = self.links.first.astype(np.int64) * size + self.links.second
        self.start = pair_starts(self.links, self.conversations.sides)
        self.needed = np.full(int(self.start[-1]), np.nan)
        self.sampler = Sampler(self.conversations, NON_TARGETS)

    def positions(self, side_1: Sides, side_2: Sides) -> Sides:
        """Number of each needed side pair, -1 where it is not needed."""
        sides = self.conversations.sides
        low, high = np.minimum(side_1, side_2), np.maximum(side_1, side_2)
        second = sides.conversation_of(high)
        key = sides.conversation_of(low) * len(self.conversations) + second
        e = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        needed = (low >= 0) & (self.key[e] == key if len(self.key) else False)
        row, column = sides.position_of(low), sides.position_of(high)
        width = sides.alike or sides.counts[second]
        return np.where(needed, self.start[e] + width * row + column, -1)

    def add(
        self,
        side_1: Sides,
        side_2: Sides,
        score: Floats,
        place: Sequence[int],
        word: str,
    ) -> None:
        """Store one chunk; `place` and `word` name each entry in messages ("row 7")."""
        sound = bounded(score)
        bad = np.flatnonzero(~sound)
        said = (f"{word} {place[k]}: score {no_score(float(score[k]))}" for k in bad.tolist())
        self.problems.take(said, len(bad))
        at = self.positions(side_1, side_2)
        self.show(side_1, side_2, score)
        self.sampler.add(side_1[at < 0], side_2[at < 0], score[at < 0])
        self.needed[at[(at >= 0) & ~sound]] = 0.0  # named already, so not missing too
        kept = np.flatnonzero((at >= 0) & sound)
        self.others += int((at < 0).sum())
        at, new = at[kept], score[kept]
        before = self.needed[at]
        again = ~np.isnan(before) & (before != new)
        self._refuse(kept[again], before[again], score, place, word)
        self.needed[at] = new
        # A row that was overwritten within the chunk finds another value than its own.
        after = self.needed[at]
        again = np.isnan(before) & (after != new)
        self._refuse(kept[again], after[again], score, place, word)

    def show(self, side_1: Sides, side_2: Sides, score: Floats) -> None:
        """Let `observe` see the finite scores of two different sides of the table."""
        if self.observe is not None:
            seen = (side_1 >= 0) & (side_2 >= 0) & (side_1 != side_2) & np.isfinite(score)
            self.observe(side_1[seen], side_2[seen], score[seen])

    def _refuse(
        self, bad: Sides, other: Floats, score: Floats, place: Sequence[int], word: str
    ) -> None:
        said = (
            f"{word} {place[k]}: score {score[k]:g} where the same two sides have {value:g} "
            "elsewhere in the file"
            for k, value in zip(bad.tolist(), other.tolist(), strict=True)
        )
        self.problems.take(said, len(bad))

    def finish(self, path: str | PathLike[str], usable: Mask | None = None) -> Scores:
        """All that was taken in, or everything that is wrong with it; pairs with a side that is not
        usable may be missing."""
        wanted = np.isnan(self.needed)
        if usable is not None:
            one, two = needed_sides(self.links, self.conversations.sides)
            wanted &= usable[one] & usable[two]
        missing = np.flatnonzero(wanted)
        if len(missing):
            shown = [self.name(int(at)) for at in missing[:3]]
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            self.problems.append(
                f"{len(missing)} needed side pairs of {len(self.needed)} have no score: "
                f"{', '.join(shown)}{more}"
            )
        if self.problems:
            raise problems_in(path, self.problems)
        return Scores(self.needed, self.others, self.sampler.finish())

    def name(self, at: int) -> str:
        """A needed side pair in words."""
        one, two = (int(side[at]) for side in needed_sides(self.links, self.conversations.sides))
        return f"{side_name(self.conversations, one)} with {side_name(self.conversations, two)}"


def read_scores(
    scores: Any,
    conversations: Conversations,
    links: Links,
    observe: Observe | None = None,
    usable: Mask | None = None,
) -> Scores:
    """The scores of all needed side pairs, but for sides that are not usable (NaN); every problem
    in one error. `observe` is shown all scores.

    `scores` is a .csv, .npz or .parquet file, a DataFrame or rows with the columns of the first, a
    square array of all sides in table order, or a function of two sides, each (conversation,
    channel).
    """
    collector = Collector(conversations, links, observe)
    name = _read_into(scores, collector)
    return collector.finish(name, usable)


def read_all_scores(
    scores: Any, conversations: Conversations, links: Links, observe: Observe
) -> None:
    """Show every score to `observe`, a chunk at a time; none has to be there."""
    collector = Collector(conversations, links, observe)
    name = _read_into(scores, collector)
    if collector.problems:
        raise problems_in(name, collector.problems)


def _read_into(scores: Any, collector: Collector) -> str | PathLike[str]:
    """All scores into the collector; what they are called in messages."""
    from spklink.scores import csv_format, npz_format

    if isinstance(scores, str | PathLike | Stream):
        stream = scores if isinstance(scores, Stream) else Stream(scores, hashed=False)
        _read_file(stream, collector)
        return stream.path
    if isinstance(scores, np.ndarray):
        npz_format.add_square(scores, collector)
    elif callable(scores):
        _ask(scores, collector)
    else:
        csv_format.read(scores, collector)
    return "scores"


def _read_file(stream: Stream, collector: Collector) -> None:
    """Once, from begin to end. The name of a pipe has no ending: its first bytes tell."""
    from spklink.scores import csv_format, npz_format

    kind = stream.path.suffix.lower()
    with stream.open() as file:
        if stream.is_pipe() and kind not in (".csv", ".npz"):
            kind = ".npz" if file.peek(len(ZIP)).startswith(ZIP) else ".csv"
        if kind == ".npz":
            with stream.whole(file) as archive:
                npz_format.read(archive, str(stream.path), collector)
        elif kind == ".parquet":
            with stream.whole(file) as archive:
                csv_format.read_parquet(archive, str(stream.path), collector)
        elif kind == ".csv":
            csv_format.read(OpenFile(stream.path, file), collector)
        else:
            raise SpklinkError(f"{stream.path}: scores must be a .csv, .npz or .parquet file")


def _ask(score: Callable[[Side, Side], float], collector: Collector) -> None:
    """Ask a function for the scores that are needed, and for a sample of known non-targets."""
    table = collector.conversations
    ids = [table.ids[m] for m in table.sides.conversation.tolist()]
    names = list(zip(ids, (table.sides.position + 1).tolist(), strict=True))
    # Which non-targets are asked for is no matter of chance.
    sample = known_non_targets(table, np.random.default_rng(0))
    for one, two in (needed_sides(collector.links, table.sides), sample):
        pairs = zip(one.tolist(), two.tolist(), strict=True)
        found = np.array([float(score(names[a], names[b])) for a, b in pairs])
        collector.add(one, two, found, range(len(one)), "pair")


def read_pairs(path: Path, conversations: Conversations) -> SideScores:
    """What `write_scores` wrote of these very conversations, all of it."""
    from spklink.scores import npz_format

    return npz_format.read_pairs(path, conversations)


def write_scores(
    path: str | PathLike[str], conversations: Conversations, scores: SideScores
) -> None:
    """Index triples as .npz, with the list of all sides."""
    sides = conversations.sides
    write_npz(
        path,
        {
            "conversation": np.repeat(
                np.array(list(conversations.ids), dtype=np.str_), sides.counts
            ),
            "channel": (sides.position + 1).astype(np.int8),
            "side_1": scores.side_1.astype(np.int32),
            "side_2": scores.side_2.astype(np.int32),
            "score": scores.score,
        },
    )
