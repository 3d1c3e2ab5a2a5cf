"""Lists, names and known channels that the voices contradict, and what would fit instead.

kind            what is probably wrong
absent          a listed person is not there; who of the database would fit is suggested
known channel   a known channel holds somebody else
one person      two names have one voice
two people      one name has two voices
placeholder     one name fits no single voice: it stands for anybody

The first two come from the posterior. The last two are hypotheses about names beside it, each
weighed against the database as it stands: the evidence of all pairs of voices under both, and a
prior odds that is the rate of list errors shared among all that could be so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.lists import OTHERS
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.likelihood import Weight
from spklink.posterior.states.prior import Said
from spklink.runs.names import Voices, find_names, placeholders, sides_of
from spklink.tables import SEPARATOR, probability_text

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MISFITS = ("conversation", "kind", "probability", "listed", "suggested", "evidence")
ABSENT, KNOWN = "absent", "known channel"  # those about names are in `names`
TIMES = 10.0  # the average, from which a list is told though it is more probably right
LEAST = 0.01  # probability below which nothing is told
SUGGESTED = 5  # people at most
OUTSIDE = 0.5  # how probable it is, before listening, that someone else is not in the database
MOST_SIDES = 4000  # of a database in which names are compared with one another
MOST_VOICES = 20  # of one person that a stranger is compared with
# Of all strangers together, with people who would fit; those of the most probable misfits first.
MOST_COMPARISONS = 20_000_000


@dataclass(frozen=True)
class Misfit:
    """One row of misfits.csv."""

    conversation: str
    kind: str
    probability: float
    listed: str
    suggested: str
    evidence: str

    def row(self) -> tuple[str, ...]:
        chance = probability_text(self.probability)
        return self.conversation, self.kind, chance, self.listed, self.suggested, self.evidence


def find_misfits(
    answer: Answer, weight: Weight, said: list[Said], voices: Voices | None
) -> list[Misfit]:
    """All misfits, the most probable first; without voices nobody can be suggested."""
    finder = _Finder(answer, weight, voices)
    found = [*finder.absent(), *_known(answer, said)]
    names = [*placeholders(answer)]
    if voices is not None and len(answer.table.sides) <= MOST_SIDES:
        names += find_names(answer, weight, voices)
    found += [
        Misfit(SEPARATOR.join(one.calls), one.kind, one.probability, *one.texts) for one in names
    ]
    return sorted(found, key=lambda one: -one.probability)


def told(wrong: Floats) -> Ints:
    """Conversations whose lists are told: more probably wrong than right, or far more than most."""
    average = float(wrong.mean()) if len(wrong) else 0.0
    chosen = np.flatnonzero((wrong > 0.5) | ((wrong > TIMES * average) & (wrong > LEAST)))
    return chosen[np.argsort(-wrong[chosen], kind="stable")]


def _known(answer: Answer, said: list[Said]) -> Iterator[Misfit]:
    """Known channels that are more probably wrong than right."""
    table = answer.table
    for one in said:
        first = table.listing.start[one.conversation]
        side = int(table.sides.start[one.conversation]) + one.track
        if one.person < 0:
            chance, who = answer.stranger.chance[side], OTHERS
        else:
            chance = answer.places(int(first) + one.person).chance[one.track]
            who = table.speakers[table.people[first + one.person]]
        if one.probability > 0.5 and chance < 0.5:
            now = _name(answer, int(answer.speaker()[side]))
            yield Misfit(
                conversation=table.ids[one.conversation],
                kind=KNOWN,
                probability=float(1.0 - chance),
                listed=f"{one.track + 1}: {who}",
                suggested=f"{now} {_digits(float(answer.confidence.chance[side]))}",
                evidence=f"{who} was said to be on channel {one.track + 1}; the voices say {now}",
            )


def _name(answer: Answer, person: int) -> str:
    return OTHERS if person == STRANGER else answer.table.speakers[person]


def _digits(chance: float) -> str:
    return f"{chance:.3g}"


class _Finder:
    """Looks for misfits in one database."""

    def __init__(self, answer: Answer, weight: Weight, voices: Voices | None) -> None:
        self.answer, self.weight, self.voices = answer, weight, voices
        self.table = answer.table
        self.speaker = answer.speaker()
        self.left = MOST_COMPARISONS
        self.groups: dict[int, dict[int, Ints]] = {}  # where people are, group by group

    def absent(self) -> Iterator[Misfit]:
        """Lists with somebody who is not there."""
        wrong = self.answer.wrong.chance
        for m in told(wrong).tolist():
            yield Misfit(
                conversation=self.table.ids[m],
                kind=ABSENT,
                probability=float(wrong[m]),
                listed=SEPARATOR.join(self.table.names(m)),
                suggested=self._suggested(m),
                evidence=self._evidence(m),
            )

    def _evidence(self, m: int) -> str:
        """Who is missing, and what his other conversations say about that."""
        parts = []
        entries = np.arange(*self.table.listing.of(m).indices(len(self.table.people))[:2])
        away = 1.0 - self.answer.presence.chance[entries]
        for e in entries[np.argsort(-away, kind="stable")]:
            chance = 1.0 - self.answer.presence.chance[e]
            if self.table.possible[e] or chance < max(LEAST, 0.1 * float(away.max())):
                continue
            parts.append(f"{self.table.speakers[self.table.people[e]]} absent {_digits(chance)}")
            parts[-1] += self._against(int(e))
        return "; ".join(parts)

    def _against(self, e: int) -> str:
        """The mean score of a person's nearest track with his other conversations."""
        seats, place = self.answer.seats, self.answer.beliefs.place
        slots, tracks = seats.slots, seats.layout.tracks
        mine = np.arange(slots.start[e], slots.start[e + 1])
        other = slots.other[mine]
        there = place[other] < tracks[seats.node[other]]
        mine, other = mine[there], other[there]
        if not len(mine):
            return self._summed(e) or " (no other conversation to compare with)"
        offset, later = seats.offset[slots.link[mine]], slots.later[mine]
        own, far = tracks[seats.node[e]], tracks[seats.node[other]]
        means = []
        for k in range(int(own)):
            step = np.where(later, place[other] * own + k, k * far + place[other])
            means.append(float(seats.llr[offset + step].mean()))
        calls = [self.table.ids[j] for j in seats.node[other[:3]].tolist()]
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        return f" (nearest track {max(means):+.1f} on average against {', '.join(calls)}{more})"

    def _summed(self, e: int) -> str:
        """The same of somebody whose voice was summed: what all of them add to that track."""
        table = self.table
        if not len(table.sums):
            return ""
        tracks = table.sides.counts[table.listing.conversation[: e + 1]]
        own = table.sums[int(tracks[:-1].sum()) :][: int(tracks[-1])]
        others = int((table.people == table.people[e]).sum()) - 1
        if not own.any():
            return ""
        return f" (nearest track {own.max():+.1f} from {others:,} other conversations together)"

    def _suggested(self, m: int) -> str:
        """Who of the database would fit on the tracks that nobody listed is on."""
        ranked: list[tuple[float, str]] = []
        sides = np.arange(*self.table.sides.of(m).indices(len(self.speaker))[:2])
        for side in sides:
            chance = float(self.answer.stranger.chance[side])
            if chance > LEAST and self.voices is not None:
                ranked += [(chance * p, who) for p, who in self._fitting(m, int(side))]
        ranked.sort(key=lambda one: -one[0])
        return SEPARATOR.join(f"{who} {_digits(p)}" for p, who in ranked[:SUGGESTED] if p > LEAST)

    def _fitting(self, m: int, side: int) -> list[tuple[float, str]]:
        """People who are not listed in m, with the probability that the side is theirs."""
        people, voices_of = self._candidates(m)
        self.left -= sum(map(len, voices_of))
        if not len(people) or self.left < 0:
            return []
        assert self.voices is not None
        number = np.repeat(np.arange(len(people)), [len(one) for one in voices_of])
        others = np.concatenate(voices_of)
        llr = self.voices(np.full(len(others), side), others)
        known = np.isfinite(llr)
        heard = np.bincount(number[known], minlength=len(people))
        total = np.bincount(number[known], llr[known], len(people))
        calls = np.array([len(one) for one in voices_of])
        mean = total / np.maximum(heard, 1)
        w = self.weight.of((calls + 1).astype(np.int32))
        value = np.where(heard > 0, w * calls * mean, -np.inf)
        prior = np.log(1.0 - OUTSIDE) - np.log(len(people))
        whole = np.logaddexp(np.log(OUTSIDE), np.logaddexp.reduce(prior + value))
        chance = np.exp(prior + value - whole)
        best = np.argsort(-chance, kind="stable")[:SUGGESTED]
        return [(float(chance[k]), self.table.speakers[people[k]]) for k in best]

    def _candidates(self, m: int) -> tuple[list[int], list[Ints]]:
        """People of the group who are not listed in m, and where their voices are."""
        if self.left < 0:
            return [], []
        listed = set(self.table.people[self.table.listing.of(m)].tolist())
        group = int(self.table.group[m])
        if group not in self.groups:
            self.groups[group] = sides_of(self.answer, group)
        found = {who: sides for who, sides in self.groups[group].items() if who not in listed}
        return list(found), [sides[:MOST_VOICES] for sides in found.values()]
