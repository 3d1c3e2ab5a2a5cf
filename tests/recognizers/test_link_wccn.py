"""Comparing voices again, as the links teach."""

from __future__ import annotations

import numpy as np
import pytest

from spklink.database.conversations import make_conversations
from spklink.database.links import candidates, find_links, needed_sides
from spklink.database.sides import speakers_on
from spklink.measures.detection import measure
from spklink.recognizers import link_folds, link_wccn
from spklink.scores.needed import known_non_targets
from spklink.worlds import simulate
from spklink.worlds.shapes import as_table, small_calls

WIDTH = 80


def plain(vectors):
    """Vectors at length one: compared by their angle about the origin."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.maximum(length, 1e-9)).astype(np.float32)
    return lambda sides: unit[sides]


def voices(seed=0, cliques=80):
    """Sides with strong nuisance in ten directions of eighty, and the links of their calls."""
    rng = np.random.default_rng(seed)
    calls = small_calls(3 * cliques, rng)
    table = as_table(calls, rng)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    speaker = speakers_on(table, truth)
    identity = rng.standard_normal((len(table.speakers), WIDTH))
    spread = np.where(np.arange(WIDTH) < 10, 6.0, 1.5)
    vectors = identity[speaker] + spread * rng.standard_normal((len(speaker), WIDTH))
    links = find_links(table)
    one, two = needed_sides(links, table.sides)
    same = (speaker[one] == speaker[two])[candidates(links, table.sides)].astype(float)
    return table, links, same, vectors.astype(np.float32), speaker


def eer(scores, speaker, one, two):
    same = speaker[one] == speaker[two]
    return measure(scores[same], scores[~same]).eer


def test_nuisance_directions_are_learned_away():
    table, links, same, vectors, speaker = voices()
    usable = np.ones(len(vectors), bool)
    scorer = link_wccn.fit(table, links, same, plain(vectors), usable, seed=0)
    assert not isinstance(scorer, str)
    one, two = needed_sides(links, table.sides)
    unit = plain(vectors)(np.arange(len(vectors)))
    before = eer(np.einsum("pd,pd->p", unit[one], unit[two]), speaker, one, two)
    after = eer(scorer.scores(one, two), speaker, one, two)
    assert after < 0.75 * before


def test_no_side_is_judged_by_what_it_taught():
    """Other vectors in fold 1 leave the covariance for fold 1, and so its own scores' transform,
    as fold 0 has it; the two folds share no person."""
    table, links, same, _, _ = voices()
    link = link_wccn.link_of_candidates(links, table.sides)
    place = np.arange(len(table.sides))
    fold = link_folds.disjoint_folds(table, links, np.bincount(link, same), place).call
    for name in range(len(table.speakers)):
        calls = table.listing.conversation[table.people == name]
        assert len(set(fold[calls].tolist())) == 1
    of_candidate = fold[links.first[links.pair]][link]
    total = [same[of_candidate == f].sum() for f in (0, 1)]
    assert abs(total[0] - total[1]) < 0.1 * sum(total)
    reduced = np.random.default_rng(0).standard_normal((len(table.sides), 5))
    one, two = (side[of_candidate == 0] for side in link_wccn.candidate_sides(links, table.sides))
    before = link_wccn.within_covariance(reduced, one, two, same[of_candidate == 0])
    reduced[fold[table.sides.conversation] == 1] *= 7.0
    after = link_wccn.within_covariance(reduced, one, two, same[of_candidate == 0])
    assert np.array_equal(before, after)


def test_noise_teaches_nothing_about_itself():
    """Without any voice in the vectors, sides called one person must not come out closer: judged
    by what they taught themselves they would."""
    table, links, same, vectors, speaker = voices()
    noise = np.random.default_rng(3).standard_normal(vectors.shape).astype(np.float32)
    usable = np.ones(len(noise), bool)
    scorer = link_wccn.fit(table, links, same, plain(noise), usable, seed=0)
    one, two = needed_sides(links, table.sides)
    assert eer(scorer.scores(one, two), speaker, one, two) == pytest.approx(0.5, abs=0.05)


def test_covariance_against_the_definition():
    table, links, same, _, _ = voices(cliques=5)
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal((len(table.sides), 4)), rng.random(same.shape)
    total, mass = np.zeros((4, 4)), 0.0
    left = iter(weight)
    for e in links.pair:
        for u in range(len(table.sides))[table.sides.of(links.first[e])]:
            for v in range(len(table.sides))[table.sides.of(links.second[e])]:
                gap, p = x[u] - x[v], next(left)
                total += p * np.outer(gap, gap)
                mass += 2 * p
    total /= mass
    expected = 0.8 * total + 0.2 * np.trace(total) / 4 * np.eye(4)
    one, two = link_wccn.candidate_sides(links, table.sides)
    found = link_wccn.within_covariance(x, one, two, weight)
    assert np.allclose(found, expected)
    white = link_wccn.whitening(expected, x).terms(x).unit
    assert np.allclose(np.linalg.norm(white, axis=1), 1.0)


def test_scores_are_symmetric_also_between_folds():
    table, links, same, vectors, _ = voices()
    usable = np.ones(len(vectors), bool)
    scorer = link_wccn.fit(table, links, same, plain(vectors), usable, seed=0)
    one, two = known_non_targets(table, np.random.default_rng(0))
    assert np.allclose(scorer.scores(one, two), scorer.scores(two, one))


@pytest.mark.parametrize("shape", ["star", "cgn"])
def test_left_out_where_there_are_no_folds_or_few_links(shape):
    """All calls of a star are joined by one person; a few cliques are too few."""
    made = simulate.simulate(shape=shape, conversations=60 if shape == "star" else 12)
    same = np.full(len(candidates(made.links, made.conversations.sides)), 0.25)
    vectors = np.ones((len(made.conversations.sides), WIDTH), np.float32)
    usable = np.ones(len(vectors), bool)
    why = link_wccn.fit(made.conversations, made.links, same, plain(vectors), usable, seed=0)
    assert isinstance(why, str)
    assert "50 are needed in each" in why


def test_a_few_sides_of_everybody_tell_how_people_differ():
    speaker = np.concatenate([np.zeros(4000), np.repeat(1 + np.arange(300), 2), np.full(50, -1)])
    speaker, usable = speaker.astype(np.int64), np.ones(4650, bool)
    usable[:3] = False
    order = np.random.default_rng(0).permutation(4650)
    chosen = link_wccn.few_of_each(usable, speaker, order)
    assert chosen[speaker == 0].sum() == link_wccn.OF_EACH
    assert not chosen[:3].any()
    assert chosen[speaker != 0].all()  # nobody knows who the strangers are: they are many people
    first = order[usable[order] & (speaker[order] == 0)][: link_wccn.OF_EACH]
    assert chosen[first].all()


def test_many_people_tell_more_dimensions():
    """Of narrow vectors: forty sides of different people for each."""
    vectors = np.random.default_rng(0).standard_normal((6000, 90)).astype(np.float32)
    made = (np.ones(6000, bool), 0, np.arange(6000))
    assert link_wccn.Reduction.of(plain(vectors), *made, 70).size == 70
    assert link_wccn.Reduction.of(plain(vectors), *made).size == link_wccn.DIMENSIONS
    wide = np.hstack([vectors, np.zeros((6000, 2000), np.float32)])
    assert link_wccn.Reduction.of(plain(wide), *made, 70).size == link_wccn.DIMENSIONS


def call_centre(agents=6, each=150, seed=0):
    """Voices without any structure to be learned: calls of a few agents with customers who call
    twice, and who is on which side."""
    rng, calls = np.random.default_rng(seed), agents * each
    agent, customer = np.arange(calls) % agents, rng.permutation(calls) // 2
    table = make_conversations(
        (f"c{m}", f"a{a}", f"b{b}")
        for m, (a, b) in enumerate(zip(agent.tolist(), customer.tolist(), strict=True))
    )
    speaker = speakers_on(table, rng.integers(0, 2, calls).astype(np.int8))
    identity = rng.standard_normal((len(table.speakers), WIDTH))
    vectors = identity[speaker] + 1.5 * rng.standard_normal((2 * calls, WIDTH))
    links = find_links(table)
    one, two = needed_sides(links, table.sides)
    same = (speaker[one] == speaker[two])[candidates(links, table.sides)].astype(float)
    return table, links, same, vectors.astype(np.float32), speaker


@pytest.mark.parametrize("back_end", link_wccn.BACK_ENDS)
def test_agents_of_a_call_centre_are_no_easier_than_their_customers(back_end):
    """One calibration serves both: the same distance from strangers, in spreads of these."""
    table, links, same, vectors, speaker = call_centre()
    usable = np.ones(len(vectors), bool)
    calls = np.bincount(speaker)
    one, two = needed_sides(links, table.sides)
    pair, often = speaker[one] == speaker[two], calls[speaker[one]] > 2

    def ahead(who):
        by = link_wccn.fit(
            *(table, links, same, plain(vectors), usable),
            seed=0,
            back_end=back_end,
            speaker=who,
        )
        scores = by.scores(one, two)
        gap = scores[pair & often].mean() - scores[pair & ~often].mean()
        return gap / scores[~pair].std()

    assert abs(ahead(speaker)) < 0.25
    if back_end == "plda":
        assert ahead(None) > 0.5  # what this test would see


def test_directions_of_few_numbers_are_those_of_many():
    """Numbers that are all 0 change nothing but the way in which directions are found."""
    rng = np.random.default_rng(3)
    narrow = (rng.normal(size=(300, 40)) * np.linspace(1.0, 0.2, 40)).astype(np.float32)
    wide = np.hstack([narrow, np.zeros((300, 400), np.float32)])
    usable, order = np.ones(300, bool), np.arange(300)
    one, two = (
        link_wccn.Reduction.of(lambda s, v=v: v[s], usable, 0, order) for v in (narrow, wide)
    )
    np.testing.assert_allclose(one.basis, two.basis[:40], atol=1e-4)
