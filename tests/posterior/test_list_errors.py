"""How often lists are wrong: the rate against the whole curve of its likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from spklink.posterior.list_errors import ERRORS, FIRST, LISTINGS, estimate_rate


def listings(errors: int, count: int, strength: float, seed: int = 0) -> np.ndarray:
    """Log-likelihood-ratios of absence, as right as normal laws are; some listings are wrong."""
    rng = np.random.default_rng(seed)
    wrong = np.arange(count) < errors
    middle = np.where(wrong, strength, -strength)
    return middle + np.sqrt(2.0 * strength) * rng.standard_normal(count)


def absences(llr: np.ndarray):
    return lambda rate: expit(logit(rate) + llr)


def posterior(llr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of rates, evenly apart, and the posterior of the rate at each."""
    log_rate = np.linspace(np.log(1e-7), np.log(0.5), 4000)
    rate = np.exp(log_rate)
    each = np.array([np.logaddexp(np.log1p(-r), np.log(r) + llr).sum() for r in rate])
    value = each + ERRORS * log_rate + LISTINGS * np.log1p(-rate)
    return log_rate, np.exp(value - value.max())


def exact_mode(llr: np.ndarray) -> float:
    log_rate, density = posterior(llr)
    return float(np.exp(log_rate[density.argmax()]))


# Voices that say much, little and next to nothing: there EM alone takes hundreds of steps.
@pytest.mark.parametrize("strength", [8.0, 2.0, 0.5, 0.1])
@pytest.mark.parametrize("errors", [0, 20, 100])
def test_the_rate_is_where_the_posterior_is_highest(strength, errors):
    llr = listings(errors, 2000, strength)
    found = estimate_rate(absences(llr))
    assert found.value == pytest.approx(exact_mode(llr), rel=0.03)


def test_listings_of_which_nothing_is_told_hold_up_no_rate():
    """Half of them: people with one call. None is absent; the prior's half an error remains."""
    llr = np.concatenate([np.full(20_000, -9.0), np.zeros(20_000)])
    found = estimate_rate(absences(llr))
    assert found.value * 40_000 < 1.1
    assert found.listings == pytest.approx(20_000, rel=0.01)
    assert found.low < 1e-6


def test_nothing_told_leaves_the_prior():
    found = estimate_rate(absences(np.zeros(300)))
    assert found.listings == pytest.approx(0.0, abs=1.0)
    assert found.low < 1e-3 < FIRST < 0.1 < found.high


@pytest.mark.parametrize("strength", [8.0, 3.0, 1.0])
def test_the_interval_is_that_of_the_posterior(strength):
    llr = listings(100, 2000, strength)
    found = estimate_rate(absences(llr))
    log_rate, density = posterior(llr)
    mass = np.cumsum(density * np.exp(log_rate))  # of equal steps of the logarithm
    ends = np.exp(np.interp([0.025, 0.975], mass / mass[-1], log_rate))
    assert found.low == pytest.approx(ends[0], rel=0.15)
    assert found.high == pytest.approx(ends[1], rel=0.15)


def test_one_of_two_is_absent_and_nobody_knows_which():
    """As if it were known which: the number of absences is certain all the same."""

    def absent(rate):
        return np.concatenate([np.full(100, 0.5), np.zeros(900)])

    found = estimate_rate(absent)
    assert found.value == pytest.approx(0.05, rel=0.02)
    assert found.listings == pytest.approx(1000.0)
