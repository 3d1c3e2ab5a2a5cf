"""People whom no list names: enrolled, or known from other calls; the run from table to folder."""

import csv
from collections import Counter

import numpy as np
import pytest

from given_voices import make_voices
from made_calls import write_calls, write_table
from spklink import link, load
from spklink.errors import SpklinkError
from spklink.runs.enrolled import enrolment_table
from spklink.tables import open_table


@pytest.fixture(scope="module")
def voices():
    """Sixty calls of two towns of six people each."""
    return make_voices(towns=2, people=6, calls=30, noise=0.3, seed=4)


def truth_of(voices):
    """Who is on each side."""
    found = {}
    listed = {row["conversation"]: row["participants"].split(";") for row in voices.table}
    for row in voices.key:
        name, channel = row["conversation"], int(row["channel"])
        found[name, channel] = row["speaker"]
        other = [who for who in listed[name] if who != row["speaker"]]
        found.setdefault((name, 3 - channel), other[0])
    return found


def enrolled(voices, people, rng):
    """Vectors of further recordings of some people, and the table that says whose they are."""
    truth, sides = truth_of(voices), {}
    names = zip(voices.conversation, voices.channel, strict=True)
    for k, side in enumerate(names):
        sides.setdefault(truth[side], []).append(k)
    rows, vectors = [], []
    for who in people:
        vectors.append(voices.vectors[sides[who]].mean(axis=0))
        vectors[-1] = vectors[-1] + 0.2 * rng.standard_normal(len(vectors[-1]))
        rows.append({"speaker": who, "recording": f"rec {who}"})
    return rows, np.array(vectors, np.float32)


def asked(voices, people, lists=None, **options):
    rows, more = enrolled(voices, people, np.random.default_rng(0))
    arrays = {
        "conversation": [*voices.conversation, *(row["recording"] for row in rows)],
        "channel": [*voices.channel, *[1] * len(rows)],
        "embedding": np.concatenate([voices.vectors, more]) if rows else voices.vectors,
    }
    table = [
        row | {"participants": (lists or {}).get(row["conversation"], "")} for row in voices.table
    ]
    return link(table, embeddings=arrays, enrol=rows or None, workers=1, **options)


@pytest.fixture(scope="module")
def open_set(voices):
    people = sorted(set(truth_of(voices).values()))[::2]
    return people, asked(voices, people)


def test_enrolled_people_are_found_and_others_are_nobody(voices, open_set):
    people, result = open_set
    truth, rows = truth_of(voices), list(result.assignments())
    assert len(rows) == len(voices.conversation)
    wrong = [r for r in rows if (truth[r[0], r[1]] if truth[r[0], r[1]] in people else "*") != r[2]]
    expected = sum(1.0 - float(row[3]) for row in rows)
    assert len(wrong) <= 3 + 3 * expected
    summary = result.summary()
    assert summary["enrolled"] == 6
    assert summary["conversations"] == len(voices.table)
    naming = summary["naming"]
    assert abs(naming["rate"] - np.mean([who in people for who in truth.values()])) < 0.1
    assert naming["left_out_most"] <= 1e-3 * 1.01
    assert result.calibration["source"] == "labelfree"
    assert result.calibration["rounds"] > 1


def test_a_folder_is_read_back_as_it_was(open_set, tmp_path):
    _, result = open_set
    again = load(result.save(tmp_path))
    assert list(again.assignments()) == list(result.assignments())
    assert again.summary() == result.summary()
    statuses = {row["status"] for row in csv.DictReader((tmp_path / "presence.csv").open())}
    assert statuses == {"candidate"}
    again.save(tmp_path / "again")
    for name in ("candidates.csv", "assignments.csv", "presence.csv", "enrol.csv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_names_come_from_other_calls(voices):
    """Half of the calls have lists, a quarter one name, a quarter none; nobody is enrolled."""
    lists = {}
    for k, row in enumerate(voices.table):
        names = row["participants"].split(";")
        lists[row["conversation"]] = {0: "", 1: f"{names[0]};?"}.get(k % 4, row["participants"])
    result, truth = asked(voices, [], lists), truth_of(voices)
    named = {(row[0], row[1]): row[2] for row in result.assignments()}
    assert sum(named[side] == who for side, who in truth.items()) >= len(truth) - 2
    kept = asked(voices, [], lists, unlisted="keep")
    strangers = [row for row in kept.assignments() if row[2] == "*"]
    assert len(strangers) == 2 * 15 + 15
    assert kept.naming is None


def test_one_call_of_two_people_is_resolved_by_an_enrolment(voices):
    """Nobody else is in the clique: without an enrolment no voice could tell."""
    pair = voices.table[0]
    lists = {row["conversation"]: row["participants"] for row in voices.table}
    table = [row | {"group": ""} for row in voices.table]
    table[0]["group"] = "alone"
    who = lists[pair["conversation"]].split(";")[0]
    rows, more = enrolled(voices, [who], np.random.default_rng(0))
    arrays = {
        "conversation": [*voices.conversation, rows[0]["recording"]],
        "channel": [*voices.channel, 1],
        "embedding": np.concatenate([voices.vectors, more]),
    }
    rows[0]["group"] = "alone"
    before = next(iter(link(table, embeddings=arrays, workers=1).assignments()))
    after = next(iter(link(table, embeddings=arrays, enrol=rows, workers=1).assignments()))
    assert before[-1] == "unresolvable"
    assert float(before[3]) <= 0.5
    assert float(after[3]) > 0.9
    assert after[2] == truth_of(voices)[pair["conversation"], 1]


def test_nobody_to_name(voices):
    with pytest.raises(SpklinkError, match="no participant is named in any row"):
        asked(voices, [])


def test_calls_with_enrolment_from_sound(run, tmp_path):
    """The command line on artificial voices: channels of files, then the settled sides of that."""
    folder = write_calls(tmp_path)
    people = [(who, f"{k}.wav", c) for who, k, c in (("a", 7, 1), ("d", 10, 2), ("f", 11, 1))]
    write_table(folder / "enrol.csv", ["speaker", "audio", "channel"], people)
    new = [(f"new{k}", f"{k}.wav", names) for k, names in ((0, ""), (3, ""), (4, "d;f"))]
    write_table(folder / "new.csv", ["conversation", "audio", "participants"], new)
    asked = ("link", folder / "new.csv", "--no-report", "--workers", 1, "--cache", folder / "cache")
    code, said, _ = run(*asked, "--enrol", folder / "enrol.csv", "-o", folder / "out")
    assert code == 0
    assert "4 tracks with an open list" in said
    rows = list(csv.DictReader((folder / "out" / "assignments.csv").open()))
    assert [row["conversation"] for row in rows] == [f"new{k}" for k in (0, 0, 3, 3, 4, 4)]
    assert len((folder / "out" / "sides.csv").read_text().splitlines()) == 1 + 6 + 3
    assert load(folder / "out").conversations.enrolled == 3


def test_a_channel_that_a_file_does_not_have(run, tmp_path):
    folder = write_calls(tmp_path)
    write_table(folder / "enrol.csv", ["speaker", "audio", "channel"], [("a", "7.wav", 3)])
    write_table(folder / "new.csv", ["conversation", "audio"], [("new", "0.wav")])
    asked = ("link", folder / "new.csv", "--enrol", folder / "enrol.csv", "-o", folder / "out")
    code, _, said = run(*asked, "--workers", 1)
    assert code == 2
    assert "enrolment, row 2" in said
    assert "channel 3 of a file that has 2" in said


def test_settled_sides_of_a_folder_are_an_enrolment(voices, open_set, tmp_path):
    people, result = open_set
    found = enrolment_table(result.save(tmp_path / "out"))
    with open_table(found) as (header, rows):
        cells = [dict(zip(header.names, fields, strict=True)) for _, fields in rows]
    truth = truth_of(voices)
    cells = [row for row in cells if not row["speaker"].startswith("unknown-")]
    assert {row["speaker"] for row in cells} <= set(people)
    assert len(cells) > 10
    for row in cells:
        name, channel = row["recording"].rsplit("-", 1)
        assert truth[name, int(channel)] == row["speaker"]
    assert max(Counter(row["speaker"] for row in cells).values()) <= 10
