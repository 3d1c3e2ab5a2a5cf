"""What links teach about voices: within-speaker covariance from the calls themselves.

Once the posterior says how probable each pair of sides is the same person, the differences of such
pairs tell in which directions one person's recordings scatter. Dividing by that scatter (within-
class covariance normalisation) leaves what tells people apart. No label is needed:

  x   the side's unit vector, reduced to DIMENSIONS principal components
  W = sum p (x_i - x_j)(x_i - x_j)^T / (2 sum p)     over candidate pairs of linked calls
  shrunk to (1 - SHRINKAGE) W + SHRINKAGE (tr W / d) I;  score = cosine of whitened, centred x

A covariance must never judge the pairs it was learned from: it would find them closer than they
are, and the posterior would be badly over-confident. So speakers are cut into two folds that no
call joins, and the sides of one fold are compared under the covariance of the other. Where there
are no such folds, or too few links in one, this stage is left out, and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import connected
from spklink.database.conversations import Conversations
from spklink.database.links import Links, candidates, needed_sides, pair_starts
from spklink.database.sides import Numbering
from spklink.recognizers import normalise
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
Units = Callable[[Sides], Singles]  # (sides, width) unit vectors of some sides
# A choice; with SHRINKAGE it is measured as a whole, this stage against none, on carved real calls
# (examples/carved_tables.py with and without --no-link-wccn), not varied by itself.
DIMENSIONS = 50
FEWEST_TARGETS = 50  # expected same-speaker pairs in each fold. A choice: one a dimension
SHRINKAGE = 0.2  # a choice, see DIMENSIONS
# Sides that the principal components are found from. A choice: forty a dimension; the time grows
# with the cube.
SAMPLE = 2000
GRAIN = 1e-6  # of an expected target: what is closer counts as equal
ROWS = 1024  # sides at a time: a choice that bounds the memory


@dataclass(frozen=True)
class LinkScorer:
    """Compares the sides of each fold as the links of the other fold teach."""

    fold: NDArray[np.int8]  # (S,)
    units: tuple[Floats, Floats]  # (S, d) whitened unit vectors, for comparing sides of fold 0, 1
    normaliser: tuple[normalise.Normaliser, normalise.Normaliser]
    place: Sides  # (S,) of each side in the order of all

    def scores(self, side_1: Sides, side_2: Sides) -> Floats:
        """Of pairs; sides of different folds are compared as the fold of the earlier one is. (The
        mean of both ways would vary less than what is compared within a fold.)"""
        fold = np.where(
            self.place[side_1] < self.place[side_2], self.fold[side_1], self.fold[side_2]
        )
        found = np.empty(len(side_1))
        for begin in range(0, len(fold), 1 << 16):  # bounded memory
            for f in (0, 1):
                part = begin + np.flatnonzero(fold[begin : begin + (1 << 16)] == f)
                found[part] = self._of_fold(f, side_1[part], side_2[part])
        return found

    def _of_fold(self, f: int, side_1: Sides, side_2: Sides) -> Floats:
        plain = np.einsum("pd,pd->p", self.units[f][side_1], self.units[f][side_2])
        return self.normaliser[f].apply(plain, side_1, side_2)


def fit(
    conversations: Conversations,
    links: Links,
    same: Floats,
    units: Units,
    usable: Mask,
    *,
    seed: int,
    order: Sides | None = None,
) -> LinkScorer | str:
    """Learn from links whose candidates (C,) are the same person with probability `same`; or why
    not. `units` gives the unit vectors of sides (products.unit_vectors); `order` lists all sides in
    the order they are drawn and worked on in."""
    order = np.arange(len(usable)) if order is None else order
    place = np.argsort(order)
    link = link_of_candidates(links, conversations.sides)
    targets: Floats = np.bincount(link, weights=same, minlength=len(links.pair)).astype(np.float64)
    fold = speaker_folds(conversations, links, targets, place)
    of_candidate = fold[links.first[links.pair]][link]
    expected = [float(same[of_candidate == f].sum()) for f in (0, 1)]
    if min(expected) < FEWEST_TARGETS:
        return (
            f"voices are not compared a second time (link-WCCN): two sets of people without a "
            f"common call would have {expected[0]:.0f} and {expected[1]:.0f} expected same-speaker "
            f"pairs, and {FEWEST_TARGETS} are needed in each"
        )
    white, fits = [], []
    one, two = candidate_sides(links, conversations.sides)
    with one_blas_thread():  # a matrix product may depend on the number of threads in its last bits
        reduced = principal_components(units, usable, seed, order)
        for f in (0, 1):
            taught = of_candidate != f
            scatter = within_covariance(reduced, one[taught], two[taught], same[taught])
            white.append(whitened(reduced, scatter, usable))
            fits.append(_normaliser(white[f], conversations, usable, seed, order))
    sides = fold[conversations.sides.conversation]
    return LinkScorer(sides, (white[0], white[1]), (fits[0], fits[1]), place)


def link_of_candidates(links: Links, sides: Numbering) -> Sides:
    """(C,) the link of every candidate."""
    count = np.diff(pair_starts(links, sides))[links.pair]
    return np.repeat(np.arange(len(links.pair)), count)


def candidate_sides(links: Links, sides: Numbering) -> tuple[Sides, Sides]:
    """Both sides of every candidate of every link."""
    chosen = candidates(links, sides)
    one, two = needed_sides(links, sides)
    return one[chosen], two[chosen]


def _normaliser(
    unit: Floats, conversations: Conversations, usable: Mask, seed: int, order: Sides
) -> normalise.Normaliser:
    def table(rows: Sides, columns: Sides) -> Floats:
        return np.asarray(unit[rows] @ unit[columns].T)

    return normalise.fit(table, conversations, usable, seed=seed, order=order)


def speaker_folds(
    conversations: Conversations, links: Links, targets: Floats, place: Sides
) -> NDArray[np.int8]:
    """(M,) 0 or 1 for every call: no person, by name, is in calls of both. Sets of people that
    calls join go, the largest first, to the fold with fewer expected targets; of equal ones that
    with the earliest side."""
    part = connected(conversations, conversations.people.astype(np.int64))
    count = int(part.max(initial=-1)) + 1
    # Whole numbers: equal loads stay equal whatever the order they are added up in.
    load = np.rint(np.bincount(part[links.first[links.pair]], targets, count) / GRAIN)
    earliest = np.full(count, len(place))
    np.minimum.at(earliest, part[conversations.sides.conversation], place)
    fold, total = np.zeros(count, np.int8), [0.0, 0.0]
    for c in np.lexsort([earliest, -load]):
        fold[c] = int(total[1] < total[0])
        total[fold[c]] += load[c]
    return np.asarray(fold[part], np.int8)


def principal_components(units: Units, usable: Mask, seed: int, order: Sides) -> Floats:
    """(S, d) unit vectors of all sides along the main directions of a sample of them."""
    pool = normalise.choose_pool(usable, SAMPLE, seed, order)
    sample = units(pool)
    mean = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = sample - mean
    value, vector = np.linalg.eigh((centred @ centred.T).astype(np.float64))
    main = np.argsort(-value)[: min(DIMENSIONS, len(pool) - 1)]
    basis = (centred.T @ vector[:, main]) / np.sqrt(np.maximum(value[main], 1e-12))
    # The sign of a direction is arbitrary: fixed, so that equal runs give equal bytes.
    basis *= np.where(basis[np.abs(basis).argmax(axis=0), np.arange(len(main))] < 0.0, -1.0, 1.0)
    found = np.zeros((len(usable), len(main)))
    for begin in range(0, len(usable), ROWS):
        rows = order[begin : begin + ROWS]
        found[rows] = (units(rows) - mean) @ basis
    return found


def within_covariance(reduced: Floats, one: Sides, two: Sides, weight: Floats) -> Floats:
    """W of pairs of sides that are one person with probability `weight`, shrunk."""
    size = reduced.shape[1]
    total = np.zeros((size, size))
    for begin in range(0, len(weight), 1 << 16):  # bounded memory
        rows = slice(begin, begin + (1 << 16))
        gap = reduced[one[rows]] - reduced[two[rows]]
        total += (gap * weight[rows, None]).T @ gap
    total /= 2.0 * weight.sum()
    even = np.trace(total) / size * np.eye(size)
    return np.asarray((1.0 - SHRINKAGE) * total + SHRINKAGE * even)


def whitened(reduced: Floats, scatter: Floats, usable: Mask) -> Floats:
    """(S, d) x W^-1/2 up to a rotation, centred on the usable sides, at length one."""
    root = np.linalg.cholesky(np.linalg.inv(scatter))
    turned = reduced @ root
    turned -= turned[usable].mean(axis=0)
    length = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.asarray(turned / np.maximum(length, 1e-12))
