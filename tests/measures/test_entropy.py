"""The six numbers of the paper, counting by hand, recurrences, and the float routes at size."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.errors import SpklinkError
from spklink.measures import entropy
from spklink.measures.entropy import (
    Level,
    confusion,
    levels,
    log2_bell,
    log2_call_partitions,
    log2_stirling2,
)

LARGE = 100_000
STATED = 4e-9  # bits, the accuracy of the module docstring


@st.composite
def calls(draw: st.DrawFn, most: int) -> tuple[int, int]:
    """M and N, the smallest and largest N as likely as those between."""
    m = draw(st.integers(1, most))
    few, many = min(2 * m, 6), max(2, 2 * m - 6)
    n = draw(st.one_of(st.integers(2, few), st.integers(2, 2 * m), st.integers(many, 2 * m)))
    return m, n


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every partition of n things once, as block labels in order of first use."""
    if n == 0:
        yield ()
        return
    for head in partitions(n - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


def stirling_row(n: int) -> list[int]:
    row = [1]
    for _ in range(n):
        row = [k * old + new for k, (old, new) in enumerate(zip([*row, 0], [0, *row], strict=True))]
    return row


def call_row(m: int) -> list[int]:
    """T(m, k) for all k: the next call joins two known speakers, one new, or two new."""
    row = [1]
    for _ in range(m):
        none, one, two = [*row, 0, 0], [0, *row, 0], [0, 0, *row]
        row = [k * (k - 1) * none[k] + 2 * (k - 1) * one[k] + two[k] for k in range(len(row) + 2)]
    return row


def test_the_table_of_the_paper() -> None:
    rows = levels(348, 356)
    assert [row.level for row in rows] == ["I", "II", "II", "III", "III", "IV"]
    assert [row.exact for row in rows] == [True, True, False, True, False, True]
    assert [round(row.bits, 3) for row in rows] == [
        4163.144, 3292.697, 3389.785, 3291.589, 3291.285, 348.0,
    ]  # fmt: skip
    assert [round(row.confusion, 1) for row in rows] == [3991.4, 704.1, 854.6, 702.6, 702.2, 1.0]
    assert len({row.expression for row in rows}) == len(rows)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_counts_are_those_of_all_partitions_written_out(m: int) -> None:
    everything = list(partitions(2 * m))
    assert log2_bell(2 * m) == pytest.approx(math.log2(len(everything)), abs=1e-12)
    for n in range(2, 2 * m + 1):
        blocks = [p for p in everything if len(set(p)) == n]
        apart = [p for p in blocks if all(p[2 * c] != p[2 * c + 1] for c in range(m))]
        assert log2_stirling2(2 * m, n) == pytest.approx(math.log2(len(blocks)), abs=1e-12)
        assert log2_call_partitions(m, n) == pytest.approx(math.log2(len(apart)), abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 41])
def test_integers_follow_the_recurrences(m: int) -> None:
    stirling = stirling_row(2 * m)
    assert entropy._bell_exact(2 * m) == sum(stirling)
    assert [entropy._stirling2_exact(2 * m, k) for k in range(1, 2 * m + 1)] == stirling[1:]
    assert [entropy._call_partitions_exact(m, n) for n in range(2, 2 * m + 1)] == call_row(m)[2:]


@given(calls(60))
@settings(deadline=None)
def test_integers_of_calls_are_the_sum_over_merged_sides(case: tuple[int, int]) -> None:
    m, n = case
    merged = [
        (-1) ** j * math.comb(m, j) * entropy._stirling2_exact(2 * m - j, n)
        for j in range(m + 1)
        if 2 * m - j >= n
    ]
    assert entropy._call_partitions_exact(m, n) == sum(merged)


def assert_floats_agree(m: int, n: int, within: float) -> None:
    bell = math.log2(entropy._bell_exact(2 * m))
    stirling = math.log2(entropy._stirling2_exact(2 * m, n))
    apart = math.log2(entropy._call_partitions_exact(m, n))
    assert entropy._log_bell(2 * m) / entropy.LN2 == pytest.approx(bell, abs=within)
    assert entropy._log_stirling2(2 * m, n) / entropy.LN2 == pytest.approx(stirling, abs=within)
    assert entropy._log_call_partitions(m, n) / entropy.LN2 == pytest.approx(apart, abs=within)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 12, 25])
def test_floats_agree_with_integers_for_every_number_of_speakers(m: int) -> None:
    for n in range(2, 2 * m + 1):
        assert_floats_agree(m, n, within=1e-12)


@given(calls(250))
@settings(deadline=None, max_examples=60)
def test_floats_agree_with_integers(case: tuple[int, int]) -> None:
    assert_floats_agree(*case, within=1e-11)


@pytest.mark.parametrize("n", [2, 3, 50, 180, 200, 500, 900, 998, 999, 1000])
def test_floats_agree_with_integers_where_the_routes_meet(n: int) -> None:
    assert_floats_agree(entropy.EXACT_RECORDINGS // 2, n, within=1e-11)


@pytest.mark.parametrize("offset", [-1000, -100, 0, 100, 1000])
def test_both_float_routes_of_calls_agree_where_they_meet(offset: int) -> None:
    n = 20_177 + offset  # the last N at this size with at most one absent speaker expected
    by_absence = entropy._log_calls_by_absence(LARGE, n)
    by_circle = entropy._log_power_coefficient(
        2 * LARGE, n, lambda z: entropy._log_call_factor(z, LARGE)
    )
    assert by_absence == pytest.approx(by_circle, abs=STATED)


def test_large_counts_that_the_recurrences_gave() -> None:
    # All-positive recurrences run once over the whole triangle, relative error below 1e-10.
    assert log2_bell(2 * LARGE) == pytest.approx(2600651.247669373, abs=STATED)
    for n, stirling, apart in [
        (1_000, 1984627.458928213, 1984483.117241246),
        (22_000, 2599415.605469365, 2599409.048355145),
        (50_000, 2412184.615384390, 2412181.787173804),
        (100_000, 1779365.519163147, 1779364.369598744),
        (195_000, 116620.868264067, 116620.831582598),
        (199_990, 320.400810603, 320.400738465),
    ]:
        assert log2_stirling2(2 * LARGE, n) == pytest.approx(stirling, abs=STATED)
        assert log2_call_partitions(LARGE, n) == pytest.approx(apart, abs=STATED)


@pytest.mark.parametrize("m", [501, 5_000, LARGE])
def test_closed_forms_at_the_extremes(m: int) -> None:
    k = 2 * m
    pairs, two_pairs_or_triple = math.comb(k, 2), math.comb(k, 3) + 3 * math.comb(k, 4)
    three = m * math.log2(6) - math.log2(6)
    for n, stirling, apart in [
        (2, k - 1.0, m - 1.0),
        (3, k * math.log2(3) - math.log2(6), three),
        (k - 2, math.log2(two_pairs_or_triple), None),
        (k - 1, math.log2(pairs), math.log2(pairs - m)),
        (k, 0.0, 0.0),
    ]:
        assert log2_stirling2(k, n) == pytest.approx(stirling, abs=STATED)
        if apart is not None:
            assert log2_call_partitions(m, n) == pytest.approx(apart, abs=STATED)
    assert log2_stirling2(k, 1) == pytest.approx(0.0, abs=STATED)


@given(st.one_of(calls(40), calls(LARGE).filter(lambda case: case[0] > 500)))
@settings(deadline=None, max_examples=150)
def test_more_knowledge_never_leaves_more_bits(case: tuple[int, int]) -> None:
    i, ii, ii_bound, iii, iii_approx, iv = (row.bits for row in levels(*case))
    assert i >= ii - STATED
    assert ii_bound >= ii - STATED
    assert ii >= iii - STATED
    assert iii >= iii_approx - STATED  # in integers for all N at M <= 80
    assert iii >= -STATED
    assert iv == case[0]


@given(calls(2_000))
@settings(deadline=None, max_examples=20)
def test_each_row_carries_its_own_confusion(case: tuple[int, int]) -> None:
    for row in levels(*case):
        assert isinstance(row, Level)
        assert row.confusion == confusion(row.bits, case[0])
        assert math.log2(row.confusion + 1.0) * case[0] == pytest.approx(row.bits, abs=1e-6)


def test_confusion_of_bits() -> None:
    assert confusion(0.0, 7) == 0.0
    assert confusion(14.0, 7) == 3.0
    assert confusion(1023.0, 1) == 2.0**1023
    assert confusion(1024.0, 1) == math.inf
    assert confusion(1e308, 1) == math.inf


@pytest.mark.parametrize(
    ("m", "n", "said"),
    [
        (0, 2, "0 conversations"),
        (-3, 2, "-3 conversations"),
        (5, 1, "1 speakers in 5 .*possible are 2 to 10"),
        (5, 11, "11 speakers in 5 .*possible are 2 to 10"),
        (LARGE, 0, "0 speakers"),
    ],
)
def test_impossible_tables_say_what_is_possible(m: int, n: int, said: str) -> None:
    with pytest.raises(SpklinkError, match=said):
        levels(m, n)
    with pytest.raises(SpklinkError, match=said):
        log2_call_partitions(m, n)


def test_impossible_counts_are_refused() -> None:
    for n, k in [(3, 0), (3, 4), (0, 0), (-1, 1)]:
        with pytest.raises(SpklinkError, match=f"{k} speakers in {n} recordings"):
            log2_stirling2(n, k)
    with pytest.raises(SpklinkError, match="-1 recordings"):
        log2_bell(-1)
    with pytest.raises(SpklinkError, match="0 conversations"):
        confusion(1.0, 0)
    assert log2_bell(0) == 0.0
