"""Diarized tracks: who of a recording speaks when, as a diarizer or a person wrote it down.

Two forms, told apart by what is in them:
  a table  conversation,track,start,end      seconds; a track may be called anything
  RTTM     SPEAKER file channel start duration <NA> <NA> track …      other lines are passed over
(a folder stands for all .rttm files below it). The file of RTTM is the id of a conversation or the
name of its recording without the ending.

Tracks of a conversation that are called 1, 2, … K keep these numbers; all others are numbered in
the order in which they first speak, so that the order of rows does not count.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from spklink.database.lists import MOST_TRACKS
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.tables import (
    AS_IT_IS,
    Content,
    Reading,
    Table,
    open_table,
    read_table,
    require_columns,
    wrong_length,
)

Turns = tuple[tuple[int, float, float], ...]  # (track from 0, start, end) in order of time; seconds
COLUMNS = ("conversation", "track", "start", "end")
SPEAKER, COMMENT = "SPEAKER", ";;"
# What a line of RTTM may begin with (NIST, RT-09).
RTTM_TYPES = (
    *(COMMENT, SPEAKER, "SPKR-INFO", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX"),
    *("NON-SPEECH", "FILLER", "EDIT", "SU", "IP", "CB", "A/P"),
)
NAMED = 5  # conversations without segments that are named; the rest are counted


@dataclass(frozen=True)
class Diarized:
    """The tracks of one conversation."""

    labels: tuple[str, ...]  # (K,) what they are called
    turns: Turns


@dataclass(slots=True)
class _Row:
    """One segment as it is written."""

    number: int
    conversation: str
    track: str
    start: str
    end: str
    channel: str = ""
    lasts: bool = False  # `end` is a duration

    def seconds(self) -> tuple[float, float]:
        start, end = (_number(text) for text in (self.start, self.end))
        return start, start + end if self.lasts else end


@dataclass(slots=True)
class _Draft:
    """The segments of one conversation while they are being read."""

    turns: list[tuple[float, float, str]] = field(default_factory=list)
    channel: str = ""


def read_tracks(table: Table, name: str = "tracks", how: Reading = AS_IT_IS) -> Content:
    """All of a file, a folder of RTTM, a DataFrame or rows, read once."""
    if isinstance(table, str | os.PathLike) and Path(table).is_dir():
        files = sorted(Path(table).rglob("*.rttm"))
        if not files:
            raise SpklinkError(f"{table}: no .rttm file below this folder")
        return Content(Path(table), b"\n".join(read_table(path).data for path in files))
    return read_table(table, name, how)


def is_rttm(content: Content) -> bool:
    """Whether the first line that says anything is one of RTTM."""
    lines = content.data.removeprefix(b"\xef\xbb\xbf").splitlines()
    first = next((line.split() for line in lines if line.strip()), [b""])
    return first[0].startswith(COMMENT.encode()) or (
        len(first) > 1 and first[0].decode(errors="replace") in RTTM_TYPES
    )


def read_segments(
    table: Table, ids: Sequence[str], audio: Sequence[tuple[str, ...]]
) -> list[Diarized]:
    """The tracks of every conversation; all that is wrong is in the one error raised."""
    content = read_tracks(table)
    drafts, problems = [_Draft() for _ in ids], Problems()
    find = Finder(ids, audio)
    for row in _rttm_rows(content, problems) if is_rttm(content) else _rows(content, problems):
        if wrong := _take(row, find, drafts):
            problems.append(f"row {row.number}: {wrong}")
    if not problems and (wrong := _without(ids, drafts)):
        problems.append(wrong)
    if problems:
        raise problems_in(content.path, problems)
    found = [_finished(draft.turns) for draft in drafts]
    for name, one in zip(ids, found, strict=True):
        if len(one.labels) > MOST_TRACKS:
            raise SpklinkError(
                f"{content.path}: {len(one.labels)} tracks of conversation {name!r}; at most "
                f"{MOST_TRACKS}"
            )
    return found


def _rows(content: Content, problems: Problems) -> Iterator[_Row]:
    with open_table(content) as (header, rows):
        require_columns(header, COLUMNS)
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
            else:
                name, track, start, end = (fields[k].strip() for k in at)
                yield _Row(number, name, track, start, end)


def _rttm_rows(content: Content, problems: Problems) -> Iterator[_Row]:
    try:
        lines = content.data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise SpklinkError(f"{content.path}: not UTF-8; save it as UTF-8") from None
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith(COMMENT) or fields[0] in RTTM_TYPES[2:]:
            continue
        if fields[0] != SPEAKER or len(fields) < 8:
            problems.append(f"row {number}: not a line of RTTM: {line[:80]!r}")
            continue
        _, file, channel, start, lasts, _, _, track, *_ = fields
        yield _Row(number, file, track, start, lasts, channel, lasts=True)


class Finder:
    """From the name of a conversation, or of its recording, to its place in the table."""

    def __init__(self, ids: Sequence[str], audio: Sequence[tuple[str, ...]]) -> None:
        self.where = {name: m for m, name in enumerate(ids)}
        self.ids = ids
        self.stems: dict[str, list[int]] = {}
        for m, files in enumerate(audio):
            for stem in {PurePath(name.replace("\\", "/")).stem for name in files}:
                self.stems.setdefault(stem, []).append(m)

    def __call__(self, name: str) -> int | str:
        """The conversation, or what is wrong."""
        if name in self.where:
            return self.where[name]
        found = self.stems.get(name, [])
        if len(found) == 1:
            return found[0]
        if not found:
            return f"no conversation, and no recording, is called {name!r}; leave its rows out"
        both = " and ".join(repr(self.ids[m]) for m in found[:2])
        return f"{name!r} is the recording of {both}; write the id of the conversation"


def _take(row: _Row, find: Finder, drafts: list[_Draft]) -> str:
    """Add one segment; what is wrong with it, or nothing."""
    m = find(row.conversation)
    if isinstance(m, str):
        return m
    if not row.track:
        return "an empty name of a track"
    start, end = row.seconds()
    if not 0.0 <= start < math.inf:
        return f"start {row.start!r} is not a number of seconds"
    if not start < end < math.inf:
        what = "duration" if row.lasts else "end"
        return f"{what} {row.end!r}: a segment ends after it begins (at {row.start})"
    draft = drafts[m]
    draft.channel = draft.channel or row.channel
    if row.channel != draft.channel:
        return (
            f"channel {row.channel!r} where other segments of {row.conversation!r} are of channel "
            f"{draft.channel!r}; all channels are mixed: diarize them together"
        )
    draft.turns.append((start, end, row.track))
    return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _without(ids: Sequence[str], drafts: Iterable[_Draft]) -> str:
    missing = [repr(name) for name, one in zip(ids, drafts, strict=True) if not one.turns]
    if not missing:
        return ""
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return (
        f"no segments of conversation {', '.join(missing[:NAMED])}{more}; add them, or leave "
        "the conversation out of the table"
    )


def _finished(turns: list[tuple[float, float, str]]) -> Diarized:
    """Tracks numbered, turns in order of time."""
    turns = sorted(turns)
    labels = list(dict.fromkeys(label for _, _, label in turns))
    numbers = [str(k + 1) for k in range(len(labels))]
    if set(labels) == set(numbers):
        labels = numbers
    number = {label: k for k, label in enumerate(labels)}
    return Diarized(tuple(labels), tuple((number[label], a, b) for a, b, label in turns))
