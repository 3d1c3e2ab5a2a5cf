"""CTM as in NIST's rich transcription: file channel start duration token confidence type speaker.

There are no words: the token of a segment is `speech`, its type `misc`. Channels are A, B, …;
diarized tracks are all in channel 1. The confidence is the probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spklink.formats.out.labelled import Labelled, letter, seconds, write_lines
from spklink.tables import probability_text

FILE = "speakers.ctm"


def write(labelled: Labelled, folder: Path) -> None:
    write_lines(folder / FILE, _lines(labelled))


def _lines(labelled: Labelled) -> Iterator[str]:
    for one in labelled.recordings():
        file = labelled.names.word("conversation", one.id)
        for side in one.sides:
            channel = "1" if one.mixed else letter(side.track)
            who = labelled.names.word("speaker", side.speaker)
            sure = probability_text(side.probability)
            for start, end in side.times.tolist():
                when = f"{seconds(start)} {seconds(end - start)}"
                yield f"{file} {channel} {when} speech {sure} misc {who}"
