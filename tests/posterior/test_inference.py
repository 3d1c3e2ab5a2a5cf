"""One harness for all methods: random cliques of every shape against plain enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from spklink import SpklinkError, build_model, find_cliques, solve
from spklink.posterior.inference.beliefs import Optimum
from spklink.posterior.inference.blocks import find_blocks, solve_blocks
from spklink.posterior.inference.enumeration import enumerate_one
from spklink.posterior.inference.network import Network, fix, slots_of
from spklink.posterior.inference.plan import solve_network
from spklink.posterior.inference.simplify import is_mirrored, solve_in_pieces
from spklink.posterior.posterior import Options
from spklink.worlds import simulate
from spklink.worlds.scorers import gaussian_mu

SEED = 20140914


def cliques(count: int, *, most: int = 10, seed: int = SEED):
    rng = np.random.default_rng(seed)
    for k in range(count):
        shape = zoo.SHAPES[k % len(zoo.SHAPES)]
        yield shape, zoo.random_network(shape, int(rng.integers(1, most + 1)), rng)


def assert_exact(found, truth, network) -> None:
    size = max(1.0, abs(truth["log_sum"]))
    assert found.certainty == "exact"
    assert abs(found.log_sum[0] - truth["log_sum"]) < 1e-9 * size
    assert found.log_sum[0] == found.log_sum[1]
    assert np.abs(found.one - truth["one"]).max(initial=0.0) < 1e-9
    assert np.abs(found.both - truth["both"]).max(initial=0.0) < 1e-9
    assert abs(found.entropy[0] - truth["entropy"]) < 1e-9 * size
    value = network.value(found.best)
    if found.proved_optimal:
        assert value >= truth["best_value"] - 1e-9 * size
    if found.ties is not None:
        assert found.ties == len(truth["best"])


def assert_contains(found, truth) -> None:
    """The truth lies within every interval; rounding of the reference itself is allowed for."""
    slack = 1e-11
    for name in ("one", "both"):
        low, high = getattr(found, f"{name}_low"), getattr(found, f"{name}_high")
        assert (low <= truth[name] + slack).all()
        assert (truth[name] <= high + slack).all()
    size = slack * max(1.0, abs(truth["log_sum"]))
    assert found.log_sum[0] - size <= truth["log_sum"] <= found.log_sum[1] + size
    assert found.entropy[0] - size <= truth["entropy"] <= found.entropy[1] + size


def assert_proved_bits_are_right(found, truth) -> None:
    sure = np.flatnonzero(found.proved)
    bits = found.best[sure].tolist()
    assert any([x[t] for t in sure] == bits for x in truth["best"])


def test_the_planner_is_exact_on_small_cliques():
    for _, network in cliques(300):
        assert_exact(solve_network(network).beliefs, zoo.brute_force(network), network)


@pytest.mark.parametrize("method", ["enumerate", "trace", "tree", "blocks"])
def test_exact_methods_by_name(method):
    for _, network in cliques(200, seed=SEED + 1):
        found = solve_network(network, method=method).beliefs
        truth = zoo.brute_force(network)
        assert_exact(found, truth, network)
        assert_proved_bits_are_right(found, truth)


def test_blocks_are_exact():
    used = 0
    for _, network in cliques(300, seed=SEED + 2):

        def by_blocks(piece):
            nonlocal used
            cut, best = find_blocks(piece), enumerate_one(piece)
            used += len(cut.nodes) > 1
            return solve_blocks(piece, cut, enumerate_one, Optimum(best.best, best.proved))

        found = solve_in_pieces(network, by_blocks, small=1)
        assert_exact(found, zoo.brute_force(network), network)
    assert used > 50


def test_blocks_against_a_plain_search_for_articulation_points():
    rng = np.random.default_rng(3)
    for _ in range(100):
        network = zoo.random_network("tree", int(rng.integers(3, 14)), rng)
        n = len(network)
        cut = find_blocks(network)
        joints = {j for j in cut.joint if j >= 0}
        plain = {v for v in range(n) if pieces_without(network, v) > 1}
        assert joints == plain
        assert sorted(e for edges in cut.edges for e in edges) == list(range(len(network.a)))


def pieces_without(network: Network, v: int) -> int:
    left = set(range(len(network))) - {v}
    count = 0
    while left:
        wave, count = [left.pop()], count + 1
        while wave:
            u = wave.pop()
            near = {int(b) for a, b in zip(network.a, network.b, strict=True) if a == u}
            near |= {int(a) for a, b in zip(network.a, network.b, strict=True) if b == u}
            wave += near & left
            left -= near
    return count


def test_certified_intervals_contain_the_truth():
    issued = 0
    for _, network in cliques(400, seed=SEED + 3):
        truth = zoo.brute_force(network)
        try:
            found = solve_network(network, method="certified").beliefs
        except SpklinkError as error:
            assert "no certificate" in str(error)  # noqa: PT017
            continue
        issued += 1
        assert_contains(found, truth)
        assert_proved_bits_are_right(found, truth)
    assert issued > 150


def test_certified_intervals_are_narrow_where_scores_are_good():
    rng = np.random.default_rng(SEED + 4)
    widths = []
    for k in range(120):
        network = zoo.random_network(zoo.SHAPES[k % len(zoo.SHAPES)], 9, rng, mu=4.36)
        try:
            found = solve_network(network, method="certified").beliefs
        except SpklinkError:
            continue
        widths.append((found.one_high - found.one_low).mean())
    assert len(widths) > 90
    assert np.mean(widths) <= 1e-3


def test_sampled_intervals_contain_the_truth_at_their_rate():
    figures = misses = 0
    for k, (_, network) in enumerate(cliques(60, most=8, seed=SEED + 5)):
        truth = zoo.brute_force(network)
        try:
            found = solve_network(network, method="sample", seed=k).beliefs
        except SpklinkError as error:
            assert "does not settle" in str(error)  # noqa: PT017
            continue
        for name in ("one", "both"):
            low, high = getattr(found, f"{name}_low"), getattr(found, f"{name}_high")
            outside = (truth[name] < low - 1e-12) | (truth[name] > high + 1e-12)
            figures, misses = figures + outside.size, misses + int(outside.sum())
    assert figures > 300
    assert misses <= 0.01 * figures + 4 * np.sqrt(0.01 * figures)


def test_estimates_promise_nothing():
    for _, network in cliques(60, seed=SEED + 6):
        found = solve_network(network, method="bp").beliefs
        assert_contains(found, zoo.brute_force(network))
        assert ((found.one >= 0) & (found.one <= 1)).all()


def test_methods_agree_beyond_enumeration():
    rng = np.random.default_rng(SEED + 7)
    for size in (14, 18, 22):
        for shape in ("star", "tree", "two_speakers", "centre"):
            network = zoo.random_network(shape, size, rng, mu=1.0)
            one = solve_network(network, method="trace").beliefs
            two = solve_network(network, method="tree").beliefs
            assert np.allclose(one.one, two.one, atol=1e-9)
            assert np.allclose(one.both, two.both, atol=1e-9)
            assert one.log_sum[0] == pytest.approx(two.log_sum[0], rel=1e-12)
            assert network.value(one.best) == pytest.approx(network.value(two.best), rel=1e-12)


def test_slots_are_edges_seen_from_both_ends():
    for _, network in cliques(60, seed=SEED + 11):
        for uncoupled in (False, True):
            slots = slots_of(network, uncoupled=uncoupled)
            ends = {(int(a), int(b)) for a, b in zip(slots.node, slots.other, strict=True)}
            kept = (network.coupling != 0.0) | uncoupled
            pairs = zip(network.a[kept].tolist(), network.b[kept].tolist(), strict=True)
            assert ends == {end for a, b in pairs for end in ((a, b), (b, a))}
            assert (slots.node[slots.mirror] == slots.other).all()
            assert (slots.edge[slots.mirror] == slots.edge).all()
            assert (np.repeat(np.arange(len(network)), np.diff(slots.start)) == slots.node).all()


def test_mirror_symmetry_is_seen_and_undone():
    rng = np.random.default_rng(SEED + 9)
    for size in (2, 5, 9):
        network = zoo.random_network("two_speakers", size, rng)
        assert is_mirrored(network)
        found = solve_network(network, method="certified").beliefs
        truth = zoo.brute_force(network)
        assert np.allclose(found.one, 0.5)
        assert_contains(found, truth)
        assert not is_mirrored(zoo.random_network("star", size, rng))


def test_fixing_nodes_is_conditioning():
    rng = np.random.default_rng(SEED + 10)
    for _ in range(50):
        network = zoo.random_network("star", 7, rng)
        bits = rng.choice([-1, 0, 1], 7).astype(np.int8)
        rest, kept = fix(network, bits)
        assert len(rest) == (bits < 0).sum()
        assert len(kept) == len(rest.coupling)
        x = rng.integers(0, 2, len(rest)).astype(np.int8)
        full = bits.copy()
        full[bits < 0] = x
        assert rest.value(x) == pytest.approx(network.value(full))


# --- a whole database ----------------------------------------------------------------------------


def model_of(**settings):
    made = simulate.simulate(**settings)
    cliques_ = find_cliques(made.conversations)
    return made, build_model(made.conversations, cliques_, made.links, made.llr)


def test_same_bytes_for_any_number_of_workers():
    _, model = model_of(shape="network", conversations=400, eer=10.0)
    one, two = (solve(model, options=Options(workers=n)) for n in (1, 2))
    for name in ("exchanged", "exchanged_low", "exchanged_high", "both_exchanged", "best"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_learning_a_channel_of_a_large_clique():
    made, model = model_of(shape="network", conversations=300, eer=7.0)
    posterior = solve(model)
    m = int(np.argmin(np.abs(posterior.exchanged - 0.5)))
    bit = int(made.truth[m])
    learned = posterior.given({m: bit})
    bits = np.full(300, -1, np.int8)
    bits[m] = bit
    again = solve(model, bits)
    assert np.array_equal(learned.exchanged, again.exchanged)
    assert learned.entropy_bits[0] < posterior.entropy_bits[0]


def test_real_calls_sized_clique_has_an_honest_answer(real_calls):
    """The shape of the 420 real calls with simulated scores: never exact, so intervals."""
    from spklink import read_conversations
    from spklink.database.links import find_links, needed_sides
    from spklink.database.sides import speakers_on

    table = read_conversations(real_calls / "conversations.csv")
    links = find_links(table)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    on_side = speakers_on(table, truth)
    one, two = needed_sides(links, table.sides)
    mu = gaussian_mu(0.07)
    llr = np.where(on_side[one] == on_side[two], mu, -mu)
    llr = llr + np.sqrt(2 * mu) * rng.standard_normal(len(llr))
    model = build_model(table, find_cliques(table), links, llr)
    posterior = solve(model)
    assert posterior.certainty[0] == "certified"
    assert posterior.proved_optimal()[0]
    assert (posterior.best == truth).all()
