"""The network of several states, and its enumeration, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from posterior.states import plain_states as plain
from spklink.posterior.inference.enumeration import enumerate_all, enumerate_one
from spklink.posterior.inference.flips import turn, turn_back
from spklink.posterior.inference.network import (
    beside,
    fix,
    joints,
    marginals,
    restrict,
    split,
    take,
)


def every(net):
    return list(np.ndindex(*net.size.tolist()))


@given(plain.networks())
def test_matches_brute_force(net):
    got, want = enumerate_one(net.network()), plain.brute_force(net)
    plain.check(net, got, want)
    assert got.ties == len(want["best"])
    assert tuple(got.best.tolist()) == min(want["best"])


@given(st.lists(plain.networks(most=4, states=4), max_size=6), st.randoms())
def test_many_at_once_are_solved_as_if_alone(plains, random):
    nets = [one.network() for one in plains]
    chosen = np.array([k for k in range(len(nets)) if random.random() < 0.7], np.int64)
    some = take(beside(nets), chosen)
    found = enumerate_all(some)
    for i, k in enumerate(chosen):
        want, nodes = plain.brute_force(plains[k]), slice(*some.node_start[i : i + 2])
        edges = np.arange(some.edge_start[i], some.edge_start[i + 1])
        assert found.best[nodes].tolist() == list(min(want["best"]))
        assert found.log_sum[i] == pytest.approx(want["log_sum"], rel=1e-12, abs=1e-9)
        assert found.ties[i] == len(want["best"])
        assert found.entropy[i] == pytest.approx(want["entropy"], abs=1e-9)
        alone, entries = enumerate_one(nets[k]), some.entries(np.arange(nodes.start, nodes.stop))
        np.testing.assert_allclose(found.zero[nodes], alone.zero, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.one[entries], alone.one, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.both[some.cells(edges)], alone.both, rtol=0, atol=1e-12)
        one = some.one(i)
        assert one.field.tolist() == nets[k].field.tolist()
        assert one.coupling.tolist() == nets[k].coupling.tolist()


@pytest.mark.parametrize("shape", zoo.SHAPES)
def test_the_kernel_for_bits_says_what_that_for_states_says(shape):
    for k in range(12):
        bits = zoo.random_network(shape, 1 + k % 9, np.random.default_rng([7, k]))
        both = beside([bits, plain.make([3], [], [np.zeros(3)], {}).network()])
        got, want = enumerate_all(both), enumerate_one(bits)
        n, scale = len(bits), max(1.0, abs(want.log_sum[0]))
        assert got.best[:n].tolist() == want.best.tolist()
        assert got.ties[0] == want.ties
        assert got.log_sum[0] == pytest.approx(want.log_sum[0], abs=1e-9 * scale)
        assert got.entropy[0] == pytest.approx(want.entropy[0], abs=1e-9)
        np.testing.assert_allclose(got.one[:n], want.one, rtol=0, atol=1e-9)
        np.testing.assert_allclose(got.both, want.both, rtol=0, atol=1e-9)


def test_too_many_configurations_are_refused():
    with pytest.raises(ValueError, match=r"2\^22\.5"):
        enumerate_one(plain.make([7] * 8, [], [np.zeros(7)] * 8, {}).network())


def test_the_last_configuration_that_fits():
    net = plain.make([2] * 22, [], [[0.0, 1.0]] * 22, {}).network()
    got = enumerate_one(net)
    assert got.best.tolist() == [1] * 22
    np.testing.assert_allclose(got.one, 1 / (1 + np.exp(-1)), atol=1e-12)


@given(plain.networks(most=5, states=4))
def test_value(net):
    found = net.network()
    for z in every(net)[:50]:
        assert found.value(np.array(z, int)) == pytest.approx(plain.plain_value(net, z), abs=1e-9)


@given(plain.networks(most=5, states=4), st.randoms())
def test_what_is_fixed_keeps_its_value(net, random):
    states = np.array(
        [random.randrange(s) if random.random() < 0.5 else -1 for s in net.size.tolist()], int
    )
    rest, kept = fix(net.network(), states)
    assert rest.a.tolist() == sorted(rest.a.tolist())
    assert len(kept) == len(rest.a)
    for z in every(rest)[:50]:
        whole = states.copy()
        whole[states < 0] = z
        assert rest.value(np.array(z, int)) == pytest.approx(
            plain.plain_value(net, whole.tolist()), abs=1e-9
        )


@given(plain.networks(most=5, states=4), st.randoms())
def test_fewer_states_keep_their_value(net, random):
    kept = [[0, *sorted({random.randrange(s) for _ in range(2)} - {0})] for s in net.size.tolist()]
    mask = [s in k for k, n in zip(kept, net.size, strict=True) for s in range(1, n)]
    whole, small = net.network(), restrict(net.network(), np.array(mask, bool))
    for z in every(small)[:50]:
        there = [k[s] for k, s in zip(kept, z, strict=True)]
        want = whole.value(np.array(there, int))
        assert small.value(np.array(z, int)) == pytest.approx(want, abs=1e-9)


@given(plain.networks(most=5, states=4), st.randoms())
def test_counted_in_changes(net, random):
    z = np.array([random.randrange(s) for s in net.size.tolist()], int)
    changes = turn(net.network(), z)
    for y in every(net)[:50]:
        y = np.array(y, int)
        moved = np.where(y == z, 0, np.where(y == 0, z, y))
        assert changes.value(moved) == pytest.approx(plain.plain_value(net, y.tolist()), abs=1e-9)


@given(plain.networks(most=5, states=4), st.randoms())
def test_figures_of_changes_are_turned_back(net, random):
    z = np.array([random.randrange(s) for s in net.size.tolist()], int)
    network, want = net.network(), plain.brute_force(net)
    of_changes = enumerate_one(turn(network, z))
    zero, one, both = turn_back(network, z, of_changes.one, of_changes.both)
    np.testing.assert_allclose(marginals(network, zero, one), want["marginal"], atol=1e-9)
    np.testing.assert_allclose(joints(network, zero, one, both), want["pair"], atol=1e-9)


def test_a_table_of_rows_and_columns_does_not_connect():
    row, column = np.array([1.0, 2.0, 5.0]), np.array([0.5, 4.0])
    net = plain.make([3, 2], [(0, 1)], [np.zeros(3), np.zeros(2)], {(0, 1): row[:, None] + column})
    pieces = split(net.network())
    assert len(pieces) == 2
    assert net.network().constant + pieces.one(0).value(np.array([2])) + pieces.one(1).value(
        np.array([1])
    ) == pytest.approx(9.25)


@given(plain.networks())
def test_pieces_hold_all_there_is(net):
    pieces, constant = split(net.network()), net.network().constant
    assert sorted(pieces.node.tolist()) == list(range(len(net)))
    for z in every(net)[:20]:
        value = constant
        for k in range(len(pieces)):
            nodes = pieces.node[pieces.node_start[k] : pieces.node_start[k + 1]]
            value += pieces.one(k).value(np.array(z, int)[nodes])
        assert value == pytest.approx(plain.plain_value(net, z), abs=1e-9)
