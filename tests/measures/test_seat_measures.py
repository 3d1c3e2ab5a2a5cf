"""Measures of the answer in full, against every state written down and other people's formulas."""

from __future__ import annotations

from itertools import product
from math import exp, inf, log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, precision_score, recall_score, roc_auc_score

from plain_seats import prior, states_of
from random_seats import random_case
from spklink import Weight
from spklink.database.cliques import find_cliques
from spklink.database.labels import read_key
from spklink.measures.seats import area, evaluate_seats, measure_chances
from spklink.posterior.answer import STRANGER, seat
from spklink.posterior.seat_truth import UNSAID, score_seats, seat_truth


def all_states(calls, score, rate):
    """Every state of everything with its log-probability, normalised; shares no code."""
    listings: dict[str, int] = {}
    for call in calls:
        for person in call["people"]:
            listings[person] = listings.get(person, 0) + 1
    priors = []
    for call in calls:
        weights = [(state, prior(call, state, rate)) for state in states_of(call)]
        total = sum(weight for _, weight in weights)
        priors.append([(s, log(w / total)) for s, w in weights if w > 0.0])
    terms = []
    for together in product(*priors):
        value = sum(part for _, part in together)
        for j in range(len(calls)):
            for i in range(j):
                one, two = together[i][0], together[j][0]
                for who in set(one) & set(two):
                    value += 2.0 / listings[who] * score(i, one[who], j, two[who])
        terms.append(([state for state, _ in together], value))
    top = max(value for _, value in terms)
    whole = top + log(sum(exp(value - top) for _, value in terms))
    return [(states, value - whole) for states, value in terms]


def key_rows(calls, states, kept):
    """The truth as a key; someone else goes by a name that nobody has."""
    rows = []
    for m, (call, state) in enumerate(zip(calls, states, strict=True)):
        on = {track: who for who, track in state.items()}
        for k in range(call["tracks"]):
            if kept(m, k):
                who = on.get(k, f"stranger{m}.{k}")
                rows.append({"conversation": f"c{m}", "channel": str(k + 1), "speaker": who})
    return rows


def agrees(states, truth, calls, kept):
    for m, (one, two) in enumerate(zip(states, truth, strict=True)):
        here, there = ({k: who for who, k in state.items()} for state in (one, two))
        for k in range(calls[m]["tracks"]):
            if kept(m, k) and here.get(k) != there.get(k):
                return False
    return True


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 0.2]), st.sampled_from([1.0, 0.5]))
def test_cross_entropy_is_minus_log_probability_of_the_keyed_tracks(seed, rate, share):
    calls, table, links, llr, score = random_case(seed, 3, size=2.0)
    terms = all_states(calls, score, rate)
    rng = np.random.default_rng(seed)
    truth = terms[int(rng.integers(len(terms)))][0]
    told = {(m, k): rng.random() < share for m in range(3) for k in range(calls[m]["tracks"])}

    def kept(m, k):
        return bool(told[m, k])

    rows = key_rows(calls, truth, kept)
    listed = [row for row in rows if not row["speaker"].startswith("stranger")]
    if not listed:  # a key of which nobody is listed anywhere is refused
        return
    answer = seat(table, find_cliques(table), links, llr, weight=Weight(), rate=rate)
    found = score_seats(answer, seat_truth(answer, read_key(rows, table)))
    chance = sum(exp(value) for states, value in terms if agrees(states, truth, calls, kept))
    np.testing.assert_array_equal(found.cross_low, found.cross_high)
    assert found.cross_low.sum() == pytest.approx(-log2(chance), abs=1e-8)


def two_calls(rate=0.1):
    """Two conversations that share ann, heard on the first channel of both."""
    rows = [
        {"conversation": "c0", "participants": "ann;bob"},
        {"conversation": "c1", "participants": "ann;cid"},
    ]
    from spklink import read_conversations
    from spklink.database.links import find_links

    table = read_conversations(rows)
    links = find_links(table)
    llr = np.array([6.0, -6.0, -6.0, -6.0])
    return seat(table, find_cliques(table), links, llr, weight=Weight(), rate=rate), table


def rows_of(*names):
    return [
        {"conversation": f"c{k // 2}", "channel": str(k % 2 + 1), "speaker": who}
        for k, who in enumerate(names)
        if who
    ]


def test_a_name_that_is_not_listed_is_someone_else():
    answer, table = two_calls()
    truth = seat_truth(answer, read_key(rows_of("ann", "cid", "ann", ""), table))
    assert truth.entry.tolist() == [0, STRANGER, 2, UNSAID]
    assert truth.whole.tolist() == [True, False]
    found = evaluate_seats(answer, read_key(rows_of("ann", "dora", "ann", "cid"), table))
    assert (found.lists.count, found.lists.observed) == (2, 1)
    assert (found.presence.count, found.presence.observed) == (4, 3)
    assert (found.tracks.tracks, found.tracks.wrong_named) == (4, 1)
    assert found.wrong_conversations == 1
    assert found.resolvable.clique_errors == 1


def test_unusable_tracks_have_no_name_to_be_wrong():
    answer, table = two_calls()
    key = read_key(rows_of("ann", "dora", "ann", "cid"), table)
    found = evaluate_seats(answer, key, usable=np.array([True, False, True, True]))
    assert (found.tracks.tracks, found.tracks.wrong_named, found.tracks.unusable) == (3, 0, 1)


def test_an_absence_is_impossible_where_lists_are_gospel():
    answer, table = two_calls(rate=0.0)
    key = read_key(rows_of("ann", "dora", "ann", "cid"), table)
    found = evaluate_seats(answer, key)
    assert found.all.cross_entropy_bits is None
    scores = score_seats(answer, seat_truth(answer, key))
    assert scores.cross_low.tolist() == [inf]
    assert found.as_json()["all"]["cross_entropy_bits"] is None


def chances():
    figure = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))
    return st.lists(st.tuples(figure, st.booleans()), max_size=40)


@settings(deadline=None)
@given(chances())
def test_chances_are_as_others_measure_them(drawn):
    chance = np.array([p for p, _ in drawn])
    so = np.array([s for _, s in drawn], bool)
    found = measure_chances(chance, so)
    assert sum(one.count for one in found.reliability) == found.count == len(drawn)
    if not drawn:
        assert (found.area, found.brier, found.recall) == (None, None, None)
        return
    assert found.brier == pytest.approx(brier_score_loss(so, chance, pos_label=True))
    if so.any():
        assert found.recall == pytest.approx(recall_score(so, chance > 0.5))
    if (chance > 0.5).any():
        assert found.precision == pytest.approx(precision_score(so, chance > 0.5))
    if so.any() and not so.all():
        assert found.area == pytest.approx(roc_auc_score(so, chance))
        assert area(-chance, ~so) == pytest.approx(found.area)
    else:
        assert found.area is None
