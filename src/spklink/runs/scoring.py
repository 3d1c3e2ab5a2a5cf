"""Scores of a run: by the recognizer, normalised, and compared again as links teach.

The recognizer knows nothing of this: normalisation and the second comparison are steps of the
recipe, done with any recognizer's vectors.

Whatever is drawn, multiplied or added up goes by the order of the sound (`Sound.order`), so that
the answer is the same for any order of the rows, any names and channels the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.choice import Calibrated
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.database.conversations import Conversations
from spklink.database.links import Links, needed_sides
from spklink.recognizers import background, link_wccn, normalise
from spklink.recognizers.products import InnerProduct, pair_scores, unit_vectors
from spklink.recognizers.products import table as score_table
from spklink.recognizers.training import Trained, Trainer
from spklink.scores.needed import SideScores, known_non_targets
from spklink.sound.listening import Sound

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]


@dataclass(frozen=True)
class Scorer:
    """Scores pairs of sides."""

    conversations: Conversations
    sound: Sound
    trained: Trained | None  # None where no side could be used
    seed: int
    threads: int
    normaliser: normalise.Normaliser | None = None
    again: link_wccn.LinkScorer | background.BackgroundScorer | None = None

    @property
    def note(self) -> str:
        """What a person should know."""
        if self.trained is None:
            return "no side of any recording could be used: nothing is known of any channel"
        return "" if self.normaliser is None else self.normaliser.reason

    def __call__(self, side_1: Sides, side_2: Sides) -> Floats:
        if self.trained is None:
            return np.zeros(len(side_1))
        product, vectors, row = self._compared()
        scores = pair_scores(product, vectors, row[side_1], row[side_2], threads=self.threads)
        if self.normaliser is not None:
            scores = self.normaliser.apply(scores, side_1, side_2)
        return scores if self.again is None else scores + self.again.scores(side_1, side_2)

    def _compared(self) -> tuple[InnerProduct, Singles, Sides]:
        """How vectors are compared, the vectors, and the row of each side among them."""
        assert self.trained is not None
        return self.trained.recognizer.product, self.trained.vectors, self.trained.row

    def normalised(self) -> Scorer:
        """With scores set against those with strangers."""
        if self.trained is None:
            return self
        product, vectors, row = self._compared()
        fitted = normalise.fit(
            lambda rows, columns: score_table(
                product, vectors, row[rows], row[columns], threads=self.threads
            ),
            self.conversations,
            self.sound.usable,
            seed=self.seed,
            order=self.sound.order,
        )
        return replace(self, normaliser=fitted)

    def with_background(self, trainer: Trainer) -> Scorer:
        """Comparing voices also as the labelled background of the trainer teaches."""
        if self.trained is None:
            return self
        taught = background.fit(
            self.trained.recognizer, self.sound, self.conversations, self._units(), trainer
        )
        return replace(self, again=taught)

    def _units(self) -> link_wccn.Units:
        """Unit vectors of sides."""
        product, vectors, row = self._compared()
        return lambda sides: unit_vectors(product, vectors, row[sides])

    def everything(self) -> SideScores:
        """The scores of all pairs of sides."""
        side_1, side_2 = np.triu_indices(len(self.sound.usable), 1)
        return SideScores(side_1, side_2, self(side_1, side_2))

    def pairs(self, links: Links) -> Pairs:
        """Scores of the needed pairs, and of a sample of pairs that are certainly different."""
        table, usable = self.conversations, self.sound.usable
        rng = np.random.default_rng([self.seed, 1])
        others = known_non_targets(table, rng, usable, self.sound.order)
        return make_pairs(
            table,
            links,
            self(*needed_sides(links, table.sides)),
            SideScores(*others, self(*others)),
            seconds=self.sound.known_seconds(),
            usable=usable,
        )

    def taught(self, pairs: Pairs, found: Calibrated, back_end: str) -> Scorer | str:
        """Comparing voices again as the links teach; or why not."""
        links = pairs.links
        same = found.posterior.candidate_probabilities(links) * pairs.usable[pairs.candidates]
        again = link_wccn.fit(
            self.conversations,
            links,
            same,
            self._units(),
            self.sound.usable,
            seed=self.seed,
            order=self.sound.order,
            back_end=back_end,
        )
        return again if isinstance(again, str) else replace(self, again=again)

    def added(self, pairs: Pairs) -> Pairs:
        """The same pairs with what the second comparison says of them."""
        assert self.again is not None
        one, two = needed_sides(pairs.links, self.conversations.sides)
        others = pairs.non_targets
        more = self.again.scores(one, two), self.again.scores(others.side_1, others.side_2)
        return pairs.added(*more)
