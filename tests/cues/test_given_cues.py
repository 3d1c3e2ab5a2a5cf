"""Cues from a table, what they add to the posterior, and what is told about them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import spklink
from spklink.cues.cue import for_places, from_odds, nothing, odds_in, seat_layout, with_cues
from spklink.cues.given import read_cues
from spklink.database.conversations import read_conversations
from spklink.errors import SpklinkError
from spklink.posterior.likelihood import combine_prior
from spklink.posterior.states.prior import seat_prior

PAIRS = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e"), ("d", "e")]
TABLE = [{"conversation": f"c{k}", "participants": f"{x};{y}"} for k, (x, y) in enumerate(PAIRS)]
LOG19 = float(np.log(19.0))


def scores(value=2.0):
    """Everybody as listed: a is on 1, …; every pair is told by `value`."""
    on = [x for pair in PAIRS for x in pair]

    def score(one, two):
        (c, k), (d, m) = one, two
        first, second = on[2 * int(c[1:]) + k - 1], on[2 * int(d[1:]) + m - 1]
        return value if first == second else -value

    return score


def test_log_odds_are_for_the_listed_order_and_named():
    table = read_conversations(TABLE)
    rows = [
        {"conversation": "c0", "log_odds": "1.5", "name": "x"},
        {"conversation": "c3", "log_odds": "-2", "name": ""},
    ]
    x, other = read_cues(rows, table)
    assert (x.name, other.name) == ("x", "cue")
    np.testing.assert_allclose(odds_in(table, x.seat), [-1.5, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(odds_in(table, other.seat), [0, 0, 0, 2, 0], atol=1e-12)


def test_a_cue_is_worth_what_the_prior_column_is():
    chance = np.array([0.9, 0.5, 0.2, 0.5, 0.99])
    plain = read_conversations(TABLE)
    odds = np.log1p(-chance) - np.log(chance)
    cued = with_cues(
        plain,
        read_cues([{"conversation": f"c{k}", "log_odds": -x} for k, x in enumerate(odds)], plain),
    )
    column = read_conversations(
        [row | {"prior": str(p)} for row, p in zip(TABLE, chance, strict=True)]
    )
    np.testing.assert_allclose(
        combine_prior(cued).log_odds, combine_prior(column).log_odds, atol=1e-12
    )
    for rate in (0.0, 0.05):
        a, b = (seat_prior(t, rate, 1000.0) for t in (cued, column))
        np.testing.assert_allclose(a.seat, b.seat, atol=1e-9)
        np.testing.assert_allclose(a.constant, b.constant, atol=1e-9)


def test_the_general_form(tmp_path):
    rows = [{"conversation": "m", "participants": "a;b;c", "tracks": "3"}]
    table = read_conversations(rows)
    given = [{"conversation": "m", "track": "2", "speaker": "c", "log_odds": "1.25"}]
    [cue] = read_cues(given, table)
    own = seat_layout(table).seats(cue.seat, 0)
    assert own[2, 1] == 1.25
    assert np.count_nonzero(own) == 1
    place = np.array([0, 2, 1])
    assert for_places(table, cue.seat, place)[0] == pytest.approx(0.0)  # a and b may be exchanged
    own[0, 0] = 2.0
    assert for_places(table, cue.seat, place)[0] == pytest.approx(1.25)


WRONG = [
    ({"conversation": "x", "log_odds": "1"}, "row 2: no conversation is called 'x'"),
    ({"conversation": "c0", "log_odds": "inf"}, "row 2: log_odds 'inf'"),
    ({"conversation": "c0", "log_odds": "nan"}, "row 2: log_odds 'nan'"),
    ({"conversation": "c0", "track": "3", "speaker": "a", "log_odds": "1"}, "no track '3'"),
    ({"conversation": "c0", "track": "1", "speaker": "z", "log_odds": "1"}, "'z' is not listed"),
    ({"conversation": "c0", "track": "1", "log_odds": "1"}, "no column 'speaker'"),
]


@pytest.mark.parametrize(("row", "message"), WRONG)
def test_what_is_wrong_is_named(row, message):
    with pytest.raises(SpklinkError, match=message):
        read_cues([row], read_conversations(TABLE))


def test_rows_twice():
    rows = [{"conversation": "c0", "log_odds": "1"}] * 2
    with pytest.raises(SpklinkError, match="row 3: the same as row 2"):
        read_cues(rows, read_conversations(TABLE))


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("list_errors", [0.0, 0.02])
def test_a_cue_settles_what_voices_cannot(tmp_path, list_errors):
    cue = [{"conversation": "c3", "log_odds": "-6", "name": "turns"}]
    plain = spklink.assign(TABLE, scores(4.0), list_errors=list_errors)
    found = spklink.assign(TABLE, scores(4.0), tmp_path, cue=cue, list_errors=list_errors)
    before, after = (
        [row for row in one.assignments() if row[0] in ("c3", "c4") and row[1] == 1]
        for one in (plain, found)
    )
    assert all(float(row[3]) < 0.51 for row in before)
    assert all(row[2] == "e" and float(row[3]) > 0.9 for row in after)
    said = {
        (row["conversation"], row["cue"]): float(row["log_odds"])
        for row in read(tmp_path / "evidence.csv")
    }
    assert said["c3", "turns"] == pytest.approx(6.0)
    assert ("c4", "turns") not in said
    odds = found.posterior.exchanged[4] / (1.0 - found.posterior.exchanged[4])
    assert said["c4", "voices"] == pytest.approx(np.log(odds), rel=1e-4)
    again = spklink.load(tmp_path)
    assert list(again.assignments()) == list(found.assignments())


def test_the_parts_add_up_and_conflicts_are_told(tmp_path):
    cue = [
        {"conversation": "c0", "log_odds": "-4", "name": "turns"},
        {"conversation": "c0", "log_odds": "0.5", "name": "sex"},
    ]
    found = spklink.assign(TABLE, scores(4.0), tmp_path, cue=cue)
    rows = [row for row in read(tmp_path / "evidence.csv") if row["conversation"] == "c0"]
    assert [row["cue"] for row in rows] == ["voices", "turns", "sex"]
    total = sum(float(row["log_odds"]) for row in rows)
    x = found.posterior.exchanged[0]
    assert total == pytest.approx(abs(np.log(x) - np.log1p(-x)), rel=1e-4)
    [conflict] = read(tmp_path / "conflicts.csv")
    assert (conflict["conversation"], conflict["cue"], conflict["against"]) == (
        "c0",
        "voices",
        "turns",
    )
    assert float(conflict["log_odds"]) > LOG19
    assert any("c0" in note and "conflicts.csv" in note for note in found.notes)


def test_without_cues_nothing_is_written(tmp_path):
    spklink.assign(TABLE, scores(), tmp_path)
    assert not {"cues.csv", "evidence.csv", "conflicts.csv"} & {p.name for p in tmp_path.iterdir()}
    assert "cues" not in (tmp_path / "run.json").read_text()


def test_cues_and_people_on_two_tracks():
    plain = read_conversations(TABLE)
    rows = [{"conversation": "c3", "log_odds": "6"}]
    found = spklink.assign(TABLE, scores(4.0), cue=rows, split_speakers=0.05)
    assert found.seating is not None
    chance = {row[:3]: float(row[3]) for row in found.assignments()}
    assert chance["c3", 1, "d"] > 0.9
    assert from_odds(plain, np.zeros(5)).shape == nothing(plain).shape
