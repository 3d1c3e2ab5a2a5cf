"""What is known of people as a cue: a call between one `f` and one `m` has one of each.

For every two values of an attribute a classifier of side vectors is learned, without labels: both
sides of a call between two people of one value are of that value, whoever is where; the sides of a
call between two people who differ count as far as the rest of the evidence tells them apart. What
the classifier itself believes is never learned from: a meaningless attribute would find some
difference between voices and then confirm itself.

It must not learn people: a call is judged by a classifier that heard neither of its two people, nor
anybody of their folds, and people count, not calls. How much its scores are worth (a logistic line)
is learned from such held-out scores; where they tell the values no better than chance would, it
says nothing at all. It is used where two people differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cues.cue import Floats, Terms, from_odds, pairs
from spklink.cues.speakers import Attribute
from spklink.database.conversations import Conversations
from spklink.threads import one_blas_thread

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
FOLDS = 5  # of people
FEWEST = 5  # people of a value, to learn it. A choice
SHRUNK = 0.3  # of the spread within values that is taken to be the same in all directions. A choice
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


class AttributeCue:
    """One attribute of people, told by their voices."""

    def __init__(self, table: Conversations, attribute: Attribute, voices: Voices) -> None:
        self.attribute, self.voices = attribute, voices
        self.name = attribute.name
        good = voices.usable[table.sides.start[:-1]] & voices.usable[table.sides.start[1:] - 1]
        self.calls = np.flatnonzero(pairs(table) & good)
        first = table.listing.start[self.calls]
        self.people = np.stack([table.people[first], table.people[first + 1]], axis=1)
        self.sides = np.stack([table.sides.start[self.calls], table.sides.start[self.calls] + 1], 1)
        self.fold = _folds(table, voices.order)
        count = np.bincount(self.people.ravel(), minlength=len(table.speakers))
        self.share = 1.0 / np.maximum(count, 1)  # of a person in one of his calls

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        odds, about = np.zeros(len(table)), dict[str, Any]()
        for a, b in combinations(range(len(self.attribute.values)), 2):
            found = self._two(a, b, elsewhere)
            if found is not None:
                here, values, slope, gain = found
                odds[here] = values
                name = " ".join(self.attribute.values[k] for k in (a, b))
                about[name] = {"calls": len(here), "slope": slope, "gain": gain}
        return Terms(self.name, from_odds(table, odds), about)

    def _two(
        self, a: int, b: int, elsewhere: Floats | None
    ) -> tuple[Ints, Floats, float, float] | None:
        """Calls between people of two values, their log-odds of exchanged, what scores are worth
        and what they gain; None where nothing can be said."""
        value = self.attribute.value[self.people]
        known = np.asarray(np.isin(value, (a, b)).all(axis=1), np.bool_)
        mixed = np.asarray(known & (value[:, 0] != value[:, 1]))
        number = [len(np.unique(self.people[known][value[known] == k])) for k in (a, b)]
        if not mixed.any() or min(number) < FEWEST:
            return None
        labels = self._labels(value, a, known, mixed, elsewhere)
        scores = self._held_out(np.flatnonzero(known), labels)
        slope, gain = _worth(scores, labels)
        slope = slope if gain >= GAIN else 0.0
        margin = np.where(value[:, 0] == a, 1.0, -1.0) * (scores[:, 0] - scores[:, 1])
        listed = slope * margin[mixed]
        rate = MISNOTED
        bounded = np.logaddexp(np.log1p(-rate) + listed, np.log(rate)) - np.logaddexp(
            np.log1p(-rate), np.log(rate) + listed
        )
        return self.calls[mixed], -bounded, slope, gain

    def _labels(
        self, value: Ints, a: int, known: Mask, mixed: Mask, elsewhere: Floats | None
    ) -> Floats:
        """(calls, 2, 2) how much each side weighs as one of either value, in people."""
        found = np.zeros((len(self.calls), 2, 2))
        share = self.share[self.people]
        alike = known & ~mixed
        of = np.where(value[:, 0] == a, 0, 1)
        found[alike, :, of[alike]] = share[alike].mean(axis=1)[:, None]
        if elsewhere is None:
            return found
        turned = 1.0 / (1.0 + np.exp(-np.clip(elsewhere[self.calls], -30.0, 30.0)))
        sure = (2.0 * turned - 1.0) ** 2  # what is not known of a call is not learned from
        for person in (0, 1):
            kind = np.where(value[:, person] == a, 0, 1)
            for side in (0, 1):
                chance = np.where(person == side, 1.0 - turned, turned)
                weight = np.where(mixed, share[:, person] * chance * sure, 0.0)
                found[np.arange(len(found)), side, kind] += weight
        return found

    def _held_out(self, known: Ints, labels: Floats) -> Floats:
        """(calls, 2) scores for the first value, by a classifier that heard nobody of them."""
        scores, folds = np.zeros((len(self.calls), 2)), np.sort(self.fold[self.people], axis=1)
        vector = self.voices.vector[self.sides]  # (calls, 2, width)
        for pair in combinations_with_replacement(range(FOLDS), 2):
            here = known[(folds[known] == pair).all(axis=1)]
            away = known[~np.isin(folds[known], pair).any(axis=1)]
            if len(here) and len(away):
                line = _direction(vector[away], labels[away])
                scores[here] = vector[here] @ line[:-1] + line[-1]
        return scores


def _folds(table: Conversations, order: Ints) -> Ints:
    """(speakers,) the fold of each, by the sound of his calls."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    earliest = np.full(len(table.speakers), len(order), np.int64)
    listing = table.listing
    of_call = np.minimum.reduceat(rank, table.sides.start[:-1])
    np.minimum.at(earliest, table.people, of_call[listing.conversation])
    place = np.empty(len(earliest), np.int64)
    place[np.lexsort((np.arange(len(earliest)), earliest))] = np.arange(len(earliest))
    return place % FOLDS


def _direction(vector: Floats, labels: Floats) -> Floats:
    """(width + 1,) the line that tells two values apart: means against the spread within."""
    flat, weight = vector.reshape(-1, vector.shape[2]), labels.reshape(-1, labels.shape[2])
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


def _worth(scores: Floats, labels: Floats) -> tuple[float, float]:
    """The slope of log-odds on held-out scores, and what it gains over none, in nats; both values
    count alike."""
    score, weight = scores.ravel(), labels.reshape(-1, labels.shape[2])
    total = weight.sum(axis=0)
    if (total <= 0.0).any():
        return 0.0, 0.0
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
        return 0.0, 0.0
    return float(theta[1]), none - cost(theta)


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
