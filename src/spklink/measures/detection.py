"""How well scores tell the same speaker from others: EER, Cllr, minimum costs, DET, Tippett.

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

One sort serves all (`ranking.py`), and one pass that pools (`pooling.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, xlogy

from spklink.errors import SpklinkError
from spklink.scores.pooling import Blocks, Steps, blocks_of, steps_of
from spklink.scores.ranking import Array, Counts, Floats, Keys, Ranking, scores_of, sign_of
from spklink.shown import Rows, Shown

Point = tuple[float, float, float]
Warp = Callable[[float], float]

# Name: operating points (probability of a target, cost of a miss, cost of a false alarm). Each
# cost is divided by that of the better of rejecting and accepting all; of several the mean counts.
COSTS: dict[str, tuple[Point, ...]] = {
    "sre08": ((0.01, 10.0, 1.0),),
    "sre10": ((0.001, 1.0, 1.0),),
    "sre16": ((0.01, 1.0, 1.0), (0.005, 1.0, 1.0)),
    "p=0.01": ((0.01, 1.0, 1.0),),
    "p=0.05": ((0.05, 1.0, 1.0),),
}
SPAN = 512  # factors up to 2 that are multiplied before one logarithm is taken


@dataclass(frozen=True, repr=False)
class Detection(Shown):
    """Rates and costs as shares, Cllr in bits."""

    targets: int
    nontargets: int
    eer: float
    eer_step: float
    cllr: float
    min_cllr: float
    calibration_loss: float
    min_dcf: dict[str, float]

    def _sentence(self) -> str:
        return (
            f"{self.targets} same-speaker and {self.nontargets} different-speaker scores, "
            f"EER {100.0 * self.eer:.2f} %, Cllr {self.cllr:.4f}"
        )

    def _rows(self) -> Rows:
        costs = asdict(self)
        return ["measure", "value"], [*costs.items(), *costs.pop("min_dcf").items()]

    def as_json(self) -> dict[str, Any]:
        """JSON has no infinity: Cllr is null when a trial is certain, and wrong."""
        return {name: _for_json(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Ordered(Ranking):
    """The scores of both classes, sorted: whatever is asked of them needs no other sort."""

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
        return blocks_of(self)

    def pav(self, *, finite: bool = True) -> Steps:
        return steps_of(self.blocks, self.dtype, finite=finite)

    def hull_points(self) -> tuple[Floats, Floats]:
        return self._rates(*self.blocks.rejected())

    def det_points(self, count: int = 500) -> tuple[Floats, Floats]:
        return self._rates(*_vertices(self, count, ndtri, ndtr))

    def tippett_points(self, count: int = 500) -> tuple[Floats, Floats, Floats]:
        # The last vertex rejects all: no score is its threshold.
        missed, rejected = (c[:-1] for c in _vertices(self, count + 1, _same, _same))
        next_key = np.minimum(self.targets.at(missed), self.others.at(rejected))
        false_alarm, miss = self._rates(missed, rejected)
        return scores_of(next_key, self.dtype), 1.0 - miss, false_alarm

    def _rates(self, missed: Array, rejected: Array) -> tuple[Floats, Floats]:
        return (len(self.others) - rejected) / len(self.others), missed / len(self.targets)


def measure(targets: ArrayLike, others: ArrayLike, *, threads: int | None = None) -> Detection:
    """All metrics of the scores of targets and of non-targets."""
    return order(targets, others, threads=threads).measure()


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


def order(targets: ArrayLike, others: ArrayLike, *, threads: int | None = None) -> Ordered:
    """Sort once for several of the above; on all cores unless `threads` says how many."""
    return Ordered.of(targets, others, threads)


def _for_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _for_json(item) for name, item in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def _cllr(trials: Ordered) -> float:
    cost = _mean_cost(trials, trials.targets, -1.0) + _mean_cost(trials, trials.others, 1.0)
    return cost / (2.0 * float(np.log(2.0)))


def _mean_cost(trials: Ordered, keys: Keys, sign: float) -> float:
    """Of log(1 + e^(sign score)), added up by pieces, whatever tasks these are in."""

    def work(first: int, last: int) -> Floats:
        bits, sums = np.empty(SPAN, keys.sorted.dtype), np.empty(last - first)
        bounds, top = keys.bounds[first : last + 1], sign_of(trials.dtype)
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


def _step_eer(trials: Ordered) -> float:
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


def _min_dcf(trials: Ordered, points: tuple[Point, ...]) -> float:
    """At a corner of the hull: no other vertex has a lower weighted sum of two rates."""
    false_alarm, miss = trials.hull_points()
    costs = [
        (p * c_miss * miss + (1.0 - p) * c_fa * false_alarm).min()
        / min(p * c_miss, (1.0 - p) * c_fa)
        for p, c_miss, c_fa in points
    ]
    return float(np.mean(costs))


def _same(share: float) -> float:
    return share


def _vertices(trials: Ordered, count: int, warp: Warp, back: Warp) -> tuple[Counts, Counts]:
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
    trials: Ordered, count: int, stride: float, warp: Warp, back: Warp
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


def _sizes(trials: Ordered) -> tuple[int, int]:
    return len(trials.targets), len(trials.others)


def _place(rejected: int, total: int, warp: Warp) -> float:
    """On the warped axis; its ends lie half a trial inside, where a probit is finite."""
    return warp(min(max(rejected, 0.5), total - 0.5) / total)


def _further(rejected: int, total: int, stride: float, warp: Warp, back: Warp) -> int:
    """Least number of rejected trials, one more at least, that is a stride further."""
    wanted = total * back(_place(rejected, total, warp) + stride)
    return min(max(int(np.ceil(wanted)), rejected + 1), total)


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
