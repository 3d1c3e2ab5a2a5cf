"""How many bits are unknown about who speaks where, before any voice is heard.

After van Leeuwen & Brummer (2014), Table 1: M two-sided conversations are 2M recordings of N
speakers, and each level of knowledge leaves a number of equally likely answers.  Its log2 is the
uncertainty H in bits, and F = 2^(H/M) - 1 is the confusion per conversation.

    I    only the recordings      Bell(2M), every partition of the recordings into speakers
    II   and the number N         Stirling2(2M, N); at most N^(2M) / N!
    III  and that sides differ    T(M, N), no conversation has both its sides in one block;
                                  about Stirling2(2M, N) ((N-1)/N)^M
    IV   and each call's pair     2^M, only the two channels of a call may be swapped

I >= II >= III always.  IV names the speakers, which III does not, so III can be below it (N = 2,
or N near 2M); the approximation of III can even drop below 0 bits near N = 2M.

Routes.  2M <= EXACT_RECORDINGS: integers, rounded once by log2.  Above:

    Bell, Stirling2   n! [z^n] of exp(e^z - 1) or (e^z - 1)^k / k!, a Cauchy integral on a circle
                      through the saddle point by the trapezoidal rule
    T, N << M         the inclusion-exclusion sum over absent speakers, while its terms are <= 1
    T, otherwise      the same Cauchy integral as Stirling2, with one more factor

Accuracy of the float routes: within 4e-9 bits up to M = 100,000, where all levels take 3-7 ms.
Found: at most 2e-13 bits for all N at M <= 30, and 4e-11 for some twenty N at each of M = 500,
1000, 2000, 3000 and 5000, against integers; 2e-9 at M = 100,000 for every 97th N, against the
positive recurrences of the counts in floats with wide exponents.  The error is that of log (2M)!,
a few units in its last place, and grows like it beyond.

Functions: `levels` (the table), `log2_bell`, `log2_stirling2`, `log2_call_partitions` (T) and
`confusion`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError

EXACT_RECORDINGS = 1000  # integers up to here: some 0.1 s for all levels together
LN2 = math.log(2.0)

Complex: TypeAlias = NDArray[np.complex128]


@dataclass(frozen=True)
class Level:
    """One row of the table: what is known, how many bits are not, and the confusion."""

    level: str
    expression: str
    bits: float
    confusion: float
    exact: bool  # False: the approximation or bound of the paper


def levels(conversations: int, speakers: int) -> list[Level]:
    """The table for M conversations among N speakers: I, II, II approx., III, III approx., IV."""
    _check_calls(conversations, speakers)
    n, m = speakers, conversations
    stirling = log2_stirling2(2 * m, n)
    bound = 2 * m * math.log2(n) - _log_factorial(n) / LN2
    differ = math.log1p(-1.0 / n) / LN2  # -log2(N/(N-1))
    rows = [
        ("I", "log2 Bell(2M)", log2_bell(2 * m), True),
        ("II", "log2 Stirling2(2M, N)", stirling, True),
        ("II", "2M log2 N - log2 N!", bound, False),
        ("III", "log2 T(M, N)", log2_call_partitions(m, n), True),
        ("III", "log2 Stirling2(2M, N) - M log2(N/(N-1))", stirling + m * differ, False),
        ("IV", "M", float(m), True),
    ]
    return [Level(name, text, bits, confusion(bits, m), exact) for name, text, bits, exact in rows]


def confusion(bits: float, conversations: int) -> float:
    """F = 2^(bits/M) - 1: answers per conversation, the right one not counted."""
    if conversations < 1:
        raise SpklinkError(f"{conversations} conversations: confusion needs at least 1")
    exponent = bits / conversations
    return math.exp2(exponent) - 1.0 if exponent < 1024.0 else math.inf


def log2_bell(n: int) -> float:
    """log2 of the number of partitions of n recordings."""
    if n < 0:
        raise SpklinkError(f"{n} recordings: the number of recordings cannot be negative")
    return math.log2(_bell_exact(n)) if n <= EXACT_RECORDINGS else _log_bell(n) / LN2


def log2_stirling2(n: int, k: int) -> float:
    """log2 of the number of partitions of n recordings into k speakers."""
    if not 1 <= k <= n:
        raise SpklinkError(
            f"{k} speakers in {n} recordings: possible are 1 up to the number of recordings"
        )
    exact = n <= EXACT_RECORDINGS
    return math.log2(_stirling2_exact(n, k)) if exact else _log_stirling2(n, k) / LN2


def log2_call_partitions(conversations: int, speakers: int) -> float:
    """log2 of the number of partitions where no conversation is a speaker with themselves."""
    m, n = conversations, speakers
    _check_calls(m, n)
    exact = 2 * m <= EXACT_RECORDINGS
    return math.log2(_call_partitions_exact(m, n)) if exact else _log_call_partitions(m, n) / LN2


def _check_calls(conversations: int, speakers: int) -> None:
    if conversations < 1:
        raise SpklinkError(f"{conversations} conversations: at least 1 is needed")
    if not 2 <= speakers <= 2 * conversations:
        raise SpklinkError(
            f"{speakers} speakers in {conversations} two-sided conversations: "
            f"possible are 2 to {2 * conversations}"
        )


# --- integers ---------------------------------------------------------------------------------


def _bell_exact(n: int) -> int:
    """Dobinski's series made finite: n! Bell(n) = sum_k C(n, k) D(n-k) k^n, D = derangements."""
    total, choose, derangements = 0, 1, 1
    for j in range(n + 1):  # j = n - k
        total += choose * derangements * (n - j) ** n
        choose = choose * (n - j) // (j + 1)
        derangements = derangements * (j + 1) + (1 if j % 2 else -1)
    return total // math.factorial(n)


def _stirling2_exact(n: int, k: int) -> int:
    return _surjections(k, lambda used: used**n) // math.factorial(k)


def _call_partitions_exact(m: int, n: int) -> int:
    return _surjections(n, lambda used: (used * (used - 1)) ** m) // math.factorial(n)


def _surjections(k: int, count: Callable[[int], int]) -> int:
    """Answers that use all k speakers, from `count(u)`, those that use no others than u given."""
    total, choose = 0, 1
    for absent in range(k + 1):
        total += (-1) ** absent * choose * count(k - absent)
        choose = choose * (k - absent) // (absent + 1)
    return total


# --- floats, natural logarithms ---------------------------------------------------------------


def _log_bell(n: int) -> float:
    radius = _bell_saddle(n)

    def log_ratio(z: Complex) -> Complex:
        grown: Complex = np.expm1(z - radius)
        return grown * math.exp(radius)

    mean = _log_circle_mean(log_ratio, n, radius, n * (radius + 1.0))
    return _log_factorial(n) + math.expm1(radius) - n * math.log(radius) + mean


def _log_stirling2(n: int, k: int) -> float:
    return 0.0 if k == n else _log_power_coefficient(n, k, np.zeros_like)


def _log_call_partitions(m: int, n: int) -> float:
    """T by whichever of the two routes has no cancellation; T(M, 2M) = 1."""
    if n == 2 * m:
        return 0.0
    if n * (1.0 - 2.0 / n) ** m <= 1.0:  # the expected number of absent speakers, drawn freely
        return _log_calls_by_absence(m, n)
    return _log_power_coefficient(2 * m, n, lambda z: _log_call_factor(z, m))


def _log_calls_by_absence(m: int, n: int) -> float:
    """N! T = sum_j (-1)^j C(N, j) ((N-j)(N-j-1))^M, relative to its term j = 0.

    Term j is at most x^j / j! with x the term j = 1, so for x <= 1 thirty terms are plenty.
    """
    total, log_choose = 0.0, 0.0
    for j in range(min(n - 1, 30)):  # j <= N - 2: fewer than two speakers make no call
        log_avoid = math.log1p(-j / n) + math.log1p(-j / (n - 1))  # a call has none of j speakers
        total += (-1) ** j * math.exp(log_choose + m * log_avoid)
        log_choose += math.log((n - j) / (j + 1))
    return m * (math.log(n) + math.log(n - 1)) - _log_factorial(n) + math.log(total)


def _log_call_factor(z: Complex, m: int) -> Complex:
    """log of sum_j C(M, j) (2M-j)!/(2M)! (-z)^j, which turns Stirling2 into T.

    The sum is exp(-z/2) 0F1(1/2 - M; z^2/16) but for powers of z above 2M, which have no part in
    coefficient 2M.  Where this route is taken |z| < log(2M), so the series ends at once, whereas
    the sum itself would cancel.
    """
    term = np.ones_like(z)
    series = np.ones_like(z)
    for j in range(min(m, 30)):
        term = term * (z * z / 16.0) / ((j + 1) * (0.5 - m + j))
        series = series + term
    return np.log(series) - z / 2.0


def _log_power_coefficient(n: int, k: int, log_factor: Callable[[Complex], Complex]) -> float:
    """log of n!/k! [z^n] (e^z - 1)^k g(z), with log g given; k < n.

    The saddle point is that without g: every circle gives the same, and g changes slowly.
    """
    radius = _power_saddle(n / k)
    centre = np.array([radius], dtype=np.complex128)
    at_centre = (k * _log_expm1(centre) + log_factor(centre))[0]
    spread = n * (1.0 + radius * math.exp(-radius) / math.expm1(-radius))
    mean = _log_circle_mean(
        lambda z: k * _log_expm1(z) + log_factor(z) - at_centre, n, radius, spread
    )
    scale = _log_factorial(n) - _log_factorial(k)
    return scale + float(at_centre.real) - n * math.log(radius) + mean


def _log_circle_mean(
    log_ratio: Callable[[Complex], Complex], n: int, radius: float, spread: float
) -> float:
    """log of the mean of f(z)/f(r) (z/r)^-n over |z| = r, with log f(z)/f(r) given.

    Near z = r this is a bell of width 1/sqrt(spread) in the angle.  At half a width per step the
    trapezoidal rule on the full circle is exact to double precision.  f(conj z) = conj f(z), so
    that half the circle will do.
    """
    steps = 64 + math.ceil(2.0 * math.pi * math.sqrt(spread))
    angle = np.linspace(0.0, math.pi, steps + 1)
    values = np.exp(log_ratio(radius * np.exp(1j * angle)) - 1j * n * angle).real
    return math.log((values.sum() - (values[0] + values[-1]) / 2.0) / steps)


def _log_expm1(z: Complex) -> Complex:
    """log(e^z - 1) without overflow; the branch is free, since it is only used times integers."""
    right = z.real > 0.0
    toward = np.where(right, -z, z)
    result: Complex = np.where(right, z, 1j * math.pi) + np.log(-np.expm1(toward))
    return result


def _power_saddle(ratio: float) -> float:
    """r with r / (1 - e^-r) = ratio > 1: Newton from above on a convex function."""
    r = min(ratio, 2.0 * (ratio - 1.0))
    for _ in range(20):
        gap = -math.expm1(-r)
        slope = (gap - r * math.exp(-r)) / gap**2
        r -= (r / gap - ratio) / slope
    return r


def _bell_saddle(n: int) -> float:
    """r with r e^r = n: Newton on r + log r = log n."""
    r = 1.0
    for _ in range(20):
        r -= (r + math.log(r) - math.log(n)) / (1.0 + 1.0 / r)
    return r


def _log_factorial(n: int) -> float:
    return math.lgamma(n + 1.0)
