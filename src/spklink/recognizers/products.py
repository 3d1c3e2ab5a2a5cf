"""Scores of many pairs of sides at once, where a score is an inner product of vectors.

`InnerProduct` says of what, `Cosine` is the usual one. `pair_scores`, `table` and `all_pairs`
compute it by tiles of sides: with a matrix product where the pairs are dense, one by one where they
are few. Vectors may be memory-mapped: no more than two tiles a thread are held at any time, which
module `memory` bounds. The same vectors and pairs give the same bytes whatever hands do it.

Conventions: row s of `vectors` is the vector of side s.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.hands import ALONE, Hands, Here, Reached
from spklink.memory import now
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Operand = tuple[Singles, ...]
Mask = NDArray[np.bool_]
Cut = tuple[slice, slice]

TILE_SIDES = 512  # few enough that some hundred calls keep two cores busy
TABLES = 4  # of the sides of a tile that a thread may hold: rows and columns, as they are and made
MEAN_ROWS = 256  # vectors read at a time
TILE_SPEED, PAIR_SPEED = 2e10, 1e9  # multiplications a second of one core, roughly
DENSE = 16  # a matrix product takes no longer than one pair in so many, pair by pair


class InnerProduct(Protocol):
    """A symmetric score: (sum over p of tables_p[i] . tables'_p[j] - less_i) x scale_j.

    So that `right` need not copy vectors where it would only shift and scale them.
    """

    @property
    def depth(self) -> int:
        """Multiplications a score."""

    def left(self, vectors: Singles) -> tuple[Operand, Singles]:
        """Of sides as rows: tables with one row a side, and `less`."""

    def right(self, vectors: Singles) -> tuple[Operand, Singles]:
        """Of sides as columns: tables' with one row a side, and `scale`."""


@dataclass(frozen=True)
class Cosine:
    """The cosine between two vectors, seen from the mean of the database."""

    mean: Singles  # (width,)

    @property
    def depth(self) -> int:
        return self.mean.size

    def left(self, vectors: Singles) -> tuple[Operand, Singles]:
        unit, less = np.empty(vectors.shape, np.float32), np.empty(len(vectors), np.float32)
        _unit_rows(vectors, self.mean, unit, less)
        return (unit,), less

    def right(self, vectors: Singles) -> tuple[Operand, Singles]:
        scale = np.empty(len(vectors), np.float32)
        _inverse_lengths(vectors, self.mean, scale)
        return (vectors,), scale


def mean_of(vectors: Singles, usable: Mask) -> Singles:
    """(width,) the mean of the usable sides, read a few at a time."""
    sides = np.flatnonzero(usable)
    total = np.zeros(vectors.shape[1])
    for begin in range(0, len(sides), MEAN_ROWS):
        total += vectors[sides[begin : begin + MEAN_ROWS]].sum(0, dtype=np.float64)
    return (total / max(len(sides), 1)).astype(np.float32)


def unit_vectors(product: InnerProduct, vectors: Singles, sides: Sides) -> Singles:
    """(sides, width) vectors of length one, close where the product is high: those of a cosine, and
    of another product the first of the vectors it multiplies."""
    unit = product.left(_gather(vectors, sides))[0][0]
    if isinstance(product, Cosine):
        return unit
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    return np.asarray(unit / np.maximum(length, 1e-15), np.float32)


def pair_scores(
    product: InnerProduct, vectors: Singles, side_1: Sides, side_2: Sides, *, hands: Hands = ALONE
) -> Floats:
    """The score of each pair of rows of `vectors`."""
    scores = np.empty(len(side_1))
    tasks = list(_tasks(np.minimum(side_1, side_2), np.maximum(side_1, side_2), _step(product)))
    hands = hands.worth(len(side_1) * product.depth / PAIR_SPEED, megabytes=len(side_1) / 1e5)
    work = _Tiles(product, hands.reach(vectors)).pairs
    with one_blas_thread():
        found = _hands(product, hands).each(work, tasks)
        for task, some in zip(tasks, found, strict=True):
            scores[task.where] = some
    return scores


def table(
    product: InnerProduct, vectors: Singles, rows: Sides, columns: Sides, *, hands: Hands = ALONE
) -> Singles:
    """(rows, columns) all scores between two lists of sides."""
    out = np.empty((len(rows), len(columns)), np.float32)
    cuts = _cuts_of_table(rows, columns, _step(product))
    for cut, block in _blocks(product, vectors, rows, columns, cuts, hands):
        out[cut] = block
    return out


def _cuts_of_table(rows: Sides, columns: Sides, step: int) -> list[Cut]:
    return [(r, c) for r in _slices(0, len(rows), step) for c in _slices(0, len(columns), step)]


@dataclass(frozen=True)
class LaidTable:
    """The same of vectors that are laid out, for whoever has reached them: tiles as large as where
    they were laid out, since rounding may depend on that."""

    tiles: _Tiles
    step: int

    @classmethod
    def of(cls, product: InnerProduct, vectors: Singles, hands: Hands) -> LaidTable:
        return cls(_Tiles(product, hands.reach(vectors)), _step(product))

    def __call__(self, rows: Sides, columns: Sides) -> Singles:
        out = np.empty((len(rows), len(columns)), np.float32)
        for row, column in _cuts_of_table(rows, columns, self.step):
            out[row, column] = self.tiles.block(rows[row], columns[column])
        return out


def all_pairs(
    product: InnerProduct, vectors: Singles, *, hands: Hands = ALONE, out: Singles | None = None
) -> Singles:
    """(sides, sides) every score, computed once for (i, j) and (j, i); `out` may be a file."""
    out = np.empty((len(vectors), len(vectors)), np.float32) if out is None else out
    for (row, column), block in upper_tiles(product, vectors, hands=hands):
        if row == column:
            block = (block + block.T) / np.float32(2.0)  # its two halves differ by rounding
        out[row, column], out[column, row] = block, block.T
    return out


def upper_tiles(
    product: InnerProduct, vectors: Singles, *, hands: Hands = ALONE
) -> Iterator[tuple[Cut, Singles]]:
    """All scores of i <= j, tile by tile, for whoever cannot hold them all."""
    sides = np.arange(len(vectors))
    tiles = list(_slices(0, len(sides), _step(product)))
    cuts = [(row, column) for a, row in enumerate(tiles) for column in tiles[a:]]
    yield from _blocks(product, vectors, sides, sides, cuts, hands)


def _step(product: InnerProduct) -> int:
    return max(1, min(TILE_SIDES, int(now().tile // (4 * product.depth))))


def _hands(product: InnerProduct, hands: Hands) -> Hands:
    """On this machine so many that their tiles can be held."""
    if hands.far:
        return hands
    return Here(now().at_once(hands.count, TABLES * 4.0 * product.depth * _step(product)))


def _slices(begin: int, end: int, step: int) -> Iterator[slice]:
    return (slice(at, min(at + step, end)) for at in range(begin, end, step))


def _blocks(
    product: InnerProduct,
    vectors: Singles,
    rows: Sides,
    columns: Sides,
    cuts: list[Cut],
    hands: Hands,
) -> Iterator[tuple[Cut, Singles]]:
    sizes = [(row.stop - row.start) * (column.stop - column.start) for row, column in cuts]
    hands = hands.worth(sum(sizes) * product.depth / TILE_SPEED, megabytes=sum(sizes) * 4e-6)
    work = _Tiles(product, hands.reach(vectors)).between
    with one_blas_thread():
        cut = [(rows[row], columns[column]) for row, column in cuts]
        yield from zip(cuts, _hands(product, hands).each(work, cut), strict=True)


@dataclass(frozen=True)
class _Task:
    """Some pairs whose sides lie in two tiles."""

    rows: Sides  # sides, each once
    columns: Sides
    row: Sides  # of each pair: its place in `rows`
    column: Sides
    where: Sides  # its place in the list of all pairs


def _tasks(side_1: Sides, side_2: Sides, step: int) -> Iterator[_Task]:
    """The pairs by tiles, all of one row tile together. Where pairs are few, those of many tiles
    are one task: no more of them than a tile has sides."""
    tiles = int(side_2.max(initial=0)) // step + 1
    key = (side_1 // step) * tiles + side_2 // step
    order = np.argsort(key, kind="stable")
    for begin, end in pairwise(_cuts(key[order], step)):
        where = order[begin:end]
        rows, row = np.unique(side_1[where], return_inverse=True)
        columns, column = np.unique(side_2[where], return_inverse=True)
        yield _Task(rows, columns, row, column, where)


def _cuts(key: Sides, step: int) -> list[int]:
    """Where tasks begin among sorted tiles of pairs, and where the last ends: tiles one by one, or
    several of together at most `step` pairs."""
    ends = [*(np.flatnonzero(np.diff(key)) + 1).tolist(), len(key)] if len(key) else []
    cuts, last = [0], 0
    for end in ends:
        if end - cuts[-1] > step and last > cuts[-1]:
            cuts.append(last)
        last = end
    return [*cuts, last] if last else cuts


class _Tiles:
    """Scores out of two tiles at a time; each thread keeps the row tile for its next task."""

    def __init__(self, product: InnerProduct, vectors: Reached) -> None:
        self.product, self.reached = product, vectors
        self.kept = threading.local()

    def __reduce__(self) -> tuple[type[_Tiles], tuple[InnerProduct, Reached]]:
        return _Tiles, (self.product, self.reached)  # what a thread keeps stays with it

    @property
    def vectors(self) -> Singles:
        return self.reached.get()

    def left(self, rows: Sides) -> tuple[Operand, Singles]:
        if not np.array_equal(getattr(self.kept, "rows", None), rows):  # type: ignore[arg-type]
            self.kept.rows = rows
            self.kept.left = self.product.left(_gather(self.vectors, rows))
        kept: tuple[Operand, Singles] = self.kept.left
        return kept

    def between(self, sides: tuple[Sides, Sides]) -> Singles:
        return self.block(*sides)

    def block(self, rows: Sides, columns: Sides) -> Singles:
        left, less = self.left(rows)
        right, scale = self.product.right(_gather(self.vectors, columns))
        block = left[0] @ right[0].T
        for a, b in zip(left[1:], right[1:], strict=True):
            block += a @ b.T
        block -= less[:, None]
        block *= scale
        return np.asarray(block, np.float32)

    def pairs(self, task: _Task) -> Singles:
        if len(task.where) * DENSE >= len(task.rows) * len(task.columns):
            return self.block(task.rows, task.columns)[task.row, task.column]
        left, less = self.left(task.rows)
        right, scale = self.product.right(_gather(self.vectors, task.columns))
        found = -less[task.row]
        for a, b in zip(left, right, strict=True):
            _add_dots(a, b, task.row, task.column, found)
        return np.asarray(found * scale[task.column], np.float32)


def _gather(vectors: Singles, sides: Sides) -> Singles:
    """Rows of `vectors`: a view where they follow one another."""
    if len(sides) and np.array_equal(sides, np.arange(sides[0], sides[0] + len(sides))):
        return np.asarray(vectors[int(sides[0]) : int(sides[0]) + len(sides)])
    return np.asarray(vectors[sides])


@nb.njit(cache=True, nogil=True, fastmath=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Stretches of 1024 in float32, their sum in float64: as exact as a matrix product."""
    total = 0.0
    for begin in range(0, a.size, 1024):
        part = np.float32(0.0)
        for d in range(begin, min(begin + 1024, a.size)):
            part += a[d] * b[d]
        total += float(part)
    return total


@nb.njit(cache=True, nogil=True)
def _add_dots(left, right, row, column, found):  # type: ignore[no-untyped-def]
    for k in range(len(row)):
        found[k] += _dot(left[row[k]], right[column[k]])


@nb.njit(cache=True, nogil=True, fastmath=True)
def _inverse_lengths(vectors, mean, scale):  # type: ignore[no-untyped-def]
    """1 / |vector - mean|."""
    for i in range(vectors.shape[0]):
        vector, square = vectors[i], 0.0
        for d in range(vector.size):
            centred = np.float64(vector[d]) - np.float64(mean[d])
            square += centred * centred
        scale[i] = 1.0 / np.sqrt(max(square, 1e-30))


@nb.njit(cache=True, nogil=True, fastmath=True)
def _unit_rows(vectors, mean, unit, less):  # type: ignore[no-untyped-def]
    """unit = (vector - mean) / |vector - mean|, and less = unit . mean."""
    _inverse_lengths(vectors, mean, less)
    for i in range(vectors.shape[0]):
        vector, row, scale, along = vectors[i], unit[i], less[i], 0.0
        for d in range(row.size):
            row[d] = (vector[d] - mean[d]) * scale
            along += np.float64(row[d]) * np.float64(mean[d])
        less[i] = along
