"""Participant lists with known mistakes: what `list_errors.py` plants, and what is true of it.

Real calls with a key are taken as they are; only the lists are changed, so the key stays the truth.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

Rows = list[dict[str, str]]
NOTHING, SAME_VOICE, ANOTHER = TOLD_BY = (
    "without another call",
    "all of whose other calls have a voice of this one",
    "with another call",
)


@dataclass(frozen=True)
class Call:
    """One recording, and who is on each of its tracks."""

    name: str
    audio: str
    truth: tuple[str, ...]


@dataclass(frozen=True)
class Spoiled:
    """A database with mistakes in it."""

    calls: list[Call]
    lists: list[list[str]]  # as they are given; a call's planted names among them
    planted: dict[int, str] = field(default_factory=dict)  # call → a name that is not there
    known: Rows = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        """conversations.csv."""
        found = [
            {"conversation": call.name, "audio": call.audio, "participants": ";".join(names)}
            for call, names in zip(self.calls, self.lists, strict=True)
        ]
        for row, call, group in zip(
            found, self.calls, self.groups or [""] * len(found), strict=True
        ):
            row |= {"group": group, "tracks": str(len(call.truth))}
        return found

    @property
    def key(self) -> Rows:
        """The truth, track by track."""
        return [
            {"conversation": call.name, "channel": str(k), "speaker": who}
            for call in self.calls
            for k, who in enumerate(call.truth, start=1)
        ]

    def elsewhere(self, m: int) -> int:
        """In how many other calls of the same group the name planted in call m is listed."""
        return sum(self.planted[m] in self.lists[n] for n in self._near(m))

    def listed_elsewhere(self, m: int, people: set[str]) -> bool:
        """Whether any of these is listed in another call of the same group."""
        return any(people & set(self.lists[n]) for n in self._near(m))

    def _near(self, m: int) -> list[int]:
        groups = self.groups or [""] * len(self.calls)
        return [n for n in range(len(self.calls)) if n != m and groups[n] == groups[m]]

    def told_by(self, m: int) -> str:
        """What could tell that the name planted in call m is not there: another call of that name,
        unless a voice of call m is in all of those as well, and can be taken for it."""
        others = [
            set(self.calls[n].truth) for n in self._near(m) if self.planted[m] in self.lists[n]
        ]
        if not others:
            return NOTHING
        return SAME_VOICE if set(self.calls[m].truth).intersection(*others) else ANOTHER


def read_calls(table: Path, key: Path) -> list[Call]:
    """All calls with their truth; sound files by their full names."""
    with key.open(newline="") as file:
        on = {(row["conversation"], row["channel"]): row["speaker"] for row in csv.DictReader(file)}
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    folder = table.parent.resolve()
    return [
        Call(
            row["conversation"],
            str(folder / row["audio"]),
            (on[row["conversation"], "1"], on[row["conversation"], "2"]),
        )
        for row in rows
    ]


def half_of(calls: list[Call], half: int, seed: int = 4) -> list[Call]:
    """Calls among one half of the speakers: what is tuned on one is reported on the other."""
    names = people_of(calls)
    side = dict(zip(names, np.random.default_rng(seed).permutation(len(names)) % 2, strict=True))
    return [call for call in calls if {int(side[who]) for who in call.truth} == {half}]


def people_of(calls: Iterable[Call]) -> list[str]:
    return sorted({who for call in calls for who in call.truth})


def right(calls: list[Call]) -> Spoiled:
    """Lists as they should be: sorted, so that they say nothing about channels."""
    return Spoiled(calls, [sorted(call.truth) for call in calls])


def inside(made: Spoiled, share: float, rng: np.random.Generator) -> Spoiled:
    """Some listed people replaced by others of the database who are not in the call; of cliques
    that are linked by themselves, by others of the clique."""
    lists, planted = [list(names) for names in made.lists], {}
    groups = made.groups or [""] * len(lists)
    wanted = round(share * sum(map(len, lists)))
    for m in rng.permutation(len(lists)).tolist():
        near = {n for k, names in enumerate(made.lists) if groups[k] == groups[m] for n in names}
        others = sorted(near - set(made.calls[m].truth))
        if len(planted) < wanted and others:
            planted[m] = str(rng.choice(others))
            lists[m][int(rng.integers(2))] = planted[m]
    return replace(made, lists=lists, planted=planted)


def outside(calls: list[Call], share: float, rng: np.random.Generator, hidden: int = 3) -> Spoiled:
    """Some people of the database are listed where somebody is heard who is listed nowhere: a few
    people are never named, and calls of theirs with others carry another name in their place."""
    names = people_of(calls)
    count = Counter(who for call in calls for who in call.truth)
    middle = sorted(names, key=lambda who: -count[who])[2 : 2 + 3 * hidden]  # neither many nor few
    strangers = set(rng.choice(middle, hidden, replace=False).tolist())
    inner = [call for call in calls if not strangers & set(call.truth)]
    with_one = [call for call in calls if len(strangers & set(call.truth)) == 1]
    wanted = round(share * 2 * len(inner) / (1.0 - 2.0 * share))
    taken = [with_one[k] for k in rng.permutation(len(with_one))[:wanted]]
    every = sorted([*inner, *taken], key=lambda call: call.name)
    made, known = right(every), people_of(inner)
    lists, planted = [list(names) for names in made.lists], {}
    for m, call in enumerate(every):
        if strange := strangers & set(call.truth):
            others = [who for who in known if who not in call.truth]
            planted[m] = str(rng.choice(others))
            lists[m][lists[m].index(strange.pop())] = planted[m]
    return replace(made, lists=lists, planted=planted)


def both_outside(calls: list[Call], rng: np.random.Generator) -> Spoiled:
    """One call of two people who are named nowhere carries two other names."""
    strange = calls[int(rng.integers(len(calls)))]
    rest = [call for call in calls if not set(strange.truth) & set(call.truth)]
    made = right([*rest, strange])
    two = rng.choice(people_of(rest), 2, replace=False).tolist()
    lists = [*made.lists[:-1], sorted(two)]
    return replace(made, lists=lists, planted={len(rest): two[0]})


def with_unknown(calls: list[Call], rng: np.random.Generator, count: int = 60) -> Spoiled:
    """Calls of which one person is named and the other is written `?`."""
    some = [calls[k] for k in np.sort(rng.permutation(len(calls))[:count])]
    lists = [[call.truth[int(rng.integers(2))], "?"] for call in some]
    return Spoiled(some, lists)


def wrongly_known(calls: list[Call], rng: np.random.Generator, count: int = 12) -> Spoiled:
    """Channels of a few calls are known, of half of them wrongly."""
    known: Rows = []
    for k, m in enumerate(rng.permutation(len(calls))[:count].tolist()):
        call = calls[m]
        who = call.truth[k % 2]  # said to be on channel 1: true for every other call
        known.append({"conversation": call.name, "channel": "1", "speaker": who})
    return replace(right(calls), known=known)


def one_name_for_two(
    calls: list[Call], rng: np.random.Generator
) -> tuple[Spoiled, tuple[str, str]]:
    """Two people who never met go by one name."""
    met = {frozenset(call.truth) for call in calls}
    count = Counter(who for call in calls for who in call.truth)
    names = [who for who in people_of(calls) if count[who] >= 4]
    pairs = [(a, b) for a in names for b in names if a < b and frozenset((a, b)) not in met]
    friends = {who: {b for call in calls if who in call.truth for b in call.truth} for who in names}
    a, b = pairs[int(rng.integers(len(pairs)))]
    renamed = right(calls)
    lists = [sorted(a if who == b else who for who in names) for names in renamed.lists]
    assert b not in friends[a]
    return replace(renamed, lists=lists), (a, b)


def two_names_for_one(
    calls: list[Call], rng: np.random.Generator
) -> tuple[Spoiled, tuple[str, str]]:
    """One person goes by two names, by turns."""
    count = Counter(who for call in calls for who in call.truth)
    names = [who for who in people_of(calls) if count[who] >= 8]
    who, made, turn = str(rng.choice(names)), right(calls), 0
    lists = []
    for listed in made.lists:
        turn += who in listed
        other = f"{who}-again" if turn % 2 else who
        lists.append(sorted(other if one == who else one for one in listed))
    return replace(made, lists=lists), (who, f"{who}-again")
