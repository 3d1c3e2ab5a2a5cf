"""Scores of two classes by rank: one sort that serves every metric and curve of `detection.py`.

A score becomes an unsigned integer of its own width that compares alike, its key. The highest 16
bits of the keys cut the score axis into pieces that fit the cache. A piece is sorted, each class by
itself, by an LSD radix sort of the bits that vary in it (first of the two highest digits alone: a
few insertions often do the rest). Beyond the scores this holds one sorted copy of them and scratch
for the pieces at work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self, TypeVar

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spklink.errors import SpklinkError
from spklink.threads import in_order

Array = NDArray[Any]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Result = TypeVar("Result")

CLASSES = ("target", "non-target")
CELLS = 1 << 16  # values of the highest bits of a key
PIECE = 1 << 16  # trials in a piece, about: with its scratch it fits the cache
MOST_PIECES = 256  # the partition writes to so many places at a time
DIGIT = 11  # bits that one pass of the sort looks at, at most
TASKS = 4  # for each thread, so that uneven pieces even out


@dataclass(frozen=True)
class Keys:
    """The keys of one class; piece p of the score axis is sorted[bounds[p] : bounds[p + 1]]."""

    sorted: Array
    bounds: Counts

    def __len__(self) -> int:
        return len(self.sorted)

    def pieces(self, first: int, last: int) -> Array:
        return self.sorted[self.bounds[first] : self.bounds[last]]

    def up_to(self, key: int, side: Literal["left", "right"] = "right") -> int:
        """Keys under this one, with "right" also those that equal it."""
        # A number of another type would have all keys converted first.
        return int(np.searchsorted(self.sorted, self.sorted.dtype.type(key), side))

    def at(self, index: Counts) -> Array:
        """Keys at these places, the highest of all keys past the end."""
        highest = np.iinfo(self.sorted.dtype).max
        return np.where(index < len(self), self.sorted[np.minimum(index, len(self) - 1)], highest)


@dataclass(frozen=True)
class Ranking:
    """The keys of both classes, in the same pieces."""

    targets: Keys
    others: Keys
    dtype: np.dtype[Any]  # of the scores
    threads: int

    @classmethod
    def of(cls, targets: ArrayLike, others: ArrayLike, threads: int | None) -> Self:
        """Of these scores; on all cores, if that pays, unless `threads` says how many."""
        scores = same_type(targets, others)
        few = len(scores[0]) + len(scores[1]) < 2 * PIECE
        threads = threads or (1 if few else os.cpu_count() or 1)
        cells = [_cells(s, name, threads) for s, name in zip(scores, CLASSES, strict=True)]
        piece = _piece_of_cell(cells[0].sum(0) + cells[1].sum(0))
        keys = [_partition(s, c, piece, threads) for s, c in zip(scores, cells, strict=True)]
        ranking = cls(keys[0], keys[1], scores[0].dtype, threads)
        ranking.by_tasks(ranking._sort)
        return ranking

    def by_tasks(self, work: Callable[[int, int], Result]) -> list[Result]:
        """work(first, last) on runs of pieces, side by side, results in order."""
        pieces = len(self.targets.bounds) - 1
        cuts = np.linspace(0, pieces, min(pieces, TASKS * self.threads) + 1).astype(int).tolist()
        return list(in_order(lambda task: work(*task), pairwise(cuts), self.threads))

    def _sort(self, first: int, last: int) -> None:
        for keys in (self.targets, self.others):
            bounds = keys.bounds[first : last + 1]
            _sort_pieces(keys.sorted, bounds, np.empty(np.diff(bounds).max(), keys.sorted.dtype))


def same_type(targets: ArrayLike, others: ArrayLike) -> tuple[Array, Array]:
    """Contiguous, float32 if both are, else float64."""
    t, n = np.asarray(targets), np.asarray(others)
    dtype = np.float32 if t.dtype == n.dtype == np.float32 else np.float64
    return np.ascontiguousarray(t.ravel(), dtype), np.ascontiguousarray(n.ravel(), dtype)


def refuse_unusable(scores: Array, name: str) -> None:
    """As a ranking would: a class without scores, or with some that are not a number."""
    _cells(scores, name, 1)


def _cells(scores: Array, name: str, threads: int) -> Counts:
    """(parts, CELLS) how many scores of each part of the array lie in each cell."""
    if not len(scores):
        raise SpklinkError(f"there are no {name} scores; detection needs both classes")
    bits, sign = _bits(scores), sign_of(scores.dtype)
    infinity = _bits(np.array([np.inf], scores.dtype))[0]
    cells = np.zeros((threads, CELLS), np.int64)

    def work(part: int) -> int:
        here = bits[slice(*_part(len(bits), part, threads))]
        return int(_count_cells(here, sign, infinity, _shift(bits), cells[part]))

    unusable = sum(in_order(work, range(threads), threads))
    if unusable:
        raise SpklinkError(
            f"{unusable} of {len(scores)} {name} scores are not a number (NaN); leave them out"
        )
    return cells


def _piece_of_cell(cells: Counts) -> NDArray[np.uint16]:
    """Neighbouring cells share a piece until it has its part of all trials."""
    total = int(cells.sum())
    pieces = min(max(total // PIECE, 1), MOST_PIECES)
    return ((np.cumsum(cells) - cells) * pieces // total).astype(np.uint16)


def _partition(scores: Array, cells: Counts, piece: NDArray[np.uint16], threads: int) -> Keys:
    """The keys, piece by piece, not yet sorted within."""
    pieces = int(piece[-1]) + 1
    counts = np.array([np.bincount(piece, part, pieces) for part in cells]).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(counts.sum(0))])
    places = bounds[:-1] + np.cumsum(counts, 0) - counts
    bits = _bits(scores)
    keys = np.empty_like(bits)

    def work(part: int) -> None:
        here = bits[slice(*_part(len(bits), part, threads))]
        _scatter(here, sign_of(scores.dtype), _shift(bits), piece, places[part], keys)

    list(in_order(work, range(threads), threads))
    return Keys(keys, bounds)


def _part(total: int, part: int, parts: int) -> tuple[int, int]:
    return total * part // parts, total * (part + 1) // parts


def keys_of(scores: Array) -> Array:
    bits, sign = _bits(scores), sign_of(scores.dtype)
    return np.asarray(np.where(bits < sign, bits + sign, sign - (bits - sign)))


def scores_of(keys: Array, dtype: np.dtype[Any]) -> Floats:
    sign = sign_of(dtype)
    k = keys.astype(sign.dtype)
    bits = np.where(k >= sign, k - sign, sign + (sign - k))
    return np.asarray(bits.view(dtype), np.float64)


def sign_of(dtype: np.dtype[Any]) -> Any:
    """The sign bit, which is also the key of 0."""
    return _bits(np.array([-0.0], dtype))[0]


def _bits(scores: Array) -> Array:
    return scores.view(np.uint32 if scores.dtype == np.float32 else np.uint64)


def _shift(bits: Array) -> int:
    """What to shift a key by to have its cell."""
    return 8 * bits.dtype.itemsize - 16


@nb.njit(cache=True, nogil=True)
def _key(bits, sign):  # type: ignore[no-untyped-def]
    """Compares as the float of these bits does; -0 and 0 share one."""
    return bits + sign if bits < sign else sign - (bits - sign)


@nb.njit(cache=True, nogil=True)
def _count_cells(bits, sign, infinity, shift, cells):  # type: ignore[no-untyped-def]
    """Adds to `cells`; how many are not a number."""
    unusable = 0
    for i in range(bits.size):
        key = _key(bits[i], sign)
        cells[key >> shift] += 1
        unusable += (key > sign + infinity) | (key < sign - infinity)
    return unusable


@nb.njit(cache=True, nogil=True)
def _scatter(bits, sign, shift, piece, places, keys):  # type: ignore[no-untyped-def]
    for i in range(bits.size):
        key = _key(bits[i], sign)
        p = piece[key >> shift]
        keys[places[p]] = key
        places[p] += 1


@nb.njit(cache=True, nogil=True)
def _sort_pieces(keys, bounds, spare):  # type: ignore[no-untyped-def]
    counts = np.empty(1 << DIGIT, np.int64)
    for p in range(bounds.size - 1):
        here = keys[bounds[p] : bounds[p + 1]]
        if here.size > 1:
            _sort(here, spare[: here.size], counts)


@nb.njit(cache=True, nogil=True)
def _sort(keys, spare, counts):  # type: ignore[no-untyped-def]
    """LSD radix sort in place, of the bits between the lowest and the highest that vary."""
    lowest, highest = keys[0], keys[0]
    for i in range(keys.size):
        lowest, highest = min(lowest, keys[i]), max(highest, keys[i])
    varying = np.uint64(0)
    for i in range(keys.size):
        varying |= np.uint64(keys[i] - lowest)
    if varying == 0:
        return
    begin, end = 0, 0
    while not (varying >> np.uint64(begin)) & np.uint64(1):
        begin += 1
    while end < 64 and (varying >> np.uint64(end)):
        end += 1
    digit = DIGIT if keys.size > 4096 else 8
    if end - begin > 2 * digit:
        # The two highest digits tell nearly all keys apart, or all that are not equal.
        _sort_bits(keys, spare, lowest, end - 2 * digit, end, digit, counts)
        if _insertion_sort(keys, 4 * keys.size):
            return
    _sort_bits(keys, spare, lowest, begin, end, digit, counts)


@nb.njit(cache=True, nogil=True)
def _insertion_sort(keys, moves):  # type: ignore[no-untyped-def]
    """Sorts what is nearly sorted; gives up, with False, when it has used up its moves."""
    for i in range(1, keys.size):
        key, at = keys[i], i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
        moves -= i - at
        if moves < 0:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _sort_bits(keys, spare, lowest, begin, end, most, counts):  # type: ignore[no-untyped-def]
    """By bits begin to end of the keys less the lowest, in digits of `most` bits at most."""
    passes = -((begin - end) // most)
    digit = -((begin - end) // passes)
    source, target = keys, spare
    for k in range(passes):
        _sort_digit(source, target, lowest, begin + k * digit, counts[: 1 << digit])
        source, target = target, source
    if passes % 2:
        keys[:] = spare


@nb.njit(cache=True, nogil=True)
def _sort_digit(source, target, lowest, shift, counts):  # type: ignore[no-untyped-def]
    shift, mask = np.uint64(shift), np.uint64(counts.size - 1)
    counts[:] = 0
    for i in range(source.size):
        counts[(np.uint64(source[i] - lowest) >> shift) & mask] += 1
    place = 0
    for d in range(counts.size):
        place, counts[d] = place + counts[d], place
    for i in range(source.size):
        d = (np.uint64(source[i] - lowest) >> shift) & mask
        target[counts[d]] = source[i]
        counts[d] += 1
