"""What a recognizer is, the models of sides it makes, and scores of many side pairs at once.

A *side* is one channel of one conversation; side 2m + c is channel c of conversation m. A
recognizer turns the features of a side into one vector, and two vectors into a score: higher for
the same speaker, symmetric, not yet calibrated. One file a recognizer.

Where a score is an inner product, `InnerProduct` says of what, and `pair_scores`, `table` and
`all_pairs` compute it by tiles of sides: with a matrix product where the pairs are dense, one by
one where they are few. Vectors may be memory-mapped: no more than two tiles a thread are held at
any time. The same vectors and pairs give the same bytes on any number of threads.
"""

from __future__ import annotations

import struct
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Protocol

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.tables import write_npz
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Operand = tuple[Singles, ...]
Cut = tuple[slice, slice]

TILE_BYTES = 1 << 28  # tables of the sides of one tile
TILE_SIDES = 1024
DENSE = 16  # a matrix product takes no longer than one pair in so many, pair by pair


class Recognizer(Protocol):
    """From the features of a side to its vector, from vectors and side pairs to scores."""

    @property
    def fingerprint(self) -> str:
        """Vectors made under the same fingerprint can be compared."""

    def vector(self, features: Singles) -> Singles:
        """(width,) the model of a side with features (frames, D)."""

    def scores(self, vectors: Singles, side_1: Sides, side_2: Sides, *, threads: int = 1) -> Floats:
        """The score of each pair of rows of `vectors`."""

    def table(self, vectors: Singles, rows: Sides, columns: Sides, *, threads: int = 1) -> Singles:
        """(rows, columns) the score of each side of one list with each of the other."""


@dataclass(frozen=True)
class SideModels:
    """Vectors of sides, and which sides they are."""

    fingerprint: str  # of the recognizer that made them
    sides: tuple[tuple[str, int], ...]  # conversation, channel from 0
    vectors: Singles  # (sides, width), perhaps memory-mapped

    def add(self, more: SideModels) -> SideModels:
        """Both together; they must come from one recognizer and be different sides."""
        if more.fingerprint != self.fingerprint:
            raise SpklinkError(
                "models of two different recognizers cannot be used together; make both anew"
            )
        twice = sorted(set(self.sides) & set(more.sides))
        if twice:
            name, channel = twice[0]
            raise SpklinkError(f"a model of conversation {name!r} channel {channel + 1} exists")
        vectors = np.concatenate([self.vectors, more.vectors])
        return SideModels(self.fingerprint, self.sides + more.sides, vectors)

    def save(self, path: str | PathLike[str]) -> None:
        """One .npz without pickle; channels count from 1 there."""
        arrays = {
            "fingerprint": np.array(self.fingerprint),
            "conversation": np.array([name for name, _ in self.sides], np.str_),
            "channel": np.array([channel + 1 for _, channel in self.sides], np.int8),
            "vectors": np.asarray(self.vectors, np.float32),
        }
        write_npz(path, arrays)


def load_models(path: str | PathLike[str]) -> SideModels:
    """Models that `save` wrote; the vectors stay in the file until they are used."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            channels = arrays["channel"].tolist()
            names = arrays["conversation"].tolist()
            sides = tuple((name, c - 1) for name, c in zip(names, channels, strict=True))
            fingerprint = str(arrays["fingerprint"])
        return SideModels(fingerprint, sides, _mapped(path, "vectors.npy"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise SpklinkError(
            f"{path}: not side models saved by spklink ({error}); make them anew"
        ) from None


def _mapped(path: str | PathLike[str], name: str) -> Singles:
    """A two-dimensional array in an uncompressed .npz, as a read-only memory map."""
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:  # noqa: PTH123
        entry = archive.getinfo(name)
        # A local header is 30 bytes, of which the last four give the lengths of name and extra.
        file.seek(entry.header_offset + 26)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        file.seek(name_length + extra_length, 1)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype != np.float32 or len(shape) != 2 or entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is not a plain table of float32")
        if 0 in shape:
            return np.empty(shape, np.float32)
        return np.memmap(path, dtype, "r", file.tell(), shape)


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


def pair_scores(
    product: InnerProduct, vectors: Singles, side_1: Sides, side_2: Sides, *, threads: int = 1
) -> Floats:
    """The score of each pair of rows of `vectors`."""
    scores = np.empty(len(side_1))
    tasks = list(_tasks(np.minimum(side_1, side_2), np.maximum(side_1, side_2), _step(product)))
    work = _Tiles(product, vectors).pairs
    with one_blas_thread():
        for task, found in zip(tasks, in_order(work, tasks, threads), strict=True):
            scores[task.where] = found
    return scores


def table(
    product: InnerProduct, vectors: Singles, rows: Sides, columns: Sides, *, threads: int = 1
) -> Singles:
    """(rows, columns) all scores between two lists of sides."""
    out = np.empty((len(rows), len(columns)), np.float32)
    step = _step(product)
    cuts = [(r, c) for r in _slices(0, len(rows), step) for c in _slices(0, len(columns), step)]
    for cut, block in _blocks(product, vectors, rows, columns, cuts, threads):
        out[cut] = block
    return out


def all_pairs(
    product: InnerProduct, vectors: Singles, *, threads: int = 1, out: Singles | None = None
) -> Singles:
    """(sides, sides) every score, computed once for (i, j) and (j, i); `out` may be a file."""
    sides = np.arange(len(vectors))
    out = np.empty((len(sides), len(sides)), np.float32) if out is None else out
    tiles = list(_slices(0, len(sides), _step(product)))
    cuts = [(row, column) for a, row in enumerate(tiles) for column in tiles[a:]]
    for (row, column), block in _blocks(product, vectors, sides, sides, cuts, threads):
        if row == column:
            block = (block + block.T) / np.float32(2.0)  # its two halves differ by rounding
        out[row, column], out[column, row] = block, block.T
    return out


def _step(product: InnerProduct) -> int:
    return max(1, min(TILE_SIDES, TILE_BYTES // (4 * product.depth)))


def _slices(begin: int, end: int, step: int) -> Iterator[slice]:
    return (slice(at, min(at + step, end)) for at in range(begin, end, step))


def _blocks(
    product: InnerProduct,
    vectors: Singles,
    rows: Sides,
    columns: Sides,
    cuts: list[Cut],
    threads: int,
) -> Iterator[tuple[Cut, Singles]]:
    tiles = _Tiles(product, vectors)

    def work(cut: Cut) -> Singles:
        return tiles.block(rows[cut[0]], columns[cut[1]])

    with one_blas_thread():
        yield from zip(cuts, in_order(work, cuts, threads), strict=True)


@dataclass(frozen=True)
class _Task:
    """Some pairs whose sides lie in two tiles."""

    rows: Sides  # sides, each once
    columns: Sides
    row: Sides  # of each pair: its place in `rows`
    column: Sides
    where: Sides  # its place in the list of all pairs


def _tasks(side_1: Sides, side_2: Sides, step: int) -> Iterator[_Task]:
    """The pairs by tiles, all of one row tile together."""
    tiles = int(side_2.max(initial=0)) // step + 1
    key = (side_1 // step) * tiles + side_2 // step
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    for where in np.split(order, cuts) if len(order) else ():
        rows, row = np.unique(side_1[where], return_inverse=True)
        columns, column = np.unique(side_2[where], return_inverse=True)
        yield _Task(rows, columns, row, column, where)


class _Tiles:
    """Scores out of two tiles at a time; each thread keeps the row tile for its next task."""

    def __init__(self, product: InnerProduct, vectors: Singles) -> None:
        self.product, self.vectors = product, vectors
        self.kept = threading.local()

    def left(self, rows: Sides) -> tuple[Operand, Singles]:
        if not np.array_equal(getattr(self.kept, "rows", None), rows):  # type: ignore[arg-type]
            self.kept.rows = rows
            self.kept.left = self.product.left(_gather(self.vectors, rows))
        kept: tuple[Operand, Singles] = self.kept.left
        return kept

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
