"""What is believed about a partition, whichever method found it.

`certainty` is that of the house: exact, certified (intervals provably hold the truth), sampled
(99 % intervals from chains that agree), estimated (nothing is promised).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.partitions.exact import Exact
from spklink.partitions.items import Problem
from spklink.partitions.sampling import Sampled
from spklink.partitions.separated import Separated
from spklink.posterior.inference.beliefs import CERTIFIED, ESTIMATED, EXACT, SAMPLED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LN2 = float(np.log(2.0))


@dataclass(frozen=True)
class Shares:
    """Probabilities with their ends."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Beliefs:
    """The block of every side, how sure, which pairs may be one person, how many people there are.

    The probability of a side is the mean of those that it is one person with each other side of its
    block; of a side that is alone, that it is.
    """

    label: Ints  # (S,) numbered by first sides
    side: Shares  # (S,)
    one: Ints  # pairs of sides, one < two, whose probability reaches the floor
    two: Ints
    pair: Shares
    number: Ints  # of speakers
    count: Shares  # of each such number
    method: str
    certainty: str
    log_total: float | None = None  # log of the sum of prior times likelihood, where it is known
    spans: float = 0.0  # at most so much of it is missing in the above
    entropy_bits: float | None = None
    about: dict[str, Any] = field(default_factory=dict)  # diagnostics

    @property
    def speakers(self) -> int:
        """Blocks of the partition."""
        return int(self.label.max(initial=-1)) + 1


_NONE = np.zeros(0)
_NOBODY = np.zeros(0, np.int64)
_NOTHING = Shares(_NONE, _NONE, _NONE)
NO_BELIEFS = Beliefs(
    *(_NOBODY, _NOTHING, _NOBODY, _NOBODY, _NOTHING, _NOBODY, _NOTHING),
    method="",
    certainty=ESTIMATED,
)


def of_exact(found: Exact, floor: float) -> Beliefs:
    alone = found.block_chance[1 << np.arange(len(found.best))]
    pairs, count = _sure(found.pairs), _sure(found.count)
    return _beliefs(
        found.problem,
        found.best,
        pairs,
        _sure(alone),
        count,
        floor,
        method="exact",
        certainty=EXACT,
        log_total=found.log_total,
        entropy_bits=found.entropy_bits,
    )


def of_separated(found: Separated, floor: float) -> Beliefs:
    alone = np.zeros(len(found.best))
    for some, part in zip(found.groups, found.parts, strict=True):
        alone[some] = part.block_chance[1 << np.arange(len(some))]
    pairs = _within(found.pairs, found.spans)
    inside = found.pairs > 0.0
    pairs = Shares(pairs.value, np.where(inside, pairs.low, 0.0), pairs.high)
    return _beliefs(
        found.problem,
        found.best,
        pairs,
        _within(alone, found.spans),
        _within(found.count, found.spans),
        floor,
        method="exact",
        certainty=EXACT if found.exact else CERTIFIED,
        log_total=found.log_total,
        spans=found.spans,
        entropy_bits=found.entropy_bits if found.exact else None,
        about={"groups": len(found.groups), "spans_at_most": found.spans},
    )


def of_sampled(found: Sampled, floor: float) -> Beliefs:
    pairs = Shares(found.pairs, *found.ends(found.pairs, found.error))
    alone = Shares(found.alone, *found.ends(found.alone, np.zeros_like(found.alone)))
    count = Shares(found.count, *found.ends(found.count, found.count_error))
    about = {"draws": found.draws, "rhat": found.rhat, "effective_draws": found.effective}
    if not np.isfinite(found.rhat):
        about["rhat"] = None  # type: ignore[assignment]
    certainty = SAMPLED if found.trusted else ESTIMATED
    return _beliefs(
        *(found.problem, found.best, pairs, alone, count, floor),
        method="sample",
        certainty=certainty,
        about=about,
    )


def of_linked(problem: Problem, label: Ints, floor: float, *, linkage: str) -> Beliefs:
    """Of agglomerative linking: every item in turn taken out and put back, all others as they are.
    An estimate, of which nothing is promised."""
    chance = _put_back(problem, label)  # (I, blocks + 1), the last: a block of its own
    own = chance[np.arange(len(label)), label]
    size = np.bincount(label)
    together = chance[:, label] * own[None, :]
    pairs = np.maximum(together, together.T)
    same = label[:, None] == label
    pairs[same] = np.outer(own, own)[same]
    np.fill_diagonal(pairs, 1.0)
    alone = np.where(size[label] == 1, chance[:, -1] + own, chance[:, -1])
    count = np.zeros(len(label) + 1)
    count[len(size)] = 1.0
    return _beliefs(
        *(problem, label, _vague(pairs), _vague(np.minimum(alone, 1.0)), _vague(count), floor),
        method="agglomerative",
        certainty=ESTIMATED,
        about={"linkage": linkage},
    )


def _put_back(problem: Problem, label: Ints) -> Floats:
    """(I, blocks + 1) how probable every item is in each block, given where all others are."""
    items, weight, prior = problem.items, problem.pair_weight, problem.block_prior
    blocks = int(label.max()) + 1
    of = np.zeros((len(label), blocks))
    of[np.arange(len(label)), label] = 1.0
    along, size = items.between @ of, items.size
    inside = of.T @ items.inside + 0.5 * (of * along).sum(axis=0)
    n = (of.T @ size).astype(np.int64)
    mine = of.astype(bool)
    n_left = n - np.where(mine, size[:, None], 0)
    x_left = inside - np.where(mine, items.inside[:, None] + along, 0.0)
    joined = n_left + size[:, None]
    gain = weight[joined] * (x_left + items.inside[:, None] + along) + prior[joined]
    gain -= weight[n_left] * x_left + prior[n_left]
    clash = (items.apart.astype(np.float64) @ of) > 0.0
    gain[clash | (n_left == 0)] = -np.inf
    new = weight[size] * items.inside + prior[size]
    gain = np.column_stack([gain, new])
    lone = n[label] == size
    gain[lone, label[lone]], gain[lone, -1] = new[lone], -np.inf
    gain -= gain.max(axis=1, keepdims=True)
    chance = np.exp(gain)
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def _sure(value: Floats) -> Shares:
    return Shares(value, value, value)


def _vague(value: Floats) -> Shares:
    return Shares(value, np.zeros_like(value), np.ones_like(value))


def _within(value: Floats, spans: float) -> Shares:
    """The middle and the ends of probabilities that hold but for `spans`."""
    low, high = value * (1.0 - spans), np.minimum(value * (1.0 - spans) + spans, 1.0)
    return Shares((low + high) / 2.0, low, high)


def _beliefs(
    problem: Problem,
    label: Ints,
    pairs: Shares,
    alone: Shares,
    count: Shares,
    floor: float,
    **more: Any,
) -> Beliefs:
    """From items to sides."""
    item = problem.items.item
    ends = [
        _of_sides(label, size_one, pair, problem)
        for size_one, pair in zip(_parts(alone), _parts(pairs), strict=True)
    ]
    one, two = _pairs_above(pairs.value, item, floor)
    at = item[one], item[two]
    chosen = Shares(*(part[at] for part in _parts(pairs)))
    for part in _parts(chosen):
        part[at[0] == at[1]] = 1.0  # together from the start
    likely = np.flatnonzero(count.value > 0.0)
    return Beliefs(
        label=label[item],
        side=Shares(*(value[item] for value in ends)),
        one=one,
        two=two,
        pair=chosen,
        number=likely,
        count=Shares(*(part[likely] for part in _parts(count))),
        **more,
    )


def _parts(shares: Shares) -> tuple[Floats, Floats, Floats]:
    return shares.value, shares.low, shares.high


def _of_sides(label: Ints, alone: Floats, pairs: Floats, problem: Problem) -> Floats:
    """(I,) the mean over the other sides of the block; of a side that is alone, that it is."""
    size = problem.items.size
    found = np.empty(len(label))
    for block in range(int(label.max()) + 1):
        some = np.flatnonzero(label == block)
        weight = size[some].astype(np.float64)
        if weight.sum() == 1.0:
            found[some] = alone[some]
            continue
        within = pairs[np.ix_(some, some)] * weight
        np.fill_diagonal(within, weight - 1.0)
        found[some] = within.sum(axis=1) / (weight.sum() - 1.0)
    return np.clip(found, 0.0, 1.0)


def _pairs_above(pairs: Floats, item: Ints, floor: float) -> tuple[Ints, Ints]:
    """Pairs of sides whose items reach the floor, in order."""
    if len(item) == len(pairs):
        one, two = np.nonzero(np.triu(pairs >= floor, 1))
        return one, two
    reach = pairs >= floor
    np.fill_diagonal(reach, True)
    one, two = np.nonzero(np.triu(reach[np.ix_(item, item)], 1))
    return one, two


def of_graph(
    label: Ints, own: Floats, one: Ints, two: Ints, pair: Floats, floor: float, *, linkage: str
) -> Beliefs:
    """Of very many sides, linked along the pairs that matter."""
    low, high = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort([high, low])
    order = order[pair[order] >= floor]
    speakers = int(label.max(initial=-1)) + 1
    return Beliefs(
        label=label,
        side=_vague(own),
        one=low[order].astype(np.int64),
        two=high[order].astype(np.int64),
        pair=_vague(pair[order]),
        number=np.array([speakers]),
        count=_vague(np.ones(1)),
        method="agglomerative",
        certainty=ESTIMATED,
        about={"linkage": linkage, "kept_pairs": len(one)},
    )
