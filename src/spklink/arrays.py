"""Array operations that numpy lacks a name for, and when two numbers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

EQUAL = 1e-9  # probabilities and log-probabilities closer than this are the same but for rounding


def ranges(start: NDArray[Any], count: NDArray[Any]) -> NDArray[np.int64]:
    """start[0], start[0]+1, … (count[0] of them), then start[1], …: many aranges in one array."""
    offset = np.cumsum(count) - count
    values = np.arange(int(count.sum()), dtype=np.int64) + np.repeat(start - offset, count)
    return np.asarray(values, np.int64)


def sums(index: NDArray[Any], weight: NDArray[Any], size: int) -> NDArray[np.float64]:
    """(size,) total weight at each index."""
    return np.asarray(np.bincount(index, weight, size), np.float64)
