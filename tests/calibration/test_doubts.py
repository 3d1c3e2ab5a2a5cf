"""Numbers that cannot be log-likelihood-ratios are noticed; calibrated ones pass."""

from __future__ import annotations

import re

import numpy as np
import pytest

import spklink
from spklink.calibration.doubts import best_line, doubts, target_share
from spklink.calibration.pairs import make_pairs
from spklink.worlds.simulate import simulate


def pairs_of(made, change=lambda scores: scores):
    others = made.non_targets.scored(change(made.non_targets.score))
    return make_pairs(made.conversations, made.links, change(made.llr), others)


@pytest.fixture(scope="module", params=["gaussian", "plda"])
def made(request):
    return simulate(shape="cgn", world=request.param, eer=7.0, seed=3)


def test_of_calibrated_scores_the_best_line_is_the_diagonal(made):
    line = best_line(pairs_of(made), made.conversations.sides)
    assert line.slope == pytest.approx(1.0, abs=0.2)
    assert line.even == pytest.approx(0.0, abs=0.3)
    assert line.gain < 12.0
    assert doubts(pairs_of(made), made.conversations.sides) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: 3.0 * s, "they say too much, about [23]"),
        (lambda s: s + 3.0, r"as probable as two at \+"),
        (lambda s: s - 3.0, "as probable as two at -"),
        (lambda s: (s + 4.0) / 30.0, "they say too little"),
        (lambda s: 50.0 + 3.0 * s, "they say too much|as probable as two at"),
    ],
)
def test_what_else_people_have_is_told(made, change, said):
    found = doubts(pairs_of(made, change), made.conversations.sides)
    assert "do not look like log-likelihood-ratios" in found
    assert "--calibration labelfree" in found
    assert re.search(said, found), found


def test_a_line_that_is_found_is_the_one_that_was_drawn(made):
    """A plain search over slopes and offsets finds no better one."""
    pairs, sides = pairs_of(made, lambda s: 0.5 * s + 1.0), made.conversations.sides
    line = best_line(pairs, sides)
    share, others = target_share(pairs, sides), pairs.non_targets.score
    ratio = np.log(len(pairs.scores) / len(others))

    def cost(slope, even):
        def odds(s, p):
            return np.log((1.0 - p) + p * np.exp(slope * (s - even))) + ratio

        needed = np.logaddexp(0.0, -odds(pairs.scores, share)).sum()
        return needed + np.logaddexp(0.0, odds(others, share.mean())).sum()

    best = cost(line.slope, line.even)
    assert cost(1.0, 0.0) - best == pytest.approx(line.gain, rel=1e-6)
    for slope in line.slope * np.array([0.9, 1.0, 1.1]):
        for even in line.even + np.array([-0.1, 0.0, 0.1]):
            assert cost(slope, even) >= best - 1e-6


def test_shares_of_targets():
    table = [
        {"conversation": "1", "participants": "a;b"},
        {"conversation": "2", "participants": "b;a"},
        {"conversation": "3", "participants": "a;c"},
    ]
    people = spklink.read_conversations(table)
    links = spklink.find_links(people)
    pairs = make_pairs(people, links, np.zeros(12), pairs_of_nothing())
    share = target_share(pairs, people.sides)
    assert sorted(share.tolist()) == [0.25] * 8 + [0.5] * 4


def pairs_of_nothing():
    from spklink.scores.needed import no_side_scores

    return no_side_scores()


def test_too_little_tells_nothing():
    made = simulate(shape="cgn", conversations=4, seed=1)
    assert best_line(pairs_of(made, lambda s: 9.0 * s), made.conversations.sides) is None
    made = simulate(shape="cgn", seed=1)
    assert best_line(pairs_of(made, np.zeros_like), made.conversations.sides) is None


def test_scores_of_any_size_are_looked_at(made):
    for scale in (1e-90, 1e90):
        found = doubts(pairs_of(made, lambda s, k=scale: k * s), made.conversations.sides)
        assert "they say too" in found


def test_assign_says_so_and_calibration_mends_it(made):
    scores = [row | {"score": row["score"] / 30.0} for row in made.scores()]
    told = spklink.assign(made.table(), scores)
    assert any("do not look like log-likelihood-ratios" in note for note in told.notes)
    mended = spklink.assign(made.table(), scores, calibration="labelfree")
    assert not any("do not look like" in note for note in mended.notes)
    plain = spklink.assign(made.table(), made.scores())
    assert plain.notes == []
