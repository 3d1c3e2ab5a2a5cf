"""Calibration where nobody is listed: which sides are one person is learned together with it.

Sides are linked under the current calibration; pairs within blocks are then taken for one person,
all others for two, and the line that suits them (the paper's: two normal laws of one variance) is
the next calibration, until no side changes its block. What certainly are two people (the sides of a
call, where that is known) gives the units of the start.

This rests on the mixture of two kinds of pairs alone: no list vouches for it. How far it is from
what the truth would teach stands in docs/partitions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration, Line
from spklink.calibration.fitting import TooLittleError, Trials, fit, standard
from spklink.partitions.agglomerative import agglomerate
from spklink.partitions.items import Ints, make_items, make_problem
from spklink.posterior.likelihood import Weight

Floats = NDArray[np.float64]
Link = Callable[[Calibration], Ints]  # the block of every side under a calibration of its scores
KIND = "cmlg"  # a line by logistic regression came out over-confident (docs/partitions.md)
FEWEST_SIDES = 40  # a choice, from sets of real calls: fewer have too few pairs of one person
FEWEST_PAIRS = 10  # of one person
ROUNDS = 30
START = 1.0  # scale, a standard deviation of different people; the end does not depend on it
OFFSET = -2.0  # in these units: pairs up to two deviations above the middle are two people


@dataclass(frozen=True)
class Learned:
    """A calibration, and how it came about."""

    calibration: Calibration
    rounds: int
    settled: bool
    same: int  # pairs taken for one person

    def as_json(self) -> dict[str, Any]:
        return {
            "rounds": self.rounds,
            "converged": self.settled,
            "expected_targets": float(self.same),
        }


def first_guess(scores: Floats, why: str) -> Line:
    """Where learning begins, and all there is where it cannot: a guess, and said so."""
    try:
        centre, spread = standard(scores)
    except TooLittleError:
        centre, spread = float(scores.mean()) if len(scores) else 0.0, np.inf
    scale = START / spread
    source = f"probabilities are not calibrated: {why}"
    return Line(scale, OFFSET * START - scale * centre, kind="default", source=source)


def learn(link: Link, pairs_of: Callable[[Ints], tuple[Floats, Floats]], others: Floats) -> Learned:
    """`link` partitions under a calibration, `pairs_of` gives scores of one person and of two under
    a partition; `others` are scores of (nearly) certainly different people."""
    centre, spread = standard(others)
    line: Calibration = Line(START, OFFSET * START, kind=KIND).unstandardised(centre, spread)
    before: Ints | None = None
    settled, rounds = False, 0
    while rounds < ROUNDS and not settled:
        label, rounds = link(line), rounds + 1
        settled = before is not None and bool((label == before).all())
        same, other = pairs_of(label)
        if len(same) < FEWEST_PAIRS:
            raise TooLittleError(
                f"calibration without lists needs voices that come again; found {len(same)} pairs "
                "of sides that could be one person"
            )
        scores = (np.concatenate([same, other]) - centre) / spread
        weight = np.repeat([1.0, 0.0], [len(same), len(other)])
        trials = Trials(scores, weight, 1.0 - weight)
        line = fit(trials, KIND, source="labelfree").unstandardised(centre, spread)
        before = label
    return Learned(line, rounds, settled, len(same))


def learn_dense(scores: Floats, apart: Ints | None, weight: Weight) -> Learned:
    """From the scores (S, S) of all pairs of sides."""
    sides = len(scores)
    if sides < FEWEST_SIDES:
        raise TooLittleError(
            f"calibration without lists needs at least {FEWEST_SIDES} sides; found {sides}"
        )
    upper = np.triu_indices(sides, 1)
    every = scores[upper]

    def link(line: Calibration) -> Ints:
        return agglomerate(make_problem(make_items(line(scores), apart=apart), weight))

    def pairs_of(label: Ints) -> tuple[Floats, Floats]:
        same = label[upper[0]] == label[upper[1]]
        return every[same], every[~same]

    known = every if apart is None or len(apart) < FEWEST_SIDES else scores[tuple(apart.T)]
    return learn(link, pairs_of, known)
