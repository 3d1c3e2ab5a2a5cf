"""Frequent voices once more, from where an earlier run left them: what new conversations change.

A frequent person's sums are made from the probabilities of all his conversations. They are made
anew only where that matters: where he has other conversations than before, or where the probability
of one of his seats is further than SETTLED from the one his sums were made from. That is the bound
at which a run without a past stops as well (module `settling`), so both are as close to a settled
state; all other sums stay as they were, number by number.

Index conventions: seats as in `Conversations.cues`, f = frequent person in the order of the sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.settling import (
    PLAIN,
    ROUNDS,
    SETTLED,
    Problem,
    Settling,
    seat_chances,
)
from spklink.posterior.likelihood import Weight

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
NOBODY = -1


@dataclass(frozen=True)
class Sums:
    """What frequent voices add to every seat, and from which probabilities that was made."""

    sums: Floats  # (seats,)
    base: Floats  # (seats,)
    stale: Mask  # (F,) people whose sums have to be made anew


def owners(voices: FrequentVoices) -> NDArray[np.int64]:
    """(seats,) whose seat it is, or NOBODY frequent."""
    found = np.full(len(voices.uniform), NOBODY, np.int64)
    for f in range(len(voices.frequent)):
        found[voices.places(f)[0]] = f
    return found


def resettled(
    problem: Problem, weight: Weight, llr: Floats, curve: Calibration, before: Sums
) -> Sums:
    """Settled sums, and what they were made from; nobody is stale but where it went to and fro to
    the end."""
    voices, solve = problem.voices, Settling(problem, weight).solver.of(llr)
    owner, count = owners(voices), len(voices.frequent)
    sums, base, stale = before.sums.copy(), before.base.copy(), before.stale
    chance = base.copy()
    for k in range(ROUNDS):
        own = (owner >= 0) & stale[owner]
        made = voices.gains(curve, weight, chance, np.flatnonzero(stale).tolist())
        sums[own], base[own] = made[own], chance[own]
        new = seat_chances(solve(sums))
        far = (owner >= 0) & (np.abs(new - base) > SETTLED)
        stale = np.bincount(owner[far], minlength=count) > 0
        if not stale.any():
            break
        chance = new if k < PLAIN else (new + chance) / 2.0  # lest it goes to and fro
    return Sums(sums, base, stale)
