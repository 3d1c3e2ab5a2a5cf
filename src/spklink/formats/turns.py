"""Who has the turn when: transcripts in any of their formats, read and checked.

A file is told by its ending; one without a known ending is RTTM or a table. Formats that name no
conversation are about the one that their file is called after. A folder stands for all files below
it with a known ending.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from spklink.database.segments import is_rttm
from spklink.errors import Problems, SpklinkError, problems_in
from spklink.formats.turn import Turn
from spklink.formats.turns_table import COLUMNS
from spklink.tables import AS_IT_IS, Content, Reading, Table, csv_bytes, read_table

TABLE, RTTM = "turns_table", "turns_rttm"
FORMATS = {  # ending → module
    ".csv": TABLE,
    ".rttm": RTTM,
    ".ctm": "turns_ctm",
    ".textgrid": "textgrid",
    ".ort": "textgrid",
    ".sea": "cgn_sea",
    ".eaf": "elan",
    ".vtt": "subtitles",
    ".srt": "subtitles",
    ".json": "transcripts",
}
Reader = Callable[[Content], Iterator[Turn | str]]


@dataclass(frozen=True)
class Transcript:
    """The turns of one file."""

    path: Path
    turns: list[Turn]


@dataclass(frozen=True)
class GivenTurns:
    """All turns that were given, as they are written; and their bytes, for the hash of a run."""

    content: Content
    files: list[Transcript]


def ending_of(path: Path) -> str:
    """What a file is told by."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_turns(source: Table, how: Reading = AS_IT_IS) -> GivenTurns:
    """A file, a folder of files, a DataFrame or rows; all that is wrong with a file is in the one
    error raised."""
    if not isinstance(source, str | os.PathLike) or not Path(source).is_dir():
        content = read_table(source, "turns", how)
        return GivenTurns(content, [_transcript(content)])
    folder = Path(source)
    paths = sorted(path for path in folder.rglob("*") if ending_of(path) in FORMATS)
    if not paths:
        raise SpklinkError(f"{folder}: no transcript below this folder ({', '.join(FORMATS)})")
    files = [_transcript(read_table(path, how=how)) for path in paths]
    _refuse_doubled(files)
    rows = ((t.conversation, t.speaker, t.start, t.end) for one in files for t in one.turns)
    return GivenTurns(Content(folder, csv_bytes(COLUMNS, rows)), files)


def _reader(content: Content) -> Reader:
    name = FORMATS.get(ending_of(content.path) if content.file else "", TABLE)
    if name == TABLE and is_rttm(content):
        name = RTTM
    return import_module(f"spklink.formats.{name}").read  # type: ignore[no-any-return]


def _transcript(content: Content) -> Transcript:
    problems, turns = Problems(), []
    seen: dict[tuple[str, str, float, float], str] = {}
    for one in _reader(content)(content):
        if isinstance(one, str):
            problems.append(one)
        elif wrong := _wrong(one, seen):
            problems.append(f"{one.place}: {wrong}")
        elif one.end > one.start:
            turns.append(one)
    if not turns and not problems:
        problems.append("no turn of anybody in it")
    if problems:
        raise problems_in(content.path, problems)
    return Transcript(content.path, turns)


def _wrong(turn: Turn, seen: dict[tuple[str, str, float, float], str]) -> str:
    """What is wrong with one turn; "" where nothing is. Those of no length are passed over."""
    if not turn.conversation or not turn.speaker:
        return f"an empty {'speaker' if turn.conversation else 'conversation'}"
    for what, value in (("start", turn.start), ("end", turn.end)):
        if not 0.0 <= value < math.inf:
            return f"{what} of a turn of {turn.speaker!r}: not a number of seconds of 0 or more"
    if turn.end < turn.start:
        return f"a turn of {turn.speaker!r} from {turn.start:g} s ends before, at {turn.end:g} s"
    key = turn.conversation, turn.speaker, turn.start, turn.end
    first = seen.setdefault(key, turn.place)
    if first != turn.place and turn.end > turn.start:
        return f"the same turn of {turn.speaker!r} as in {first}"
    return ""


def _refuse_doubled(files: list[Transcript]) -> None:
    """A conversation in two files of a folder: which of the two is right nobody knows."""
    first: dict[str, Path] = {}
    for one in files:
        for name in dict.fromkeys(turn.conversation for turn in one.turns):
            if first.setdefault(name, one.path) != one.path:
                raise SpklinkError(
                    f"{one.path}: turns of conversation {name!r}, which {first[name]} has too; "
                    "leave one of the two out"
                )
