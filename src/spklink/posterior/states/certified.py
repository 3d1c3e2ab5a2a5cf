"""Intervals that provably contain the truth, for databases too large to solve exactly.

After bounds on the odds of every move from the best state found (`moves`), the conversations that
matter (bound above some level) are solved exactly, in pieces, with all others as in that state.
Given that nobody moved at the far ends of its links, what happens inside a piece is exact; somebody
did with a probability of at most epsilon, the sum of the bounds; so

    P(event) is in [q (1 - epsilon), q (1 - epsilon) + epsilon],   q = P(event | none moved).

All levels are intersected. A conversation that is not solved with others is a piece of its own.
Where the state has a probability above one half it is proved to be the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.beliefs import CERTIFIED
from spklink.posterior.states.exactly import ExactPart
from spklink.posterior.states.marginals import Events, Marginals, conditionals
from spklink.posterior.states.moves import Moves, bound_moves, values_within
from spklink.posterior.states.seats import Places, Seats, fix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
NAME = "certified"
LEVELS = (0.1, 0.03, 0.01, 0.003, 0.001)  # bound on a move above which conversations are solved
ENOUGH = 1e-4  # width that needs no finer level
TINY = 1e-10  # relative room for rounding
USELESS = 0.5  # width that says nothing
UNRESOLVED = 0.01  # share of the conversations that may stay so wide


Exact = Callable[[Seats], ExactPart]


def certified(seats: Seats, place: Places, exact: Exact) -> Marginals | None:
    """Certified figures, or None: no certificate. `exact` solves what pieces it can."""
    bounding = _Bounding(seats, place, exact)
    found = bounding.run()
    width = np.zeros(len(seats))
    np.maximum.at(width, bounding.events.node, found.high - found.low)
    return None if (width > USELESS).sum() > UNRESOLVED * len(seats) else found


class _Bounding:
    """Intervals about one database while they are being narrowed."""

    def __init__(self, seats: Seats, place: Places, exact: Exact) -> None:
        self.seats, self.place, self.exact = seats, place, exact
        self.events = Events(seats)
        self.at = self.events.at(place)
        self.moves: Moves = bound_moves(seats, place)
        self.value = seats.value(place)
        self.idle = self.moves.view.now - values_within(seats, self.moves.view.held, place)
        self.alone, _ = conditionals(seats, place)
        count = self.events.count
        self.found = Marginals(
            method=NAME,
            certainty=CERTIFIED,
            place=place,
            proved=False,
            guess=self.alone.copy(),
            low=np.zeros(count),
            high=np.ones(count),
            log_sum=(-np.inf, np.inf),
        )

    def run(self) -> Marginals:
        self._single()
        done: Mask | None = None
        log_sum = self._log_sum(np.zeros(len(self.seats), np.bool_), 0.0)
        for level in LEVELS:
            if (self.found.high - self.found.low).max(initial=0.0) <= ENOUGH:
                break
            free = self._free(level)
            if not free.any() or (done is not None and np.array_equal(free, done)):
                continue
            done = free
            log_sum = _both(log_sum, self._refine(free))
            self._single()
        proved = self.value - log_sum[1] > np.log(0.5) + TINY
        return replace(self.found, log_sum=log_sum, proved=bool(proved))

    def _moved(self) -> Floats:
        """(entries,) bounds on the probability that each person is not at his place."""
        return np.minimum(self.moves.chance, 1.0 - self.found.low[self.at])

    def _free(self, level: float) -> Mask:
        free = np.zeros(len(self.seats), np.bool_)
        unclear = (self._moved() > level) & self.moves.linked
        free[self.seats.node[unclear]] = True
        return free

    def _single(self) -> None:
        """Every conversation by itself, all others at their places."""
        slots, moved = self.seats.slots, self._moved()
        entry = np.repeat(np.arange(len(self.seats.node)), np.diff(slots.start))
        around = sums(self.seats.node[entry], moved[slots.other], len(self.seats))
        node = self.events.node
        low, high = _around(self.alone, around[node], TINY + 4.0 * self.moves.error[node])
        self.found.narrow(np.arange(self.events.count), low, high, self.found.guess)
        away = np.flatnonzero(self.moves.chance < 1.0)
        low = 1.0 - self.moves.chance[away] * (1.0 + TINY) - 1e-15
        events = self.at[away]
        self.found.narrow(
            events, np.maximum(low, 0.0), np.ones(len(away)), self.found.guess[events]
        )

    def _refine(self, free: Mask) -> tuple[float, float]:
        """Narrow the intervals of free conversations by exact solutions with all others at their
        places; returns the interval of the log of the sum that comes of it."""
        seats, moved = self.seats, self._moved()
        part, entries = fix(seats, self.place, free)
        exact = self.exact(part)
        nodes = np.flatnonzero(free)
        piece = np.full(len(seats), -1, np.int64)
        piece[nodes] = np.where(exact.solved[exact.piece], exact.piece, -1)
        epsilon = self._boundary(piece, moved, len(exact.solved))
        slop = TINY + 4.0 * sums(exact.piece, self.moves.error[nodes], len(exact.solved))
        inside = Events(part)
        of_event = exact.piece[inside.node]
        low, high = _around(exact.guess, epsilon[of_event], slop[of_event])
        outer = self._outer(inside, entries, nodes)
        kept = np.flatnonzero(exact.solved[of_event])
        self.found.narrow(outer[kept], low[kept], high[kept], exact.guess[kept])
        held = sums(exact.piece, part.values(self.place[entries]), len(exact.solved))
        total = float((exact.log_sum - held)[exact.solved].sum())
        return self._log_sum(piece >= 0, total)

    def _outer(self, inside: Events, entries: Ints, nodes: Ints) -> Ints:
        """(events inside,) the same events among all."""
        events, part = self.events, inside.seats
        wide = np.diff(part.place_start)
        places = np.repeat(self.seats.place_start[entries] - part.place_start[:-1], wide)
        tracks = part.layout.tracks
        sides = np.repeat(events.track_start[nodes] - inside.track_start[:-1], tracks)
        return np.concatenate(
            [
                np.arange(inside.places) + places,
                np.arange(inside.sides) + sides + events.places,
                nodes + events.places + events.sides,
            ]
        )

    def _boundary(self, piece: Ints, moved: Floats, count: int) -> Floats:
        """(pieces,) bound on the probability that somebody moved at a link that leaves it."""
        slots, node = self.seats.slots, self.seats.node
        entry = np.repeat(np.arange(len(node)), np.diff(slots.start))
        near, far = piece[node[entry]], piece[node[slots.other]]
        out = np.flatnonzero((near >= 0) & (far != near))
        key = np.unique(near[out] * len(node) + slots.other[out])
        return np.minimum(
            sums(key // max(len(node), 1), moved[key % max(len(node), 1)], count), 1.0
        )

    def _log_sum(self, solved: Mask, inside: float) -> tuple[float, float]:
        """Interval of the log of the sum over all states.

        Those solved are exact while all others are as in the state; freeing one conversation after
        the other multiplies the sum at most by what it is worth (`moves`), and at least by 1.
        People without links are free in any case.
        """
        low = self.value + inside + float(self.idle[~solved].sum())
        room = TINY * (len(self.seats) + abs(self.value)) + float(self.moves.error.sum())
        return low - room, low + self.moves.raised(solved) + room


def _around(q: Floats, epsilon: Floats, slop: Floats) -> tuple[Floats, Floats]:
    """Interval of an event of probability q where a premise fails with at most epsilon."""
    fails = np.minimum(epsilon * (1.0 + TINY), 1.0)
    inner = q * (1.0 - fails)
    low = np.maximum(inner * (1.0 - slop) - 1e-15, 0.0)
    return low, np.minimum(inner * (1.0 + slop) + fails + 1e-15, 1.0)


def _both(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return max(one[0], other[0]), min(one[1], other[1])
