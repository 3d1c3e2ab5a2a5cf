"""Scores that somebody else computed, on their way through `link`: normalised where enough scores
with strangers are given, compared once only, as that is all that scores allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.pairs import Pairs, make_pairs
from spklink.database.conversations import Conversations
from spklink.database.links import Links, needed_sides
from spklink.recognizers import normalise
from spklink.scores.crowd import Crowd, pool_size
from spklink.scores.files import read_scores
from spklink.scores.lookup import Lookup
from spklink.scores.needed import Scores, SideScores, needed_and
from spklink.sound.given import given_sound, marked
from spklink.sound.listening import Sound
from spklink.sound.speech_table import SpeechTable

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
ONCE = (
    "voices are not compared a second time (link-WCCN): that needs vectors, and scores were given; "
    "give --embeddings if there are any"
)


@dataclass(frozen=True)
class GivenScorer:
    """Scores of pairs of sides, as given; NaN where none was."""

    conversations: Conversations
    sound: Sound
    scores: Scores
    crowd: Crowd
    kept: Lookup
    seed: int
    again: bool  # whether a second comparison was wanted
    normaliser: normalise.Normaliser | None = None

    @property
    def note(self) -> str:
        """What could not be done, and why."""
        reason = "" if self.normaliser is None else self.normaliser.reason
        if reason:
            reason += " in the file of scores"
        return "; ".join(filter(None, [reason, ONCE if self.again else ""]))

    def __call__(self, side_1: Sides, side_2: Sides) -> Floats:
        found = self.kept(side_1, side_2)
        found = np.where(np.isnan(found), self.crowd(side_1, side_2), found)
        return found if self.normaliser is None else self.normaliser.apply(found, side_1, side_2)

    def normalised(self) -> GivenScorer:
        """With scores set against those with strangers."""
        fitted = normalise.fit(
            self.crowd.between,
            self.conversations,
            self.sound.usable,
            seed=self.seed,
            order=self.sound.order,
            pool=self.crowd.pool,
        )
        return replace(self, normaliser=fitted)

    def everything(self) -> SideScores:
        """All scores that are known."""
        side_1, side_2 = np.triu_indices(len(self.sound.usable), 1)
        scores = self(side_1, side_2)
        return SideScores(side_1, side_2, scores).chosen(~np.isnan(scores))

    def pairs(self, links: Links) -> Pairs:
        """Scores of the needed pairs, and of pairs that are certainly different."""
        table, others = self.conversations, self.scores.non_targets
        needed = self(*needed_sides(links, table.sides))
        return make_pairs(
            table,
            links,
            np.nan_to_num(needed),  # missing ones are of sides that are not used
            others.scored(self(others.side_1, others.side_2)),
            seconds=self.sound.known_seconds(),
            usable=self.sound.usable,
        )


def score_sides(conversations: Conversations, speech: SpeechTable | None, least: float) -> Sound:
    """The sides of a table whose scores are given."""
    ids, sides = conversations.ids, conversations.sides
    names = zip(sides.conversation.tolist(), sides.position.tolist(), strict=True)
    hashes = [sha256(f"{k} {ids[m]}".encode()).hexdigest() for m, k in names]
    seconds, marks = marked(len(sides), {}, speech, least)
    return given_sound(conversations, hashes, seconds=seconds, marks=marks, problems={})


def given_scorer(
    scores: Any, conversations: Conversations, links: Links, sound: Sound, *, seed: int, again: bool
) -> GivenScorer:
    """The scores of a file, read once."""
    count = len(conversations.sides)
    limit = pool_size(count, normalise.POOL)
    pool = normalise.choose_pool(sound.usable, limit, seed, sound.order)
    crowd = Crowd(count, pool)
    found = read_scores(scores, conversations, links, crowd.observe, sound.usable)
    kept = needed_and(conversations, links, found.needed, found.non_targets)
    known = kept.chosen(~np.isnan(kept.score))
    return GivenScorer(
        conversations, sound, found, crowd, Lookup(known, count), seed=seed, again=again
    )
