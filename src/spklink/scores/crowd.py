"""Scores of every side with many others, out of all scores that pass by: what tells a side's usual
score with strangers, and whether two names have one voice.

Where there are few sides all scores are kept; of many, those with a sample of sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spklink.scores.needed import Floats, Sides

CELLS = 1 << 25  # scores that are kept, 8 bytes each. A choice: 5,792 sides, all with all


class Crowd:
    """A table of sides by the sides of `pool`; NaN where no score passed."""

    def __init__(self, sides: int, pool: Sides) -> None:
        self.pool = pool
        self.column = np.full(sides, -1, np.int64)
        self.column[pool] = np.arange(len(pool))
        self.table = np.full((sides, len(pool)), np.nan)

    def observe(self, side_1: Sides, side_2: Sides, score: Floats) -> None:
        """Keep what belongs into the table; of a pair that is listed twice the lowest, whatever the
        order of the rows."""
        for one, two in ((side_1, side_2), (side_2, side_1)):
            kept = self.column[two] >= 0
            np.fmin.at(self.table, (one[kept], self.column[two[kept]]), score[kept])

    def between(self, rows: Sides, columns: Sides) -> NDArray[np.float64]:
        """(rows, columns) scores; the columns are sides of the pool."""
        return np.asarray(self.table[np.ix_(rows, self.column[columns])])

    def __call__(self, side_1: Sides, side_2: Sides) -> Floats:
        """The scores of pairs; NaN where neither is in the pool, or no score passed."""
        found = np.full(len(side_1), np.nan)
        for one, two in ((side_1, side_2), (side_2, side_1)):
            open_ = np.isnan(found) & (self.column[two] >= 0)
            found[open_] = self.table[one[open_], self.column[two[open_]]]
        return found


def pool_size(sides: int, most: int) -> int:
    """How many sides a pool may have: all where there are few."""
    return sides if sides * sides <= CELLS else min(most, max(1, CELLS // sides))
