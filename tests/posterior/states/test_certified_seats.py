"""Certified figures about databases that scores tell, against all of their states."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from peaked_seats import every_state, peaked_case, states_of
from spklink.posterior.states import moves
from spklink.posterior.states.certified import _Bounding
from spklink.posterior.states.exactly import solve_pieces
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.moves import bound_moves
from spklink.posterior.states.optimum import find_best
from spklink.posterior.states.seats import build_seats
from spklink.worlds.simulate import simulate


def start_of(seats, rng):
    """Mostly the best state, but bounds hold from any."""
    if rng.random() < 0.7:
        return find_best(seats)
    return np.concatenate([own[rng.integers(len(own))] for own in states_of(seats)])


def check(seed):
    """Whether something was bounded at all."""
    rng = np.random.default_rng(seed)
    table, links, llr, rate = peaked_case(seed)
    seats = build_seats(table, links, llr, rate=rate)
    plain = every_state(seats)
    place = start_of(seats, rng).astype(np.int64)
    if plain is None or not np.isfinite(seats.value(place)):
        return False
    truth, log_sum, best = plain
    bounding = _Bounding(seats, place, lambda part: solve_pieces(part, lambda _: None))
    moved = 1.0 - truth[Events(seats).at(place)]
    found = bounding.moves
    assert (found.chance * (1.0 + 1e-9) + 1e-13 >= moved).all()
    low, high = bounding._log_sum(np.zeros(len(seats), np.bool_), 0.0)
    assert low - 1e-9 <= log_sum <= high + 1e-9
    figures = bounding.run()
    assert (figures.low <= truth + 1e-12).all()
    assert (figures.high >= truth - 1e-12).all()
    assert figures.log_sum[0] - 1e-9 <= log_sum <= figures.log_sum[1] + 1e-9
    assert not figures.proved or seats.value(place) >= best - 1e-9
    return bool((found.chance[found.linked] < 0.5).any())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_moves_are_bounded(seed):
    check(seed)


def test_many_of_them_are_not_given_up():
    """So that the tests above say something: a third when this was written."""
    assert sum(check(seed) for seed in range(60)) >= 15


def test_whatever_those_given_up_do(monkeypatch):
    monkeypatch.setattr(moves, "HOPELESS", 0.01)
    for seed in range(60):
        check(seed)


def test_networks_of_weak_scores():
    lost, chance = [], []
    for seed in (1, 2, 3):
        made = simulate(shape="network", conversations=300, eer=7.0, seed=seed)
        seats = build_seats(made.conversations, made.links, made.llr, rate=0.01)
        truth = np.stack([made.truth, 1 - made.truth], axis=1).ravel()
        found = bound_moves(seats, find_best(seats, truth))
        lost.append(found.view.given_up.mean())
        chance.append(np.median(found.chance[found.linked]))
    assert np.mean(lost) < 0.05
    assert max(chance) < 0.01
