"""Whether new conversations still look like those that a model was learned on.

Of every conversation four numbers are taken: the mean mu of its sides and the mean logarithm of
their sigma (how they score with strangers before normalisation), the mean final score of its sides
with people who are certainly others, and the mean final score of those that the posterior takes for
one person. A model remembers mean and spread of each over its own conversations. New ones have
drifted where the mean of one number is both
  further away than FAR of that spread: what is less changes no answer that matters, and
  further than SURE standard errors: it is no accident.
Calls of one person are alike, so as many as there are different people count as independent, at
most. The numbers of conversations that a model was not learned on are looked at together, however
many runs ago they came; a model that has seen fewer than 1/GROWTH of all is renewed in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.database.links import needed_sides
from spklink.runs.kept_scores import layers_of
from spklink.runs.scoring import Scorer

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
GROWTH = 1.5  # conversations for each that a model was learned on. A choice
# Spreads. Chosen on the calls of one half of the speakers (examples/drift.py): calls as before
# move by up to 1.65 where a recognizer was trained on few calls, which it knows better than any
# later one; a line that is cut at 1500 or 800 Hz moves them by 2.9 to 6.4. With the calls of the
# others, more than twice as many, it is 1.07, and 3.9 to 4.6 at 800 Hz; 1500 Hz moves no score
# there further than new calls do anyway, so nothing is renewed.
FAR = 2.0
SURE = 4.0  # standard errors. A choice: one accident in 16,000, as there are many looks
FEWEST = 8  # different people in the new conversations: fewer tell nothing
NUMBERS = (
    "scores with strangers before normalisation",
    "spread of scores with strangers",
    "scores of different people",
    "scores of one person",
)


def numbers(table: Conversations, scorer: Scorer, pairs: Pairs, same: Floats) -> Floats:
    """(4, M) of every conversation; NaN where it has none. `same` (C,) is how probable candidates
    are one person."""
    call = table.sides.conversation
    found = np.full((len(NUMBERS), len(table)), np.nan)
    layers = layers_of(scorer)
    if layers and not layers[0].reason:
        good = np.flatnonzero(scorer.sound.usable)
        for k, values in enumerate((layers[0].centre, np.log(layers[0].scale))):
            found[k] = _mean(call[good], values[good], np.ones(len(good)), len(table))
    others = pairs.non_targets
    ends = np.concatenate([call[others.side_1], call[others.side_2]])
    twice = np.concatenate([others.score, others.score])
    found[2] = _mean(ends, twice, np.ones(len(twice)), len(table))
    one, two = (call[side][pairs.candidates] for side in needed_sides(pairs.links, table.sides))
    score = pairs.scores[pairs.candidates]
    both, weight = np.concatenate([score, score]), np.concatenate([same, same])
    found[3] = _mean(np.concatenate([one, two]), both, weight, len(table))
    return found


def _mean(label: NDArray[Any], values: Floats, weight: Floats, count: int) -> Floats:
    total, size = sums(label, weight * values, count), sums(label, weight, count)
    return np.where(size > 0.5, total / np.maximum(size, 0.5), np.nan)


def reference(found: Floats) -> Floats:
    """(4, 2) mean and spread of the numbers; NaN where there is none."""
    rows = []
    for row in found:
        there = row[~np.isnan(row)]
        rows.append([there.mean(), there.std()] if len(there) > 1 else [np.nan, np.nan])
    return np.array(rows)


@dataclass(frozen=True)
class Drift:
    """How far new conversations are from the old ones, number by number."""

    far: Floats  # (4,) in spreads
    sure: Floats  # (4,) in standard errors
    people: int

    @property
    def why(self) -> str:
        """What has drifted, in words; nothing where nothing has."""
        drifted = np.flatnonzero((np.abs(self.far) > FAR) & (np.abs(self.sure) > SURE))
        if self.people < FEWEST or not len(drifted):
            return ""
        k = int(drifted[np.argmax(np.abs(self.far[drifted]))])
        return (
            f"new conversations do not look like those it was learned on: {NUMBERS[k]} moved by "
            f"{self.far[k]:+.1f} of their spread"
        )


def drift_of(table: Conversations, found: Floats, new: Mask, known: Floats) -> Drift:
    """New conversations (M,) held against the reference of a model."""
    people = len(np.unique(table.people[new[table.listing.conversation]]))
    far, sure = np.zeros((2, len(known)))
    for k, (mean, spread) in enumerate(known.tolist()):
        own = found[k][new]
        own = own[~np.isnan(own)]
        if len(own) and spread > 0.0:
            far[k] = (own.mean() - mean) / spread
            sure[k] = far[k] * np.sqrt(min(people, len(own)))
    return Drift(far, sure, people)


def grown(conversations: int, learned_on: int) -> str:
    """Why a model is too old for so many conversations; nothing where it is not."""
    if conversations <= GROWTH * learned_on:
        return ""
    return f"{conversations:,} conversations now, learned on {learned_on:,}"
