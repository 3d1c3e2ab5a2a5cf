"""The posterior over partitions of many items, estimated by chains, and how far to trust it.

Four chains begin far apart: at what agglomerative linking finds, at that with every block torn in
two, at that with blocks thrown together, and with everybody alone. Each is cut into stretches; the
shares of two items being together in all stretches tell the probability and its standard error, the
chains among each other (R-hat) whether they have seen the same. The *effective draws* are so many
independent partitions as would err as much.

Where the number of speakers is given, chains move about that number (a penalty on being off it that
does not change what is found at it), and only partitions into exactly so many count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.partitions import chains
from spklink.partitions.agglomerative import agglomerate
from spklink.partitions.items import Problem
from spklink.threads import in_order

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tell = Callable[[int, int], None]
CHAINS, STRETCHES = 4, 8  # a choice: 32 stretches tell a standard error to an eighth
Z99 = 2.5758293035489004  # standard deviations that bound the middle 99 % of a normal law
MIXED = 1.1  # R-hat up to which chains are taken to have seen the same; a usual choice
FEWEST = 100.0  # effective draws below which nothing is promised; a choice
NEAR = 8  # close items to propose splits and merges with; a choice
SEEN = 0.2  # share of partitions of the given number that is enough
TIGHTER = 1.5  # what the penalty grows by until it is


@dataclass(frozen=True)
class Sampled:
    """Shares of partitions, in every stretch of every chain."""

    problem: Problem
    best: Ints  # (I,) the most probable partition that was seen
    best_value: float
    pairs: Floats  # (I, I) share of partitions in which two items are together; 1 on the diagonal
    error: Floats  # (I, I) standard error
    alone: Floats  # (I,) share in which an item is alone
    count: Floats  # (I + 1,) share of every number of speakers
    count_error: Floats  # (I + 1,)
    draws: int  # partitions counted
    rhat: float  # the greatest of the number of speakers and of the pairs in doubt
    effective: float  # draws; the least of these

    @property
    def trusted(self) -> bool:
        return self.rhat <= MIXED and self.effective >= FEWEST

    def ends(self, share: Floats, error: Floats) -> tuple[Floats, Floats]:
        """99 % intervals: Wilson's with as many draws as the standard error says; where nothing
        ever changed, as many as the least of the others."""
        spread = share * (1.0 - share)
        with np.errstate(divide="ignore", invalid="ignore"):
            n = np.where((error > 0.0) & (spread > 0.0), spread / error**2, self.effective)
        n = np.clip(n, 1.0, max(self.effective, self.draws))
        middle = (share + Z99**2 / (2 * n)) / (1 + Z99**2 / n)
        half = Z99 / (1 + Z99**2 / n) * np.sqrt(spread / n + (Z99 / (2 * n)) ** 2)
        return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def sample(
    problem: Problem,
    *,
    sweeps: int = 2000,
    seed: int = 0,
    threads: int = 1,
    speakers: int | None = None,
    tell: Tell | None = None,
) -> Sampled:
    """Partitions from `CHAINS` chains, `sweeps` rounds each after a fifth as many to settle."""
    start = agglomerate(problem, speakers=speakers)
    numbers = _numbers(problem, speakers, start, seed)
    near = _near(problem)
    steps = max(1, sweeps // STRETCHES)

    def run(k: int) -> _Chain:
        rng = np.random.default_rng([seed, k])
        chain = _Chain(problem, _moved(problem, start, k, rng), numbers, speakers, near, rng)
        chain.settle(max(20, sweeps // 5))
        for _ in range(STRETCHES):
            chain.stretch(steps)
        return chain

    found = []
    for k, chain in enumerate(in_order(run, range(CHAINS), threads)):
        found.append(chain)
        if tell is not None:
            tell(k + 1, CHAINS)
    return _gathered(problem, found)


def _numbers(problem: Problem, speakers: int | None, start: Ints, seed: int) -> Floats:
    """(I + 2,) the log-prior of the number of blocks that chains go by."""
    items = len(problem.items)
    if speakers is None:
        prior = np.zeros(items + 1) if problem.count_prior is None else problem.count_prior
        return np.append(prior, -np.inf)
    penalty, near = 1.0, _near(problem)
    off = np.abs(np.arange(items + 2) - speakers).astype(np.float64)
    base = np.zeros(items + 2)
    while True:  # it ends: with so strong a penalty no chain leaves the number
        numbers = base - penalty * off
        rng = np.random.default_rng([seed, CHAINS])
        chain = _Chain(problem, start.copy(), numbers, speakers, near, rng)
        chain.settle(20)
        seen = sum(chain.step() == speakers for _ in range(40)) / 40
        if seen >= SEEN or penalty > 1e6:
            return numbers
        penalty *= TIGHTER


def _near(problem: Problem) -> Ints:
    """(I, m) the items that go best with each."""
    items = problem.items
    mean = np.where(items.apart, -np.inf, items.between / np.outer(items.size, items.size))
    np.fill_diagonal(mean, -np.inf)
    most = max(1, min(NEAR, len(items) - 1))
    return np.argsort(-mean, axis=1, kind="stable")[:, :most].astype(np.int64)


def _moved(problem: Problem, start: Ints, k: int, rng: np.random.Generator) -> Ints:
    """Where chain k begins."""
    items = len(start)
    if k == 1:  # every block torn in two
        torn = start + (start.max() + 1) * rng.integers(0, 2, items)
        return np.asarray(np.unique(torn, return_inverse=True)[1], np.int64)
    if k == 3:
        return np.arange(items)
    label = start.copy()
    if k == 2:  # blocks thrown together where they may be
        blocks = rng.permutation(int(label.max()) + 1)
        for a, b in zip(blocks[::2], blocks[1::2], strict=False):
            cross = np.ix_(label == a, label == b)
            if not problem.items.apart[cross].any():
                label[label == b] = a
        label = np.unique(label, return_inverse=True)[1]
    return np.asarray(label, np.int64)


class _Chain:
    """One chain at work, and what it has seen stretch by stretch."""

    def __init__(
        self,
        problem: Problem,
        label: Ints,
        numbers: Floats,
        speakers: int | None,
        near: Ints,
        rng: np.random.Generator,
    ) -> None:
        items, size = problem.items, len(problem.items)
        self.problem, self.label, self.rng, self.near = problem, label, rng, near
        self.speakers, self.blocks = speakers, len(np.unique(label))
        self.tables = (
            *(items.size, items.inside, items.between, items.apart),
            *(problem.pair_weight, problem.block_prior, numbers),
        )
        self.state = (
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros((size, size)),
            np.zeros((size, size), np.int32),
        )
        self.best, self.best_value = label.copy(), -np.inf
        self.shares: list[tuple[int, Any, Ints, Ints]] = []
        self._begin()

    def _begin(self) -> None:
        """Sums anew from the labels: rounding does not add up for ever."""
        chains.begin(self.label, *self.tables[:4], *self.state)

    def step(self) -> int:
        found = chains.sweep(
            self.rng, 1, self.near, self.label, self.blocks, self.tables, self.state
        )
        self.blocks = int(found)
        return self.blocks

    def settle(self, sweeps: int) -> None:
        for _ in range(sweeps):
            self.step()
        self._begin()

    def value(self) -> float:
        """log of prior times likelihood, but for the number of blocks where that is given."""
        count, pairs = self.state[:2]
        there = count > 0
        n, weight, prior = count[there], self.problem.pair_weight, self.problem.block_prior
        found = float((weight[n] * pairs[there] + prior[n]).sum())
        if self.speakers is None and self.problem.count_prior is not None:
            found += float(self.problem.count_prior[self.blocks])
        return found

    def stretch(self, sweeps: int) -> None:
        """So many rounds, counted."""
        size = len(self.label)
        together, alone = np.zeros((size, size), np.int32), np.zeros(size, np.int64)
        counts, seen = np.zeros(size + 1, np.int64), 0
        for _ in range(sweeps):
            self.step()
            if self.speakers is not None and self.blocks != self.speakers:
                continue
            seen += 1
            counts[self.blocks] += 1
            chains.add_pairs(self.label, together, alone)
            value = self.value()
            if value > self.best_value:
                self.best, self.best_value = self.label.copy(), value
        self.shares.append((seen, together, alone, counts))
        self._begin()


def _gathered(problem: Problem, found: list[_Chain]) -> Sampled:
    stretches = [share for chain in found for share in chain.shares if share[0]]
    owner = [k for k, chain in enumerate(found) for share in chain.shares if share[0]]
    seen = np.array([share[0] for share in stretches], np.float64)
    pairs, error, pair_rhat, doubt = _shares([s[1] for s in stretches], seen, owner)
    alone = np.sum([s[2] for s in stretches], axis=0) / seen.sum()
    count, count_error, count_rhat, likely = _shares([s[3] for s in stretches], seen, owner)
    pairs, error = pairs + pairs.T, error + error.T
    np.fill_diagonal(pairs, 1.0)
    rhat = max(pair_rhat, count_rhat)
    effective = min(doubt, likely, float(seen.sum()))
    whole = len(set(owner)) == len(found)
    best = max(found, key=lambda chain: chain.best_value)
    label = np.unique(best.best, return_inverse=True)[1].astype(np.int64)
    return Sampled(
        problem=problem,
        best=_by_first(label),
        best_value=best.best_value,
        pairs=pairs,
        error=error,
        alone=alone,
        count=count,
        count_error=count_error,
        draws=int(seen.sum()),
        rhat=rhat if whole else float("inf"),  # a chain never came to the given number
        effective=effective,
    )


def _by_first(label: Ints) -> Ints:
    _, first, back = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[back], np.int64)


def _shares(
    counts: list[Any], seen: Floats, owner: list[int]
) -> tuple[Floats, Floats, float, float]:
    """Shares over all stretches, their standard errors, the greatest R-hat and the least number of
    effective draws among those in doubt (shares of 2 to 98 %)."""
    total = seen.sum()
    share = np.sum(counts, axis=0) / total
    spread = np.zeros_like(share)
    for one, n in zip(counts, seen, strict=True):
        spread += (n / total) ** 2 * (one / n - share) ** 2
    stretches = len(counts)
    error = np.sqrt(spread * stretches / max(stretches - 1, 1))
    doubt = (share > 0.02) & (share < 0.98)
    if not doubt.any():
        return share, error, 1.0, float(total)
    p, at = share[doubt], np.array(owner)
    means = []
    for k in sorted(set(owner)):
        mine = [one[doubt] for one, who in zip(counts, owner, strict=True) if who == k]
        means.append(np.sum(mine, axis=0) / seen[at == k].sum())
    between = np.var(means, axis=0, ddof=1) if len(means) > 1 else np.zeros_like(p)
    within = p * (1.0 - p)
    rhat = np.sqrt(1.0 + between / within)
    draws = within / np.maximum(error[doubt] ** 2, within / total)
    return share, error, float(rhat.max()), float(draws.min())
