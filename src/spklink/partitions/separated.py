"""Items in groups that scores all but certainly separate, each solved exactly, with a bound on what
that leaves out.

Let the log-likelihood-ratios across groups average at most -c for any two items. A partition either
keeps all blocks within groups, or some block T spans several. As Z(all) >= Z(all - T) Z(T) and
Z(T) >= product of Z(T within a group),

    P(T is a block) <= f(T) / product of Z(U),  U = T within each group it touches

and with u = |U|, n = |T|, the pairs across contribute at most -c (n^2 - sum of u^2) / 2. So for
every n the sum over all spanning T is a product of polynomials, one a group, in the number of sides
(tracked by how many groups are touched: none, one, more). It bounds P(some block spans), `spans`.

Given that none does, the groups are independent, and every probability p of the product is true up
to p (1 - spans) .. p (1 - spans) + spans. Where no block can span at all spans is 0, and the answer
exact. A prior of the number of speakers couples groups through their numbers, which add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spklink.partitions.blocks import block_values
from spklink.partitions.exact import Exact, solve_exactly
from spklink.partitions.items import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LN2 = float(np.log(2.0))
MOST_SIDES = 400  # a choice: a bound on more would take longer than a sampler


@dataclass(frozen=True)
class Separated:
    """Groups of items, the posterior of each, and how probable it is at most that a block spans
    several."""

    problem: Problem
    groups: list[Ints]  # items of each
    parts: list[Exact]
    log_count: Floats  # (I + 1,) log Z of the product by the number of blocks, with its prior
    spans: float

    @property
    def exact(self) -> bool:
        return self.spans == 0.0

    @cached_property
    def best(self) -> Ints:
        """(I,) the best partition that keeps groups apart: the best of all where spans < 1/2 and
        its probability is above it."""
        label, used = np.zeros(len(self.problem.items), np.int64), 0
        for some, part in zip(self.groups, self.parts, strict=True):
            label[some] = part.best + used
            used += int(part.best.max()) + 1
        return label

    @cached_property
    def log_total(self) -> float:
        """log Z of the product: that of all is at most -log(1 - spans) more."""
        return float(logsumexp(self.log_count))

    @cached_property
    def count(self) -> Floats:
        return np.exp(self.log_count - self.log_total)

    @cached_property
    def pairs(self) -> Floats:
        """(I, I) given that no block spans groups."""
        found = np.zeros((len(self.problem.items),) * 2)
        for some, part in zip(self.groups, self.parts, strict=True):
            found[np.ix_(some, some)] = part.pairs
        return found

    def log_probability(self, label: Ints) -> tuple[float, float]:
        """Ends of the log-probability of a partition of the items."""
        weight = self.problem.log_weight(label)
        high = weight - self.log_total
        low = high + np.log1p(-self.spans) if self.spans < 1.0 else -np.inf
        return low, high

    @cached_property
    def entropy_bits(self) -> float:
        """Of the product."""
        if self.problem.count_prior is None:
            return sum(part.entropy_bits for part in self.parts)
        mean = 0.0
        for part in self.parts:
            chance = part.block_chance
            there = chance > 0.0
            mean += float(chance[there] @ part.value[there])
        likely = self.count > 0.0
        mean += float(self.count[likely] @ self.problem.count_prior[likely])
        return max(0.0, (self.log_total - mean) / LN2)


def find_groups(problem: Problem, most: int) -> tuple[list[Ints], float]:
    """Groups of at most `most` items, as far apart as can be, and their c; a single group where
    that cannot be had. c is infinite where no block can span them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    items = problem.items
    sides = np.outer(items.size, items.size)
    mean = np.where(items.apart, -np.inf, items.between / sides)
    np.fill_diagonal(mean, -np.inf)

    def cut(c: float) -> tuple[int, Ints]:
        count, label = connected_components(csr_array(mean > -c), directed=False)
        return count, label

    levels = np.unique(-mean[np.isfinite(mean) & (mean < 0.0)])
    for c in (np.inf, *_halved(levels, lambda c: bool(np.bincount(cut(c)[1]).max() <= most))):
        count, label = cut(c)
        if count > 1 and np.bincount(label).max() <= most:
            return [np.flatnonzero(label == k) for k in range(count)], float(c)
    return [np.arange(len(items))], np.inf


def _halved(levels: Floats, fits: Callable[[float], bool]) -> list[float]:
    """The highest of these levels that fits, by halving; none where none does."""
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(levels[middle]) else (low, middle)
    return [float(levels[low - 1])] if low else []


def solve_separated(problem: Problem, groups: list[Ints], c: float) -> Separated:
    """The posterior of every group, and the bound on all that spans several."""
    items, prior = problem.items, problem.count_prior
    free = replace(problem, count_prior=None)
    alone = [replace(free, items=items.chosen(some)) for some in groups]
    parts = [solve_exactly(one) for one in alone]
    product = _sums([part.log_count for part in parts], len(items))
    spans = 0.0 if c == np.inf else span_bound(free, parts, c)
    if prior is None:
        return Separated(problem, groups, parts, product, spans)
    log_count = product + prior
    slack = float(prior.max() + logsumexp(product) - logsumexp(log_count))
    spans = spans / (1.0 - spans) * float(np.exp(min(slack, 700.0))) if spans < 1.0 else 1.0
    parts = [
        solve_exactly(replace(one, count_prior=_message(parts, k, prior)))
        for k, one in enumerate(alone)
    ]
    return Separated(problem, groups, parts, log_count, min(spans, 1.0))


def _sums(log_counts: list[Floats], most: int) -> Floats:
    """(most + 1,) log of the product of polynomials."""
    total = np.zeros(1)
    for one in log_counts:
        total = _times(total, one)
    return total[: most + 1]


def _times(a: Floats, b: Floats) -> Floats:
    table = np.full((len(a), len(a) + len(b) - 1), -np.inf)
    for k, value in enumerate(a):
        table[k, k : k + len(b)] = value + b
    return np.asarray(logsumexp(table, axis=0))


def _message(parts: list[Exact], k: int, prior: Floats) -> Floats:
    """(I_k + 1,) what the other groups and the prior say about the number of blocks in group k."""
    others = _sums([p.log_count for j, p in enumerate(parts) if j != k], len(prior) - 1)
    own = len(parts[k].log_count)
    found = np.full(own, -np.inf)
    for n in range(own):
        found[n] = logsumexp(others + prior[n : n + len(others)])
    return found


def span_bound(problem: Problem, parts: list[Exact], c: float) -> float:
    """At most so probable is a block that spans groups."""
    sides, total = problem.sides, 0.0
    tables = [_by_size(part) for part in parts]
    most = [int(size.max()) for size, _, _ in tables]
    for n in range(2, sides + 1):
        w = float(problem.pair_weight[n])
        none, one, more = np.zeros(1), np.full(1, -np.inf), np.full(1, -np.inf)
        for (size, pairs, log_z), deepest in zip(tables, most, strict=True):
            own = _summed(size, w * pairs - log_z, deepest)
            own += 0.5 * w * c * np.arange(deepest + 1) ** 2
            own[0] = -np.inf
            pad = [_longer(x, deepest) for x in (none, one, more)]
            more = np.logaddexp(pad[2], np.logaddexp(_times(one, own), _times(more, own)))
            one, none = np.logaddexp(pad[1], _times(none, own)), pad[0]
        if n < len(more):
            total += float(np.exp(problem.block_prior[n] - 0.5 * w * c * n * n + more[n]))
    return min(total, 1.0)


def _longer(x: Floats, by: int) -> Floats:
    return np.concatenate([x, np.full(by, -np.inf)])


def _summed(size: Ints, value: Floats, most: int) -> Floats:
    """(most + 1,) log of the sum of exp(value) by size."""
    top = np.full(most + 1, -np.inf)
    np.maximum.at(top, size, value)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.bincount(size, np.exp(value - safe[size]), most + 1)) + safe)


def _by_size(part: Exact) -> tuple[Ints, Floats, Floats]:
    """Of every block of a group that may be: sides, sum over its pairs, log Z."""
    own = part.problem
    count = block_values(_counting(own))
    allowed = np.isfinite(part.value)
    allowed[0] = False
    size = np.rint(count[allowed]).astype(np.int64)
    pairs = block_values(_counting(own, pairs=True))[allowed]
    log_z = np.log(part.sums.total[allowed]) + part.sums.unit[allowed] * LN2
    return size, pairs, log_z


def _counting(problem: Problem, *, pairs: bool = False) -> Problem:
    """A problem whose blocks are valued by their sides, or by the sum over their pairs."""
    n = np.arange(problem.sides + 1, dtype=np.float64)
    weight, prior = np.full(len(n), float(pairs)), np.zeros_like(n) if pairs else n
    return replace(problem, pair_weight=weight, block_prior=prior, count_prior=None)
