"""RTTM: SPEAKER file channel start duration <NA> <NA> name confidence <NA>.

Channels count from 1; diarized tracks are all in channel 1. The confidence is the probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spklink.formats.out.labelled import Labelled, seconds, write_lines
from spklink.tables import probability_text

FILE = "speakers.rttm"


def write(labelled: Labelled, folder: Path) -> None:
    write_lines(folder / FILE, _lines(labelled))


def _lines(labelled: Labelled) -> Iterator[str]:
    for one in labelled.recordings():
        file = labelled.names.word("conversation", one.id)
        for side in one.sides:
            channel = 1 if one.mixed else side.track + 1
            who = labelled.names.word("speaker", side.speaker)
            sure = probability_text(side.probability)
            for start, end in side.times.tolist():
                when = f"{seconds(start)} {seconds(end - start)}"
                yield f"SPEAKER {file} {channel} {when} <NA> <NA> {who} {sure} <NA>"
