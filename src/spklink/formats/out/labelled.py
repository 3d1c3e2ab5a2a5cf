"""What every format is handed: sides with a name, and when they speak.

Tracks count from 0 here; each format counts channels in its own way. Of somebody who is not listed
nothing is known but that: on every side he is a person of his own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError, problems_in
from spklink.formats.out.names import Names

ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]+://|.*::", re.IGNORECASE)
Times = NDArray[np.int32]  # (segments, 2) start and end, ms


@dataclass(frozen=True)
class Header:
    """What a sound file says of itself."""

    samples: int
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        return self.samples / self.rate


@dataclass(frozen=True)
class LabelledSide:
    """One track of one conversation, and who is on it."""

    conversation: str
    track: int
    speaker: str  # his label
    listed: bool  # False: someone else
    probability: float
    low: float
    high: float
    decision: str
    origin: str
    times: Times = field(repr=False)


@dataclass(frozen=True)
class Recording:
    """A conversation and those of its sides that are labelled."""

    id: str
    files: tuple[str, ...]  # one of all tracks, or one each; none where they are not known
    tracks: int
    mixed: bool  # its tracks are diarized: all of them are in one channel
    sides: list[LabelledSide]
    header: Callable[[str], Header | None] = field(repr=False)

    @cached_property
    def headers(self) -> tuple[Header | None, ...]:
        """What its files say of themselves; None of those that cannot be read."""
        return tuple(map(self.header, self.files))

    @property
    def last(self) -> int:
        """When it ends, ms: as its files say, and not before anybody stops speaking."""
        ends = [int(np.ceil(1000 * one.seconds)) for one in self.headers if one is not None]
        return max([*ends, *(int(side.times[-1, 1]) for side in self.sides if len(side.times))])

    def named(self) -> Iterator[tuple[str, LabelledSide]]:
        """The sides with a name each that no other here has."""
        seen: dict[str, int] = {}
        for side in self.sides:
            seen[side.speaker] = seen.get(side.speaker, 0) + 1
            again = seen[side.speaker]
            yield side.speaker if again == 1 else f"{side.speaker} #{again}", side


@dataclass(frozen=True)
class Labelled:
    """All that is exported."""

    sides: Sequence[LabelledSide]  # in the order of the table
    whole: bool  # also what is not settled: probabilities go along wherever there is a place
    about: Callable[[str], tuple[tuple[str, ...], int, bool]]  # files, tracks, mixed, by id
    header: Callable[[str], Header | None]  # of a sound file
    names: Names

    @cached_property
    def _headers(self) -> dict[str, Header | None]:
        return {}

    def _header(self, file: str) -> Header | None:
        if file not in self._headers:
            self._headers[file] = self.header(file)
        return self._headers[file]

    def recordings(self) -> Iterator[Recording]:
        """One conversation after the other."""
        for name, sides in groupby(self.sides, lambda side: side.conversation):
            files, tracks, mixed = self.about(name)
            yield Recording(name, files, tracks, mixed, list(sides), self._header)


def letter(track: int) -> str:
    """A, B, … Z, AA, AB, …"""
    found = ""
    while track >= 0:
        found, track = chr(ord("A") + track % 26) + found, track // 26 - 1
    return found


def seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"


def short(probability: float) -> str:
    """Four digits, never rounded up."""
    return f"{np.floor(probability * 1e4) / 1e4:.4f}"


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def require_files(labelled: Labelled, what: str) -> None:
    """Refuse conversations whose recordings are not known."""
    missing = [one.id for one in labelled.recordings() if not one.files]
    if missing:
        named = [f"conversation {name!r} names no audio" for name in missing]
        raise problems_in("conversations.csv", named, f"{what} needs the recordings")


def require_headers(labelled: Labelled, what: str) -> None:
    """Refuse recordings that cannot be opened now."""
    bad = [
        f"{file}: not there, or no sound file"
        for one in labelled.recordings()
        for file, header in zip(one.files, one.headers, strict=True)
        if header is None
    ]
    if bad:
        raise problems_in("recordings", bad, f"{what} needs to know how long they are")


def is_elsewhere(file: str) -> bool:
    """Whether it is no file of this machine: an address, or a member of an archive."""
    return ELSEWHERE.match(file) is not None


def refuse_odd_path(file: str) -> None:
    if any(ord(letter) < 32 for letter in file):
        raise SpklinkError(f"{file}: a control character in the name of a file; rename it")


def jsonable(side: LabelledSide) -> dict[str, Any]:
    """What else is known of a side."""
    return {"probability": side.probability, "decision": side.decision, "origin": side.origin}
