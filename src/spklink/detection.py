"""How well scores tell the same speaker from others: EER, Cllr, minimum costs, PAV, DET, Tippett.

Conventions: a trial is a target (same speaker) or a non-target (one of the `others`); a score is a
natural log-likelihood-ratio, +-inf allowed. A threshold rejects the scores below it: `miss` is the
share of the targets rejected, `false_alarm` the share of the others accepted. Equal scores are
rejected together, so the ROC has one vertex a threshold and straight lines between. Nothing
depends on the order of the trials or on the number of threads.

- eer: where the convex hull of the ROC has as many misses as false alarms, as in BOSARIS.
- eer_step: where the ROC itself has (its lines are horizontal or vertical steps wherever no target
  scores the same as a non-target).
- cllr: mean cost of the scores as they are, in bits; min_cllr: after the best monotonous
  calibration, which is pooling adjacent violators (PAV); the difference is lost to calibration.
- min_dcf: least detection cost of any threshold, as a share of the cost without scores; see COSTS.

One sort serves all. A score becomes an unsigned integer of its own width that compares alike, its
key. The highest 16 bits of the keys cut the score axis into pieces that fit the cache. A piece is
sorted, each class by itself, by an LSD radix sort of the bits that vary in it (first of the two
highest digits alone: a few insertions often do the rest). The two classes are merged straight into
the stack of pooled blocks, in integers. Beyond the scores this holds one sorted copy of them and
scratch for the pieces at work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, xlogy

from spklink.errors import SpklinkError
from spklink.threads import in_order

Array = NDArray[Any]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Point = tuple[float, float, float]
Result = TypeVar("Result")

# Name: operating points (probability of a target, cost of a miss, cost of a false alarm). Each
# cost is divided by that of the better of rejecting and accepting all; of several the mean counts.
COSTS: dict[str, tuple[Point, ...]] = {
    "sre08": ((0.01, 10.0, 1.0),),
    "sre10": ((0.001, 1.0, 1.0),),
    "sre16": ((0.01, 1.0, 1.0), (0.005, 1.0, 1.0)),
    "p=0.01": ((0.01, 1.0, 1.0),),
    "p=0.05": ((0.05, 1.0, 1.0),),
}
CLASSES = ("target", "non-target")
CELLS = 1 << 16  # values of the highest bits of a key
PIECE = 1 << 16  # trials in a piece, about: with its scratch it fits the cache
MOST_PIECES = 256  # the partition writes to so many places at a time
DIGIT = 11  # bits that one pass of the sort looks at, at most
TASKS = 4  # for each thread, so that uneven pieces even out
SPAN = 512  # factors up to 2 that are multiplied before one logarithm is taken


@dataclass(frozen=True)
class Detection:
    """Rates and costs as shares, Cllr in bits."""

    targets: int
    nontargets: int
    eer: float
    eer_step: float
    cllr: float
    min_cllr: float
    calibration_loss: float
    min_dcf: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


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
class Keys:
    """The keys of one class; piece p of the score axis is sorted[bounds[p] : bounds[p + 1]]."""

    sorted: Array
    bounds: Counts

    def __len__(self) -> int:
        return len(self.sorted)

    def pieces(self, first: int, last: int) -> Array:
        return self.sorted[self.bounds[first] : self.bounds[last]]

    def up_to(self, key: int, side: Literal["left", "right"] = "right") -> int:
        """Keys under this one, with "right" also those that equal it."""
        # A number of another type would have all keys converted first.
        return int(np.searchsorted(self.sorted, self.sorted.dtype.type(key), side))


@dataclass(frozen=True)
class Trials:
    """The scores of both classes, sorted: whatever is asked of them needs no other sort."""

    targets: Keys
    others: Keys
    dtype: np.dtype[Any]  # of the scores
    threads: int

    def measure(self) -> Detection:
        """As the function of this name; so are the others below."""
        cllr, min_cllr = _cllr(self), _min_cllr(self.blocks)
        return Detection(
            targets=len(self.targets),
            nontargets=len(self.others),
            eer=_hull_eer(self.blocks),
            eer_step=_step_eer(self),
            cllr=cllr,
            min_cllr=min_cllr,
            calibration_loss=cllr - min_cllr,
            min_dcf={name: _min_dcf(self, points) for name, points in COSTS.items()},
        )

    @cached_property
    def blocks(self) -> Blocks:
        parts = self.by_tasks(lambda first, last: _task_blocks(self, first, last))
        return _pooled(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def pav(self, *, finite: bool = True) -> Steps:
        return _steps(self.blocks, self.dtype, finite)

    def hull_points(self) -> tuple[Floats, Floats]:
        return self._rates(*self.blocks.rejected())

    def det_points(self, count: int = 500) -> tuple[Floats, Floats]:
        return self._rates(*_vertices(self, count, ndtri, ndtr))

    def tippett_points(self, count: int = 500) -> tuple[Floats, Floats, Floats]:
        # The last vertex rejects all: no score is its threshold.
        missed, rejected = (c[:-1] for c in _vertices(self, count + 1, _same, _same))
        next_key = np.minimum(_at(self.targets, missed), _at(self.others, rejected))
        false_alarm, miss = self._rates(missed, rejected)
        return _scores(next_key, self.dtype), 1.0 - miss, false_alarm

    def by_tasks(self, work: Callable[[int, int], Result]) -> list[Result]:
        """work(first, last) on runs of pieces, side by side, results in order."""
        pieces = len(self.targets.bounds) - 1
        cuts = np.linspace(0, pieces, min(pieces, TASKS * self.threads) + 1).astype(int).tolist()
        return list(in_order(lambda task: work(*task), pairwise(cuts), self.threads))

    def _rates(self, missed: Array, rejected: Array) -> tuple[Floats, Floats]:
        return (len(self.others) - rejected) / len(self.others), missed / len(self.targets)


def measure(targets: ArrayLike, others: ArrayLike, *, threads: int | None = None) -> Detection:
    """All metrics of the scores of targets and of non-targets."""
    return order(targets, others, threads=threads).measure()


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
        return order(targets, others).pav(finite=finite)
    blocks, dtype = _weighted_blocks(targets, others, target_weight, other_weight)
    return _steps(blocks, dtype, finite)


def det_points(targets: ArrayLike, others: ArrayLike, count: int = 500) -> tuple[Floats, Floats]:
    """False alarm and miss rates at vertices of the ROC, from (1, 0) to (0, 1).

    All vertices if they are at most `count`; else at most so many, spread on probit axes: a vertex
    left out is within 1 / (count - 3) of the length of both axes together from a kept one.
    """
    return order(targets, others).det_points(count)


def hull_points(targets: ArrayLike, others: ArrayLike) -> tuple[Floats, Floats]:
    """False alarm and miss rates at the corners of the convex hull, from (1, 0) to (0, 1)."""
    return order(targets, others).hull_points()


def tippett_points(
    targets: ArrayLike, others: ArrayLike, count: int = 500
) -> tuple[Floats, Floats, Floats]:
    """Scores as rising thresholds, and the shares of targets and of others that reach each.

    All scores if at most `count` differ; else at most so many, spread on the axis of the shares.
    """
    return order(targets, others).tippett_points(count)


def order(targets: ArrayLike, others: ArrayLike, *, threads: int | None = None) -> Trials:
    """Sort once for several of the above; on all cores unless `threads` says how many."""
    scores = _same_type(targets, others)
    few = len(scores[0]) + len(scores[1]) < 2 * PIECE
    threads = threads or (1 if few else os.cpu_count() or 1)
    cells = [_cells(s, name, threads) for s, name in zip(scores, CLASSES, strict=True)]
    piece = _piece_of_cell(cells[0].sum(0) + cells[1].sum(0))
    keys = [_partition(s, c, piece, threads) for s, c in zip(scores, cells, strict=True)]
    trials = Trials(keys[0], keys[1], scores[0].dtype, threads)
    trials.by_tasks(lambda first, last: _sort_task(trials, first, last))
    return trials


def _same_type(targets: ArrayLike, others: ArrayLike) -> tuple[Array, Array]:
    """Contiguous, float32 if both are, else float64."""
    t, n = np.asarray(targets), np.asarray(others)
    dtype = np.float32 if t.dtype == n.dtype == np.float32 else np.float64
    return np.ascontiguousarray(t.ravel(), dtype), np.ascontiguousarray(n.ravel(), dtype)


def _cells(scores: Array, name: str, threads: int) -> Counts:
    """(parts, CELLS) how many scores of each part of the array lie in each cell."""
    if not len(scores):
        raise SpklinkError(f"there are no {name} scores; detection needs both classes")
    bits, sign = _bits(scores), _sign(scores.dtype)
    infinity = _bits(np.array([np.inf], scores.dtype))[0]
    cells = np.zeros((threads, CELLS), np.int64)

    def work(part: int) -> int:
        here = bits[slice(*_part(len(bits), part, threads))]
        return int(_count_cells(here, sign, infinity, _shift(bits), cells[part]))

    unusable = sum(in_order(work, range(threads), threads))
    if unusable:
        raise SpklinkError(
            f"{unusable} of {len(scores)} {name} scores are not a number (NaN); leave them out"
        )
    return cells


def _piece_of_cell(cells: Counts) -> NDArray[np.uint16]:
    """Neighbouring cells share a piece until it has its part of all trials."""
    total = int(cells.sum())
    pieces = min(max(total // PIECE, 1), MOST_PIECES)
    return ((np.cumsum(cells) - cells) * pieces // total).astype(np.uint16)


def _partition(scores: Array, cells: Counts, piece: NDArray[np.uint16], threads: int) -> Keys:
    """The keys, piece by piece, not yet sorted within."""
    pieces = int(piece[-1]) + 1
    counts = np.array([np.bincount(piece, part, pieces) for part in cells]).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(counts.sum(0))])
    places = bounds[:-1] + np.cumsum(counts, 0) - counts
    bits = _bits(scores)
    keys = np.empty_like(bits)

    def work(part: int) -> None:
        here = bits[slice(*_part(len(bits), part, threads))]
        _scatter(here, _sign(scores.dtype), _shift(bits), piece, places[part], keys)

    list(in_order(work, range(threads), threads))
    return Keys(keys, bounds)


def _part(total: int, part: int, parts: int) -> tuple[int, int]:
    return total * part // parts, total * (part + 1) // parts


def _sort_task(trials: Trials, first: int, last: int) -> None:
    for keys in (trials.targets, trials.others):
        bounds = keys.bounds[first : last + 1]
        _sort_pieces(keys.sorted, bounds, np.empty(np.diff(bounds).max(), keys.sorted.dtype))


def _task_blocks(trials: Trials, first: int, last: int) -> tuple[Array, ...]:
    t, n = (keys.pieces(first, last) for keys in (trials.targets, trials.others))
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


def _weighted_blocks(
    targets: ArrayLike,
    others: ArrayLike,
    target_weight: ArrayLike | None,
    other_weight: ArrayLike | None,
) -> tuple[Blocks, np.dtype[Any]]:
    scores = _same_type(targets, others)
    given = zip((target_weight, other_weight), scores, CLASSES, strict=True)
    weights = [_weights(*one_class) for one_class in given]
    used = [s[w > 0.0] for s, w in zip(scores, weights, strict=True)]
    for one_class, name in zip(used, CLASSES, strict=True):
        _cells(one_class, name, 1)  # refuses what cannot be used
    values, at = np.unique(np.concatenate(used), return_inverse=True)
    t = np.bincount(at[: len(used[0])], weights[0][weights[0] > 0.0], len(values))
    n = np.bincount(at[len(used[0]) :], weights[1][weights[1] > 0.0], len(values))
    keys = _keys_of(values)
    return _pooled(t, n, keys, keys), scores[0].dtype


def _weights(given: ArrayLike | None, scores: Array, name: str) -> Floats:
    weights = np.ones(len(scores)) if given is None else np.asarray(given, np.float64).ravel()
    if len(weights) != len(scores):
        raise SpklinkError(f"{len(weights)} weights for {len(scores)} {name} scores")
    wrong = int((~((weights >= 0.0) & np.isfinite(weights))).sum())
    if wrong:
        raise SpklinkError(f"{wrong} {name} weights are negative or not finite")
    return weights


def _steps(blocks: Blocks, dtype: np.dtype[Any], finite: bool) -> Steps:
    if finite:
        blocks = _with_misleading_ends(blocks)
    t, n = blocks.targets, blocks.others
    with np.errstate(divide="ignore"):
        llr = np.log(t / t.sum()) - np.log(n / n.sum())
    below, above = _scores(blocks.high[:-1], dtype), _scores(blocks.low[1:], dtype)
    with np.errstate(invalid="ignore"):
        middle = np.minimum(below / 2.0 + above / 2.0, above)
        # No number between, or an infinite score: the edge is the higher score itself.
        return Steps(np.where(middle > below, middle, above), llr)


def _with_misleading_ends(blocks: Blocks) -> Blocks:
    """One more target below all trials, one more non-target above; they always pool inwards."""
    one, none = np.ones(1, blocks.targets.dtype), np.zeros(1, blocks.targets.dtype)
    return _pooled(
        np.concatenate([one, blocks.targets, none]),
        np.concatenate([none, blocks.others, one]),
        np.concatenate([blocks.low[:1], blocks.low, blocks.high[-1:]]),
        np.concatenate([blocks.low[:1], blocks.high, blocks.high[-1:]]),
    )


def _cllr(trials: Trials) -> float:
    cost = _mean_cost(trials, trials.targets, -1.0) + _mean_cost(trials, trials.others, 1.0)
    return cost / (2.0 * float(np.log(2.0)))


def _mean_cost(trials: Trials, keys: Keys, sign: float) -> float:
    """Of log(1 + e^(sign score)), added up by pieces, whatever tasks these are in."""

    def work(first: int, last: int) -> Floats:
        bits, sums = np.empty(SPAN, keys.sorted.dtype), np.empty(last - first)
        bounds, top = keys.bounds[first : last + 1], _sign(trials.dtype)
        _costs(keys.sorted, bounds, top, bits, bits.view(trials.dtype), sign, sums)
        return sums

    return float(np.concatenate(trials.by_tasks(work)).sum()) / len(keys)


def _min_cllr(blocks: Blocks) -> float:
    """Cllr when every trial has the log-likelihood-ratio log(t / n) of its block."""
    t, n = blocks.targets / blocks.targets.sum(), blocks.others / blocks.others.sum()
    nats = xlogy(t + n, t + n) - xlogy(t, t) - xlogy(n, n)
    return float(nats.sum() / (2.0 * np.log(2.0)))


def _hull_eer(blocks: Blocks) -> float:
    missed, rejected = blocks.rejected()
    t, n = missed[-1], rejected[-1]
    at = int(np.argmax(missed * n >= (n - rejected) * t))
    ends = slice(at - 1, at + 1)
    return _crossing(missed[ends] / t, (n - rejected[ends]) / n)


def _step_eer(trials: Trials) -> float:
    """By bisection for the lowest key whose rejection makes misses outweigh false alarms."""
    keys = trials.targets, trials.others
    t, n = len(keys[0]), len(keys[1])
    low, high = 0, int(np.iinfo(keys[0].sorted.dtype).max)
    while low < high:
        middle = (low + high) // 2
        missed, rejected = (k.up_to(middle) for k in keys)
        low, high = (low, middle) if missed * n >= (n - rejected) * t else (middle + 1, high)
    miss, rejects = (np.array([k.up_to(low, "left"), k.up_to(low)]) / len(k) for k in keys)
    return _crossing(miss, 1.0 - rejects)


def _crossing(miss: Floats, false_alarm: Floats) -> float:
    """Where the line between two points, the second with more misses, has both rates equal."""
    before, after = np.abs(false_alarm - miss)
    return float((miss[0] * after + miss[1] * before) / (before + after))


def _min_dcf(trials: Trials, points: tuple[Point, ...]) -> float:
    """At a corner of the hull: no other vertex has a lower weighted sum of two rates."""
    false_alarm, miss = trials.hull_points()
    costs = [
        (p * c_miss * miss + (1.0 - p) * c_fa * false_alarm).min()
        / min(p * c_miss, (1.0 - p) * c_fa)
        for p, c_miss, c_fa in points
    ]
    return float(np.mean(costs))


Warp = Callable[[float], float]


def _same(share: float) -> float:
    return share


def _vertices(trials: Trials, count: int, warp: Warp, back: Warp) -> tuple[Counts, Counts]:
    """Rejected targets and others at all vertices or at `count` at most, even on warped axes."""
    if count < 4:
        raise SpklinkError(f"a curve of {count} points has no shape; ask for more")
    found = _walk(trials, count, 0.0, warp, back)
    if found is None:
        length = sum(_place(n, n, warp) - _place(0, n, warp) for n in _sizes(trials))
        # All points are a stride further on an axis, but for the first and an axis' last bit.
        found = _walk(trials, count, 1.000001 * length / (count - 3), warp, back)
    assert found is not None
    return found


def _walk(
    trials: Trials, count: int, stride: float, warp: Warp, back: Warp
) -> tuple[Counts, Counts] | None:
    """Vertices that are a stride or more from the one before; None if they are too many."""
    keys, sizes = (trials.targets, trials.others), _sizes(trials)
    points = [(0, 0)]
    while points[-1] != sizes:
        if len(points) == count:
            return None
        key = min(
            k.sorted[_further(at, len(k), stride, warp, back) - 1]
            for k, at in zip(keys, points[-1], strict=True)
            if at < len(k)
        )
        points.append((keys[0].up_to(key), keys[1].up_to(key)))
    missed, rejected = np.array(points, np.int64).T
    return missed, rejected


def _sizes(trials: Trials) -> tuple[int, int]:
    return len(trials.targets), len(trials.others)


def _place(rejected: int, total: int, warp: Warp) -> float:
    """On the warped axis; its ends lie half a trial inside, where a probit is finite."""
    return warp(min(max(rejected, 0.5), total - 0.5) / total)


def _further(rejected: int, total: int, stride: float, warp: Warp, back: Warp) -> int:
    """Least number of rejected trials, one more at least, that is a stride further."""
    wanted = total * back(_place(rejected, total, warp) + stride)
    return min(max(int(np.ceil(wanted)), rejected + 1), total)


def _at(keys: Keys, index: Counts) -> Array:
    """Keys at these places, the highest of all keys past the end."""
    highest = np.iinfo(keys.sorted.dtype).max
    return np.where(index < len(keys), keys.sorted[np.minimum(index, len(keys) - 1)], highest)


def _bits(scores: Array) -> Array:
    return scores.view(np.uint32 if scores.dtype == np.float32 else np.uint64)


def _sign(dtype: np.dtype[Any]) -> Any:
    """The sign bit, which is also the key of 0."""
    return _bits(np.array([-0.0], dtype))[0]


def _shift(bits: Array) -> int:
    """What to shift a key by to have its cell."""
    return 8 * bits.dtype.itemsize - 16


def _keys_of(scores: Array) -> Array:
    bits, sign = _bits(scores), _sign(scores.dtype)
    return np.asarray(np.where(bits < sign, bits + sign, sign - (bits - sign)))


def _scores(keys: Array, dtype: np.dtype[Any]) -> Floats:
    sign = _sign(dtype)
    k = keys.astype(sign.dtype)
    bits = np.where(k >= sign, k - sign, sign + (sign - k))
    return np.asarray(bits.view(dtype), np.float64)


@nb.njit(cache=True, nogil=True)
def _key(bits, sign):  # type: ignore[no-untyped-def]
    """Compares as the float of these bits does; -0 and 0 share one."""
    return bits + sign if bits < sign else sign - (bits - sign)


@nb.njit(cache=True, nogil=True)
def _count_cells(bits, sign, infinity, shift, cells):  # type: ignore[no-untyped-def]
    """Adds to `cells`; how many are not a number."""
    unusable = 0
    for i in range(bits.size):
        key = _key(bits[i], sign)
        cells[key >> shift] += 1
        unusable += (key > sign + infinity) | (key < sign - infinity)
    return unusable


@nb.njit(cache=True, nogil=True)
def _scatter(bits, sign, shift, piece, places, keys):  # type: ignore[no-untyped-def]
    for i in range(bits.size):
        key = _key(bits[i], sign)
        p = piece[key >> shift]
        keys[places[p]] = key
        places[p] += 1


@nb.njit(cache=True, nogil=True)
def _sort_pieces(keys, bounds, spare):  # type: ignore[no-untyped-def]
    counts = np.empty(1 << DIGIT, np.int64)
    for p in range(bounds.size - 1):
        here = keys[bounds[p] : bounds[p + 1]]
        if here.size > 1:
            _sort(here, spare[: here.size], counts)


@nb.njit(cache=True, nogil=True)
def _sort(keys, spare, counts):  # type: ignore[no-untyped-def]
    """LSD radix sort in place, of the bits between the lowest and the highest that vary."""
    lowest, highest = keys[0], keys[0]
    for i in range(keys.size):
        lowest, highest = min(lowest, keys[i]), max(highest, keys[i])
    varying = np.uint64(0)
    for i in range(keys.size):
        varying |= np.uint64(keys[i] - lowest)
    if varying == 0:
        return
    begin, end = 0, 0
    while not (varying >> np.uint64(begin)) & np.uint64(1):
        begin += 1
    while end < 64 and (varying >> np.uint64(end)):
        end += 1
    digit = DIGIT if keys.size > 4096 else 8
    if end - begin > 2 * digit:
        # The two highest digits tell nearly all keys apart, or all that are not equal.
        _sort_bits(keys, spare, lowest, end - 2 * digit, end, digit, counts)
        if _insertion_sort(keys, 4 * keys.size):
            return
    _sort_bits(keys, spare, lowest, begin, end, digit, counts)


@nb.njit(cache=True, nogil=True)
def _insertion_sort(keys, moves):  # type: ignore[no-untyped-def]
    """Sorts what is nearly sorted; gives up, with False, when it has used up its moves."""
    for i in range(1, keys.size):
        key, at = keys[i], i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
        moves -= i - at
        if moves < 0:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _sort_bits(keys, spare, lowest, begin, end, most, counts):  # type: ignore[no-untyped-def]
    """By bits begin to end of the keys less the lowest, in digits of `most` bits at most."""
    passes = -((begin - end) // most)
    digit = -((begin - end) // passes)
    source, target = keys, spare
    for k in range(passes):
        _sort_digit(source, target, lowest, begin + k * digit, counts[: 1 << digit])
        source, target = target, source
    if passes % 2:
        keys[:] = spare


@nb.njit(cache=True, nogil=True)
def _sort_digit(source, target, lowest, shift, counts):  # type: ignore[no-untyped-def]
    shift, mask = np.uint64(shift), np.uint64(counts.size - 1)
    counts[:] = 0
    for i in range(source.size):
        counts[(np.uint64(source[i] - lowest) >> shift) & mask] += 1
    place = 0
    for d in range(counts.size):
        place, counts[d] = place + counts[d], place
    for i in range(source.size):
        d = (np.uint64(source[i] - lowest) >> shift) & mask
        target[counts[d]] = source[i]
        counts[d] += 1


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


@nb.njit(cache=True, nogil=True)
def _pool(t, n, low, high, targets, others, lows, highs):  # type: ignore[no-untyped-def]
    """Blocks in the order of their scores on an empty stack; its size then."""
    size = 0
    for i in range(t.size):
        size = _push(size, t[i], n[i], low[i], high[i], targets, others, lows, highs)
    return size


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


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
def _costs(keys, bounds, top, bits, scores, sign, sums):  # type: ignore[no-untyped-def]
    """Sum of log(1 + e^x), x = sign score, for each piece; `scores` are `bits` read as floats.

    It is max(x, 0) + log(1 + e^-|x|); of the second part, the product is taken before the log.
    """
    for p in range(bounds.size - 1):
        sums[p] = 0.0
        for begin in range(bounds[p], bounds[p + 1], bits.size):
            here = keys[begin : min(begin + bits.size, bounds[p + 1])]
            for i in range(here.size):
                bits[i] = here[i] - top if here[i] >= top else top + (top - here[i])
            linear, product = 0.0, 1.0
            for i in range(here.size):
                x = sign * np.float64(scores[i])
                linear += x if x > 0.0 else 0.0
                product *= 1.0 + _exp_of_minus(abs(x))
            sums[p] += linear + np.log(product)


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
def _exp_of_minus(x):  # type: ignore[no-untyped-def]
    """e^-x of x >= 0 with an error under 1e-14; vectorised, unlike np.exp."""
    x = (x if x < 40.0 else 40.0) / -64.0
    y = 1.0 + x / 8.0
    for k in (7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
        y = 1.0 + x / k * y
    for _ in range(6):
        y *= y
    return y
