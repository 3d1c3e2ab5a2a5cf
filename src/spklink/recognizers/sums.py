"""What a side scores with many others together, without a pair of them being listed.

Scores here are inner products, shifted and scaled a side at a time (normalisation), and a line of
log-likelihood-ratios over them scales and shifts once more, perhaps by the speech of each side:

  s(u, v) = sum over comparisons of (h_u + h_v) / 2 x left_u . right_v  -  t_u - t_v
  llr(u, v) = (a_u + a_v) s(u, v) + o_u + o_v

so that the sum over v of q_v llr(u, v) needs, of all v together, four weighted sums of the vectors
right_v (with weights q, q h, q a, q a h) and a few sums of numbers. Time and memory grow with the
number of sides; vectors are looked at BLOCK at a time, in a fixed order.

Conventions: `sides` are the sides of one person's conversations, those of a conversation together;
arrays named q, a, o and results are in that order, h and t are arrays of all sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges, sums
from spklink.recognizers.normalise import Normaliser
from spklink.recognizers.plda import PairTerms
from spklink.recognizers.products import Cosine, InnerProduct

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Rows = NDArray[np.floating]
BLOCK = 8192  # sides whose vectors are in memory at a time


@dataclass(frozen=True)
class Comparison:
    """One way in which sides are compared; scores of several are added."""

    rows: Callable[[Sides], tuple[Rows, Rows]]  # (sides, width) left and right vectors of sides
    inverse: Floats  # (S,) h
    shift: Floats  # (S,) t


@dataclass(frozen=True)
class SideLine:
    """A line over scores, a side at a time: the slope of two sides is a_u + a_v."""

    slope: Floats  # (S,) a
    offset: Floats  # (S,) o

    def of(self, sides: Sides) -> SideLine:
        """That of some sides."""
        return SideLine(self.slope[sides], self.offset[sides])


def compared_by(
    product: InnerProduct, vectors: Singles, row: Sides, normaliser: Normaliser | None
) -> Comparison:
    """Vectors under the product of a recognizer; those of side s are in row[s]."""

    def rows(sides: Sides) -> tuple[Rows, Rows]:
        own = vectors[row[sides]]
        tables, less = product.left(own)
        if isinstance(product, Cosine):
            return tables[0], tables[0]
        others, scale = product.right(own)
        ones = np.ones((len(own), 1), np.float32)
        left = np.concatenate([*tables, -less[:, None]], axis=1)
        return left, np.concatenate([*others, ones], axis=1) * scale[:, None]

    return Comparison(rows, *_normalised(normaliser, len(row)))


class Terms(Protocol):
    """Sides as they are compared."""

    def of(self, sides: Sides) -> PairTerms:
        """Some of them."""
        ...


def compared_again(every: Terms, normaliser: Normaliser) -> Comparison:
    """Sides under what links or background speech teach."""

    def rows(sides: Sides) -> tuple[Rows, Rows]:
        terms = every.of(sides)
        unit, less = terms.unit, terms.less[:, None].astype(np.float32)
        if not less.any():
            return unit, unit
        ones = np.ones_like(less)
        return np.hstack([unit, less, ones]), np.hstack([unit, -ones, -less])

    return Comparison(rows, *_normalised(normaliser, len(normaliser.centre)))


def _normalised(fitted: Normaliser | None, count: int) -> tuple[Floats, Floats]:
    if fitted is None or fitted.reason:
        return np.ones(count), np.zeros(count)
    return 1.0 / fitted.scale, 0.5 * fitted.centre / fitted.scale


@dataclass(frozen=True)
class Within:
    """The pairs of sides of one conversation, a side with itself included, one conversation after
    the other."""

    start: Sides  # (conversations + 1,) of sides
    pairs: Sides  # (conversations + 1,) of pairs
    u: Sides
    v: Sides

    @classmethod
    def of(cls, start: Sides) -> Within:
        count = np.diff(start)
        u = np.repeat(np.arange(start[-1]), np.repeat(count, count))
        v = ranges(np.repeat(start[:-1], count), np.repeat(count, count))
        return cls(start, np.concatenate([[0], np.cumsum(count**2)]), u, v)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Whole conversations of about BLOCK sides together: their sides, and their pairs."""
        k, last = 0, len(self.start) - 1
        while k < last:
            end = int(np.searchsorted(self.start, self.start[k] + BLOCK, side="right")) - 1
            end = max(end, k + 1)
            yield (
                slice(int(self.start[k]), int(self.start[end])),
                slice(int(self.pairs[k]), int(self.pairs[end])),
            )
            k = end


@dataclass(frozen=True)
class Summing:
    """The sides of one person's conversations, to be summed again and again under other chances and
    lines; conversation k has the sides start[k] up to below start[k + 1]."""

    comparisons: tuple[Comparison, ...]
    sides: Sides
    start: Sides

    def __call__(self, line: SideLine, q: Floats) -> Floats:
        """(sides,) of each the sum of q_v llr(u, v) over all v but those of its own
        conversation."""
        own, within = line.of(self.sides), self.within
        found, inside = _numbers(own, self.shift, q), _numbers_within(own, self.shift, within)
        u, v = within.u, within.v
        slope = own.slope[u] + own.slope[v]
        for k, one in enumerate(self.comparisons):
            inverse = one.inverse[self.sides]
            found += self._products(one, own.slope, inverse, q)
            inside += slope * (inverse[u] + inverse[v]) / 2.0 * self.inner[k]
        return found - sums(u, inside * q[v], len(self.sides))

    @cached_property
    def within(self) -> Within:
        return Within.of(self.start)

    @cached_property
    def shift(self) -> Floats:
        """(sides,) t of all comparisons together."""
        return sum((one.shift[self.sides] for one in self.comparisons), np.zeros(len(self.sides)))

    @cached_property
    def inner(self) -> list[Singles]:
        """Of each comparison the inner products of pairs within conversations: no chance and no
        line changes these."""
        return [self._inner(one) for one in self.comparisons]

    def _inner(self, one: Comparison) -> Singles:
        within, found = self.within, np.empty(len(self.within.u), np.float32)
        for part, pairs in within.blocks():
            left, right = one.rows(self.sides[part])
            u, v = within.u[pairs] - part.start, within.v[pairs] - part.start
            found[pairs] = np.einsum("pd,pd->p", left[u], right[v])
        return found

    def _products(self, one: Comparison, a: Floats, h: Floats, q: Floats) -> Floats:
        """(sides,) the part of the sum that is inner products, of all pairs."""
        weights = np.stack([q, q * h, q * a, q * a * h])
        mine = np.stack([a * h, a, h, np.ones_like(a)], axis=1) / 2.0
        blocks = [part for part, _ in self.within.blocks()]
        kept = one.rows(self.sides) if len(blocks) == 1 else None
        rows = ((part, (kept or one.rows(self.sides[part]))[1]) for part in blocks)
        total, found = _totals(weights, rows), np.empty(len(q))
        for part in blocks:
            left = (kept or one.rows(self.sides[part]))[0]
            found[part] = np.einsum("uk,uk->u", left @ total.T, mine[part])
        return found


def _numbers(line: SideLine, t: Floats, q: Floats) -> Floats:
    """What the sum has beside inner products."""
    a, o = line.slope, line.offset
    alone = (o - a * t) * q.sum() - a * (q @ t) - t * (q @ a)
    return np.asarray(alone - q @ (a * t) + q @ o)


def _numbers_within(line: SideLine, t: Floats, within: Within) -> Floats:
    """The same of single pairs."""
    u, v = within.u, within.v
    shift = (line.slope[u] + line.slope[v]) * (t[u] + t[v])
    return np.asarray(line.offset[u] + line.offset[v] - shift)


def _totals(weights: Floats, blocks: Iterable[tuple[slice, Rows]]) -> Rows:
    """(4, width) weighted sums of vectors, a block at a time."""
    total: Rows | None = None
    for part, right in blocks:
        more = weights[:, part].astype(right.dtype) @ right
        total = more if total is None else total + more
    assert total is not None
    return total


def table_of_ratios(
    comparisons: tuple[Comparison, ...], line: SideLine, sides: Sides, usable: NDArray[np.bool_]
) -> Callable[[slice], Singles]:
    """Log-likelihood-ratios of some sides, as rows, with all; 0 where a side is not usable."""
    right = [one.rows(sides)[1].astype(np.float32) for one in comparisons]
    own = line.of(sides)
    shift = sum((one.shift[sides] for one in comparisons), np.zeros(len(sides)))

    def table(part: slice) -> Singles:
        score = -(shift[part, None] + shift).astype(np.float32)
        for one, columns in zip(comparisons, right, strict=True):
            rows = one.rows(sides[part])[0].astype(np.float32)
            half = (one.inverse[sides] / 2.0).astype(np.float32)
            score += (half[part, None] + half) * (rows @ columns.T)
        slope, offset = own.slope.astype(np.float32), own.offset.astype(np.float32)
        score *= slope[part, None] + slope
        score += offset[part, None] + offset
        score[~usable[part]], score[:, ~usable] = 0.0, 0.0
        return np.asarray(score, np.float32)

    return table


def pair_ratios(
    comparisons: tuple[Comparison, ...], line: SideLine, one: Sides, two: Sides
) -> Floats:
    """Log-likelihood-ratios of single pairs, as they are summed."""
    shift = sum((c.shift[one] + c.shift[two] for c in comparisons), np.zeros(len(one)))
    score = -shift
    for c in comparisons:
        products = np.einsum("pd,pd->p", c.rows(one)[0], c.rows(two)[1])
        score = score + (c.inverse[one] + c.inverse[two]) / 2.0 * products
    slope = line.slope[one] + line.slope[two]
    return np.asarray(slope * score + line.offset[one] + line.offset[two])
