"""Pairs of sides that go well together, out of all pairs, which are never held at once.

All inner products are computed tile by tile (module `products`), and pairs above a floor are kept.
Should these become more than there is room for, the floor is raised. A sample of all the others
tells what a pair is worth that was not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.hands import ALONE, Hands
from spklink.recognizers.products import InnerProduct, Singles, upper_tiles

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tell = Callable[[int, int], None]
MOST_PAIRS = 30_000_000  # kept at most: half a gigabyte
SAMPLED = 200  # pairs of every tile whose scores are looked at whatever they are


@dataclass(frozen=True)
class Neighbours:
    """Pairs of sides, one < two, whose score is above the floor; and a sample of all pairs."""

    sides: int
    one: NDArray[np.int32]
    two: NDArray[np.int32]
    score: Singles
    floor: float
    sample: Floats  # scores of pairs drawn from all

    def __len__(self) -> int:
        return len(self.score)


def find_neighbours(
    product: InnerProduct,
    vectors: Singles,
    floor: float,
    *,
    most: int = MOST_PAIRS,
    hands: Hands = ALONE,
    seed: int = 0,
    tell: Tell | None = None,
) -> Neighbours:
    """All pairs of rows of `vectors` that score above `floor`, or above a higher floor where these
    are more than `most`."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[NDArray[np.int32], NDArray[np.int32], Singles]] = []
    held, sample, done = 0, [], 0
    for (row, column), block in upper_tiles(product, vectors, hands=hands):
        a, b = np.nonzero(block > floor)
        if row == column:
            a, b = a[a < b], b[a < b]
        one, two = (a + row.start).astype(np.int32), (b + column.start).astype(np.int32)
        kept.append((one, two, block[a, b]))
        sample.append(_drawn(block, rng, apart=row == column))
        held, done = held + len(a), done + block.size
        if held > most:
            kept, floor = _fewer(kept, most // 2)
            held = len(kept[0][0])
        if tell is not None:
            tell(done, len(vectors) * (len(vectors) + 1) // 2)
    one, two, score = (np.concatenate(part) for part in zip(*kept, strict=True))
    return Neighbours(len(vectors), one, two, score, floor, np.concatenate(sample))


def _drawn(block: Singles, rng: np.random.Generator, *, apart: bool) -> Floats:
    """A sample of a tile in proportion to its size; no side with itself."""
    count = int(np.ceil(SAMPLED * block.size / (1 << 20)))
    a, b = (rng.integers(0, n, count) for n in block.shape)
    if apart:
        a, b = a[a != b], b[a != b]
    return block[a, b].astype(np.float64)


def _fewer(
    kept: list[tuple[NDArray[np.int32], NDArray[np.int32], Singles]], most: int
) -> tuple[list[tuple[NDArray[np.int32], NDArray[np.int32], Singles]], float]:
    """The best of those that were kept, and the floor they are above."""
    one, two, score = (np.concatenate(part) for part in zip(*kept, strict=True))
    floor = float(np.partition(score, len(score) - most)[len(score) - most])
    best = score > floor
    return [(one[best], two[best], score[best])], floor
