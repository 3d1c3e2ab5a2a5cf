"""What other places of one person in some of his conversations can do in the others, at most.

A *change* is a place of a person in a conversation other than in the best configuration: another
track or, where lists may be wrong, none. Two changes, in i and j, gain

  w (llr(p, q) - llr(p, q*) - llr(p*, q) + llr(p*, q*))

beyond the two by themselves (llr is 0 where he is nowhere; p*, q* are the best places): G_ij is the
most of it over the other places p, q. And a change in j moves what his voice adds to his places in
i apart by at most the range over p (0 for nowhere) of w (llr(p, q) - llr(p, q*)): C_ij is the most
of it over q.

Changes are of two kinds, to another track and to nowhere. Two of one kind share what they gain
evenly; of what one of each kind gains, nowhere gets one of several parts (`PARTS`), and the other
the rest (module `counting` says what for).

Here every two conversations are looked at once, in blocks, and nothing is kept of them but a few
figures a conversation: time grows with the square. Module `norms` has bounds that do without.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
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
CLOSE = 1.03  # an eigenvalue is proved to be no more than so many times its guess
PRODUCTS = 12  # for that guess
EVEN = 0.5  # of what two changes gain, to each
LINES = 3  # bounds of what a change gains with so many others
SAMPLE = 8  # one in so many others tells what is usual
PARTS = (
    0.1,
    0.2,
    0.3,
    0.4,
    EVEN,
)  # that nowhere gets of what it gains with another track. A choice


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
    shared: Floats | None = None  # (2, lines, parts, kinds, n) slopes and bases
    at_best: Floats | None = None  # (sides,) what his voice adds where he is everywhere at best

    def ways(self, kinds: int) -> tuple[Floats, Floats]:
        """(ways, lines, kinds, n) slopes and bases of lines that bound what a change gains, its
        share of it, with so many others (module `counting`). One kind: to another track."""
        nothing = np.zeros(len(self.pair))
        slope = np.array([[self.pair, nothing, nothing], [nothing] * LINES])
        base = np.array([[nothing, self.row, self.row], [self.together] * LINES])
        plain = [EVEN * np.repeat(one[:, :, None], kinds, axis=2) for one in (slope, base)]
        if self.shared is None:
            return plain[0], plain[1]
        finer = np.swapaxes(self.shared, 1, 2)[..., :kinds, :]
        return np.concatenate([finer[0], plain[0][1:]]), np.concatenate([finer[1], plain[1][1:]])


def by_pairs(voice: Voice) -> Spread:
    """From every two conversations of a person."""
    size, start, each = len(voice), voice.start, np.float32(voice.weight)
    ratios = table_of_ratios(voice.comparisons, voice.line, voice.sides, voice.usable)
    kept = min(max(size // PART, FEWEST), MOST, size)
    pair, row, largest = np.empty(size), np.empty(size), np.empty((size, kept), np.float32)
    every = np.empty((size, size), np.float32) if size <= WHOLE else None
    parts, kinds = (len(PARTS), 2) if voice.nowhere else (1, 1)
    shared = np.zeros((2, LINES, parts, kinds, size))
    step = max(1, BYTES // (16 * size))
    for begin in range(0, size, step):
        part = slice(begin, min(begin + step, size))
        table = ratios(slice(int(start[part.start]), int(start[part.stop])))
        gain, change = np.empty((2, part.stop - begin, size), np.float32)
        _changes(table, start, begin, voice.best, voice.nowhere, gain, change)
        if voice.nowhere:
            _share(table, start, begin, voice.best, np.array(PARTS), shared[..., part])
        else:
            _share_evenly(gain, shared[..., part])
        gain, change = each * gain, each * change
        pair[part] = np.maximum(gain.max(axis=1), 0.0)
        row[part] = np.maximum(gain, 0.0).sum(axis=1, dtype=np.float64)
        most = np.partition(change, size - kept, axis=1)[:, size - kept :]
        largest[part] = -np.sort(-most, axis=1)
        if every is not None:
            every[part] = gain
    more = 1.0 + ROUNDING
    together = row if every is None else np.full(size, _largest_eigenvalue(every))
    shared *= more * voice.weight
    return Spread(more * pair, more * row, more * together, of_largest(largest), largest, shared)


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
    """Of the symmetric part, or a little more: no set of changes gains more than half of it a
    change. A few products guess it, and a Cholesky factor of what is left below the guess proves
    it; that takes half the time of all eigenvalues."""
    both = (gain + gain.T) / np.float32(2.0)
    guess = _guess(both)
    for times in (CLOSE, CLOSE**4):
        most = np.float32(times * guess)
        if most > 0.0:
            left = -both
            left[np.diag_indices_from(left)] += most
            with suppress(np.linalg.LinAlgError):
                np.linalg.cholesky(left)
                return float(most)
    return max(float(np.linalg.eigvalsh(both)[-1]), 0.0)


def _guess(both: Singles) -> float:
    """A largest eigenvalue, from below: by products that end in the space of the largest ones."""
    start = np.ones((len(both), 2), np.float32)
    start[1::2, 1] = -1.0
    basis = start
    for _ in range(PRODUCTS):
        basis = np.linalg.qr(both @ basis)[0]
    return float(np.linalg.eigvalsh(basis.T @ (both @ basis))[-1])


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


@nb.njit(cache=True, nogil=True)
def _share(table, start, begin, best, parts, shared):  # type: ignore[no-untyped-def]
    """Fill shared (2, lines, parts, kinds, rows), without the weight: kinds are track and nowhere.
    The lines: the largest share each; all positive ones; what is usual each, and the excess."""
    gain = np.empty((4, len(best)), np.float32)
    for i in range(shared.shape[4]):
        rows = table[start[begin + i] - start[begin] : start[begin + i + 1] - start[begin]]
        for j in range(len(best)):
            both = _gains_of_kinds(rows, best[begin + i], start[j], start[j + 1], best[j])
            gain[0, j], gain[1, j], gain[2, j], gain[3, j] = both
        gain[:, begin + i] = 0.0
        for k in range(len(parts)):
            part = np.float32(parts[k])
            _lines(gain[0], gain[1], np.float32(1.0) - part, shared[:, :, k, 0, i])
            _lines(gain[3], gain[2], part, shared[:, :, k, 1, i])


@nb.njit(cache=True, nogil=True)
def _share_evenly(gain, shared):  # type: ignore[no-untyped-def]
    """The same where there is one kind of changes."""
    for i in range(len(gain)):
        _lines(gain[i], gain[i], np.float32(EVEN), shared[:, :, 0, 0, i])


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def _lines(alike, other, part, found):  # type: ignore[no-untyped-def]
    """Of the shares of a change in what it gains with changes of its own kind, and of the other."""
    largest, total, excess, usual = np.float32(0.0), np.float32(0.0), np.float32(0.0), 0.0
    half, size = np.float32(EVEN), len(alike)
    for j in range(0, size, SAMPLE):
        usual += max(half * alike[j], part * other[j], np.float32(0.0))
    each = np.float32(usual * SAMPLE / size)
    for j in range(size):
        share = max(max(half * alike[j], part * other[j]), np.float32(0.0))
        largest = max(largest, share)
        total += share
        excess += max(share - each, np.float32(0.0))
    found[0, 0], found[1, 1] = largest, total
    found[0, 2], found[1, 2] = each, excess


@nb.njit(cache=True, nogil=True)
def _gains_of_kinds(rows, here, left, right, there):  # type: ignore[no-untyped-def]
    """The most that two changes gain: both to tracks, to a track and nowhere, nowhere and a track,
    both nowhere. `rows` are the ratios of the sides of one conversation, whose best place is
    `here`; the sides of the other are `left` up to `right`."""
    least = np.float32(-np.inf)
    both, first, second, none = least, least, least, least
    mine, tracks = len(rows), right - left
    for q in range(tracks + 1):
        if q == there:
            continue
        own = _moved(rows, here, left, q, there, tracks) if here < mine else np.float32(0.0)
        for p in range(mine + 1):
            if p == here:
                continue
            moved = _moved(rows, p, left, q, there, tracks) if p < mine else np.float32(0.0)
            if p < mine and q < tracks:
                both = max(both, moved - own)
            elif p < mine:
                first = max(first, moved - own)
            elif q < tracks:
                second = max(second, moved - own)
            else:
                none = moved - own
    return both, first, second, none


@nb.njit(cache=True, nogil=True)
def _moved(rows, p, left, q, there, tracks):  # type: ignore[no-untyped-def]
    """What a change from `there` to q adds to track p."""
    found = np.float32(0.0)
    if q < tracks:
        found += rows[p, left + q]
    if there < tracks:
        found -= rows[p, left + there]
    return found
