"""What `compare` compares: recognizers with a preset, vectors and scores of others, each under a
name of its own; and whether a run of one of them has to be done again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spklink import __version__
from spklink.cache import key_of
from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.shared_options import PRESETS

UNFIT = re.compile(r"[^\w.+-]+")  # what a folder is not called


@dataclass(frozen=True)
class Candidate:
    """One of several ways to compare voices."""

    name: str  # of its folder, and in tables
    options: Mapping[str, Any]  # of `link`: recognizer, embeddings or scores; preset
    file: Path | None = None  # what it is read from, where that is a file


def candidates(asked: Mapping[str, Any]) -> list[Candidate]:
    """All that were asked for, in the order of the help: recognizers, embeddings, scores."""
    found: list[Candidate] = []
    for kind in ("recognizer", "embeddings", "scores"):
        for text in asked[kind] or ():
            what, preset = _with_preset(str(text))
            path = Path(what)
            own = path.stem if kind != "recognizer" or path.suffix else what
            name = _free(own if preset == PRESETS[0] else f"{own}-{preset}", found)
            file = path if kind != "recognizer" or path.suffix or path.exists() else None
            given: Any = what if kind == "recognizer" else path
            found.append(Candidate(name, {kind: given, "preset": preset}, file))
    if not found:
        raise SpklinkError("nothing to compare; give --recognizer, --embeddings or --scores, twice")
    return found


def _with_preset(text: str) -> tuple[str, str]:
    """`gmm-ubm:paper` is a recognizer and a preset."""
    what, _, preset = text.rpartition(":")
    return (what, preset) if what and preset in PRESETS else (text, PRESETS[0])


def _free(name: str, others: Sequence[Candidate]) -> str:
    """A name that can be that of a folder, and is no other's."""
    plain = UNFIT.sub("-", name).strip(".-") or "run"
    taken, number, tried = {one.name.lower() for one in others}, 2, plain
    while tried.lower() in taken:
        tried, number = f"{plain}-{number}", number + 1
    return tried


def state_of(
    one: Candidate,
    table: Conversations,
    hashes: Mapping[str, str],
    options: Mapping[str, Any],
) -> str:
    """What a run depends on: another value and it has to be done again. Recordings and files of
    others count by their size and date: hashing them takes as long as a run that finds nothing
    new."""
    audio = sorted({table.path.parent / name for files in table.audio for name in files})
    own = [] if one.file is None else [one.file, one.file.with_suffix(".toml")]
    return key_of(
        {
            "version": __version__,
            "inputs": dict(hashes),
            "options": {name: str(value) for name, value in options.items()},
            "files": [_stamp(path) for path in (*own, *audio)],
        }
    )


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), -1, -1
    return str(path), found.st_size, found.st_mtime_ns


def differing(
    answers: Iterable[Mapping[tuple[str, str], tuple[str, str]]],
) -> list[tuple[str, str]]:
    """Tracks on which two of several answers name different people; where one has no name nobody
    disagrees. An answer is (name, probability) by conversation and channel."""
    every = list(answers)
    places = list(dict.fromkeys(place for one in every for place in one))
    return [
        place
        for place in places
        if len({one[place][0] for one in every if place in one and one[place][0]}) > 1
    ]
