"""People on two tracks of a conversation, against all states written down."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_splits
from random_seats import as_table, random_case
from spklink.database.cliques import find_cliques
from spklink.database.conversations import with_splits
from spklink.database.labels import read_key, read_known
from spklink.database.links import find_links, needed_sides
from spklink.errors import SpklinkError
from spklink.posterior.answer import said_about, seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.posterior.seat_truth import score_seats, seat_truth
from spklink.posterior.states.certified import certified
from spklink.posterior.states.copies import Split, doubled
from spklink.posterior.states.exactly import solve_pieces
from spklink.posterior.states.optimum import find_best
from spklink.posterior.states.prior import split_weights
from spklink.posterior.states.sampling import sample
from spklink.posterior.states.seats import build_seats
from spklink.posterior.states.solve import SeatBeliefs

SPLIT = 0.1  # that people who are there with one half or more can be split at


def case(seed, calls, size):
    """A random database in which nobody possible is improbable."""
    made, _, links, llr, score = random_case(seed, calls, size=size, people=3)
    for one in made:
        one["presence"] = [None if p is None else max(p, 0.5) for p in one["presence"]]
    return made, with_splits(as_table(made), SPLIT), links, llr, score


def seated(table, links, llr, rate, **how):
    cliques = find_cliques(table, np.zeros(len(table), np.bool_))
    return seat(table, cliques, links, llr, weight=Weight(), rate=rate, **how)


def truth_of(made, plain):
    found = []
    for i, call in enumerate(made):
        for person in call["people"]:
            found += [plain["place"].get((i, person, k), 0.0) for k in range(call["tracks"])]
            found.append(plain["place"].get((i, person, None), 0.0))
    for i, call in enumerate(made):
        found += [plain["stranger"][i, k] for k in range(call["tracks"])]
    return np.array(found + [plain["right"][i] for i in range(len(made))])


CASES = st.tuples(
    st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from([0.5, 3.0])
)


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_every_figure_is_that_of_all_states(drawn):
    seed, rate, size = drawn
    made, table, links, llr, score = case(seed, 2, size)
    plain = plain_splits.solve(made, score, rate, SPLIT)
    found = seated(table, links, llr, rate, pairs=True)
    np.testing.assert_allclose(found.beliefs.guess, truth_of(made, plain), rtol=1e-8, atol=1e-9)
    assert float(found.log_evidence.sum()) == pytest.approx(plain["log_sum"], abs=1e-8)
    assert (found.beliefs.low <= found.beliefs.guess).all()
    assert found.candidate_probabilities(links).max(initial=0.0) <= 1.0 + 1e-9


@settings(max_examples=25, deadline=None)
@given(CASES)
def test_certificates_contain_all_states(drawn):
    seed, rate, size = drawn
    made, table, links, llr, score = case(seed, 2, 2.0 * size)
    truth = truth_of(made, plain_splits.solve(made, score, rate, SPLIT))
    where = doubled(table, links)
    wide = build_seats(where.table, where.links, llr, rate=rate, twice=True)
    place = find_best(wide, seed=seed % 5)
    found = certified(wide, place, lambda part: solve_pieces(part, lambda _: None))
    if found is None:
        return
    beliefs, _ = Split(wide, where).folded(
        as_beliefs(found), build_seats(table, links, llr, rate=rate)
    )
    assert (beliefs.low <= truth + 1e-9).all()
    assert (beliefs.high >= truth - 1e-9).all()


def as_beliefs(found):
    none = np.zeros(0)
    return SeatBeliefs(
        *(found.place, found.guess, found.low, found.high, none, none, [], [], [], none)
    )


@pytest.mark.parametrize("seed", range(3))
def test_chains_agree_with_all_states(seed):
    made, table, links, llr, score = case(seed, 2, 1.0)
    truth = truth_of(made, plain_splits.solve(made, score, 0.05, SPLIT))
    where = doubled(table, links)
    wide = build_seats(where.table, where.links, llr, rate=0.05, twice=True)
    found = sample(wide, find_best(wide), seconds=1.0, seed=seed)
    beliefs, _ = Split(wide, where).folded(
        as_beliefs(found), build_seats(table, links, llr, rate=0.05)
    )
    np.testing.assert_allclose(beliefs.guess, truth, atol=0.03)


def small():
    """Anna on two of three tracks: both match her other recording."""
    rows = [
        {"conversation": "a", "participants": "anna;bob;*", "tracks": "3"},
        {"conversation": "b", "participants": "anna;bob", "tracks": "2"},
    ]
    from spklink import read_conversations

    table = with_splits(read_conversations(rows), 0.1)
    links = find_links(table)
    one, two = needed_sides(links, table.sides)
    same = {(0, 3), (2, 3), (1, 4)}  # sides
    llr = np.array([6.0 if (a, b) in same else -6.0 for a, b in zip(one, two, strict=True)])
    known = [{"conversation": "b", "channel": "1", "speaker": "anna"}]
    return table, links, llr, read_known(known, table)


def test_somebody_is_named_on_both_tracks():
    table, links, llr, known = small()
    found = seated(table, links, llr, 0.01, said=said_about(table, known))
    names = [table.speakers[k] if k >= 0 else "*" for k in found.speaker()]
    assert names == ["anna", "bob", "anna", "anna", "bob"]
    assert found.confidence.chance.min() > 0.9
    assert found.presence.chance.min() > 0.99
    assert found.wrong.chance.max() < 0.01
    alone = replace(table, split=0.0)
    names = [
        alone.speakers[k] if k >= 0 else "*" for k in seated(alone, links, llr, 0.01).speaker()
    ]
    assert "*" in names


def test_what_is_known_of_tracks_is_kept():
    table, links, llr, _ = small()
    known = read_known(
        [
            {"conversation": "a", "channel": "1", "speaker": "bob"},
            {"conversation": "a", "channel": "3", "speaker": "bob"},
        ],
        table,
    )
    found = seated(table, links, llr, 0.0, said=said_about(table, known))
    names = [table.speakers[k] for k in found.speaker()[:3]]
    assert names == ["bob", "anna", "bob"]
    assert found.confidence.chance[:3].min() > 1.0 - 1e-9


@pytest.mark.parametrize("keyed", ["all", "some"])
@pytest.mark.parametrize("seed", range(4))
def test_the_truth_has_its_probability(keyed, seed):
    made, table, links, llr, score = case(seed + 10, 2, 1.0)
    plain = plain_splits.solve(made, score, 0.05, SPLIT)
    found = seated(table, links, llr, 0.05)
    state = max(
        (key for key in plain["states"] if key[0] == 0), key=lambda key: len(str(key))
    )  # as many people as can be, some of them on two tracks
    rows = [
        {"conversation": "c0", "channel": str(k + 1), "speaker": person}
        for person, own in state[1]
        for k in own
    ]
    taken = {row["channel"] for row in rows}
    for k in range(made[0]["tracks"]):
        if str(k + 1) not in taken:
            rows.append({"conversation": "c0", "channel": str(k + 1), "speaker": "nobody"})
    if keyed == "some":
        rows = rows[:1]
    if all(row["speaker"] == "nobody" for row in rows):
        return
    truth = seat_truth(found, read_key(rows, table))
    scores = score_seats(found, truth, options=Options())
    wanted = sum(
        chance for (i, other), chance in plain["states"].items() if i == 0 and fits(other, rows)
    )
    # The other conversation has no key: what counts is this one's.
    assert scores.cross_low[0] == pytest.approx(-np.log2(wanted), abs=1e-6)


def fits(state, rows):
    on = {k: person for person, own in state for k in own}
    said = {int(row["channel"]) - 1: row["speaker"] for row in rows}
    return all(on.get(k, "nobody") == who for k, who in said.items())


def test_weights_are_those_of_one_and_two_tracks():
    odds = np.log([0.2, 1.0, 9.0, 1e6])
    a, b = np.exp(split_weights(odds, 0.02))
    np.testing.assert_allclose(a + b, np.exp(odds) * 0.98)
    np.testing.assert_allclose(a * b, np.exp(odds) * 0.02)
    a, b = split_weights(odds, 0.3)  # too much of the first two: less for them
    assert (a - b >= np.log(3.0) - 1e-9).all()
    np.testing.assert_allclose(np.exp(a[2:]) * np.exp(b[2:]), np.exp(odds[2:]) * 0.3)


def test_rates_that_make_no_sense_are_refused():
    table = as_table(random_case(0, 2)[0])
    for rate in (-0.1, 0.7, float("nan")):
        with pytest.raises(SpklinkError, match="--split-speakers"):
            with_splits(table, rate)


def test_too_many_to_be_placed_twice():
    people = ";".join(f"p{k}" for k in range(9))
    from spklink import read_conversations

    rows = [{"conversation": "c", "participants": people + ";*", "tracks": "17"}]
    table = with_splits(read_conversations(rows), 0.1)
    with pytest.raises(SpklinkError, match="at most 8 people or 16 tracks"):
        doubled(table, find_links(table))
