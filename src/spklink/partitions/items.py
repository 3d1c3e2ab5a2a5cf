"""What is partitioned: sides, and what is known of them before any voice is compared.

Sides that must be together are one *item* from the start: every method works on items, of one side
each where nothing must be together. Two items may be kept apart. The log-likelihood of a block of n
sides, against all of them being different people, is w(n) times the sum of the
log-likelihood-ratios of its pairs (module `likelihood` has the rule w).

Index conventions: s = side, i = item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.partitions.prior import PartitionPrior
from spklink.posterior.likelihood import Weight

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Items:
    """Sides that are together from the start, and what their pairs say."""

    item: Ints  # (S,) of each side
    size: Ints  # (I,) sides of each
    inside: Floats  # (I,) sum over the pairs within
    between: Floats  # (I, I) sum over the pairs across; nothing on the diagonal
    apart: Mask  # (I, I) that may not be together

    def __len__(self) -> int:
        return len(self.size)

    def chosen(self, some: Ints) -> Items:
        """Of some items alone; sides of the others have none (-1)."""
        place = np.full(len(self), -1)
        place[some] = np.arange(len(some))
        cross = np.ix_(some, some)
        return Items(
            place[self.item],
            self.size[some],
            self.inside[some],
            self.between[cross],
            self.apart[cross],
        )


def make_items(llr: Floats, *, together: Ints | None = None, apart: Ints | None = None) -> Items:
    """From the log-likelihood-ratios (S, S) of all pairs of sides; `together` and `apart` are pairs
    (P, 2) of sides that must, or may not, be one person."""
    sides = len(llr)
    item = _joined(sides, together)
    count = int(item.max(initial=-1)) + 1
    of = np.zeros((sides, count))
    of[np.arange(sides), item] = 1.0
    clean = np.where(np.eye(sides, dtype=bool), 0.0, llr)
    sums = of.T @ clean @ of if count < sides else clean
    kept = np.zeros((count, count), bool)
    for one, two in item[apart].tolist() if apart is not None and len(apart) else ():
        if one == two:
            raise SpklinkError("two sides must be one person, and may not be: mend what is known")
        kept[one, two] = kept[two, one] = True
    inside = np.diag(sums) / 2.0
    return Items(
        item,
        np.bincount(item, minlength=count).astype(np.int64),
        np.ascontiguousarray(inside),
        np.ascontiguousarray(np.where(np.eye(count, dtype=bool), 0.0, sums)),
        kept,
    )


def _joined(sides: int, together: Ints | None) -> Ints:
    """(S,) the item of each side, numbered by their first sides."""
    if together is None or not len(together):
        return np.arange(sides)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(together))
    graph = coo_array((ones, (together[:, 0], together[:, 1])), shape=(sides, sides))
    label = connected_components(graph, directed=False)[1]
    return np.asarray(np.unique(label, return_inverse=True)[1], np.int64)


@dataclass(frozen=True)
class Problem:
    """Items, and all that makes one partition of them more probable than another."""

    items: Items
    pair_weight: Floats  # (S + 1,) w(n)
    block_prior: Floats  # (S + 1,) h(n) of the prior
    count_prior: Floats | None = None  # (I + 1,) g(K), -inf where K cannot be; None: all the same

    @property
    def sides(self) -> int:
        return len(self.pair_weight) - 1

    def silent(self) -> Problem:
        """The same before any voice is compared."""
        items, nothing = self.items, np.zeros_like
        still = replace(items, inside=nothing(items.inside), between=nothing(items.between))
        return replace(self, items=still)

    def log_weight(self, label: Ints) -> float:
        """Prior times likelihood of a partition (I,) of the items, up to the constant of the prior;
        minus infinity where it is not allowed."""
        total, items = 0.0, self.items
        blocks = np.unique(label)
        for block in blocks:
            some = np.flatnonzero(label == block)
            cross = np.ix_(some, some)
            if items.apart[cross].any():
                return -np.inf
            n = int(items.size[some].sum())
            pairs = items.inside[some].sum() + items.between[cross].sum() / 2.0
            total += self.pair_weight[n] * pairs + self.block_prior[n]
        if self.count_prior is not None:
            total += self.count_prior[len(blocks)]
        return float(total)


def make_problem(
    items: Items,
    weight: Weight | None = None,
    prior: PartitionPrior | None = None,
    speakers: int | None = None,
) -> Problem:
    """By the rule of the paper and a uniform prior, unless others are given; `speakers` where their
    number is known."""
    weight, prior = weight or Weight(), prior or PartitionPrior()
    sides, most = len(items.item), len(items)
    if weight.consecutive:
        raise SpklinkError("--weight chain follows a list of conversations; there is none here")
    if speakers is not None and not 1 <= speakers <= most:
        raise SpklinkError(f"--speakers {speakers}: possible are 1 to {most}")
    pair_weight = np.zeros(sides + 1)
    pair_weight[2:] = weight.of(np.arange(2, sides + 1, dtype=np.int32))
    count = prior.of_count(most)
    if speakers is not None:
        given = np.full(most + 1, -np.inf)
        given[speakers] = 0.0
        count = given if count is None else given + count
    return Problem(items, pair_weight, prior.of_block(sides), count)
