"""Partitions on the terminal: what was found, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spklink.cli.show import number, percent, table, text
from spklink.result_tables import KeptTables
from spklink.words import counted

if TYPE_CHECKING:
    from spklink.measures.partitions import PartitionEvaluation
    from spklink.runs.partition_result import Partition

MOST_NUMBERS = 9  # of speakers, in a table


def partitioned(found: Partition, out: Path) -> None:
    """What `partition` found, in a few lines."""
    said, beliefs = found.summary(), found.beliefs
    text(
        f"{counted(said['sides'], 'side')} of {counted(said['conversations'], 'conversation')}, "
        f"level {said['level']}: {counted(said['speakers'], 'speaker')} "
        f"({said['method']}, {said['certainty']})"
    )
    if said["unused_sides"]:
        text(f"{counted(said['unused_sides'], 'side')} could not be used")
    text(
        f"largest {counted(said['largest'], 'side')}, {said['alone']} alone; "
        f"{said['sure_sides']} sides sure at 99 %"
    )
    if said["entropy_bits"] is not None:
        text(f"{said['entropy_bits']:.2f} bits open over all partitions")
    if len(beliefs.number) > 1:
        order = beliefs.count.value.argsort()[::-1][:MOST_NUMBERS]
        rows = [
            (int(beliefs.number[k]), percent(float(beliefs.count.value[k]), 1))
            for k in sorted(order.tolist())
        ]
        table(["speakers", "probability"], rows, title="How many people")
    for note in found.notes:
        text(f"note: {note}")
    names = ("partition", "pairs", "speakers")
    text(f"results: {', '.join(str(KeptTables(out).path(name)) for name in names)}")


def evaluated(found: PartitionEvaluation) -> None:
    """What a key tells."""
    a = found.agreement
    table(
        ["of the partition", "value"],
        [
            ("sides with a key", a.sides),
            ("speakers", a.speakers),
            ("clusters", a.clusters),
            ("cluster impurity", percent(a.cluster_impurity, 2)),
            ("speaker impurity", percent(a.speaker_impurity, 2)),
            ("adjusted Rand index", number(a.adjusted_rand, 4)),
            ("B-cubed precision", number(a.bcubed_precision, 4)),
            ("B-cubed recall", number(a.bcubed_recall, 4)),
            ("B-cubed F", number(a.bcubed, 4)),
            ("the true partition", "yes" if found.right else "no"),
        ],
        title=f"Against the key, level {found.level}",
    )
    if found.cross_entropy_bits is not None and found.confusion is not None:
        text(f"cross entropy of the true partition: {_ends(found.cross_entropy_bits, 3)} bits")
        text(f"confusion F: {_ends(found.confusion, 3)}")
    else:
        text("cross entropy of the true partition: not known (only where all partitions are)")
    if found.count_bits is not None:
        text(f"true number of speakers: {found.count_bits:.2f} bits")
    if found.pair_eer is not None:
        text(f"equal error rate of the probabilities of pairs: {percent(found.pair_eer, 2)}")
    table(
        ["probability of a pair", "number", "predicted", "observed", "95 % interval"],
        [
            (
                f"{b.low:g} to {b.high:g}",
                b.count,
                percent(b.predicted, 2),
                percent(b.observed, 2),
                f"{percent(b.observed_low)} to {percent(b.observed_high)}",
            )
            for b in found.reliability
        ],
        title="Reliability of pairs",
    )
    text(
        f"{found.pairs_listed} pairs listed: {found.pairs_expected:.1f} expected to be one person, "
        f"{found.pairs_observed} are; {found.pairs_missed} of one person are not listed"
    )


def _ends(pair: tuple[float, float], digits: int) -> str:
    low, high = (f"{value:.{digits}f}" for value in pair)
    return low if low == high else f"{low} to {high}"
