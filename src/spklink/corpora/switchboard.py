"""Switchboard-1: two-channel `sw02001.sph`, who called whom in `call_con_tab.csv` (conversation,
side, caller), callers in `caller_tab.csv`, transcripts `sw2001A-ms98-a-trans.text`. They may lie
anywhere below one folder."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from spklink.corpora.corpus import Corpus, Stretch, found_below, gathered, old_text
from spklink.corpora.table import refuse_component
from spklink.errors import SpklinkError

RECORDING = re.compile(r"sw_?0*(\d+)$")
TRANSCRIPT = re.compile(r"sw0*(\d+)([ab])-ms98-a-trans$")
CHANNELS = {"A": 1, "B": 2}


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "switchboard")
    every = found_below(folder, (".sph", ".wav", ".flac", ".csv", ".text"))
    files = {
        match[1]: path
        for stem, path in every.items()
        if path.suffix.lower() not in (".csv", ".text") and (match := RECORDING.match(stem))
    }
    if "call_con_tab" not in every:
        raise SpklinkError(f"{folder}: no call_con_tab.csv below it, which says who called whom")
    callers = {}
    for row in _rows(every["call_con_tab"]):
        if len(row) > 2 and row[1].upper() in CHANNELS:
            callers[row[0].lstrip("0"), row[1].upper()] = row[2]
    said = [Stretch(call, who, CHANNELS[side]) for (call, side), who in callers.items()]
    for stem, path in every.items():
        if (match := TRANSCRIPT.match(stem)) and (who := callers.get((match[1], match[2].upper()))):
            said += _turns(path, match[1], who, CHANNELS[match[2].upper()])
    names = {number: path.stem for number, path in files.items()}
    return gathered(
        {names[number]: (str(path),) for number, path in files.items()},
        [_renamed(one, names) for one in said if one.conversation in names],
        speakers=_speakers(every.get("caller_tab")),
    )


def _renamed(one: Stretch, names: dict[str, str]) -> Stretch:
    return Stretch(names[one.conversation], one.speaker, one.channel, one.start, one.end)


def _rows(path: Path | None) -> Iterator[list[str]]:
    if path is not None:
        for row in csv.reader(old_text(path).splitlines(), skipinitialspace=True):
            yield [cell.strip().strip('"') for cell in row]


def _speakers(path: Path | None) -> list[tuple[str, str]]:
    rows = (row for row in _rows(path) if len(row) > 3 and row[0].isdigit())
    return [(row[0], row[3].lower()) for row in rows]


def _turns(path: Path, call: str, who: str, channel: int) -> Iterator[Stretch]:
    for line in old_text(path).splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and fields[3].strip() not in ("[silence]", "[noise]"):
            yield Stretch(call, who, channel, float(fields[1]), float(fields[2]))
