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
from spklink.posterior.states.prior import normalising, seat_prior
from spklink.runs.cues import exchange_odds, odds_of

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
        own = seat_layout(plain)
        sums = (normalising(own, one.seat, one.count) for one in (a, b))
        np.testing.assert_allclose(*sums, atol=1e-9)


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


OTHER_LISTS = ["f;?", "f;*", "f;?g", "f;g;h"]


@pytest.mark.parametrize("other", OTHER_LISTS)
@pytest.mark.parametrize("list_errors", [0.0, 0.02])
def test_conflicts_are_told_whatever_other_lists_look_like(tmp_path, other, list_errors):
    """c0: voices contradict the cue, be it weak or strong; c1 and c3: they do not."""
    tracks = {"tracks": str(max(2, other.count(";") + 1))}
    row = {"conversation": "c5", "participants": other} | tracks
    table = [one | {"tracks": "2"} for one in TABLE] + [row]

    def score(one, two):
        return -4.0 if "c5" in (one[0], two[0]) else scores(4.0)(one, two)

    for strength, odds in (("-4", 12.0), ("-25", 9.0)):
        cue = [
            {"conversation": "c0", "log_odds": strength},
            {"conversation": "c1", "log_odds": "20"},
            {"conversation": "c3", "log_odds": "-20"},
        ]
        found = spklink.assign(table, score, tmp_path, cue=cue, list_errors=list_errors)
        assert not found.conversations.plain
        [conflict] = read(tmp_path / "conflicts.csv")
        assert (conflict["conversation"], conflict["cue"]) == ("c0", "voices")
        assert abs(float(conflict["log_odds"])) > odds
        assert any("c0" in note and "conflicts.csv" in note for note in found.notes)
        said = {
            row["conversation"]: float(row["log_odds"])
            for row in read(tmp_path / "evidence.csv")
            if row["cue"] == "voices"
        }
        assert set(said) == {f"c{k}" for k in range(5)}
        assert said["c3"] == pytest.approx(0.0, abs=0.1)  # no voice can tell
        assert said["c4"] > LOG19  # whose people those of c3 tell


@pytest.mark.parametrize("value", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("odds", [-20, -3, 0.5, 20])
def test_odds_of_an_exchange_are_those_of_bits(value, odds):
    """The answer in full against that of bits, of which both are had where all lists are plain."""
    cue = [{"conversation": name, "log_odds": str(odds)} for name in ("c0", "c3")]
    found = spklink.assign(TABLE, scores(value), cue=cue, list_errors=1e-5)
    np.testing.assert_allclose(
        exchange_odds(found.answer), odds_of(found.posterior), atol=0.05, rtol=0.02
    )


def test_known_channels_are_not_what_voices_say(tmp_path):
    table = [*TABLE, {"conversation": "c5", "participants": "f;?"}]
    known = [{"conversation": "c0", "channel": "1", "speaker": "a"}]
    cue = [{"conversation": "c0", "log_odds": "4"}]
    spklink.assign(table, lambda one, two: 0.0, tmp_path, cue=cue, known=known)
    said = {(row["conversation"], row["cue"]) for row in read(tmp_path / "evidence.csv")}
    assert ("c0", "cue") in said
    assert ("c0", "voices") not in said
    assert ("c1", "voices") in said


def test_without_cues_nothing_is_written(tmp_path):
    spklink.assign(TABLE, scores(), tmp_path)
    assert not {"cues.csv", "evidence.csv", "conflicts.csv"} & {p.name for p in tmp_path.iterdir()}
    assert "cues" not in (tmp_path / "run.json").read_text()


def test_cues_and_people_on_two_tracks():
    plain = read_conversations(TABLE)
    rows = [{"conversation": "c3", "log_odds": "6"}]
    found = spklink.assign(TABLE, scores(4.0), cue=rows, split_speakers=0.05)
    assert not found.answer.binary
    chance = {row[:3]: float(row[3]) for row in found.assignments()}
    assert chance["c3", 1, "d"] > 0.9
    assert from_odds(plain, np.zeros(5)).shape == nothing(plain).shape
