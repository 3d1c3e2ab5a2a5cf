"""The report where lists may be wrong, and of conversations that are more than one bit."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from adversary.hostile_names import FIRST, seen
from made_reports import violations
from spklink.errors import SpklinkError
from spklink.report.lists import ranked
from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.runs.sentences import contradicted_sentence, count_misfits, one_in, rate_sentence

ALIKE, OTHER = 4.0, -4.0  # scores of one voice and of two
HOSTILE = [name.replace(";", ",").strip() for name in FIRST][:14]


def world(calls):
    """(rows, scores) of conversations: id, list, and who is truly on each track."""
    rows = [
        {"conversation": name, "participants": listed, "tracks": len(truth)}
        for name, listed, truth in calls
    ]
    people = np.array([hash_of(who) for _, _, truth in calls for who in truth])
    scores = np.where(people[:, None] == people[None, :], ALIKE, OTHER)
    return rows, scores


def hash_of(who: str) -> int:
    return NUMBERS.setdefault(who, len(NUMBERS))


NUMBERS: dict[str, int] = {}


def ring(names, spoilt):
    """Everybody talks to the next three; the list of one call names somebody else first."""
    calls = []
    for k, name in enumerate(names):
        for step in (1, 2, 3):
            pair = [name, names[(k + step) % len(names)]]
            listed = [names[(k + 6) % len(names)], pair[1]] if len(calls) == spoilt else pair
            calls.append((f"{name} call {step}", ";".join(listed), pair))
    return calls


def reported(folder: Path, calls, **options) -> Path:
    rows, _ = world(calls)
    truth = {(name, k): who for name, _, on in calls for k, who in enumerate(on, start=1)}
    found = assign(rows, lambda u, v: ALIKE if truth[u] == truth[v] else OTHER, folder, **options)
    write_report(folder, result=found)
    return folder


def numbers_of(out: Path):
    return json.loads((out / "report.json").read_text())


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory) -> Path:
    """Two people a call; one list is wrong."""
    names = [f"person{k}" for k in range(12)]
    return reported(tmp_path_factory.mktemp("spoilt"), ring(names, 4), list_errors=0.01)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """The same with names that break careless pages."""
    return reported(tmp_path_factory.mktemp("hostile"), ring(HOSTILE, 4), list_errors=0.01)


MEETINGS = [
    ("m1", "ann;bo;cy", ["bo", "ann", "cy"]),
    ("m2", "ann;bo;?dee", ["ann", "bo"]),
    ("m3", "cy;dee;?", ["cy", "nobody", "dee"]),
    ("m4", "ann;*", ["ann", "stranger"]),
    ("m5", "dee;bo;cy", ["dee", "bo", "ann"]),
    ("m6", "?;*", ["x", "y"]),
]


@pytest.fixture(scope="module")
def meetings(tmp_path_factory) -> Path:
    return reported(tmp_path_factory.mktemp("meetings"), MEETINGS, list_errors=0.05)


# --- words ------------------------------------------------------------------------------------


def test_shares_are_said_as_people_say_them():
    assert [one_in(share) for share in (0.0025, 0.1, 0.3, 0.0, 1 / 2041)] == [
        *("1 in 400", "1 in 10", "30 in 100", "none", "1 in 2,000"),
    ]


def test_the_rate_in_a_sentence():
    found = {"rate": 1 / 400, "low": 1 / 2000, "high": 1 / 150, "estimated": True}
    found["expected_absences"] = 2.0
    assert rate_sentence(found) == (
        "About 1 listing in 400 is wrong (between 1 in 2,000 and 1 in 150), estimated from the "
        "voices."
    )
    assert rate_sentence(found | {"estimated": False}).startswith("1 listing in 400 is taken")
    assert "at their word" in rate_sentence(found | {"rate": 0.0, "estimated": False})
    assert "so none can be wrong" in rate_sentence(found | {"expected_absences": 0.0})


def test_what_is_contradicted_in_a_sentence():
    rows = [
        ("a", "absent", "0.9", "", "", ""),
        ("b", "absent", "0.3", "", "", ""),
        ("c", "known channel", "0.8", "", "", ""),
        ("d;e", "one person", "0.7", "", "", ""),
    ]
    count = count_misfits(rows)
    assert count == {"lists": 1, "known_channels": 1, "names": 1, "doubtful": 1}
    assert contradicted_sentence(count) == (
        "The voices contradict 1 participant list, 1 known channel and 1 name; 1 more is worth a "
        "look."
    )
    assert contradicted_sentence(count_misfits([])).startswith("The voices contradict no")


def test_who_would_fit_is_a_name_and_a_probability():
    found = ranked("ann lee 0.716;* 0.2;no number")
    assert [(one["speaker"], one["probability"]) for one in found] == [
        *(("ann lee", 0.716), ("*", 0.2), ("no number", None)),
    ]
    assert [one["someone_else"] for one in found] == [False, True, False]
    assert ranked("") == []


def test_a_probability_that_is_none_is_an_error():
    for text in ("", "nan", "7", "x"):
        with pytest.raises(SpklinkError, match="make the results anew"):
            count_misfits([("a", "absent", text, "", "", "")])


# --- two people a call, lists that may be wrong -----------------------------------------------


def test_the_wrong_list_is_on_the_first_screen(spoilt):
    found, page = numbers_of(spoilt), (spoilt / "report.html").read_text()
    first = found["lists"]["rows"][0]
    assert first["conversations"] == ["person1 call 2"]
    assert first["kind"] == "absent"
    assert first["probability"] > 0.5
    absent = {one["speaker"]: one["probability"] for one in first["listed"]}
    assert absent["person7"] < 0.5 < absent["person3"]
    assert found["found"]["wrong_lists"] == found["lists"]["contradicted"]["lists"] == 1
    head = page[: page.index("<nav")]
    assert "person1 call 2" in head
    assert "1 participant list is probably wrong" in head


def test_conversations_have_tracks_decisions_and_presence(spoilt):
    rows = {row["conversation"]: row for row in numbers_of(spoilt)["conversations"]}
    wrong = rows["person1 call 2"]
    assert {one["decision"] for one in wrong["tracks"]} == {"misfit"}
    assert [one["speaker"] for one in wrong["tracks"]] == [None, "person3"]
    assert wrong["wrong_list"] > 0.5
    assert {one["decision"] for one in rows["person5 call 1"]["tracks"]} == {"settled"}
    assert len(rows["person5 call 1"]["listed"]) == 2


def test_the_page_agrees_with_the_tables(spoilt):
    """Every track as assignments.csv has it, every listing as presence.csv has it."""
    rows = {row["conversation"]: row for row in numbers_of(spoilt)["conversations"]}
    with (spoilt / "assignments.csv").open(newline="") as file:
        for told in csv.DictReader(file):
            one = rows[told["conversation"]]["tracks"][int(told["channel"]) - 1]
            assert (one["speaker"] or "*") == told["speaker"]
            assert one["decision"] == told["decision"]
            assert one["probability"] == pytest.approx(float(told["probability"]))
    with (spoilt / "presence.csv").open(newline="") as file:
        for told in csv.DictReader(file):
            listed = {one["speaker"]: one for one in rows[told["conversation"]]["listed"]}
            chance = listed[told["speaker"]]["probability"]
            assert chance == pytest.approx(float(told["probability"]))


def test_bits_stand_under_the_condition_that_makes_them_true(spoilt):
    text = (spoilt / "report.html").read_text()
    assert "Given that the lists are right" in text
    assert numbers_of(spoilt)["staircase"] is not None


# --- meetings ---------------------------------------------------------------------------------


def test_a_page_of_meetings(meetings):
    found, text = numbers_of(meetings), (meetings / "report.html").read_text()
    assert found["staircase"] is found["posterior"] is found["methods"] is None
    assert found["found"]["tracks"] == sum(len(truth) for *_, truth in MEETINGS)
    assert sum(found["found"]["decisions"].values()) == found["found"]["tracks"]
    assert sum(row[1] for row in found["seating"]["decisions"]["rows"]) == found["found"]["tracks"]
    assert "What is left to know" not in text
    assert "someone else" in text
    assert " bits" not in text[: text.index('<section id="database">')]


def test_a_meeting_is_drawn_as_a_square_with_lines(meetings):
    drawn = numbers_of(meetings)["database"]["drawn"]
    hubs = [node for one in drawn for node in one["nodes"] if not node["speakers"]]
    assert len(hubs) == sum(one["hubs"] for one in drawn) == 6
    named = [name for _, listed, _ in MEETINGS for name in listed.split(";") if name not in "?*"]
    assert sum(len(one["edges"]) for one in drawn) == len(named)


def test_many_meetings_are_drawn_as_circles(meetings, tmp_path, monkeypatch):
    monkeypatch.setattr("spklink.report.graphs.MOST_HUBS", 3)
    shutil.copytree(meetings, tmp_path / "out")
    write_report(tmp_path / "out")
    drawn = numbers_of(tmp_path / "out")["database"]["drawn"]
    assert [one["circles"] for one in drawn] == [True, False]
    assert max(edge["conversations"] for edge in drawn[0]["edges"]) == 2


def test_meetings_in_the_terminal(tmp_path, run):
    rows, scores = world(MEETINGS)
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    sides = [(name, k + 1) for name, _, truth in MEETINGS for k in range(len(truth))]
    with (tmp_path / "s.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["conversation_1", "channel_1", "conversation_2", "channel_2", "score"])
        for i, one in enumerate(sides):
            writer.writerows([*one, *sides[j], scores[i, j]] for j in range(i))
    words = ["assign", tmp_path / "c.csv", "--scores", tmp_path / "s.csv", "-o", tmp_path / "out"]
    code, text, err = run(*words, "--list-errors", "0.05")
    assert (code, err) == (0, "")
    assert "15 tracks:" in text
    assert "1 listing in 20 is taken to be wrong" in text
    assert "bits" not in text
    code, text, _ = run(*words, "--list-errors", "0.05", "--json")
    assert json.loads(text)["list_errors"]["rate"] == 0.05


# --- in a browser -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spoilt", "hostile", "meetings"])
def test_pages_of_lists_open_without_a_complaint(kind, request, browser):
    out = request.getfixturevalue(kind)
    for width, scheme in ((1280, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        heard: list[str] = []
        page.on("console", lambda message, heard=heard: heard.append(message.text))
        page.on("pageerror", lambda error, heard=heard: heard.append(str(error)))
        page.goto((out / "report.html").as_uri())
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{kind} overflows at {width}"
        assert page.locator(".five dd").count() == 5
        page.locator("#conversations button[data-c]").first.click()
        assert "there: " in page.locator("#detail").inner_text() or kind == "meetings"
        page.keyboard.press("Escape")
        page.locator("#search").fill("call")
        assert page.evaluate("window.hacked") is None
        assert heard == []
        context.close()


@pytest.mark.parametrize(("kind", "scheme"), [("spoilt", "dark"), ("meetings", "light")])
def test_nobody_is_shut_out_of_lists(kind, scheme, request, browser):
    complaints = violations(browser, request.getfixturevalue(kind), 1280, scheme)
    assert not complaints, complaints


def test_misfits_can_be_filtered_and_sorted(spoilt, browser):
    page = browser.new_page()
    page.goto((spoilt / "report.html").as_uri())
    rows = page.locator("#misfit-table tbody tr:visible")
    every = rows.count()
    page.locator("[data-filter]").fill("person1 call 2")
    assert 1 <= rows.count() <= every
    page.locator("[data-filter]").fill("no such name")
    assert rows.count() == 0
    page.locator("[data-filter]").fill("")
    page.locator("#misfit-table th button").first.click()
    chances = [float(v) for v in page.evaluate(VALUES)]
    assert chances == sorted(chances)
    page.locator("#misfit-table th button").first.click()
    assert [float(v) for v in page.evaluate(VALUES)] == chances[::-1]
    page.close()


VALUES = "[...document.querySelectorAll('#misfit-table td[data-v]')].map((n) => n.dataset.v)"


def test_hostile_names_in_misfits_are_text(hostile, browser):
    page = browser.new_page()
    page.goto((hostile / "report.html").as_uri())
    shown = "(q) => [...document.querySelectorAll(q)].map((n) => n.textContent)"
    named = set(page.evaluate(shown, "#misfits bdi.name"))
    first = numbers_of(hostile)["lists"]["rows"][0]
    for one in first["listed"]:
        name = seen(one["speaker"])
        assert (name if len(name) <= 80 else name[:80] + "…") in named
    assert page.evaluate("window.hacked") is None
    for text in page.evaluate(shown, "bdi.said"):
        assert "\u202e" not in text
        assert len(text) <= 401
    page.close()
