"""Lists with planted mistakes: they are found, and they do not spoil what is learned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import spklink
from spklink.calibration.choice import calibrated
from spklink.cli import measures
from spklink.database.sides import speakers_on
from spklink.posterior.answer import seat
from spklink.runs.names import sides_of
from spklink.worlds.scorers import WORLDS
from spklink.worlds.simulate import simulate

SHARE = 0.05


@pytest.fixture(scope="module")
def spoiled():
    """180 simulated calls, one name in twenty another's; (rows, all scores, key, wrong calls)."""
    made, rng = simulate(conversations=180, eer=2.0, seed=3), np.random.default_rng(5)
    table = made.conversations
    score = WORLDS["gaussian"](speakers_on(table, made.truth), 0.02, rng)
    one, two = np.triu_indices(len(table.sides), 1)
    scores = np.zeros((len(table.sides),) * 2)
    scores[one, two] = scores[two, one] = score(one, two)
    rows = made.table()
    times = Counter(who for row in rows for who in row["participants"].split(";"))
    often = sorted(who for who, count in times.items() if count > 2)
    wrong = rng.permutation(len(rows))[: round(SHARE * 2 * len(rows))].tolist()
    for m in wrong:
        first, _ = rows[m]["participants"].split(";")
        others = [who for who in often if who not in rows[m]["participants"].split(";")]
        rows[m] = rows[m] | {"participants": f"{first};{rng.choice(others)}"}
    return rows, scores, made.key(), wrong


@pytest.fixture(scope="module")
def linked(spoiled):
    rows, scores, _, _ = spoiled
    return spklink.assign(rows, scores, calibration="labelfree", kind="lr", list_errors="auto")


def test_calibration_and_rate_are_those_of_right_lists(spoiled, linked):
    """The scores are log-likelihood-ratios, so the right calibration changes nothing. Strangers
    that are taken for targets would halve the slope."""
    rows, scores, _, wrong = spoiled
    believed = spklink.assign(rows, scores, calibration="labelfree", kind="lr")
    assert believed.calibration["scale"] < 0.75
    assert 0.8 < linked.calibration["scale"] < 1.7
    assert abs(linked.calibration["offset"]) < 1.5
    rate = linked.answer.rate
    assert rate.low < len(wrong) / (2 * len(rows)) < rate.high
    assert 0.03 < rate.value < 0.08


def test_a_calibration_that_tells_nothing_is_not_taken(spoiled, linked, monkeypatch):
    """Learning again may end where everybody may be absent: what was learned at first is kept."""
    rows, scores, _, _ = spoiled

    def flat(*given, **options):
        found = calibrated(*given, **options)
        if options.get("again") is None:
            return found
        last = replace(found.learned.history[-1], scale=1e-11)
        return replace(found, learned=replace(found.learned, history=[last]))

    monkeypatch.setattr("spklink.runs.seated.calibrated", flat)
    kept = spklink.assign(rows, scores, calibration="labelfree", kind="lr", list_errors="auto")
    believed = spklink.assign(rows, scores, calibration="labelfree", kind="lr")
    assert kept.calibration["scale"] == believed.calibration["scale"]
    assert kept.calibration["scale"] < linked.calibration["scale"]


def test_evaluate_says_how_well_wrong_lists_are_told(spoiled, linked):
    _, _, key, wrong = spoiled
    found = spklink.evaluate(linked, key)
    assert found.seats.lists.observed == len(wrong)
    assert found.seats.lists.area > 0.95
    assert found.seats.lists.recall > 0.8
    assert found.seats.presence.observed == found.seats.presence.count - len(wrong)
    assert found.seats.conversations == 180
    told = found.as_json()
    assert told["seats"]["lists"]["lists"] == 180
    assert told["resolvable"]["cliques"] == found.resolvable.cliques > 0
    assert abs(found.seats.lists.expected - len(wrong)) < 10


def test_only_seats_where_one_bit_does_not_tell(spoiled):
    rows, scores, key, _ = spoiled
    few = [row | {"participants": row["participants"].split(";")[0] + ";?"} for row in rows[:40]]
    part = spklink.assign(few, scores[:80, :80], list_errors="auto")
    found = spklink.evaluate(part, key)
    assert list(found.as_json()) == ["seats"]
    assert found.seats.tracks.tracks <= 80
    assert "tracks with a key" in repr(found)


def test_a_group_in_which_nobody_is_named():
    """Whoever is listed may be nowhere: then there is no voice of any name."""
    rows = [{"conversation": "c", "participants": "?ann;?bob;?cid;*", "tracks": "2"}]
    table = spklink.read_conversations(rows)
    links = spklink.find_links(table)
    cliques = spklink.find_cliques(table)
    answer = seat(table, cliques, links, np.zeros(0), weight=spklink.Weight(), rate=0.01)
    assert answer.confidence.chance.max() < 0.5  # three people, two tracks, no voice to go by
    assert sides_of(answer, 0) == {}


@pytest.mark.parametrize("both_listed", [False, True])
def test_two_names_with_one_voice_are_one_person_unless_they_talk_to_each_other(both_listed):
    first = ["ann"] * 4 + ["eve"] * 4 + ["ann"] * both_listed
    second = [f"p{k}" for k in range(8)] + ["eve"] * both_listed
    rows = [
        {"conversation": f"c{k}", "participants": f"{one};{two}"}
        for k, (one, two) in enumerate(zip(first, second, strict=True))
    ]
    voice = np.array([v for k in range(len(rows)) for v in (0, 1 + k)])  # ann's is eve's
    scores = np.where(voice[:, None] == voice, 4.0, -4.0)
    found = spklink.assign(rows, scores, calibration="none", list_errors=0.01).misfits
    told = [(listed, suggested) for _, kind, _, listed, suggested, _ in found if "one" in kind]
    assert told == ([] if both_listed else [("ann;eve", "ann = eve")])


def test_the_screen_shows_both_given_right_lists_and_with_nothing_given(spoiled, linked, capsys):
    measures.evaluation(spklink.evaluate(linked, spoiled[2]))
    shown = capsys.readouterr().out
    for words in ("Table 2", "With nothing given", "a list is wrong", "someone else", "settled"):
        assert words in shown
