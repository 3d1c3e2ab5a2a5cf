"""What calibration learns from: scores of linked conversations, and of different people."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration, pair_speech
from spklink.database.conversations import Conversations
from spklink.database.links import Links, candidates, needed_sides
from spklink.scores.needed import SideScores

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Pairs:
    """Needed side pairs (P,) and known non-targets, with the speech in them where it is known."""

    links: Links
    candidates: NDArray[np.int64]  # (C,) the needed pairs of every link, one link after the other
    scores: Floats  # (P,)
    usable: Mask  # (P,)
    non_targets: SideScores
    speech: Floats | None = None  # (P,), see module `curves`
    non_target_speech: Floats | None = None
    # Of people whose links are not listed (module `frequent`) some, drawn to learn from; and, of
    # such pairs, for how many each candidate stands.
    sample: Pairs | None = None
    times: Floats | None = None  # (C,)

    def calibrated(self, calibration: Calibration) -> Floats:
        """(P,) log-likelihood-ratios; 0 where a side is not usable."""
        return np.where(self.usable, calibration(self.scores, self.speech), 0.0)

    def calibrated_non_targets(self, calibration: Calibration) -> SideScores:
        score = calibration(self.non_targets.score, self.non_target_speech)
        return self.non_targets.scored(score)

    def added(self, needed: Floats, non_targets: Floats, sampled: Floats | None = None) -> Pairs:
        """The same pairs with something added to every score."""
        others = self.non_targets.scored(self.non_targets.score + non_targets)
        some = self.sample
        if some is not None and sampled is not None:
            some = replace(some, scores=some.scores + sampled)
        return replace(self, scores=self.scores + needed, non_targets=others, sample=some)

    def standardised(self, centre: float, spread: float) -> Pairs:
        """The same pairs in other units."""
        others = self.non_targets.scored((self.non_targets.score - centre) / spread)
        some = None if self.sample is None else self.sample.standardised(centre, spread)
        scores = (self.scores - centre) / spread
        return replace(self, scores=scores, non_targets=others, sample=some)


def make_pairs(
    conversations: Conversations,
    links: Links,
    scores: Floats,
    non_targets: SideScores,
    *,
    seconds: Floats | None = None,
    usable: Mask | None = None,
) -> Pairs:
    """`seconds` of speech and whether it can be used, a side, where they are known; non-targets
    with a side that cannot be used are left out."""
    sides = conversations.sides
    places = candidates(links, sides)
    if usable is None:
        return Pairs(links, places, scores, np.ones(len(scores), np.bool_), non_targets)
    one, two = needed_sides(links, sides)
    non_targets = non_targets.chosen(usable[non_targets.side_1] & usable[non_targets.side_2])
    return Pairs(
        links=links,
        candidates=places,
        scores=scores,
        usable=usable[one] & usable[two],
        non_targets=non_targets,
        speech=None if seconds is None else pair_speech(seconds, one, two),
        non_target_speech=None
        if seconds is None
        else pair_speech(seconds, non_targets.side_1, non_targets.side_2),
    )
