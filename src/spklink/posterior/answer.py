"""The answer: who is on which track, who is there at all, and which lists are wrong.

Whatever solved it, an `Answer` is a list of events with their probabilities: that a listed person
is on a track, or nowhere; that someone else is on a track; that a list is right. Every figure has
a low and a high end.

Where every conversation has two certain people on two tracks and lists are taken at their word, a
conversation is one bit: such an answer is *binary*, and its `bits` also say how probable whole
configurations of a clique are. `Answer.given(lists_right=True)` is that answer for any other of
the same conversations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL, sums
from spklink.database.cliques import Cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.database.sides import refuse_more_than_bits, two_each
from spklink.errors import SpklinkError
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.posterior.likelihood import Weight, combine_prior
from spklink.posterior.list_errors import Rate, estimate_rate, given_rate
from spklink.posterior.posterior import SETTLED, Options, Posterior
from spklink.posterior.states.copies import Split, doubled
from spklink.posterior.states.marginals import Events, conditionals
from spklink.posterior.states.prior import Said, repeated
from spklink.posterior.states.seats import Seats, build_seats, fix
from spklink.posterior.states.solve import SeatBeliefs, Tell, glance_at, solve_seats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STRANGER = -1  # someone else, where an entry of a list is expected


@dataclass(frozen=True)
class Figures:
    """A probability, and the two ends of its interval."""

    chance: Floats
    low: Floats
    high: Floats

    def __getitem__(self, chosen: NDArray[np.generic] | slice) -> Figures:
        return Figures(self.chance[chosen], self.low[chosen], self.high[chosen])

    def turned(self) -> Figures:
        """Those of the opposite."""
        return Figures(1.0 - self.chance, 1.0 - self.high, 1.0 - self.low)


@dataclass(frozen=True)
class Answer:
    """The posterior over the states of every conversation; what is large is made when it is asked
    for, and once."""

    table: Conversations
    cliques: Cliques
    rate: Rate  # of list errors
    make_seats: Callable[[], Seats]
    make_beliefs: Callable[[], SeatBeliefs]
    make_right: Callable[[], Answer]  # given that the lists are right
    posterior: Posterior | None = None  # where every conversation is one bit
    split: Split | None = None  # where people may be on two tracks

    @property
    def seats(self) -> Seats:
        """The states of every conversation, and what the links say of them."""
        return self.make_seats()

    @property
    def beliefs(self) -> SeatBeliefs:
        """What the solver found of every event."""
        return self.make_beliefs()

    @cached_property
    def place(self) -> Ints:
        """(entries,) where the listed people are in the best state: a track, or their number."""
        if self.posterior is not None:
            return places_of(self.table, self.posterior.best)
        return self.beliefs.place

    @property
    def binary(self) -> bool:
        """Whether every conversation is one bit: lists are taken at their word."""
        return self.posterior is not None

    @property
    def bits(self) -> Posterior:
        """One bit per conversation; an error where there is more to know."""
        if self.posterior is None:
            refuse_more_than_bits(self.table)
            raise SpklinkError("lists may be wrong here: ask given(lists_right=True) for its bits")
        return self.posterior

    def given(self, *, lists_right: bool) -> Answer:
        """The answer on the condition that everybody certain is there. It is solved when somebody
        asks, unless a run had it on the way."""
        return self.make_right() if lists_right and not self.binary else self

    def posterior_of(self, place: Ints) -> Floats:
        """(K,) P(C | lambda) = P(C) P(lambda | C) / sum over C' of P(C') P(lambda | C') of each
        clique, everybody on its lists (entries,) being where configuration C has him: on a track,
        or on none (the number of tracks)."""
        log_joint = self.seats.constant + self.seats.values(place)  # prior times likelihood
        joint = sums(self.cliques.label, log_joint, len(self.cliques))
        return np.exp(joint - self.log_evidence)

    @cached_property
    def events(self) -> Events:
        return Events(self.seats)

    def _all(self) -> Figures:
        return Figures(self.beliefs.guess, self.beliefs.low, self.beliefs.high)

    @cached_property
    def entry(self) -> Ints:
        """(sides,) the entry of the list that is on each side in the best state, or STRANGER."""
        sides, node = self.table.sides, self.table.listing.conversation
        found = np.full(len(sides), STRANGER, np.int64)
        twice = [] if self.split is None else [self.split.again]
        for place in (self.place, *twice):
            there = np.flatnonzero(place < sides.counts[node])
            found[sides.start[node[there]] + place[there]] = there
        return found

    def speaker(self) -> Ints:
        """(sides,) who that is, or STRANGER."""
        people = self.table.people.astype(np.int64)
        return np.where(self.entry >= 0, people[np.maximum(self.entry, 0)], STRANGER)

    @cached_property
    def confidence(self) -> Figures:
        """(sides,) how probable it is that this person, or someone else, is on the side."""
        return self._all()[self.event(np.arange(self.events.sides), self.entry)]

    def event(self, side: Ints, entry: Ints) -> Ints:
        """(n,) the events that entries of lists, or STRANGER, are on these sides."""
        if not len(self.seats.node):
            return self.events.places + side
        track = side - self.events.track_start[self.table.sides.conversation[side]]
        named = self.seats.place_start[np.maximum(entry, 0)] + track
        return np.where(entry >= 0, named, self.events.places + side)

    def before(self, evidence: Floats) -> Floats:
        """(places and sides,) how probable events were before any voice was heard, and without this
        evidence, which is part of what speaks for seats."""
        seats = self.seats if self.split is None else self.split.seats
        seat, none = seats.seat, np.zeros(0, np.int64)
        if len(evidence):
            seat = seat - (repeated(evidence, seats.layout) if self.split else evidence)
        alone = replace(seats, seat=seat, first=none, second=none, offset=none, weight=np.zeros(0))
        found, _ = conditionals(alone, np.zeros(len(seats.node), np.int64))
        return found if self.split is None else self.split.on_tracks(found, self.seats)

    @cached_property
    def stranger(self) -> Figures:
        """(sides,) that someone else is on the side, who is not listed."""
        return self._all()[slice(self.events.places, self.events.places + self.events.sides)]

    @cached_property
    def presence(self) -> Figures:
        """(entries,) that a listed person is there."""
        return self._all()[self.seats.place_start[1:] - 1].turned()

    @cached_property
    def wrong(self) -> Figures:
        """(M,) that somebody certain is absent."""
        return self._all()[slice(self.events.places + self.events.sides, None)].turned()

    def places(self, entry: int) -> Figures:
        """(tracks + 1,) where a listed person is; the last one is nowhere."""
        return self._all()[slice(self.seats.place_start[entry], self.seats.place_start[entry + 1])]

    def chance_of(self, m: int, track: int, person: int) -> float:
        """That a person, or STRANGER, is on a track of conversation m."""
        if person == STRANGER:
            return float(self.stranger.chance[self.table.sides.start[m] + track])
        entries = self.table.listing.of(m)
        at = np.flatnonzero(self.table.people[entries] == person)
        return float(self.places(entries.start + int(at[0])).chance[track]) if len(at) else 0.0

    def against(self, bits: NDArray[np.int8]) -> tuple[Floats, NDArray[np.bool_]]:
        """(M,) of two people on two channels: how probable it is that these bits are wrong of
        either, and whether something else is more probable. (No voice tells the mirror images of an
        unresolvable clique apart: neither is worse than the other.)"""
        place = places_of(self.table, bits)
        chance = self.beliefs.guess[self.events.at(place)]
        sides = self.events.track_start[self.seats.node] + place
        worse = self.confidence.chance[sides] > chance + EQUAL
        wrong = 1.0 - two_each(chance).min(axis=1)
        return np.asarray(wrong), np.asarray(two_each(worse).any(axis=1))

    def settled(self) -> NDArray[np.bool_]:
        """(sides,) that need no further listening."""
        return np.asarray(self.confidence.low >= SETTLED)

    @cached_property
    def certainty(self) -> list[str]:
        """(K,) of every clique: that of its least certain piece."""
        worst = np.zeros(len(self.cliques), np.int64)
        np.maximum.at(worst, self.cliques.label, self.certainties)
        return [CERTAINTIES[k] for k in worst]

    @property
    def certainties(self) -> Ints:
        """(M,) how certain each conversation is, by the number in CERTAINTIES: as its piece."""
        rank = {name: k for k, name in enumerate(CERTAINTIES)}
        of_piece = np.array([rank[name] for name in self.beliefs.certainty], np.int64)
        return of_piece[self.beliefs.piece]

    def candidate_probabilities(self, links: Links) -> Floats:
        """(C,) how probable each candidate of every link (module `links`) is its speaker twice."""
        if self.posterior is not None:
            return self.posterior.candidate_probabilities(links)
        assert self.beliefs.both is not None
        assert len(links.pair) == len(self.seats.first)
        return self.beliefs.both

    def of_clique(self, k: int, table: Conversations, cliques: Cliques) -> Answer:
        """The posterior of one clique alone, whose table and clique these are."""
        if self.posterior is not None:
            return answer_of_bits(table, cliques, self.posterior.of_clique(k), self._seats_of(k))
        mine = self.cliques.label == k
        seats, entries = fix(self.seats, self.beliefs.place, mine)
        events = mine[self.events.node]
        pieces, piece = np.unique(self.beliefs.piece[mine], return_inverse=True)
        some = pieces.tolist()
        beliefs = SeatBeliefs(
            place=self.beliefs.place[entries],
            guess=self.beliefs.guess[events],
            low=self.beliefs.low[events],
            high=self.beliefs.high[events],
            piece=piece.reshape(-1),
            log_sum=self.beliefs.log_sum[:, pieces],
            method=[self.beliefs.method[n] for n in some],
            certainty=[self.beliefs.certainty[n] for n in some],
            reason=[self.beliefs.reason[n] for n in some],
            proved=self.beliefs.proved[pieces],
        )
        right = cache(lambda: self.given(lists_right=True).of_clique(k, table, cliques))
        return answer_of_states(table, cliques, self.rate, seats, beliefs, right)

    def _seats_of(self, k: int) -> Callable[[], Seats]:
        """The states of the conversations of one clique."""
        mine = self.cliques.label == k
        return cache(lambda: fix(self.seats, self.beliefs.place, mine)[0])

    def with_beliefs(self, beliefs: SeatBeliefs, split: Split | None = None) -> Answer:
        """With other figures for the same events."""
        return replace(self, make_beliefs=lambda: beliefs, split=split or self.split)

    def with_pairs(self, options: Options) -> Answer:
        """With the probabilities of candidates; for them states are solved once more."""
        if self.posterior is not None:
            return self
        model = _Model(self.seats, self.split)
        start, quick = model.start(self.beliefs.place), options.quick().budget
        found = solve_seats(
            model.solved, start=start, budget=quick, pairs=True, hands=options.hands
        )
        return self.with_beliefs(*model.folded(found))

    @property
    def log_evidence(self) -> Floats:
        """(K,) log of the sum over the states of a clique: the middle of its interval, or the low
        end where nothing is known of the high one."""
        if self.posterior is not None:
            return self.posterior.log_evidence
        low, high = self.log_evidence_ends
        return np.where(np.isinf(high), low, low + (high - low) / 2.0)

    @property
    def seconds(self) -> Floats:
        """(K,) about what it takes to solve a clique."""
        if self.posterior is not None:
            return self.posterior.seconds
        slots = np.bincount(self.seats.node, np.diff(self.seats.slots.start), len(self.seats))
        return sums(self.cliques.label, 1e-5 * slots, len(self.cliques))

    @cached_property
    def log_evidence_ends(self) -> tuple[Floats, Floats]:
        """(K,) low and high end of it."""
        first = np.zeros(len(self.beliefs.method), np.int64)
        first[self.beliefs.piece[::-1]] = np.arange(len(self.table))[::-1]
        label = self.cliques.label[first]
        low, high = (sums(label, side, len(self.cliques)) for side in self.beliefs.log_sum)
        return low, high


def answer_of_states(
    table: Conversations,
    cliques: Cliques,
    rate: Rate,
    seats: Seats,
    beliefs: SeatBeliefs,
    right: Callable[[], Answer],
    split: Split | None = None,
) -> Answer:
    """What was found of conversations with several states each."""
    return Answer(table, cliques, rate, lambda: seats, lambda: beliefs, right, split=split)


def answer_of_bits(
    table: Conversations, cliques: Cliques, posterior: Posterior, seats: Callable[[], Seats]
) -> Answer:
    """What was found of conversations that are one bit each; `seats` makes their states."""
    beliefs = cache(partial(_events_of_bits, table, posterior))
    answer = Answer(
        *(table, cliques, given_rate(0.0), seats, beliefs), lambda: answer, posterior=posterior
    )
    return answer


def _events_of_bits(table: Conversations, found: Posterior) -> SeatBeliefs:
    """The events of two people on two tracks each, who are both there."""

    def events(turned: Floats, as_is: Floats) -> Floats:
        never = np.zeros(len(table))
        places = np.stack([as_is, turned, never, turned, as_is, never], axis=1)
        return np.concatenate([places.ravel(), np.zeros(2 * len(table)), np.ones(len(table))])

    label = found.model.cliques.label.astype(np.int64)
    return SeatBeliefs(
        place=places_of(table, found.best),
        guess=events(found.exchanged, 1.0 - found.exchanged),
        low=events(found.exchanged_low, 1.0 - found.exchanged_high),
        high=events(found.exchanged_high, 1.0 - found.exchanged_low),
        piece=label,
        log_sum=np.stack([found.log_evidence_low, found.log_evidence_high]),
        method=found.method.tolist(),
        certainty=found.certainty.tolist(),
        reason=found.reason.tolist(),
        proved=found.proved_optimal(),
    )


@dataclass(frozen=True)
class _Model:
    """The states of a database: as it is listed, and as it is solved where that differs."""

    seats: Seats
    split: Split | None = None

    @property
    def solved(self) -> Seats:
        return self.seats if self.split is None else self.split.seats

    def start(self, place: Ints | None) -> Ints | None:
        """Places of listed people, in terms of what is solved."""
        if place is None or self.split is None:
            return place
        nowhere = self.seats.layout.tracks[self.seats.node].astype(np.int64)
        return self.split.places(place, nowhere)

    def folded(self, found: SeatBeliefs) -> tuple[SeatBeliefs, Split | None]:
        """What is believed of listed people."""
        return (found, None) if self.split is None else self.split.folded(found, self.seats)


def seat(
    table: Conversations,
    cliques: Cliques,
    links: Links,
    llr: Floats,
    *,
    weight: Weight,
    rate: float | None = 0.0,
    said: list[Said] | None = None,
    start: Ints | None = None,
    options: Options | None = None,
    pairs: bool = False,
    near: bool = False,
    tell: Tell | None = None,
    right: Callable[[], Answer] | None = None,
) -> Answer:
    """Who is where, from log-likelihood-ratios; without a rate of list errors it is estimated.
    `start` may be a good guess of where people are (entries,), or even `near` to where. `right`
    gives the answer on the condition that the lists are right, where another is known than that of
    the same states."""
    how = options or Options()
    quick = how.quick().budget
    certain = ~table.possible
    twice = doubled(table, links) if table.split else None

    def model(asked: float) -> _Model:
        build = partial(build_seats, llr=llr, weight=weight, rate=asked, said=said)
        seats = build(table, links)
        if twice is None:
            return _Model(seats)
        return _Model(seats, Split(build(twice.table, twice.links, twice=True), twice))

    best = start

    def absent(asked: float) -> Floats:
        nonlocal best
        now = model(asked)
        beliefs, _ = now.folded(glance_at(now.solved, now.start(best), quick, how.seed))
        best = beliefs.place
        return np.asarray(beliefs.guess[now.seats.place_start[1:] - 1][certain])

    found = given_rate(rate) if rate is not None else estimate_rate(absent)
    # From the start, not from where estimating ended: so the same rate gives the same answer.
    last = model(found.value)
    beliefs = solve_seats(
        last.solved,
        start=last.start(start),
        budget=how.budget,
        seed=how.seed,
        pairs=pairs,
        near=near,
        hands=how.hands,
        tell=tell,
    )
    beliefs, split = last.folded(beliefs)
    if right is None:
        again = partial(seat, weight=weight, rate=0.0, said=said, options=how)
        right = partial(again, table, cliques, links, llr)
    return answer_of_states(table, cliques, found, last.seats, beliefs, cache(right), split)


def certain_calls(table: Conversations, known: Labels | None) -> NDArray[np.bool_]:
    """(M,) conversations in which somebody knows a track for certain, or the table does."""
    if table.plain:
        return np.asarray(combine_prior(table, known).clamped >= 0)
    sure = (table.prior == 0.0) | (table.prior == 1.0)
    if known is not None:
        sure[known.said.conversation[known.said.probability == 1.0]] = True
    return np.asarray(sure)


def said_about(table: Conversations, known: Labels | None) -> list[Said]:
    """Known channels as statements about places in the lists."""
    if known is None:
        return []
    said, found = known.said, []
    for m, track, person, chance in zip(
        said.conversation.tolist(),
        said.track.tolist(),
        said.person.tolist(),
        said.probability.tolist(),
        strict=True,
    ):
        listed = table.people[table.listing.of(m)].tolist()
        place = listed.index(person) if person in listed else STRANGER
        found.append(Said(m, track, place, chance, heard=m in said.heard))
    return found


def places_of(table: Conversations, bits: NDArray[np.int8]) -> Ints:
    """(entries,) where two people are on two channels, from the bits of `posterior`."""
    turned = np.maximum(bits, 0).astype(np.int64)
    return np.stack([turned, 1 - turned], axis=1).ravel()
