"""How probable the truth is under a posterior over states, and where its best state agrees with it.

For a clique, cross entropy = -log2 P(true state): of every track who is on it, someone else where
the key names a person who is not listed there. Nothing is taken for granted, not even that the
lists are right. Tracks without a key are left out: the probability of the keyed ones, whatever the
others are, is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.labels import Labels
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.posterior import Options
from spklink.posterior.states.seats import ROOM, Places, Seats, fix
from spklink.posterior.states.solve import solve_seats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
UNSAID = -2  # nobody knows who is on a track


@dataclass(frozen=True)
class SeatTruth:
    """Who really is where, in terms of the lists."""

    entry: Ints  # (sides,) of the lists, STRANGER, or UNSAID
    keyed: Mask  # (M,) something is said of the conversation
    whole: Mask  # (M,) something is said of all of its tracks
    place: Places  # (entries,) of conversations that are told as a whole; nowhere elsewhere
    again: Places  # (entries,) the second track of whoever is on two


@dataclass(frozen=True)
class SeatScores:
    """One entry a clique that has a key for at least one track."""

    clique: Ints
    size: Ints
    keyed: Ints  # conversations
    resolvable: Mask
    cross_low: Floats  # -log2 P(truth): both ends, equal where the posterior is exact
    cross_high: Floats
    wrong: Mask  # some keyed track is another's in the best state

    @property
    def per_low(self) -> Floats:
        """Bits a conversation, low end."""
        return self.cross_low / self.keyed

    @property
    def per_high(self) -> Floats:
        return self.cross_high / self.keyed


def seat_truth(answer: Answer, key: Labels) -> SeatTruth:
    """What a key says of every track."""
    table, said = answer.table, key.said
    entry = np.full(len(table.sides), UNSAID, np.int64)
    place = answer.seats.layout.tracks[answer.seats.node].astype(np.int64)
    for m, track, person, chance in zip(
        said.conversation.tolist(),
        said.track.tolist(),
        said.person.tolist(),
        said.probability.tolist(),
        strict=True,
    ):
        if chance == 1.0:
            at = table.people[table.listing.of(m)].tolist()
            listed = person in at and person != STRANGER
            found = int(table.listing.start[m]) + at.index(person) if listed else STRANGER
            entry[int(table.sides.start[m]) + track] = found
    told = sums(table.sides.conversation, entry != UNSAID, len(table))
    whole = told == table.sides.counts
    sides = np.flatnonzero((entry >= 0) & whole[table.sides.conversation])
    again = place.copy()
    place[entry[sides]] = table.sides.position[sides]  # the last of several
    first = sides[table.sides.position[sides] != place[entry[sides]]]
    again[entry[first]] = table.sides.position[first]
    return SeatTruth(entry, told > 0, np.asarray(whole), place, again)


def score_seats(answer: Answer, truth: SeatTruth, *, options: Options | None = None) -> SeatScores:
    """Cross entropy and error of every clique with a key."""
    cliques, count = answer.cliques, len(answer.cliques)
    keyed = sums(cliques.label, truth.keyed, count).astype(np.int64)
    complete = sums(cliques.label, truth.whole, count) == cliques.size
    low, high = (np.where(complete, one, 0.0) for one in [_values(answer, truth)] * 2)
    partly = (keyed > 0) & ~complete
    if partly.any():
        ends = _given(answer, truth, partly, options or Options())
        low, high = np.where(partly, ends[0], low), np.where(partly, ends[1], high)
    denied = sums(cliques.label, _denied(answer, truth), count) > 0
    free_low, free_high = answer.log_evidence_ends
    cross_low = np.maximum(free_low - high, 0.0) / np.log(2.0)
    cross_high = np.maximum(free_high - low, 0.0) / np.log(2.0)
    off = (truth.entry != UNSAID) & (answer.entry != truth.entry)
    wrong = sums(cliques.label[answer.table.sides.conversation], off, count) > 0
    k = np.flatnonzero(keyed)
    return SeatScores(
        clique=k,
        size=cliques.size[k],
        keyed=keyed[k],
        resolvable=cliques.resolvable[k],
        cross_low=np.where(denied, np.inf, cross_low)[k],
        cross_high=np.where(denied, np.inf, cross_high)[k],
        wrong=wrong[k],
    )


def _values(answer: Answer, truth: SeatTruth) -> Floats:
    """(K,) log of the true state of every clique, as the sum over all states counts it."""
    split = answer.split
    seats = answer.seats if split is None else split.seats
    place = truth.place if split is None else split.places(truth.place, truth.again)
    with np.errstate(invalid="ignore"):
        values = np.nan_to_num(seats.values(place), nan=-np.inf, neginf=-np.inf)
    if split is not None:
        values += sums(answer.seats.node, split.ways(truth.place, truth.again), len(seats))
    return sums(answer.cliques.label, values + seats.constant, len(answer.cliques))


def _denied(answer: Answer, truth: SeatTruth) -> Mask:
    """(M,) conversations with somebody absent where lists are gospel."""
    seats = answer.seats
    if answer.rate.value > 0.0:
        return np.zeros(len(seats), np.bool_)
    nowhere = truth.place == seats.layout.tracks[seats.node]
    missing = sums(seats.node, nowhere & seats.certain, len(seats)) > 0
    return np.asarray(missing & truth.whole)


def _given(
    answer: Answer, truth: SeatTruth, chosen: Mask, options: Options
) -> tuple[Floats, Floats]:
    """(K,) ends of the log of the sum over the states in which the keyed tracks are as they are,
    of the chosen cliques."""
    label = answer.cliques.label
    mine, held = chosen[label], _held(answer, truth)
    nowhere = held.layout.tracks[held.node].astype(np.int64)
    part, _ = fix(held, nowhere, mine)
    found = solve_seats(part, budget=options.budget, seed=options.seed, hands=options.hands)
    first = np.zeros(len(found.method), np.int64)
    first[found.piece[::-1]] = np.arange(len(part))[::-1]
    of_piece = label[np.flatnonzero(mine)[first]]
    low, high = (sums(of_piece, side, len(chosen)) for side in found.log_sum)
    return low, high


def _held(answer: Answer, truth: SeatTruth) -> Seats:
    """The seats with every keyed track's person on it, and nobody else: whoever must be there gets
    more than all that scores can say, and the same is taken off again."""
    split = answer.split
    seats = answer.seats if split is None else split.seats
    seat, count, layout = seats.seat.copy(), seats.count.copy(), seats.layout
    table = answer.table
    reach = float(np.abs(seats.llr * 1.0).max(initial=0.0)) * len(seats.first)
    must = ROOM + 4.0 * min(reach, 1e6)
    for side in np.flatnonzero(truth.entry != UNSAID).tolist():
        m, track = int(table.sides.conversation[side]), int(table.sides.position[side])
        own, terms = layout.seats(seat, m), layout.counts(count, m)
        meant = _rows(answer, int(truth.entry[side]))
        own[np.setdiff1d(np.arange(len(own)), meant), track] = -np.inf
        if len(meant):
            if split is None:
                own[meant[0], np.arange(own.shape[1]) != track] = -np.inf
            own[meant, track] += must
            terms -= must
    return replace(seats, seat=seat, count=count, normalised=seats.constant)


def _rows(answer: Answer, entry: int) -> Ints:
    """The rows of the seats of a conversation that are an entry of its list."""
    if entry < 0:
        return np.zeros(0, np.int64)
    if answer.split is None:
        return np.array([entry - answer.seats.person_start[answer.seats.node[entry]]])
    where, seats = answer.split.where, answer.split.seats
    both = np.array([where.own[entry], where.copy[entry]])
    return np.asarray(both - seats.person_start[seats.node[both[0]]])
