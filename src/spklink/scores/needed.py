"""Scores between sides: those that are needed, and a sample of certainly different people.

The side pairs of every two conversations that share a speaker are needed (module `links` numbers
them); all others are checked and passed over, never held, but for a sample of *known non-targets*.
Needed scores are flat, (P,), in the order of `links.needed_sides`; all others are `SideScores` from
where they are made or read to where they are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.links import Links, needed_sides
from spklink.database.sides import certainly_different

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
NON_TARGETS = 20_000  # known non-target pairs sampled at most, and at most 11 a conversation


# Far beyond what any recognizer says, and squares of it are still numbers.
LARGEST = 1e100


def bounded(score: NDArray[Any]) -> Mask:
    """Which scores can be computed with: finite, and not absurdly large."""
    return np.asarray(np.abs(score) <= LARGEST)


def no_score(value: float) -> str:
    """What is wrong with one that cannot."""
    return f"is {value}, not a finite number" + (
        f" up to {LARGEST:g}" if np.isfinite(value) else ""
    )


@dataclass(frozen=True)
class SideScores:
    """Scores of pairs of sides."""

    side_1: Sides
    side_2: Sides
    score: Floats

    def __len__(self) -> int:
        return len(self.score)

    def chosen(self, mask: Mask) -> SideScores:
        """Some of them."""
        return SideScores(self.side_1[mask], self.side_2[mask], self.score[mask])

    def scored(self, score: Floats) -> SideScores:
        """The same sides with other scores."""
        return replace(self, score=score)


def no_side_scores() -> SideScores:
    none = np.zeros(0, np.int64)
    return SideScores(none, none, np.zeros(0))


@dataclass(frozen=True)
class Scores:
    """The needed scores, and a sample of known non-targets."""

    needed: Floats  # (P,)
    others: int = 0  # scores in the file that no pair needs
    non_targets: SideScores = field(default_factory=no_side_scores)  # certainly different people


def needed_and(
    conversations: Conversations, links: Links, needed: Floats, others: SideScores
) -> SideScores:
    """The scores of the needed pairs, then others, as one list."""
    one, two = needed_sides(links, conversations.sides)
    return SideScores(
        np.concatenate([one, others.side_1]),
        np.concatenate([two, others.side_2]),
        np.concatenate([needed, others.score]),
    )


def known_non_targets(
    conversations: Conversations,
    rng: np.random.Generator,
    usable: Mask | None = None,
    order: Sides | None = None,
) -> tuple[Sides, Sides]:
    """A sample of side pairs that are certainly different people: some of conversations that share
    no participant, then the sides of every conversation. `usable` leaves out sides; `order` lists
    all sides in the order they are drawn from."""
    numbers = conversations.sides
    good = np.ones(len(numbers), np.bool_) if usable is None else usable
    order = np.arange(len(numbers)) if order is None else order
    places = np.flatnonzero(good[order])
    if not len(places):
        return places, places
    wanted = min(NON_TARGETS, 10 * len(conversations))
    drawn = places[rng.integers(0, len(places), (2, 2 * wanted))]
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    apart = numbers.conversation_of(order[low]) != numbers.conversation_of(order[high])
    apart &= certainly_different(conversations, order[low], order[high])
    width = np.int64(len(numbers))
    pairs = rng.permutation(np.unique((low * width + high)[apart]))[:wanted]
    if conversations.split:  # two tracks of a conversation may be one person
        return order[pairs // width], order[pairs % width]
    one, two = _within(conversations, good, order)
    return (
        np.concatenate([order[pairs // width], one]),
        np.concatenate([order[pairs % width], two]),
    )


def _within(conversations: Conversations, good: Mask, order: Sides) -> tuple[Sides, Sides]:
    """Pairs of good sides of one conversation, of the first ones where there are very many."""
    sides = conversations.sides
    side = np.arange(len(sides))
    later = sides.start[sides.conversation + 1] - side - 1
    one, two = np.repeat(side, later), ranges(side + 1, later)
    both = np.flatnonzero(good[one] & good[two])
    place = np.empty(len(sides), np.int64)
    place[order] = side
    first, second = place[one[both]], place[two[both]]
    by_order = np.lexsort([np.maximum(first, second), np.minimum(first, second)])
    both = both[by_order][:NON_TARGETS]
    return one[both], two[both]
