"""Scores with a truth, tables of sides, and the sample of known non-targets."""

from __future__ import annotations

import numpy as np
import pytest

from spklink import SpklinkError, read_conversations, read_key
from spklink.database.conversations import make_conversations
from spklink.database.sides import certainly_different
from spklink.scores.files import read_scores, write_scores
from spklink.scores.needed import SideScores
from spklink.scores.sample import Sampler
from spklink.scores.trials import read_trials
from spklink.worlds import simulate

TABLE = "conversation,participants\nx,a;b\ny,a;c\nz,d;e\n"
KEY = "conversation,channel,speaker\nx,1,a\ny,2,a\n"


def every_pair(people):
    sides = 2 * len(people)
    return np.triu_indices(sides, 1)


@pytest.fixture
def files(write):
    table = read_conversations(write("t.csv", TABLE))
    return table, read_key(write("k.csv", KEY), table)


def by_hand(table, key, side_1, side_2, score):
    """Same or different speaker, by names, for sides with a key."""
    names = {}
    for m, x in enumerate(key.bits):
        for c in (0, 1):
            names[2 * m + c] = table.names(m)[c ^ int(x)] if x >= 0 else None
    known = [(names[a], names[b], s) for a, b, s in zip(side_1, side_2, score, strict=True)]
    known = [(a, b, s) for a, b, s in known if a is not None and b is not None]
    return sorted(s for a, b, s in known if a == b), sorted(s for a, b, s in known if a != b)


@pytest.mark.parametrize("form", ["csv", "triples", "dense"])
def test_all_scores_with_a_key_count(files, tmp_path, form):
    table, key = files
    one, two = every_pair(table)
    score = np.random.default_rng(0).normal(size=len(one))
    path = tmp_path / ("s.csv" if form == "csv" else "s.npz")
    if form == "csv":
        lines = [
            f"{table.ids[a // 2]},{a % 2 + 1},{table.ids[b // 2]},{b % 2 + 1},{s!r}"
            for a, b, s in zip(one, two, score.tolist(), strict=True)
        ]
        header = "conversation_1,channel_1,conversation_2,channel_2,score"
        path.write_text("\n".join([header, *lines]))
    elif form == "triples":
        write_scores(path, table, SideScores(one, two, score))
    else:
        square = np.zeros((6, 6))
        square[one, two] = square[two, one] = score
        ids, channel = np.repeat(list(table.ids), 2), np.tile([1, 2], 3)
        np.savez(path, conversation=ids, channel=channel, scores=square)
    targets, others = read_trials(path, table, key)
    same, different = by_hand(table, key, one, two, score)
    assert np.allclose(np.sort(targets), same)
    assert np.allclose(np.sort(others), different)


def test_one_kind_is_not_enough(files, tmp_path):
    table, key = files
    write_scores(tmp_path / "s.npz", table, SideScores(np.array([0]), np.array([3]), np.zeros(1)))
    with pytest.raises(SpklinkError, match="1 scores of the same speaker and 0"):
        read_trials(tmp_path / "s.npz", table, key)


def test_certainly_different_by_names():
    people = make_conversations([("x", "a", "b"), ("y", "a", "c"), ("z", "d", "e")])
    one, two = np.array([0, 0, 0, 2]), np.array([1, 2, 4, 5])
    assert certainly_different(people, one, two).tolist() == [True, False, True, True]


def test_the_sample_does_not_depend_on_order_or_chunks():
    made = simulate.simulate(seed=1)
    table = made.conversations
    rng = np.random.default_rng(0)
    one = rng.integers(0, 2 * len(table), 40_000)
    two = rng.integers(0, 2 * len(table), 40_000)
    score = (one * 7 + two * 7).astype(float)
    samples = []
    for step in (40_000, 1_000, 333):
        order = rng.permutation(len(one))
        sampler = Sampler(table, 500)
        for begin in range(0, len(one), step):
            part = order[begin : begin + step]
            sampler.add(one[part], two[part], score[part])
        samples.append(sampler.finish())
    for sample in samples:
        assert len(sample.score) == 500
        assert certainly_different(table, sample.side_1, sample.side_2).all()
        for name in ("side_1", "side_2", "score"):
            assert np.array_equal(getattr(sample, name), getattr(samples[0], name))


def test_known_non_targets_of_a_file_are_kept(tmp_path):
    made = simulate.simulate(shape="star", conversations=9, seed=5)
    simulate.write_simulation(made, tmp_path)
    found = read_scores(tmp_path / "scores.csv", made.conversations, made.links).non_targets
    listed = made.non_targets
    first, second, score = listed.side_1, listed.side_2, listed.score
    order = np.lexsort([second, first])
    assert np.array_equal(found.side_1, first[order])
    assert np.allclose(found.score, score[order])
