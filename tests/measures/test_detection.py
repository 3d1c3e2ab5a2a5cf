"""Detection metrics against their definitions, and against llreval (BOSARIS in Python)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from fractions import Fraction
from math import gcd, log
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtri

from spklink.errors import SpklinkError
from spklink.measures import detection
from spklink.measures.detection import COSTS, Detection, measure
from spklink.scores import pooling, ranking
from spklink.scores.pooling import pav

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

INF = float("inf")
TIED = st.integers(-6, 6).map(lambda k: k / 2.0)
WIDE = st.one_of(
    TIED, st.floats(-40.0, 40.0, width=32), st.sampled_from([INF, -INF, 0.0, -0.0, 1e-40, 800.0])
)
TYPES = [np.float32, np.float64]


def pairs(scores: st.SearchStrategy[float], size: int = 20) -> st.SearchStrategy[Pair]:
    some = st.lists(scores, min_size=1, max_size=size).map(np.array)
    return st.tuples(some, some)


def spread(count: int, centre: float, step: float, decimals: int | None = None) -> Floats:
    """Logistic scores about a centre that are the same with every version of numpy."""
    share = np.arange(1.0, count + 1.0) * step % 1.0
    scores = centre + np.log(share / (1.0 - share))
    return scores if decimals is None else np.round(scores, decimals)


def normal(targets: int, others: int, seed: int, decimals: int | None = None) -> Pair:
    random = np.random.default_rng(seed)
    pair = random.normal(1.5, 2.0, targets), random.normal(-1.5, 2.0, others)
    return pair if decimals is None else (np.round(pair[0], decimals), np.round(pair[1], decimals))


SETS: dict[str, Callable[[], Pair]] = {
    "distinct": lambda: (spread(700, 2.0, 2**0.5), spread(1300, -2.0, 3**0.5)),
    "tied": lambda: (spread(700, 2.0, 2**0.5, 0), spread(1300, -2.0, 3**0.5, 0)),
    "few targets": lambda: (spread(40, 3.0, 2**0.5), spread(3000, -4.0, 3**0.5)),
    "hardly apart": lambda: (spread(500, 0.1, 2**0.5, 1), spread(500, 0.0, 3**0.5, 1)),
}
# eer, cllr, min_cllr and the minimum costs in the order of COSTS, as llreval 0.0.3 finds them.
LLREVAL: dict[str, list[float]] = {
    "distinct": [
        0.11864865,
        0.44970466,
        0.42950244,
        0.65845055,
        0.98142857,
        0.98142857,
        0.98142857,
        0.81626374,
    ],
    "tied": [
        0.12890041,
        0.45555218,
        0.44269267,
        0.66509890,
        0.98857143,
        0.98857143,
        0.98857143,
        0.84065934,
    ],
    "few targets": [
        0.02352273,
        0.16121493,
        0.08593026,
        0.16880000,
        0.92500000,
        0.57350000,
        0.49800000,
        0.23266667,
    ],
    "hardly apart": [
        0.48714793,
        1.40279762,
        0.99816318,
        0.99800000,
        0.99800000,
        0.99800000,
        0.99800000,
        0.99800000,
    ],
}


def rejected(targets: Floats, others: Floats) -> list[tuple[int, int]]:
    """Targets and others below each score, then all: every threshold anew from all trials."""
    thresholds = sorted({*targets.tolist(), *others.tolist()})
    below = [(int((targets < t).sum()), int((others < t).sum())) for t in thresholds]
    return [*below, (len(targets), len(others))]


def rates(targets: Floats, others: Floats) -> list[tuple[Fraction, Fraction]]:
    """(false alarm, miss) of every threshold."""
    return [
        (Fraction(len(others) - n, len(others)), Fraction(t, len(targets)))
        for t, n in rejected(targets, others)
    ]


def diagonal(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    """Where the line from a to b, on either side of it, crosses false alarm = miss."""
    before, after = a[0] - a[1], b[1] - b[0]
    return a[1] if before + after == 0 else a[1] + before / (before + after) * (b[1] - a[1])


def plain_eers(targets: Floats, others: Floats) -> tuple[float, float]:
    """Of the hull: the lowest crossing between any two vertices; of the ROC: between neighbours."""
    points = rates(targets, others)
    over = [p for p in points if p[0] >= p[1]]
    under = [p for p in points if p[0] <= p[1]]
    step = diagonal(over[-1], under[0])
    return float(min(diagonal(a, b) for a in over for b in under)), float(step)


def plain_isotonic(targets: Floats, others: Floats) -> dict[float, tuple[Fraction, Fraction]]:
    """Score: share of targets and of others that PAV sees in its block, by the min-max formula."""
    cumulated = rejected(targets, others)
    values = sorted({*targets.tolist(), *others.tolist()})
    size = len(values)

    def mean(a: int, b: int) -> Fraction:
        t, n = (cumulated[b + 1][c] - cumulated[a][c] for c in (0, 1))
        return Fraction(t, t + n)

    fitted = [
        max(min(mean(a, b) for b in range(i, size)) for a in range(i + 1)) for i in range(size)
    ]
    return {
        v: (p / len(targets), (1 - p) / len(others)) for v, p in zip(values, fitted, strict=True)
    }


def llr(shares: tuple[Fraction, Fraction]) -> float:
    if 0 in shares:
        return INF if shares[0] else -INF
    return log(shares[0]) - log(shares[1])


def plain_cllr(targets: Floats, others: Floats) -> float:
    cost = np.logaddexp(0.0, -targets).mean() + np.logaddexp(0.0, others).mean()
    return float(cost / (2.0 * np.log(2.0)))


def plain_measure(targets: Floats, others: Floats) -> Detection:
    fitted = {score: llr(shares) for score, shares in plain_isotonic(targets, others).items()}
    best = plain_cllr(*(np.array([fitted[s] for s in part]) for part in (targets, others)))
    cllr = plain_cllr(targets, others)
    costs = {
        name: float(
            np.mean(
                [
                    min(p * cm * float(miss) + (1 - p) * cf * float(fa) for fa, miss in points)
                    / min(p * cm, (1 - p) * cf)
                    for p, cm, cf in settings
                ]
            )
        )
        for name, settings in COSTS.items()
        for points in [rates(targets, others)]
    }
    sizes = len(targets), len(others)
    return Detection(*sizes, *plain_eers(targets, others), cllr, best, cllr - best, costs)


def numbers(found: Detection) -> list[float]:
    return [found.eer, found.cllr, found.min_cllr, *found.min_dcf.values()]


def same(a: Detection, b: Detection) -> bool:
    return numbers(a) == pytest.approx(numbers(b), rel=1e-12, abs=1e-12) and (
        a.eer_step == pytest.approx(b.eer_step, rel=1e-12, abs=1e-12)
    )


@given(pairs(WIDE), st.sampled_from(TYPES))
@example((np.array([1.0, 2.0]), np.array([1.0, 0.0])), np.float64)
def test_all_metrics_are_as_defined(scores: Pair, dtype: type) -> None:
    targets, others = (s.astype(dtype) for s in scores)
    found = measure(targets, others)
    assert (found.targets, found.nontargets) == (len(targets), len(others))
    assert same(found, plain_measure(targets.astype(np.float64), others.astype(np.float64)))


def by_llreval(targets: Floats, others: Floats) -> list[float]:
    pav_rocch = pytest.importorskip("llreval.pav_rocch", reason="peers come with extra 'bench'")
    from llreval.cllr import cllr, min_cllr
    from llreval.utils import tarnon_2_scoreslabels

    pooled = pav_rocch.PAV(*tarnon_2_scoreslabels(targets, others))
    hull = pav_rocch.ROCCH(pooled)
    costs = []
    for settings in COSTS.values():
        shares = []
        for p, c_miss, c_fa in settings:
            odds = p * c_miss / ((1.0 - p) * c_fa)
            shares.append(hull.Bayes_error_rate(log(odds)) * (1.0 + odds) / min(odds, 1.0))
        costs.append(float(np.mean(shares)))
    return [hull.EER(), float(cllr(targets, others)), float(min_cllr(pooled)), *costs]


@pytest.mark.parametrize("name", SETS)
def test_all_metrics_are_what_llreval_found(name: str) -> None:
    assert numbers(measure(*SETS[name]())) == pytest.approx(LLREVAL[name], abs=1e-6)


@pytest.mark.parametrize("decimals", [None, 2, 1, 0])
@pytest.mark.parametrize("sizes", [(3000, 3000), (50, 20000), (20000, 50)])
def test_all_metrics_equal_llreval(sizes: tuple[int, int], decimals: int | None) -> None:
    scores = normal(*sizes, seed=len(str(decimals)), decimals=decimals)
    assert numbers(measure(*scores)) == pytest.approx(by_llreval(*scores), abs=1e-6)


@given(pairs(TIED), st.floats(0.1, 3.0), st.floats(-5.0, 5.0))
def test_a_strictly_rising_map_changes_no_metric_but_cllr(
    scores: Pair, scale: float, offset: float
) -> None:
    found = measure(*scores)
    mapped = measure(*(np.exp(scale * s) + s**3 + offset for s in scores))
    assert mapped.eer == found.eer
    assert mapped.eer_step == found.eer_step
    assert mapped.min_cllr == found.min_cllr
    assert mapped.min_dcf == found.min_dcf


@given(pairs(WIDE))
def test_bounds(scores: Pair) -> None:
    found = measure(*scores)
    assert 0.0 <= found.min_cllr <= min(found.cllr, 1.0) + 1e-12
    assert found.calibration_loss == found.cllr - found.min_cllr
    assert 0.0 <= found.eer <= min(found.eer_step, 0.5) + 1e-12
    assert all(0.0 <= cost <= 1.0 + 1e-12 for cost in found.min_dcf.values())


@given(pairs(WIDE))
def test_swapped_and_negated_scores_have_the_same_rates(scores: Pair) -> None:
    found, turned = measure(*scores), measure(-scores[1], -scores[0])
    for name in ("eer", "eer_step", "cllr", "min_cllr"):
        assert getattr(turned, name) == pytest.approx(getattr(found, name), abs=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
def test_separated_classes_have_no_errors(dtype: type) -> None:
    found = measure(np.array([0.5, INF], dtype), np.array([-INF, -1.0, 0.25], dtype))
    assert (found.eer, found.eer_step, found.min_cllr) == (0.0, 0.0, 0.0)
    assert set(found.min_dcf.values()) == {0.0}


@pytest.mark.parametrize("value", [0.0, -3.25, INF, -INF])
def test_equal_scores_tell_nothing(value: float) -> None:
    found = measure(np.full(7, value), np.full(5, value))
    assert (found.eer, found.eer_step, found.min_cllr) == (0.5, 0.5, 1.0)
    assert set(found.min_dcf.values()) == {1.0}


@pytest.mark.parametrize("point", [(0.9, 1.0, 1.0), (0.1, 1.0, 20.0), (0.01, 500.0, 1.0)])
def test_a_cost_is_a_share_of_the_better_blind_choice(
    point: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "COSTS", {"blind": (point,)})
    assert measure(np.zeros(3), np.zeros(9)).min_dcf == pytest.approx({"blind": 1.0})


def test_the_right_infinity_costs_nothing_the_wrong_one_everything() -> None:
    assert measure([INF, INF], [-INF]).cllr == 0.0
    assert measure([INF, 0.0], [-INF]).cllr == pytest.approx(0.25)
    assert measure([-INF, 0.0], [-INF]).cllr == INF


@pytest.mark.parametrize("dtype", TYPES)
def test_scores_of_zero_cost_one_bit_however_many(dtype: type) -> None:
    assert measure(np.zeros(5000, dtype), np.zeros(3000, dtype)).cllr == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_last_bit_of_a_score_counts(dtype: type) -> None:
    for value in (1.0, -1.0, 0.0, 7.3, -7.3):
        here = np.array([value], dtype)
        above = np.nextafter(here, np.array(INF, dtype))
        assert measure(above, here).min_cllr == 0.0
        assert measure(here, above).eer == 0.5
        assert measure(here, here.copy()).min_cllr == 1.0
    assert measure(np.array([-0.0], dtype), np.array([0.0], dtype)).min_cllr == 1.0
    assert measure(np.array([0.0], dtype), np.array([-0.0], dtype)).min_cllr == 1.0


def test_one_class_in_double_precision_makes_both() -> None:
    single = np.array([0.1, 2.0], np.float32)
    assert measure(single, np.array([0.1])).eer == measure(single.astype(float), [0.1]).eer
    assert measure(single[:1], np.array([0.1])).min_cllr == 0.0  # 0.1 is higher in float32


@pytest.mark.parametrize("dtype", TYPES)
def test_scores_that_are_not_a_number_are_counted_and_refused(dtype: type) -> None:
    bad = np.array([1.0, np.nan, -np.nan, INF, -INF], dtype)
    with pytest.raises(SpklinkError, match="2 of 5 target scores"):
        measure(bad, np.zeros(3, dtype))
    with pytest.raises(SpklinkError, match="2 of 5 non-target scores"):
        measure(np.zeros(3, dtype), bad)
    with pytest.raises(SpklinkError, match="2 of 5 target scores"):
        pav(bad, np.zeros(3, dtype), target_weight=np.ones(5))
    with pytest.raises(SpklinkError, match="NaN"):
        pav([1.0], [0.0])([np.nan])


def test_a_class_without_scores_is_named() -> None:
    with pytest.raises(SpklinkError, match="no target scores"):
        measure([], [1.0])
    with pytest.raises(SpklinkError, match="no non-target scores"):
        measure([1.0], [])
    with pytest.raises(SpklinkError, match="no target scores"):
        pav([1.0], [1.0], target_weight=[0.0])


def test_as_json_has_the_promised_keys() -> None:
    found = json.loads(json.dumps(measure(*normal(50, 70, 1)).as_json()))
    rates = ["eer", "eer_step", "cllr", "min_cllr", "calibration_loss", "min_dcf"]
    assert list(found) == ["targets", "nontargets", *rates]
    assert list(found["min_dcf"]) == list(COSTS)


def test_as_json_has_null_for_what_is_not_finite() -> None:
    measured = measure([-INF, 0.0], [-INF])
    assert (measured.cllr, measured.calibration_loss) == (INF, INF)
    text = json.dumps(measured.as_json(), allow_nan=False)
    assert json.loads(text) == asdict(measured) | {"cllr": None, "calibration_loss": None}
    strange = replace(measured, cllr=np.nan, calibration_loss=-INF, min_dcf={"a": INF, "b": 0.5})
    found = strange.as_json()
    assert (found["cllr"], found["calibration_loss"]) == (None, None)
    assert found["min_dcf"] == {"a": None, "b": 0.5}


def with_inf(scores: Floats, random: np.random.Generator) -> Floats:
    scores[random.integers(len(scores), size=5)] = INF
    scores[random.integers(len(scores), size=5)] = -INF
    return scores


@pytest.mark.parametrize("piece", [64, 5000, 1 << 16])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("decimals", [None, 1])
def test_pieces_and_threads_change_nothing(
    piece: int, dtype: type, decimals: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    pair = normal(9000, 21000, 3, decimals)
    targets, others = (with_inf(s, random).astype(dtype) for s in pair)
    expected = measure(targets, others, threads=1)
    monkeypatch.setattr(ranking, "PIECE", piece)
    first = None
    for threads in (1, 2, 3):
        trials = detection.order(random.permutation(targets), others[::-1], threads=threads)
        assert len(trials.targets.bounds) > (5 if piece < 5000 else 1)
        for keys, scores in ((trials.targets, targets), (trials.others, others)):
            sorted_scores = ranking.scores_of(keys.sorted, trials.dtype)
            assert np.array_equal(sorted_scores, np.sort(scores))
        found = trials.measure()
        assert same(found, expected)
        first = first or found
        assert found == first  # to the last bit


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=300), st.integers(0, 63))
def test_keys_are_sorted_whatever_their_bits(values: list[int], shift: int) -> None:
    keys = np.array(values, np.uint64) >> np.uint64(shift)
    many = np.concatenate([keys] * 20)  # past the size from which digits are wider
    for these in (keys, many, many << np.uint64(shift), many.astype(np.uint32)):
        expected = np.sort(these)
        ranking._sort_pieces(these, np.array([0, len(these)]), np.empty_like(these))
        assert np.array_equal(these, expected)


@pytest.mark.parametrize("size", [300, 20000])
def test_keys_that_differ_in_low_bits_alone_are_sorted_too(size: int) -> None:
    """The far key makes the rest agree in their high bits, and they are too many to insert."""
    keys = np.array([2**62, *range(size, 0, -1)], np.uint64)
    ranking._sort_pieces(keys, np.array([0, len(keys)]), np.empty_like(keys))
    assert keys.tolist() == [*range(1, size + 1), 2**62]
    nearly = np.array([2**62, *range(size), size // 2 - 1, 2**61], np.uint64)
    expected = np.sort(nearly)
    ranking._sort_pieces(nearly, np.array([0, len(nearly)]), np.empty_like(nearly))
    assert np.array_equal(nearly, expected)


def test_the_hull_with_the_most_corners_fits_its_stack() -> None:
    """Every fraction of small numbers once, rising: no trials have more blocks."""
    for largest in (1, 2, 3, 10, 60):
        ratios = sorted(
            ((t, n) for t in range(largest + 1) for n in range(largest + 1 - t) if gcd(t, n) == 1),
            key=lambda pair: INF if pair[1] == 0 else pair[0] / pair[1],
        )
        t, n = np.array(ratios).T
        trials = detection.order(np.repeat(np.arange(len(t)), t), np.repeat(np.arange(len(t)), n))
        assert len(trials.blocks.targets) == len(ratios)
        assert len(ratios) < pooling._most_blocks(int((t + n).sum())) - 8


@given(pairs(WIDE), st.sampled_from(TYPES))
def test_pav_is_isotonic_regression(scores: Pair, dtype: type) -> None:
    targets, others = (s.astype(dtype).astype(np.float64) for s in scores)
    steps = pav(targets.astype(dtype), others.astype(dtype), finite=False)
    fitted = plain_isotonic(targets, others)
    values = np.array(list(fitted))
    assert np.allclose(steps(values), [llr(f) for f in fitted.values()], rtol=1e-12, atol=1e-12)
    assert len(steps.edges) == len(steps.llr) - 1
    assert (np.diff(steps.edges) > 0.0).all()
    assert (np.diff(steps.llr) > 0.0).all()


@given(pairs(st.one_of(TIED, st.floats(-9.0, 9.0))))
def test_finite_pav_counts_one_misleading_trial_at_each_end(scores: Pair) -> None:
    targets, others = scores
    steps = pav(targets, others)
    assert np.isfinite(steps.llr).all()
    more = plain_isotonic(np.append(targets, -100.0), np.append(others, 100.0))
    for value, shares in more.items():
        assert steps([value])[0] == pytest.approx(llr(shares), rel=1e-12, abs=1e-12)
    again = pav(targets, others, np.ones(len(targets)), np.ones(len(others)))
    assert np.allclose(again.llr, steps.llr)
    assert np.array_equal(again.edges, steps.edges)


@given(pairs(WIDE, 12), st.data(), st.booleans(), st.sampled_from(TYPES))
def test_a_weight_counts_trials(scores: Pair, data: Any, finite: bool, dtype: type) -> None:
    weights = [
        np.array([1, *data.draw(st.lists(st.integers(0, 3), min_size=k, max_size=k))])
        for k in (len(s) - 1 for s in scores)
    ]
    targets, others = (s.astype(dtype) for s in scores)
    weighted = pav(targets, others, *weights, finite=finite)
    repeated = pav(np.repeat(targets, weights[0]), np.repeat(others, weights[1]), finite=finite)
    assert np.allclose(weighted.llr, repeated.llr, rtol=1e-12, atol=1e-12)
    assert np.array_equal(weighted.edges, repeated.edges)


def test_weights_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SpklinkError, match="1 weights for 2 target scores"):
        pav([1.0, 2.0], [0.0], [1.0])
    with pytest.raises(SpklinkError, match="2 non-target weights"):
        pav([1.0], [0.0, 1.0, 2.0], None, [1.0, -1.0, np.nan])


def test_edges_lie_midway() -> None:
    assert pav([1.0], [-1.0], finite=False).edges.tolist() == [0.0]
    assert pav([INF], [-INF], finite=False)([-INF, INF]).tolist() == [-INF, INF]
    above = np.nextafter(1.0, 2.0)
    assert pav([above], [1.0], finite=False)([1.0, above]).tolist() == [-INF, INF]


@given(pairs(WIDE))
def test_few_points_are_all_points(scores: Pair) -> None:
    expected = np.array(rates(*scores), float).T
    assert np.allclose(detection.det_points(*scores), expected, atol=1e-15)
    threshold, targets, others = detection.tippett_points(*scores)
    assert threshold.tolist() == sorted({*scores[0].tolist(), *scores[1].tolist()})
    assert np.allclose([others, 1.0 - targets], expected[:, :-1], atol=1e-15)


@pytest.mark.parametrize("decimals", [None, 3, 1])
@pytest.mark.parametrize("count", [4, 5, 50, 500])
@pytest.mark.parametrize("sizes", [(3000, 2000), (7, 4000)])
def test_many_points_are_thinned_but_keep_the_shape(
    sizes: tuple[int, int], count: int, decimals: int | None
) -> None:
    targets, others = normal(*sizes, seed=2, decimals=decimals)
    false_alarm, miss = detection.det_points(targets, others, count)
    assert 2 <= len(miss) <= count
    assert (false_alarm[0], miss[0], false_alarm[-1], miss[-1]) == (1.0, 0.0, 0.0, 1.0)
    every = np.array(rates(targets, others), float)
    kept = np.column_stack([false_alarm, miss])
    assert {tuple(p) for p in kept.round(12)} <= {tuple(p) for p in every.round(12)}
    ends = 0.5 / np.array([len(others), len(targets)])
    every, kept = (ndtri(np.clip(p, ends, 1.0 - ends)) for p in (every, kept))
    allowed = -2.0 * ndtri(ends).sum() / (count - 3)
    farthest = np.abs(every[:, None] - kept[None]).max(2).min(1).max()
    assert farthest <= 1.001 * allowed


@pytest.mark.parametrize("count", [4, 40, 500])
def test_tippett_points_are_shares_at_scores(count: int) -> None:
    targets, others = normal(3000, 2000, seed=2)
    threshold, share, other_share = detection.tippett_points(targets, others, count)
    assert count / 4 <= len(threshold) <= count
    assert threshold[0] == min(targets.min(), others.min())
    assert (np.diff(threshold) > 0.0).all()
    assert np.allclose(share, [(targets >= t).mean() for t in threshold])
    assert np.allclose(other_share, [(others >= t).mean() for t in threshold])
    steps = [*-np.diff(share), *-np.diff(other_share), share[-1], other_share[-1]]
    assert max(steps) <= 2.0 / (count - 2) + 1.01 / 2000
    with pytest.raises(SpklinkError, match="ask for more"):
        detection.tippett_points(targets, others, 2)


@given(pairs(WIDE))
def test_the_hull_is_convex_and_under_the_curve(scores: Pair) -> None:
    false_alarm, miss = detection.hull_points(*scores)
    assert (false_alarm[0], miss[0], false_alarm[-1], miss[-1]) == (1.0, 0.0, 0.0, 1.0)
    x, y = -np.diff(false_alarm), np.diff(miss)
    assert (x[1:] * y[:-1] < x[:-1] * y[1:]).all()
    for fa, m in np.array(rates(*scores), float):
        assert m >= np.interp(fa, false_alarm[::-1], miss[::-1]) - 1e-12 or fa == 0.0
