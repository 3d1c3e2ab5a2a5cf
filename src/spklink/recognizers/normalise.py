"""Scores of a side set against its scores with strangers: adaptive symmetric normalisation.

A side scores high with everyone or low with everyone, as its line and its noise have it. Its
*cohort* tells how: sides of calls that share no participant with its own call, so that all are
known to be other people (participants are told apart by name, whatever their group). With mu and
sigma the mean and standard deviation of the highest 15 % of its cohort scores,
  s'_ij = ((s_ij - mu_i)/sigma_i + (s_ij - mu_j)/sigma_j) / 2.

Where anybody may take part in a conversation (`?`, `*`, an empty list) no side is surely a
stranger's. Then sides of conversations that share no listed participant serve, and all of them, not
the highest 15 %, among which whoever is not listed would stand first.

Sides marked bad are in no cohort. Of many sides a seeded sample of POOL serves for all cohorts.
A side with fewer than SMALLEST strangers takes the medians of the others; where that holds for more
than half of the sides nothing is normalised, and `reason` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import Present, vague
from spklink.hands import Hands
from spklink.threads import in_order

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
Measured = tuple[Floats, Floats, Sides]  # mu, sigma and the number of strangers of some sides
Table = Callable[[Sides, Sides], Singles | Floats]  # scores between two lists of sides

# Sides. A choice: 300 highest scores tell mu and sigma of a side; the time grows with it.
POOL = 2000
# Strangers. A choice: below, seven highest scores or fewer would have to tell mu and sigma.
SMALLEST = 50
# A choice; measured on carved real calls as part of the default preset (examples/carved_tables.py),
# not varied by itself.
SHARE = 0.15
# Where lists have open ends. Chosen on the calls of one half of the speakers without their lists:
# fewer errors of pairs than with the highest 15 %, or with the lower part alone.
OPEN_SHARE = 1.0
SAMPLED = 4  # one score in so many tells where the highest begin, with
MARGIN = 1.6  # times as many to spare
ROWS = 1024  # sides at a time: a choice that bounds the memory
SPEED, SCORE = 2e10, 2e-8  # multiplications a second, and seconds a score beside: for predictions


@dataclass(frozen=True)
class Normaliser:
    """mu and sigma of each side; 0 and 1 for all where `reason` says why not."""

    centre: Floats  # (S,)
    scale: Floats  # (S,)
    strangers: Sides  # (S,) size of each cohort
    reason: str = ""

    def apply(self, scores: Floats, side_1: Sides, side_2: Sides) -> Floats:
        """Normalised scores of pairs of sides."""
        if self.reason:
            return scores
        one = (scores - self.centre[side_1]) / self.scale[side_1]
        two = (scores - self.centre[side_2]) / self.scale[side_2]
        return np.asarray((one + two) / 2.0, np.float64)


def fit(
    table: Callable[[Sides, Sides], Singles | Floats],
    conversations: Conversations,
    usable: Mask,
    *,
    seed: int,
    order: Sides | None = None,
    pool: Sides | None = None,
    threads: int = 1,
    divided: Divided | None = None,
) -> Normaliser:
    """mu and sigma of all sides.

    `table(rows, columns)` gives the scores between two lists of sides, a new array that has NaN
    where there is none; `usable` (S,) is false for bad sides; `order` lists all sides in the order
    they are drawn and worked on in; `pool` are the sides of all cohorts, where they are chosen
    already. Several `threads` ask for tables at a time; `divided` is whoever else may do it.
    """
    order = np.arange(len(usable)) if order is None else order
    sides, pool = len(usable), choose_pool(usable, POOL, seed, order) if pool is None else pool
    centre, scale = np.zeros(sides), np.ones(sides)
    size = np.zeros(sides, np.int64)
    cohorts = Cohorts.of(conversations, pool)
    blocks = [order[begin : begin + ROWS] for begin in range(0, sides, ROWS)]
    far = None if divided is None else divided.worth(sides, len(pool))
    if divided is None or far is None:
        found = in_order(lambda rows: cohorts.measure(table, rows), blocks, threads)
    else:
        found = divided.measured(far, cohorts, blocks)
    for rows, measured in zip(blocks, found, strict=True):
        centre[rows], scale[rows], size[rows] = measured
    return _settled(centre, scale, size, usable)


@dataclass(frozen=True)
class Cohorts:
    """The sides of a pool, as strangers of any others."""

    conversations: Conversations
    pool: Sides
    surely: bool  # nobody who is not listed may be on a side

    @classmethod
    def of(cls, conversations: Conversations, pool: Sides) -> Cohorts:
        return cls(conversations, pool, not vague(conversations).any())

    def measure(self, table: Callable[[Sides, Sides], Singles | Floats], rows: Sides) -> Measured:
        """mu, sigma and the number of strangers of a few sides; 0 and 1 where these are too few."""
        own, pool = (Present.of(self.conversations, sides) for sides in (rows, self.pool))
        return _measured(lambda: table(rows, self.pool), own, pool, self.surely)


def _measured(
    table: Callable[[], Singles | Floats], own: Present, pool: Present, surely: bool
) -> Measured:
    row, column = own.no_strangers(pool, surely=surely)
    there = len(pool.call) - np.bincount(row, minlength=len(own.call))
    if not (there >= SMALLEST).any():
        return np.zeros(len(own.call)), np.ones(len(own.call)), there
    scores = table()
    scores[row, column] = -np.inf
    if np.isnan(scores.max()):
        missing = np.isnan(scores)
        there = there - missing.sum(1)
        scores[missing] = -np.inf
    centre, scale = highest_moments(scores, there, SHARE if surely else OPEN_SHARE)
    return centre, scale, there


# --- by hands that are far ------------------------------------------------------------------------


@dataclass(frozen=True)
class Divided:
    """Cohorts measured on other machines, a block of sides at a time."""

    hands: Hands
    laid: Callable[[Hands], Table]  # arrays laid out for hands, as a table that travels
    row: Sides | None  # (S,) of each side among those arrays; None: its own number
    width: int  # of the arrays

    def worth(self, sides: int, pool: int) -> Hands | None:
        """Who should do it; None where that would not pay, laying out included."""
        seconds = float(sides) * pool * (SCORE + self.width / SPEED)
        hands = self.hands.worth(seconds, megabytes=sides * (4.0 * self.width + 24.0) / 1e6)
        return hands if hands.far else None

    def measured(self, hands: Hands, cohorts: Cohorts, blocks: list[Sides]) -> Iterator[Measured]:
        row = np.arange(len(cohorts.conversations.sides)) if self.row is None else self.row
        pool = Present.of(cohorts.conversations, cohorts.pool)
        work = _Far(self.laid(hands), row[cohorts.pool], pool, cohorts.surely)
        own = [(row[some], Present.of(cohorts.conversations, some)) for some in blocks]
        return hands.each(work, own)


@dataclass(frozen=True)
class _Far:
    """What travels; items are rows of the table, and who is there."""

    table: Table
    pool: Sides
    present: Present
    surely: bool

    def __call__(self, item: tuple[Sides, Present]) -> Measured:
        rows, own = item
        return _measured(lambda: self.table(rows, self.pool), own, self.present, self.surely)


def _settled(centre: Floats, scale: Floats, size: Sides, usable: Mask) -> Normaliser:
    """The medians for sides with a small cohort, or nothing for all."""
    known = usable & (size >= SMALLEST)
    if 2 * known.sum() < max(usable.sum(), 1):
        reason = (
            f"scores are not normalised: {usable.sum() - known.sum()} of {usable.sum()} sides "
            f"have fewer than {SMALLEST} sides of other people to be compared with"
        )
        return Normaliser(np.zeros(len(size)), np.ones(len(size)), size, reason)
    centre[size < SMALLEST] = np.median(centre[known])
    scale[size < SMALLEST] = np.median(scale[known])
    return Normaliser(centre, scale, size)


def choose_pool(usable: Mask, limit: int, seed: int, order: Sides) -> Sides:
    """The usable sides, or a sample of them, in the given order of all sides."""
    sides = order[usable[order]]
    if len(sides) > limit:
        drawn = np.random.default_rng(seed).choice(len(sides), limit, replace=False)
        sides = sides[np.sort(drawn)]
    return np.asarray(sides, np.int64)


def highest_moments(
    scores: Singles | Floats, there: Sides, share: float = SHARE
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the highest `share` (at least two) of the scores of each row;
    `there` (rows,) is how many it has, the others are -inf."""
    count = np.maximum(np.ceil(share * there - 1e-9), 2).astype(np.int64)
    count = np.minimum(count, there)
    most = max(int(count.max(initial=0)), 1)
    highest = np.sort(_with_highest(scores, most), axis=1)[:, : -most - 1 : -1]
    taken = np.arange(most) < count[:, None]
    values = np.where(taken, highest, np.float32(0.0)).astype(np.float64)
    number = np.maximum(count, 1)
    mean = values.sum(1) / number
    square = (np.where(taken, values - mean[:, None], 0.0) ** 2).sum(1) / number
    return mean, np.sqrt(np.maximum(square, 1e-12))


def _with_highest(scores: Singles | Floats, most: int) -> Singles | Floats:
    """(rows, most or some more) the highest scores of each row, in any order, and some others.

    A sample of a row tells about where they begin; what is above is gathered, which takes a fifth
    of the time of a partition, itself quicker than to sort them all."""
    width = scores.shape[1]
    if most >= width:
        return scores
    sample = np.sort(scores[:, ::SAMPLED], axis=1)
    least = sample[:, max(int(sample.shape[1] * (1.0 - MARGIN * most / width)), 0)]
    found = np.full((len(scores), min(2 * int(MARGIN * most), width) + 1), -np.inf, scores.dtype)
    count = np.empty(len(scores), np.int64)
    _gather_above(scores, least, found, count)
    for row in np.flatnonzero((count < most) | (count >= found.shape[1])):  # a sample far off: rare
        found[row], count[row] = -np.inf, most
        found[row, :most] = np.partition(scores[row], width - most)[width - most :]
    return found[:, : int(count.max(initial=most))]


@nb.njit(cache=True, nogil=True)
def _gather_above(scores, least, found, count):  # type: ignore[no-untyped-def]
    """Every score is written, and what is not above is written over: nothing to be guessed wrongly
    by the processor."""
    last = found.shape[1] - 1
    for i in range(len(scores)):
        above, low = 0, least[i]
        for j in range(scores.shape[1]):
            x = scores[i, j]
            found[i, min(above, last)] = x
            above += x >= low
        count[i] = above
