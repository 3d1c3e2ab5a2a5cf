"""The exact posterior over partitions, held against all partitions one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_partitions import enumerate_all, partitions
from spklink.errors import SpklinkError
from spklink.measures.entropy import log2_bell, log2_call_partitions, log2_stirling2
from spklink.partitions.blocks import plda_values
from spklink.partitions.exact import solve_exactly
from spklink.partitions.items import make_items, make_problem
from spklink.partitions.prior import PartitionPrior, read_prior
from spklink.partitions.separated import find_groups, solve_separated
from spklink.posterior.likelihood import Weight
from spklink.recognizers.plda import set_llr

PRIORS = st.sampled_from(
    [("uniform", 1.0, 0.0), ("crp", 0.3, 0.0), ("crp", 5.0, 0.0), ("pitman-yor", 0.7, 0.4)]
)
RULES = {
    "paper": (Weight(), lambda n: 2 / n),
    "book": (Weight("book", 3.0), lambda n: 7 / (1 + 3 * n)),
}


@st.composite
def cases(draw):
    n = draw(st.integers(1, 7))
    scale = draw(st.sampled_from([0.5, 3.0, 60.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    llr = rng.normal(-0.3, 1.0, (n, n)) * scale
    llr = (llr + llr.T) / 2.0
    pairs = [(i, j) for i in range(n) for j in range(i)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else []
    cut = draw(st.integers(0, len(chosen)))
    speakers = draw(st.none() | st.integers(1, n))
    return llr, chosen[:cut], chosen[cut:], speakers


def as_problem(llr, together, apart, speakers, prior, weight):
    pairs = [np.array(one, np.int64).reshape(-1, 2) for one in (together, apart)]
    items = make_items(llr, together=pairs[0], apart=pairs[1])
    return make_problem(items, weight, PartitionPrior(*prior), speakers)


@settings(max_examples=150, deadline=None)
@given(cases(), PRIORS, st.sampled_from(list(RULES)))
def test_everything_equals_plain_enumeration(case, prior, rule):
    llr, together, apart, speakers = case
    weight, plain = RULES[rule]
    limits = {"together": together, "apart": apart, "speakers": speakers}
    every = enumerate_all(llr, weight=plain, prior=prior, **limits)
    if not every:
        with pytest.raises(SpklinkError):
            solve_exactly(as_problem(llr, together, apart, speakers, prior, weight))
        return
    found = solve_exactly(as_problem(llr, together, apart, speakers, prior, weight))
    item, most = found.problem.items.item, max(value for _, value in every)
    chance = np.array([math.exp(value - most) for _, value in every])
    log_total = most + math.log(chance.sum())
    chance /= chance.sum()
    labels = np.array([label for label, _ in every])
    assert found.log_total == pytest.approx(log_total, rel=1e-11, abs=1e-9)
    same = np.einsum("p,pij->ij", chance, labels[:, :, None] == labels[:, None, :])
    assert np.abs(found.pairs[np.ix_(item, item)] - same).max() < 1e-9
    counts = np.bincount(labels.max(axis=1) + 1, chance, len(found.count))
    assert np.abs(found.count - counts[: len(found.count)]).max() < 1e-9
    entropy = -sum(p * math.log2(p) for p in chance if p > 0.0)
    assert found.entropy_bits == pytest.approx(entropy, abs=1e-8, rel=1e-9)
    assert found.best_value == pytest.approx(most, rel=1e-11, abs=1e-9)
    assert found.problem.log_weight(found.best) == pytest.approx(most, rel=1e-11, abs=1e-9)
    for label, p in list(zip(labels, chance, strict=True))[:20]:
        first = np.unique(item, return_index=True)[1]
        said = found.log_probability(label[first])
        assert said == pytest.approx(math.log(p) if p > 0.0 else said, abs=1e-8, rel=1e-9)


def test_nine_sides_equal_plain_enumeration():
    rng = np.random.default_rng(5)
    llr = rng.normal(0.0, 2.0, (9, 9))
    llr = llr + llr.T
    every = enumerate_all(llr, weight=RULES["paper"][1], prior=("uniform", 1.0, 0.0))
    most = max(value for _, value in every)
    total = most + math.log(sum(math.exp(value - most) for _, value in every))
    found = solve_exactly(make_problem(make_items(llr)))
    assert len(every) == 21147
    assert found.log_total == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 13])
def test_without_scores_partitions_are_counted(n):
    quiet = make_problem(make_items(np.zeros((n, n))))
    assert solve_exactly(quiet).log_total / math.log(2) == pytest.approx(log2_bell(n), abs=1e-9)
    for k in {1, 2, n // 2 + 1, n}:
        if k <= n:
            given_number = make_problem(quiet.items, speakers=k)
            bits = solve_exactly(given_number).log_total / math.log(2)
            assert bits == pytest.approx(log2_stirling2(n, k), abs=1e-9)


@pytest.mark.parametrize(("calls", "speakers"), [(1, 2), (3, 2), (4, 5), (6, 4), (6, 12)])
def test_level_three_is_counted_as_in_the_paper(calls, speakers):
    apart = np.arange(2 * calls).reshape(-1, 2)
    items = make_items(np.zeros((2 * calls, 2 * calls)), apart=apart)
    bits = solve_exactly(make_problem(items, speakers=speakers)).log_total / math.log(2)
    assert bits == pytest.approx(log2_call_partitions(calls, speakers), abs=1e-9)


def test_the_reference_counts_right():
    assert [sum(1 for _ in partitions(n)) for n in range(1, 8)] == [1, 2, 5, 15, 52, 203, 877]


@pytest.mark.parametrize("strength", [1e3, 1e6])
@pytest.mark.parametrize("speakers", [None, 2, 3, 8])
def test_no_score_is_too_strong(strength, speakers):
    """Three groups beyond any doubt; a number of speakers that contradicts them is obeyed."""
    group = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    llr = np.where(group[:, None] == group, strength, -strength)
    found = solve_exactly(make_problem(make_items(llr), speakers=speakers))
    assert np.isfinite(found.log_total)
    assert not np.isnan(found.pairs).any()
    assert found.count.sum() == pytest.approx(1.0)
    if speakers in (None, 3):
        assert (found.best == group).all()
        assert np.abs(found.pairs - (group[:, None] == group)).max() < 1e-12
    else:
        assert len(set(found.best.tolist())) == speakers
        assert found.count[speakers] == pytest.approx(1.0)


def test_samples_have_the_posterior_probabilities():
    rng = np.random.default_rng(3)
    llr = rng.normal(0.0, 1.5, (8, 8))
    llr = llr + llr.T
    for speakers in (None, 3):
        found = solve_exactly(make_problem(make_items(llr), speakers=speakers))
        drawn = found.samples(4000, np.random.default_rng(1))
        same = (drawn[:, :, None] == drawn[:, None, :]).mean(axis=0)
        error = np.abs(same - found.pairs) / np.sqrt(found.pairs * (1 - found.pairs) / 4000 + 1e-7)
        assert error.max() < 4.5


def test_evidence_is_the_mean_likelihood():
    rng = np.random.default_rng(4)
    llr = rng.normal(0.0, 1.0, (6, 6))
    llr = llr + llr.T
    for prior in (("uniform", 1.0, 0.0), ("crp", 2.0, 0.0), ("pitman-yor", 1.0, 0.5)):
        found = solve_exactly(make_problem(make_items(llr), prior=PartitionPrior(*prior)))
        every = enumerate_all(llr, weight=RULES["paper"][1], prior=prior)
        quiet = enumerate_all(np.zeros((6, 6)), weight=RULES["paper"][1], prior=prior)
        weights = [math.exp(v) for _, v in every], [math.exp(v) for _, v in quiet]
        mean = math.log(sum(weights[0]) / sum(weights[1]))
        assert found.log_evidence == pytest.approx(mean, abs=1e-9)


def test_blocks_of_plda_are_its_closed_form():
    rng = np.random.default_rng(2)
    ratio, z = np.array([4.0, 1.0, 0.2]), rng.normal(0, 2, (6, 3))
    together = np.array([[0, 3]])
    problem = make_problem(
        make_items(np.zeros((6, 6)), together=together, apart=np.array([[1, 2]]))
    )
    value = plda_values(problem, ratio, z)
    item = problem.items.item
    for mask in range(1, len(value)):
        sides = np.flatnonzero((mask >> item) & 1)
        if {1, 2} <= set(sides.tolist()):
            assert value[mask] == -np.inf
        else:
            assert value[mask] == pytest.approx(set_llr(ratio, z[sides]), abs=1e-9)
    assert solve_exactly(problem, value).count.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "text", ["crp", "crp:-1", "crp:x", "uniform:1", "pitman-yor:1", "pitman-yor:1,1", "dirichlet:1"]
)
def test_a_wrong_prior_is_refused(text):
    with pytest.raises(SpklinkError, match="--prior"):
        read_prior(text)


def test_contradictions_are_refused():
    with pytest.raises(SpklinkError, match="may not be"):
        make_items(np.zeros((3, 3)), together=np.array([[0, 1], [1, 2]]), apart=np.array([[0, 2]]))
    with pytest.raises(SpklinkError, match="no partition into 1"):
        solve_exactly(
            make_problem(make_items(np.zeros((3, 3)), apart=np.array([[0, 2]])), speakers=1)
        )


def groups_of(rng, sizes, gap):
    """Log-likelihood-ratios of groups that lie `gap` apart; within them anything goes."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    llr = np.where(group[:, None] == group, rng.normal(0, 2, (len(group),) * 2), -gap)
    llr -= np.abs(rng.normal(0, 1, llr.shape)) * (group[:, None] != group)
    return (llr + llr.T) / 2.0


@pytest.mark.parametrize("speakers", [None, 4])
@pytest.mark.parametrize("prior", ["uniform", "crp:2", "pitman-yor:1,0.5"])
@pytest.mark.parametrize("gap", [5.0, 9.0, 30.0])
def test_groups_solved_apart_keep_their_promise(gap, prior, speakers):
    """What is promised holds what the whole, solved at once, has; and is worth something."""
    for seed in range(4):
        llr = groups_of(np.random.default_rng(seed), [4, 3, 4], gap)
        problem = make_problem(make_items(llr), Weight(), read_prior(prior), speakers)
        groups, c = find_groups(problem, 5)
        assert len(groups) == 3
        assert c >= gap
        apart, whole = solve_separated(problem, groups, c), solve_exactly(problem)
        group = np.repeat([0, 1, 2], [4, 3, 4])
        drawn = whole.samples(300, np.random.default_rng(0))
        across = np.array([any(len(set(group[d == b])) > 1 for b in set(d)) for d in drawn])
        assert across.mean() <= apart.spans + 3 * np.sqrt(apart.spans / 300) + 1e-9
        low, high = apart.pairs * (1 - apart.spans), apart.pairs * (1 - apart.spans) + apart.spans
        assert (whole.pairs >= low - 1e-9).all()
        assert (whole.pairs <= high + 1e-9).all()
        ends = apart.log_probability(whole.best)
        assert ends[0] - 1e-9 <= whole.log_probability(whole.best) <= ends[1] + 1e-9
        assert gap < 30.0 or apart.spans < 1e-6
        if apart.spans < 1e-9:
            assert apart.entropy_bits == pytest.approx(whole.entropy_bits, abs=1e-5)


@pytest.mark.parametrize("speakers", [None, 3])
def test_groups_that_may_not_mix_are_exact(speakers):
    rng = np.random.default_rng(1)
    llr = groups_of(rng, [4, 4], 0.0)
    apart = np.array([(i, j) for i in range(4) for j in range(4, 8)])
    problem = make_problem(make_items(llr, apart=apart), speakers=speakers)
    groups, c = find_groups(problem, 7)
    found, whole = solve_separated(problem, groups, c), solve_exactly(problem)
    assert found.exact
    assert np.abs(found.pairs - whole.pairs).max() < 1e-9
    assert np.abs(found.count - whole.count).max() < 1e-9
    assert found.entropy_bits == pytest.approx(whole.entropy_bits, abs=1e-9)
    assert found.log_total == pytest.approx(whole.log_total, abs=1e-9)
    if speakers is None:
        assert (found.best == whole.best).all()
