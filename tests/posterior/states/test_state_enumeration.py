"""The network of several states, and its enumeration, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from posterior.states import plain_states as plain
from spklink.posterior.inference.enumeration import enumerate_one as enumerate_bits
from spklink.posterior.states.enumeration import enumerate_all, enumerate_one
from spklink.posterior.states.network import beside, fix, folded, restrict, split, take, turned


def every(net):
    return list(np.ndindex(*net.size.tolist()))


@given(plain.networks())
def test_matches_brute_force(net):
    got, want = enumerate_one(net), plain.brute_force(net)
    plain.check(net, got, want)
    assert got.ties == len(want["best"])
    assert tuple(got.best.tolist()) == min(want["best"])


@given(st.lists(plain.networks(most=4, states=4), max_size=6), st.randoms())
def test_many_at_once_are_solved_as_if_alone(nets, random):
    chosen = np.array([k for k in range(len(nets)) if random.random() < 0.7], np.int64)
    some = take(beside(nets), chosen)
    found = enumerate_all(some)
    for i, k in enumerate(chosen):
        alone, nodes = enumerate_one(nets[k]), slice(*some.node_start[i : i + 2])
        edges = slice(some.edge_start[i], some.edge_start[i + 1])
        assert found.best[nodes].tolist() == alone.best.tolist()
        assert found.log_sum[i] == alone.log_sum[0]
        assert found.ties[i] == alone.ties
        assert found.entropy[i] == alone.entropy[0]
        states = slice(some.start[nodes.start], some.start[nodes.stop])
        assert found.marginal[states].tolist() == alone.marginal.tolist()
        cells = slice(some.table_start[edges.start], some.table_start[edges.stop])
        assert found.pair[cells].tolist() == alone.pair.tolist()
        one = some.one(i)
        assert one.unary.tolist() == nets[k].unary.tolist()
        assert one.table.tolist() == nets[k].table.tolist()


@pytest.mark.parametrize("shape", zoo.SHAPES)
def test_two_states_are_the_bits_of_the_two_state_engine(shape):
    for k in range(12):
        bits = zoo.random_network(shape, 1 + k % 9, np.random.default_rng([7, k]))
        got, want = enumerate_one(plain.of_bits(bits)), enumerate_bits(bits)
        scale = max(1.0, abs(want.log_sum[0]))
        assert got.best.tolist() == want.best.tolist()
        assert got.ties == want.ties
        assert got.log_sum[0] == pytest.approx(want.log_sum[0], abs=1e-9 * scale)
        assert got.entropy[0] == pytest.approx(want.entropy[0], abs=1e-9)
        np.testing.assert_allclose(got.marginal[1::2], want.one, rtol=0, atol=1e-9)


def test_too_many_configurations_are_refused():
    with pytest.raises(ValueError, match=r"2\^22\.5"):
        enumerate_one(plain.make([7] * 8, [], [np.zeros(7)] * 8, {}))


def test_the_last_configuration_that_fits():
    net = plain.make([2] * 22, [], [[0.0, 1.0]] * 22, {})
    got = enumerate_one(net)
    assert got.best.tolist() == [1] * 22
    np.testing.assert_allclose(got.marginal[1::2], 1 / (1 + np.exp(-1)), atol=1e-12)


@given(plain.networks(most=5, states=4))
def test_value(net):
    for z in every(net)[:50]:
        assert net.value(np.array(z, int)) == pytest.approx(plain.plain_value(net, z), abs=1e-9)


@given(plain.networks(most=5, states=4), st.randoms())
def test_what_is_fixed_keeps_its_value(net, random):
    states = np.array(
        [random.randrange(s) if random.random() < 0.5 else -1 for s in net.size.tolist()], int
    )
    rest, kept = fix(net, states)
    assert rest.a.tolist() == sorted(rest.a.tolist())
    assert len(kept) == len(rest.a)
    for z in every(rest)[:50]:
        whole = states.copy()
        whole[states < 0] = z
        assert rest.value(np.array(z, int)) == pytest.approx(net.value(whole), abs=1e-9)


@given(plain.networks(most=5, states=4), st.randoms())
def test_fewer_states_keep_their_value(net, random):
    kept = [sorted({random.randrange(s) for _ in range(2)}) for s in net.size.tolist()]
    mask = np.array([s in k for k, n in zip(kept, net.size, strict=True) for s in range(n)], bool)
    small = restrict(net, mask)
    for z in every(small)[:50]:
        whole = [k[s] for k, s in zip(kept, z, strict=True)]
        assert small.value(np.array(z, int)) == net.value(np.array(whole, int))


@given(plain.networks(most=5, states=4), st.randoms())
def test_counted_in_changes(net, random):
    z = np.array([random.randrange(s) for s in net.size.tolist()], int)
    changes, value = turned(net, z), net.value(z)
    assert changes.unary[changes.start[:-1] + z].tolist() == [0.0] * len(net)
    for y in every(net)[:50]:
        y = np.array(y, int)
        assert changes.value(y) == pytest.approx(net.value(y) - value, abs=1e-9)


@given(plain.networks(most=5, states=4))
def test_tables_that_couple_nothing_are_folded(net):
    folds = folded(net)
    for z in every(net)[:50]:
        z = np.array(z, int)
        assert folds.value(z) == pytest.approx(net.value(z), abs=1e-9)
    for e, (a, b) in enumerate(zip(net.a, net.b, strict=True)):
        table = folds.table[net.table_start[e] : net.table_start[e + 1]]
        if min(net.size[a], net.size[b]) == 1:
            assert not table.any()


def test_a_table_of_rows_and_columns_does_not_connect():
    row, column = np.array([1.0, 2.0, 5.0]), np.array([0.5, 4.0])
    net = plain.make([3, 2], [(0, 1)], [np.zeros(3), np.zeros(2)], {(0, 1): row[:, None] + column})
    pieces = split(net)
    assert len(pieces) == 2
    assert pieces.one(0).value(np.array([2])) + pieces.one(1).value(np.array([1])) == 9.0


@given(plain.networks())
def test_pieces_hold_all_there_is(net):
    pieces = split(net)
    assert sorted(pieces.node.tolist()) == list(range(len(net)))
    for z in every(net)[:20]:
        z = np.array(z, int)
        value = net.constant
        for k in range(len(pieces)):
            nodes = pieces.node[pieces.node_start[k] : pieces.node_start[k + 1]]
            value += pieces.one(k).value(z[nodes])
        assert value == pytest.approx(net.value(z), abs=1e-9)
