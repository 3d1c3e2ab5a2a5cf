"""How good a partition is, given the truth: purity, agreement, and the worth of probabilities.

impurity         of clusters: share of sides that are not of their cluster's most frequent
                 speaker; of speakers: share that are not in their speaker's largest cluster
                 (van Leeuwen, Odyssey 2010)
Rand, adjusted   agreement over pairs, 0 by chance, 1 at best (Hubert & Arabie 1985)
B-cubed          mean over sides: precision, the share of its cluster that is its speaker;
                 recall, the share of its speaker that is in its cluster
cross entropy    -log2 P(true partition), in bits; F = 2^(bits a conversation) - 1
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.measures.detection import measure
from spklink.measures.reliability import Reliability, bins_json, reliability
from spklink.shown import Rows, Shown

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
EDGES = (0.0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0)
MOST_PAIRS = 50_000_000  # whose scores are ranked


@dataclass(frozen=True)
class Agreement:
    """A partition against the truth."""

    sides: int
    speakers: int
    clusters: int
    cluster_impurity: float
    speaker_impurity: float
    adjusted_rand: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed: float


@dataclass(frozen=True, repr=False)
class PartitionEvaluation(Shown):
    """All that a key tells about a partition."""

    agreement: Agreement
    right: bool  # the partition is the true one
    without_key: int  # sides
    foreign_key_rows: int
    level: int
    certainty: str
    cross_entropy_bits: tuple[float, float] | None  # ends; None where it is not known
    confusion: tuple[float, float] | None
    count_bits: float | None  # -log2 P(true number of speakers)
    pair_eer: float | None  # of the probabilities of pairs
    pairs_listed: int
    pairs_expected: float  # of the listed ones that are one person
    pairs_observed: int
    pairs_missed: int  # of one person, but less probable than the floor
    reliability: list[Reliability]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"reliability": bins_json(self.reliability, "pairs")}

    def _sentence(self) -> str:
        a = self.agreement
        return (
            f"{a.clusters} clusters of {a.speakers} speakers, adjusted Rand {a.adjusted_rand:.3f}, "
            f"impurity {100 * a.cluster_impurity:.1f} and {100 * a.speaker_impurity:.1f} %"
        )

    def _rows(self) -> Rows:
        return ("measure", "value"), list(asdict(self.agreement).items())


def agreement(label: Ints, truth: Ints) -> Agreement:
    """Of two partitions (S,) of the same sides."""
    if not len(label):
        raise SpklinkError("no side that was partitioned is in the key")
    cluster, c = np.unique(label, return_inverse=True)
    speaker, s = np.unique(truth, return_inverse=True)
    cells, count = np.unique(c * len(speaker) + s, return_counts=True)
    n = count.astype(np.float64)
    row, column = cells // len(speaker), cells % len(speaker)
    sizes, people = np.bincount(c).astype(np.float64), np.bincount(s).astype(np.float64)
    precision = float((n * n / sizes[row]).sum() / n.sum())
    recall = float((n * n / people[column]).sum() / n.sum())
    return Agreement(
        sides=len(label),
        speakers=len(speaker),
        clusters=len(cluster),
        cluster_impurity=1.0 - _largest(row, n, len(cluster)),
        speaker_impurity=1.0 - _largest(column, n, len(speaker)),
        adjusted_rand=_adjusted_rand(n, sizes, people),
        bcubed_precision=precision,
        bcubed_recall=recall,
        bcubed=2.0 * precision * recall / (precision + recall),
    )


def _largest(group: Ints, n: Floats, groups: int) -> float:
    most = np.zeros(groups)
    np.maximum.at(most, group, n)
    return float(most.sum() / n.sum())


def _adjusted_rand(n: Floats, sizes: Floats, people: Floats) -> float:
    def pairs(x: Floats) -> float:
        return float((x * (x - 1.0)).sum() / 2.0)

    both, one, two, every = pairs(n), pairs(sizes), pairs(people), pairs(n.sum(keepdims=True))
    chance = one * two / every if every else 0.0
    most = (one + two) / 2.0
    return 1.0 if most == chance else (both - chance) / (most - chance)


def pair_measures(
    one: Ints, two: Ints, chance: Floats, truth: Ints
) -> tuple[float | None, int, int, list[Reliability]]:
    """Of listed pairs of sides with their probabilities, all others having less than any of them:
    the equal error rate over all pairs, how many of one person are listed and not, and bins."""
    known = (truth[one] >= 0) & (truth[two] >= 0)
    one, two, chance = one[known], two[known], chance[known]
    same = truth[one] == truth[two]
    there = truth[truth >= 0]
    people = np.bincount(there).astype(np.int64)
    targets = int((people * (people - 1) // 2).sum())
    every = len(there) * (len(there) - 1) // 2
    missed = targets - int(same.sum())
    eer = None
    if 0 < targets < every and every <= MOST_PAIRS:
        rest = every - len(same) - missed
        found = measure(
            np.concatenate([chance[same], np.full(missed, -1.0)]),
            np.concatenate([chance[~same], np.full(rest, -1.0)]),
        )
        eer = float(found.eer)
    return eer, int(same.sum()), missed, reliability(chance, same, EDGES)
