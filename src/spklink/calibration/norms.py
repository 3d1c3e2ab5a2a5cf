"""The same bounds as in `spread` without looking at any two conversations: from lengths of vectors.

Every log-likelihood-ratio here is an inner product with signs, llr(u, v) = sum of s_k x_uk x_vk, of
one vector x a side (`signed_vectors`); a side that cannot be used, and nowhere, have x = 0. With
d = x_p - x_p* the vector of a change and w the weight of two conversations

- two changes gain w d_i S d_j together, at most w |d_i| |d_j|;
- what k changes move at i is at most w |x_p - x_p'| times the k largest |d_j|, and, as squares add
  up, at most w sqrt(k (x_p - x_p') S Q S (x_p - x_p')) with Q the sum of d d' over all changes;
- a set of changes gains w / 2 ((sum of d) S (sum of d) - sum of d S d): at most half the sum over
  it of the largest eigenvalue of all their products, less w d S d. These products are as many as
  the square of the changes, but their eigenvalues are those of R' S R with R R' = Q. (Another track
  and nowhere are two changes of which one is made: `_Products`.)

Time grows with the conversations times the square of the width. Lengths are that of vectors most of
which is noise, so the bounds are some times wider than those from all pairs; the weight 2 / n makes
up for that where n is large.

For the lengths to say something, x must not be longer than need be: what is common to all sides
stands before what differs between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.calibration.spread import ROUNDING, Spread, Voice

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
SPEED = 2e10  # multiplications a second: for predictions, never measured
BLOCK = 2048  # conversations whose vectors are in memory at a time
TINY = 1e-12
TWO = 2
SHARES = (0.8, 0.9, 0.95)  # a choice: of two changes, the part of what they have in common
JITTER = 1e-7  # of the trace, added to what has to be positive: it only widens


def by_norms(voice: Voice) -> Spread:
    """From the lengths of the vectors of a person's sides."""
    w, more, found = voice.weight, 1.0 + ROUNDING, _measured(voice)
    there = found.change
    longest = np.where(there, found.length, 0.0).max(axis=1)
    row = more * w * np.sqrt(there.sum() * np.where(there, found.energy, 0.0).max(axis=1))
    least = np.where(there, w * found.own, np.inf).min(axis=1)
    least = np.where(there.any(axis=1), least, 0.0)
    together = more * w * found.top - least + ROUNDING * np.abs(least)
    pair = more * w * longest * longest.max()
    reach, energy = found.length.max(axis=1), found.energy.max(axis=1)
    total = np.concatenate([[0.0], np.cumsum(-np.sort(-longest))])

    def of(count: int) -> Floats:
        by_length = reach * total[min(count, len(voice))]
        return np.asarray(more * w * np.minimum(by_length, np.sqrt(count * energy)))

    return Spread(pair, row, together, of)


@dataclass(frozen=True)
class _Measured:
    """Differences between the vectors of two places in every conversation, (n, ways) each."""

    change: NDArray[np.bool_]  # one of the two is the best
    length: Floats
    own: Floats  # d S d
    energy: Floats  # d S Q S d
    top: float  # largest eigenvalue of the products of changes


def _measured(voice: Voice) -> _Measured:
    vectors, sign = signed_vectors(voice)
    ways = list(combinations(range(int(np.diff(voice.start).max()) + voice.nowhere), 2))
    changes = _changes(voice, ways)
    blocks = [slice(k, k + BLOCK) for k in range(0, len(voice), BLOCK)]
    length, own, energy = np.zeros((3, len(voice), len(ways)))
    products = _Products.none(len(sign), int(np.abs(changes).sum(axis=1).max()))
    for part in blocks:
        gap = _gaps(vectors, voice, part, ways)
        length[part], own[part] = np.linalg.norm(gap, axis=2), gap**2 @ sign
        products = products.and_of(gap * changes[part, :, None])
    turned = (sign[:, None] * _root(products.every())).astype(np.float32)
    for part in blocks:
        energy[part] = ((_gaps(vectors, voice, part, ways) @ turned) ** 2).sum(axis=2)
    return _Measured(changes != 0.0, length, own, energy, products.top(sign))


@dataclass(frozen=True)
class _Products:
    """Sums of products of the vectors of changes. Where a conversation has two changes, of which
    one at most is made: of half their sum, and of half their difference."""

    most: int  # changes of a conversation
    first: Floats  # (width, width)
    second: Floats

    @classmethod
    def none(cls, width: int, most: int) -> _Products:
        return cls(most, *np.zeros((2, width, width)))

    def and_of(self, moved: Singles) -> _Products:
        """With (some, ways, width) changes, 0 for what is none."""
        if self.most != TWO:
            flat = moved.reshape(-1, moved.shape[2])
            return replace(self, first=self.first + flat.T @ flat)
        there = (moved != 0.0).any(axis=2)
        some = np.arange(len(moved))
        last = moved.shape[1] - 1
        a, b = moved[some, there.argmax(axis=1)], moved[some, last - there[:, ::-1].argmax(axis=1)]
        middle, half = (a + b) / np.float32(2.0), (a - b) / np.float32(2.0)
        return _Products(self.most, self.first + middle.T @ middle, self.second + half.T @ half)

    def every(self) -> Floats:
        """That of all changes, or more."""
        return self.first if self.most != TWO else 2.0 * (self.first + self.second)

    def top(self, sign: Floats) -> float:
        """No set of changes, one of a conversation, has a sum d with d S d above so much for each.

        Of two changes m + s and m - s the sum over a set is that of m and of plus or minus s: a
        product of all m / sqrt(share), s / sqrt(1 - share) with a vector whose square is at most
        the number of the set."""
        if self.most != TWO:
            return _top(self.first, sign)
        return min(_top(self.first / x + self.second / (1.0 - x), sign) for x in SHARES)


def _root(square: Floats) -> Floats:
    """R with R R' = square, or a little more."""
    more = JITTER * np.trace(square) + TINY
    return np.linalg.cholesky(square + more * np.eye(len(square)))


def _top(square: Floats, sign: Floats) -> float:
    """The largest eigenvalue of the products, with signs, of vectors that have these squares."""
    root = _root(square)
    return max(float(np.linalg.eigvalsh(root.T @ (sign[:, None] * root))[-1]), 0.0)


def cost_by_norms(calls: int, width: int) -> float:
    """Seconds, predicted: of two tracks and nowhere, and vectors of twice the width."""
    return 5.0 * calls * (2.0 * width) ** 2 / SPEED + (2.0 * width) ** 3 / SPEED


def _changes(voice: Voice, ways: list[tuple[int, int]]) -> Singles:
    """(n, ways) whether a difference of two places is that of a change, 1, or its opposite, -1:
    the second of them is the best, or the first; else 0.
    Nowhere is the last place of all, whatever the number of tracks."""
    tracks = np.diff(voice.start)
    last = int(tracks.max())
    best = np.where(voice.best == tracks, last, voice.best)
    ends = np.array(ways, np.int64)
    there = (ends < tracks[:, None, None]) | (voice.nowhere & (ends == last))
    at = (ends == best[:, None, None]) & there.all(axis=2)[:, :, None]
    return np.asarray(at[:, :, 1].astype(np.float32) - at[:, :, 0])


def _gaps(
    vectors: Callable[[slice], Singles], voice: Voice, part: slice, ways: list[tuple[int, int]]
) -> Singles:
    """(some, ways, width) differences between the vectors of two places; 0 for a track that is not
    there, as for nowhere."""
    start = voice.start[part.start : part.stop + 1]
    tracks, most = np.diff(start), int(np.diff(voice.start).max())
    own = vectors(slice(int(start[0]), int(start[-1])))
    x = np.zeros((len(tracks), most + 1, own.shape[1]), np.float32)
    x[np.repeat(np.arange(len(tracks)), tracks), ranges(np.zeros_like(tracks), tracks)] = own
    return np.stack([x[:, p] - x[:, q] for p, q in ways], axis=1)


def signed_vectors(voice: Voice) -> tuple[Callable[[slice], Singles], Floats]:
    """(some sides, width) vectors of which log-likelihood-ratios are inner products with (width,)
    signs."""
    sides, usable = voice.sides, voice.usable
    line = voice.line.of(sides)
    t = sum((one.shift[sides] for one in voice.comparisons), np.zeros(len(sides)))
    numbers, signs = _together([*_crossed(line.slope, t, usable, -1.0), *_sum(_alone(voice, t))])
    factors = [_factors(line.slope, one.inverse[sides], usable) for one in voice.comparisons]
    rows = [one.rows(sides) for one in voice.comparisons]
    for (left, right), (_, own) in zip(rows, factors, strict=True):
        both = [np.ones(left.shape[1])] + [-np.ones(left.shape[1])] * (left is not right)
        signs = np.concatenate([signs, np.outer(own, np.concatenate(both)).ravel()])

    def vectors(part: slice) -> Singles:
        found = [numbers[part]]
        for (left, right), (factor, _) in zip(rows, factors, strict=True):
            x = left[part]
            if left is not right:  # half of the sum, and of the difference
                x = np.hstack([x + right[part], x - right[part]]) / 2.0
            found.append((factor[part][:, :, None] * x[:, None, :]).reshape(len(x), -1))
        return np.asarray(np.hstack(found) * usable[part, None], np.float32)

    return vectors, signs


Terms = list[tuple[Floats, float]]  # numbers a side, and the sign of their products


def _alone(voice: Voice, t: Floats) -> Floats:
    """What a side adds to a log-likelihood-ratio whatever the other is: but for what `_crossed`
    has."""
    line = voice.line.of(voice.sides)
    a, usable = line.slope, voice.usable
    middle_a, middle_t = _middle(a, usable), _middle(t, usable)
    rest = line.offset - a * t - middle_a * middle_t
    return np.asarray(rest - middle_t * (a - middle_a) - middle_a * (t - middle_t))


def _middle(x: Floats, usable: NDArray[np.bool_]) -> float:
    return float(x[usable].mean()) if usable.any() else 0.0


def _sum(x: Floats) -> Terms:
    """x_u + x_v as products."""
    middle = float(x.mean())
    rest, both = x - middle, 2.0 * middle
    unit = np.sqrt(max(both, float(rest.std()), TINY))
    terms = [(unit + rest / unit, 1.0), (rest / unit, -1.0)]
    return [*terms, (np.full(len(x), np.sqrt(max(unit**2 - both, 0.0))), -1.0)]


def _crossed(x: Floats, y: Floats, usable: NDArray[np.bool_], sign: float) -> Terms:
    """sign (x_u y_v + x_v y_u) as products, of what differs between sides."""
    x, y = x - _middle(x, usable), y - _middle(y, usable)
    one, two = float(np.abs(x[usable]).max(initial=0.0)), float(np.abs(y[usable]).max(initial=0.0))
    if one <= TINY or two <= TINY:
        return []
    scale = np.sqrt(two / one)
    half = np.sqrt(0.5)
    return [(half * (scale * x + y / scale), sign), (half * (scale * x - y / scale), -sign)]


def _factors(a: Floats, h: Floats, usable: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(a_u + a_v) (h_u + h_v) / 2 as products: (sides, terms), and (terms,) signs."""
    middle_a, middle_h = _middle(a, usable), _middle(h, usable)
    rest_a, rest_h = a - middle_a, h - middle_h
    once = middle_a * rest_h + middle_h * rest_a + 0.5 * rest_a * rest_h
    terms = _sum(middle_a * middle_h + once)
    crossed = _crossed(a, h, usable, 1.0)
    return _together([*terms, *((np.sqrt(0.5) * x, s) for x, s in crossed)])


def _together(terms: Terms) -> tuple[Floats, Floats]:
    """(sides, terms) and (terms,); without those that are nothing."""
    kept = [(x, s) for x, s in terms if np.abs(x).max(initial=0.0) > TINY]
    return np.stack([x for x, _ in kept], axis=1), np.array([s for _, s in kept])
