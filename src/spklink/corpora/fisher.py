"""Fisher English: two-channel `fe_03_00001.sph`, who called whom in `fe_03_p1_calldata.tbl` and p2,
transcripts `fe_03_00001.txt` with lines `start end A: words`. They may lie anywhere below one
folder."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from spklink.corpora.corpus import Corpus, Stretch, found_below, gathered, old_text
from spklink.corpora.table import refuse_component
from spklink.errors import SpklinkError

RECORDING = re.compile(r"fe_03_(\d+)$")
TURN = re.compile(r"\s*([\d.]+)\s+([\d.]+)\s+([AB])\s*:")
CHANNELS = {"A": 1, "B": 2}
NOBODY = ("", "-", "0", "NA")
SEXES = {"m": "male", "f": "female"}


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "fisher")
    tables = sorted(p for p in folder.rglob("*") if p.name.lower().endswith("calldata.tbl"))
    if not tables:
        raise SpklinkError(f"{folder}: no fe_03_p1_calldata.tbl below it: nobody is named")
    calls = {row["CALL_ID"].strip(): row for path in tables for row in _rows(path)}
    sound = {k: p for k, p in found_below(folder).items() if RECORDING.match(k)}
    texts = {k: p for k, p in found_below(folder, (".txt",)).items() if RECORDING.match(k)}
    said: list[Stretch] = []
    sexes: dict[str, str] = {}
    for stem, path in sound.items():
        row = calls.get(RECORDING.fullmatch(stem)[1])  # type: ignore[index]
        people = {} if row is None else {k: row[f"{k}PIN"].strip() for k in CHANNELS}
        people = {side: who for side, who in people.items() if who not in NOBODY}
        for side, who in people.items():
            said.append(Stretch(path.stem, who, CHANNELS[side]))
            sexes[who] = str(row and row.get(f"{side}SX.DL", ""))[:1]
        if stem in texts:
            said += _turns(texts[stem], path.stem, people)
    known = [(who, SEXES[sex]) for who, sex in sexes.items() if sex in SEXES]
    return gathered({p.stem: (str(p),) for p in sound.values()}, said, speakers=known)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    rows = csv.DictReader(old_text(path).splitlines())
    missing = {"CALL_ID", "APIN", "BPIN"} - set(rows.fieldnames or [])
    if missing:
        raise SpklinkError(f"{path}: row 1: no column {', '.join(sorted(missing))}")
    yield from rows


def _turns(path: Path, name: str, people: dict[str, str]) -> Iterator[Stretch]:
    for line in old_text(path).splitlines():
        if (found := TURN.match(line)) and found[3] in people:
            start, end = float(found[1]), float(found[2])
            yield Stretch(name, people[found[3]], CHANNELS[found[3]], start, end)
