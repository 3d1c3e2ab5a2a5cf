"""The exact posterior against its definition in plain Python, and what must not change it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain
from spklink import SpklinkError, build_model, find_cliques, find_links, solve
from spklink.database.conversations import make_conversations
from spklink.database.labels import Labels
from spklink.database.sides import squares
from spklink.posterior.likelihood import Weight, combine_prior, join, restrict

PEOPLE = "abcde"
calls_strategy = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)).filter(lambda c: c[0] != c[1]),
    min_size=1,
    max_size=6,
)
weights = st.sampled_from([("paper", None), ("chain", None), ("book", 0.0), ("book", 0.7)])


class Case:
    """A small database with a random score for every two sides."""

    def __init__(self, calls, seed, scale=2.0, rule=("paper", None)):
        self.calls, self.weight = calls, Weight(*rule)
        self.table = make_conversations((f"c{k}", a, b) for k, (a, b) in enumerate(calls))
        self.links = find_links(self.table, consecutive=self.weight.consecutive)
        rng = np.random.default_rng(seed)
        n = 2 * len(calls)
        matrix = scale * rng.standard_normal((n, n))
        self.matrix = (matrix + matrix.T) / 2

    def score(self, one, two):
        return float(self.matrix[2 * one[0] + one[1], 2 * two[0] + two[1]])

    def llr(self):
        first, second = self.links.first, self.links.second
        return np.array(
            [
                [[self.score((i, u), (j, v)) for v in (0, 1)] for u in (0, 1)]
                for i, j in zip(first, second, strict=True)
            ]
        ).ravel()

    def solve(self, known=None):
        prior = combine_prior(self.table, known)
        cliques = find_cliques(self.table, prior.clamped >= 0)
        model = build_model(
            self.table, cliques, self.links, self.llr(), weight=self.weight, prior=prior
        )
        return solve(model)


def check_against(posterior, joint, case):
    """Everything a posterior says, held against the joint distribution of all conversations."""
    cliques = posterior.model.cliques
    size = len(case.calls)
    exchanged = [sum(p for x, p in joint.items() if x[m]) for m in range(size)]
    assert np.allclose(posterior.exchanged, exchanged, atol=1e-10)
    for e, (i, j) in enumerate(zip(case.links.first, case.links.second, strict=True)):
        both = sum(p for x, p in joint.items() if x[i] and x[j])
        assert abs(posterior.both_exchanged[e] - both) < 1e-10
    assert abs(posterior.entropy_bits.sum() - plain.entropy_bits(joint)) < 1e-9
    best = joint[tuple(posterior.best.tolist())]
    assert best >= max(joint.values()) - 1e-9
    assert abs(posterior.best_probability()[0].prod() - best) < 1e-10
    for k in range(len(cliques)):
        members = cliques.members(k)
        marginal = {}
        for x, p in joint.items():
            part = tuple(x[m] for m in members)
            marginal[part] = marginal.get(part, 0.0) + p
        bits, chance = posterior.best_configurations(k, 4)
        assert np.allclose(chance, sorted(marginal.values(), reverse=True)[:4], atol=1e-10)
        assert np.allclose(chance, [marginal[tuple(b)] for b in bits.tolist()], atol=1e-10)
        mirror = tuple(1 - b for b in posterior.best[members].tolist())
        relative = marginal[tuple(posterior.best[members].tolist())]
        if not cliques.resolvable[k]:
            relative += marginal[mirror]
        assert abs(posterior.relative_probability()[0][k] - relative) < 1e-10


@given(calls_strategy, st.integers(0, 10**6), weights)
def test_against_the_definition(calls, seed, rule):
    case = Case(calls, seed, rule=rule)
    joint = plain.posterior(calls, case.score, rule=rule[0], beta=rule[1] or 0.0)
    check_against(case.solve(), joint, case)


@given(calls_strategy, st.integers(0, 10**6), st.data())
def test_with_priors_and_known_channels(calls, seed, data):
    case = Case(calls, seed)
    chance = st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0])
    as_listed = data.draw(st.lists(chance, min_size=len(calls), max_size=len(calls)))
    joint = plain.posterior(calls, case.score, prior=as_listed)
    joint = {
        x: joint.get(x, 0.0) for x in itertools.product((0, 1), repeat=len(calls))
    }  # excluded configurations have probability 0
    posterior = case.solve(Labels(1.0 - np.array(as_listed)))
    assert np.allclose(
        posterior.exchanged,
        [sum(p for x, p in joint.items() if x[m]) for m in range(len(calls))],
        atol=1e-10,
    )
    assert abs(posterior.entropy_bits.sum() - plain.entropy_bits(joint)) < 1e-9
    for e, (i, j) in enumerate(zip(case.links.first, case.links.second, strict=True)):
        both = sum(p for x, p in joint.items() if x[i] and x[j])
        assert abs(posterior.both_exchanged[e] - both) < 1e-10


@given(calls_strategy, st.integers(0, 10**6))
def test_probability_that_two_sides_are_one_speaker(calls, seed):
    case = Case(calls, seed)
    joint = plain.posterior(calls, case.score)
    found = squares(case.solve().candidate_probabilities(case.links))
    shared = [
        (i, j, s)
        for i, j in zip(case.links.first, case.links.second, strict=True)
        for s in sorted(set(calls[i]) & set(calls[j]))
    ]
    assert len(shared) == len(found)
    for link, table in enumerate(found):
        i, j = (int(side[case.links.pair[link]]) for side in (case.links.first, case.links.second))
        s = calls[i][case.links.position_first[link]]
        for u, v in itertools.product((0, 1), repeat=2):
            expected = sum(
                p
                for x, p in joint.items()
                if plain.side_of(s, calls[i], x[i]) == u and plain.side_of(s, calls[j], x[j]) == v
            )
            assert abs(table[u, v] - expected) < 1e-10


@given(calls_strategy, st.integers(0, 10**6), st.data())
def test_listing_order_changes_only_the_bits(calls, seed, data):
    turned = data.draw(st.lists(st.booleans(), min_size=len(calls), max_size=len(calls)))
    other = Case([(b, a) if t else (a, b) for (a, b), t in zip(calls, turned, strict=True)], seed)
    one, two = Case(calls, seed).solve(), other.solve()
    assert np.allclose(
        one.exchanged, np.where(turned, 1 - two.exchanged, two.exchanged), atol=1e-10
    )
    assert np.allclose(one.entropy_bits, two.entropy_bits, atol=1e-9)


@given(calls_strategy, st.integers(0, 10**6))
def test_names_of_speakers_do_not_matter(calls, seed):
    rename = dict(zip(PEOPLE, "zyxwv", strict=True))
    renamed = [(rename[a], rename[b]) for a, b in calls]
    one, two = Case(calls, seed).solve(), Case(renamed, seed).solve()
    assert np.array_equal(one.exchanged, two.exchanged)
    assert np.array_equal(one.both_exchanged, two.both_exchanged)


@given(calls_strategy, st.integers(0, 10**6), st.data())
def test_swapping_channels_swaps_the_answer(calls, seed, data):
    case, other = Case(calls, seed), Case(calls, seed)
    m = data.draw(st.integers(0, len(calls) - 1))
    order = np.arange(2 * len(calls))
    order[[2 * m, 2 * m + 1]] = order[[2 * m + 1, 2 * m]]
    other.matrix = case.matrix[np.ix_(order, order)]
    one, two = case.solve().exchanged, other.solve().exchanged
    one[m] = 1.0 - one[m]
    assert np.allclose(one, two, atol=1e-10)


@given(calls_strategy, st.integers(0, 10**6), st.floats(-50, 50))
def test_a_constant_on_all_scores_cancels(calls, seed, constant):
    case, other = Case(calls, seed), Case(calls, seed)
    other.matrix = case.matrix + constant
    assert np.allclose(case.solve().exchanged, other.solve().exchanged, atol=1e-10)


def test_cliques_together_or_alone():
    rng = np.random.default_rng(1)
    calls = [
        (f"{g}{a}", f"{g}{b}")
        for g in range(30)
        for a, b in (rng.choice(3, 2, replace=False) for _ in range(rng.integers(1, 6)))
    ]
    together = Case(calls, 7).solve()
    for k in range(len(together.model.cliques)):
        wanted = np.arange(len(together.model.cliques)) == k
        part, kept = restrict(together.model, wanted)
        alone = solve(part)
        assert np.array_equal(alone.exchanged, together.exchanged[kept])
        assert np.array_equal(alone.best, together.best[kept])
        assert alone.entropy_bits[0] == together.entropy_bits[k]


def test_two_speakers_are_a_tie_of_two_mirrors():
    posterior = Case([("a", "b"), ("b", "a"), ("a", "b")], 3).solve()
    assert posterior.ties.tolist() == [2]
    assert np.allclose(posterior.exchanged, 0.5)
    assert posterior.best_probability()[0][0] <= 0.5 + 1e-12
    assert np.isclose(
        posterior.relative_probability()[0][0], 2 * posterior.best_probability()[0][0]
    )
    assert posterior.entropy_bits[0] >= 1.0 - 1e-12


def test_a_known_channel_resolves_two_speakers():
    known = Labels(np.array([1.0, np.nan, np.nan]))
    posterior = Case([("a", "b"), ("b", "a"), ("a", "b")], 3, scale=8.0).solve(known)
    assert posterior.model.cliques.resolvable.all()
    assert posterior.exchanged[0] == 1.0
    assert posterior.relative_probability()[0][0] == posterior.best_probability()[0][0]
    assert posterior.ties.tolist() == [1]


def test_a_tie_takes_the_listed_order_first():
    case = Case([("a", "b"), ("a", "c")], 0, scale=0.0)
    posterior = case.solve()
    assert posterior.ties.tolist() == [4]
    assert posterior.best.tolist() == [0, 0]


def test_huge_scores_do_not_overflow():
    posterior = Case([("a", "b"), ("a", "c"), ("b", "c"), ("a", "b")], 5, scale=1e4).solve()
    assert np.isfinite(posterior.log_evidence).all()
    assert np.isfinite(posterior.exchanged).all()


def test_any_size_is_solved():
    posterior = Case([("a", f"p{k}") for k in range(40)], 0).solve()
    assert posterior.best.shape == (40,)
    assert posterior.method[0] != "enumerate"


@given(calls_strategy, st.integers(0, 10**6), st.data())
def test_learning_a_channel_equals_knowing_it(calls, seed, data):
    case = Case(calls, seed)
    m = data.draw(st.integers(0, len(calls) - 1))
    bit = data.draw(st.sampled_from([0, 1]))
    said = np.full(len(calls), np.nan)
    said[m] = bit
    learned, known = case.solve().given({m: bit}), case.solve(Labels(said))
    assert np.allclose(learned.exchanged, known.exchanged, atol=1e-12)
    assert np.allclose(learned.both_exchanged, known.both_exchanged, atol=1e-12)
    assert np.allclose(learned.entropy_bits, known.entropy_bits, atol=1e-12)
    assert learned.exchanged[m] == bit


def test_known_channels_can_make_a_large_clique_small():
    known = Labels(np.array([0.0] * 3 + [np.nan] * 10))
    assert (
        Case([("a", f"p{k}") for k in range(13)], 0).solve(known).exchanged[:3].tolist() == [0] * 3
    )


@pytest.mark.parametrize(
    ("rule", "beta", "expected"),
    [
        ("book", None, "needs --beta"),
        ("paper", 1.0, "belongs to weight 'book'"),
        ("book", -1.0, "not a number of 0 or more"),
        ("mean", None, "not one of"),
    ],
)
def test_bad_weights(rule, beta, expected):
    with pytest.raises(SpklinkError, match=expected):
        Weight(rule, beta)


def test_book_weight_tends_to_the_papers():
    calls = np.arange(2, 9, dtype=np.int32)
    assert np.allclose(Weight("book", 1e12).of(calls), Weight("paper").of(calls))
    assert np.allclose(Weight("book", 0.0).of(calls), 1.0)


def test_databases_joined_are_solved_as_before():
    cases = [Case([("a", "b"), ("a", "c"), ("d", "e")], seed) for seed in range(3)]
    alone = [case.solve() for case in cases]
    joined = solve(join([posterior.model for posterior in alone]))
    assert np.array_equal(joined.exchanged, np.concatenate([p.exchanged for p in alone]))
    assert np.array_equal(joined.log_evidence, np.concatenate([p.log_evidence for p in alone]))


def test_a_large_clique_of_which_nothing_is_known():
    """Two to the hundred configurations tie: more than an integer of the machine counts."""
    calls = [(f"c{k}", f"s{k}", f"s{k + 1}") for k in range(100)]
    table = make_conversations(calls)
    links = find_links(table)
    llr = np.zeros(4 * len(links.first))
    found = solve(build_model(table, find_cliques(table), links, llr))
    assert found.ties[0] > 2**60
    np.testing.assert_allclose(found.exchanged, 0.5)
