"""A partition held against a key."""

from __future__ import annotations

from os import PathLike

import numpy as np

from spklink.database.side_names import read_side_names
from spklink.measures.entropy import confusion
from spklink.measures.partitions import PartitionEvaluation, agreement, pair_measures
from spklink.partitions.items import Ints, Problem
from spklink.runs.partition_folder import Saved, read_partition
from spklink.runs.partition_result import Partition
from spklink.runs.stages import Stages
from spklink.tables import Table

LN2 = float(np.log(2.0))


def evaluate_partition(
    result: Partition | str | PathLike[str], key: Table, *, stages: Stages | None = None
) -> PartitionEvaluation:
    """How good a partition and its probabilities are, given the truth; `result` is what `partition`
    returned, or a folder that it wrote."""
    stages = stages or Stages()
    with stages.stage("reading the results"):
        saved = as_saved(result) if isinstance(result, Partition) else read_partition(result)
        names = read_side_names(key, saved.conversations)
    with stages.stage("measuring"):
        return measured(saved, names.speaker, names.foreign)


def as_saved(found: Partition) -> Saved:
    """A result as a folder would have it."""
    label = np.full(len(found.conversations.sides), -1, np.int64)
    label[found.used] = found.beliefs.label
    beliefs = found.beliefs
    numbers = zip(beliefs.number.tolist(), beliefs.count.value.tolist(), strict=True)
    return Saved(
        conversations=found.conversations,
        run={"result": found.summary(), "options": {"level": found.options["level"]}},
        label=label,
        one=found.used[beliefs.one],
        two=found.used[beliefs.two],
        chance=beliefs.pair.value,
        count=list(numbers),
        problem=None if found.llr is None else found.problem(),
    )


def measured(saved: Saved, truth: Ints, foreign: int) -> PartitionEvaluation:
    """All that a key (S,) tells; -1 where it says nothing."""
    used = saved.label >= 0
    both = used & (truth >= 0)
    found = agreement(saved.label[both], truth[both])
    whole = bool((truth[used] >= 0).all())
    bits = cross_entropy(saved, truth) if whole else None
    calls = len(saved.conversations)
    right = found.adjusted_rand == 1.0 and found.clusters == found.speakers
    eer, observed, missed, bins = pair_measures(
        saved.one, saved.two, saved.chance, truth * used - ~used
    )
    sure = dict(saved.count).get(found.speakers, 0.0)
    certainty = saved.run["result"]["certainty"]
    return PartitionEvaluation(
        agreement=found,
        right=right,
        without_key=int((used & (truth < 0)).sum()),
        foreign_key_rows=foreign,
        level=int(saved.run["options"]["level"]),
        certainty=certainty,
        cross_entropy_bits=bits,
        confusion=None if bits is None else (confusion(bits[0], calls), confusion(bits[1], calls)),
        count_bits=float(-np.log2(sure)) if whole and sure > 0.0 else None,
        pair_eer=eer,
        pairs_listed=len(saved.one),
        pairs_expected=float(saved.chance.sum()),
        pairs_observed=observed,
        pairs_missed=missed,
        reliability=bins,
    )


def cross_entropy(saved: Saved, truth: Ints) -> tuple[float, float] | None:
    """Ends of -log2 P(true partition); None where the sum over all partitions is not known, or the
    truth is none of those that can be."""
    result, problem = saved.run["result"], saved.problem
    if result.get("log_total") is None or problem is None:
        return None
    label = item_labels(problem, truth[saved.used])
    if label is None:
        return None
    log_weight = problem.log_weight(label)
    if log_weight == -np.inf:
        return None
    low = (float(result["log_total"]) - log_weight) / LN2
    spans = float(result.get("spans_at_most") or 0.0)
    return low, low - float(np.log1p(-spans)) / LN2 if spans < 1.0 else float("inf")


def item_labels(problem: Problem, truth: Ints) -> Ints | None:
    """(I,) a partition of sides as one of items; None where it parts what must be together."""
    label = np.zeros(len(problem.items), np.int64)
    label[problem.items.item] = truth
    return label if (label[problem.items.item] == truth).all() else None
