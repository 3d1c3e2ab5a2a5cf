"""Meetings in which a diarizer has split voices, from scores to tables and back."""

import csv

import pytest

from spklink import assign, evaluate, load
from spklink.errors import SpklinkError
from spklink.worlds.simulate import simulate, write_simulation


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    world = simulate(
        shape="meetings", conversations=24, people=8, tracks=3, split=0.15, eer=1.0, seed=4
    )
    write_simulation(world, folder)
    return folder


def twice(path):
    """Conversations and speakers with two rows."""
    with path.open() as file:
        rows = [(row["conversation"], row["speaker"]) for row in csv.DictReader(file)]
    return {row for row in rows if rows.count(row) > 1 and row[1] != "*"}


def test_whoever_is_split_is_named_twice_and_there_once(made, tmp_path):
    found = assign(
        made / "conversations.csv", made / "scores.csv", tmp_path / "out", split_speakers=0.1
    )
    assert twice(made / "key.csv")
    assert twice(tmp_path / "out" / "assignments.csv") == twice(made / "key.csv")
    assert not twice(tmp_path / "out" / "presence.csv")
    measured = evaluate(found, made / "key.csv").seats
    assert measured.tracks.wrong_named == 0
    assert measured.resolvable.cross_entropy_bits is None or (
        measured.resolvable.cross_entropy_bits < 0.5
    )
    again = load(tmp_path / "out")
    assert again.answer.split is not None
    assert (again.answer.entry == found.answer.entry).all()


def test_without_the_option_nobody_is(made, tmp_path):
    assign(made / "conversations.csv", made / "scores.csv", tmp_path / "out")
    assert not twice(tmp_path / "out" / "assignments.csv")
    with pytest.raises(SpklinkError, match="needs --split-speakers"):
        evaluate(load(tmp_path / "out"), made / "key.csv")


def test_calls_of_two_may_be_asked_about_too(tmp_path):
    world = simulate(shape="cgn", conversations=40, seed=2)
    write_simulation(world, tmp_path)
    found = assign(
        tmp_path / "conversations.csv",
        tmp_path / "scores.csv",
        list_errors=0.05,
        split_speakers=0.05,
        calibration="labelfree",
    )
    assert not found.answer.binary
    assert evaluate(found, tmp_path / "key.csv").seats.tracks.wrong_settled == 0
