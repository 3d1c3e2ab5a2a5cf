"""Who may teach about whom, and that voices are judged honestly where all people hang together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.database.conversations import make_conversations
from spklink.database.links import candidates, find_links, needed_sides
from spklink.database.sides import share_some, speakers_on
from spklink.measures.detection import measure
from spklink.recognizers import link_wccn
from spklink.recognizers.link_folds import BOTH, disjoint_folds, people_folds, taught_by

WIDTH = 80


def one_clique(seed=0, people=30, calls=200):
    """Calls between any two of some people, and who is on which side."""
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(people, 2, replace=False) for _ in range(calls)]
    table = make_conversations((f"c{k}", f"s{a}", f"s{b}") for k, (a, b) in enumerate(pairs))
    speaker = speakers_on(table, rng.integers(0, 2, calls).astype(np.int8))
    return table, find_links(table), speaker


def units_of(vectors):
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return lambda sides: unit[sides]


def truth_of(table, links, speaker):
    one, two = needed_sides(links, table.sides)
    return (speaker[one] == speaker[two])[candidates(links, table.sides)].astype(float)


def eer(scores, speaker, one, two):
    same = speaker[one] == speaker[two]
    return measure(scores[same], scores[~same]).eer


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_no_call_teaches_about_its_own_people(seed):
    """Whatever judges a link was learned from calls in which its person has no part."""
    table, links, _ = one_clique(seed, people=8, calls=25)
    place = np.random.default_rng(seed).permutation(len(table.sides))
    targets = np.ones(len(links.pair))
    folds = people_folds(table, links, targets, place)
    taught = taught_by(folds, links)
    one, two = needed_sides(links, table.sides)
    judged = folds.judging(one, two)
    assert np.array_equal(judged, folds.judging(two, one))
    fold_of_call = [set(folds.person[table.people[table.listing.of(m)]]) for m in range(len(table))]
    for m, people in enumerate(fold_of_call):
        assert folds.call[m] == (people.pop() if len(people) == 1 else BOTH)
    for e in np.unique(links.pair):
        m, n = int(links.first[e]), int(links.second[e])
        shared = set(table.names(m)) & set(table.names(n))
        of = {int(folds.person[table.speakers.index(name)]) for name in shared}
        here = (table.sides.conversation[one] == m) & (table.sides.conversation[two] == n)
        assert set(judged[here].tolist()) <= of  # judged as one of them, so taught by the others
        both = folds.call[m] == folds.call[n] != BOTH
        assert set(taught[links.pair == e].tolist()) == ({int(folds.call[m])} if both else {-1})


def test_folds_do_not_depend_on_names_or_rows():
    table, links, _ = one_clique(3)
    other = make_conversations(
        (name, *(f"x{9999 - int(who[1:])}" for who in table.names(m)))
        for m, name in enumerate(table.ids)
    )
    place, targets = np.arange(len(table.sides)), np.ones(len(links.pair))
    one = people_folds(table, links, targets, place)
    two = people_folds(other, find_links(other), targets, place)
    assert np.array_equal(one.call, two.call)


def test_sets_without_a_common_call_stay_whole():
    table, links, _ = one_clique(1, people=6, calls=20)
    folds = disjoint_folds(table, links, np.ones(len(links.pair)), np.arange(len(table.sides)))
    assert set(folds.call.tolist()) == {0}  # all hang together
    assert (taught_by(folds, links) == 0).all()


def test_who_is_shared():
    table = make_conversations([("1", "ann", "bob"), ("2", "bob", "cid"), ("3", "cid", "dora")])
    bob = np.array([name == "bob" for name in table.speakers])
    one, two = np.array([0, 0, 2, 2]), np.array([2, 4, 4, 1])
    assert share_some(table, bob, one, two).tolist() == [True, False, False, True]
    assert share_some(table, ~bob, one, two).tolist() == [False, False, True, False]


@pytest.mark.parametrize("back_end", link_wccn.BACK_ENDS)
def test_noise_teaches_nothing_about_itself_in_one_clique(back_end):
    """Without any voice in the vectors, sides that are called one person must not come out closer;
    judged by what they taught themselves they do."""
    table, links, speaker = one_clique()
    noise = np.random.default_rng(3).standard_normal((len(speaker), WIDTH))
    usable, units = np.ones(len(noise), bool), units_of(noise)
    same = truth_of(table, links, speaker)
    found = link_wccn.fit(table, links, same, units, usable, seed=0, back_end=back_end)
    assert not isinstance(found, str)
    one, two = needed_sides(links, table.sides)
    honest = eer(found.scores(one, two), speaker, one, two)
    assert honest == pytest.approx(0.5, abs=0.03)
    reduced = link_wccn.principal_components(units, usable, 0, np.arange(len(noise)))
    scatter = link_wccn.within_scatter(
        reduced, *link_wccn.candidate_sides(links, table.sides), same
    )
    learned = link_wccn.compared(back_end, reduced, scatter, usable)
    itself = learned.terms(reduced).pairs(one, two)
    assert eer(itself, speaker, one, two) < honest - (0.05 if back_end == "plda" else 0.0)


@pytest.mark.parametrize("back_end", link_wccn.BACK_ENDS)
def test_nuisance_is_learned_away_in_one_clique(back_end):
    table, links, speaker = one_clique()
    rng = np.random.default_rng(4)
    spread = np.where(np.arange(WIDTH) < 10, 4.0, 1.0)
    vectors = spread * rng.standard_normal((len(speaker), WIDTH))
    vectors += 0.7 * rng.standard_normal((len(table.speakers), WIDTH))[speaker]
    usable, units = np.ones(len(vectors), bool), units_of(vectors)
    same = truth_of(table, links, speaker)
    found = link_wccn.fit(table, links, same, units, usable, seed=0, back_end=back_end)
    one, two = needed_sides(links, table.sides)
    every = units(np.arange(len(vectors)))
    before = eer(np.einsum("pd,pd->p", every[one], every[two]), speaker, one, two)
    assert eer(found.scores(one, two), speaker, one, two) < 0.6 * before


@pytest.mark.parametrize("back_end", link_wccn.BACK_ENDS)
def test_scores_are_symmetric_in_one_clique(back_end):
    table, links, speaker = one_clique(2)
    vectors = np.random.default_rng(5).standard_normal((len(speaker), WIDTH))
    usable, same = np.ones(len(vectors), bool), truth_of(table, links, speaker)
    found = link_wccn.fit(table, links, same, units_of(vectors), usable, seed=0, back_end=back_end)
    one, two = np.triu_indices(len(speaker), 1)
    assert np.array_equal(found.scores(one, two), found.scores(two, one))


def test_vectors_narrower_than_the_directions_sought():
    """Directions that are rounding alone would be as good as noise."""
    table, links, speaker = one_clique()
    rng = np.random.default_rng(6)
    vectors = rng.standard_normal((len(table.speakers), 8))[speaker]
    vectors += 0.3 * rng.standard_normal(vectors.shape)
    usable, same = np.ones(len(vectors), bool), truth_of(table, links, speaker)
    reduced = link_wccn.principal_components(units_of(vectors), usable, 0, np.arange(len(vectors)))
    assert reduced.shape[1] <= 8
    found = link_wccn.fit(table, links, same, units_of(vectors), usable, seed=0, back_end="plda")
    one, two = needed_sides(links, table.sides)
    assert eer(found.scores(one, two), speaker, one, two) < 0.05
