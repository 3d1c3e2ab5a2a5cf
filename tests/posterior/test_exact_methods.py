"""The trace and the tree method against brute force, against enumeration and against each other."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import zoo
from spklink.posterior.inference.beliefs import EXACT, Beliefs
from spklink.posterior.inference.elimination import elimination
from spklink.posterior.inference.enumeration import enumerate_all
from spklink.posterior.inference.network import Network, Networks
from spklink.posterior.inference.trace import LIMIT, trace, trace_cost
from spklink.posterior.inference.tree import find_bags, optimum, tree, tree_cost

METHODS = {"trace": trace, "tree": tree}
CLOSE = 1e-9


def make(field, edges, coupling, constant=0.0) -> Network:
    a, b = np.array(edges, np.int32).reshape(-1, 2).T
    return Network(np.array(field, float), a, b, np.array(coupling, float), constant)


def glass(n: int, scale: float, rng: np.random.Generator, small: float = 0.0) -> Network:
    """Every pair coupled, signs at random; a share `small` of all terms is of size 1."""
    edges = list(itertools.combinations(range(n), 2))
    size = np.where(rng.random(n + len(edges)) < small, 1.0, scale)
    terms = rng.normal(size=n + len(edges)) * size
    return make(terms[:n], edges, terms[n:], constant=3.25)


def one_clique(net: Network) -> Networks:
    n, e = len(net), len(net.coupling)
    return Networks(
        node=np.arange(n),
        node_start=np.array([0, n]),
        edge=np.arange(e),
        edge_start=np.array([0, e]),
        a=net.a,
        b=net.b,
        field=net.field,
        coupling=net.coupling,
        constant=np.array([net.constant]),
        bits=np.full(n, -1, np.int8),
    )


@functools.cache
def small_cliques(shape: str) -> list[tuple[Network, dict]]:
    cliques = []
    for k in range(40):
        rng = np.random.default_rng([zoo.SHAPES.index(shape), k])
        net = zoo.random_network(shape, 1 + k % 8, rng)
        cliques.append((net, zoo.brute_force(net)))
    return cliques


def check(net: Network, got: Beliefs, log_sum, one, both, entropy, best_value) -> None:
    scale = max(1.0, abs(log_sum))
    assert got.certainty == EXACT
    assert got.log_sum[0] == got.log_sum[1] == pytest.approx(log_sum, abs=CLOSE * scale)
    np.testing.assert_allclose(got.one, one, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(got.both, both, rtol=0, atol=CLOSE)
    assert got.entropy[0] == pytest.approx(entropy, abs=CLOSE)
    assert got.proved_optimal
    assert net.value(got.best) == pytest.approx(best_value, abs=CLOSE * scale)


def check_pair(net: Network, got: Beliefs, want: Beliefs) -> None:
    value = net.value(want.best)
    check(net, got, want.log_sum[0], want.one, want.both, want.entropy[0], value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", zoo.SHAPES)
def test_matches_brute_force(shape: str, method: str) -> None:
    for net, want in small_cliques(shape):
        figures = [want[k] for k in ("log_sum", "one", "both", "entropy", "best_value")]
        check(net, METHODS[method](net), *figures)


@pytest.mark.parametrize("shape", zoo.SHAPES)
def test_trace_gives_the_first_optimum_in_table_order(shape: str) -> None:
    for net, want in small_cliques(shape):
        if shape != "huge_couplings":  # there, rounding decides what is a tie
            assert tuple(trace(net).best) == min(want["best"])


@pytest.mark.parametrize("method", METHODS)
def test_matches_enumeration_of_twelve_nodes(method: str) -> None:
    for k, shape in enumerate(zoo.SHAPES * 3):
        net = zoo.random_network(shape, 12, np.random.default_rng([12, k]))
        want = enumerate_all(one_clique(net))
        figures = (want.log_sum[0], want.one, want.both, want.entropy[0], want.best_value[0])
        check(net, METHODS[method](net), *figures)


@pytest.mark.parametrize("size", range(13, 25))
def test_trace_and_tree_agree(size: int) -> None:
    for k, shape in enumerate(zoo.SHAPES):
        net = zoo.random_network(shape, size, np.random.default_rng([size, k]))
        bags = find_bags(net, 19 if shape == "star" else 16)
        if bags.fits:
            check_pair(net, trace(net), tree(net, bags))
        else:
            assert size > 16


@pytest.mark.parametrize("method", METHODS)
def test_large_and_small_couplings_of_either_sign(method: str) -> None:
    for k, (n, scale, small) in enumerate(
        itertools.product((3, 6, 9, 12), (30.0, 300.0, 1e4), (0.0, 0.5, 0.8))
    ):
        net = glass(n, scale, np.random.default_rng([99, k]), small)
        want = enumerate_all(one_clique(net))
        figures = (want.log_sum[0], want.one, want.both, want.entropy[0], want.best_value[0])
        check(net, METHODS[method](net), *figures)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_large_couplings_of_eighteen_nodes(scale: float) -> None:
    net = glass(18, scale, np.random.default_rng(5), 0.3)
    check_pair(net, trace(net), tree(net))


def test_tied_pairs_are_all_counted() -> None:
    """Pairs bound by 1e4 and free otherwise: far beyond exp's range, and 2^pairs optima."""
    pairs = [(k, k + 6) for k in range(6)]
    net = make(np.full(12, -5e3), pairs, np.full(6, 1e4))
    for method in METHODS.values():
        got = method(net)
        assert got.log_sum[0] == pytest.approx(6 * np.log(2), abs=CLOSE)
        assert got.entropy[0] == pytest.approx(6 * np.log(2), abs=CLOSE)
        np.testing.assert_allclose(got.both, 0.5, atol=CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_no_node_one_node_and_no_edges(method: str) -> None:
    check(make([], [], [], 2.5), METHODS[method](make([], [], [], 2.5)), 2.5, [], [], 0.0, 2.5)
    for n in (1, 2, 5, 14):
        field = np.linspace(-3.0, 2.0, n)
        p = expit(field)
        entropy = float(-(p * np.log(p) + (1 - p) * np.log1p(-p)).sum())
        net = make(field, [], [], -1.0)
        log_sum, top = np.logaddexp(0, field).sum() - 1.0, np.maximum(field, 0).sum() - 1.0
        check(net, METHODS[method](net), log_sum, p, [], entropy, top)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_known_at_all(method: str) -> None:
    edges = list(itertools.combinations(range(15), 2))
    net = make(np.zeros(15), edges, np.zeros(len(edges)))
    got = METHODS[method](net)
    check(net, got, 15 * np.log(2), np.full(15, 0.5), np.full(105, 0.25), 15 * np.log(2), 0.0)
    assert not got.best.any()  # the first of all


@pytest.mark.parametrize("method", METHODS)
def test_repeated_edges_add_up(method: str) -> None:
    twice = make([0.5, -1.0, 0.2], [(0, 1), (0, 1), (1, 2)], [1.0, 0.7, -2.0])
    once = make([0.5, -1.0, 0.2], [(0, 1), (1, 2)], [1.7, -2.0])
    got, want = METHODS[method](twice), METHODS[method](once)
    assert got.log_sum[0] == pytest.approx(want.log_sum[0], abs=CLOSE)
    np.testing.assert_allclose(got.both, want.both[[0, 0, 1]], atol=CLOSE)


def test_any_seed_gives_the_same_answer() -> None:
    rng = np.random.default_rng(4)
    for scale in (1.0, 30.0, 1e3):
        net = glass(14, scale, rng)
        want = trace(net)
        for seed in range(5):
            check_pair(net, trace(net, seed=seed), want)


def test_optimum_of_ambiguous_cliques() -> None:
    """Where the optimum has little probability, the trace method has to search for it."""
    for seed in range(20):
        net = glass(15, 0.7, np.random.default_rng([3, seed]))
        got = trace(net, seed=seed)
        assert net.value(got.best) == pytest.approx(net.value(optimum(net)), abs=CLOSE)
        assert np.exp(net.value(got.best) - got.log_sum[0]) < 0.5


def test_same_bytes_twice_and_on_any_number_of_threads() -> None:
    program = (
        "import sys, numpy as np, zoo, hashlib\n"
        "from spklink.posterior.inference.trace import trace\n"
        "net = zoo.random_network('star', 21, np.random.default_rng(1), mu=1.0)\n"
        "for _ in range(2):\n"
        "    r = trace(net, seed=3)\n"
        "    print(hashlib.sha256(np.r_[r.one, r.both, r.log_sum, r.entropy]).hexdigest())\n"
    )
    digests = set()
    for threads in "12":
        names = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        env = {**os.environ, **names, "PYTHONPATH": str(Path(zoo.__file__).parent)}
        run = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True
        )
        digests.update(run.stdout.split())
    assert len(digests) == 1
    net = zoo.random_network("tree", 60, np.random.default_rng(1))
    first, second = (
        hashlib.sha256(np.r_[r.one, r.both, r.log_sum]) for r in (tree(net), tree(net))
    )
    assert first.digest() == second.digest()


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_hub_with_many_leaves(scale: float) -> None:
    """The product of the leaves' messages is far outside the range of floating point."""
    rng, n = np.random.default_rng(8), 3000
    field, coupling = rng.normal(size=n) * scale, rng.normal(size=n - 1) * scale
    net = make(field, [(0, k) for k in range(1, n)], coupling)
    free, bound = field[1:], field[1:] + coupling
    log_sums = np.logaddexp(0, free).sum(), field[0] + np.logaddexp(0, bound).sum()
    got = tree(net)
    hub = expit(log_sums[1] - log_sums[0])
    assert got.log_sum[0] == pytest.approx(np.logaddexp(*log_sums), rel=1e-12)
    assert got.one[0] == pytest.approx(hub, abs=CLOSE)
    np.testing.assert_allclose(got.both, hub * expit(bound), atol=CLOSE)
    top = max(np.maximum(free, 0).sum(), field[0] + np.maximum(bound, 0).sum())
    assert net.value(got.best) == pytest.approx(top, rel=1e-12)


def test_entropy_of_a_subtree_against_the_optimum() -> None:
    """2^3000 configurations on one side outweigh an optimum that is better by 2000."""
    n = 3001
    net = make([2000.0] + [0.0] * (n - 1), [(0, k) for k in range(1, n)], [-800.0] * (n - 1))
    got = tree(net)
    assert got.best[0] == 1
    assert got.log_sum[0] == pytest.approx(3000 * np.log(2), rel=1e-12)
    assert got.one[0] < 1e-30
    np.testing.assert_allclose(got.one[1:], 0.5, atol=CLOSE)


@pytest.mark.parametrize("scale", [2.0, 1e3])
def test_long_chain_in_any_node_order(scale: float) -> None:
    rng, n = np.random.default_rng(6), 4000
    order = rng.permutation(n)
    edges = np.sort(np.column_stack([order[:-1], order[1:]]), axis=1)
    net = make(rng.normal(size=n) * scale, edges, rng.normal(size=n - 1) * scale)
    ahead, back = np.zeros((n, 2)), np.zeros((n, 2))  # log sums of all before, and all after
    field, link = net.field[order], net.coupling
    for k in range(1, n):
        zero, one = ahead[k - 1, 0], ahead[k - 1, 1] + field[k - 1]
        ahead[k] = np.logaddexp(zero, one), np.logaddexp(zero, one + link[k - 1])
        j = n - 1 - k
        zero, one = back[j + 1, 0], back[j + 1, 1] + field[j + 1]
        back[j] = np.logaddexp(zero, one), np.logaddexp(zero, one + link[j])
    log_odds = ahead[:, 1] + back[:, 1] + field - ahead[:, 0] - back[:, 0]
    got = tree(net)
    log_sum = np.logaddexp(back[0, 0], back[0, 1] + field[0])
    assert got.log_sum[0] == pytest.approx(log_sum, rel=1e-12)
    np.testing.assert_allclose(got.one[order], expit(log_odds), atol=CLOSE)


def test_width_of_long_and_of_separate_graphs() -> None:
    n = 30000
    band = [(k, k + d) for d in (1, 2, 3) for k in range(n - 3)]
    steps = elimination(make(np.zeros(n), band, np.zeros(len(band))))
    assert (steps.width, steps.complete) == (3, True)
    pairs = [(2 * k, 2 * k + 1) for k in range(n // 2)]
    net = make(np.zeros(n), pairs, np.ones(n // 2))
    assert elimination(net).width == 1
    assert tree(net).log_sum[0] == pytest.approx(n / 2 * np.log(3 + np.e), rel=1e-12)


def naive_order(net: Network, weight: list[int]) -> list[tuple[int, list[int]]]:
    near = {v: set() for v in range(len(net))}
    for a, b in zip(net.a.tolist(), net.b.tolist(), strict=True):
        near[a].add(b)
        near[b].add(a)

    def rank(v: int) -> tuple[int, int, int]:
        pairs = itertools.combinations(near[v], 2)
        fill = sum(weight[a] * weight[b] for a, b in pairs if b not in near[a])
        return fill, sum(weight[u] for u in near[v]), v

    steps = []
    while near:
        v = min(near, key=rank)
        scope = near.pop(v)
        for u in scope:
            near[u] |= scope - {u}
            near[u] -= {v}
        steps.append((v, scope))
    step = {v: t for t, (v, _) in enumerate(steps)}
    return [(v, sorted(scope, key=step.__getitem__)) for v, scope in steps]


@pytest.mark.parametrize("heaviest", [1, 12])
@pytest.mark.parametrize("seed", range(25))
def test_order_is_that_of_least_fill(seed: int, heaviest: int) -> None:
    rng = np.random.default_rng([11, seed])
    n = int(rng.integers(1, 45))
    weight = np.random.default_rng(seed).integers(1, 1 + heaviest, n)
    edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < 3.5 / n]
    net = make(np.zeros(n), edges, np.zeros(len(edges)))
    limit = 44 * heaviest
    steps, want = elimination(net, limit=limit, weight=weight), naive_order(net, weight.tolist())
    scopes = np.split(steps.scope, steps.scope_start[1:-1])
    assert [(v, scope.tolist()) for v, scope in zip(steps.order, scopes, strict=True)] == want
    assert steps.complete
    assert steps.width == max(weight[scope].sum() for _, scope in want)
    limit = steps.width - 1
    stopped = elimination(net, limit=limit, weight=weight) if steps.width else None
    assert stopped is None or (not stopped.complete and stopped.width >= steps.width)
    assert np.diff(steps.offset).tolist() == [2 ** len(scope) for _, scope in want]


def test_too_wide_is_refused_without_work() -> None:
    dense = glass(400, 1.0, np.random.default_rng(0))
    assert not elimination(dense).complete
    core = glass(30, 1.0, np.random.default_rng(0))  # few edges a node in all, many in the core
    tail = np.column_stack([np.arange(29, 2000), np.arange(30, 2001)])
    edges = np.concatenate([np.column_stack([core.a, core.b]), tail])
    net = make(np.zeros(2001), edges, np.zeros(len(edges)))
    steps = elimination(net)
    assert not steps.complete
    assert steps.width > 22
    assert tree_cost(find_bags(net)) == (np.inf, np.inf)
    with pytest.raises(ValueError, match="wider than 22"):
        tree(net)
    with pytest.raises(ValueError, match="at most"):
        trace(make(np.zeros(LIMIT + 1), [], []))


def test_costs_grow_as_the_work_does() -> None:
    operations, room = zip(*(trace_cost(np.full(n, 2)) for n in range(37)), strict=True)
    assert all(np.diff(operations) > 0)
    assert all(np.diff(room) > 0)
    assert operations[36] / operations[35] == pytest.approx(2.0, rel=0.01)
    assert room[34] < 2**30
    narrow, wide = (find_bags(glass(n, 1.0, np.random.default_rng(0))) for n in (15, 20))
    assert tree_cost(wide)[0] / tree_cost(narrow)[0] == pytest.approx(32, rel=0.2)
    assert tree_cost(wide)[1] / tree_cost(narrow)[1] == pytest.approx(32, rel=0.2)
