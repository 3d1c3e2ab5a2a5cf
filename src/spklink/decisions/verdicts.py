"""What the log says now: what holds of every conversation, and about what people disagree.

Of each reviewer the last word about a conversation counts, unless it was taken back. Where two
people put different names on a track they disagree, and nothing of it holds until somebody resolves
it; that ends all that was said before. What was heard on a recording that has changed since is held
back, as if it had not been said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from spklink.decisions.log import HEARD, RESOLVE, UNDO, UNSURE, Decision

Seats = tuple[str | None, ...]


@dataclass(frozen=True)
class Verdict:
    """What people say of one conversation."""

    words: Mapping[str, Decision]  # by reviewer, the last word of each
    held: Mapping[str, Decision] = field(default_factory=dict)  # of those who have no other word

    @cached_property
    def heard(self) -> list[Decision]:
        """Those who put somebody somewhere, the first one first."""
        found = [one for one in self.words.values() if one.verdict != UNSURE and any(one.seats)]
        return sorted(found, key=lambda one: one.number)

    @cached_property
    def disagree(self) -> bool:
        if len(self.words) < 2:  # nobody, or nobody to disagree with: so it is of most
            return False
        return any(len(names) > 1 for names in self._names())

    @cached_property
    def seats(self) -> Seats | None:
        """What holds; None where nothing does."""
        if not self.words or self.disagree or not self.heard:
            return None
        return tuple(next(iter(names), None) for names in self._names())

    @property
    def by(self) -> tuple[str, ...]:
        """Whose word that is."""
        return tuple(one.reviewer for one in self.heard)

    @property
    def unsure(self) -> bool:
        """Whether somebody listened and could not tell, and nobody could."""
        return not self.heard and bool(self.words)

    @property
    def hear_again(self) -> bool:
        """Whether all that people said is held back."""
        return bool(self.held) and not self.words

    def _names(self) -> list[set[str]]:
        """Who was named on each track."""
        tracks = max((len(one.seats) for one in self.heard), default=0)
        return [
            {who for one in self.heard for who in one.seats[k : k + 1] if who is not None}
            for k in range(tracks)
        ]


NOTHING = Verdict({})


@dataclass
class Verdicts:
    """The verdicts of all conversations, entry by entry."""

    outdated: Callable[[Decision], bool] = lambda one: False  # heard on another recording
    entries: list[Decision] = field(default_factory=list)
    by_conversation: dict[str, Verdict] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    of: dict[str, list[Decision]] = field(default_factory=dict)

    def take(self, entries: Iterable[Decision]) -> set[str]:
        """Further entries of the log; the conversations they are about."""
        touched: dict[str, None] = {}  # in the order of the log
        for one in entries:
            self.entries.append(one)
            self.of.setdefault(one.conversation, []).append(one)
            if one.verdict == UNDO and one.undoes is not None:
                self.undone.add(one.undoes)
            touched[one.conversation] = None
        for name in touched:
            self.by_conversation[name] = self._verdict(name)
        return set(touched)

    def __getitem__(self, conversation: str) -> Verdict:
        return self.by_conversation.get(conversation, NOTHING)

    def _verdict(self, name: str) -> Verdict:
        words: dict[str, Decision] = {}
        held: dict[str, Decision] = {}
        for one in self.of[name]:
            if one.verdict == UNDO or one.number in self.undone:
                continue
            if self.outdated(one):
                held[one.reviewer] = one
                continue
            if one.verdict == RESOLVE:
                words.clear()
                held.clear()
            words[one.reviewer] = one
        return Verdict(words, {who: one for who, one in held.items() if who not in words})

    def held(self) -> list[Decision]:
        """What is held back, the first entry first."""
        found = (one for each in self.by_conversation.values() for one in each.held.values())
        return sorted(found, key=lambda one: one.number)

    def last_of(self, reviewer: str) -> Decision | None:
        """What an undo of this reviewer takes back."""
        return next((one for one in reversed(self.entries) if self.can_undo(one, reviewer)), None)

    def can_undo(self, one: Decision, reviewer: str) -> bool:
        alive = one.verdict != UNDO and one.number not in self.undone
        return alive and one.reviewer == reviewer

    def find(self, number: int) -> Decision | None:
        """The entry of this number."""
        place = number - 1
        found = self.entries[place : place + 1] if place >= 0 else []
        return found[0] if found else None

    def blind(self) -> list[Decision]:
        """What people heard who were not shown what the system would have said."""
        return [
            one
            for one in self.entries
            if one.verdict == HEARD and one.number not in self.undone and one.shown.get("blind")
        ]
