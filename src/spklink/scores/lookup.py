"""Scores of pairs of sides, found again by their sides."""

from __future__ import annotations

import numpy as np

from spklink.scores.needed import Floats, Sides, SideScores


class Lookup:
    """Of pairs that were kept; NaN for all others."""

    def __init__(self, kept: SideScores, sides: int) -> None:
        self.width = np.int64(sides)
        key = self._key(kept.side_1, kept.side_2)
        order = np.argsort(key, kind="stable")
        self.key, self.score = key[order], kept.score[order]

    def _key(self, side_1: Sides, side_2: Sides) -> Sides:
        key = np.minimum(side_1, side_2) * self.width + np.maximum(side_1, side_2)
        return np.asarray(key, np.int64)

    def __call__(self, side_1: Sides, side_2: Sides) -> Floats:
        wanted = self._key(side_1, side_2)
        if not len(self.key):
            return np.full(len(wanted), np.nan)
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, self.score[at], np.nan)
