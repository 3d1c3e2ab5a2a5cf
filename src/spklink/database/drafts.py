"""Rows of a table of conversations, one after the other, each looked at for all that may be wrong.

A *draft* is a conversation while its table is being read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spklink.database.lists import Listed, split, track_count
from spklink.database.segments import Diarized
from spklink.database.sides import TWO
from spklink.errors import Problems
from spklink.tables import SEPARATOR, Header, wrong_length
from spklink.texts import Lists, Texts

SURE: list[float | None] = [None, None]  # of two people
ORDINARY = 0.5, TWO  # prior and tracks of most
LONGEST_NAME = 100_000  # characters of an id, a person or the files of a call
COLUMNS = ("audio", "prior", "group", "tracks")  # of a draft, in either form
Rows = Iterable[tuple[int, list[str]]]


@dataclass(slots=True)
class Draft:
    """One conversation while its table is being read."""

    row: int
    id: str
    listed: Listed
    audio: str = ""
    prior: str = ""
    group: str = ""
    tracks: str = ""
    diarized: Diarized | None = None


@dataclass(frozen=True)
class Gathered:
    """All conversations of a table, as arrays."""

    ids: Texts
    speakers: Texts
    counts: NDArray[np.int64]  # (M,) entries of each list
    people: NDArray[np.int32]  # (entries,) index into `speakers`
    chance: NDArray[np.float64]  # (entries,) NaN: certain
    tracks: NDArray[np.int64]  # (M,)
    audio: Lists
    prior: NDArray[np.float64]  # (M,)
    groups: list[str]
    group: NDArray[np.int32]  # (M,)
    rows: NDArray[np.int64]  # (M,)
    unknown: NDArray[np.int32]  # (M,)
    open: NDArray[np.bool_]  # (M,)
    diarized: list[Diarized] = field(default_factory=list)


def gathered(drafts: list[Draft], problems: Problems) -> Gathered:
    """The same as drafts, each checked."""
    speakers, groups = dict[str, int](), dict[str, int]()
    found = [checked(one, problems) for one in drafts]
    lists = [d.listed for d in drafts]
    participants = [[speakers.setdefault(p, len(speakers)) for p in one.names] for one in lists]
    group = [groups.setdefault(d.group, len(groups)) for d in drafts]
    return Gathered(
        ids=Texts.of(d.id for d in drafts),
        speakers=Texts.of(speakers),
        counts=np.array([len(people) for people in participants], np.int64),
        people=np.array([k for people in participants for k in people], np.int32),
        chance=np.array([chance for one in lists for chance in one.chance], np.float64),
        tracks=np.array([tracks for _, tracks in found], np.int64),
        audio=Lists.of(files_of(d.audio) for d in drafts),
        prior=np.array([prior for prior, _ in found], np.float64),
        groups=list(groups),
        group=np.array(group, np.int32),
        rows=np.array([d.row for d in drafts], np.int64),
        unknown=np.array([one.unknown for one in lists], np.int32),
        open=np.array([one.open for one in lists], np.bool_),
        diarized=[d.diarized for d in drafts if d.diarized is not None],
    )


def read_wide(header: Header, rows: Rows, problems: Problems, nobody: str) -> list[Draft]:
    at = [header.column(n) for n in ("conversation", "participants", *COLUMNS)]
    drafts = []
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, who, audio, prior, group, tracks = ["" if k < 0 else fields[k].strip() for k in at]
        listed, said = split(who or nobody)
        for wrong in said:
            problems.append(f"row {number}: {wrong}")
        if not said:
            drafts.append(Draft(number, name, listed, audio, prior, group, tracks))
    refuse_repeated(drafts, problems)
    return drafts


def read_long(
    header: Header,
    rows: Rows,
    problems: Problems,
    person: str,
    nobody: str,
) -> list[Draft]:
    names = ("conversation", person, "status", "probability", *COLUMNS)
    at = [header.column(n) for n in names]
    drafts: dict[str, Draft] = {}
    unfit: set[str] = set()
    for number, fields in rows:
        if wrong := wrong_length(number, fields, header):
            problems.append(wrong)
            continue
        name, who, status, chance, *further = ("" if k < 0 else fields[k].strip() for k in at)
        draft = drafts.setdefault(name, Draft(number, name, Listed()))
        who = who if who or status else nobody
        if wrong := draft.listed.add(who, status.lower(), chance):
            problems.append(f"row {number}: {wrong}")
            unfit.add(name)
        for what, here in zip(COLUMNS, further, strict=True):
            if here and not getattr(draft, what):
                setattr(draft, what, here)
            elif here and here != getattr(draft, what):
                problems.append(
                    f"row {number}: {what} {here!r} of conversation {name!r} is "
                    f"{getattr(draft, what)!r} in row {draft.row}"
                )
    return [draft for name, draft in drafts.items() if name not in unfit]


def refuse_repeated(drafts: list[Draft], problems: Problems) -> None:
    first: dict[str, int] = {}
    for draft in drafts:
        earlier = first.setdefault(draft.id, draft.row)
        if draft.id and earlier != draft.row:
            problems.append(
                f"row {draft.row}: conversation {draft.id!r} is already in row {earlier}"
            )


def checked(draft: Draft, problems: Problems) -> tuple[float, int]:
    """The prior of one conversation and how many tracks it has; what is wrong with it is added."""
    return ORDINARY if _ordinary(draft) else _check(draft, problems)


def _check(draft: Draft, problems: Problems) -> tuple[float, int]:
    """Add what is wrong with one conversation; return its prior and how many tracks it has."""

    def wrong(text: str) -> None:
        problems.append(f"row {draft.row}: {text}")

    if said := _unfit(draft):
        wrong(said)
        return 0.5, TWO
    if not draft.id:
        wrong("empty conversation id")
    files = draft.audio.split(SEPARATOR) if draft.audio else []
    if files and not all(name.strip() for name in files):
        wrong("an empty name among the audio files")
    tracks, because = _tracks(draft, len(files), wrong)
    if said := draft.listed.wrong(draft.id, tracks, because):
        wrong(said)
    prior = prior_of(draft.prior, wrong)
    if prior != 0.5 and not tracks == len(draft.listed.names) == TWO:
        wrong(
            f"prior {draft.prior!r}, which is about two named people on two tracks; leave it empty "
            "and say what is known in a table for --known"
        )
    return prior, tracks


def _ordinary(draft: Draft) -> bool:
    """Whether nothing can be wrong with it: two certain people in one recording, of whom nothing
    more is said. So are most, and all else that is looked at takes twice the time."""
    listed = draft.listed
    if draft.prior or draft.tracks or draft.diarized is not None or listed.unknown or listed.open:
        return False
    if listed.chance != SURE or not draft.id:
        return False
    one, two = listed.names
    if not one or not two or one == two:
        return False
    together = f"{draft.id}{draft.audio}{one}{two}"
    return len(together) <= LONGEST_NAME and "\0" not in together and SEPARATOR not in together


def _tracks(draft: Draft, files: int, wrong: Callable[[str], None]) -> tuple[int, str]:
    """How many tracks a conversation has, and what says so where it is not the list."""
    usual = max(TWO, draft.listed.certain + draft.listed.unknown)
    counted = track_count(draft.tracks, files if files > 1 else usual)
    if isinstance(counted, str):
        wrong(counted)
        return usual, ""
    if draft.diarized is not None:
        voices = len(draft.diarized.labels)
        if files > 1:
            wrong(f"{files} audio files; tracks that are diarized are those of one file")
        elif draft.tracks and counted != voices:
            wrong(f"{counted} tracks, but the segments are those of {voices}")
        return voices, " (diarized)"
    if files > 1 and counted != files:
        wrong(f"{files} audio files for {counted} tracks; give one file a track, or a single one")
    if draft.tracks:
        return counted, " (column tracks)"
    return counted, f" ({files} audio files)" if files > 1 else ""


def _unfit(draft: Draft) -> str:
    """What cannot be a name: arrays of names give each the room of the longest, and end at NUL."""
    people = draft.listed.names
    together = "".join([draft.id, draft.audio, *people])
    if len(together) <= LONGEST_NAME and "\0" not in together:
        return ""
    for what, names in (
        ("conversation id", [draft.id]),
        ("participant name", people),
        ("name of an audio file", [draft.audio]),
    ):
        longest = max(map(len, names), default=0)
        if longest > LONGEST_NAME:
            return f"{what} of {longest} characters; at most {LONGEST_NAME} are read"
        if any("\0" in name for name in names):
            return f"{what} with a NUL byte; is the file damaged?"
    return ""


def prior_of(text: str, wrong: Callable[[str], None]) -> float:
    try:
        value = float(text) if text else 0.5
    except ValueError:
        value = float("nan")
    if not 0.0 <= value <= 1.0:
        wrong(f"prior {text!r} is not a probability between 0 and 1")
        return 0.5
    return value


def files_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(SEPARATOR)) if text else ()
