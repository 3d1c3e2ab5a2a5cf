"""A sample of the known non-targets among all scores that pass by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import certainly_different
from spklink.scores.needed import Floats, Sides, SideScores


class Sampler:
    """Keeps at most so many known non-targets of all that pass: those of the lowest hash, so that
    the sample depends neither on the order of the rows nor on how they are cut into chunks."""

    def __init__(self, conversations: Conversations, most: int) -> None:
        self.conversations, self.most = conversations, most
        self.width = np.int64(len(conversations.sides))
        self.key, self.score = np.zeros(0, np.int64), np.zeros(0)
        self.worst = np.uint64(2**64 - 1)

    def add(self, side_1: Sides, side_2: Sides, score: Floats) -> None:
        low, high = np.minimum(side_1, side_2), np.maximum(side_1, side_2)
        key = low * self.width + high
        kept = np.flatnonzero((low >= 0) & (low != high) & np.isfinite(score))
        kept = kept[mixed(key[kept]) <= self.worst]
        kept = kept[certainly_different(self.conversations, low[kept], high[kept])]
        self.key = np.concatenate([self.key, key[kept]])
        self.score = np.concatenate([self.score, score[kept]])
        if len(self.key) > 2 * self.most:
            self._trim()

    def _trim(self) -> None:
        order = np.lexsort([self.score, self.key])  # a pair may be listed twice: the lowest counts
        self.key, first = np.unique(self.key[order], return_index=True)
        self.score = self.score[order][first]
        hashed = mixed(self.key)
        order = np.argsort(hashed)[: self.most]
        if len(order) == self.most:
            self.worst = hashed[order[-1]]
        self.key, self.score = self.key[order], self.score[order]

    def finish(self) -> SideScores:
        self._trim()
        order = np.argsort(self.key)
        key = self.key[order]
        return SideScores(key // self.width, key % self.width, self.score[order])


def mixed(key: Sides) -> NDArray[np.uint64]:
    """A number that looks random for each key (the finaliser of splitmix64)."""
    x = key.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
