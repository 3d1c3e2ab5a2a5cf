"""What links teach about voices: covariances from the calls themselves, and a second comparison.

Once the posterior says how probable each pair of sides is the same person, the differences of such
pairs tell in which directions one person's recordings scatter. No label is needed:

  x   the side's unit vector, reduced to DIMENSIONS principal components
  W = sum p (x_i - x_j)(x_i - x_j)^T / (2 sum p)     over candidate pairs of linked calls
  shrunk to (1 - SHRINKAGE) W + SHRINKAGE (tr W / d) I

Two back-ends compare sides with it. `wccn` (within-class covariance normalisation) divides by that
scatter: the cosine of whitened, centred x. `plda` also knows how much people differ in each
direction: the log-likelihood-ratio of two covariances (module `plda`), W and what W leaves of the
covariance of a few sides of everybody, B = T - W. (B from the products x_i x_j^T of the same pairs
would know the directions of those few people alone.) docs/back-ends.md has what they measure.

A covariance must never judge the pairs it was learned from: it would find them closer than they
are, and the posterior would be badly over-confident. So the sides of some people are compared under
what the calls of others teach (module `link_folds`). Where that leaves too few links, this stage is
left out, and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.links import Links, candidates, needed_sides, pair_starts
from spklink.database.sides import Numbering
from spklink.hands import ALONE, Hands
from spklink.recognizers import normalise
from spklink.recognizers.link_folds import Folds, disjoint_folds, people_folds, taught_by
from spklink.recognizers.plda import (
    LaidTerms,
    PairTerms,
    TwoCovariance,
    covariance,
    pair_terms,
    shrunk,
    two_covariance,
)
from spklink.recognizers.sums import Comparison, compared_again
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
Units = Callable[[Sides], Singles]  # (sides, width) unit vectors of some sides
BACK_ENDS = ("wccn", "plda")
# A choice; with plda.SHRINKAGE it is measured as a whole, this stage against none, on carved real
# calls (examples/carved_tables.py with and without --no-link-wccn, examples/backends.py).
DIMENSIONS = 50
FEWEST_TARGETS = 50  # expected same-speaker pairs in each fold. A choice: one a dimension
# Sides that the principal components are found from. A choice: forty a dimension; the time grows
# with the cube.
SAMPLE = 2000
FEWEST_SIDES = 500  # that tell how people differ. A choice: ten a dimension
OF_EACH = 5  # sides of one person among them, at most. A choice
EACH = 40  # of these sides for every dimension beyond DIMENSIONS, as the sample has. A choice
MOST_DIMENSIONS = 128  # a choice: memory and time grow with it
# Numerical: the share of the largest variance below which a direction is rounding alone.
FLAT = 1e-6
ROWS = 1024  # sides at a time: a choice that bounds the memory
BLOCK = 1 << 16  # the same, of what was reduced
MANY = 8192  # sides: whoever asks for more at once asks for all in the end. A choice


@dataclass(frozen=True)
class Whitening:
    """The cosine of whitened, centred x."""

    root: Floats  # (d, d)
    centre: Floats  # (d,)

    def terms(self, reduced: Floats) -> PairTerms:
        """Sides as they are compared."""
        turned = reduced @ self.root - self.centre
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        unit = (turned / np.maximum(length, 1e-12)).astype(np.float32)
        return PairTerms(unit, np.zeros(len(turned)))


@dataclass(frozen=True)
class Plda:
    """The log-likelihood-ratio of two covariances."""

    model: TwoCovariance

    def terms(self, reduced: Floats) -> PairTerms:
        """Sides as they are compared."""
        return pair_terms(self.model.ratio, self.model.turned(reduced))


@dataclass(frozen=True)
class View:
    """All that the links have taught: how any side is seen when sides of fold 0, 1 are compared."""

    reduction: Reduction
    learned: tuple[Whitening | Plda, Whitening | Plda]

    def terms(self, reduced: Floats) -> tuple[PairTerms, PairTerms]:
        return self.learned[0].terms(reduced), self.learned[1].terms(reduced)


class Terms(Protocol):
    """Sides as they are compared, by their numbers."""

    def pairs(self, one: Sides, two: Sides) -> Floats: ...

    def table(self, rows: Sides, columns: Sides) -> Singles: ...

    def of(self, sides: Sides) -> PairTerms: ...


@dataclass(frozen=True)
class TermsAsAsked:
    """The same of a database of which few sides are compared: each when it is asked for. (Of all,
    once and for all, when many are.)"""

    view: View
    fold: int
    units: Units
    sides: int  # in all
    threads: int = 1

    def pairs(self, one: Sides, two: Sides) -> Floats:
        sides, at = np.unique(np.concatenate([one, two]), return_inverse=True)
        at = at.reshape(-1)
        return self.of(sides).pairs(at[: len(one)], at[len(one) :])

    def table(self, rows: Sides, columns: Sides) -> Singles:
        sides, at = np.unique(np.concatenate([rows, columns]), return_inverse=True)
        at = at.reshape(-1)
        return self.of(sides).table(at[: len(rows)], at[len(rows) :])

    def of(self, sides: Sides) -> PairTerms:
        """Some sides."""
        if len(sides) > MANY:
            return self._every.of(sides)
        return self._made(sides)

    @cached_property
    def _every(self) -> PairTerms:
        return self._made(np.arange(self.sides), self.threads)

    def _made(self, sides: Sides, threads: int = 1) -> PairTerms:
        blocks = [sides[begin : begin + ROWS] for begin in range(0, len(sides), ROWS)]
        with one_blas_thread():
            return PairTerms.joined(list(in_order(self._block, blocks or [sides], threads)))

    def _block(self, sides: Sides) -> PairTerms:
        return self.view.learned[self.fold].terms(self.view.reduction.reduced(self.units(sides)))


@dataclass(frozen=True)
class LinkScorer:
    """Compares the sides of each fold as the links of the other fold teach."""

    folds: Folds
    terms: tuple[Terms, Terms]  # for comparing sides of fold 0, 1
    normaliser: tuple[normalise.Normaliser, normalise.Normaliser]
    view: View

    def scores(self, side_1: Sides, side_2: Sides) -> Floats:
        """Of pairs."""
        found = np.empty(len(side_1))
        for begin in range(0, len(found), 1 << 16):  # bounded memory
            rows = slice(begin, begin + (1 << 16))
            fold = self.folds.judging(side_1[rows], side_2[rows])
            for f in (0, 1):
                part = begin + np.flatnonzero(fold == f)
                found[part] = self._of_fold(f, side_1[part], side_2[part])
        return found

    def comparison(self, person: int) -> Comparison:
        """How the sides of one person are compared, for sums."""
        return self._comparisons[int(self.folds.person[person])]

    @cached_property
    def _comparisons(self) -> list[Comparison]:
        """Those of the two folds; made once, since they have numbers of all sides."""
        both = zip(self.terms, self.normaliser, strict=True)
        return [compared_again(terms, normaliser) for terms, normaliser in both]

    def _of_fold(self, f: int, side_1: Sides, side_2: Sides) -> Floats:
        plain = self.terms[f].pairs(side_1, side_2)
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
    back_end: str = "wccn",
    threads: int = 1,
    speaker: Sides | None = None,
    hands: Hands = ALONE,
) -> LinkScorer | str:
    """Learn from links whose candidates (C,) are the same person with probability `same`; or why
    not. `units` gives the unit vectors of sides (products.unit_vectors); `order` lists all sides in
    the order they are drawn and worked on in; `speaker` (S,) is who probably is on each side.
    `threads` are of this process; `hands` may be others."""
    order = np.arange(len(usable)) if order is None else order
    link = link_of_candidates(links, conversations.sides)
    targets: Floats = np.bincount(link, weights=same, minlength=len(links.pair)).astype(np.float64)
    folds = _folds(conversations, links, targets, np.argsort(order))
    if isinstance(folds, str):
        return folds
    fits, made = [], []
    one, two = candidate_sides(links, conversations.sides)
    taught = taught_by(folds, links)[link]
    with one_blas_thread():  # a matrix product may depend on the number of threads in its last bits
        many_people, size = usable, DIMENSIONS
        if speaker is not None:
            some = few_of_each(usable, speaker, order)
            many_people = some if some.sum() >= FEWEST_SIDES else usable
            size = min(max(int(some.sum()) // EACH, DIMENSIONS), MOST_DIMENSIONS)
        reduction = Reduction.of(units, many_people, seed, order, size)
        reduced = reduction.all_sides(units, len(usable), order)
        learned = []
        for f in (0, 1):
            by = taught == 1 - f
            scatter = within_scatter(reduced, one[by], two[by], same[by])
            learned.append(compared(back_end, reduced, scatter, many_people))
            made.append(_in_blocks(learned[f], reduced))
            fits.append(
                normalise.fit(
                    *(made[f].table, conversations, usable),
                    seed=seed,
                    order=order,
                    threads=threads,
                    divided=_divided(made[f], hands),
                )
            )
    view = View(reduction, (learned[0], learned[1]))
    return LinkScorer(folds, (made[0], made[1]), (fits[0], fits[1]), view)


def _in_blocks(learned: Whitening | Plda, reduced: Floats) -> PairTerms:
    """All sides as they are compared; what that takes in double precision of some at a time."""
    begins = range(0, len(reduced), BLOCK)
    return PairTerms.joined([learned.terms(reduced[k : k + BLOCK]) for k in begins])


def _divided(terms: PairTerms, hands: Hands) -> normalise.Divided | None:
    """Cohorts of the second comparison, by hands that are far."""
    if not hands.far:
        return None
    return normalise.Divided(
        hands, lambda by: LaidTerms.of(terms, by).table, None, terms.unit.shape[1]
    )


def _folds(
    conversations: Conversations, links: Links, targets: Floats, place: Sides
) -> Folds | str:
    """Two sets of people who teach about each other; or why there are none."""
    for made in (disjoint_folds, people_folds):
        folds = made(conversations, links, targets, place)
        taught = taught_by(folds, links)
        expected = [float(targets[taught == f].sum()) for f in (0, 1)]
        if min(expected) >= FEWEST_TARGETS:
            return folds
    return (
        f"voices are not compared a second time (link-WCCN): two sets of people would have, in "
        f"calls among themselves, {expected[0]:.0f} and {expected[1]:.0f} expected same-speaker "
        f"pairs, and {FEWEST_TARGETS} are needed in each"
    )


def few_of_each(usable: Mask, speaker: Sides, order: Sides) -> Mask:
    """(S,) the sides that tell how people differ: a few of everybody. Half of the sides of a call
    centre are those of a few agents. Among all sides the main directions would be the agents' own
    voices: they would come out far apart and their customers alike, and a calibration taught by the
    agents' many pairs would find the customers' voices wrong."""
    sides = order[usable[order]]
    sides = sides[np.argsort(speaker[sides], kind="stable")]
    who = speaker[sides]
    first = np.flatnonzero(np.diff(who, prepend=who[:1] - 1))
    rank = np.arange(len(who)) - np.repeat(first, np.diff(np.append(first, len(who))))
    chosen = np.zeros(len(usable), np.bool_)
    chosen[sides[(rank < OF_EACH) | (who < 0)]] = True
    return chosen


def compared(back_end: str, reduced: Floats, scatter: Floats, usable: Mask) -> Whitening | Plda:
    """How a back-end compares sides, learned from the usable ones."""
    heard = reduced[usable]
    if back_end == "wccn":
        return whitening(shrunk(scatter), heard)
    between = covariance(heard) - scatter
    return Plda(two_covariance(heard.mean(axis=0), shrunk(scatter), between))


def link_of_candidates(links: Links, sides: Numbering) -> Sides:
    """(C,) the link of every candidate."""
    count = np.diff(pair_starts(links, sides))[links.pair]
    return np.repeat(np.arange(len(links.pair)), count)


def candidate_sides(links: Links, sides: Numbering) -> tuple[Sides, Sides]:
    """Both sides of every candidate of every link."""
    chosen = candidates(links, sides)
    one, two = needed_sides(links, sides)
    return one[chosen], two[chosen]


@dataclass(frozen=True)
class Reduction:
    """The main directions of a sample of unit vectors."""

    mean: Singles  # (width,)
    basis: NDArray[np.floating]  # (width, d), the main one first

    @property
    def size(self) -> int:
        return int(self.basis.shape[1])

    @classmethod
    def of(
        cls, units: Units, usable: Mask, seed: int, order: Sides, size: int = DIMENSIONS
    ) -> Reduction:
        """At most so many of them; of vectors that are wider than the sample no more than
        DIMENSIONS."""
        pool = normalise.choose_pool(usable, SAMPLE, seed, order)
        sample = units(pool)
        mean = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred = sample - mean
        narrow = centred.shape[1] < len(pool)  # whichever are fewer: numbers, or sides
        square = centred.T @ centred if narrow else centred @ centred.T
        value, vector = np.linalg.eigh(square.astype(np.float64))
        main = np.argsort(-value)[: min(size if narrow else DIMENSIONS, len(pool) - 1)]
        main = main[: max(1, int((value[main] > FLAT * value.max()).sum()))]
        # In single precision, as the sides are: in double it would take three times as long.
        if narrow:
            basis = vector[:, main].astype(np.float32)
        else:
            length = np.sqrt(np.maximum(value[main], 1e-12))
            basis = centred.T @ (vector[:, main] / length).astype(np.float32)
        # The sign of a direction is arbitrary: fixed, so that equal runs give equal bytes.
        at = np.abs(basis).argmax(axis=0)
        basis *= np.where(basis[at, np.arange(len(main))] < 0.0, -1.0, 1.0)
        return cls(mean, basis)

    def reduced(self, units: Singles, size: int | None = None) -> Floats:
        """(sides, size) along the first so many directions."""
        return np.asarray((units - self.mean) @ self.basis[:, :size], np.float64)

    def all_sides(self, units: Units, count: int, order: Sides) -> Floats:
        """(S, d) of all sides."""
        found = np.zeros((count, self.size))
        for begin in range(0, count, ROWS):
            rows = order[begin : begin + ROWS]
            found[rows] = self.reduced(units(rows))
        return found


def principal_components(units: Units, usable: Mask, seed: int, order: Sides) -> Floats:
    """(S, d) unit vectors of all sides along the main directions of a sample of them."""
    return Reduction.of(units, usable, seed, order).all_sides(units, len(usable), order)


def within_covariance(reduced: Floats, one: Sides, two: Sides, weight: Floats) -> Floats:
    """W of pairs of sides that are one person with probability `weight`, shrunk."""
    return shrunk(within_scatter(reduced, one, two, weight))


def within_scatter(reduced: Floats, one: Sides, two: Sides, weight: Floats) -> Floats:
    """W of pairs of sides that are one person with probability `weight`."""
    size = reduced.shape[1]
    total = np.zeros((size, size))
    for begin in range(0, len(weight), 1 << 16):  # bounded memory
        rows = slice(begin, begin + (1 << 16))
        gap = reduced[one[rows]] - reduced[two[rows]]
        total += (gap * weight[rows, None]).T @ gap
    return np.asarray(total / (2.0 * weight.sum()))


def whitening(scatter: Floats, heard: Floats) -> Whitening:
    """x W^-1/2 up to a rotation, centred on these sides."""
    root = np.linalg.cholesky(np.linalg.inv(scatter))
    return Whitening(root, (heard @ root).mean(axis=0))
