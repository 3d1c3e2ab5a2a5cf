from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spklink import SpklinkError, find_cliques, read_conversations, read_key, read_scores
from spklink.database.links import find_links, needed_sides
from spklink.database.sides import speakers_on, squares, two_each
from spklink.worlds import simulate
from spklink.worlds.scorers import gaussian_mu, variance_ratio
from spklink.worlds.simulate import write_simulation


def test_the_papers_shape():
    for seed in range(5):
        made = simulate.simulate(seed=seed)
        cliques = find_cliques(made.conversations)
        assert len(made.conversations) == 348
        assert len(made.conversations.speakers) == 356
        sizes, counts = np.unique(cliques.size, return_counts=True)
        assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {
            1: 8, 2: 61, 3: 13, 4: 26, 5: 9, 6: 5,
        }  # fmt: skip
        unresolvable = cliques.size[~cliques.resolvable]
        assert sorted(unresolvable.tolist()) == [1] * 8 + [2] * 4
        assert cliques.speakers.max() <= 5


@pytest.mark.parametrize("shape", ["star", "network"])
@pytest.mark.parametrize("size", [1, 2, 3, 50, 1000])
def test_shapes_of_any_size_are_one_clique(shape, size):
    made = simulate.simulate(shape=shape, conversations=size)
    assert len(made.conversations) == size
    assert len(find_cliques(made.conversations)) == 1


def test_star_has_one_speaker_in_every_call():
    made = simulate.simulate(shape="star", conversations=60)
    counts = np.bincount(made.conversations.people)
    assert counts.max() == 60
    assert np.sort(counts)[-2] <= 5


def same_speaker(made):
    """Which of the scored side pairs are one person."""
    on_side = speakers_on(made.conversations, made.truth)
    one, two = needed_sides(made.links, made.conversations.sides)
    return on_side[one] == on_side[two]


@pytest.mark.parametrize("eer", [2.0, 7.0, 20.0])
@pytest.mark.parametrize("world", ["gaussian", "plda", "t5"])
def test_equal_error_rate_is_as_asked(world, eer):
    made = simulate.simulate(shape="network", conversations=6000, world=world, eer=eer, seed=1)
    target = made.llr[same_speaker(made)]
    other = made.llr[~same_speaker(made)]
    threshold = np.sort(np.concatenate([target, other]))
    miss = np.searchsorted(np.sort(target), threshold) / len(target)
    alarm = 1 - np.searchsorted(np.sort(other), threshold) / len(other)
    found = miss[np.argmin(np.abs(miss - alarm))]
    assert found == pytest.approx(eer / 100, rel=0.15)


@pytest.mark.parametrize("world", ["gaussian", "plda", "t5"])
def test_scores_are_calibrated(world):
    """No affine correction of the scores lowers their cross entropy by more than a little."""
    made = simulate.simulate(shape="network", conversations=6000, world=world, seed=2)
    target = made.llr[same_speaker(made)]
    other = made.llr[~same_speaker(made)]

    def cllr(scale, offset):
        return (
            np.logaddexp(0, -(scale * target + offset)).mean()
            + np.logaddexp(0, scale * other + offset).mean()
        )

    best = min(cllr(a, b) for a in np.linspace(0.5, 1.6, 23) for b in np.linspace(-1, 1, 21))
    assert cllr(1.0, 0.0) < 1.02 * best


def test_plda_scores_of_one_side_are_correlated():
    """Residuals of two scores that share a side: independent in one world, not in the other."""
    correlation = {}
    for world in ("gaussian", "plda"):
        made = simulate.simulate(shape="star", conversations=150, world=world)
        same = same_speaker(made)
        residual = made.llr - np.where(same, made.llr[same].mean(), made.llr[~same].mean())
        residual[same] = np.nan
        means = [np.nanmean(squares(residual)[made.links.first == m, 0, :]) for m in range(75)]
        correlation[world] = np.nanstd(means)
    assert correlation["plda"] > 2 * correlation["gaussian"]


def test_known_non_targets_share_no_participant():
    made = simulate.simulate(seed=3)
    found, call = made.non_targets, made.conversations.sides.conversation
    people = [set(pair) for pair in two_each(made.conversations.people).tolist()]
    assert len(found.side_1) == len(found.score) > 1000
    first, second = call[found.side_1], call[found.side_2]
    assert (found.side_1 != found.side_2).all()
    for m, n in zip(first.tolist(), second.tolist(), strict=True):
        assert m == n or not people[m] & people[n]
    assert (first == second).sum() == len(people)


def test_few_conversations_in_the_proportions_of_the_paper():
    made = simulate.simulate(shape="cgn", conversations=50, seed=1)
    assert len(made.conversations) == 50
    mixed = simulate.simulate(shape="pairs", seed=1)
    cliques = find_cliques(mixed.conversations)
    assert 0.4 < (~cliques.resolvable[cliques.label]).mean() < 0.6


@pytest.mark.parametrize("npz", [False, True])
def test_written_files_read_back(tmp_path, npz):
    made = simulate.simulate(shape="star", conversations=9, seed=5)
    files = write_simulation(made, tmp_path, npz=npz)
    table = read_conversations(files[0])
    assert [table.names(m) for m in range(9)] == [made.conversations.names(m) for m in range(9)]
    links = find_links(table)
    assert np.array_equal(read_scores(files[1], table, links).needed, made.llr)
    assert np.array_equal(read_key(files[2], table).bits, made.truth)


def test_same_seed_same_bytes(tmp_path):
    for folder in ("a", "b"):
        write_simulation(simulate.simulate(world="plda", seed=9), tmp_path / folder)
    for name in ("conversations.csv", "scores.csv", "key.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_numbers_behind_the_worlds():
    assert gaussian_mu(0.07) == pytest.approx(4.356, abs=5e-4)
    assert variance_ratio(0.02) > variance_ratio(0.2)


@pytest.mark.parametrize(
    ("world", "needed", "others"),
    [
        ("gaussian", -286.19631345482594, -45.24747548645965),
        ("plda", -238.65578154315304, -40.50493967407172),
    ],
)
def test_worlds_stay_what_they_were(world, needed, others):
    """Sums of scores as the first version drew them: figures in use were made with these."""
    made = simulate.simulate(shape="star", conversations=9, world=world, seed=1)
    assert made.llr.sum() == pytest.approx(needed, abs=1e-9)
    assert made.non_targets.score.sum() == pytest.approx(others, abs=1e-9)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"world": "t5", "eer": 0.01}, "even the most different"),
        ({"shape": "ring"}, "shape 'ring'"),
        ({"world": "flat"}, "world 'flat'"),
        ({"eer": 60.0}, "between 0.01 and 45"),
        ({"shape": "star", "conversations": 0}, "at least 1"),
    ],
)
def test_bad_settings(settings, expected):
    with pytest.raises(SpklinkError, match=expected):
        simulate.simulate(**settings)


# --- meetings -------------------------------------------------------------------------------------

WRONG = {"missing": 0.2, "absent": 0.2, "placeholders": 0.2}


def listed_and_there(made):
    """Entries of all lists as (conversation, name), and the people on the tracks likewise."""
    table = made.conversations
    listed = [(m, name) for m in range(len(table)) for name in table.names(m)]
    there = list(zip(table.sides.conversation.tolist(), made.on_side, strict=True))
    return listed, there


@pytest.mark.parametrize("tracks", ["2", "3-6", "8", 5, (2, 4)])
def test_meetings_whose_lists_are_right(tracks):
    made = simulate.simulate(shape="meetings", conversations=30, people=12, tracks=tracks, seed=1)
    listed, there = listed_and_there(made)
    assert sorted(listed) == sorted(there)
    assert not made.conversations.possible.any()
    assert not made.conversations.open.any()


def test_meetings_of_two_are_plain_calls(tmp_path):
    made = simulate.simulate(shape="meetings", conversations=20, people=6, tracks="2", seed=2)
    assert made.conversations.plain
    files = write_simulation(made, tmp_path)
    assert files[0].read_text().startswith("conversation,audio,participants\n")
    table = read_conversations(files[0])
    assert np.array_equal(read_key(files[2], table).bits, made.truth)
    assert set(made.truth.tolist()) == {0, 1}


def test_a_wrong_list_of_two_has_no_bit():
    made = simulate.simulate(
        shape="meetings", conversations=300, people=6, tracks="2", missing=0.2, absent=0.9, seed=2
    )
    with pytest.raises(SpklinkError, match="not between two certain people"):
        _ = made.truth
    plain = simulate.simulate(shape="meetings", conversations=9, people=6, tracks="2", seed=2)
    speakers = plain.speakers.copy()
    speakers[0] = len(plain.names)
    assert replace(plain, speakers=speakers).truth[0] == -1


def test_lists_are_as_wrong_as_asked():
    made = simulate.simulate(shape="meetings", conversations=2000, people=30, seed=3, **WRONG)
    table = made.conversations
    listed, there = listed_and_there(made)
    present = set(there)
    absent = np.array([entry not in present for entry in listed])
    assert table.unknown.sum() / len(there) == pytest.approx(0.2, abs=0.02)
    assert (~absent).sum() / len(there) == pytest.approx(0.8 * 0.8, abs=0.02)
    assert absent.sum() / (~absent).sum() == pytest.approx(0.2, abs=0.02)
    assert absent[table.possible].mean() == pytest.approx(0.5, abs=1e-9)
    assert 0.02 < absent[~table.possible].mean() < 0.2
    assert table.open.any()


@pytest.mark.parametrize("npz", [False, True])
def test_meetings_read_back(tmp_path, npz):
    made = simulate.simulate(shape="meetings", conversations=25, people=10, seed=5, **WRONG)
    files = write_simulation(made, tmp_path, npz=npz)
    table = read_conversations(files[0])
    for name in ("presence", "possible", "unknown", "open", "people"):
        assert np.array_equal(getattr(table, name), getattr(made.conversations, name)), name
    assert np.array_equal(table.sides.start, made.conversations.sides.start)
    assert np.array_equal(read_scores(files[1], table, find_links(table)).needed, made.llr)
    key = read_key(files[2], table)
    names = {name: k for k, name in enumerate(made.names)}
    assert key.speakers(table).tolist() == [names[name] for name in key.said.names]
    assert key.said.names == made.on_side
    assert [row["speaker"] for row in made.key()] == made.on_side


def test_meetings_of_one_seed_are_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        made = simulate.simulate(shape="meetings", conversations=12, seed=9, **WRONG)
        write_simulation(made, tmp_path / folder)
    for name in ("conversations.csv", "scores.csv", "key.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tracks": "1-3"}, "between 2 and 8"),
        ({"tracks": "6-3"}, "the fewest first"),
        ({"tracks": "many"}, "fewest and most as 3-6"),
        ({"people": 5}, "fewer than the 6 tracks"),
        ({"missing": 1.0}, "--missing 1: a share"),
        ({"absent": -0.1}, "--absent -0.1"),
        ({"conversations": 0}, "at least 1"),
        ({"shape": "star", "people": 5}, "--people 5: is about --shape meetings only"),
        ({"shape": "star", "missing": 0.1}, "is about --shape meetings only"),
    ],
)
def test_meetings_that_cannot_be(given, expected):
    with pytest.raises(SpklinkError, match=expected):
        simulate.simulate(**{"shape": "meetings", **given})
