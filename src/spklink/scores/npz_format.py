"""Scores as numpy arrays in a .npz file, read a block at a time and never unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.sides import NO_TRACK, SideFinder
from spklink.errors import SpklinkError
from spklink.scores.files import CHUNK, Collector
from spklink.scores.needed import known_non_targets

Floats = NDArray[np.float64]
BLOCK_CELLS = 1 << 23  # cells of a dense matrix at a time
SYMMETRY = 1e-5  # the two halves of a dense matrix may differ by rounding, relative to the score


def read(path: Path, collector: Collector) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            side = _npz_sides(archive, names, collector)
            if {"side_1", "side_2", "score"} <= names:
                _add_triples(archive, side, collector)
            elif "scores" in names:
                _add_dense(archive, side, collector)
            else:
                raise SpklinkError(
                    f"needs arrays side_1, side_2, score or a matrix scores; found "
                    f"{', '.join(sorted(names))}"
                )
    except SpklinkError as error:
        raise SpklinkError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise SpklinkError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SpklinkError(f"{path}: not a readable .npz without pickle ({error})") from None


def _npz_sides(
    archive: zipfile.ZipFile, names: set[str], collector: Collector
) -> NDArray[np.int64]:
    """The side of each entry, negative for conversations that are not in the table."""
    for name in ("conversation", "channel"):
        if name not in names:
            raise SpklinkError(f"needs an array '{name}' with one entry a side")
    conversation, channel = _whole(archive, "conversation"), _whole(archive, "channel")
    if conversation.shape != channel.shape or conversation.ndim != 1:
        raise SpklinkError(
            f"conversation {conversation.shape} and channel {channel.shape} must be two lists "
            "of one length"
        )
    find = SideFinder(collector.conversations)
    side = np.array(
        [find(str(c), str(ch)) for c, ch in zip(conversation, channel, strict=True)], np.int64
    )
    for k in np.flatnonzero(side == NO_TRACK):
        collector.problems.append(f"side {k}: channel {channel[k]}; a channel is {find.tracks()}")
    known = np.flatnonzero(side >= 0)
    value, count = np.unique(side[known], return_counts=True)
    for repeated in value[count > 1]:
        places = np.flatnonzero(side == repeated)
        collector.problems.append(
            f"sides {places[0]} and {places[1]} are both "
            f"{conversation[places[0]]} channel {channel[places[0]]}"
        )
    return side


def _whole(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))


def _open_array(archive: zipfile.ZipFile, name: str) -> tuple[IO[bytes], tuple[int, ...], Any]:
    """A member positioned at its data, with shape and type: arrays are read a block at a time."""
    member = archive.open(f"{name}.npy")
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    if dtype.hasobject or dtype.kind not in "iuf":
        raise SpklinkError(f"array '{name}' holds {dtype}, not numbers")
    return member, shape, dtype


def _blocks(member: IO[bytes], dtype: Any, total: int, step: int) -> Iterator[NDArray[Any]]:
    for begin in range(0, total, step):
        count = min(step, total - begin)
        data = member.read(count * dtype.itemsize)
        if len(data) < count * dtype.itemsize:
            raise EOFError("an array ends early")
        yield np.frombuffer(data, dtype)


def _add_triples(archive: zipfile.ZipFile, side: NDArray[np.int64], collector: Collector) -> None:
    opened = [_open_array(archive, name) for name in ("side_1", "side_2", "score")]
    shapes = [shape for _, shape, _ in opened]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise SpklinkError(f"side_1, side_2 and score must be lists of one length, found {shapes}")
    total, begin = shapes[0][0], 0
    streams = [_blocks(member, dtype, total, CHUNK) for member, _, dtype in opened]
    for one, two, score in zip(*streams, strict=True):
        index = [one.astype(np.int64), two.astype(np.int64)]
        outside = [(i < 0) | (i >= len(side)) for i in index]
        for k in np.flatnonzero(outside[0] | outside[1]):
            collector.problems.append(
                f"triple {begin + k}: sides {one[k]}, {two[k]} outside 0..{len(side) - 1}"
            )
        if len(side):
            s, t = (side[np.clip(i, 0, len(side) - 1)] for i in index)
            places = range(begin, begin + len(score))
            collector.add(s, t, score.astype(np.float64), places, "triple")
        begin += len(score)


def _add_dense(archive: zipfile.ZipFile, side: NDArray[np.int64], collector: Collector) -> None:
    member, shape, dtype = _open_array(archive, "scores")
    n = len(side)
    if shape != (n, n):
        raise SpklinkError(f"matrix scores is {shape} where {n} sides are listed")
    rows = max(1, BLOCK_CELLS // max(n, 1))
    blocks = _blocks(member, dtype, n * n, rows * n) if n else iter(())
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
    gap = np.abs(low - high) > SYMMETRY * np.maximum(1.0, np.abs(low))
    for k in np.flatnonzero(gap):
        collector.problems.append(
            f"not symmetric: {collector.name(int(k))} is {low[k]:g} and {high[k]:g}"
        )
    collector.needed[:] = (low + high) / 2.0
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
    for r, c in np.argwhere(~np.isfinite(block)):
        if begin + r != c:
            collector.problems.append(
                f"scores[{begin + r}, {c}] is {block[r, c]}, not a finite number"
            )


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
