"""A posterior where some people are frequent: listed links solved, given what sums say, in turns.

Each round computes what frequent voices add to every seat (module `frequent`), solves the listed
links with that, and takes the new probabilities into the next round, until none moves. The answer
is that of the start whose mean-field value is the highest: where learning ended, all places alike,
the main direction of each person's sides (`spectral`), and one at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration
from spklink.calibration.frequent import FrequentVoices, candidate_chances
from spklink.calibration.pairs import Pairs
from spklink.calibration.spectral import spectral_start
from spklink.database.cliques import Cliques, find_cliques, held_together, number_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.database.sides import chances_of_bits, odds_of_seats, squares
from spklink.posterior.answer import Answer, answer_of_bits, certain_calls, said_about, seat
from spklink.posterior.likelihood import Model, Prior, Weight, build_model, combine_prior
from spklink.posterior.posterior import Options, Posterior, solve
from spklink.posterior.states.seats import build_seats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 50  # of one settling, at most
PLAIN = 10  # rounds before steps are halved
FEW_ROUNDS = 3  # while learning: the next step of learning goes on from there
SETTLED = 1e-5  # no probability moves further
ROUGHLY = 1e-3  # the same while learning
NEAR = 1e-3  # values closer than this are the same
QUICK = 0.2  # seconds of a round, predicted: up to that, several starts are tried


@dataclass(frozen=True)
class Settled:
    """A posterior given what frequent voices say, and that."""

    answer: Answer
    table: Conversations
    sums: Floats  # (seats,)
    chance: Floats  # (seats,)
    value: float  # of the mean-field approximation; NaN where it is not known
    moved: float  # how far the last round moved a probability
    predicted: float  # seconds

    @property
    def log_evidence(self) -> Floats:
        return np.array([self.value])

    @property
    def seconds(self) -> Floats:
        return np.array([self.predicted])

    def candidate_probabilities(self, links: Links) -> Floats:
        """(C,) of listed links."""
        return self.answer.candidate_probabilities(links)

    def sampled_probabilities(self, links: Links) -> Floats:
        """(C,) of links that were drawn to learn from."""
        return candidate_chances(self.table, links, self.chance)


@dataclass(frozen=True)
class Problem:
    """What is solved: a table, its listed pairs, frequent voices, what is known."""

    table: Conversations
    pairs: Pairs
    voices: FrequentVoices
    known: Labels | None
    rate: float
    options: Options

    @property
    def bits(self) -> bool:
        """Whether one bit a conversation says all."""
        return self.table.plain and self.rate <= 0.0


class Settling:
    """Solves a problem under one weight rule, again and again; each time from where it was."""

    def __init__(self, problem: Problem, weight: Weight) -> None:
        self.problem, self.weight = problem, weight
        self.chance = problem.voices.uniform
        self.solver = _Bits(problem, weight) if problem.bits else _States(problem, weight)

    def __call__(self, llr: Floats, curve: Calibration) -> Settled:
        """While learning: a few rounds."""
        found = self._settle(llr, curve, self.chance, FEW_ROUNDS, ROUGHLY)
        self.chance = found.chance
        return found

    def finished(self, llr: Floats, curve: Calibration) -> Settled:
        """The answer: the best of several starts, until nothing moves."""
        voices, seed = self.problem.voices, self.problem.options.seed
        starts = [self.chance]
        if self.problem.bits and voices.predicted <= QUICK:
            any_ = np.random.default_rng(seed).integers(0, 2, len(self.problem.table))
            starts.append(voices.uniform)
            starts.append(spectral_start(voices, curve, self.weight))
            starts.append(chances_of_bits(any_.astype(np.float64)))
        start = self.chance
        if len(starts) > 1:
            tried = [self._settle(llr, curve, one, PLAIN, ROUGHLY) for one in starts]
            # The first where they tie.
            start = max(tried, key=lambda one: round(one.value / NEAR)).chance
        best = self._settle(llr, curve, start, ROUNDS, SETTLED)
        return replace(best, answer=self.solver.whole(llr, best.answer, best.sums))

    def _settle(
        self, llr: Floats, curve: Calibration, start: Floats, rounds: int, settled: float
    ) -> Settled:
        voices, solver = self.problem.voices, self.solver.of(llr)
        chance, moved, k = start, np.inf, 0
        while moved > settled and k < rounds:
            sums = voices.gains(curve, self.weight, chance)
            answer = solver(sums)
            new = seat_chances(answer)
            moved, k = float(np.abs(new - chance).max(initial=0.0)), k + 1
            chance = new if k <= PLAIN else (new + chance) / 2.0  # lest it goes to and fro
        value = self.solver.value(answer, sums, chance)
        table = self.problem.table
        return Settled(answer, table, sums, chance, value, moved, voices.predicted)


def seat_chances(answer: Answer) -> Floats:
    """(seats,) how probable it is that each listed person is on each track."""
    if answer.binary:
        return chances_of_bits(answer.bits.exchanged)
    seats = answer.seats
    tracks = seats.layout.tracks[seats.node]
    place = np.ones(int(seats.place_start[-1]), np.bool_)
    place[seats.place_start[1:] - 1] = False
    assert int(tracks.sum()) == int(place.sum())
    return np.asarray(answer.beliefs.guess[: len(place)][place], np.float64)


class _Bits:
    """One bit a conversation."""

    def __init__(self, problem: Problem, weight: Weight) -> None:
        self.problem, self.weight = problem, weight
        self.prior = combine_prior(problem.table, problem.known)
        self.pieces = listed_pieces(problem.table, problem.pairs.links)

    def of(self, llr: Floats) -> Callable[[Floats], Answer]:
        problem = self.problem
        model = build_model(
            *(problem.table, self.pieces, problem.pairs.links, llr),
            weight=self.weight,
            prior=self.prior,
        )

        def answered(sums: Floats) -> Answer:
            found = solve(self.with_sums(model, sums), options=problem.options)
            return self._answer(self.pieces, found, llr, replace(problem.table, sums=sums))

        return answered

    def whole(self, llr: Floats, found: Answer, sums: Floats) -> Answer:
        """The same with cliques as they are, which frequent people hold together too."""
        problem = self.problem
        table = replace(problem.table, sums=sums)
        prior = combine_prior(table, problem.known)
        cliques = find_cliques(table, prior.clamped >= 0)
        model = build_model(
            *(table, cliques, problem.pairs.links, llr), weight=self.weight, prior=prior
        )
        return self._answer(cliques, solve(model, options=problem.options), llr, table)

    def _answer(
        self, cliques: Cliques, found: Posterior, llr: Floats, table: Conversations
    ) -> Answer:
        links, said = self.problem.pairs.links, said_about(table, self.problem.known)
        seats = cache(partial(build_seats, table, links, llr, weight=self.weight, said=said))
        return answer_of_bits(table, cliques, found, seats)

    def with_sums(self, model: Model, sums: Floats) -> Model:
        odds, clamped = self.prior.log_odds, self.prior.clamped
        odds = np.where(clamped < 0, odds + odds_of_seats(sums), odds)
        return replace(model, prior=Prior(odds, clamped))

    def value(self, answer: Answer, sums: Floats, chance: Floats) -> float:
        """That of the mean-field approximation: what each pair of a frequent person says is in the
        gains of both its ends."""
        open_ = self.prior.clamped < 0
        listed = squares(sums)[:, 0, 0] + squares(sums)[:, 1, 1]
        half = 0.5 * (squares(sums) * squares(chance)).sum(axis=(1, 2))
        with_, without = answer.bits.model.prior.log_odds, self.prior.log_odds
        norm = np.logaddexp(0.0, with_) - np.logaddexp(0.0, without)
        each = np.where(open_, norm + listed - half, half)
        return float(answer.log_evidence.sum() + each.sum())


class _States:
    """Any lists and tracks."""

    def __init__(self, problem: Problem, weight: Weight) -> None:
        self.problem, self.weight = problem, weight
        table, known = problem.table, problem.known
        self.cliques = find_cliques(table, certain_calls(table, known))
        self.said = said_about(table, known)
        self.best: Ints | None = None

    def of(self, llr: Floats) -> Callable[[Floats], Answer]:
        problem = self.problem

        def solved(sums: Floats) -> Answer:
            found = seat(
                *(replace(problem.table, sums=sums), self.cliques, problem.pairs.links, llr),
                weight=self.weight,
                rate=problem.rate,
                said=self.said,
                start=self.best,
                options=problem.options.quick(),
                pairs=True,
            )
            self.best = found.beliefs.place
            return found

        return solved

    def whole(self, llr: Floats, found: Answer, sums: Floats) -> Answer:
        return found

    def value(self, answer: Answer, sums: Floats, chance: Floats) -> float:
        return float("nan")


def listed_pieces(table: Conversations, links: Links) -> Cliques:
    """Conversations that listed links hold together."""
    label = held_together(links.first, links.second, len(table))
    number = int(label.max(initial=-1)) + 1
    return number_cliques(label, np.zeros(number, np.int64), np.ones(number, np.bool_))
