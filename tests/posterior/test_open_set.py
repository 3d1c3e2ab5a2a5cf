"""Who of many is on a track, or nobody known: against plain sums."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import plain_seats
from spklink.database.candidates import Candidates, read_candidates, with_candidates
from spklink.database.cliques import find_cliques
from spklink.database.conversations import read_conversations
from spklink.database.links import find_links
from spklink.posterior.answer import seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.open_set import Voices, gathered, given_rate, identify, means
from spklink.tables import Content, csv_bytes

VALUES = arrays(np.float64, (6, 4), elements=st.floats(-30, 30))


@given(VALUES, st.floats(0.01, 0.99))
def test_each_track_is_weighed_by_itself(value, rate):
    found = given_rate(value, np.ones(6), rate)
    for x in range(6):
        weights = [rate / 4 * exp(v) for v in value[x]]
        whole = sum(weights) + 1.0 - rate
        assert found.chance[x] == pytest.approx([w / whole for w in weights], abs=1e-12)
    evidence = sum(log(sum(rate / 4 * exp(v) for v in row) + 1 - rate) for row in value)
    assert found.log_evidence == pytest.approx(evidence)


@given(VALUES)
def test_the_rate_is_that_which_it_expects(value):
    found = identify(value, np.ones(6))
    again = (found.chance.sum() + 0.5) / 7.0
    assert abs(again - found.rate) < 1e-3
    assert (found.chance.sum(axis=1) <= 1.0 + 1e-12).all()


def test_who_cannot_be_there_is_not():
    value = np.array([[2.0, -np.inf], [1.0, 0.0]])
    found = identify(value, np.ones(2))
    assert found.chance[0, 1] == 0.0


def test_voices_are_averaged_as_far_as_they_are_known_and_trusted():
    voices = Voices(np.arange(3), np.array([1.0, 0.5, 1.0]), np.array([0, 2, 3]))
    found = means(np.array([[4.0, 1.0, np.nan], [np.nan, 3.0, -2.0]]), voices)
    assert found.tolist() == [[3.0, -np.inf], [3.0, -2.0]]


def test_sure_tracks_are_further_voices():
    known = [np.array([7]), np.array([8, 9])]
    chance = np.array([[0.95, 0.0], [0.5, 0.4], [0.0, 0.99]])
    voices = gathered(known, np.ones(10), np.array([0, 1, 2]), chance)
    assert voices.side.tolist() == [7, 0, 8, 9, 2]
    assert voices.trust.tolist() == [1.0, 0.95, 1.0, 1.0, 0.99]
    one, two = voices.within()
    assert list(zip(one, two, strict=True)) == [(0, 1), (2, 3), (2, 4), (3, 4)]


def test_candidates_against_every_state_written_down():
    """A list of one name and an open end, an empty one, and people of other conversations."""
    table = read_conversations(
        [
            {"conversation": "a", "participants": "ann;bob"},
            {"conversation": "b", "participants": "ann;?"},
            {"conversation": "c", "participants": ""},
            {"conversation": "d", "participants": "cid;dan"},
        ],
        unlisted=True,
    )
    rng = np.random.default_rng(3)
    links = find_links(table)
    llr = rng.normal(0.0, 2.0, 4)  # of a and b, which share ann
    ann, bob, cid, dan = range(4)
    chosen = Candidates(
        np.array([1, 1, 2, 2, 2]),
        np.array([bob, cid, ann, cid, dan]),
        np.array([0.2, 0.3, 0.1, 0.25, 0.4]),
        rng.normal(0.0, 2.0, 10),
    )
    wide = with_candidates(table, chosen)
    assert [wide.names(m) for m in (1, 2)] == [("ann", "bob", "cid"), ("ann", "cid", "dan")]
    assert find_links(wide).pair.tolist() == links.pair.tolist()
    found = seat(wide, find_cliques(wide), find_links(wide), llr, weight=Weight(), rate=0.05)

    value = {(1, bob): 0, (1, cid): 1, (2, ann): 2, (2, cid): 3, (2, dan): 4}
    expected = {}
    calls = [
        plain(0, [ann, bob], [None, None]),
        plain(1, [ann, bob, cid], [None, 0.2, 0.3]),
        plain(2, [ann, cid, dan], [0.1, 0.25, 0.4]),
    ]
    states = [list(plain_seats.states_of(call)) for call in calls]
    total = 0.0
    for one in states[0]:
        for two in states[1]:
            for three in states[2]:
                weight = 1.0
                for m, state in enumerate((one, two, three)):
                    weight *= plain_seats.prior(calls[m], state, 0.05)
                    for person, k in state.items():
                        if (m, person) in value:
                            weight *= exp(chosen.value[2 * value[m, person] + k])
                if ann in one and ann in two:
                    weight *= exp(llr[2 * one[ann] + two[ann]])
                total += weight
                for m, state in enumerate((one, two, three)):
                    for person, k in state.items():
                        key = m, k, person
                        expected[key] = expected.get(key, 0.0) + weight
    for (m, k, person), weight in expected.items():
        assert found.chance_of(m, k, person) == pytest.approx(weight / total, abs=1e-9)


def plain(m, people, presence):
    return {"people": people, "presence": presence, "tracks": 2, "unknown": 0}


def test_candidates_are_written_and_read_back():
    rows = [{"conversation": "a", "participants": "ann;bob"}, {"conversation": "b"}]
    table = read_conversations(rows, unlisted=True)
    chosen = Candidates(
        np.array([1, 1]), np.array([0, 1]), np.array([0.1, 1 / 3]), np.array([1.5, -2.25, 0.1, 7])
    )
    columns = ("conversation", "speaker", "channel", "prior", "log_likelihood_ratio")
    content = Content(Path("candidates.csv"), csv_bytes(columns, chosen.rows(table)))
    again = read_candidates(content, table)
    for name in ("conversation", "person", "prior", "value"):
        assert np.array_equal(getattr(again, name), getattr(chosen, name))
