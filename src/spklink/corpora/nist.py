"""NIST SRE: segments on two channels, with keys of trials or lists of what models are made of.

What is said of a model in a list of models (`.trn`, enrollment), and in every trial whose key says
`target`, is one person on one side of a segment. Models that share a side are one person too. The
other side of a call is somebody unknown. Trials without a key say nothing about people. Segments of
one channel are left out: nobody can be on another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spklink.corpora.corpus import Corpus, Stretch, found_below, gathered, old_text
from spklink.corpora.table import refuse_component
from spklink.errors import SpklinkError
from spklink.sound.audio import channels_of

LISTS = (".trn", ".tsv", ".csv", ".key", ".txt", ".ndx", ".tbl", ".lst")
CHANNELS = {"a": 1, "b": 2, "1": 1, "2": 2}
SIDE = re.compile(r"([\w.+-]+?)(?:\.sph|\.wav|\.flac)?:([abAB12])$")
MODEL, SEGMENT, TRUTH = (
    ("modelid", "model", "model_id"),
    ("segmentid", "segment", "segment_id"),
    (*("targettype", "target", "key", "trialtype"),),
)
Side = tuple[str, int]


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "nist")
    files = found_below(folder)
    owner = _Owners()
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in LISTS and path.is_file():
            for model, side in _said(path):
                owner.join(("", model), side)
    if not owner.parent:
        raise SpklinkError(
            f"{folder}: no list of models and no key with targets below it; trials without a key "
            "say nothing about people"
        )
    stretches = [
        Stretch(side[0], name, int(side[1])) for name, side in owner.named() if side[0] in files
    ]
    there = {name: files[name] for name in dict.fromkeys(one.conversation for one in stretches)}
    audio = {name: (str(path),) for name, path in there.items() if channels_of(path) > 1}
    lost = len(there) - len(audio)
    notes = [f"{lost} segments of one channel left out: nobody can be on another"] if lost else []
    return gathered(audio, [one for one in stretches if one.conversation in audio], notes=notes)


class _Owners:
    """Models and sides that are one person's, by union."""

    def __init__(self) -> None:
        self.parent: dict[tuple[str, int | str], tuple[str, int | str]] = {}

    def find(self, one: tuple[str, int | str]) -> tuple[str, int | str]:
        self.parent.setdefault(one, one)
        while self.parent[one] != one:
            self.parent[one] = self.parent[self.parent[one]]
            one = self.parent[one]
        return one

    def join(self, one: tuple[str, int | str], two: tuple[str, int | str]) -> None:
        low, high = sorted((self.find(one), self.find(two)), key=lambda key: (key[0], str(key[1])))
        self.parent[high] = low  # models come first: a person is called after one

    def named(self) -> Iterator[tuple[str, tuple[str, int | str]]]:
        for one in list(self.parent):
            if one[0]:
                yield str(self.find(one)[1]), one


def _said(path: Path) -> Iterator[tuple[str, Side]]:
    """(model, side) wherever a list says that they are one person's."""
    names: list[str] = []
    enrolled = path.suffix.lower() == ".trn" or re.search(r"enrol|train|model", path.stem.lower())
    for line in old_text(path).splitlines():
        fields = [field for field in re.split(r"[,\t ]+", line.strip()) if field]
        low = [field.lower() for field in fields]
        if any(name in low for name in MODEL) and any(name in low for name in SEGMENT):
            names = low
        elif names and len(fields) >= 2:
            yield from _of_columns(dict(zip(names, fields, strict=False)))
        elif "target" in low or (enrolled and "nontarget" not in low):
            yield from ((fields[0], side) for side in _sides(fields[1:]))


def _of_columns(row: dict[str, str]) -> Iterator[tuple[str, Side]]:
    """A row below a header; without a column that tells targets it is one of a list of models."""
    model, segment = (next((row[n] for n in some if n in row), "") for some in (MODEL, SEGMENT))
    truth = next((row[name] for name in TRUTH if name in row), None)
    if not model or not segment or (truth is not None and truth.lower() not in ("target", "true")):
        return
    channel = CHANNELS.get(row.get("side", row.get("channel", "a")).lower())
    if channel is not None:
        yield model, (Path(segment).stem.lower() if "." in segment else segment.lower(), channel)


def _sides(fields: list[str]) -> Iterator[Side]:
    """Sides as `segment:a`, or as a segment followed by a channel."""
    marked = [SIDE.match(field) for field in fields]
    if any(marked):
        yield from ((m[1].lower(), CHANNELS[m[2].lower()]) for m in marked if m)
    elif len(fields) > 1 and fields[1].lower() in CHANNELS:
        yield fields[0].lower(), CHANNELS[fields[1].lower()]
