"""Proved optima and certified intervals, held against plain enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.posterior.inference import certified_general
from spklink.posterior.inference.certified import certified
from spklink.posterior.inference.certified_bounds import Bounds
from spklink.posterior.inference.certified_general import general_bounds
from spklink.posterior.inference.certified_star import star_bounds
from spklink.posterior.inference.flips import rounding, turn
from spklink.posterior.inference.network import Network, slots_of
from spklink.posterior.inference.roof import _retreat, find_optimum, prove
from spklink.posterior.inference.tree import tree
from zoo import SHAPES, brute_force, calls_of, network_of, random_network

ROOM = 1e-12


class Truth:
    """All configurations at once; plain, and fast enough for a thousand cliques."""

    def __init__(self, net: Network) -> None:
        n = len(net)
        self.states = (np.arange(1 << n)[:, None] >> np.arange(n - 1, -1, -1)) & 1
        pairs = self.states[:, net.a] * self.states[:, net.b]
        self.values = net.constant + (self.states * net.field).sum(1)
        self.values = self.values + (pairs * net.coupling).sum(1)
        weight = np.exp(self.values - self.values.max())
        p = weight / weight.sum()
        self.one, self.both = p @ self.states, p @ pairs
        self.log_sum = float(self.values.max() + np.log(weight.sum()))
        self.entropy = float((p * (self.log_sum - self.values)).sum())
        self.optima = self.states[self.values >= self.values.max() - 1e-9]
        # what adding up terms of this size may do to a sum
        size = np.abs(net.field).sum() + np.abs(net.coupling).sum() + abs(net.constant)
        self.room = ROOM + 1e-14 * float(size)


def network(field, edges=(), coupling=(), constant=0.0) -> Network:
    ends = np.array(edges, np.int32).reshape(-1, 2)
    return Network(
        np.array(field, float), ends[:, 0], ends[:, 1], np.array(coupling, float), constant
    )


def zoo(count: int, seed: int, mus: tuple[float | None, ...] = (None,), largest: int = 10):
    rng = np.random.default_rng(seed)
    for k in range(count):
        shape = SHAPES[k % len(SHAPES)]
        size = int(rng.integers(1, largest + 1))
        yield shape, random_network(shape, size, rng, mus[(k // len(SHAPES)) % len(mus)])


def assert_inside(low, value, high, room=ROOM) -> None:
    assert (np.asarray(low) - room <= value).all()
    assert (value <= np.asarray(high) + room).all()


def assert_bounds(bounds: Bounds, net: Network, best, truth: Truth) -> None:
    """Bounds in flips from `best`, which need not be an optimum."""
    flipped = np.where(best == 1, 1.0 - truth.one, truth.one)
    assert_inside(bounds.low, flipped, bounds.high)
    assert_inside(bounds.both_low, truth.both, bounds.both_high)
    log_sum = truth.log_sum - turn(net, best).constant
    assert_inside(bounds.log_sum[0], log_sum, bounds.log_sum[1], truth.room)
    assert_inside(bounds.entropy[0], truth.entropy, bounds.entropy[1])


def sure_nodes(net: Network, best):
    slots = slots_of(net)
    return prove(turn(net, best), slots, rounding(net, slots))


def test_the_reference_is_brute_force():
    for _, net in zoo(40, seed=1, largest=6):
        truth, plain = Truth(net), brute_force(net)
        assert truth.one == pytest.approx(plain["one"], abs=1e-9)
        assert truth.both == pytest.approx(plain["both"], abs=1e-9)
        assert truth.log_sum == pytest.approx(plain["log_sum"], rel=1e-12)
        assert truth.entropy == pytest.approx(plain["entropy"], abs=1e-9)
        assert [tuple(x) for x in truth.optima] == plain["best"]


def test_certified_intervals_contain_the_truth():
    for _, net in zoo(1000, seed=2, mus=(None, 0.2, 1.0, 2.0, 4.36, 8.0)):
        found, truth = certified(net), Truth(net)
        if found is None:
            continue
        assert_inside(found.one_low, truth.one, found.one_high)
        assert_inside(found.both_low, truth.both, found.both_high)
        assert_inside(found.log_sum[0], truth.log_sum, found.log_sum[1])
        assert_inside(found.entropy[0], truth.entropy, found.entropy[1])
        assert_inside(found.one_low, found.one, found.one_high, 0.0)
        assert_inside(found.both_low, found.both, found.both_high, 0.0)
        assert (truth.optima[:, found.proved] == found.best[found.proved]).all(axis=1).any()


def test_narrow_where_scores_are_good():
    width = {shape: [] for shape in SHAPES}
    for shape, net in zoo(100, seed=3, mus=(4.36, 8.0)):
        found = certified(net)
        assert found is not None
        width[shape].append((found.one_high - found.one_low).mean())
    assert all(np.mean(widths) <= 1e-3 for widths in width.values())


@pytest.mark.parametrize(("nodes", "levels"), [(0, (0.01,)), (2, (0.3, 0.01)), (4, (0.1, 0.001))])
def test_general_bounds_with_little_exact_help(nodes, levels, monkeypatch):
    """Larger pieces stay unsolved, so that most of the clique is bounded only."""
    monkeypatch.setattr(certified_general, "LIMIT", nodes)
    monkeypatch.setattr(certified_general, "NARROW", 0)
    rng = np.random.default_rng(4)
    narrow = 0
    for k, (_, net) in enumerate(zoo(120, seed=5 + nodes, mus=(1.0, 4.36, 8.0, 16.0))):
        best = find_optimum(net).best
        if k % 5 == 0:
            best = rng.integers(0, 2, len(net), np.int8)
        bounds = general_bounds(turn(net, best), best, levels=levels)
        assert_bounds(bounds, net, best, Truth(net))
        narrow += int((bounds.high - bounds.low < 0.1).all())
    assert narrow >= 30


@pytest.mark.parametrize(("rows", "kept"), [(7, 512), (2, 512), (0, 512), (1, 3), (0, 0)])
def test_star_bounds(rows, kept):
    rng = np.random.default_rng(6)
    narrow = 0
    for k, (_, net) in enumerate(zoo(100, seed=7 + rows + kept, mus=(1.0, 2.0, 4.36, 8.0))):
        best = find_optimum(net).best
        if k % 5 == 0:
            best = rng.integers(0, 2, len(net), np.int8)
        bounds = star_bounds(turn(net, best), best, most_rows=rows, most_kept=kept)
        if bounds is not None:
            assert_bounds(bounds, net, best, Truth(net))
            narrow += int((bounds.high - bounds.low < 0.1).all())
    assert narrow >= 50


numbers = st.one_of(
    st.floats(-12.0, 12.0), st.sampled_from([0.0, 1e-3, -1e-3, 40.0, -40.0, 1e4, -1e4])
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_any_numbers(data):
    n = data.draw(st.integers(1, 6))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if data.draw(st.booleans())]
    coupling = data.draw(st.lists(numbers, min_size=len(edges), max_size=len(edges)))
    net = network(data.draw(st.lists(numbers, min_size=n, max_size=n)), edges, coupling)
    truth, found = Truth(net), find_optimum(net)
    assert (truth.optima[:, found.proved] == found.best[found.proved]).all(axis=1).any()
    turned = turn(net, found.best)
    for bounds in (
        general_bounds(turned, found.best, levels=(0.3,)),
        star_bounds(turned, found.best, most_rows=1, most_kept=4),
    ):
        if bounds is not None:
            assert_bounds(bounds, net, found.best, truth)


def test_proofs_hold_for_any_start():
    """Nodes that the flow proves are the same in every optimum, whatever it starts from."""
    rng = np.random.default_rng(8)
    proved = 0
    for k, (_, net) in enumerate(zoo(200, seed=9)):
        best = find_optimum(net).best if k % 2 else rng.integers(0, 2, len(net), np.int8)
        sure = sure_nodes(net, best)
        assert (Truth(net).optima[:, sure] == best[sure]).all()
        proved += int(sure.sum())
    assert proved > 400


def test_small_pieces_are_always_proved():
    for _, net in zoo(100, seed=10):
        found, truth = find_optimum(net), Truth(net)
        assert found.proved.all()
        assert (truth.optima == found.best).all(axis=1).any()


def test_no_proof_of_a_tie():
    neither = np.zeros(2, np.int8)
    for gain, proved in ((2.0 - 1e-9, True), (2.0, False), (2.0 + 1e-9, False)):
        sure = sure_nodes(network([-1.0, -1.0], [(0, 1)], [gain]), neither)
        assert (sure == proved).all()


def test_proofs_do_not_lean_on_unsure_neighbours():
    """What an unsure node holds of an edge goes to the neighbour, who may then be unsure too."""
    slots = slots_of(network([0.0] * 3, [(0, 1), (1, 2)], [1.0, 1.0]))  # 0-1, 1-2, 1-0, 2-1
    slack, sure = np.array([-1.0, 0.5, 0.9]), np.array([False, True, True])
    for held, expected in ((0.2, [False, False, True]), (1.0, [False, False, False])):
        share, left, kept = np.array([0.7, held, 0.3, 0.0]), slack.copy(), sure.copy()
        _retreat(slots.start, slots.other, share, left, kept)
        assert kept.tolist() == expected


def test_capacities_too_coarse_for_the_small_terms():
    """Integers hold 1e4 to a few parts in 1e9; the proof must get the small fields right too."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        n = 8
        edges = [(i, j) for i in range(n) for j in range(i + 1, n)]
        scale = 10.0 ** rng.integers(-6, 5, len(edges))
        net = network(1e-5 * rng.normal(size=n), edges, rng.normal(size=len(edges)) * scale)
        found, truth = find_optimum(net), Truth(net)
        assert found.proved.all()
        assert net.value(found.best) >= truth.values.max() - truth.room
        sure = sure_nodes(net, found.best)
        assert (truth.optima[:, sure] == found.best[sure]).all()


def test_mirror_symmetry_is_not_proved_by_flow():
    rng = np.random.default_rng(12)
    small, large = (network_of([(0, 1)] * size, 4.0, rng) for size in (8, 25))
    assert not sure_nodes(small, find_optimum(small).best).any()
    assert find_optimum(small).proved.all()  # by enumeration
    assert not find_optimum(large).proved.any()
    assert certified(large) is None


@pytest.mark.parametrize(("shape", "mu"), [("star", 0.2), ("two_speakers", 1.0), ("star", 0.5)])
def test_no_certificate_where_much_is_open(shape, mu):
    rng = np.random.default_rng(13)
    assert certified(random_network(shape, 45, rng, mu)) is None


def test_a_star_of_two_hundred_calls():
    rng = np.random.default_rng(14)
    net = network_of(calls_of("star", 200, rng), 2.0, rng)
    found = certified(net)
    assert found is not None
    assert found.proved_optimal
    assert (found.one_high - found.one_low).max() <= 1e-5
    assert (found.both_high - found.both_low).max() <= 1e-4
    assert found.log_sum[1] - found.log_sum[0] <= 1e-4
    assert found.entropy[1] - found.entropy[0] <= 1e-2


@pytest.mark.parametrize("mu", [2.0, 4.36])
def test_a_network_of_calls(mu):
    """Too large to enumerate, narrow enough for the tree to know the truth."""
    rng = np.random.default_rng(15)
    net = network_of(calls_of("tree", 300, rng), mu, rng)
    found, truth = certified(net), tree(net)
    assert found is not None
    assert found.proved.mean() >= 0.999
    assert net.value(found.best) == pytest.approx(net.value(truth.best), abs=1e-9)
    assert (found.one_high - found.one_low).max() <= 0.01
    assert (found.one_high - found.one_low).mean() <= 1e-3
    assert_inside(found.one_low, truth.one, found.one_high, 1e-11)
    assert_inside(found.both_low, truth.both, found.both_high, 1e-11)
    assert_inside(found.log_sum[0], truth.log_sum[0], found.log_sum[1], 1e-9)
    assert_inside(found.entropy[0], truth.entropy[0], found.entropy[1], 1e-9)


def test_an_unclear_region_leaves_the_rest_certified():
    """A tied pair far down a chain of clear calls: its own interval is exact, the others hold."""
    n = 60
    field = np.full(n, -8.0)
    field[[30, 31]] = [-4.0, -4.0]
    gain = np.where(np.arange(n - 1) == 30, 8.0, 1.0)
    net = network(field, [(i, i + 1) for i in range(n - 1)], gain)
    found, truth = certified(net), tree(net)
    assert found is not None
    assert truth.one[30] == pytest.approx(0.5, abs=0.1)
    assert (found.one_high - found.one_low).max() <= 1e-3
    assert_inside(found.one_low, truth.one, found.one_high)


EDGE_CASES = {
    "empty": network([]),
    "single": network([0.0]),
    "no edges": network([0.0, 1.0, -1e4, 1e4]),
    "zero couplings": network([0.0, 0.0, 1.0], [(0, 1), (1, 2)], [0.0, 0.0]),
    "large and tiny": network(
        [1e-3, -1e4, 1e4, 1e-9], [(0, 1), (1, 2), (2, 3), (0, 3)], [1e4, -1e4, 1e-3, -1e4]
    ),
    "all tied": network([0.0] * 9, [(i, i + 1) for i in range(8)], [0.0] * 8),
    "constant": network([2.0, -1.0], [(0, 1)], [0.5], -1234.5),
}


@pytest.mark.parametrize("name", EDGE_CASES)
@pytest.mark.filterwarnings("error")
def test_edge_cases(name):
    net = EDGE_CASES[name]
    found, truth = certified(net), Truth(net)
    assert found is not None
    assert_inside(found.one_low, truth.one, found.one_high)
    assert_inside(found.both_low, truth.both, found.both_high)
    assert_inside(found.log_sum[0], truth.log_sum, found.log_sum[1])
    assert_inside(found.entropy[0], truth.entropy, found.entropy[1])
    assert (truth.optima == found.best).all(axis=1).any()
    assert found.proved_optimal


def test_same_input_same_bytes():
    rng = np.random.default_rng(16)
    net = network_of(calls_of("centre", 60, rng), 2.0, rng)
    first, second = certified(net, seed=3), certified(net, seed=3)
    assert first is not None
    assert second is not None
    for name in ("best", "one", "one_low", "one_high", "both_low", "both_high"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
    assert (first.log_sum, first.entropy) == (second.log_sum, second.entropy)
