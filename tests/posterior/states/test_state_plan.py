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
from spklink.posterior.inference.beliefs import CERTIFIED
from spklink.posterior.inference.plan import Budget
from spklink.posterior.states import table
from spklink.posterior.states.beliefs import StateBeliefs, StatePiece, StateProposal
from spklink.posterior.states.enumeration import enumerate_one
from spklink.posterior.states.network import StateNetwork
from spklink.posterior.states.pieces import with_ties
from spklink.posterior.states.plan import solve_exact, solve_states
from spklink.posterior.states.trace import trace


def cliques(count: int, each: int, states: int, seed: int = 0) -> StateNetwork:
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
        (cliques(1, 4, 7), "enumerate", "pieces of at most 2^12 configurations"),
        (cliques(1, 9, 7), "trace", "2^25.3 configurations"),
        (cliques(60, 2, 7), "tree", "a tree of 5.6 bits"),
        (cliques(4, 9, 7), "blocks", "4 blocks of at most 2^25.3 configurations"),
    ],
)
def test_the_cheapest_exact_method_is_taken(net, method, why):
    solved = solve_states(net)
    assert solved.beliefs.method == method
    assert solved.reason == why
    assert solved.beliefs.certainty == "exact"
    row, column = net.ends()
    for end, held in ((row, net.a), (column, net.b)):  # whatever solved it, pairs fit marginals
        degree = np.repeat(np.bincount(held, minlength=len(net)), net.size)
        sums = np.bincount(end, solved.beliefs.pair, len(net.unary))
        np.testing.assert_allclose(sums, degree * solved.beliefs.marginal, atol=1e-10)


def test_blocks_and_tree_agree():
    net = cliques(5, 5, 6, seed=3)
    by_tree, by_blocks = solve_exact(net), _method("blocks", net)
    assert by_tree.method == "tree"
    plain.check(net, by_blocks, plain.as_reference(by_tree, net))


def _method(name, net):
    piece = StatePiece(net, 0, 1, 1e12, enumerate_one)
    return table.load(name).propose(piece).run()


def test_trace_and_tree_agree_beyond_enumeration():
    net = plain.random_network([5] * 11, plain.complete(7) + chain(11)[6:], _rng(1))
    solved = solve_exact(net)
    assert solved.method == "tree"
    plain.check(net, trace(net), plain.as_reference(solved, net))


def _rng(seed):
    return np.random.default_rng(seed)


def test_what_does_not_fit_is_not_solved():
    net = cliques(1, 14, 7)
    solved = solve_states(net)
    assert solved.beliefs is None
    assert solved.reason == (
        "2^39.3 configurations and a tree of more than 22 bits exceeds the budget"
    )
    small = cliques(1, 9, 7)
    assert solve_exact(small, Budget(seconds=1e-3)) is None
    assert solve_exact(small, Budget(gigabytes=1e-4)) is None
    assert solve_exact(small) is not None


def test_a_block_that_cannot_be_solved_leaves_all_unsolved():
    dense = plain.complete(14)
    net = plain.random_network([7] * 15, [*dense, (13, 14)], _rng(0))
    assert solve_exact(net) is None


def test_a_method_of_another_certainty_is_one_entry(monkeypatch):
    """The seam for methods that are not exact."""

    def run(network):
        width = len(network.unary)
        return StateBeliefs(
            "guess", CERTIFIED, np.zeros(len(network), int), np.zeros(len(network), bool),
            np.full(width, 0.5), np.zeros(width), np.ones(width), np.zeros(len(network.table)),
            (-np.inf, np.inf), (0.0, 1.0),
        )  # fmt: skip

    class Guess:
        name, certainty = "guess", CERTIFIED

        def propose(self, piece):
            return StateProposal((0.0, 0.0), "", lambda: run(piece.network))

    monkeypatch.setitem(table.METHODS, "guess", "guess")
    module = "spklink.posterior.states.guess"
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(METHOD=Guess()))
    net = cliques(1, 14, 7)
    assert solve_exact(net) is None
    solved = solve_states(net)
    assert solved.beliefs.certainty == CERTIFIED
    assert solved.beliefs.method == "guess"
    assert "exceeds the budget" in solved.reason
    assert solve_exact(cliques(1, 4, 7)).method == "enumerate"


@given(plain.networks())
def test_ties_are_counted(net):
    want = plain.brute_force(net)
    got = with_ties(net, trace(net))
    assert got.ties in (None, len(want["best"]))
    if np.exp(want["best_value"] - want["log_sum"]) > 1e-3:
        assert got.ties == len(want["best"])


def test_edges_that_are_not_sorted_or_twice_there_are_refused():
    net = plain.random_network([2, 2, 2], chain(3), _rng(0))
    for a, b in (([1, 0], [2, 1]), ([0, 0], [1, 1]), ([1, 1], [0, 2])):
        wrong = replace(net, a=np.array(a), b=np.array(b))
        with pytest.raises(ValueError, match="sorted"):
            solve_exact(wrong)


def test_the_same_bytes_every_time():
    for net in (cliques(1, 9, 7), cliques(60, 2, 7), cliques(3, 9, 7)):
        one, two = solve_exact(net), solve_exact(net)
        assert one.marginal.tobytes() == two.marginal.tobytes()
        assert one.pair.tobytes() == two.pair.tobytes()
        assert one.log_sum == two.log_sum
