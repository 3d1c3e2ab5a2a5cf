"""Pooling adjacent violators (PAV): blocks of scores that the best rising calibration makes equal.

The sorted keys of the two classes are merged straight into a stack of pooled blocks, counted in
integers; only weights make them floats. Runs of pieces are pooled side by side, then their blocks.
`pav` makes of them the calibration itself, a rising step function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike

from spklink.errors import SpklinkError
from spklink.scores.ranking import (
    CLASSES,
    Array,
    Floats,
    Ranking,
    keys_of,
    refuse_unusable,
    same_type,
    scores_of,
)


@dataclass(frozen=True)
class Blocks:
    """What PAV pooled, by rising score: how many of each class, lowest and highest key."""

    targets: Array
    others: Array
    low: Array
    high: Array

    def rejected(self) -> tuple[Array, Array]:
        """Targets and others below each end of a block, from none to all: corners of the hull."""
        counts = self.targets, self.others
        t, n = (np.concatenate([np.zeros(1, c.dtype), np.cumsum(c)]) for c in counts)
        return t, n


@dataclass(frozen=True)
class Steps:
    """A rising step function: scores from edges[s - 1] up to below edges[s] mean llr[s]."""

    edges: Floats  # (S - 1,), midway between the scores of neighbouring steps
    llr: Floats  # (S,)

    def __call__(self, scores: ArrayLike) -> Floats:
        values = np.asarray(scores, np.float64)
        if np.isnan(values).any():
            raise SpklinkError("a score that is not a number (NaN) has no log-likelihood-ratio")
        return np.asarray(self.llr[np.searchsorted(self.edges, values, side="right")])


def pav(
    targets: ArrayLike,
    others: ArrayLike,
    target_weight: ArrayLike | None = None,
    other_weight: ArrayLike | None = None,
    *,
    finite: bool = True,
) -> Steps:
    """The monotonous calibration of least Cllr; a trial of weight 2 counts as two trials.

    The lowest step often has no targets and the highest no others: infinite ratios. With `finite`
    one more target scores below all trials and one more non-target above all, and counts.
    """
    if target_weight is None and other_weight is None:
        ranking = Ranking.of(targets, others, None)
        return steps_of(blocks_of(ranking), ranking.dtype, finite=finite)
    blocks, dtype = weighted_blocks(targets, others, target_weight, other_weight)
    return steps_of(blocks, dtype, finite=finite)


def steps_of(blocks: Blocks, dtype: np.dtype[Any], *, finite: bool) -> Steps:
    """The log-likelihood-ratio of each block, and where one ends; see `pav`."""
    if finite:
        blocks = with_misleading_ends(blocks)
    t, n = blocks.targets, blocks.others
    with np.errstate(divide="ignore"):
        llr = np.log(t / t.sum()) - np.log(n / n.sum())
    below, above = scores_of(blocks.high[:-1], dtype), scores_of(blocks.low[1:], dtype)
    with np.errstate(invalid="ignore"):
        middle = np.minimum(below / 2.0 + above / 2.0, above)
        # No number between, or an infinite score: the edge is the higher score itself.
        return Steps(np.where(middle > below, middle, above), llr)


def blocks_of(ranking: Ranking) -> Blocks:
    """Of trials that count once each."""
    parts = ranking.by_tasks(lambda first, last: _task_blocks(ranking, first, last))
    return _pooled(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def weighted_blocks(
    targets: ArrayLike,
    others: ArrayLike,
    target_weight: ArrayLike | None,
    other_weight: ArrayLike | None,
) -> tuple[Blocks, np.dtype[Any]]:
    """Of trials that count as often as their weight says; also the type of the scores."""
    scores = same_type(targets, others)
    given = zip((target_weight, other_weight), scores, CLASSES, strict=True)
    weights = [_weights(*one_class) for one_class in given]
    used = [s[w > 0.0] for s, w in zip(scores, weights, strict=True)]
    for one_class, name in zip(used, CLASSES, strict=True):
        refuse_unusable(one_class, name)
    values, at = np.unique(np.concatenate(used), return_inverse=True)
    t = np.bincount(at[: len(used[0])], weights[0][weights[0] > 0.0], len(values))
    n = np.bincount(at[len(used[0]) :], weights[1][weights[1] > 0.0], len(values))
    keys = keys_of(values)
    return _pooled(t, n, keys, keys), scores[0].dtype


def _weights(given: ArrayLike | None, scores: Array, name: str) -> Floats:
    weights = np.ones(len(scores)) if given is None else np.asarray(given, np.float64).ravel()
    if len(weights) != len(scores):
        raise SpklinkError(f"{len(weights)} weights for {len(scores)} {name} scores")
    wrong = int((~((weights >= 0.0) & np.isfinite(weights))).sum())
    if wrong:
        raise SpklinkError(f"{wrong} {name} weights are negative or not finite")
    return weights


def with_misleading_ends(blocks: Blocks) -> Blocks:
    """One more target below all trials, one more non-target above; they always pool inwards."""
    one, none = np.ones(1, blocks.targets.dtype), np.zeros(1, blocks.targets.dtype)
    return _pooled(
        np.concatenate([one, blocks.targets, none]),
        np.concatenate([none, blocks.others, one]),
        np.concatenate([blocks.low[:1], blocks.low, blocks.high[-1:]]),
        np.concatenate([blocks.low[:1], blocks.high, blocks.high[-1:]]),
    )


def _task_blocks(ranking: Ranking, first: int, last: int) -> tuple[Array, ...]:
    t, n = (keys.pieces(first, last) for keys in (ranking.targets, ranking.others))
    stack = _stack(_most_blocks(len(t) + len(n)), np.int64)
    size = _merge(t, n, *stack)
    return tuple(column[:size].copy() for column in stack)


def _most_blocks(trials: int) -> int:
    """Blocks differ in targets / others, and at most .9 trials^(2/3) fractions fit the trials."""
    return int(2.0 * trials ** (2.0 / 3.0)) + 16


def _stack(size: int, dtype: type) -> tuple[Array, ...]:
    """Targets, others, lowest and highest key of each block."""
    return (
        *(np.empty(size, dtype) for _ in range(2)),
        *(np.empty(size, np.uint64) for _ in range(2)),
    )


def _pooled(targets: Array, others: Array, low: Array, high: Array) -> Blocks:
    stack = _stack(len(targets), targets.dtype.type)
    size = _pool(targets, others, low, high, *stack)
    return Blocks(*(column[:size].copy() for column in stack))


@nb.njit(cache=True, nogil=True)
def _merge(t, n, targets, others, lows, highs):  # type: ignore[no-untyped-def]
    """Sorted keys of both classes as pooled blocks on an empty stack; its size then.

    Targets, then a tie, then others make one push: their ratios fall, so they pool anyway.
    """
    size, i, j = 0, 0, 0
    while i < t.size or j < n.size:
        first_i, first_j = i, j
        while i < t.size and (j == n.size or t[i] < n[j]):
            i += 1
        if i < t.size and j < n.size and t[i] == n[j]:
            tie = t[i]
            while i < t.size and t[i] == tie:
                i += 1
            while j < n.size and n[j] == tie:
                j += 1
        while j < n.size and (i == t.size or n[j] < t[i]):
            j += 1
        low = t[first_i] if i > first_i else n[first_j]
        high = n[j - 1] if j > first_j else t[i - 1]
        size = _push(size, i - first_i, j - first_j, low, high, targets, others, lows, highs)
    return size


@nb.njit(cache=True, nogil=True)
def _pool(t, n, low, high, targets, others, lows, highs):  # type: ignore[no-untyped-def]
    """Blocks in the order of their scores on an empty stack; its size then."""
    size = 0
    for i in range(t.size):
        size = _push(size, t[i], n[i], low[i], high[i], targets, others, lows, highs)
    return size


@nb.njit(cache=True, nogil=True)
def _push(size, t, n, low, high, targets, others, lows, highs):  # type: ignore[no-untyped-def]
    """A block on the stack, pooled with those before it whose targets / others is no lower."""
    while size > 0 and targets[size - 1] * n >= t * others[size - 1]:
        size -= 1
        t += targets[size]
        n += others[size]
        low = lows[size]
    targets[size], others[size], lows[size], highs[size] = t, n, low, high
    return size + 1
