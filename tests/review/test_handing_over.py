"""What is handed over: read back, it says what the desk says."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from spklink import assign
from spklink.review.desk import Desk
from spklink.review.export import export
from spklink.tables import write_csv
from spklink.worlds.simulate import simulate, write_simulation


@pytest.fixture(scope="module")
def made():
    return simulate(shape="cgn", conversations=40, eer=15, seed=4)


@pytest.fixture
def world(made, tmp_path):
    write_simulation(made, tmp_path / "sim")
    assign(tmp_path / "sim" / "conversations.csv", tmp_path / "sim" / "scores.csv").save(
        tmp_path / "results"
    )
    return tmp_path


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def decided(world, made, number=5):
    """The first few of the queue, as they are; the desk."""
    desk = Desk.open(world / "results")
    for k in range(number):
        m = desk.queue(0, 1)[0].m
        names = np.array(made.on_side)[made.conversations.sides.of(m)].tolist()
        desk.decide(m, names, reviewer="anna" if k % 2 else "bert; jr", request=str(k))
    return desk


def test_a_run_that_knows_what_was_heard_says_the_same(world, made):
    desk, out = decided(world, made), world / "out"
    found, files = export(world / "results", out)
    assert all(path.exists() for path in files)
    assert found["last_hash"] == desk.log.verify()
    again = assign(out / "conversations.csv", world / "sim" / "scores.csv", known=out / "known.csv")
    assert again.posterior.entropy_bits.sum() == pytest.approx(desk.progress().bits_left[0])
    said = {(row["conversation"], row["channel"]): row for row in rows(out / "assignments.csv")}
    for row in again._rows()[1]:
        mine = said[row[0], str(row[1])]
        assert mine["speaker"] == row[2]
        assert float(mine["probability"]) == pytest.approx(float(row[3]), abs=1e-9)
        assert (mine["origin"] == "heard") == (row[8] == "given")
        assert bool(mine["by"]) == (mine["origin"] == "heard")


def test_strangers_and_people_of_other_names_change_the_list(world):
    desk, out = Desk.open(world / "results"), world / "out"
    a = desk.table.names(0)[0]
    desk.decide(0, (a, "*"), reviewer="anna", request="1")
    desk.decide(1, ("Zoë", desk.table.names(1)[0]), reviewer="anna", request="2")
    c, d = desk.table.names(2)
    desk.decide(2, (None, "*"), reviewer="anna", request="3")
    export(world / "results", out)
    lists = {}
    for row in rows(out / "conversations.csv"):
        lists.setdefault(row["conversation"], []).append((row["speaker"], row["status"]))
    ids = desk.table.ids
    assert lists[ids[0]] == [(a, "certain"), ("?", "unknown")]
    assert lists[ids[1]] == [("Zoë", "certain"), (desk.table.names(1)[0], "certain")]
    assert lists[ids[2]] == [("?", "unknown"), (c, "possible"), (d, "possible")]
    assert lists[ids[3]] == [(name, "certain") for name in desk.table.names(3)]
    again = assign(out / "conversations.csv", world / "sim" / "scores.csv", known=out / "known.csv")
    named = {(row[0], row[1]): row[2] for row in again._rows()[1]}
    assert named[ids[0], 1] == a
    assert named[ids[0], 2] == "*"
    assert named[ids[1], 1] == "Zoë"


def test_changes_are_where_somebody_else_is_than_was_claimed(world, made):
    desk, out = decided(world, made), world / "out"
    heard = desk.where[desk.log.all()[0].conversation]
    free = [m for m in range(len(desk.table)) if desk.verdict(m).seats is None]
    sure = next(m for m in free if not desk.board.open[m])
    part, i = desk.place_of(sure)
    wrong = {heard: desk.verdict(heard).seats[::-1], sure: part.names(i)[::-1]}
    claimed = [
        (desk.table.ids[m], k + 1, who)
        for m in range(len(desk.table))
        for k, who in enumerate(wrong.get(m, desk.place_of(m)[0].names(desk.place_of(m)[1])))
    ]
    write_csv(world / "claimed.csv", ("conversation", "channel", "speaker"), claimed)
    export(world / "results", out, claimed=world / "claimed.csv")
    changed = rows(out / "changes.csv")
    assert {row["conversation"] for row in changed} == {desk.table.ids[m] for m in wrong}
    assert {(row["origin"], bool(row["by"])) for row in changed} == {
        ("heard", True),
        ("inferred", False),
    }
    one = next(row for row in changed if row["conversation"] == desk.table.ids[sure])
    assert (one["claimed"], one["speaker"]) == (wrong[sure][0], part.names(i)[0])


def test_the_commands(world, made, run):
    decided(world, made)
    code, text, _ = run("decisions", world / "results", "-o", world / "out")
    assert code == 0
    assert "5 entries in the log" in text
    assert "bert; jr: 3 decisions" in text
    last = json.loads((world / "out" / "review.json").read_text())["last_hash"]
    code, text, _ = run("decisions", world / "out" / "log.jsonl", "--json")
    assert code == 0
    assert json.loads(text)["last_hash"] == last
    path = world / "out" / "log.jsonl"
    path.write_text(path.read_text().replace("anna", "otto", 1))
    code, _, error = run("decisions", path)
    assert code == 2
    assert "entry 2 of the log was changed" in error
    code, text, _ = run("queue", world / "results", "--json", "--count", "3")
    found = json.loads(text)
    assert code == 0
    assert found["progress"]["decided"] == 5
    assert len(found["queue"]) == 3
    assert {"question", "reason", "bits", "settles", "listens"} <= found["queue"][0].keys()
    for order in ("paper", "uncertain", "random"):
        code, text, _ = run("queue", world / "results", "--order", order)
        assert code == 0
        assert "5 decided" in text
    code, _, error = run("queue", world / "results", "--certainty", "2")
    assert code == 2
    assert "between .5 and 1" in error


def test_conversations_in_dispute_come_in_the_order_of_the_log(world, made):
    desk = Desk.open(world / "results")
    names = desk.table.ids[10:22][::-1]
    for name in names:
        for k, reviewer in enumerate(("anna", "bert")):
            seats = desk.table.names(desk.where[name])[:: 1 - 2 * k]
            words = {"reviewer": reviewer, "verdict": "heard", "seats": tuple(seats)}
            desk.log.append(conversation=name, request=f"{name} {k}", **words)
    assert export(world / "results", world / "out")[0]["disagreements"] == list(names)
