"""What other places of one person in some of his conversations can do in the others, at most.

A *change* is a place of a person in a conversation other than in the best configuration: another
track or, where lists may be wrong, none. Two changes, in i and j, gain

  w (llr(p, q) - llr(p, q*) - llr(p*, q) + llr(p*, q*))

beyond the two by themselves (llr is 0 where he is nowhere; p*, q* are the best places): G_ij is the
most of it over the other places p, q. And a change in j moves what his voice adds to his places in
i apart by at most the range over p (0 for nowhere) of w (llr(p, q) - llr(p, q*)): C_ij is the most
of it over q.

Here every two conversations are looked at once, in blocks, and nothing is kept of them but a few
figures a conversation: time grows with the square. Module `norms` has bounds that do without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.recognizers.sums import Comparison, SideLine, table_of_ratios

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
SPEED = 2e10  # multiplications a second of a table of ratios, and
PAIR = 8e-9  # seconds that each pair of sides takes beside
BYTES = 1 << 26  # of the ratios of one block
WHOLE = 2048  # conversations of one person whose gains are all in memory at once
FEWEST, MOST, PART = 32, 256, 16  # largest changes that are kept: one in so many, within limits
ROUNDING = 1e-3  # share by which single precision may be off, generously


@dataclass(frozen=True)
class Voice:
    """One person in all his conversations, and where he is in the best configuration."""

    comparisons: tuple[Comparison, ...]
    line: SideLine
    sides: Ints  # of his conversations, those of a conversation together
    start: Ints  # (n + 1,) where those of a conversation begin
    usable: NDArray[np.bool_]  # like sides
    best: Ints  # (n,) his place: a track of the conversation, or their number for nowhere
    nowhere: bool  # whether he may be on no track
    weight: float  # of a pair of his conversations

    def __len__(self) -> int:
        return len(self.best)


@dataclass(frozen=True)
class Spread:
    """Of every conversation of one person, what changes in his others can do."""

    pair: Floats  # (n,) the most that one other change gains with one here
    row: Floats  # (n,) and all others together, with one here
    together: Floats  # (n,) of any set of changes: twice its gains are at most the sum of these
    of: Callable[[int], Floats]  # (n,) what so many others can change
    largest: Singles | None = None  # (n, k) changes by single others that `of` was made from


def by_pairs(voice: Voice) -> Spread:
    """From every two conversations of a person."""
    size, start, each = len(voice), voice.start, np.float32(voice.weight)
    ratios = table_of_ratios(voice.comparisons, voice.line, voice.sides, voice.usable)
    kept = min(max(size // PART, FEWEST), MOST, size)
    pair, row, largest = np.empty(size), np.empty(size), np.empty((size, kept), np.float32)
    every = np.empty((size, size), np.float32) if size <= WHOLE else None
    step = max(1, BYTES // (16 * size))
    for begin in range(0, size, step):
        part = slice(begin, min(begin + step, size))
        table = ratios(slice(int(start[part.start]), int(start[part.stop])))
        gain, change = np.empty((2, part.stop - begin, size), np.float32)
        _changes(table, start, begin, voice.best, voice.nowhere, gain, change)
        gain, change = each * gain, each * change
        pair[part] = np.maximum(gain.max(axis=1), 0.0)
        row[part] = np.maximum(gain, 0.0).sum(axis=1, dtype=np.float64)
        most = np.partition(change, size - kept, axis=1)[:, size - kept :]
        largest[part] = -np.sort(-most, axis=1)
        if every is not None:
            every[part] = gain
    more = 1.0 + ROUNDING
    together = row if every is None else np.full(size, _largest_eigenvalue(every))
    return Spread(more * pair, more * row, more * together, of_largest(largest), largest)


def cost_by_pairs(sides: int, width: int) -> float:
    """Seconds, predicted."""
    return float(sides) ** 2 * (2.0 * width / SPEED + PAIR)


def of_largest(largest: Singles) -> Callable[[int], Floats]:
    """(n,) sums of so many of the largest changes, of which (n, k) are kept."""

    def of(count: int) -> Floats:
        found = largest[:, :count].sum(axis=1, dtype=np.float64)
        beyond = max(count - largest.shape[1], 0)
        return np.asarray((found + beyond * largest[:, -1]) * (1.0 + ROUNDING))

    return of


def _largest_eigenvalue(gain: Singles) -> float:
    """Of the symmetric part: no set of changes gains more than half of it a change."""
    both = (gain + gain.T) / np.float32(2.0)
    return max(float(np.linalg.eigvalsh(both)[-1]), 0.0)


@nb.njit(cache=True, nogil=True)
def _changes(table, start, begin, best, nowhere, gain, change):  # type: ignore[no-untyped-def]
    """Fill gain and change (rows, n), without the weight, from the ratios of the sides of some
    conversations, from `begin` on, with all sides."""
    for i in range(len(gain)):
        top, end = start[begin + i] - start[begin], start[begin + i + 1] - start[begin]
        here = best[begin + i]
        for j in range(len(best)):
            left, tracks = start[j], start[j + 1] - start[j]
            most, wide = np.float32(-np.inf), np.float32(0.0)
            for q in range(tracks + nowhere):
                if q == best[j]:
                    continue
                elsewhere, own = np.float32(-np.inf), np.float32(0.0)
                low, high = np.float32(np.inf), np.float32(-np.inf)
                for p in range(end - top + nowhere):
                    moved = np.float32(0.0)
                    if p < end - top:
                        if q < tracks:
                            moved += table[top + p, left + q]
                        if best[j] < tracks:
                            moved -= table[top + p, left + best[j]]
                    low, high = min(low, moved), max(high, moved)
                    if p == here:
                        own = moved
                    else:
                        elsewhere = max(elsewhere, moved)
                most, wide = max(most, elsewhere - own), max(wide, high - low)
            gain[i, j] = most if most > -np.inf else 0.0  # where there is no other place
            change[i, j] = wide
        gain[i, begin + i], change[i, begin + i] = 0.0, 0.0
