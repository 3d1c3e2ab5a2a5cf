"""How far figures may be off where frequent voices were summed: a slack that is proved.

Sums take the other conversations of a person as they are on average. All but certainly no more than
k of them have him elsewhere than in the best configuration (module `counting`), and what k of them
can change is bounded (`spread`, `norms`). That, and how far the sums in use are from those of the
best configuration, is the slack of a conversation (module `posterior.summed`).

This holds of one bit a conversation, and of the answer in full: there the places of a person are
the tracks and nowhere, and the odds of another place are summed over all states of the conversation
that have him there (`place_odds`).

People with few conversations come first: of as many as the budget allows every two conversations
are looked at, which takes time that grows with the square of them; of the others lengths of vectors
have to do. Costs are counted, whatever the number of threads.

Conventions: x_i = 1 as everywhere where conversation i is exchanged; a flip is a conversation that
is otherwise than in the best configuration; G_ij is what two flips gain beyond the two by
themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums as added
from spklink.calibration.counting import most_flips
from spklink.calibration.curves import Calibration
from spklink.calibration.frequent import FrequentVoices, side_line
from spklink.calibration.norms import by_norms, cost_by_norms
from spklink.calibration.place_odds import place_odds
from spklink.calibration.spread import WHOLE, Spread, Voice, by_pairs, cost_by_pairs
from spklink.database.sides import odds_of_seats, track_of
from spklink.posterior.answer import Answer
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Posterior
from spklink.posterior.summed import Slack, unknown_slack
from spklink.recognizers.sums import SideLine
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CLOSED = 0.5  # share of a person's conversations: where more may be changed, nothing is proved


class Before(Protocol):
    """Spreads that were made before: they depend on a person's conversations and where he is in
    them. `place` is that of each entry of frequent people, `nowhere` whether that may be no
    track."""

    def found(self, voices: FrequentVoices, place: Ints, *, nowhere: bool) -> dict[int, Spread]:
        """By the number of the person."""
        ...

    def keep(
        self,
        voices: FrequentVoices,
        place: Ints,
        spreads: list[Spread],
        *,
        nowhere: bool,
        new: bool,
    ) -> None:
        """Those of everybody; `new` if some were not found."""
        ...


class InFull:
    """Spreads of the answer in full hold for bits too, of people who are in the same places there:
    to be nowhere is but one more change. (Those from lengths of vectors would be wider than need
    be, and are soon made.) `before` knows those of earlier runs."""

    def __init__(self, before: Before | None) -> None:
        self.before = before
        self.made: tuple[Ints, list[Spread]] | None = None

    def found(self, voices: FrequentVoices, place: Ints, *, nowhere: bool) -> dict[int, Spread]:
        if not nowhere and self.made is not None:
            there, spreads = self.made
            same = np.logical_and.reduceat(place == there, voices.frequent.start[:-1])
            some = np.flatnonzero(same).tolist()
            return {f: spreads[f] for f in some if spreads[f].largest is not None}
        return {} if self.before is None else self.before.found(voices, place, nowhere=nowhere)

    def keep(
        self,
        voices: FrequentVoices,
        place: Ints,
        spreads: list[Spread],
        *,
        nowhere: bool,
        new: bool,
    ) -> None:
        if nowhere:
            self.made = place, spreads
        if self.before is not None and (nowhere or self.made is None):
            self.before.keep(voices, place, spreads, nowhere=nowhere, new=new)


def certify(
    voices: FrequentVoices,
    curve: Calibration,
    weight: Weight,
    answer: Answer,
    piece: Ints,
    seconds: float,
    before: Before | None = None,
) -> Slack:
    """The slack of a binary answer; `piece` (M,) are conversations that listed links hold
    together. `before` knows spreads that an earlier run made."""
    posterior = answer.bits
    table, best = voices.table, posterior.best
    calls = _calls(voices)
    position = table.listing.position_of(voices.frequent.entry).astype(np.int8)
    place = track_of(position, best[calls]).astype(np.int64)
    spreads = _spreads(voices, curve, weight, place, seconds, before, nowhere=False)
    if spreads is None:
        return nothing_proved(voices)
    at_best = _at_best(voices, spreads)
    gap = odds_of_seats(at_best) - odds_of_seats(table.sums)
    log_odds = _flip_odds(posterior, gap)[calls]
    every = np.concatenate([one.row for one in spreads])
    # Of two frequent people in one conversation each sees the other's at its worst.
    log_odds += added(calls, every, len(table))[calls] - every
    found = _slack(voices, spreads, log_odds[None], np.abs(gap), piece)
    known = posterior.bits >= 0
    return Slack(np.where(known, 0.0, found.shift), np.where(known, 0.0, found.tail), found.most)


def certify_seats(
    voices: FrequentVoices,
    curve: Calibration,
    weight: Weight,
    answer: Answer,
    seconds: float,
    before: Before | None = None,
) -> Slack:
    """The slack of the answer in full."""
    table, place = voices.table, answer.beliefs.place
    if answer.split is not None:  # people may be on two tracks, which is not proved
        return nothing_proved(voices)
    entries = voices.frequent.entry
    spreads = _spreads(voices, curve, weight, place[entries], seconds, before, nowhere=True)
    if spreads is None:
        return nothing_proved(voices)
    gap = _at_best(voices, spreads) - table.sums
    alone = np.zeros(len(table.people))
    alone[entries] = np.concatenate([one.row for one in spreads])
    log_odds = place_odds(answer.seats, place, gap, alone, entries)
    moved = added(table.listing.conversation, _ranges(voices, gap), len(table))
    return _slack(voices, spreads, log_odds, moved, answer.beliefs.piece, closed=CLOSED)


def nothing_proved(voices: FrequentVoices) -> Slack:
    """Of conversations of frequent people."""
    assert voices.frequent.most is not None
    touched = np.bincount(_calls(voices), minlength=len(voices.table)) > 0
    return unknown_slack(touched, voices.frequent.most)


def _slack(
    voices: FrequentVoices,
    spreads: list[Spread],
    log_odds: Floats,
    moved: Floats,
    piece: Ints,
    *,
    closed: float = 1.0,
) -> Slack:
    """What flips can change, beside what has `moved` (M,) between the sums in use and those of the
    best configuration; from the (kinds, entries) largest odds of each, in the order of the voices.
    Where more than a part of a person's conversations may be changed nothing is proved."""
    calls, people = _calls(voices), range(len(spreads))

    def count(f: int) -> tuple[int, float]:
        odds = np.ascontiguousarray(log_odds[:, _own(voices, f)])
        return most_flips(odds, *spreads[f].ways(len(odds)))

    others = np.bincount(piece)[piece] - 1
    shift, tail = moved.copy(), np.zeros(len(voices.table))
    for f, (most, beyond) in enumerate(in_order(count, people, voices.threads)):
        own = calls[_own(voices, f)]
        shift[own] += spreads[f].of(most) + others[own] * spreads[f].of(1)
        tail[own] += beyond
        if most > closed * len(own):  # an interval that says nothing would only look like a proof
            shift[own] = np.inf
    assert voices.frequent.most is not None
    return Slack(shift, tail, voices.frequent.most)


def _spreads(
    voices: FrequentVoices,
    curve: Calibration,
    weight: Weight,
    place: Ints,
    seconds: float,
    before: Before | None,
    *,
    nowhere: bool,
) -> list[Spread] | None:
    """What flips of every frequent person can do; place (entries of frequent people,) is where
    they are at best. None where that would take too long."""
    line = side_line(curve, voices.seconds, len(voices.usable))
    by_pairs_too = in_full(voices, seconds)
    if by_pairs_too is None:
        return None

    def spread(f: int) -> Spread:
        voice = _voice(voices, f, line, weight, place[_own(voices, f)], nowhere)
        found = _spread(voice, full=bool(by_pairs_too[f]))
        return replace(found, at_best=voices.one(f, line, weight, _everywhere(voice)))

    kept = {} if before is None else before.found(voices, place, nowhere=nowhere)
    left = [f for f in range(len(voices.frequent)) if f not in kept]
    with one_blas_thread():
        kept |= zip(left, in_order(spread, left, voices.threads), strict=True)
    found = [kept[f] for f in range(len(voices.frequent))]
    if before is not None:
        before.keep(voices, place, found, nowhere=nowhere, new=bool(left))
    return found


def _spread(voice: Voice, *, full: bool) -> Spread:
    """From all pairs where that is affordable, else from lengths."""
    if full and len(voice) <= WHOLE:
        return by_pairs(voice)
    short = by_norms(voice)
    if not full:
        return short
    found = by_pairs(voice)
    return replace(found, together=short.together)


def in_full(voices: FrequentVoices, seconds: float) -> NDArray[np.bool_] | None:
    """(F,) of whom all pairs of conversations are looked at; None where even lengths of vectors
    take too long."""
    calls, width = voices.frequent.calls, voices.width
    sides = np.array([len(voices.places(f)[1]) for f in range(len(calls))])
    least = np.array([cost_by_norms(int(n), width) for n in calls])
    pairs = np.array([cost_by_pairs(int(n), width) for n in sides]) + np.where(
        calls > WHOLE, least, 0.0
    )
    least = np.minimum(least, pairs)
    if least.sum() > seconds:
        return None
    order = np.argsort(pairs, kind="stable")
    # So many with all pairs, and the rest with lengths.
    total = np.cumsum(pairs[order]) + least.sum() - np.cumsum(least[order])
    full = np.zeros(len(calls), np.bool_)
    full[order] = total <= seconds
    return np.asarray(full | (pairs <= least))


def _voice(
    voices: FrequentVoices, f: int, line: SideLine, weight: Weight, best: Ints, nowhere: bool
) -> Voice:
    _, sides, start = voices.places(f)
    person = int(voices.table.people[voices.frequent.of(f)[0]])
    each = float(weight.of(np.array([len(best)], np.int32))[0])
    return Voice(
        comparisons=voices.comparisons(person),
        line=line,
        sides=sides,
        start=start,
        usable=voices.usable[sides],
        best=best,
        nowhere=nowhere,
        weight=each,
    )


def _everywhere(voice: Voice) -> Floats:
    """(sides,) 1 where somebody is at best, else 0."""
    tracks = np.diff(voice.start)
    track = np.arange(len(voice.sides)) - np.repeat(voice.start[:-1], tracks)
    return np.asarray(track == np.repeat(voice.best, tracks), np.float64)


def _at_best(voices: FrequentVoices, spreads: list[Spread]) -> Floats:
    """(seats,) what frequent voices add to every seat in the best configuration."""
    found = np.zeros(len(voices.uniform))
    for seats, one in zip(voices.seats, spreads, strict=True):
        found[seats] = one.at_best
    return found


def _calls(voices: FrequentVoices) -> Ints:
    return voices.table.listing.conversation_of(voices.frequent.entry)


def _own(voices: FrequentVoices, f: int) -> slice:
    return slice(int(voices.frequent.start[f]), int(voices.frequent.start[f + 1]))


def _ranges(voices: FrequentVoices, gap: Floats) -> Floats:
    """(entries,) between the largest and the smallest of what is added to the places of each: 0 to
    nowhere."""
    first = voices.first_seat
    high, low = np.maximum.reduceat(gap, first), np.minimum.reduceat(gap, first)
    return np.asarray(np.maximum(high, 0.0) - np.minimum(low, 0.0))


def _flip_odds(posterior: Posterior, gap: Floats) -> Floats:
    """(M,) log of the largest odds of a flip, all other conversations of frequent people being at
    their best and those that listed links join wherever that speaks for it. `gap` leads from the
    sums in use to those of the best configuration."""
    model, x = posterior.model, posterior.best.astype(np.float64)
    i, j, size = model.first, model.second, len(x)
    sign = 1.0 - 2.0 * x  # a flip raises x where it is 0
    odds = model.field + model.prior.log_odds + gap
    odds += added(i, model.coupling * x[j], size) + added(j, model.coupling * x[i], size)
    gain = np.maximum(sign[i] * sign[j] * model.coupling, 0.0)
    found = sign * odds + added(i, gain, size) + added(j, gain, size)
    return np.where(posterior.bits >= 0, -np.inf, found)
