"""Plain products against the logarithms of `matching`, which are held against all states."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.posterior.states.marginals import chance_right
from spklink.posterior.states.matching import draw, marginals
from spklink.posterior.states.products import draw_quickly, figures_and_draw


def case(seed):
    rng = np.random.default_rng(seed)
    people, tracks = int(rng.integers(0, 5)), int(rng.integers(1, 5))
    size = rng.choice([1.0, 10.0, 400.0])
    seat = rng.normal(0.0, size, (people, tracks))
    seat[rng.random(seat.shape) < 0.2] = -np.inf
    count = rng.normal(0.0, 2.0, tracks + 1)
    certain = rng.random(people) < 0.5
    if rng.random() < 0.3:  # lists taken at their word
        seat[certain] += 2000.0
    lift = rng.normal(0.0, 0.5, people) * (rng.random() < 0.5)
    return seat, count, certain, lift, rng.random(max(people, tracks, 1))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_figures_are_those_of_logarithms(seed):
    seat, count, certain, lift, chance = case(seed)
    people, tracks = seat.shape
    person, track = np.zeros((people, tracks + 1)), np.zeros(tracks)
    other_person, other_track = person.copy(), track.copy()
    place, other_place = np.zeros((2, people), np.int64)
    right = figures_and_draw(seat, count, certain, lift, chance, person, track, place)
    if right < 0.0:
        return
    marginals(seat, count, other_person, other_track)
    np.testing.assert_allclose(person, other_person, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(track, other_track, rtol=1e-9, atol=1e-13)
    same = min(chance_right(seat, count, certain, lift), 1.0)
    np.testing.assert_allclose(right, same, rtol=1e-9, atol=1e-13)
    draw(seat, count, chance, other_place)
    assert place.tolist() == other_place.tolist()
    assert draw_quickly(seat, count, chance, other_place)
    assert place.tolist() == other_place.tolist()


def test_contradictions_beyond_all_measure_are_left_to_logarithms():
    seat = np.array([[900.0, 0.0], [900.0, 0.0]])
    count = np.array([-np.inf, -np.inf, 0.0])
    assert not draw_quickly(seat, count, np.array([0.5, 0.5]), np.zeros(2, np.int64))
