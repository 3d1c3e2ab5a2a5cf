"""Chains over partitions, held against the exact posterior; a chain that errs is seen to."""

from __future__ import annotations

import numpy as np
import pytest

from plain_partitions import weigh
from spklink.partitions import chains
from spklink.partitions.agglomerative import LINKAGES, agglomerate, merge_all
from spklink.partitions.exact import solve_exactly
from spklink.partitions.graph import Graph, link_graph
from spklink.partitions.items import make_items, make_problem
from spklink.partitions.neighbours import find_neighbours
from spklink.partitions.prior import read_prior
from spklink.partitions.sampling import sample
from spklink.partitions.solve import How, solve_partition
from spklink.posterior.likelihood import Weight
from spklink.recognizers.products import Cosine, all_pairs

SWEEPS = 3000


def voices(sides, people, seed, mu=2.5):
    """Calibrated log-likelihood-ratios of sides of so many people."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, people, sides)
    llr = rng.normal(np.where(who[:, None] == who, mu, -mu), np.sqrt(2 * mu), (sides, sides))
    return np.triu(llr, 1) + np.triu(llr, 1).T, who


def calls_apart(sides):
    return np.arange(sides).reshape(-1, 2)


CASES = [
    (12, None, "uniform", False),
    (14, None, "crp:2", True),
    (12, 4, "uniform", True),
    (13, None, "pitman-yor:1,0.5", False),
    (16, None, "uniform", True),
    (18, None, "crp:2", False),
    (12, 8, "uniform", False),  # more than voices say, so that chains must be drawn there
]


def off_by(found, whole):
    """Share of pairs outside their 99 % interval, and the greatest error."""
    low, high = found.ends(found.pairs, found.error)
    upper = np.triu_indices(len(low), 1)
    outside = (whole.pairs < low - 1e-9) | (whole.pairs > high + 1e-9)
    return outside[upper].mean(), np.abs(found.pairs - whole.pairs)[upper].max()


def case_of(sides, speakers, prior, calls):
    llr, _ = voices(sides, 4, sides)
    items = make_items(llr, apart=calls_apart(sides) if calls else None)
    return make_problem(items, Weight(), read_prior(prior), speakers)


@pytest.mark.parametrize(("sides", "speakers", "prior", "calls"), CASES)
def test_chains_find_the_exact_posterior_within_their_error(sides, speakers, prior, calls):
    problem = case_of(sides, speakers, prior, calls)
    whole = solve_exactly(problem)
    found = sample(problem, sweeps=SWEEPS, speakers=speakers, seed=1)
    outside, error = off_by(found, whole)
    assert found.trusted, (found.rhat, found.effective)
    assert outside <= 0.04
    assert error < 0.06
    low, high = found.ends(found.count, found.count_error)
    assert ((whole.count >= low - 1e-9) & (whole.count <= high + 1e-9)).mean() > 0.9
    assert found.best_value <= whole.best_value + 1e-9


@pytest.mark.parametrize("broken", ["one way", "too heavy"])
def test_a_biased_chain_is_seen(broken, monkeypatch):
    """Were a step wrong, the test above would fail."""
    problem = case_of(12, None, "uniform", False)
    items, whole = problem.items, solve_exactly(problem)

    def sweep(rng, sweeps, near, label, blocks, tables, state):
        *given, numbers = tables
        if broken == "one way":  # splits are accepted too often: the way back is not counted
            numbers = numbers + 0.7 * np.arange(len(numbers))
        else:  # the evidence of every block counts for more
            given[4] = given[4] * 1.25
        return plain(rng, sweeps, near, label, blocks, (*given, numbers), state)

    plain = chains.sweep
    monkeypatch.setattr(chains, "sweep", sweep)
    outside, _ = off_by(sample(problem, sweeps=SWEEPS, seed=1), whole)
    assert len(items) == 12
    assert outside > 0.1


def test_the_same_seed_gives_the_same_chains_on_any_number_of_threads():
    problem = case_of(12, None, "uniform", True)
    one, two = (sample(problem, sweeps=200, seed=3, threads=t) for t in (1, 2))
    assert (one.pairs == two.pairs).all()
    assert (one.count == two.count).all()


def plain_agglomerate(llr, apart, linkage):
    """All merges by looking at every pair of blocks every time."""
    blocks = [[i] for i in range(len(llr))]
    merits = []

    def value(block):
        n = len(block)
        return 2 / n * sum(llr[i][j] for i in block for j in block if i < j) if n > 1 else 0.0

    def merit(a, b):
        if any({i, j} in apart for i in a for j in b):
            return -np.inf
        across = [llr[i][j] for i in a for j in b]
        if linkage == "gain":
            return value(a + b) - value(a) - value(b)
        return {"average": np.mean, "complete": min, "single": max}[linkage](across)

    while len(blocks) > 1:
        best = max(
            (merit(a, b), -i, -j)
            for i, a in enumerate(blocks)
            for j, b in enumerate(blocks)
            if i < j
        )
        if best[0] == -np.inf:
            break
        i, j = -best[1], -best[2]
        merits.append(best[0])
        blocks[i] = blocks[i] + blocks.pop(j)
    return merits, blocks


@pytest.mark.parametrize("linkage", LINKAGES)
def test_linking_equals_plain_linking(linkage):
    for seed in range(6):
        llr, _ = voices(14, 4, seed)
        apart = calls_apart(14)
        found = merge_all(make_problem(make_items(llr, apart=apart)), linkage)
        merits, blocks = plain_agglomerate(llr, [set(p) for p in apart.tolist()], linkage)
        assert np.allclose(found.merit, merits)
        label = found.label(len(found.one))
        assert sorted(map(sorted, blocks)) == sorted(
            np.flatnonzero(label == k).tolist() for k in range(label.max() + 1)
        )
        assert not any(label[a] == label[b] for a, b in apart)


def put_back(llr, label, i, apart):
    """How probable each block is for one side, given where all others are; a new one is -1."""
    where = {}
    for block in sorted({*np.delete(label, i).tolist(), -1}):
        moved = [*label[:i].tolist(), block, *label[i + 1 :].tolist()]
        rules = {"weight": lambda n: 2 / n, "prior": ("crp", 0.7, 0.0), "apart": apart}
        where[block] = np.exp(weigh(llr, moved, **rules))
    return {block: weight / sum(where.values()) for block, weight in where.items()}


def test_linked_sides_are_as_probable_as_putting_each_back_says():
    for seed in range(4):
        llr, _ = voices(8, 4, seed, mu=0.7)
        apart = calls_apart(8)
        problem = make_problem(make_items(llr, apart=apart), Weight(), read_prior("crp:0.7"))
        found = solve_partition(problem, How("agglomerative", floor=0.0))
        label = found.label
        back = [put_back(llr, label, i, apart.tolist()) for i in range(8)]
        lone = [(label == k).sum() == 1 for k in label]
        own = [back[i][-1 if lone[i] else label[i]] for i in range(8)]
        expected = [
            own[i] * own[j]
            if label[i] == label[j]
            else max(back[i].get(label[j], 0.0) * own[j], back[j].get(label[i], 0.0) * own[i])
            for i, j in zip(found.one, found.two, strict=True)
        ]
        assert len(expected) == 8 * 7 // 2
        assert found.pair.value == pytest.approx(expected)
        assert found.side.value[lone] == pytest.approx(np.array(own)[lone])


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
def test_linking_equals_scipy(linkage):
    from scipy.cluster.hierarchy import fcluster
    from scipy.cluster.hierarchy import linkage as scipy_linkage
    from scipy.spatial.distance import squareform

    llr, _ = voices(40, 8, 2)
    far = 50.0 - llr
    np.fill_diagonal(far, 0.0)
    theirs = fcluster(scipy_linkage(squareform(far), linkage), 49.0, "distance")
    ours = agglomerate(make_problem(make_items(llr)), linkage, threshold=1.0)
    assert ((theirs[:, None] == theirs) == (ours[:, None] == ours)).all()


def test_a_number_of_speakers_is_reached():
    llr, who = voices(30, 3, 0, mu=12.0)
    problem = make_problem(make_items(llr), speakers=5)
    assert len(set(agglomerate(problem, speakers=5).tolist())) == 5
    free = agglomerate(make_problem(make_items(llr)), "average")
    assert ((free[:, None] == free) == (who[:, None] == who)).all()


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("speakers", [None, 6])
def test_a_graph_of_all_pairs_is_linked_as_the_pairs_are(linkage, speakers):
    for seed in range(5):
        llr, _ = voices(30, 5, seed)
        one, two = np.triu_indices(30, 1)
        problem = make_problem(make_items(llr, apart=calls_apart(30)))
        graph = Graph(30, one, two, llr[one, two], -99.0, calls_apart(30))
        tables = problem.pair_weight, problem.block_prior
        found = link_graph(graph, *tables, linkage, speakers=speakers)
        assert (found == agglomerate(problem, linkage, speakers=speakers)).all()


def test_pairs_that_were_not_kept_count_as_the_rest():
    llr, _ = voices(30, 5, 1)
    rest = float(llr[llr < -3.0].mean())
    filled = np.where(llr < -3.0, rest, llr)
    one, two = np.nonzero(np.triu(filled > rest, 1))
    problem = make_problem(make_items(filled))
    graph = Graph(30, one, two, filled[one, two], rest, np.zeros((0, 2), np.int64))
    for linkage in ("gain", "average", "complete"):
        found = link_graph(graph, problem.pair_weight, problem.block_prior, linkage)
        assert (found == agglomerate(problem, linkage)).all()


def test_neighbours_are_all_pairs_above_the_floor():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2500, 12)).astype(np.float32)
    product = Cosine(np.zeros(12, np.float32))
    every = all_pairs(product, vectors)
    found = find_neighbours(product, vectors, 0.7)
    one, two = np.nonzero(np.triu(every > 0.7, 1))
    assert set(zip(one.tolist(), two.tolist(), strict=True)) == set(
        zip(found.one.tolist(), found.two.tolist(), strict=True)
    )
    assert abs(found.sample.mean() - every[np.triu_indices(2500, 1)].mean()) < 0.03
    fewer = find_neighbours(product, vectors, 0.0, most=20_000)
    assert len(fewer) <= 20_000
    assert fewer.floor > 0.0
    assert len(fewer) == int((np.triu(every, 1) > fewer.floor).sum())
