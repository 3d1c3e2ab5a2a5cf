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
ROUNDS = 24  # at most
SETTLED = 0.02  # by this share of itself the rate may still move, all steps to come together
SLOWEST = 0.99  # of the step before, that a step may seem to be
FURTHEST = 3.0  # in logarithms: a step that is predicted
NEAR = 1e-3  # in logarithms: rates that are too close to tell how steps shrink
HIGHER = 1.5  # times the rate: where the expected absences are looked at once more
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
    listings: float = 0.0  # as many that were told for certain would say as much

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


@dataclass(frozen=True)
class _Step:
    """One step of EM."""

    rate: float  # that was assumed
    chance: Floats  # of absence, at that rate

    @property
    def once(self) -> float:
        """The rate after it."""
        return next_rate(self.chance)

    @property
    def length(self) -> float:
        """In logarithms."""
        return float(np.log(self.once / self.rate))

    def shrink(self, before: _Step, known: float) -> float:
        """The factor by which steps shrink, from two of them."""
        apart = float(np.log(self.rate / before.rate))
        if abs(apart) < NEAR:
            return known
        return min(max(float(np.log(self.once / before.once)) / apart, 0.0), SLOWEST)

    def further(self, shrink: float) -> float:
        """Where steps that shrink by this factor would end: EM alone takes many small steps where
        errors are few, or few voices speak of them."""
        length = np.clip(self.length / (1.0 - shrink), -FURTHEST, FURTHEST)
        return float(min(self.rate * np.exp(length), LARGEST))


def estimate_rate(absent: Callable[[float], Floats]) -> Rate:
    """The rate of list errors; `absent` maps a rate to the probabilities that certain people are
    absent."""
    before, shrink = _Step(FIRST, absent(FIRST)), SLOWEST
    now = _Step(before.once, absent(before.once))
    for _ in range(ROUNDS):
        shrink = now.shrink(before, shrink)
        if abs(now.length) <= SETTLED * (1.0 - shrink):  # so much for all steps to come together
            break
        after = now.further(shrink)
        before, now = now, _Step(after, absent(after))
    return _with_interval(now, absent(HIGHER * now.rate))


def _with_interval(last: _Step, higher: Floats) -> Rate:
    """What the voices leave open of the rate. A listing of which they tell nothing is absent as
    often as the rate says. So the less expected absences grow with the rate (`higher`: at that many
    times the last), the more the voices tell: one minus the factor by which the steps of EM shrink
    is the share of the information that is not missing."""
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    rate, count = last.once, len(last.chance) + ERRORS + LISTINGS
    growth = float(higher.sum() - last.chance.sum()) / ((HIGHER - 1.0) * last.rate)
    weight = float(np.clip(count - growth, ERRORS + LISTINGS, count))
    ends = betaincinv(
        rate * weight, weight * (1.0 - rate), [(1.0 - COVERED) / 2.0, (1.0 + COVERED) / 2.0]
    )
    low, high = (float(end) for end in ends)
    told = weight - ERRORS - LISTINGS
    return Rate(rate, low, high, True, float(last.chance.sum()), told)
