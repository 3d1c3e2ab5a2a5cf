"""Praat TextGrids, one a conversation, in the long form: a tier a side, called after its person.

An interval says the person; where all is exported, also the probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spklink.formats.out.labelled import (
    Labelled,
    LabelledSide,
    Recording,
    seconds,
    short,
    write_lines,
)


def write(labelled: Labelled, folder: Path) -> None:
    for one in labelled.recordings():
        name = labelled.names.file(one.id, ".TextGrid")
        write_lines(folder / name, _lines(labelled, one))


def _lines(labelled: Labelled, one: Recording) -> Iterator[str]:
    last = seconds(one.last)
    yield from ('File type = "ooTextFile"', 'Object class = "TextGrid"', "")
    yield from ("xmin = 0", f"xmax = {last}", "tiers? <exists>")
    yield from (f"size = {len(one.sides)}", "item []:")
    for number, (tier, side) in enumerate(one.named(), start=1):
        who = labelled.names.text("speaker", side.speaker)
        text = f"{who} {short(side.probability)}" if labelled.whole else who
        every = list(intervals(side, one.last))
        yield f"    item [{number}]:"
        yield '        class = "IntervalTier"'
        yield f"        name = {_quoted(labelled.names.text('tier', tier))}"
        yield from ("        xmin = 0", f"        xmax = {last}")
        yield f"        intervals: size = {len(every)}"
        for k, (start, end, spoken) in enumerate(every, start=1):
            yield f"        intervals [{k}]:"
            yield f"            xmin = {seconds(start)}"
            yield f"            xmax = {seconds(end)}"
            yield f"            text = {_quoted(text if spoken else '')}"


def intervals(side: LabelledSide, last: int) -> Iterator[tuple[int, int, bool]]:
    """From the begin to the end of a recording, without a gap: speech and what lies between."""
    done = 0
    for start, end in side.times.tolist():
        if start > done:
            yield done, start, False
        yield start, end, True
        done = end
    if last > done:
        yield done, last, False


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
