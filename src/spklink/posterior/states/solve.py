"""Which method answers for which conversations.

Pieces that are small enough, or that an exact method can afford, are solved exactly; of the others
each is certified where that can be done, and else estimated. Costs are counted, never measured, so
the same database and budget always take the same path; the reason travels with the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.hands import ALONE, Hands
from spklink.posterior.inference.beliefs import CERTIFIED, ESTIMATED, EXACT
from spklink.posterior.inference.enumeration import WIDEST, enumerate_one
from spklink.posterior.inference.plan import WIDE, Budget, solve_exact
from spklink.posterior.inference.simplify import Solve
from spklink.posterior.states.certified import certified
from spklink.posterior.states.exactly import ExactPart, solve_pieces
from spklink.posterior.states.marginals import Events, Marginals, conditionals
from spklink.posterior.states.mirror import both_images, held, is_mirrored
from spklink.posterior.states.optimum import climbed, find_best
from spklink.posterior.states.sampling import sample
from spklink.posterior.states.seats import Places, Seats, fix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GLANCE = "glance"  # never in results
Tell = Callable[[int, int], None]
A_CALL = 0.01  # seconds of a core a conversation of such a piece, roughly
MANY = 3000  # conversations of a piece from which on work is spared
FEW = 0.05  # share of them whose certified intervals may be wide
MODEST = 16.0  # bits of the parts that are then solved exactly


@dataclass(frozen=True)
class SeatBeliefs:
    """The posterior of a whole database, its pieces side by side."""

    place: Places  # (entries,) the best state found
    guess: Floats  # (events,)
    low: Floats
    high: Floats
    piece: Ints  # (n,)
    log_sum: Floats  # (2, pieces)
    method: list[str]  # (pieces,)
    certainty: list[str]
    reason: list[str]
    proved: NDArray[np.bool_]  # (pieces,)
    both: Floats | None = None  # where asked for: of both ends of every link, track by track


def glance_at(seats: Seats, start: Places | None, budget: Budget, seed: int) -> SeatBeliefs:
    """A first look, for what is looked at many times: pieces that cannot be solved exactly by each
    conversation given that all others are in the best state found from `start`."""
    exact = solve_pieces(seats, _affordable(budget))
    draft = _draft(seats, exact)
    for k in np.flatnonzero(~exact.solved):
        part, nodes, entries = _piece(seats, exact.piece == k)
        if start is None:
            place = find_best(part, seed=seed + int(k))
        else:
            place = climbed(part, start[entries])
        guess, _ = conditionals(part, place)
        unknown = (-np.inf, np.inf)
        found = Marginals(GLANCE, ESTIMATED, place, False, guess, guess, guess, unknown)
        _store(draft, seats, nodes, entries, int(k), found)
    return draft


def solve_seats(
    seats: Seats,
    *,
    pairs: bool = False,
    start: Places | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    near: bool = False,
    hands: Hands = ALONE,
    tell: Tell | None = None,
) -> SeatBeliefs:
    """Beliefs about all conversations; `start` may be a good guess of where people are. `near`: the
    best state is close to it, so it is looked for there first. Pieces that no exact method can
    afford are divided among the hands."""
    asked = budget or Budget()
    exact = solve_pieces(seats, _affordable(asked), pairs=pairs)
    draft = _draft(seats, exact)
    left = np.flatnonzero(~exact.solved).tolist()
    pieces = [_piece(seats, exact.piece == k) for k in left]
    jobs = [
        _Job(part, None if start is None else start[entries], asked, seed + k, near)
        for k, (part, _, entries) in zip(left, pieces, strict=True)
    ]
    worth = hands.worth(A_CALL * sum(len(job.part) for job in jobs) if len(jobs) > 1 else 0.0)
    for done, found in enumerate(worth.each(_solved, jobs)):
        _, nodes, entries = pieces[done]
        _store(draft, seats, nodes, entries, left[done], found)
        if tell is not None:
            tell(done + 1, len(left))
    return replace(draft, both=_both(seats, draft, exact)) if pairs else draft


@dataclass(frozen=True)
class _Job:
    """A piece that somebody is to solve."""

    part: Seats
    start: Places | None
    budget: Budget
    seed: int
    near: bool


def _solved(job: _Job) -> Marginals:
    return solve_piece(job.part, job.start, job.budget, job.seed, near=job.near)


def _both(seats: Seats, found: SeatBeliefs, exact: ExactPart) -> Floats:
    """Joint probabilities of the two ends of every link; where they were not solved exactly, as if
    they were independent: there the posterior is peaked, or nothing better is known."""
    tracks, node = seats.layout.tracks, seats.node
    one, two = tracks[node[seats.first]], tracks[node[seats.second]]
    rows = np.repeat(ranges(seats.place_start[seats.first], one), np.repeat(two, one))
    columns = ranges(np.repeat(seats.place_start[seats.second], one), np.repeat(two, one))
    alone = found.guess[rows] * found.guess[columns]
    if exact.both is None:
        return alone
    solved = np.repeat(exact.solved[exact.piece[node[seats.first]]], one * two)
    return np.where(solved, exact.both, alone)


def solve_piece(
    seats: Seats, start: Places | None, budget: Budget, seed: int, *, near: bool = False
) -> Marginals:
    """One piece that no exact method can afford."""
    if near and start is not None:
        close = _bounded(seats, climbed(seats, start))
        if close is not None and close.proved and _narrow(seats, close):
            return close
    place = find_best(seats, start, seed=seed)
    found = _bounded(seats, place)
    if found is not None and _narrow(seats, found):
        return found
    estimate = sample(seats, place, seconds=budget.seconds / 2.0, seed=seed)
    if found is None:
        return estimate
    low, high = np.maximum(found.low, 0.0), np.minimum(found.high, 1.0)
    guess = np.clip(estimate.guess, low, high)
    return Marginals(
        *(found.method, CERTIFIED, place, found.proved, guess, low, high, found.log_sum),
        reason="certified intervals are wide",
    )


def _narrow(seats: Seats, found: Marginals) -> bool:
    """Whether sampling could not better certified intervals: all are narrow, or, among more
    conversations than can be sampled well, nearly all."""
    width = np.zeros(len(seats))
    np.maximum.at(width, Events(seats).node, found.high - found.low)
    wide = int((width > WIDE).sum())
    return wide == 0 or (len(seats) > MANY and wide <= FEW * len(seats))


def _bounded(seats: Seats, place: Places) -> Marginals | None:
    """Certified figures, of one of two images where there are two."""

    def exact(part: Seats) -> ExactPart:
        return solve_pieces(part, _enumerable(WIDEST if few else MODEST))

    few = len(seats) <= MANY
    if is_mirrored(seats):
        one = certified(held(seats, place), place, exact)
        return None if one is None else both_images(seats, one)
    return certified(seats, place, exact)


def _affordable(budget: Budget) -> Solve:
    return lambda network: solve_exact(network, budget)


def _enumerable(most: float) -> Solve:
    """Within a certificate there may be thousands of parts: none may cost much."""
    return lambda network: enumerate_one(network) if network.doublings <= most else None


def _piece(seats: Seats, mine: NDArray[np.bool_]) -> tuple[Seats, Ints, Ints]:
    """Some conversations by themselves: nothing links them to others."""
    nowhere = seats.layout.tracks[seats.node].astype(np.int64)
    part, entries = fix(seats, nowhere, mine)
    return part, np.flatnonzero(mine), entries


def _draft(seats: Seats, exact: ExactPart) -> SeatBeliefs:
    """What is solved exactly; the rest is to be filled in."""
    values = np.bincount(exact.piece, seats.constant, len(exact.solved))
    log_sum = np.stack([exact.log_sum + values] * 2)
    return SeatBeliefs(
        place=exact.place.copy(),
        guess=exact.guess.copy(),
        low=exact.guess.copy(),
        high=exact.guess.copy(),
        piece=exact.piece,
        log_sum=log_sum,
        method=list(exact.method),
        certainty=[EXACT] * len(exact.solved),
        reason=["small enough" if solved else "" for solved in exact.solved],
        proved=exact.solved.copy(),
    )


def _store(
    draft: SeatBeliefs, seats: Seats, nodes: Ints, entries: Ints, k: int, found: Marginals
) -> None:
    mine = np.zeros(len(seats), np.bool_)
    mine[nodes] = True
    events = np.flatnonzero(mine[Events(seats).node])
    draft.place[entries] = found.place
    draft.guess[events], draft.low[events], draft.high[events] = found.guess, found.low, found.high
    draft.log_sum[:, k] = found.log_sum
    draft.method[k], draft.certainty[k], draft.reason[k] = (
        found.method,
        found.certainty,
        found.reason,
    )
    draft.proved[k] = found.proved
