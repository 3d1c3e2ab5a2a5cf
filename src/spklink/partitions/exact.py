"""The exact posterior over all partitions of a few items.

With P(T) = f(T) Z(all - T) / Z(all), the probability that T is one person's sides, everything else
is a sum: pairs over the blocks that hold both, the entropy over the values of blocks. A prior of
the number of speakers (one that is given, or Pitman-Yor's) needs Z by the number of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spklink.errors import SpklinkError
from spklink.partitions import subsets
from spklink.partitions.blocks import block_values
from spklink.partitions.items import Problem
from spklink.partitions.subsets import DEEPEST, LN2, POWERS, Sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Powers of two that partitions into a given number of speakers may be less probable than the best
# of all: below, some may be lost under the smallest number, and blocks are made more, or less,
# welcome.
LOST = -900.0
TRIES = 60


@dataclass(frozen=True)
class Exact:
    """All that can be asked of the posterior over partitions of a few items."""

    problem: Problem
    value: Floats  # (2^I,) log f of every block
    best: Ints  # (I,) the most probable partition
    best_value: float  # log of its prior times likelihood
    sums: Sums
    log_count: Floats  # (I + 1,) log Z by the number of blocks, with its prior; all numbers known
    tilt: float = 0.0  # of the value of every block within `sums`

    @cached_property
    def log_total(self) -> float:
        """log Z: of prior times likelihood over all partitions."""
        return float(logsumexp(self.log_count))

    @cached_property
    def log_evidence(self) -> float:
        """log of the mean likelihood under the prior, against all sides being different people."""
        return self.log_total - self.log_prior_mass

    @cached_property
    def log_prior_mass(self) -> float:
        """The same sum before any voice is compared: of a uniform prior the number of partitions
        that are allowed."""
        return solve_exactly(self.problem.silent()).log_total

    @cached_property
    def count(self) -> Floats:
        """(I + 1,) the probability of every number of speakers."""
        return np.exp(self.log_count - self.log_total)

    @cached_property
    def block_chance(self) -> Floats:
        """(2^I,) how probable each block is one person."""
        sums, whole = self.sums, len(self.value) - 1
        mask = np.arange(len(self.value))
        shift = np.clip(
            sums.exponent.astype(np.int64) + sums.unit[whole - mask] - sums.unit[whole],
            -DEEPEST,
            len(POWERS) - DEEPEST - 1,
        )
        found = sums.mantissa * POWERS[shift + DEEPEST] * (self._left() / self._whole())
        found[0] = 0.0
        return np.asarray(found)

    def _weights(self) -> Floats:
        """(I + 1,) of the numbers of blocks within `sums`."""
        prior = self.problem.count_prior
        assert prior is not None
        return np.exp(self._log_weights(prior))

    def _log_weights(self, prior: Floats) -> Floats:
        tilted = prior - self.tilt * np.arange(len(prior))
        return np.asarray(tilted - tilted[np.isfinite(tilted)].max())

    def _left(self) -> Floats:
        """(2^I,) Z of what a block leaves, with one block more."""
        total = self.sums.total[::-1]
        if total.ndim == 1:
            return total
        return np.asarray(total[:, :-1] @ self._weights()[1 : total.shape[1]])

    def _whole(self) -> float:
        total = self.sums.total[-1]
        return float(total if total.ndim == 0 else total @ self._weights()[: len(total)])

    @cached_property
    def pairs(self) -> Floats:
        """(I, I) how probable two items are one person; 1 on the diagonal."""
        found = subsets.pair_sums(self.block_chance, len(self.best))
        np.fill_diagonal(found, 1.0)
        return np.asarray(np.minimum(found, 1.0))

    @cached_property
    def entropy_bits(self) -> float:
        """Of the posterior over partitions."""
        chance = self.block_chance
        there = chance > 0.0
        mean = float(chance[there] @ self.value[there])
        if self.problem.count_prior is not None:
            likely = self.count > 0.0
            mean += float(self.count[likely] @ self.problem.count_prior[likely])
        return max(0.0, (self.log_total - mean) / LN2)

    def log_probability(self, label: Ints) -> float:
        """Natural logarithm of the posterior probability of a partition (I,) of the items."""
        total, blocks = 0.0, np.unique(label)
        for block in blocks:
            total += self.value[int((1 << np.flatnonzero(label == block)).sum())]
        if self.problem.count_prior is not None:
            total += self.problem.count_prior[len(blocks)]
        return float(total - self.log_total)

    def samples(self, draws: int, rng: np.random.Generator) -> Ints:
        """(draws, I) independent partitions from the posterior itself."""
        sums, items = self.sums, len(self.best)
        counted = sums.total.ndim == 2
        z = sums.total if counted else sums.total[:, None]
        number = rng.choice(len(self.count), draws, p=self.count / self.count.sum())
        chance, label = rng.random((draws, items)), np.zeros((draws, items), np.int64)
        tables = sums.mantissa, sums.exponent, sums.unit, POWERS, z
        for k in range(draws):
            blocks = int(number[k]) if counted else 0
            subsets.draw(*tables, int(counted), blocks, chance[k], label[k])
        return label


def solve_exactly(problem: Problem, value: Floats | None = None) -> Exact:
    """The posterior over partitions; `value` where blocks are not valued by their pairs."""
    value = block_values(problem) if value is None else value
    prior = problem.count_prior
    best, block = subsets.best_of(value)
    if prior is None:
        sums = subsets.add_up(value, best, by_count=False)
        log_count = subsets.counts_of(value, best)
        return Exact(problem, value, _unrolled(block), float(best[-1]), sums, log_count)
    label, most = _best_given(value, prior)
    tilt, sums, log_count = _by_count(value, best, prior)
    return Exact(problem, value, label, most, sums, log_count + prior, tilt)


def _by_count(value: Floats, best: Floats, prior: Floats) -> tuple[float, Sums, Floats]:
    """Z by the number of blocks. Where the scores all but rule out every number that can be, the
    value of all blocks is raised or lowered until nothing of it is lost; that changes no answer."""
    wanted = np.flatnonzero(np.isfinite(prior))
    blocks = np.arange(int(wanted.max()) + 1)
    tilt, low, high = 0.0, -np.inf, np.inf
    for _ in range(TRIES):
        shifted = value + tilt
        shifted[0] = 0.0
        best = best if tilt == 0.0 else subsets.best_of(shifted)[0]
        sums = subsets.add_up(shifted, best, by_count=True, most=int(wanted.max()))
        found = sums.log_total()
        # In units of the best partition of all: what is missing is below the smallest number.
        share = (logsumexp(found[wanted]) - sums.unit[-1] * LN2) / LN2
        if share > LOST:
            every = np.full(len(prior), -np.inf)
            every[blocks] = found - tilt * blocks
            return tilt, sums, every
        few = bool(found[: int(wanted.min())].max(initial=-np.inf) > found[wanted].max())
        low, high = (tilt, high) if few else (low, tilt)
        step = max(1.0, 2.0 * abs(tilt))
        tilt = (low + high) / 2.0 if np.isfinite(low + high) else tilt + (step if few else -step)
    raise SpklinkError("scores too far apart to be added up; are they log-likelihood-ratios?")


def _best_given(value: Floats, prior: Floats) -> tuple[Ints, float]:
    """The best partition where the number of blocks counts."""
    items, most = len(prior) - 1, int(np.flatnonzero(np.isfinite(prior)).max())
    table = subsets.best_by_count(value, most)
    last = np.arange(len(table), len(value))
    rest = len(table) - 1 - (last - len(table))
    by_count = prior[1 : most + 1] + np.array(
        [(value[last] + table[rest, k]).max() for k in range(most)], np.float64
    )
    if by_count.max() == -np.inf:
        wanted = int(np.isfinite(prior).argmax())
        raise SpklinkError(
            f"no partition into {wanted} speakers fits what is known (sides that may not be one "
            "person, sides that must be); mend that, or --speakers"
        )
    blocks = int(by_count.argmax())  # of the rest
    chosen = int(last[(value[last] + table[rest, blocks]).argmax()])
    label = np.zeros(items, np.int64)
    left, number = len(value) - 1 - chosen, 0
    while left:
        low, number = left & -left, number + 1
        part = np.array(_parts(left ^ low), np.int64)
        at = int((value[low | part] + table[(left ^ low) ^ part, blocks - number]).argmax())
        block = low | int(part[at])
        label[[i for i in range(items) if block >> i & 1]] = number
        left ^= block
    return _in_order(label), float(by_count.max())


def _parts(whole: int) -> list[int]:
    """All subsets of a mask."""
    found, part = [whole], whole
    while part:
        part = (part - 1) & whole
        found.append(part)
    return found


def _unrolled(block: Ints) -> Ints:
    """The partition that `best_of` found for all items."""
    items = len(block).bit_length() - 1
    label, left, number = np.zeros(items, np.int64), len(block) - 1, 0
    while left:
        here = int(block[left])
        label[[i for i in range(items) if here >> i & 1]] = number
        left, number = left ^ here, number + 1
    return label


def _in_order(label: Ints) -> Ints:
    """Blocks numbered by their first items."""
    _, first, back = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[back], np.int64)
