"""One answer, whatever solved it: bits and states say the same, and what is kept is read back."""

from __future__ import annotations

import itertools
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain
import spklink
from random_seats import random_case
from spklink.database.cliques import find_cliques
from spklink.database.conversations import OF, Conversations, read_conversations
from spklink.database.links import find_links, needed_sides
from spklink.errors import SpklinkError
from spklink.posterior.answer import STRANGER, seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.runs.answer_file import NAME, read_answer, write_answer
from spklink.runs.evidence import Evidence
from spklink.runs.folder import load
from spklink.scores.needed import Scores

PAIRS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda two: two[0] != two[1]),
    min_size=1,
    max_size=5,
)


def evidence_of(pairs, seed):
    """Calls of two people each, their scores, and how alike two of their sides are."""
    calls = [(f"p{a}", f"p{b}") for a, b in pairs]
    rows = [{"conversation": f"c{k}", "participants": ";".join(c)} for k, c in enumerate(calls)]
    table = read_conversations(rows)
    links = find_links(table)
    one, two = needed_sides(links, table.sides)
    llr = np.random.default_rng(seed).normal(0.5, 2.0, len(one))
    worth = {(int(a), int(b)): float(x) for a, b, x in zip(one, two, llr, strict=True)}

    def score(u, v):
        a, b = sorted((2 * u[0] + u[1], 2 * v[0] + v[1]))
        return worth[a, b]

    return calls, Evidence(table, links, Scores(llr), Weight()), score


@settings(max_examples=40)
@given(PAIRS, st.integers(0, 10**6))
def test_bits_and_states_without_list_errors_are_one_answer(pairs, seed):
    """Both against the definition, event by event."""
    calls, evidence, score = evidence_of(pairs, seed)
    table = evidence.conversations
    bits = evidence.lists_right(Options())
    states = seat(
        *(table, evidence.cliques, evidence.links, evidence.scores.needed),
        weight=evidence.weight,
        rate=0.0,
    )
    assert (bits.binary, states.binary) == (True, False)
    joint = plain.posterior(calls, score)
    for answer in (bits, states):
        for m, call in enumerate(calls):
            chance = sum(p for x, p in joint.items() if x[m])
            for k in (0, 1):
                places = answer.places(2 * m + k).chance
                assert places == pytest.approx([*([1 - chance, chance][:: 1 - 2 * k]), 0], abs=1e-9)
                who = list(table.speakers).index(call[k])
                assert answer.chance_of(m, k, who) == pytest.approx(1 - chance, abs=1e-9)
            assert answer.chance_of(m, 0, STRANGER) == pytest.approx(0.0, abs=1e-9)
        assert answer.presence.chance == pytest.approx(np.ones(2 * len(calls)), abs=1e-9)
        assert answer.wrong.chance == pytest.approx(np.zeros(len(calls)), abs=1e-9)
        assert set(answer.certainty) == {"exact"}
        assert (answer.certainties == 0).all()
        assert answer.confidence.low == pytest.approx(answer.confidence.chance, abs=1e-9)
    everywhere = bits.confidence.chance > 0.5 + 1e-6
    assert (bits.speaker() == states.speaker())[everywhere].all()
    assert bits.given(lists_right=True) is bits


@settings(max_examples=40)
@given(PAIRS, st.integers(0, 10**6), st.sampled_from([None, 0.0, 0.1]))
def test_the_posterior_of_a_configuration(pairs, seed, rate):
    """Of every one, clique by clique; those with absences too where lists may be wrong."""
    calls, evidence, score = evidence_of(pairs, seed)
    table, cliques = evidence.conversations, evidence.cliques
    if rate is None:
        answer, states = evidence.lists_right(Options()), [(0, 1), (1, 0)]
    else:
        args = (table, cliques, evidence.links, evidence.scores.needed)
        answer = seat(*args, weight=evidence.weight, rate=rate)
        states = [
            (0, 1),
            (1, 0),
            *([] if rate == 0.0 else [(0, 2), (2, 0), (1, 2), (2, 1), (2, 2)]),
        ]
    joint = plain.posterior(calls, score)
    found = {}
    for chosen in itertools.product(states, repeat=min(len(calls), 3)):
        rest = answer.place.reshape(-1, 2)[len(chosen) :]
        place = np.concatenate([np.array(chosen).ravel(), rest.ravel()]).astype(np.int64)
        found[chosen] = answer.posterior_of(place)
        if not rate and len(calls) <= 3:
            whole = joint[tuple(place[::2].tolist())]
            assert found[chosen].prod() == pytest.approx(whole, abs=1e-9)
    if len(calls) <= 3 and len(cliques) == 1:
        assert sum(one[0] for one in found.values()) == pytest.approx(1.0, abs=1e-9)


def test_nothing_is_more_probable_than_the_best_configuration():
    made = spklink.simulate(shape="cgn", eer=10.0, seed=2)
    for rate in (0.0, 0.05):
        answer = spklink.assign(made.table(), made.scores(), list_errors=rate).answer
        best = answer.posterior_of(answer.place)
        assert (best <= 1.0 + 1e-9).all()
        for m in range(0, len(answer.table), 7):
            other = answer.place.copy()
            own = slice(2 * m, 2 * m + 2)
            other[own] = other[own][::-1]
            assert (answer.posterior_of(other) <= best + 1e-9).all()


def test_known_channels_deny_what_contradicts_them():
    made = spklink.simulate(shape="pairs", conversations=8, eer=5.0, seed=2)
    known = [row for k, row in enumerate(made.key()) if k < 2]
    answer = spklink.assign(made.table(), made.scores(), known=known, list_errors=0.0).answer
    place = answer.place.copy()
    place[:2] = place[:2][::-1]
    assert answer.posterior_of(place)[answer.cliques.label[0]] == 0.0
    assert answer.posterior_of(answer.place)[answer.cliques.label[0]] > 0.0


# --- given that the lists are right ---------------------------------------------------------------


def test_lists_right_is_solved_when_somebody_asks_and_once(monkeypatch):
    made = spklink.simulate(shape="cgn", eer=7.0, seed=3)
    doubted = spklink.assign(made.table(), made.scores(), list_errors=0.05)
    trusted = spklink.assign(made.table(), made.scores(), list_errors=0.0)
    right = doubted.answer.given(lists_right=True)
    assert right.binary
    assert np.array_equal(right.bits.exchanged, trusted.answer.bits.exchanged)
    assert doubted.answer.given(lists_right=False) is doubted.answer
    with pytest.raises(SpklinkError):
        _ = doubted.answer.bits
    asked = []
    evidence = doubted.evidence
    found = evidence.answered(0.05, Options(), start=doubted.answer.place)
    monkeypatch.setattr(
        "spklink.runs.evidence.solve", lambda *a, **k: asked.append(1) or trusted.answer.bits
    )
    assert not asked
    for _ in range(3):
        found.given(lists_right=True)
    assert len(asked) == 1


def test_a_meeting_given_that_its_lists_are_right():
    made = spklink.simulate(shape="meetings", conversations=6, people=6, tracks="3", absent=0.2)
    answer = spklink.assign(made.table(), made.scores(), list_errors=0.1).answer
    right = answer.given(lists_right=True)
    certain = ~answer.table.possible
    assert answer.presence.chance[certain].min() < 1.0
    assert right.presence.chance[certain] == pytest.approx(np.ones(certain.sum()), abs=1e-9)
    assert right.rate.value == 0.0


# --- conversations of one clique, some conversations ----------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_one_clique_alone(rate):
    made = spklink.simulate(shape="cgn", eer=7.0, seed=3)
    result = spklink.assign(made.table(), made.scores(), list_errors=rate)
    answer, table = result.answer, result.conversations
    for k in (0, len(answer.cliques) - 1):
        calls = answer.cliques.members(k)
        own = table.take(calls)
        part = answer.of_clique(k, own, find_cliques(own))
        sides = np.isin(table.sides.conversation, calls)
        assert np.array_equal(part.speaker(), answer.speaker()[sides])
        assert np.array_equal(part.confidence.low, answer.confidence.low[sides])
        assert part.binary == answer.binary
        right = part.given(lists_right=True).bits
        whole = answer.given(lists_right=True).bits
        assert np.array_equal(right.exchanged, whole.exchanged[calls])


def test_every_field_of_a_table_is_taken_along():
    assert set(OF) == {one.name for one in fields(Conversations)}
    rows = [
        {"conversation": f"c{k}", "participants": who, "group": "xy"[k % 2]}
        for k, who in enumerate(["a;b", "a;?c;?", "b;c", "a;c;*", "d;e"])
    ]
    table = read_conversations(rows)
    calls = np.array([3, 1])
    part, alone = table.take(calls), read_conversations([rows[3], rows[1]])
    for m in range(2):
        assert part.ids[m] == alone.ids[m]
        assert part.names(m) == alone.names(m)
        assert (part.unknown[m], part.open[m]) == (alone.unknown[m], alone.open[m])
        assert (
            part.presence[part.listing.of(m)].tolist()
            == alone.presence[alone.listing.of(m)].tolist()
        )
        assert part.groups[part.group[m]] == rows[calls[m]]["group"]


# --- kept with the results ------------------------------------------------------------------------


def same(one, two):
    """Whether two answers say the same, to the last bit."""
    assert np.array_equal(one.place, two.place)
    for name in ("guess", "low", "high", "piece", "log_sum", "proved"):
        assert np.array_equal(getattr(one.beliefs, name), getattr(two.beliefs, name)), name
    for name in ("method", "certainty", "reason"):
        assert list(getattr(one.beliefs, name)) == list(getattr(two.beliefs, name))
    assert one.binary == two.binary
    if one.table.plain:
        a, b = (x.given(lists_right=True).bits for x in (one, two))
        for name in (f.name for f in fields(a) if f.name != "model"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05]))
def test_answers_of_any_lists_are_read_as_they_were_written(tmp_path_factory, seed, rate):
    folder = tmp_path_factory.mktemp("kept")
    _, table, links, llr, _ = random_case(seed, 3, size=1.5, people=3)
    evidence = Evidence(table, links, Scores(llr), Weight())
    answer = evidence.answered(rate, Options())
    write_answer(answer, folder)
    kept = None if answer.binary else answer.rate
    found = read_answer(folder / NAME, evidence, kept, Options())
    same(answer, found)
    right = found.given(lists_right=True)  # kept only where a conversation is one bit
    assert right.rate.value == 0.0


@pytest.mark.parametrize("rate", ["auto", 0.0])
def test_a_loaded_folder_solves_nothing(tmp_path, monkeypatch, rate):
    made = spklink.simulate(shape="star", conversations=40, eer=15.0, seed=3)
    result = spklink.assign(made.table(), made.scores(), tmp_path, list_errors=rate)
    before = (tmp_path / "assignments.csv").read_bytes()

    def solved(*_, **__):
        raise AssertionError("solved again")

    for name in ("spklink.runs.evidence.solve", "spklink.runs.evidence.seat"):
        monkeypatch.setattr(name, solved)
    again = load(tmp_path)
    same(result.answer, again.answer)
    assert again.answer.rate == result.answer.rate
    assert again.summary() == result.summary()
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy" / "assignments.csv").read_bytes() == before
    assert (tmp_path / "copy" / NAME).read_bytes() == (tmp_path / NAME).read_bytes()


def test_a_folder_without_its_answer_is_solved_again(tmp_path):
    made = spklink.simulate(shape="cgn", eer=7.0, seed=3)
    result = spklink.assign(made.table(), made.scores(), tmp_path, list_errors="auto")
    (tmp_path / NAME).unlink()
    again = load(tmp_path)
    assert again.answer.confidence.chance == pytest.approx(
        result.answer.confidence.chance, abs=1e-9
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kept: kept | {"state_chance": kept["state_chance"][:-1]},
        lambda kept: kept | {"state_chance": kept["state_chance"] + 2.0},
        lambda kept: kept | {"state_chance": np.full(len(kept["state_chance"]), np.nan)},
        lambda kept: kept | {"state_place": kept["state_place"] + 3},
        lambda kept: kept | {"state_piece": kept["state_piece"] + 10**6},
        lambda kept: kept | {"state_method": kept["state_method"] + 1000},
        lambda kept: kept | {"state_chance_apart": np.array([10**9])},
        lambda kept: kept | {"bits_best": kept["bits_best"][:3]},
        lambda kept: {name: one for name, one in kept.items() if name != "bits_exchanged"},
        lambda kept: kept | {"words": np.arange(3)},
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, spoil):
    made = spklink.simulate(shape="cgn", eer=7.0, seed=3)
    spklink.assign(made.table(), made.scores(), tmp_path, list_errors=0.05)
    with np.load(tmp_path / NAME) as kept:
        arrays = spoil(dict(kept))
    np.savez(tmp_path / NAME, **arrays)
    with pytest.raises(SpklinkError, match=NAME) as caught:
        load(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
