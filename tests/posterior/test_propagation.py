"""Belief propagation and climbing against plain enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from spklink.posterior.inference.beliefs import ESTIMATED
from spklink.posterior.inference.flips import climb
from spklink.posterior.inference.network import Network
from spklink.posterior.inference.propagation import propagate
from zoo import as_bytes, brute_force, make, mixture, random_network


def random_forest(size: int, scale: float, rng: np.random.Generator) -> Network:
    parent = [int(rng.integers(max(1, k))) for k in range(size)]
    edges = [(parent[k], k) for k in range(1, size) if rng.random() < 0.9]
    a, b = [e[0] for e in edges], [e[1] for e in edges]
    relabel = rng.permutation(size)
    low, high = np.minimum(relabel[a], relabel[b]), np.maximum(relabel[a], relabel[b])
    coupling = scale * rng.normal(size=len(edges))
    return make(scale * rng.normal(size=size), low, high, coupling)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e4])
def test_propagation_is_exact_without_loops(scale: float) -> None:
    rng = np.random.default_rng(13)
    for size in [*range(1, 10)] * 4:
        net = random_forest(size, scale, rng)
        start = rng.integers(0, 2, size).astype(np.int8)  # must not matter
        beliefs, truth = propagate(net, start=start), brute_force(net)
        assert beliefs.one == pytest.approx(truth["one"], abs=1e-9)
        assert beliefs.both == pytest.approx(truth["both"], abs=1e-9)


def test_propagation_carries_far_in_one_round() -> None:
    """A chain that remembers for 1500 nodes, in shuffled order, against the transfer matrix."""
    rng, n = np.random.default_rng(14), 1000
    step = np.array([[0.0, 0.0], [0.0, 16.0]])
    field = np.full(n, -16.0) + 0.01 * rng.normal(size=n)
    field[[0, -1]] = -7.0, -10.0
    left, right = np.zeros((n, 2)), np.zeros((n, 2))
    for t in range(1, n):
        before, after = left[t - 1] + [0.0, field[t - 1]], right[n - t] + [0.0, field[n - t]]
        left[t] = np.logaddexp(before[0] + step[0], before[1] + step[1])
        right[n - t - 1] = np.logaddexp(after[0] + step[0], after[1] + step[1])
    truth = special.expit(left[:, 1] + right[:, 1] - left[:, 0] - right[:, 0] + field)
    assert 0.1 < truth.min() < truth.max() - 0.3 < 0.3  # both ends are felt, neither decides
    place = rng.permutation(n)
    shuffled = np.empty(n)
    shuffled[place] = field
    a, b = np.minimum(place[:-1], place[1:]), np.maximum(place[:-1], place[1:])
    assert propagate(make(shuffled, a, b, np.full(n - 1, 16.0))).one[place] == pytest.approx(
        truth, abs=1e-9
    )


def test_propagation_survives_every_shape() -> None:
    nets = mixture(300, 15, largest=12)
    for net in [*nets, make([]), make([1e4, -1e4], [0], [1], [-1e4])]:
        start = climb(net)
        beliefs = propagate(net, start=start, proved=np.ones(len(net), bool))
        one, both = beliefs.one, beliefs.both
        assert beliefs.certainty == ESTIMATED
        assert np.all((one >= 0) & (one <= 1))
        assert np.all(both <= np.minimum(one[net.a], one[net.b]))
        assert np.all(both >= np.maximum(0.0, one[net.a] + one[net.b] - 1) - 1e-15)
        assert net.value(beliefs.best) >= net.value(start)
        assert (beliefs.proved == (beliefs.best == start)).all()
        assert np.all(beliefs.one_low == 0)
        assert np.all(beliefs.both_high == 1)
        assert as_bytes(beliefs) == as_bytes(propagate(net, start=start, proved=start >= 0))


def test_propagation_is_close_where_scores_are_weak() -> None:
    rng = np.random.default_rng(16)
    for shape in ("star", "tree", "centre"):
        for _ in range(20):
            net = random_network(shape, 8, rng, 0.2)
            truth = brute_force(net)
            start = np.array(truth["best"][0], np.int8)  # type: ignore[index]
            beliefs = propagate(net, start=start)
            assert np.abs(beliefs.one - np.asarray(truth["one"])).mean() < 0.05
            assert np.abs(beliefs.both - np.asarray(truth["both"])).mean() < 0.05


def test_climb_leaves_nothing_to_gain() -> None:
    for net in mixture(100, 17):
        x = climb(net)
        for i in range(len(net)):
            turned = x.copy()
            turned[i] = 1 - turned[i]
            assert net.value(turned) <= net.value(x) + 1e-9 * (1 + abs(net.value(x)))
