"""Which method the planner takes for networks of several states, and what it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

from posterior.states import plain_states as plain
from posterior.states.test_state_methods import chain
from spklink import SpklinkError
from spklink.posterior.inference import table
from spklink.posterior.inference.beliefs import CERTIFIED, Beliefs, Piece, Proposal
from spklink.posterior.inference.enumeration import enumerate_one
from spklink.posterior.inference.plan import Budget, solve_exact, solve_network
from spklink.posterior.inference.simplify import with_ties
from spklink.posterior.inference.trace import trace


def cliques(count: int, each: int, states: int, seed: int = 0) -> plain.Plain:
    """Dense parts in a row, every two neighbours share one node."""
    edges = set()
    for k in range(count):
        first = k * (each - 1)
        edges |= {(first + i, first + j) for i, j in plain.complete(each)}
    n = count * (each - 1) + 1
    return plain.random_network([states] * n, edges, np.random.default_rng(seed), 0.7)


@pytest.mark.parametrize(
    ("net", "method", "why"),
    [
        (cliques(1, 4, 7), "enumerate", "pieces of at most 12 open conversations"),
        (cliques(1, 9, 7), "trace", "2^25.3 configurations"),
        (cliques(60, 2, 7), "tree", "a tree of 5.6 bits"),
        (cliques(4, 9, 7), "blocks", "4 blocks of at most 2^25.3 configurations"),
    ],
)
def test_the_cheapest_exact_method_is_taken(net, method, why):
    solved = solve_network(net.network())
    marginal = plain.states_of(net, solved.beliefs)
    pair = plain.pairs_of(net, solved.beliefs)
    assert solved.beliefs.method == method
    assert solved.reason == why
    assert solved.beliefs.certainty == "exact"
    row, column = net.ends()
    for end, held in ((row, net.a), (column, net.b)):  # whatever solved it, pairs fit marginals
        degree = np.repeat(np.bincount(held, minlength=len(net)), net.size)
        sums = np.bincount(end, pair, len(net.unary))
        np.testing.assert_allclose(sums, degree * marginal, atol=1e-10)


def test_blocks_and_tree_agree():
    net = cliques(5, 5, 6, seed=3)
    by_tree, by_blocks = solve_exact(net.network()), _method("blocks", net.network())
    assert by_tree.method == "tree"
    plain.check(net, by_blocks, plain.as_reference(by_tree, net))


def _method(name, net):
    piece = Piece(net, 0, 1, 1e12, False, lambda: None, enumerate_one)
    return table.load(name).propose(piece).run()


def test_trace_and_tree_agree_beyond_enumeration():
    net = plain.random_network([5] * 11, plain.complete(7) + chain(11)[6:], _rng(1))
    solved = solve_exact(net.network())
    assert solved.method == "tree"
    plain.check(net, trace(net.network()), plain.as_reference(solved, net))


def _rng(seed):
    return np.random.default_rng(seed)


def test_what_does_not_fit_is_not_solved():
    net = cliques(1, 14, 7).network()
    assert solve_exact(net) is None
    with pytest.raises(SpklinkError, match="no method solves a piece of 14 open conversations"):
        solve_network(net)
    small = cliques(1, 9, 7).network()
    assert solve_exact(small, Budget(seconds=1e-3)) is None
    assert solve_exact(small, Budget(gigabytes=1e-4)) is None
    assert solve_exact(small) is not None


def test_a_block_that_cannot_be_solved_leaves_all_unsolved():
    dense = plain.complete(14)
    net = plain.random_network([7] * 15, [*dense, (13, 14)], _rng(0))
    assert solve_exact(net.network()) is None


def test_a_method_of_another_certainty_is_one_entry(monkeypatch):
    """Methods that are not exact may take networks of several states."""

    def run(network):
        width, cells = len(network.field), len(network.coupling)
        return Beliefs(
            "guess", CERTIFIED, np.zeros(len(network), int), np.zeros(len(network), bool),
            *(np.full(len(network), 0.5), np.full(width, 0.5), np.full(width, 0.49)),
            *(np.full(width, 0.51), np.zeros(cells), np.zeros(cells), np.ones(cells)),
            (-np.inf, np.inf), (0.0, 1.0),
        )  # fmt: skip

    class Guess:
        name, certainty = "guess", CERTIFIED

        def propose(self, piece):
            return Proposal((0.0, 0.0), "", lambda: run(piece.network))

    monkeypatch.setitem(table.METHODS, "guess", "guess")
    module = "spklink.posterior.inference.guess"
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(METHOD=Guess()))
    net = cliques(1, 14, 7).network()
    assert solve_exact(net) is None
    solved = solve_network(net)
    assert solved.beliefs.certainty == CERTIFIED
    assert solved.beliefs.method == "guess"
    assert solved.reason == (
        "2^39.3 configurations and a tree of more than 22 bits exceeds the budget"
    )
    assert solve_exact(cliques(1, 4, 7).network()).method == "enumerate"


@given(plain.networks())
def test_ties_are_counted(net):
    want = plain.brute_force(net)
    got = with_ties(net.network(), trace(net.network()))
    assert got.ties in (None, len(want["best"]))
    if np.exp(want["best_value"] - want["log_sum"]) > 1e-3:
        assert got.ties == len(want["best"])


def test_edges_that_are_not_sorted_or_twice_there_are_refused():
    net = plain.random_network([3] * 9, chain(9), _rng(0)).network()
    for a, b in (([1, 0], [2, 1]), ([0, 0], [1, 1]), ([1, 1], [0, 2])):
        wrong = replace(
            net,
            a=np.concatenate([a, net.a[2:]]).astype(np.int32),
            b=np.concatenate([b, net.b[2:]]).astype(np.int32),
        )
        with pytest.raises(ValueError, match="sorted"):
            solve_exact(wrong)


def test_the_same_bytes_every_time():
    for net in (cliques(1, 9, 7), cliques(60, 2, 7), cliques(3, 9, 7)):
        one, two = solve_exact(net.network()), solve_exact(net.network())
        assert one.one.tobytes() == two.one.tobytes()
        assert one.both.tobytes() == two.both.tobytes()
        assert one.log_sum == two.log_sum
