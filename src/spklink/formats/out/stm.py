"""STM: file channel speaker start end, and no words.

Channels are A, B, …; diarized tracks are all in channel 1. There is no place for a probability:
lines that begin with ;; are remarks, and say it before the segments of a side.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spklink.formats.out.labelled import Labelled, letter, seconds, write_lines
from spklink.tables import probability_text

FILE = "speakers.stm"


def write(labelled: Labelled, folder: Path) -> None:
    write_lines(folder / FILE, _lines(labelled))


def _lines(labelled: Labelled) -> Iterator[str]:
    for one in labelled.recordings():
        file = labelled.names.word("conversation", one.id)
        for side in one.sides:
            channel = "1" if one.mixed else letter(side.track)
            who = labelled.names.word("speaker", side.speaker)
            if labelled.whole:
                yield f";; {file} {channel} {who} {probability_text(side.probability)}"
            for start, end in side.times.tolist():
                yield f"{file} {channel} {who} {seconds(start)} {seconds(end)}"
