"""Two-covariance PLDA: how probable it is that vectors are one person's.

A vector is x = mean + y + e: y is the person's own, normal with covariance B (between people), e
that of the recording, normal with covariance W (within a person). Directions exist in which W is
the unit matrix and B diagonal, with values `ratio` (between/within variance); there z = turned(x)
falls apart into single numbers, and the log-likelihood-ratio of n sides of one person against n
different people is, in closed form,

  sum over directions of  (n log(1 + r) - log(1 + n r)) / 2
                          + (r / (1 + n r) (sum z)^2 - r / (1 + r) sum z^2) / 2

For two sides that is a bilinear form less a value of each (`pair_terms`), as quick as a cosine.
Any invertible linear map of the vectors changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.hands import Hands, Reached

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
SHRINKAGE = 0.2  # of a covariance towards an even one; a choice, see link_wccn.DIMENSIONS


@dataclass(frozen=True)
class TwoCovariance:
    """A model of vectors of `width`, along `k` directions."""

    mean: Floats  # (width,)
    turn: Floats  # (width, k)
    ratio: Floats  # (k,) between/within variance along each direction, 0 or more

    def turned(self, vectors: Floats) -> Floats:
        """(sides, k) z of vectors."""
        return np.asarray((vectors - self.mean) @ self.turn, np.float64)


@dataclass(frozen=True)
class PairTerms:
    """The log-likelihood-ratio of sides i and j is unit_i . unit_j - less_i - less_j."""

    unit: Singles  # (sides, k)
    less: Floats  # (sides,)

    @classmethod
    def joined(cls, parts: Sequence[PairTerms]) -> PairTerms:
        """One after the other."""
        return cls(
            np.concatenate([one.unit for one in parts]), np.concatenate([one.less for one in parts])
        )

    def of(self, rows: NDArray[np.int64]) -> PairTerms:
        """Those of some rows."""
        return PairTerms(self.unit[rows], self.less[rows])

    def pairs(self, one: NDArray[np.int64], two: NDArray[np.int64]) -> Floats:
        """Of pairs of rows."""
        product = np.einsum("pd,pd->p", self.unit[one], self.unit[two])
        return np.asarray(product - (self.less[one] + self.less[two]), np.float64)

    def table(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Singles:
        """(rows, columns) of all pairs of two lists of rows."""
        product = self.unit[rows] @ self.unit[columns].T
        product -= self.less[rows, None].astype(np.float32)
        product -= self.less[columns].astype(np.float32)
        return np.asarray(product, np.float32)


@dataclass(frozen=True)
class LaidTerms:
    """The same, laid out where all hands reach them."""

    unit: Reached
    less: Reached

    @classmethod
    def of(cls, terms: PairTerms, hands: Hands) -> LaidTerms:
        return cls(hands.reach(terms.unit), hands.reach(terms.less))

    def table(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Singles:
        """As above."""
        return PairTerms(self.unit.get(), self.less.get()).table(rows, columns)


def two_covariance(mean: Floats, within: Floats, between: Floats) -> TwoCovariance:
    """The model of two covariances. Directions in which people do not differ (a variance that came
    out negative, as that of a difference of estimates may) tell nothing."""
    root = np.linalg.cholesky(np.linalg.inv(within))
    value, vector = np.linalg.eigh(root.T @ between @ root)
    turn = root @ vector
    # The sign of a direction is arbitrary: fixed, so that equal runs give equal bytes.
    turn *= np.where(turn[np.abs(turn).argmax(axis=0), np.arange(len(value))] < 0.0, -1.0, 1.0)
    return TwoCovariance(mean, turn, np.maximum(value, 0.0))


def covariance(vectors: Floats) -> Floats:
    """Of rows, about their mean."""
    centred = vectors - vectors.mean(axis=0)
    return np.asarray(centred.T @ centred / max(len(vectors), 1))


def shrunk(scatter: Floats, share: float = SHRINKAGE) -> Floats:
    """A share of it made even, so that it has an inverse however little it was learned from."""
    size = len(scatter)
    even = np.trace(scatter) / size * np.eye(size)
    return np.asarray((1.0 - share) * scatter + share * even)


def pair_terms(ratio: Floats, z: Floats) -> PairTerms:
    """What the sides of pairs bring to their log-likelihood-ratios."""
    unit = z * np.sqrt(ratio / (1.0 + 2.0 * ratio))
    square = 0.5 * ratio**2 / ((1.0 + ratio) * (1.0 + 2.0 * ratio))
    constant = 0.5 * (2.0 * np.log1p(ratio) - np.log1p(2.0 * ratio)).sum()
    less = np.asarray(z**2 @ square - constant / 2.0)
    return PairTerms(unit.astype(np.float32), less)


def set_llr(ratio: Floats, z: Floats) -> float:
    """Log-likelihood-ratio of all rows being one person against all being different people."""
    count, total, squares = len(z), z.sum(axis=0), (z**2).sum(axis=0)
    return float(of_sums(ratio, np.array([count]), total[None], squares[None])[0])


def of_sums(ratio: Floats, count: NDArray[np.int64], total: Floats, squares: Floats) -> Floats:
    """(sets,) the same of many sets, from the number of their rows, (sets, k) the sums of these and
    the sums of their squares."""
    n = count[:, None].astype(np.float64)
    volume = n * np.log1p(ratio) - np.log1p(n * ratio)
    spread = ratio / (1.0 + n * ratio) * total**2 - ratio / (1.0 + ratio) * squares
    return np.asarray(0.5 * (volume + spread).sum(axis=1))
