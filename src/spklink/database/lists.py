"""Participant lists: who is said to take part, how surely, and whether that is all.

An entry of a list is written as in the plain table,
  anna     certain: takes part
  ?carol   possible: takes part with some probability, one half unless it is given
  ?        unknown: somebody takes part, nobody knows who
  *        open: others may take part as well
or, in the long table, with its `status` in a column of its own: the name is then taken as it is,
also where it begins with one of the two marks.

A list is held against the number of tracks: whoever is certain or unknown needs one of their own,
and a closed list must have somebody for every track.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from spklink.tables import SEPARATOR
from spklink.words import counted

CERTAIN, POSSIBLE, UNKNOWN, OPEN = STATUSES = ("certain", "possible", "unknown", "open")
SOMEBODY, OTHERS = "?", "*"  # marks of the plain table; others are also somebody else in results
LIKELY = 0.5  # that a possible participant takes part, where nothing is said
# People that can be placed on tracks: placements are counted by subsets of the smaller number.
MOST_PLACED = 16
LONGEST_LIST = 100  # named people; places in a list are bytes
MOST_TRACKS = 1000
ADD = "add ? for each unknown person, or * for an open list"


@dataclass(slots=True)
class Listed:
    """The list of one conversation while its table is being read."""

    names: list[str] = field(default_factory=list)
    chance: list[float | None] = field(default_factory=list)  # None: certain
    unknown: int = 0
    open: bool = False

    @property
    def certain(self) -> int:
        return self.chance.count(None)

    def add(self, text: str, status: str = "", probability: str = "") -> str:
        """One more entry; what is wrong with it, or nothing."""
        name, read = (text, status) if status else _marked(text)
        if read not in STATUSES:
            return read if not status else _no_status(status)
        if read in (UNKNOWN, OPEN):
            return self._add_nobody(text, read, probability)
        if name in (SOMEBODY, OTHERS):
            return f"a participant called {name!r}, which means nobody by name; give a name"
        chance = _chance(probability, read)
        if isinstance(chance, str):
            return chance
        self.names.append(name)
        self.chance.append(chance)
        return ""

    def _add_nobody(self, text: str, status: str, probability: str) -> str:
        """An unknown person, or the mark of an open list. An unknown one may be called anything."""
        if probability:
            return _only_possible(probability)
        if status == UNKNOWN:
            self.unknown += 1
            return ""
        self.open = True
        if text in ("", OTHERS):
            return ""
        return f"status {OPEN} with the name {text!r}; it is about nobody by name: leave that empty"

    def wrong(self, conversation: str, tracks: int, because: str = "") -> str:
        """What cannot be true of the whole list, or nothing; `because` says whose number it is."""
        sure = self.certain + self.unknown
        if not self.names and not self.unknown and not self.open:
            return f"empty participants; {ADD}"
        if not all(self.names):
            return "an empty participant name"
        if SEPARATOR in "".join(self.names):
            unfit = next(name for name in self.names if SEPARATOR in name)
            return (
                f"participant {unfit!r} contains '{SEPARATOR}', which separates names; leave it out"
            )
        if len(set(self.names)) < len(self.names):
            return f"participant {_repeated(self.names)!r} twice in conversation {conversation!r}"
        if sure > tracks:
            room = f"{counted(tracks, 'track')}{because}"
            return f"{sure} participants for {room}; write those who may be absent as ?name"
        if len(self.names) + self.unknown < tracks and not self.open:
            return f"{self._few()} for {counted(tracks, 'track')}{because}; {self._more()}"
        return self._too_many(tracks)

    def _more(self) -> str:
        """What would make the list long enough."""
        joined = any(re.search(r"[,/|&]|\b(?:and|und|en|et|y|e)\b", name) for name in self.names)
        return f"are these several? write {SEPARATOR} between names" if joined else ADD

    def _few(self) -> str:
        if self.unknown == 0 and len(self.names) == 1:
            return f"only one participant ({self.names[0]!r})"
        return f"only {len(self.names) + self.unknown} participants"

    def _too_many(self, tracks: int) -> str:
        people = len(self.names)
        if people > LONGEST_LIST:
            return f"{people} named participants; at most {LONGEST_LIST} in one conversation"
        if min(people, tracks) > MOST_PLACED:
            return (
                f"{people} named participants on {tracks} tracks; at most {MOST_PLACED} of either: "
                "leave out who is least probable, or divide the recording"
            )
        return ""


def _marked(text: str) -> tuple[str, str]:
    """Name and status of an entry of the plain table; what is wrong stands for the status."""
    if not text.startswith((SOMEBODY, OTHERS)):
        return text, CERTAIN
    name = text[1:].strip()
    if not name:
        return "", UNKNOWN if text[0] == SOMEBODY else OPEN
    if re.search(r"[=:]\s*[01]?[.,]?\d*$", name):
        return text, (
            f"participant {text!r}: a probability has a column of its own in the long table "
            "(conversation,speaker,status,probability)"
        )
    if text[0] == SOMEBODY and not name.startswith((SOMEBODY, OTHERS)):
        return name, POSSIBLE
    return text, (
        f"participant {text!r}: ?name is a possible participant, ? alone an unknown one, * alone "
        "an open list; a name that begins with a mark needs the long table with a column status"
    )


def _no_status(status: str) -> str:
    return f"status {status!r} is not {', '.join(STATUSES[:-1])} or {STATUSES[-1]}"


def _only_possible(probability: str) -> str:
    return f"probability {probability!r} of somebody whose status is not {POSSIBLE}; leave it empty"


def _chance(text: str, status: str) -> float | str | None:
    """The probability that somebody takes part, None where certain, or what is wrong with it."""
    if not text:
        return LIKELY if status == POSSIBLE else None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 < value <= 1.0:
        return f"probability {text!r} is not above 0 and at most 1"
    if status == POSSIBLE:
        return value
    return None if value == 1.0 else _only_possible(text)


def _repeated(people: list[str]) -> str:
    seen: set[str] = set()
    for person in people:
        if person in seen:
            return person
        seen.add(person)
    return ""


def split(cell: str) -> tuple[Listed, list[str]]:
    """The list in one cell of the plain table, and what is wrong with its entries."""
    entries = [entry.strip() for entry in cell.split(SEPARATOR)] if cell else []
    if SOMEBODY not in cell and OTHERS not in cell:
        return Listed(entries, [None] * len(entries)), []
    listed = Listed()
    return listed, [said for said in map(listed.add, entries) if said]


def track_count(text: str, otherwise: int) -> int | str:
    """The number in a column `tracks`, or what is wrong with it."""
    if not text:
        return otherwise
    digits = text.removesuffix(".0")  # a spreadsheet, or a column with gaps, writes 4.0
    count = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else 0
    if 1 <= count <= MOST_TRACKS:
        return count
    return f"tracks {text!r} is not a whole number between 1 and {MOST_TRACKS}"
