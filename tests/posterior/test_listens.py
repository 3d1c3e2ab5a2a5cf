"""How few listens settle a clique, held against trying every way to choose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink.posterior.inference.network import gauged
from spklink.posterior.listens import affordable, fewest, joint_of


def by_trying(joint: np.ndarray, certainty: float, known: dict[int, int]) -> float:
    """Expected listens by the best choices, from nothing but conditional probabilities."""
    free = [m for m in range(joint.ndim) if m not in known]
    now = joint[tuple(known.get(m, slice(None)) for m in range(joint.ndim))]
    now = now / now.sum()
    alone = [now.sum(axis=tuple(k for k in range(len(free)) if k != i)) for i in range(len(free))]
    if all(p.max() >= certainty for p in alone):
        return 0.0
    return 1.0 + min(
        sum(
            chance * by_trying(joint, certainty, known | {m: x})
            for x, chance in enumerate(p.tolist())
            if chance > 0.0
        )
        for m, p in zip(free, alone, strict=True)
    )


@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    spread=st.floats(0.0, 6.0),
    seed=st.integers(0, 99),
    certainty=st.sampled_from([0.9, 0.99]),
)
def test_no_way_to_choose_needs_fewer(shape, spread, seed, certainty):
    joint = np.exp(spread * np.random.default_rng(seed).normal(size=shape))
    joint /= joint.sum()
    found = fewest(joint, certainty)
    assert found.expected == pytest.approx(by_trying(joint, certainty, {}), abs=1e-4)
    if found.expected > 0.0:
        assert found.first.min() == pytest.approx(found.expected)


def test_hearing_one_of_two_mirror_images_settles_all():
    joint = np.zeros((2,) * 4)
    joint[0, 1, 0, 0] = joint[1, 0, 1, 1] = 0.5
    found = fewest(joint, 0.99)
    assert found.expected == 1.0
    assert found.settled.tolist() == [4.0] * 4
    assert found.entropy.tolist() == [1.0] * 4
    assert found.joint_entropy == 1.0


def test_what_nothing_hangs_on_is_not_heard_first():
    """Two conversations as uncertain as each other: one tells about a third."""
    tied = np.array([[0.49, 0.01], [0.01, 0.49]])
    joint = tied[:, :, None] * np.array([0.5, 0.5])
    found = fewest(joint, 0.97)
    assert found.expected == 2.0
    assert found.settled.tolist() == [2.0, 2.0, 1.0]


def test_what_is_certain_is_not_heard():
    found = fewest(np.array([[0.995, 0.0], [0.0, 0.005]]), 0.99)
    assert found.expected == 0.0
    assert (found.first == 1.0).all()
    assert (found.settled == 0.0).all()


def test_joint_probabilities_are_those_of_the_network():
    rng = np.random.default_rng(3)
    network, _ = gauged(
        size=np.array([2, 3, 2]),
        unary=rng.normal(size=7),
        a=np.array([0, 1]),
        b=np.array([1, 2]),
        table=rng.normal(size=12),
    )
    joint = joint_of(network)
    for z in np.ndindex(2, 3, 2):
        other = network.value(np.array(z)) - network.value(np.zeros(3, np.int64))
        assert np.log(joint[z] / joint[0, 0, 0]) == pytest.approx(other)
    assert joint.sum() == pytest.approx(1.0)


def test_too_many_states_are_not_listed():
    assert affordable(np.full(12, 2))
    assert not affordable(np.full(13, 2))
