"""Meetings: sessions of several people, and lists that say more or less than the truth.

Everybody in a session has a track. The list is made of those who are there:
  placeholders  this share of them is written as somebody unknown (`?`)
  missing       this share of them is not listed at all
  absent        for this share of the names that are left, somebody is listed who is not there
Before that, `split` of the people have two tracks, as if a diarizer had taken them for two people.
Somebody absent takes the place of somebody missing, where there is one: such a list looks right and
is wrong. Otherwise he is a possible participant (`?name`), and so is one of those who are there, so
that the mark means what it says, one half. A list that is too short for its tracks is open (`*`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from spklink.database.conversations import Conversations, read_conversations
from spklink.database.lists import OTHERS, SOMEBODY
from spklink.errors import SpklinkError
from spklink.tables import SEPARATOR

FEWEST, MOST = 2, 8  # tracks of a session
SESSIONS, PEOPLE, TRACKS = 100, 30, "3-6"  # unless something else is asked for


@dataclass(frozen=True)
class Plan:
    """What meetings are to be like; shares are between 0 and 1."""

    sessions: int = SESSIONS
    people: int = PEOPLE
    tracks: tuple[int, int] = (3, 6)  # fewest and most
    missing: float = 0.0
    absent: float = 0.0
    placeholders: float = 0.0
    split: float = 0.0

    def __post_init__(self) -> None:
        high = self.tracks[1]
        if self.sessions < 1:
            raise SpklinkError(f"--conversations {self.sessions}: at least 1 is needed")
        if self.people < high:
            raise SpklinkError(f"--people {self.people}: fewer than the {high} tracks of a session")
        for name in ("missing", "absent", "placeholders", "split"):
            share = getattr(self, name)
            if not 0.0 <= share < 1.0:
                raise SpklinkError(f"--{name} {share:g}: a share of 0 or more, below 1")


@dataclass(frozen=True)
class Session:
    """Who is there, track by track, and what the list says; people are numbers."""

    present: list[int]
    entries: list[tuple[int, bool]]  # (person, possible), in the order of the list
    unknown: int

    @property
    def open(self) -> bool:
        return len(self.entries) + self.unknown < len(self.present)


def track_range(text: str | int | tuple[int, int]) -> tuple[int, int]:
    """Fewest and most tracks from `3-6`, `4`, or two numbers."""
    if isinstance(text, tuple):
        words = [str(one) for one in text]
    else:
        words = [word.strip() for word in str(text).split("-")]
    if not all(word.isascii() and word.isdigit() for word in words) or len(words) > 2:
        raise SpklinkError(f"--tracks {text!r}: write a number, or fewest and most as 3-6")
    low, high = int(words[0]), int(words[-1])
    if not FEWEST <= low <= high <= MOST:
        raise SpklinkError(f"--tracks {text!r}: between {FEWEST} and {MOST}, the fewest first")
    return low, high


def planned(
    sessions: int | None,
    people: int | None,
    tracks: str | int | tuple[int, int] | None,
    shares: dict[str, float],
) -> Plan:
    """A plan from what was asked for; None is what is usual."""
    return Plan(
        sessions=SESSIONS if sessions is None else sessions,
        people=PEOPLE if people is None else people,
        tracks=track_range(TRACKS if tracks is None else tracks),
        **shares,
    )


def draw_sessions(plan: Plan, rng: np.random.Generator) -> list[Session]:
    return [_session(plan, rng) for _ in range(plan.sessions)]


def _session(plan: Plan, rng: np.random.Generator) -> Session:
    low, high = plan.tracks
    tracks = int(rng.integers(low, high + 1))
    everybody = rng.permutation(plan.people)
    count = tracks - _splits(plan, tracks, rng)
    there, others = everybody[:count], everybody[count:]
    unknown = rng.random(count) < plan.placeholders
    missing = ~unknown & (rng.random(count) < plan.missing)
    named = there[~unknown & ~missing]
    wanted = int((rng.random(len(named)) < plan.absent).sum())
    absent = others[:wanted]
    wrong = min(len(absent), int(missing.sum()))  # who looks certain, and is not there
    further = absent[wrong:]
    doubted = rng.permutation(len(named)) < len(further)
    entries = [(int(who), bool(doubt)) for who, doubt in zip(named, doubted, strict=True)]
    entries += [(int(who), False) for who in absent[:wrong]]
    entries += [(int(who), True) for who in further]
    order = rng.permutation(len(entries))
    present = rng.permutation(np.append(there, there[: tracks - count])).tolist()
    return Session(present, [entries[k] for k in order], int(unknown.sum()))


def _splits(plan: Plan, tracks: int, rng: np.random.Generator) -> int:
    """How many people of a session of so many tracks have two of them."""
    if not plan.split:
        return 0
    return min(int((rng.random(tracks) < plan.split).sum()), tracks // 2)


def as_meetings(
    sessions: list[Session], people: int, *, audio: list[str] | None = None
) -> tuple[Conversations, list[str]]:
    """The table of these sessions, and who is on every side by name."""
    width = len(str(max(people - 1, 0)))

    def name(person: int) -> str:
        return f"s{person:0{width}d}"

    files = audio or [""] * len(sessions)
    rows = [
        {
            "conversation": _id(k, len(sessions)),
            "audio": file,
            "participants": SEPARATOR.join(_texts(session, name)),
            "tracks": str(len(session.present)),
        }
        for k, (session, file) in enumerate(zip(sessions, files, strict=True), start=1)
    ]
    on_side = [name(person) for session in sessions for person in session.present]
    return read_conversations(rows), on_side


def _id(number: int, of: int) -> str:
    return f"meeting{number:0{len(str(of))}d}"


def _texts(session: Session, name: Callable[[int], str]) -> Iterator[str]:
    """The entries of one list as they are written."""
    for person, possible in session.entries:
        yield f"{SOMEBODY if possible else ''}{name(person)}"
    yield from [SOMEBODY] * session.unknown
    if session.open:
        yield OTHERS
