"""Answers of people on the page: how many, whose, and where; never "without any known answer"."""

from __future__ import annotations

import re

import pytest
import soundfile

from made_calls import write_calls
from made_reports import numbers_of, page_of
from spklink import assign, link, simulate
from spklink.report.write import report_at_hand, write_report
from spklink.review.desk import Desk
from spklink.worlds.simulate import write_simulation

FAST = {"components": 16, "workers": 1}
WITHOUT = "without any known answer"


def text_of(out) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page_of(out)))


def card_of(out, number) -> str:
    found = re.search(rf'<article class="call" id="c{number}">.*?</article>', page_of(out), re.S)
    return re.sub(r"\s+", " ", re.sub(r"</?(bdi|b|i)\b[^>]*>", "", re.sub(r"</dt>", " ", found[0])))


@pytest.fixture
def world(tmp_path):
    """Calibrated without labels, so that the page speaks of known answers."""
    made = simulate(shape="cgn", conversations=60, eer=8.0, seed=4)
    write_simulation(made, tmp_path / "sim")
    return made, tmp_path


def linked(world, **options):
    folder = world[1]
    return assign(
        folder / "sim" / "conversations.csv",
        folder / "sim" / "scores.csv",
        folder / "out",
        calibration="labelfree",
        **options,
    )


def names(made, m):
    return [made.on_side[side] for side in range(2 * m, 2 * m + 2)]


def test_without_answers_nothing_is_said_of_any(world):
    linked(world)
    write_report(world[1] / "out")
    assert WITHOUT in text_of(world[1] / "out").lower()
    numbers = numbers_of(world[1] / "out")
    assert "answers" not in numbers
    assert not any("answers" in one for one in numbers["conversations"])


@pytest.mark.parametrize("list_errors", [0.0, "auto"])
def test_known_channels_are_counted_and_marked(world, list_errors):
    made, folder = world
    known = made.key()[6:10]  # both channels of the fourth conversation and the fifth
    linked(world, known=known, list_errors=list_errors)
    write_report(folder / "out")
    text = text_of(folder / "out")
    assert WITHOUT not in text.lower()
    assert "Channels of 2 conversations were given to the run (known.csv)." in text
    assert "With known channels of 2 conversations, from" in text
    assert numbers_of(folder / "out")["answers"]["given"] == 2
    assert f"given to the run: {', '.join(names(made, 3))}" in card_of(folder / "out", 4)
    assert "<dt>answer" not in card_of(folder / "out", 1)


@pytest.mark.parametrize("list_errors", [0.0, "auto"])
def test_decisions_are_counted_by_whom_and_marked(world, list_errors):
    made, folder = world
    linked(world, list_errors=list_errors)
    write_report(folder / "out")
    desk = Desk.open(folder / "out")
    desk.decide(0, names(made, 0), reviewer="anna", request="1")
    desk.decide(1, names(made, 1), reviewer="anna", request="2")
    desk.decide(1, names(made, 1), reviewer="bert", request="3")
    desk.decide(2, [None, None], reviewer="bert", verdict="unsure", request="4")
    desk.decide(3, names(made, 3), reviewer="anna", request="5")
    desk.decide(3, names(made, 3)[::-1], reviewer="<b>carl", request="6")
    desk.decide(4, names(made, 4), reviewer="anna", request="7")
    desk.undo(reviewer="anna", request="8")
    desk.log.close()
    assert report_at_hand(folder / "out", None, None) is None  # what is there tells of none
    write_report(folder / "out")
    text, numbers = text_of(folder / "out"), numbers_of(folder / "out")
    assert WITHOUT not in text.lower()
    said = "2 conversations decided by listening (anna 2, bert 1), 1 in dispute, 1 heard without"
    assert said in text
    assert (numbers["answers"]["decided"], numbers["answers"]["disagree"]) == (2, 1)
    assert f"heard by anna: {', '.join(names(made, 0))}" in card_of(folder / "out", 1)
    assert "heard by anna and bert:" in card_of(folder / "out", 2)
    assert "bert heard it and could not tell" in card_of(folder / "out", 3)
    assert "anna and &lt;b&gt;carl hear different voices" in card_of(folder / "out", 4)
    assert "<dt>answer" not in card_of(folder / "out", 5)  # it was taken back
    assert report_at_hand(folder / "out", None, None) is not None


def test_a_decision_on_another_recording_is_no_answer(tmp_path):
    write_calls(tmp_path)
    link(tmp_path / "conversations.csv", tmp_path / "out", **FAST)
    desk = Desk.open(tmp_path / "out")
    desk.decide(0, desk.table.names(0), reviewer="anna", request="1")
    desk.log.close()
    path = tmp_path / "out" / desk.table.audio[0][0]
    sound, rate = soundfile.read(path)
    soundfile.write(path, sound[:, ::-1], rate)
    write_report(tmp_path / "out")
    text = text_of(tmp_path / "out")
    assert "0 conversations decided by listening, 1 decided on a recording that has changed" in text
    assert "decided by anna on a recording that has changed" in card_of(tmp_path / "out", 1)
    assert "heard by anna" not in text
