"""Answer people on tracks, against a list of all states."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.posterior.states.matching import best, draw, log_sum, marginals, value

NEVER = -np.inf


def all_states(people, tracks):
    """Every state as a tuple: the track of each person, `tracks` for nowhere."""
    for seated in range(min(people, tracks) + 1):
        for who in combinations(range(people), seated):
            for where in permutations(range(tracks), seated):
                place = [tracks] * people
                for p, k in zip(who, where, strict=True):
                    place[p] = k
                yield tuple(place)


def plain_value(seat, count, place):
    tracks = seat.shape[1]
    worth = [seat[p, k] for p, k in enumerate(place) if k < tracks]
    return sum(worth) + count[len(worth)]


@st.composite
def conversations(draw_):
    people, tracks = draw_(st.integers(0, 4)), draw_(st.integers(1, 4))
    size = draw_(st.sampled_from([1.0, 10.0, 400.0]))
    rng = np.random.default_rng(draw_(st.integers(0, 2**32)))
    seat = rng.normal(0.0, size, (people, tracks))
    seat[rng.random(seat.shape) < draw_(st.sampled_from([0.0, 0.3]))] = NEVER
    count = rng.normal(0.0, size, tracks + 1)
    count[rng.random(tracks + 1) < 0.2] = NEVER
    return seat, count


@settings(max_examples=300, deadline=None)
@given(conversations())
def test_sums_marginals_and_best(case):
    seat, count = case
    people, tracks = seat.shape
    states = list(all_states(people, tracks))
    values = np.array([plain_value(seat, count, state) for state in states])
    person, track = np.zeros((people, tracks + 1)), np.zeros(tracks)
    place = np.zeros(people, np.int64)
    whole = np.logaddexp.reduce(values)
    assert log_sum(seat, count) == pytest.approx(whole, abs=1e-9, rel=1e-12)
    assert marginals(seat, count, person, track) == pytest.approx(whole, abs=1e-9, rel=1e-12)
    if whole == NEVER:
        return
    chance = np.exp(values - whole)
    expected, others = np.zeros_like(person), np.zeros_like(track)
    for state, p in zip(states, chance, strict=True):
        for who, where in enumerate(state):
            expected[who, where] += p
        for k in range(tracks):
            others[k] += p * (k not in state)
    np.testing.assert_allclose(person, expected, rtol=1e-9, atol=1e-290)
    np.testing.assert_allclose(track, others, rtol=1e-9, atol=1e-290)
    assert best(seat, count, place) == pytest.approx(values.max(), rel=1e-12)
    assert value(seat, count, place) == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 4), (0, 3)])
def test_draws_follow_the_distribution(shape):
    rng = np.random.default_rng(5)
    seat, count = rng.normal(0.0, 1.0, shape), rng.normal(0.0, 1.0, shape[1] + 1)
    states = {state: k for k, state in enumerate(all_states(*shape))}
    values = np.array([plain_value(seat, count, state) for state in states])
    chance = np.exp(values - np.logaddexp.reduce(values))
    seen, place, rounds = np.zeros(len(states)), np.zeros(shape[0], np.int64), 40_000
    for _ in range(rounds):
        draw(seat, count, rng.random(max(shape)), place)
        seen[states[tuple(place.tolist())]] += 1
    error = np.sqrt(chance * (1.0 - chance) / rounds)
    assert (np.abs(seen / rounds - chance) <= 5.0 * error + 1e-9).all()


def test_forbidden_seats_are_never_drawn():
    seat = np.array([[NEVER, 0.0], [0.0, NEVER]])
    count, place = np.array([NEVER, NEVER, 0.0]), np.zeros(2, np.int64)
    for chance in (0.0, 0.3, 1.0 - 1e-16):
        draw(seat, count, np.array([chance, chance]), place)
        assert place.tolist() == [1, 0]
