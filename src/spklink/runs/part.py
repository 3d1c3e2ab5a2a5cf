"""A part of a database that hangs together by itself: what a decision changes.

Nothing outside a clique depends on it, so after somebody listened only its clique is solved again.
What was heard is known as any known channel is, but for one thing: a known channel may be as wrong
as a list, what was heard is taken for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.labels import STRANGER, Labels, said_of
from spklink.database.links import Links, needed_sides, pair_starts
from spklink.database.lists import OTHERS
from spklink.database.sides import exchanged
from spklink.posterior.answer import Answer, certain_calls
from spklink.posterior.posterior import Options
from spklink.posterior.states.prior import layout_of
from spklink.runs.evidence import Evidence
from spklink.runs.weighed import Weighed, weigh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Seats = tuple[str | None, ...]  # a track: a name, "*" for someone else, None where nobody says


def part_of(evidence: Evidence, calls: Ints) -> Evidence:
    """What there is about some conversations, which are whole cliques; in their order."""
    table, links = evidence.conversations, evidence.links
    place = np.full(len(table), -1, np.int64)
    place[calls] = np.arange(len(calls))
    pairs = np.flatnonzero(place[links.first] >= 0)
    number = np.full(len(links.first), -1, np.int64)
    number[pairs] = np.arange(len(pairs))
    own = np.flatnonzero(number[links.pair] >= 0)
    start = pair_starts(links, table.sides)
    needed = ranges(start[pairs], np.diff(start)[pairs])
    scores = replace(evidence.scores, needed=evidence.scores.needed[needed])
    return Evidence(
        conversations=table.take(calls),
        links=Links(
            first=place[links.first[pairs]].astype(np.int32),
            second=place[links.second[pairs]].astype(np.int32),
            pair=number[links.pair[own]],
            position_first=links.position_first[own],
            position_second=links.position_second[own],
            calls=links.calls[own],
        ),
        scores=scores,
        weight=evidence.weight,
        known=None if evidence.known is None else _labels(evidence.known, place, calls),
        cues=tuple(replace(one, seat=_seats(table, one.seat, calls)) for one in evidence.cues),
        slack=None if evidence.slack is None else evidence.slack.of(calls),
        seat_slack=None if evidence.seat_slack is None else evidence.seat_slack.of(calls),
    )


def _seats(table: Conversations, values: Floats, calls: Ints) -> Floats:
    """The values of the seats of some conversations."""
    layout = layout_of(table.listing.counts, table.sides.counts)
    return np.asarray(values[ranges(layout.seat_start[calls], np.diff(layout.seat_start)[calls])])


def _labels(known: Labels, place: Ints, calls: Ints) -> Labels:
    rows = [(int(place[row[0]]), *row[1:]) for row in _rows(known) if place[row[0]] >= 0]
    return Labels(known.exchanged[calls], said=said_of(rows))


def with_heard(evidence: Evidence, heard: Mapping[int, Seats]) -> Evidence:
    """The same where somebody listened; that goes before what was known of these conversations.

    Nobody who is listed has the voice of someone else, so its scores count for nothing.
    """
    if not heard:
        return evidence
    table, known = evidence.conversations, evidence.known
    turned = np.full(len(table), np.nan) if known is None else known.exchanged.copy()
    rows = [] if known is None else [row for row in _rows(known) if row[0] not in heard]
    strange = []
    for m, seats in heard.items():
        names = table.names(m)
        if table.plain:
            turned[m] = _turned(seats, names)
        for track, who in enumerate(seats):
            if who is None:
                continue
            listed = who in names
            people = table.people[table.listing.of(m)]
            person = int(people[names.index(who)]) if listed else STRANGER
            rows.append((m, track, person, 1.0, who if listed else OTHERS))
            if not listed:
                strange.append(int(table.sides.start[m]) + track)
    labels = Labels(turned, said=replace(said_of(rows), heard=frozenset(heard)))
    silent = np.isin(np.stack(needed_sides(evidence.links, table.sides)), strange).any(axis=0)
    scores = replace(evidence.scores, needed=np.where(silent, 0.0, evidence.scores.needed))
    return replace(evidence, known=labels, scores=scores)


def _rows(known: Labels) -> list[tuple[int, int, int, float, str]]:
    said = known.said
    return list(
        zip(
            said.conversation.tolist(),
            said.track.tolist(),
            said.person.tolist(),
            said.probability.tolist(),
            said.names,
            strict=True,
        )
    )


def _turned(seats: Seats, names: tuple[str, ...]) -> float:
    """The bit of two people on two channels; as listed where both are someone else, of which
    nothing depends; NaN where nobody is named."""
    for track, who in enumerate(seats):
        if who in names:
            return float(exchanged(names.index(who), track))
    return 0.0 if None not in seats else np.nan


@dataclass(frozen=True)
class Part:
    """Some cliques, solved."""

    calls: Ints  # their conversations in the whole table
    evidence: Evidence
    answer: Answer
    usable: NDArray[np.bool_]  # (sides of the part,)

    @property
    def table(self) -> Conversations:
        return self.evidence.conversations

    @cached_property
    def place(self) -> Ints:
        """(entries,) where the listed people are in the best state found."""
        return self.answer.place

    def names(self, i: int) -> tuple[str, ...]:
        """Who is on the tracks of one conversation in the best state; empty where a track cannot be
        used. What was heard goes before what follows from it."""
        return tuple(self._names[self.table.sides.of(i)])

    @cached_property
    def _names(self) -> list[str]:
        """(sides,)"""
        speakers = self.table.speakers
        return [
            "" if not usable else OTHERS if who < 0 else speakers[who]
            for who, usable in zip(self._speaker.tolist(), self.usable.tolist(), strict=True)
        ]

    @cached_property
    def track_figures(self) -> tuple[Floats, Floats, Floats]:
        """(sides,) how probable it is that this person is there, with both ends."""
        sure = self.answer.confidence
        return sure.chance, sure.low, sure.high

    @cached_property
    def weighed(self) -> Weighed:
        """What speaks for what is said of every conversation."""
        return weigh(self.evidence, self.answer)

    @cached_property
    def given(self) -> NDArray[np.bool_]:
        """(n,) conversations in which a track is known, from whomever."""
        return certain_calls(self.table, self.evidence.known)

    @cached_property
    def _speaker(self) -> Ints:
        found = self.answer.speaker()
        known = self.evidence.known
        if known is not None and known.said.heard:
            found, sides = found.copy(), self.table.sides
            for m, track, person, _, _ in _rows(known):
                if m in known.said.heard:
                    found[int(sides.start[m]) + track] = person
        return found

    @property
    def label(self) -> NDArray[np.int32]:
        """(n,) the clique of each conversation, from 0 in this part."""
        return self.evidence.cliques.label

    def certainty(self, i: int) -> str:
        """Of what is said of a conversation: exact, certified, sampled or estimated."""
        return self.answer.certainty[int(self.label[i])]

    def resolvable(self, i: int) -> bool:
        """Whether voices can tell who is who."""
        return bool(self.evidence.cliques.resolvable[self.label[i]])


def solved(
    evidence: Evidence,
    calls: Ints,
    usable: NDArray[np.bool_],
    *,
    rate: float,
    how: Options,
    start: Ints | None = None,
) -> Part:
    """A clique solved, with a rate of list errors; `start` may say where people were before."""
    answer = evidence.answered(rate, how, start=start, near=start is not None)
    return Part(calls, evidence, answer, usable)


def clique_of(whole: Part, k: int) -> Part:
    """One clique of a solved part, as it was solved there."""
    cliques = whole.evidence.cliques
    calls = cliques.members(k)
    evidence = part_of(whole.evidence, calls)
    if evidence.known is not None and whole.evidence.known is not None:
        heard = whole.evidence.known.said.heard
        kept = frozenset(i for i, m in enumerate(calls.tolist()) if m in heard)
        said = replace(evidence.known.said, heard=kept)
        evidence = replace(evidence, known=replace(evidence.known, said=said))
    sides = whole.table.sides
    usable = whole.usable[ranges(sides.start[calls], sides.counts[calls])]
    answer = whole.answer.of_clique(k, evidence.conversations, evidence.cliques)
    return Part(whole.calls[calls], evidence, answer, usable)
