"""Two names that are one person, and one name that is two people (a telephone used by two).

Each is a hypothesis about names, weighed against the database as it stands. Links of different
names count as nothing, those of one name by the weight w of a person of so many conversations; so
with S the summed log-likelihood-ratios between the voices of two names of n and m conversations,
joining them changes the evidence by w(n + m) S, and splitting a name between such groups by minus
that. The prior odds are the rate of list errors, shared among all names that could be meant, or all
ways to split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.likelihood import Weight
from spklink.tables import SEPARATOR

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Voices = Callable[[Ints, Ints], Floats]  # log-likelihood-ratios of pairs of sides; NaN: not known
ONE, TWO, PLACEHOLDER = "one person", "two people", "placeholder"
LEAST = 0.1  # probability from which a hypothesis about names is told
FEWEST = 2  # conversations on either side of a split: one alone is a wrong list
OFTEN = 5  # conversations that list a name which may stand for anybody
RAREST = 1e-4  # rate of errors in names that is reckoned with, though lists seem to be right


@dataclass(frozen=True)
class NameMisfit:
    """A hypothesis about names that is not improbable."""

    calls: list[str]  # conversations that it is about
    kind: str
    probability: float
    listed: str
    suggested: str
    evidence: str

    @property
    def texts(self) -> tuple[str, str, str]:
        return self.listed, self.suggested, self.evidence


def sides_of(answer: Answer, group: int) -> dict[int, Ints]:
    """The sides on which each person of a group more probably is than not."""
    table, speaker = answer.table, answer.speaker()
    sides = np.flatnonzero(
        (speaker != STRANGER)
        & (answer.confidence.chance > 0.5)
        & (table.group[table.sides.conversation] == group)
    )
    if not len(sides):
        return {}
    order = sides[np.argsort(speaker[sides], kind="stable")]
    who, first = np.unique(speaker[order], return_index=True)
    parts = np.split(order, first[1:])
    return {int(one): part for one, part in zip(who.tolist(), parts, strict=True)}


def find_names(answer: Answer, weight: Weight, voices: Voices) -> Iterator[NameMisfit]:
    """All names that are probably one person with another, or two people."""
    for group in range(len(answer.table.groups)):
        by_name = sides_of(answer, group)
        yield from _joined(answer, weight, voices, by_name)
        for who, sides in by_name.items():
            found = _split(answer, weight, voices, who, _with_strangers(answer, who, sides))
            if found is not None:
                yield found


def placeholders(answer: Answer) -> Iterator[NameMisfit]:
    """Names that fit no single voice: absent from more of their conversations than not."""
    table = answer.table
    certain = ~table.possible
    calls = np.bincount(table.people[certain], minlength=len(table.speakers))
    away = np.bincount(
        table.people[certain], 1.0 - answer.presence.chance[certain], len(table.speakers)
    )
    for who in np.flatnonzero((calls >= OFTEN) & (away > 0.5 * calls)).tolist():
        entries = np.flatnonzero((table.people == who) & certain)
        yield NameMisfit(
            calls=[table.ids[m] for m in table.listing.conversation[entries].tolist()],
            kind=PLACEHOLDER,
            probability=float(away[who] / calls[who]),
            listed=table.speakers[who],
            suggested="write ? for somebody whom nobody knows",
            evidence=f"absent from {away[who]:.1f} of {calls[who]} conversations: no single voice",
        )


def _rate(answer: Answer) -> float:
    return max(answer.rate.value, RAREST)


def _joined(
    answer: Answer, weight: Weight, voices: Voices, by_name: dict[int, Ints]
) -> Iterator[NameMisfit]:
    """Pairs of names with one voice, by all of their voices."""
    names = list(by_name)
    size = np.array([len(by_name[who]) for who in names])
    if len(names) < 2:
        return
    every = np.concatenate([by_name[who] for who in names])
    number = np.repeat(np.arange(len(names)), size)
    table = _between(voices, every, number, len(names))
    both = size[:, None] + size[None, :]
    change = weight.of(both.astype(np.int32)) * table
    prior = np.log(_rate(answer)) - np.log(len(names) - 1)
    change[_met(answer, names)] = -np.inf  # nobody talks to himself
    chance = 1.0 / (1.0 + np.exp(-np.clip(change + prior, -700.0, 700.0)))
    for a, b in np.argwhere(np.triu(chance > LEAST, 1)).tolist():
        one, two = (answer.table.speakers[names[k]] for k in (a, b))
        pairs = size[a] * size[b]
        yield NameMisfit(
            calls=_calls(answer, np.concatenate([by_name[names[a]], by_name[names[b]]])),
            kind=ONE,
            probability=float(chance[a, b]),
            listed=f"{one}{SEPARATOR}{two}",
            suggested=f"{one} = {two}",
            evidence=f"{pairs} pairs of voices of the two, {table[a, b] / pairs:+.1f} on average",
        )


def _between(voices: Voices, sides: Ints, number: Ints, names: int) -> Floats:
    """(names, names) summed scores between the voices of two names."""
    i, j = np.triu_indices(len(sides), 1)
    scores = np.nan_to_num(voices(sides[i], sides[j]))
    table = np.zeros((names, names))
    np.add.at(table, (number[i], number[j]), scores)
    return table + table.T


def _met(answer: Answer, names: list[int]) -> NDArray[np.bool_]:
    """(names, names) whether two people are listed in one conversation."""
    where = {who: k for k, who in enumerate(names)}
    met = np.eye(len(names), dtype=bool)
    table = answer.table
    for m in range(len(table)):
        own = table.listing.of(m)
        listed = table.people[own][~table.candidate[own]].tolist()
        here = [where[who] for who in listed if who in where]
        met[np.ix_(here, here)] = True
    return met


def _with_strangers(answer: Answer, who: int, sides: Ints) -> Ints:
    """The sides of a person, and where he is absent the likeliest of someone else."""
    table, speaker = answer.table, answer.speaker()
    entries, more = np.flatnonzero((table.people == who) & ~table.candidate), []
    for e in entries[answer.presence.chance[entries] < 0.5].tolist():
        own = table.sides.of(int(table.listing.conversation[e]))
        strange = np.flatnonzero(speaker[own] == STRANGER) + own.start
        if len(strange):
            more.append(int(strange[np.argmax(answer.stranger.chance[strange])]))
    return np.concatenate([sides, np.array(more, np.int64)])


def _split(
    answer: Answer, weight: Weight, voices: Voices, who: int, sides: Ints
) -> NameMisfit | None:
    """The best way to give a name to two people, if that is not improbable."""
    if len(sides) < 2 * FEWEST:
        return None
    i, j = np.triu_indices(len(sides), 1)
    table = np.zeros((len(sides), len(sides)))
    table[i, j] = table[j, i] = np.nan_to_num(voices(sides[i], sides[j]))
    part = _best_split(table)
    if min(part.sum(), (~part).sum()) < FEWEST:
        return None
    w = float(weight.of(np.array([len(sides)], np.int32))[0])
    gain = -w * float(table[np.ix_(part, ~part)].sum())
    ways = (len(sides) - 1) * np.log(2.0)
    odds = np.clip(gain + np.log(_rate(answer)) - ways, -700.0, 700.0)
    chance = float(1.0 / (1.0 + np.exp(-odds)))
    if chance <= LEAST:
        return None
    fewer = part if part.sum() <= (~part).sum() else ~part
    across = float(table[np.ix_(fewer, ~fewer)].mean())
    return NameMisfit(
        calls=_calls(answer, sides[fewer]),
        kind=TWO,
        probability=chance,
        listed=answer.table.speakers[who],
        suggested=f"another person in {int(fewer.sum())} of {len(sides)} conversations",
        evidence=f"{across:+.1f} on average between these and the others",
    )


def _best_split(table: Floats) -> NDArray[np.bool_]:
    """Two groups of voices: along the main direction, then whoever is nearer to the other group
    goes there."""
    _, directions = np.linalg.eigh(table)
    part = directions[:, -1] >= np.median(directions[:, -1])
    signs = np.where(directions[:, -1] >= 0.0, 1.0, -1.0)
    if abs(signs.sum()) < len(signs):
        part = signs > 0.0
    for _ in range(20):
        to_one = (table @ part) / max(part.sum(), 1)
        to_two = (table @ ~part) / max((~part).sum(), 1)
        fresh = to_one > to_two
        if np.array_equal(fresh, part) or not 0 < fresh.sum() < len(fresh):
            break
        part = fresh
    return np.asarray(part, np.bool_)


def _calls(answer: Answer, sides: Ints) -> list[str]:
    return [answer.table.ids[m] for m in answer.table.sides.conversation[sides].tolist()]
