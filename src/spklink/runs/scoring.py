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
from spklink.calibration.frequent import (
    FrequentVoices,
    by_sound,
    candidate_chances,
    sampled_links,
)
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent
from spklink.database.links import Links, joined, needed_sides
from spklink.hands import ALONE, Hands
from spklink.recognizers import background, link_wccn, normalise
from spklink.recognizers.centre import balanced_mean
from spklink.recognizers.products import (
    Cosine,
    InnerProduct,
    LaidTable,
    pair_scores,
    unit_vectors,
)
from spklink.recognizers.products import table as score_table
from spklink.recognizers.sums import Comparison, compared_by
from spklink.recognizers.training import Trained, Trainer
from spklink.scores.needed import SideScores, known_non_targets, no_side_scores
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
    hands: Hands
    centre: Cosine | None = None  # instead of the recognizer's, see `balanced`
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
        scores = pair_scores(product, vectors, row[side_1], row[side_2], hands=self.hands)
        if self.normaliser is not None:
            scores = self.normaliser.apply(scores, side_1, side_2)
        return scores if self.again is None else scores + self.again.scores(side_1, side_2)

    @property
    def near(self) -> int:
        """How many threads of this process may be at work."""
        return self.hands.worth(0.0).count

    def _compared(self) -> tuple[InnerProduct, Singles, Sides]:
        """How vectors are compared, the vectors, and the row of each side among them."""
        assert self.trained is not None
        product = self.centre or self.trained.recognizer.product
        return product, self.trained.vectors, self.trained.row

    def balanced(self, frequent: Frequent) -> Scorer:
        """With voices seen from a middle that nobody's many sides have moved."""
        if self.trained is None:
            return self
        product, vectors, row = self._compared()
        if not isinstance(product, Cosine):
            return self
        mean = balanced_mean(self.conversations, frequent, vectors, row, self.sound.usable)
        return self if mean is None else replace(self, centre=Cosine(mean))

    def table(self, rows: Sides, columns: Sides) -> Singles:
        """(rows, columns) the recognizer's own scores between two lists of sides."""
        product, vectors, row = self._compared()
        return score_table(product, vectors, row[rows], row[columns], hands=self.hands)

    def normalised(self) -> Scorer:
        """With scores set against those with strangers."""
        if self.trained is None:
            return self
        product, vectors, row = self._compared()
        fitted = normalise.fit(
            replace(self, hands=ALONE).table,  # every hand takes a table
            self.conversations,
            self.sound.usable,
            seed=self.seed,
            order=self.sound.order,
            threads=self.near,
            divided=normalise.Divided(
                self.hands, lambda by: LaidTable.of(product, vectors, by), row, product.depth
            ),
        )
        return replace(self, normaliser=fitted)

    def with_background(self, trainer: Trainer) -> Scorer:
        """Comparing voices also as the labelled background of the trainer teaches."""
        if self.trained is None:
            return self
        taught = background.fit(
            self.trained.recognizer, self.sound, self.conversations, self.units(), trainer
        )
        return replace(self, again=taught)

    def units(self) -> link_wccn.Units:
        """Unit vectors of sides."""
        product, vectors, row = self._compared()
        return lambda sides: unit_vectors(product, vectors, row[sides])

    def everything(self) -> SideScores:
        """The scores of all pairs of sides."""
        side_1, side_2 = np.triu_indices(len(self.sound.usable), 1)
        return SideScores(side_1, side_2, self(side_1, side_2))

    def voices(self, frequent: Frequent) -> FrequentVoices | None:
        """Those of people whose pairs are not listed; None where there are none."""
        if not len(frequent) or self.trained is None:
            return None
        product, vectors, row = self._compared()
        first = compared_by(product, vectors, row, self.normaliser)

        def of(person: int) -> tuple[Comparison, ...]:
            return (first,) if self.again is None else (first, self.again.comparison(person))

        place = np.argsort(self.sound.order)
        return FrequentVoices(
            table=self.conversations,
            frequent=by_sound(self.conversations, frequent, place),
            comparisons=of,
            usable=self.sound.usable,
            seconds=self.sound.known_seconds(),
            width=product.depth,
            threads=self.near,
        )

    def sampled(self, frequent: Frequent) -> Pairs:
        """Scores of some pairs of people whose pairs are not listed."""
        table, place = self.conversations, np.argsort(self.sound.order)
        rng = np.random.default_rng([self.seed, 2])
        links, times = sampled_links(table, by_sound(table, frequent, place), rng)
        made = make_pairs(
            *(table, links, self(*needed_sides(links, table.sides)), no_side_scores()),
            seconds=self.sound.known_seconds(),
            usable=self.sound.usable,
        )
        return replace(made, times=times[link_wccn.link_of_candidates(links, table.sides)])

    def pairs(self, links: Links) -> Pairs:
        """Scores of the needed pairs, and of a sample of pairs that are certainly different."""
        table, usable = self.conversations, self.sound.usable
        rng = np.random.default_rng([self.seed, 1])
        others = known_non_targets(table, rng, usable, self.sound.order)
        needed = needed_sides(links, table.sides)
        both = (np.concatenate([one, two]) for one, two in zip(needed, others, strict=True))
        scores = self(*both)  # at once: they lie in the same tiles
        return make_pairs(
            table,
            links,
            scores[: len(needed[0])],
            SideScores(*others, scores[len(needed[0]) :]),
            seconds=self.sound.known_seconds(),
            usable=usable,
        )

    def taught(self, pairs: Pairs, found: Calibrated, back_end: str) -> Scorer | str:
        """Comparing voices again as the links teach; or why not."""
        links, some = pairs.links, pairs.sample
        same = found.answer.candidate_probabilities(links) * pairs.usable[pairs.candidates]
        if some is not None and some.times is not None and found.chance is not None:
            drawn = candidate_chances(self.conversations, some.links, found.chance)
            drawn = drawn * some.times * some.usable[some.candidates]
            links, same = joined(links, some.links), np.concatenate([same, drawn])
        again = link_wccn.fit(
            self.conversations,
            links,
            same,
            self.units(),
            self.sound.usable,
            seed=self.seed,
            order=self.sound.order,
            back_end=back_end,
            threads=self.near,
            speaker=found.answer.speaker(),
            hands=self.hands,
        )
        return again if isinstance(again, str) else replace(self, again=again)

    def added(self, pairs: Pairs) -> Pairs:
        """The same pairs with what the second comparison says of them."""
        assert self.again is not None
        one, two = needed_sides(pairs.links, self.conversations.sides)
        others = pairs.non_targets
        more = self.again.scores(one, two), self.again.scores(others.side_1, others.side_2)
        if pairs.sample is None:
            return pairs.added(*more)
        drawn = needed_sides(pairs.sample.links, self.conversations.sides)
        return pairs.added(*more, self.again.scores(*drawn))
