"""What speaks for what is said of a conversation, and what against it, piece by piece.

The pieces are log10 likelihood ratios, for what assignments.csv says against another possibility.
Of one bit a conversation that is the two people exchanged. Of the answer in full it is about the
least certain track: that whoever is said to be on it is there, against whoever else is there with
the highest probability, a listed person or someone else. The strength of the evidence is the change
of the odds of these two,

    log10 P(said on the track | all) / P(other on the track | all)
  - log10 P(said on the track) / P(other on the track),   by the lists and what was known before.

A link is one voice in two conversations. It is weighed against the best state with the other person
on the track, all other conversations being as assigned; what their doubt, and further states of
this conversation, take away (or add) is a piece of its own. What was known before, and all who
might be there besides these two, bring the sum of the pieces to the log10 odds of the probability
in assignments.csv. Probabilities that double precision does not tell from 0 or 1 say nothing of
doubt: then the sum of the other pieces stands.

Links of all conversations stand one after the other, those of a conversation together, the
strongest first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.cues.cue import seat_layout
from spklink.database.conversations import Conversations
from spklink.database.links import pair_starts
from spklink.posterior.answer import STRANGER, Answer, certain_calls, places_of
from spklink.posterior.likelihood import combine_prior
from spklink.posterior.posterior import Posterior
from spklink.posterior.states.alternatives import ANYBODY, alternatives
from spklink.posterior.states.prior import SeatLayout
from spklink.posterior.states.seats import Seats
from spklink.runs.evidence import Evidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
LN10 = float(np.log(10.0))
LEAST = 1e-12  # probabilities closer to 0 or 1 say nothing exact about doubt
FREQUENT = "voices of people with very many conversations"  # whose links are not listed
ELSEWHERE = "voices known from elsewhere"  # of people whom lists do not name
FIXED = 300.0  # log10: so much is a list that is taken at its word, not evidence


@dataclass(frozen=True)
class Weighed:
    """All conversations of a table."""

    side: Ints  # (M,) the side that the odds are about: the least certain
    against: Ints  # (sides,) who would be there otherwise: a speaker, or STRANGER
    possible: Mask  # (M,) whether anything else can be
    given: Mask  # (M,) known beforehand, so nothing is concluded
    start: Ints  # (M + 1,) where the links of a conversation begin
    other: Ints  # (links,) the conversation at the far end
    speaker: Ints  # (links,) whose voice it is
    links: Floats  # (links,)
    cues: dict[str, Floats]  # (M,) of each kind of other evidence
    before: Floats  # (M,) what lists, priors and known channels say
    doubt: Floats  # (M,) other conversations may be otherwise, and so may this one
    others: Floats  # (M,) further people may be on the side
    total: Floats  # (M,) the sum of all

    def strength(self) -> Floats:
        """(M,) of the evidence alone, for who is said to be on the side, against `against`."""
        return np.asarray(self.total - self.before - self.others)


def weigh(evidence: Evidence, answer: Answer) -> Weighed:
    """What speaks for an answer and against it."""
    return _of_bits(evidence, answer.bits) if answer.binary else _of_seats(evidence, answer)


def _of_bits(evidence: Evidence, solution: Posterior) -> Weighed:
    table = evidence.conversations
    now, otherwise = (places_of(table, bits) for bits in (solution.best, 1 - solution.best))
    sign = np.where(solution.best == 1, 1.0, -1.0)
    cues = _cues(evidence, now, otherwise)
    before = sign * combine_prior(table, evidence.known).log_odds / LN10
    odds = _odds(solution.confidence()[0])
    return _together(
        evidence,
        now,
        otherwise,
        against=_who(table, otherwise),
        cues=cues,
        before=before - sum(cues.values(), np.zeros(len(table))),
        ratio=odds,
        odds=odds,
        side=table.sides.start[:-1],
        possible=np.ones(len(table), np.bool_),
        given=solution.bits >= 0,
    )


def _of_seats(evidence: Evidence, answer: Answer) -> Weighed:
    table, seats = answer.table, answer.seats
    side = least_certain(answer)
    track, first = side - table.sides.start[:-1], seats.person_start[:-1]
    now, rival = answer.beliefs.place.copy(), likeliest_other(answer, side)
    otherwise, there = alternatives(seats, now, track, np.where(rival >= 0, rival - first, rival))
    against = _who(table, otherwise)
    if answer.split is not None:
        _once_more(answer, side, now, otherwise)
    rival = np.where(rival == ANYBODY, _on(seats, otherwise, track), rival)
    if len(table.people):
        against[side] = np.where(rival >= 0, table.people[np.maximum(rival, 0)], STRANGER)
    cues = _cues(evidence, now, otherwise)
    states = [_own(seats.layout, seats.seat, place) for place in (now, otherwise)]
    counts = [_counts(seats.layout, seats.count, place, seats.node) for place in (now, otherwise)]
    lists = (states[0] + counts[0] - states[1] - counts[1]) / LN10
    lists = np.where(there > 0, lists - sum(cues.values(), np.zeros(len(table))), 0.0)
    both = answer.event(side, answer.entry[side]), answer.event(side, rival)
    before = _ratio(answer.before(_all_cues(table)), *both, least=0.0)
    return _together(
        evidence,
        now,
        otherwise,
        against=against,
        cues=cues,
        before=np.where(np.isnan(before), lists, before),
        ratio=_ratio(answer.beliefs.guess, *both, least=LEAST),
        odds=_odds(answer.confidence.chance[side]),
        side=side,
        possible=there > 0,
        given=certain_calls(table, evidence.known) & (np.abs(lists) > FIXED),
    )


def likeliest_other(answer: Answer, side: Ints) -> Ints:
    """(M,) the entry of the list, or STRANGER, that is on a side of each conversation with the
    highest probability after the one that is said to be; ANYBODY where none is beyond LEAST."""
    seats, guess, said = answer.seats, answer.beliefs.guess, answer.entry[side]
    listed = np.flatnonzero(seats.layout.people)
    chance = guess[answer.event(side[seats.node], np.arange(len(seats.node)))]
    chance[said[said >= 0]] = -1.0
    order = np.lexsort((-np.round(chance, 12), seats.node))
    found, most = np.full(len(side), STRANGER), np.full(len(side), -1.0)
    found[listed] = order[seats.person_start[listed]]
    most[listed] = chance[found[listed]]
    else_ = np.where(said >= 0, guess[answer.events.places + side], -1.0)
    found = np.where(else_ > most, STRANGER, found)
    return np.where(np.maximum(else_, most) > LEAST, found, ANYBODY)


def _on(seats: Seats, place: Ints, track: Ints) -> Ints:
    """(M,) the entry that is on a track of each conversation, or STRANGER."""
    found = np.full(len(track), STRANGER)
    there = np.flatnonzero(place == track[seats.node])
    found[seats.node[there]] = there
    return found


def _ratio(chance: Floats, one: Ints, other: Ints, *, least: float) -> Floats:
    """log10 of the ratio of the probabilities of events; NaN where one of them is not beyond the
    least that says something."""
    a, b = chance[one], chance[other]
    told = (a > least) & (b > least)
    return np.where(told, np.log10(np.where(told, a, 1.0) / np.where(told, b, 1.0)), np.nan)


def least_certain(answer: Answer) -> Ints:
    """(M,) the side of every conversation that is least certain."""
    sides = answer.table.sides
    order = np.lexsort((answer.confidence.low, sides.conversation))
    return np.asarray(order[sides.start[:-1]])


def _once_more(answer: Answer, side: Ints, now: Ints, otherwise: Ints) -> None:
    """Where the side holds somebody who is on another one too, the question is whether he is."""
    entry, tracks = answer.entry[side], answer.seats.layout.tracks
    track = side - answer.table.sides.start[:-1]
    again = np.flatnonzero((entry != STRANGER) & (now[np.maximum(entry, 0)] != track))
    for m in again.tolist():
        own = slice(answer.seats.person_start[m], answer.seats.person_start[m + 1])
        otherwise[own] = now[own]
        now[entry[m]], otherwise[entry[m]] = track[m], tracks[m]


def _together(
    evidence: Evidence,
    now: Ints,
    otherwise: Ints,
    *,
    against: Ints,
    cues: dict[str, Floats],
    before: Floats,
    ratio: Floats,
    odds: Floats,
    side: Ints,
    possible: Mask,
    given: Mask,
) -> Weighed:
    start, other, speaker, links = _links(evidence, now, otherwise)
    calls = np.repeat(np.arange(len(side)), np.diff(start))
    told = np.bincount(calls, links, len(side)) + before
    told += sum(cues.values(), np.zeros(len(side)))
    doubt = np.where(np.isnan(ratio) | ~possible, 0.0, ratio - told)
    two = np.where(np.isnan(ratio), told, ratio)
    others = np.where(np.isnan(odds) | ~possible, 0.0, odds - two)
    return Weighed(
        side=np.asarray(side),
        against=against,
        possible=possible,
        given=np.asarray(given),
        start=start,
        other=other,
        speaker=speaker,
        links=links,
        cues=cues,
        before=before,
        doubt=doubt,
        others=others,
        total=told + doubt + others,
    )


def _odds(chance: Floats) -> Floats:
    """log10 odds; NaN where a probability is certainty, or all but."""
    inner = (chance > LEAST) & (chance < 1.0 - LEAST)
    p = np.where(inner, chance, 0.5)
    return np.where(inner, (np.log(p) - np.log1p(-p)) / LN10, np.nan)


def _links(evidence: Evidence, now: Ints, otherwise: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Where the links of every conversation begin; of each its far end, whose voice, and what it
    says."""
    table, links, llr = evidence.conversations, evidence.links, evidence.scores.needed
    listing, node = table.listing, table.listing.conversation.astype(np.int64)
    first = listing.start[links.first[links.pair]] + links.position_first
    second = listing.start[links.second[links.pair]] + links.position_second
    weight = evidence.weight.of(links.calls) / LN10
    offset = pair_starts(links, table.sides)[links.pair]
    tracks = table.sides.counts
    own, far = tracks[node[first]], tracks[node[second]]

    def said(one: Ints, two: Ints) -> Floats:
        there = (one < own) & (two < far)
        at = offset + np.where(there, one * far + two, 0)
        return np.where(there, weight * llr[at], 0.0) if len(llr) else np.zeros(len(at))

    as_is = said(now[first], now[second])
    gains = [
        as_is - said(otherwise[first], now[second]),
        as_is - said(now[first], otherwise[second]),
    ]
    entry, end = np.concatenate([first, second]), np.concatenate([second, first])
    gain = np.concatenate(gains)
    order = np.lexsort((end, entry, -np.round(np.abs(gain), 9), node[entry]))
    order = order[gain[order] != 0.0]
    count = np.bincount(node[entry[order]], minlength=len(table))
    start = np.concatenate([[0], np.cumsum(count)])
    people = table.people.astype(np.int64)
    return start, node[end[order]], people[entry[order]], gain[order]


def _cues(evidence: Evidence, now: Ints, otherwise: Ints) -> dict[str, Floats]:
    """(M,) of every kind of other evidence, and of links that are not listed; 0 where it says
    nothing."""
    layout = seat_layout(evidence.conversations)
    told = {one.name: one.seat for one in evidence.cues}
    for name, seat in (
        (FREQUENT, evidence.conversations.sums),
        (ELSEWHERE, evidence.conversations.elsewhere),
    ):
        if len(seat):
            told[name] = seat
    return {
        name: (_own(layout, seat, now) - _own(layout, seat, otherwise)) / LN10
        for name, seat in told.items()
    }


def _all_cues(table: Conversations) -> Floats:
    """(seats,) what is evidence, of all that speaks for seats without links; or nothing at all."""
    told = [seat for seat in (table.cues, table.sums, table.elsewhere) if len(seat)]
    return np.sum(told, axis=0) if told else np.zeros(0)


def _own(layout: SeatLayout, seat: Floats, place: Ints) -> Floats:
    """(M,) what seats say of these places."""
    node = np.repeat(np.arange(len(layout.people)), layout.people)
    first = np.concatenate([[0], np.cumsum(layout.people)])[:-1]
    row = layout.seat_start[node] + (np.arange(len(node)) - first[node]) * layout.tracks[node]
    there = place < layout.tracks[node]
    values = np.where(there, seat[np.where(there, row + place, 0)], 0.0) if len(seat) else 0.0 * row
    return np.bincount(node, values, len(layout.people)).astype(np.float64)


def _counts(layout: SeatLayout, count: Floats, place: Ints, node: Ints) -> Floats:
    """(M,) what lists say of so many people being there."""
    there = place < layout.tracks[node]
    seated = np.bincount(node, there, len(layout.people)).astype(np.int64)
    return np.asarray(count[layout.count_start[:-1] + seated])


def _who(table: Conversations, place: Ints) -> Ints:
    """(sides,) who is on each side where people are at these places."""
    node, found = table.listing.conversation, np.full(len(table.sides), STRANGER, np.int64)
    there = np.flatnonzero(place < table.sides.counts[node])
    found[table.sides.start[node[there]] + place[there]] = table.people[there]
    return found
