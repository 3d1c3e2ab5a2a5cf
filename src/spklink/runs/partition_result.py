"""Who is one person, as an object: rows of files, numbers, a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.partitions.beliefs import Beliefs
from spklink.partitions.items import Ints, Problem, make_items, make_problem
from spklink.partitions.prior import PartitionPrior
from spklink.posterior.likelihood import Weight
from spklink.runs.inputs import Inputs
from spklink.runs.stages import Stages
from spklink.shown import Rows, Shown
from spklink.sound.listening import Sound
from spklink.tables import probability_text

Floats = NDArray[np.float64]
COLUMNS = ("conversation", "channel", "label", "probability", "low", "high", "certainty")
PAIR_COLUMNS = (
    *("conversation_1", "channel_1", "conversation_2", "channel_2"),
    *("probability", "low", "high"),
)
COUNT_COLUMNS = ("speakers", "probability", "low", "high")
LABEL = "speaker-{}"
UNUSABLE = "unusable"


@dataclass(frozen=True, repr=False)
class Partition(Shown):
    """Who is one person, how sure, and all that led to it."""

    options: Mapping[str, Any]
    inputs: Inputs
    conversations: Conversations
    used: Ints  # (U,) sides that were partitioned
    beliefs: Beliefs  # about these, by their places in `used`
    weight: Weight
    prior: PartitionPrior
    speakers: int | None  # where their number was known
    apart: Ints  # (P, 2) places in `used`
    together: Ints
    llr: Floats | None = None  # (U, U); None of very many sides
    scores: Floats | None = None  # before calibration
    calibration: dict[str, Any] | None = None
    sound: Sound | None = None
    recognizer: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    stages: Stages = field(default_factory=Stages)

    def problem(self) -> Problem:
        """What makes one partition of the used sides more probable than another."""
        assert self.llr is not None
        items = make_items(self.llr, together=self.together, apart=self.apart)
        return make_problem(items, self.weight, self.prior, self.speakers)

    def side(self, place: int) -> tuple[str, int]:
        """Conversation and channel of a side that was partitioned."""
        sides, at = self.conversations.sides, int(self.used[place])
        return self.conversations.ids[int(sides.conversation[at])], int(sides.position[at]) + 1

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of partition.csv: every side of the table, also those that cannot be used."""
        place = np.full(len(self.conversations.sides), -1)
        place[self.used] = np.arange(len(self.used))
        found, sides = self.beliefs, self.conversations.sides
        for side, at in enumerate(place.tolist()):
            name = self.conversations.ids[int(sides.conversation[side])]
            track = int(sides.position[side]) + 1
            if at < 0:
                yield name, track, "", "", "", "", UNUSABLE
                continue
            ends = (found.side.value[at], found.side.low[at], found.side.high[at])
            label = LABEL.format(int(found.label[at]) + 1)
            yield name, track, label, *map(probability_text, map(float, ends)), found.certainty

    def pair_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of pairs.csv."""
        found = self.beliefs
        ends = (found.pair.value, found.pair.low, found.pair.high)
        for k, (one, two) in enumerate(zip(found.one.tolist(), found.two.tolist(), strict=True)):
            yield (
                *self.side(one),
                *self.side(two),
                *(probability_text(float(end[k])) for end in ends),
            )

    def count_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of speakers.csv."""
        found = self.beliefs
        ends = (found.count.value, found.count.low, found.count.high)
        for k, number in enumerate(found.number.tolist()):
            yield number, *(probability_text(float(end[k])) for end in ends)

    def summary(self) -> dict[str, Any]:
        """The few numbers a person asks for first."""
        found = self.beliefs
        likely = found.number[found.count.value.argmax()] if len(found.number) else 0
        size = np.bincount(found.label)
        return {
            "conversations": len(self.conversations),
            "sides": len(self.conversations.sides),
            "unused_sides": len(self.conversations.sides) - len(self.used),
            "level": self.options["level"],
            "speakers": found.speakers,
            "speakers_given": self.speakers,
            "most_probable_number": int(likely),
            "largest": int(size.max(initial=0)),
            "alone": int((size == 1).sum()),
            "sure_sides": int((found.side.low >= 0.99).sum()),
            "pairs": len(found.one),
            "method": found.method,
            "certainty": found.certainty,
            "entropy_bits": found.entropy_bits,
            "log_total": found.log_total,
            "spans_at_most": found.spans,
            "diagnostics": found.about,
        }

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write everything to a folder, as the command line does; returns it."""
        from spklink.runs.partition_folder import write_partition

        return write_partition(self, Path(folder))

    def _sentence(self) -> str:
        found = self.summary()
        return (
            f"{found['sides']} sides of {found['conversations']} conversations, "
            f"{found['speakers']} speakers ({found['certainty']})"
        )

    def _rows(self) -> Rows:
        return COLUMNS, self.rows()
