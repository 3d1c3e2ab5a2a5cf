"""Names for people whom no list names: who of the database, or of the enrolled, may be on a track.

Every track of a conversation with an open list (`?`, `*`, or nothing at all) is first held against
everybody whose voice is known, each track by itself (module `open_set`). That costs so much a
track, however many conversations there are. Whoever is not improbable there becomes a candidate: a
possible participant of that conversation, with the prior that was estimated on the way; then all
conversations are solved together as lists are. Those who are left out have a probability too, which
is told.

A few rounds: tracks that are surely somebody's are further voices of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.candidates import Candidates
from spklink.database.conversations import Conversations
from spklink.database.lists import MOST_PLACED
from spklink.database.sides import vague
from spklink.posterior.answer import Answer
from spklink.posterior.open_set import SURE, Identified, Voices, gathered, identify, means
from spklink.runs.names import Voices as Compare
from spklink.runs.names import sides_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
ROUNDS = 3  # a choice: names go from track to track so often before all are solved together
LEFT = 1e-3  # probability of a track that those who are left out may have together. A choice
MOST = 8  # candidates a track. A choice
NUMBERS = ("tracks", "people", "rate", "left_out_most", "left_out_expected")  # of run.json
ROWS = 256  # tracks at a time: bounds the memory


@dataclass(frozen=True)
class Naming:
    """Who may be where, and what was found on the way."""

    candidates: Candidates
    tracks: int  # that nobody need be listed on
    people: int  # whose voices are known
    rate: float  # share of these tracks that are theirs
    # Of people who were not made candidates: their probability on a track at most, and how many
    # tracks are expected to be theirs.
    left_out_most: float
    left_out_expected: float

    def as_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return numbers | {"candidates": len(self.candidates)}


def unlisted_sides(answer: Answer, usable: Mask | None) -> Ints:
    """The sides that somebody unlisted may be on."""
    table = answer.table
    asked = vague(table) & (np.arange(len(table)) < table.asked)
    good = np.ones(len(table.sides), np.bool_) if usable is None else usable
    return np.flatnonzero(asked[table.sides.conversation] & good)


def find_candidates(answer: Answer, compare: Compare, usable: Mask | None) -> Naming:
    """Candidates of all conversations with open lists, group by group."""
    sides = unlisted_sides(answer, usable)
    group = answer.table.group[answer.table.sides.conversation[sides]]
    parts = [
        _Group(answer, compare, sides[group == g], g).chosen() for g in np.unique(group).tolist()
    ]
    found = [one for one in parts if one is not None]
    if not found:
        none = np.zeros(0, np.int64)
        nobody = Candidates(none, none, np.zeros(0), np.zeros(0))
        return Naming(nobody, len(sides), 0, 0.0, 0.0, 0.0)
    return Naming(
        _joined([one.candidates for one in found], answer.table),
        len(sides),
        sum(one.people for one in found),
        sum(one.rate * one.tracks for one in found) / max(sum(one.tracks for one in found), 1),
        max(one.left_out_most for one in found),
        sum(one.left_out_expected for one in found),
    )


def _joined(parts: list[Candidates], table: Conversations) -> Candidates:
    conversation = np.concatenate([one.conversation for one in parts])
    order = np.argsort(conversation, kind="stable")
    tracks = table.sides.counts[conversation]
    start = np.concatenate([[0], np.cumsum(tracks)])
    return Candidates(
        conversation[order],
        np.concatenate([one.person for one in parts])[order],
        np.concatenate([one.prior for one in parts])[order],
        np.concatenate([one.value for one in parts])[ranges(start[order], tracks[order])],
    )


class _Group:
    """The tracks and people of one group."""

    def __init__(self, answer: Answer, compare: Compare, sides: Ints, group: int) -> None:
        self.table, self.compare, self.sides = answer.table, compare, sides
        self.free = answer.stranger.chance[sides]
        known = sides_of(answer, group)
        self.people = np.array(list(known), np.int64)
        self.trust = answer.confidence.chance.copy()
        self.known = [one[np.argsort(-self.trust[one], kind="stable")] for one in known.values()]
        self.listed = _listed(self.table, sides, self.people)

    def chosen(self) -> Naming | None:
        """None where no voice is known, or no track is open."""
        if not len(self.people) or not len(self.sides):
            return None
        named: Floats | None = None
        for _ in range(ROUNDS):
            voices = self._voices(named)
            value = self._values(voices)
            found = identify(value, self.free)
            if named is not None and np.array_equal(named > SURE, found.chance > SURE):
                break
            named = found.chance
        return self._kept(found, value)

    def _voices(self, named: Floats | None) -> Voices:
        """Those of the lists and enrolments, then tracks that are surely somebody's."""
        chance = None if named is None else named * self.free[:, None]
        return gathered(self.known, self.trust, self.sides, chance)

    def _values(self, voices: Voices) -> Floats:
        found = np.empty((len(self.sides), len(voices)))
        there = self.table.sides.conversation[voices.side]
        for begin in range(0, len(self.sides), ROWS):
            rows = self.sides[begin : begin + ROWS]
            one, two = np.repeat(rows, len(voices.side)), np.tile(voices.side, len(rows))
            llr = self.compare(one, two).reshape(len(rows), -1)
            llr[self.table.sides.conversation[rows][:, None] == there] = np.nan
            found[begin : begin + ROWS] = means(llr, voices)
        found[self.listed] = -np.inf
        return found

    def _kept(self, found: Identified, value: Floats) -> Naming:
        """Those who are not improbable on a track, and what the others are worth."""
        chance = found.chance
        order = np.argsort(-chance, axis=1, kind="stable")
        ranked = np.take_along_axis(chance, order, axis=1)
        rest = np.maximum(ranked.sum(axis=1, keepdims=True) - np.cumsum(ranked, axis=1), 0.0)
        before = np.concatenate([ranked.sum(axis=1, keepdims=True), rest[:, :-1]], axis=1)
        kept = (before > LEFT) & (np.arange(chance.shape[1]) < self._most()[:, None])
        left = np.where(kept, 0.0, ranked).sum(axis=1) * self.free
        row, place = np.nonzero(kept)
        candidates = self._candidates(row, order[row, place], found, value)
        return Naming(
            candidates,
            len(self.sides),
            len(self.people),
            found.rate,
            float(left.max(initial=0.0)),
            float(left.sum()),
        )

    def _most(self) -> Ints:
        """(X,) how many candidates a track may have: of very many tracks few can be placed."""
        m = self.table.sides.conversation[self.sides]
        tracks, listed = self.table.sides.counts[m], self.table.listing.counts[m]
        few = np.maximum(MOST_PLACED - listed, 0) // tracks
        return np.where(tracks > MOST_PLACED, few, np.maximum(64 // tracks, 1).clip(max=MOST))

    def _candidates(self, row: Ints, s: Ints, found: Identified, value: Floats) -> Candidates:
        """One entry a conversation and person."""
        table, m = self.table, self.table.sides.conversation[self.sides[row]]
        key = np.unique(m * len(self.people) + s)
        conversation, person = key // len(self.people), key % len(self.people)
        certain = np.bincount(table.listing.conversation, ~table.possible, len(table))
        tracks = table.sides.counts[conversation]
        odds = found.odds() - np.log(len(self.people))
        odds = odds + np.log(np.maximum(tracks - certain[conversation], 1.0))
        where = np.full(len(table.sides), -1, np.int64)
        where[self.sides] = np.arange(len(self.sides))
        at = where[ranges(table.sides.start[conversation], tracks)]
        said = value[np.maximum(at, 0), np.repeat(person, tracks)]
        return Candidates(
            conversation,
            self.people[person],
            1.0 / (1.0 + np.exp(-odds)),
            np.where((at >= 0) & np.isfinite(said), said, 0.0),  # nothing is heard on the track
        )


def _listed(table: Conversations, sides: Ints, people: Ints) -> Mask:
    """(X, N) whether somebody is listed in the conversation of a side already."""
    place = np.full(len(table.speakers), -1, np.int64)
    place[people] = np.arange(len(people))
    rows: dict[int, list[int]] = {}
    for k, m in enumerate(table.sides.conversation[sides].tolist()):
        rows.setdefault(m, []).append(k)
    found = np.zeros((len(sides), len(people)), np.bool_)
    for m, own in rows.items():
        here = place[table.people[table.listing.of(m)]]
        found[np.ix_(np.array(own), here[here >= 0])] = True
    return found
