"""What is known of people as a cue: a call between one `f` and one `m` has one of each.

For every two values of an attribute a classifier of side vectors is learned, without labels:
sides of a conversation between people of one value are of that value, whoever is where; those of
conversations between people who differ count as far as the rest of the evidence tells more of a
side than its list does. What the classifier itself believes is never learned from: a meaningless
attribute would find some difference between voices and then confirm itself.

It must not learn people: a conversation is judged by a classifier that heard none of its people,
nor anybody of their folds, and people count, not calls. How much its scores are worth (a logistic
line) is learned from such held-out scores; where they tell the values no better than chance would,
it says nothing at all. It is used where people differ: of two on two tracks it is one number, of
others a term for every person on every track.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.cues.cue import Floats, Terms, from_odds, nothing, pairs
from spklink.cues.speakers import Attribute
from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations
from spklink.database.sides import seat_numbers
from spklink.threads import one_blas_thread

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
FOLDS = 10  # of people
FEWEST = 5  # people of a value, to learn it. A choice
SHRUNK = 0.3  # of the spread within values that is taken to be the same in all directions. A choice
# How much alike the scores of one person's sides are beyond his value: an unusual voice is unusual
# in every conversation of the same people, and voices hold these together. A choice, on the careful
# side.
ALIKE = 0.7
MISNOTED = 0.01  # rate of people of whom something wrong is known, and of voices that are unusual
# Nats of log-likelihood, counted in people, that held-out scores must gain over chance: one in
# three hundred meaningless attributes does.
GAIN = 4.0
STEEPEST, STEPS = 20.0, 50
WIDTH = 20  # of vectors made small. A choice
SAMPLE = 1000  # sides taken at a time


@dataclass(frozen=True)
class Voices:
    """Side vectors made small."""

    vector: Floats  # (sides, width)
    usable: Mask  # (sides,)
    order: Ints  # (sides,) by their sound: nothing depends on rows and names


@dataclass(frozen=True)
class Line:
    """What two values of an attribute sound like: log-likelihood-ratios of sides."""

    ratio: Floats  # (sides,) of the first value against the second
    slope: float
    gain: float  # nats


class AttributeCue:
    """One attribute of people, told by their voices."""

    def __init__(self, table: Conversations, attribute: Attribute, voices: Voices) -> None:
        self.attribute, self.voices = attribute, voices
        self.name = attribute.name
        entry, self.side = seat_numbers(table)
        self.call = table.sides.conversation[self.side]
        self.person = table.people[entry].astype(np.int64)  # (seats,)
        self.value = attribute.value[self.person]
        self.heard = voices.usable[self.side]
        self.listed = 1.0 / _room(table)[self.call]  # (seats,) what lists alone say of each
        fold = _folds(table, voices.order)
        self.folds = np.zeros(len(table), np.int64)  # (M,) those of its people, a bit each
        np.bitwise_or.at(self.folds, table.listing.conversation, 1 << fold[table.people])
        count = np.bincount(self.person[self.heard], self.listed[self.heard], len(table.speakers))
        self.share = 1.0 / np.maximum(count, 0.5)  # of a person in one of his conversations
        self.worth = 1.0 / (1.0 + ALIKE * (_same_people(table) - 1.0))  # (M,)

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        odds, seat, about = np.zeros(len(table)), nothing(table), dict[str, Any]()
        pair, kinds = pairs(table), self._kinds(len(table))
        for a, b in combinations(range(len(self.attribute.values)), 2):
            mixed = kinds[:, a] & kinds[:, b]
            line = self._line(table, a, b, mixed, elsewhere)
            if line is None:
                continue
            two = np.flatnonzero(mixed & pair)
            odds[two] = self._odds(table, two, a, line)
            seat += self._seats(a, b, line, mixed & ~pair) / np.maximum(
                kinds.sum(axis=1)[self.call] - 1, 1
            )
            name = f"{self.attribute.values[a]} {self.attribute.values[b]}"
            about[name] = {"calls": int(mixed.sum()), "slope": line.slope, "gain": line.gain}
        return Terms(self.name, seat + from_odds(table, odds), about)

    def _kinds(self, calls: int) -> Mask:
        """(M, values) which values the people of a list have."""
        found = np.zeros((calls, len(self.attribute.values)), np.bool_)
        known = self.value >= 0
        found[self.call[known], self.value[known]] = True
        return found

    def _line(
        self, table: Conversations, a: int, b: int, mixed: Mask, elsewhere: Floats | None
    ) -> Line | None:
        """Two values told apart; None where nothing can be said."""
        number = [len(np.unique(self.person[self.heard & (self.value == k)])) for k in (a, b)]
        if not mixed.any() or min(number) < FEWEST:
            return None
        labels = self._labels(len(table.sides), a, b, elsewhere)
        scores = self._held_out(table, labels, mixed)
        slope, offset, gain = _worth(scores, labels)
        if gain < GAIN:
            slope, offset = 0.0, 0.0
        return Line(np.where(scores == 0.0, 0.0, slope * scores + offset), slope, gain)

    def _labels(self, sides: int, a: int, b: int, elsewhere: Floats | None) -> Floats:
        """(sides, 2) how much each side weighs as one of either value, in people."""
        chance = self.listed if elsewhere is None else elsewhere
        here = [self.heard & (self.value == k) for k in (a, b)]
        said, now, weight = (
            np.stack([sums(self.side, of * one, sides) for one in here], axis=1)
            for of in (self.listed, chance, chance * self.share[self.person])
        )
        left = 1.0 - said
        more = np.where(left > 1e-9, (now - said) / np.maximum(left, 1e-9), 1.0)
        more = np.where(said > 0.0, more, 0.0)
        # What is known of a side by its list alone is not learned from, unless it is all.
        sure = np.clip(more, 0.0, 1.0).max(axis=1, keepdims=True) ** 2
        return np.asarray(weight * sure)

    def _held_out(self, table: Conversations, labels: Floats, mixed: Mask) -> Floats:
        """(sides,) scores for the first value, by a classifier that heard nobody of their
        conversation; 0 where there is none, or nobody needs it."""
        scores, folds = np.zeros(len(labels)), self.folds[table.sides.conversation]
        wanted = self.voices.usable & (mixed[table.sides.conversation] | labels.any(axis=1))
        for these in np.unique(folds[wanted]).tolist():
            here = wanted & (folds == these)
            away = ((folds & these) == 0) & labels.any(axis=1)
            if away.any():
                line = _direction(self.voices.vector[away], labels[away])
                scores[here] = self.voices.vector[here] @ line[:-1] + line[-1]
        return scores

    def _odds(self, table: Conversations, calls: Ints, a: int, line: Line) -> Floats:
        """(calls,) log-odds of exchanged, of two people who differ on two tracks."""
        side = table.sides.start[calls]
        first = self.attribute.value[table.people[table.listing.start[calls]]] == a
        good = self.voices.usable[side] & self.voices.usable[side + 1]
        margin = np.where(good, line.ratio[side] - line.ratio[side + 1], 0.0)
        bounded = _bounded(np.where(first, -margin, margin))
        return np.asarray(self.worth[calls] * bounded)

    def _seats(self, a: int, b: int, line: Line, calls: Mask) -> Floats:
        """(seats,) what a side says for each person there, against somebody of whom nothing is
        known."""
        sign = np.where(self.value == a, 1.0, -1.0)
        ratio = _bounded(sign * line.ratio[self.side])
        here = calls[self.call] & self.heard & np.isin(self.value, (a, b))
        return np.where(
            here, self.worth[self.call] * (np.log(2.0) - np.logaddexp(0.0, -ratio)), 0.0
        )


def _bounded(ratio: Floats) -> Floats:
    """Log-likelihood-ratios of people some of whom are misnoted."""
    right, wrong = np.log1p(-MISNOTED), np.log(MISNOTED)
    return np.asarray(np.logaddexp(right + ratio, wrong) - np.logaddexp(right, wrong + ratio))


def _same_people(table: Conversations) -> Floats:
    """(M,) how many conversations have the same list."""
    lists = [tuple(sorted(table.people[table.listing.of(m)].tolist())) for m in range(len(table))]
    count = Counter(lists)
    return np.array([count[one] for one in lists], np.float64)


def _room(table: Conversations) -> Floats:
    """(M,) how many people may be on a track, as far as the list goes."""
    people = table.listing.counts + table.unknown
    return np.asarray(np.maximum(people, table.sides.counts) + table.open, np.float64)


def _folds(table: Conversations, order: Ints) -> Ints:
    """(speakers,) the fold of each, by the sound of his calls. People who hang together are in one
    fold, where there are enough such groups."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    of_call = np.minimum.reduceat(rank, table.sides.start[:-1])[table.listing.conversation]
    group = np.arange(len(table.speakers))
    clique = find_cliques(table).label[table.listing.conversation]
    together = np.full(len(table.speakers), -1, np.int64)
    together[table.people] = clique
    if np.bincount(together[together >= 0]).max(initial=0) * FOLDS <= len(table.speakers):
        group = together
    earliest = np.full(max(int(group.max(initial=0)) + 1, 1), len(order), np.int64)
    np.minimum.at(earliest, group[table.people], of_call)
    place = np.empty(len(earliest), np.int64)
    place[np.lexsort((np.arange(len(earliest)), earliest))] = np.arange(len(earliest))
    return np.asarray(place[np.maximum(group, 0)] % FOLDS)


def _direction(flat: Floats, weight: Floats) -> Floats:
    """(width + 1,) the line that tells two values apart: means against the spread within."""
    total = weight.sum(axis=0)
    if (total <= 0.0).any():
        return np.zeros(flat.shape[1] + 1)
    means = (weight.T @ flat) / total[:, None]
    within = np.zeros((flat.shape[1], flat.shape[1]))
    for k in (0, 1):
        apart = flat - means[k]
        within += 0.5 * (apart * weight[:, k : k + 1]).T @ apart / total[k]
    level = np.trace(within) / len(within)
    within = (1.0 - SHRUNK) * within + SHRUNK * level * np.eye(len(within))
    line = np.linalg.solve(within, means[0] - means[1])
    return np.append(line, -line @ means.mean(axis=0))


def _worth(score: Floats, weight: Floats) -> tuple[float, float, float]:
    """Slope and offset of log-odds on held-out scores, and what they gain over none, in nats; both
    values count alike."""
    total = weight.sum(axis=0)
    if (total <= 0.0).any():
        return 0.0, 0.0, 0.0
    weight = weight * total.min() / total
    columns = np.stack([np.ones(len(score)), score], axis=1)
    theta = np.zeros(2)
    none = float(weight.sum() * np.log(2.0))

    def cost(at: Floats) -> float:
        llr = columns @ at
        return float(
            weight[:, 0] @ np.logaddexp(0.0, -llr) + weight[:, 1] @ np.logaddexp(0.0, llr)
        ) + 0.5 * float((at / STEEPEST) @ (at / STEEPEST))

    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-columns @ theta))
        slope = columns.T @ (weight.sum(axis=1) * chance - weight[:, 0]) + theta / STEEPEST**2
        curve = (columns.T * (weight.sum(axis=1) * chance * (1.0 - chance))) @ columns
        step = np.linalg.solve(curve + np.eye(2) / STEEPEST**2, slope)
        size = 1.0
        while cost(theta - size * step) > cost(theta) and size > 1e-6:
            size /= 2.0
        theta = theta - size * step
        if np.abs(size * step).max() < 1e-9:
            break
    if theta[1] <= 0.0:
        return 0.0, 0.0, 0.0
    return float(theta[1]), float(theta[0]), none - cost(theta)


def small_voices(
    vectors: Callable[[Ints], NDArray[np.float32]], usable: Mask, order: Ints
) -> Voices:
    """Side vectors in the directions in which they differ most; `vectors` gives those of some
    sides. Those of sides that are not used are zero."""
    good = order[usable[order]]
    some = vectors(good[:: max(1, -(-len(good) // SAMPLE))]).astype(np.float64)
    middle = some.mean(axis=0)
    some -= middle
    with one_blas_thread():
        strength, mixture = np.linalg.eigh(some @ some.T)
        kept = np.argsort(-strength)[:WIDTH]
        kept = kept[strength[kept] > 1e-9 * max(float(strength.max()), 1e-300)]
        axes = some.T @ mixture[:, kept] / np.sqrt(strength[kept])
        small = np.zeros((len(usable), len(kept)))
        for first in range(0, len(good), SAMPLE):
            part = good[first : first + SAMPLE]
            small[part] = (vectors(part) - middle) @ axes
    return Voices(small, usable, order)
