"""How often participant lists are wrong, estimated from the voices alone.

A certain participant is absent with some rate, the same for all. Given a rate the posterior tells
how probable each absence is; the expected share of absences is the next rate (EM). A weak prior of
a few errors in thousands keeps it near nothing where no voice speaks for errors. Listings that no
other call could contradict say nothing either way, and do not count in the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError

Floats = NDArray[np.float64]
AUTO = "auto"
ERRORS, LISTINGS = 0.5, 20.0  # what the prior is worth: half an error in twenty listings
FIRST = 0.01  # rate with which estimating begins
ROUNDS = 12  # of two steps each
SETTLED = 0.02  # by this share of itself the rate may still move
FASTEST = 0.9  # of the step before, that a step may seem to be
LARGEST = 0.5
COVERED = 0.95  # of the interval


@dataclass(frozen=True)
class Rate:
    """The rate of list errors: how probable it is that a certain participant is absent."""

    value: float
    low: float
    high: float
    estimated: bool
    absences: float = 0.0  # expected
    listings: float = 0.0  # that voices say something about

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Rate:
        """What `as_json` said."""
        return cls(
            value=said["rate"],
            low=said["low"],
            high=said["high"],
            estimated=said["estimated"],
            absences=said["expected_absences"],
            listings=said["informative_listings"],
        )

    def as_json(self) -> dict[str, float | bool]:
        return {
            "rate": self.value,
            "low": self.low,
            "high": self.high,
            "estimated": self.estimated,
            "expected_absences": self.absences,
            "informative_listings": self.listings,
        }


def asked_rate(text: str | float) -> float | None:
    """The rate that an option asks for; None: it is to be estimated."""
    if text == AUTO:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = float("nan")
    if not 0.0 <= rate < 1.0:
        raise SpklinkError(
            f"--list-errors {text!r} is neither 'auto' nor a rate of 0 or more, below 1"
        )
    return rate


def given_rate(rate: float) -> Rate:
    """A rate that nobody estimated."""
    return Rate(rate, rate, rate, estimated=False)


def next_rate(absent: Floats) -> float:
    """The rate that these probabilities of absence speak for."""
    return (float(absent.sum()) + ERRORS) / (len(absent) + ERRORS + LISTINGS)


def estimate_rate(absent: Callable[[float], Floats]) -> Rate:
    """The rate of list errors; `absent` maps a rate to the probabilities that certain people are
    absent."""

    def step(rate: float) -> tuple[float, Floats]:
        chance = absent(rate)
        return next_rate(chance), chance

    rate = FIRST
    for _ in range(ROUNDS):
        once, chance = step(rate)
        if abs(once - rate) <= SETTLED * once:
            return _with_interval(once, chance)
        twice, chance = step(once)
        if abs(twice - once) <= SETTLED * twice:
            return _with_interval(twice, chance)
        rate = _further(rate, once, twice)
    return _with_interval(rate, absent(rate))


def _further(rate: float, once: float, twice: float) -> float:
    """Where steps that shrink by the same factor would end, in logarithms (Aitken): EM alone takes
    many small steps where errors are few."""
    first, second = np.log(once / rate), np.log(twice / once)
    shrink = min(max(second / first, 0.0), FASTEST)
    return float(min(twice * np.exp(second * shrink / (1.0 - shrink)), LARGEST))


def _with_interval(rate: float, chance: Floats) -> Rate:
    """What the listings that were told by their voices leave open of the rate."""
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    spread = rate * (1.0 - rate)
    told = float(np.clip(1.0 - chance * (1.0 - chance) / spread, 0.0, 1.0).sum())
    weight = told + ERRORS + LISTINGS
    ends = betaincinv(
        rate * weight, weight * (1.0 - rate), [(1.0 - COVERED) / 2.0, (1.0 + COVERED) / 2.0]
    )
    low, high = (float(end) for end in ends)
    return Rate(rate, low, high, True, float(chance.sum()), told)
