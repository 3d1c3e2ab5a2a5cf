"""Scores as numpy arrays in a .npz file, read a block at a time and never unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.sides import NO_TRACK, SideFinder, side_name
from spklink.errors import Problems, SpklinkError
from spklink.npz_files import BLOCK_BYTES, TEXT, Arrays, open_arrays
from spklink.scores.files import CHUNK, Collector
from spklink.scores.needed import SideScores, bounded, known_non_targets, no_score

Floats = NDArray[np.float64]
MOST_SIDES = 1 << 27  # listed in one file
BLOCK_CELLS = 1 << 23  # cells of a dense matrix at a time
SYMMETRY = 1e-5  # the two halves of a dense matrix may differ by rounding, relative to the score


def read(file: IO[bytes], name: str, collector: Collector) -> None:
    """All scores of an open file into the collector."""
    with open_arrays(file, name) as arrays:
        _take(arrays, collector)


def _take(arrays: Arrays, collector: Collector) -> None:
    if not ({"side_1", "side_2", "score"} <= arrays.names or "scores" in arrays.names):
        raise SpklinkError(
            f"needs arrays side_1, side_2, score or a matrix scores; found "
            f"{', '.join(sorted(arrays.names)[:10])}"
        )
    side = _npz_sides(arrays, collector.conversations, collector.problems)
    if {"side_1", "side_2", "score"} <= arrays.names:
        _add_triples(arrays, side, collector)
    else:
        _add_dense(arrays, side, collector)


def read_pairs(path: Path, conversations: Conversations) -> SideScores:
    """All triples that `write_scores` wrote about these very conversations."""
    with open_arrays(path) as arrays:
        side = _npz_sides(arrays, conversations, Problems())
        if not np.array_equal(side, np.arange(len(conversations.sides))):
            raise SpklinkError("is about other conversations than conversations.csv")
        one, two = (_whole_numbers(arrays.whole(name)) for name in ("side_1", "side_2"))
        score = arrays.whole("score")
        if not len(one) == len(two) == len(score):
            raise SpklinkError("side_1, side_2 and score must be lists of one length")
        if ((one < 0) | (two < 0) | (one >= len(side)) | (two >= len(side))).any():
            raise SpklinkError(f"sides outside 0..{len(side) - 1}; make the results anew")
        if not bounded(score).all():
            raise SpklinkError("scores that are not finite numbers; make the results anew")
    return SideScores(one, two, score)


def _npz_sides(
    arrays: Arrays, conversations: Conversations, problems: Problems
) -> NDArray[np.int64]:
    """The side of each entry, negative for conversations that are not in the table."""
    for name in ("conversation", "channel"):
        if name not in arrays.names:
            raise SpklinkError(f"needs an array '{name}' with one entry a side")
    lists = [arrays.open(name, ndim=1, kinds=TEXT) for name in ("conversation", "channel")]
    if lists[0].shape != lists[1].shape:
        raise SpklinkError(
            f"conversation {lists[0].shape} and channel {lists[1].shape} must be two lists "
            "of one length"
        )
    count = len(lists[0])
    if count > MOST_SIDES:
        raise SpklinkError(f"lists {count} sides; at most {MOST_SIDES} are read")
    find, side, begin = SideFinder(conversations), np.empty(count, np.int64), 0
    width = max(one.dtype.itemsize for one in lists)
    step = max(1, min(CHUNK, BLOCK_BYTES // width))
    for names, channels in zip(*(one.blocks(step) for one in lists), strict=True):
        found = find.all_of(*(list(map(str, one.tolist())) for one in (names, channels)))
        bad = np.flatnonzero(found == NO_TRACK)
        said = (
            f"side {begin + k}: channel {channels[k]}; a channel is {find.tracks()}" for k in bad
        )
        problems.take(said, len(bad))
        side[begin : begin + len(found)] = found
        begin += len(found)
    _refuse_twice(side, conversations, problems)
    return side


def _refuse_twice(
    side: NDArray[np.int64], conversations: Conversations, problems: Problems
) -> None:
    value, count = np.unique(side[side >= 0], return_counts=True)
    repeated = value[count > 1]

    def said() -> Iterator[str]:
        for one in repeated:
            first, second = np.flatnonzero(side == one)[:2]
            named = side_name(conversations, int(one))
            yield f"sides {first} and {second} are both {named}"

    problems.take(said(), len(repeated))


def _add_triples(arrays: Arrays, side: NDArray[np.int64], collector: Collector) -> None:
    opened = [arrays.open(name, ndim=1) for name in ("side_1", "side_2", "score")]
    shapes = [one.shape for one in opened]
    if len(set(shapes)) > 1:
        raise SpklinkError(f"side_1, side_2 and score must be lists of one length, found {shapes}")
    begin = 0
    for one, two, score in zip(*(stream.blocks(CHUNK) for stream in opened), strict=True):
        index = [_whole_numbers(i) for i in (one, two)]
        outside = np.flatnonzero(np.any([(i < 0) | (i >= len(side)) for i in index], axis=0))
        said = (
            f"triple {begin + k}: sides {one[k]}, {two[k]} outside 0..{len(side) - 1}"
            for k in outside
        )
        collector.problems.take(said, len(outside))
        if len(side):
            s, t = (side[np.clip(i, 0, len(side) - 1)] for i in index)
            places = range(begin, begin + len(score))
            collector.add(s, t, score.astype(np.float64), places, "triple")
        begin += len(score)


def _whole_numbers(index: NDArray[Any]) -> NDArray[np.int64]:
    """Indices as whole numbers; -1 for what is none."""
    if index.dtype.kind == "f":
        index = np.where(np.abs(index) < 2.0**62, index, -1.0)
    elif index.dtype.kind == "u":
        index = np.minimum(index, np.iinfo(np.int64).max)
    return index.astype(np.int64)


def _add_dense(arrays: Arrays, side: NDArray[np.int64], collector: Collector) -> None:
    matrix, n = arrays.open("scores", ndim=2), len(side)
    if matrix.shape != (n, n):
        raise SpklinkError(f"matrix scores is {matrix.shape} where {n} sides are listed")
    rows = max(1, BLOCK_CELLS // max(n, 1))
    blocks = matrix.blocks(rows * n) if n else iter(())
    _add_rows((flat.reshape(-1, n) for flat in blocks), side, collector)


def add_square(square: Floats, collector: Collector) -> None:
    """A matrix of all sides, in table order."""
    n = len(collector.conversations.sides)
    if square.shape != (n, n):
        raise SpklinkError(f"scores: an array of {square.shape} where the table has {n} sides")
    rows = max(1, BLOCK_CELLS // max(n, 1))
    blocks = (square[begin : begin + rows] for begin in range(0, n, rows))
    _add_rows(blocks, np.arange(n), collector)


def _add_rows(
    blocks: Iterator[NDArray[Any]], side: NDArray[np.int64], collector: Collector
) -> None:
    """A matrix, some rows at a time: both halves must agree; the mean of the two is kept."""
    n, begin = len(side), 0
    column = np.full(len(collector.conversations.sides), -1, np.int64)
    column[side[side >= 0]] = np.flatnonzero(side >= 0)
    halves = [np.full(len(collector.needed), np.nan) for _ in range(2)]
    sample = _Sample(collector, column)
    neighbours = _Neighbours(collector)
    for rows in blocks:
        block = rows.astype(np.float64)
        _refuse_infinite(block, begin, collector)
        sample.take(block, begin)
        if collector.observe is not None:
            _show_upper(block, begin, side, collector)
        for half, (row, other, at) in enumerate(neighbours.of(side[begin : begin + len(block)])):
            there = column[other] >= 0
            halves[half][at[there]] = block[row[there], column[other[there]]]
        begin += len(block)
    low, high = halves
    with np.errstate(over="ignore"):  # numbers near the largest there are
        gap = np.abs(low - high) > SYMMETRY * np.maximum(1.0, np.abs(low))
    apart = np.flatnonzero(gap)
    said = (f"not symmetric: {collector.name(int(k))} is {low[k]:g} and {high[k]:g}" for k in apart)
    collector.problems.take(said, len(apart))
    collector.needed[:] = np.where(low == high, low, low / 2.0 + high / 2.0)
    kept = len(collector.needed) - int(np.isnan(collector.needed).sum())
    collector.others = n * (n - 1) // 2 - kept


class _Sample:
    """Known non-targets of a matrix, which has them all: chosen first, picked as rows pass."""

    def __init__(self, collector: Collector, column: NDArray[np.int64]) -> None:
        there, self.sampler = column >= 0, collector.sampler
        rng = np.random.default_rng(0)
        self.side_1, self.side_2 = known_non_targets(collector.conversations, rng, there)
        self.row, self.column = column[self.side_1], column[self.side_2]

    def take(self, block: Floats, begin: int) -> None:
        here = (self.row >= begin) & (self.row < begin + len(block))
        score = block[self.row[here] - begin, self.column[here]]
        self.sampler.add(self.side_1[here], self.side_2[here], score)


def _show_upper(block: Floats, begin: int, side: NDArray[np.int64], collector: Collector) -> None:
    """The cells right of the diagonal, a row at a time."""
    for r, row in enumerate(block):
        rest = slice(begin + r + 1, len(side))
        one = np.full(len(side) - rest.start, side[begin + r])
        collector.show(one, side[rest], row[rest])


def _refuse_infinite(block: Floats, begin: int, collector: Collector) -> None:
    row, column = np.nonzero(~bounded(block))
    bad = np.flatnonzero(begin + row != column)  # the diagonal is ignored
    said = (
        f"scores[{begin + row[k]}, {column[k]}] {no_score(float(block[row[k], column[k]]))}"
        for k in bad
    )
    collector.problems.take(said, len(bad))


class _Neighbours:
    """For a row of the matrix, the columns that are needed, found from the sorted pairs."""

    def __init__(self, collector: Collector) -> None:
        links, self.sides = collector.links, collector.conversations.sides
        self.ends, self.pair_start = (links.first, links.second), collector.start
        self.order = (np.arange(len(links.first)), np.argsort(links.second, kind="stable"))
        steps = np.arange(len(collector.conversations) + 1)
        self.start = [
            np.searchsorted(end[order], steps)
            for end, order in zip(self.ends, self.order, strict=True)
        ]

    def of(
        self, side: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """(row, other side, number of the needed pair) with the row's side as the first, then as
        the second."""
        rows = np.flatnonzero(side >= 0)
        m, own = self.sides.conversation[side[rows]], self.sides.position[side[rows]]
        counts = self.sides.counts
        for half in (0, 1):
            start = self.start[half][m]
            linked = self.start[half][m + 1] - start
            e = self.order[half][ranges(start, linked)]
            tracks = counts[self.ends[1 - half][e]]  # of the other conversation
            e, row, mine = (
                np.repeat(values, tracks)
                for values in (e, np.repeat(rows, linked), np.repeat(own, linked))
            )
            theirs = ranges(np.zeros(len(tracks), np.int64), tracks)
            other = self.sides.start[self.ends[1 - half][e]] + theirs
            u, v = (mine, theirs) if half == 0 else (theirs, mine)
            yield row, other, self.pair_start[e] + counts[self.ends[1][e]] * u + v
