"""Every exact method for several states a node against plain Python, and each against another."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

from posterior.states import plain_states as plain
from spklink.posterior.inference import trace as trace_module
from spklink.posterior.inference.blocks import find_blocks, solve_blocks
from spklink.posterior.inference.enumeration import enumerate_one
from spklink.posterior.inference.plan import solve_exact
from spklink.posterior.inference.simplify import solve_in_pieces
from spklink.posterior.inference.trace import trace
from spklink.posterior.inference.tree import find_bags, tree, tree_cost


def blocks(net):
    """Every piece cut into blocks, these enumerated."""

    def piece(part):
        cut = find_blocks(part)
        return solve_blocks(part, cut, enumerate_one) if cut.nodes else enumerate_one(part)

    return solve_in_pieces(net, piece, small=-1.0)


def cases(net):
    """The trace with so little range that nodes are taken case by case."""
    with mock.patch.multiple(trace_module, SPREAD=5.0, SWEEPS=0):
        return trace(net)


def moved(net):
    """The trace with so little range that terms are moved between the matrices."""
    with mock.patch.multiple(trace_module, SPREAD=30.0):
        return trace(net)


METHODS = {
    "tree": tree,
    "trace": trace,
    "cases": cases,
    "moved": moved,
    "blocks": blocks,
    "auto": solve_exact,
}


def chain(n: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(n - 1)]


def grid(n: int, m: int) -> list[tuple[int, int]]:
    along = [(m * i + j, m * i + j + 1) for i in range(n) for j in range(m - 1)]
    return along + [(m * i + j, m * i + j + m) for i in range(n - 1) for j in range(m)]


@pytest.mark.parametrize("method", METHODS)
@given(net=plain.networks())
def test_matches_brute_force(method, net):
    plain.check(net, METHODS[method](net.network()), plain.brute_force(net))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 200.0, 1e4])
def test_matches_enumeration_of_larger_ones(method, scale):
    shapes = ([7] * 6, [2, 3, 4, 5, 6, 7, 1, 2], [16, 16, 16, 4], [3] * 10, [2] * 15, [40, 40, 5])
    for k, size in enumerate(shapes):
        rng = np.random.default_rng([k, round(scale)])
        net = plain.random_network(size, plain.complete(len(size)), rng, scale)
        want = plain.as_reference(enumerate_one(net.network()), net)
        plain.check(net, METHODS[method](net.network()), want)


@pytest.mark.parametrize("method", METHODS)
def test_tied_pairs_are_all_counted(method):
    """Pairs bound by 1e4 and free otherwise: far beyond exp's range, and 3^pairs optima."""
    pairs = [(k, k + 4) for k in range(4)]
    net = plain.make([3] * 8, pairs, [np.zeros(3)] * 8, {e: 1e4 * np.eye(3) for e in pairs}, 0.0)
    got = METHODS[method](net.network())
    assert got.log_sum[0] == pytest.approx(4e4 + 4 * np.log(3), abs=1e-9)
    assert got.entropy[0] == pytest.approx(4 * np.log(3), abs=1e-9)
    np.testing.assert_allclose(
        plain.pairs_of(net, got), np.tile(np.eye(3).ravel() / 3, 4), atol=1e-9
    )


def test_strong_terms_are_moved_between_the_matrices():
    """A glass this strong would else fall into hundreds of cases."""
    net = plain.random_network([7] * 6, plain.complete(6), np.random.default_rng(5), 50.0)
    with mock.patch.object(trace_module, "_by_cases", side_effect=AssertionError):
        got = trace(net.network())
    plain.check(net, got, plain.as_reference(enumerate_one(net.network()), net))


def test_long_chain_by_hand():
    """A chain of 5000 nodes of 4 states is a product of matrices."""
    rng, n = np.random.default_rng(3), 5000
    net = plain.random_network([4] * n, chain(n), rng)
    got = tree(net.network())
    row, level = np.exp(net.unary[:4]), net.constant
    for t in range(1, n):
        row = (row @ np.exp(net.table[16 * (t - 1) : 16 * t].reshape(4, 4))) * np.exp(
            net.unary[4 * t : 4 * t + 4]
        )
        level += np.log(row.sum())
        row /= row.sum()
    assert got.log_sum[0] == pytest.approx(level, rel=1e-12)
    np.testing.assert_allclose(plain.states_of(net, got)[-4:], row, atol=1e-12)


def test_pairs_and_marginals_of_a_wide_tree_agree():
    rng = np.random.default_rng(4)
    size = rng.integers(1, 6, 24).tolist()
    net = plain.random_network(size, grid(6, 4), rng, 2.0)
    got = tree(net.network())
    row, column = net.ends()
    marginal, pair = plain.states_of(net, got), plain.pairs_of(net, got)
    for end, held in ((row, net.a), (column, net.b)):
        sums = np.bincount(end, pair, len(net.unary))
        degree = np.repeat(np.bincount(held, minlength=len(net)), net.size)
        np.testing.assert_allclose(sums, degree * marginal, atol=1e-12)
    first = np.cumsum(net.size) - net.size
    np.testing.assert_allclose(np.add.reduceat(marginal, first), 1.0, atol=1e-12)


def test_nodes_of_many_states_are_summed_out_with_care():
    """A wheel whose hub has 1000 states: bags must never hold two spokes more than needed."""
    spokes = 9
    edges = [(0, k) for k in range(1, spokes + 1)]
    net = plain.random_network([1000] + [2] * spokes, edges, np.random.default_rng(0))
    assert find_bags(net.network()).widest <= np.log2(2000) + 1e-9
    other = plain.make(
        [50, 50, 2, 2],
        [(0, 2), (0, 3), (1, 2), (1, 3)],
        [[0.0] * 50] * 2 + [[0.0] * 2] * 2,
        {e: np.arange(100.0).reshape(50, 2) for e in itertools.product((0, 1), (2, 3))},
    )
    assert find_bags(other.network()).widest <= np.log2(200) + 1e-9


def test_a_tree_that_is_too_wide_is_refused():
    net = plain.random_network([7] * 8, plain.complete(8), np.random.default_rng(0))
    assert not find_bags(net.network()).fits
    assert tree_cost(find_bags(net.network()))[0] == float("inf")
    with pytest.raises(ValueError, match="22 bits"):
        tree(net.network())


@pytest.mark.parametrize(("method", "n", "ties"), [("tree", 60, 0.7), ("trace", 10, 9.0)])
def test_matches_a_peer_on_larger_ones(method, n, ties):
    """pyAgrum, where it is installed (`make bench` does that)."""
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng([n, 2])
    size = rng.integers(2, 6, n).tolist()
    more = [e for e in plain.complete(n) if rng.random() < ties / (n - 1)]
    net = plain.random_network(size, {*chain(n), *more}, rng, 1.5)
    model, at = gum.MarkovRandomField(), 0
    for t, own in enumerate(np.split(net.unary, np.cumsum(size)[:-1])):
        model.add(gum.LabelizedVariable(f"x{t}", "", size[t]))
        model.addFactor([f"x{t}"]).fillWith(np.exp(own).tolist())
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        table = net.table[at : at + size[a] * size[b]].reshape(size[a], size[b])
        at += table.size
        model.addFactor([f"x{a}", f"x{b}"]).fillWith(np.exp(table).T.ravel().tolist())
    engine = gum.ShaferShenoyMRFInference(model)
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        engine.addJointTarget({f"x{a}", f"x{b}"})
    engine.makeInference()
    got = METHODS[method](net.network())
    marginal, pair = plain.states_of(net, got), plain.pairs_of(net, got)
    want = np.concatenate([engine.posterior(f"x{t}").toarray() for t in range(n)])
    np.testing.assert_allclose(marginal, want, rtol=0, atol=1e-9)
    at = 0
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        joint = engine.jointPosterior({f"x{a}", f"x{b}"})
        first = list(joint.names).index(f"x{a}")  # toarray() puts the last name first
        table = joint.toarray() if first == 1 else joint.toarray().T
        cells = pair[at : at + size[a] * size[b]].reshape(size[a], size[b])
        at += cells.size
        np.testing.assert_allclose(cells, table, rtol=0, atol=1e-9)
