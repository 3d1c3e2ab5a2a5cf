"""Databases of states, against all of their states written down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_seats import solve
from random_seats import random_case
from spklink.posterior.inference.enumeration import enumerate_one
from spklink.posterior.states.certified import certified
from spklink.posterior.states.exactly import solve_pieces
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.optimum import find_best
from spklink.posterior.states.seats import build_seats

RATES = (0.0, 0.01, 0.2)


def expected_events(calls, table, plain):
    """(events,) in the order of the package."""
    found = []
    for i, call in enumerate(calls):
        for person in call["people"]:
            found += [plain["place"].get((i, person, k), 0.0) for k in range(call["tracks"])]
            found.append(plain["place"].get((i, person, None), 0.0))
    for i, call in enumerate(calls):
        found += [plain["stranger"][i, k] for k in range(call["tracks"])]
    return np.array(found + [plain["right"][i] for i in range(len(calls))])


def seed_and_rate():
    return st.tuples(st.integers(0, 2**32), st.sampled_from(RATES), st.sampled_from([0.5, 3.0]))


@settings(max_examples=60, deadline=None)
@given(seed_and_rate())
def test_exact_pieces(case):
    seed, rate, size = case
    calls, table, links, llr, score = random_case(seed, 3, size=size)
    plain = solve(calls, score, rate)
    seats = build_seats(table, links, llr, rate=rate)
    found = solve_pieces(seats, enumerate_one)
    assert found.solved.all()
    np.testing.assert_allclose(
        found.guess, expected_events(calls, table, plain), rtol=1e-9, atol=1e-9
    )
    whole = float(found.log_sum.sum() + seats.constant.sum())
    assert whole == pytest.approx(plain["log_sum"], abs=1e-9)
    # The best of the linked people first: nothing is better, but another state may be as good.
    assert seats.value(found.place) <= plain["best"] + 1e-9


@settings(max_examples=60, deadline=None)
@given(seed_and_rate())
def test_certificates_contain_the_truth(case):
    seed, rate, size = case
    calls, table, links, llr, score = random_case(seed, 3, size=size)
    plain = solve(calls, score, rate)
    seats = build_seats(table, links, llr, rate=rate)
    place = find_best(seats, seed=seed % 7)
    found = certified(seats, place, lambda part: solve_pieces(part, lambda _: None))
    if found is None:
        return
    truth = expected_events(calls, table, plain)
    assert (found.low <= truth + 1e-12).all()
    assert (found.high >= truth - 1e-12).all()
    assert found.log_sum[0] <= plain["log_sum"] + 1e-9
    assert found.log_sum[1] >= plain["log_sum"] - 1e-9
    if found.proved:
        assert seats.value(place) == pytest.approx(plain["best"], abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(seed_and_rate())
def test_sessions_of_four_tracks(case):
    seed, rate, size = case
    calls, table, links, llr, score = random_case(seed, 2, size=size, most_tracks=4, people=4)
    plain = solve(calls, score, rate)
    seats = build_seats(table, links, llr, rate=rate)
    truth = expected_events(calls, table, plain)
    found = solve_pieces(seats, enumerate_one)
    np.testing.assert_allclose(found.guess, truth, rtol=1e-9, atol=1e-9)
    bounds = certified(seats, find_best(seats), lambda part: solve_pieces(part, lambda _: None))
    if bounds is not None:
        assert (bounds.low <= truth + 1e-12).all()
        assert (bounds.high >= truth - 1e-12).all()


def test_events_are_in_their_order():
    _, table, links, llr, _ = random_case(3, 4)
    seats = build_seats(table, links, llr, rate=0.1)
    events = Events(seats)
    assert events.count == len(events.node)
    assert len(events.at(find_best(seats))) == len(table.people)
