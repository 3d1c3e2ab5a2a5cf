"""CGN (Corpus Gesproken Nederlands): two-channel telephone speech of components c and d.

Sound is below `data/audio/wav/comp-c/nl`, who takes part in `data/meta/text/recordings.txt`, or, in
sets without it, in the tiers of the annotations; who has the turn when in `.sea` or `.ort` files.
Folders are found in any case of letters. The corpus does not say who is on which channel. Other
telephone speech is background: component d where c is linked, and c where d is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spklink.corpora.corpus import Corpus, Stretch, found_below, gathered, old_text, one_below
from spklink.errors import SpklinkError
from spklink.formats.turn import NOBODY, Turn
from spklink.formats.turns import read_turns

COMPONENTS = ("c", "d")
ANNOTATIONS = (("corex", "sea", ".sea"), ("text", "ort", ".ort"))
SEXES = {"sex1": "male", "sex2": "female"}


def read(folder: Path, component: str | None) -> Corpus:
    """`component` is c or d, of the Netherlands; c/vl is that of Flanders."""
    letter, _, region = (component or "c").lower().removeprefix("comp-").partition("/")
    region = region or "nl"
    if letter not in COMPONENTS or region not in ("nl", "vl"):
        raise SpklinkError(f"--component {component!r}: c or d, or c/vl or d/vl of Flanders")
    data = one_below(folder, "data") or folder
    sound = _part(data, ("audio", "wav"), letter, region)
    if sound is None:
        raise SpklinkError(f"{data}: no folder audio/wav/comp-{letter}/{region}")
    files = found_below(sound)
    turns = list(_turns(data, letter, region, files))
    listed = _recordings(data, files)
    notes = [] if listed else ["no recordings.txt: participants follow from the annotations"]
    known = {(one.conversation, one.speaker) for one in listed}
    said = [*listed, *(s for s in turns if not known or (s.conversation, s.speaker) in known)]
    other = _part(data, ("audio", "wav"), "d" if letter == "c" else "c", region)
    return gathered(
        {path.stem: (str(path),) for path in files.values()},
        said,
        speakers=_speakers(data, {one.speaker for one in said}),
        background=other,
        notes=notes,
    )


def _part(data: Path, where: tuple[str, ...], letter: str, region: str) -> Path | None:
    return one_below(data, *where, f"comp-{letter}", region)


def _recordings(data: Path, files: dict[str, Path]) -> list[Stretch]:
    """Who takes part, from the table of all recordings."""
    path = one_below(data, "meta", "text", "recordings.txt")
    found = []
    for row in _rows(path):
        name = next(iter(row.values()), "").strip()
        if (file := files.get(name.lower())) is not None:
            people = _column(row, "speakerIDs").replace(";", ",").split(",")
            who = [one.strip() for one in people if one.strip() and one.strip() not in NOBODY]
            found += [Stretch(file.stem, one) for one in who]
    return found


def _rows(path: Path | None) -> Iterator[dict[str, str]]:
    """The rows of a table with tabs and a header."""
    if path is None:
        return
    lines = [line for line in old_text(path).splitlines() if line.strip()]
    names = [name.strip() for name in lines[0].split("\t")] if lines else []
    for line in lines[1:]:
        yield dict(zip(names, line.split("\t"), strict=False))


def _column(row: dict[str, str], name: str) -> str:
    """A cell, whatever the case of its column's name."""
    return next((cell for key, cell in row.items() if key.lower() == name.lower()), "")


def _turns(data: Path, letter: str, region: str, files: dict[str, Path]) -> Iterator[Stretch]:
    """Of every recording from one annotation, .sea before .ort."""
    done: set[str] = set()
    for part, kind, ending in ANNOTATIONS:
        folder = _part(data, ("annot", part, kind), letter, region)
        if folder is None:
            continue
        for path in sorted(folder.iterdir()):
            stem = path.name.partition(".")[0].lower()
            fits = path.name.lower().removesuffix(".gz").endswith(ending)
            if fits and stem in files and stem not in done:
                done.add(stem)
                yield from (_stretch(files[stem].stem, turn) for turn in _of_file(path))


def _of_file(path: Path) -> list[Turn]:
    return [turn for one in read_turns(path).files for turn in one.turns]


def _stretch(name: str, turn: Turn) -> Stretch:
    return Stretch(name, turn.speaker, None, turn.start, turn.end)


def _speakers(data: Path, people: set[str]) -> list[tuple[str, str]]:
    path = one_below(data, "meta", "text", "speakers.txt")
    found = ((_column(row, "ID").strip(), _column(row, "sex").strip()) for row in _rows(path))
    return [(who, SEXES.get(sex, sex)) for who, sex in found if who in people]
