"""A decision counts for the recording that was heard, not for another one under the same name."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import soundfile

from made_calls import write_calls
from reviewed import ask, decide, served, write_results
from spklink import assign, link
from spklink.errors import SpklinkError
from spklink.review.desk import Desk
from spklink.review.export import export

FAST = {"components": 16, "workers": 1}
QUICK = ("--components", 16, "--workers", 1, "--no-report")


def swap(path: Path) -> None:
    """Exchange the channels of a recording."""
    samples, rate = soundfile.read(path, dtype="int16")
    soundfile.write(path, samples[:, ::-1], rate, subtype="PCM_16")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def hear(desk: Desk, name: str, seats: tuple[str, ...], reviewer: str = "anna", **words) -> None:
    request = f"{name} {seats} {reviewer} {len(desk.log.all())}"
    desk.decide(desk.where[name], seats, reviewer=reviewer, request=request, **words)


@pytest.fixture(scope="module")
def linked(tmp_path_factory) -> Path:
    """Stereo recordings and the results of `link` on them, with decisions about two."""
    home = write_calls(tmp_path_factory.mktemp("linked"))
    link(home / "conversations.csv", home / "out", **FAST)
    desk = Desk.open(home / "out")
    hear(desk, "c0", ("a", "b"))
    hear(desk, "c3", ("d", "e"))
    desk.log.close()
    return home


@pytest.fixture
def home(linked, tmp_path) -> Path:
    """A copy for each test."""
    return Path(shutil.copytree(linked, tmp_path / "home"))


def held(found: dict) -> list[tuple[str, str, int]]:
    return [(one["conversation"], one["reviewer"], one["entry"]) for one in found["held_back"]]


def known(folder: Path) -> set[str]:
    return {row["conversation"] for row in rows(folder / "known.csv")}


@pytest.mark.parametrize("again", [True, False], ids=["linked again", "not linked again"])
def test_a_decision_does_not_outlive_its_recording(home, tmp_path, again):
    swap(home / "0.wav")
    if again:
        link(home / "conversations.csv", home / "out", **FAST)
    found, _ = export(home / "out", tmp_path / "over")
    assert known(tmp_path / "over") == {"c3"}
    said = rows(tmp_path / "over" / "assignments.csv")
    assert {row["conversation"] for row in said if row["origin"] == "heard"} == {"c3"}
    assert held(found) == [("c0", "anna", 1)]
    assert found["unchecked"] == []
    assert found["entries"] == 2  # the log stays as it is
    assert found["progress"]["decided"] == found["progress"]["held_back"] == 1


def test_the_same_recording_again_brings_its_decision_back(home, tmp_path):
    before = (home / "0.wav").read_bytes()
    swap(home / "0.wav")
    assert Desk.open(home / "out").verdict(0).seats is None
    (home / "0.wav").write_bytes(before)
    found, _ = export(home / "out", tmp_path / "over")
    assert held(found) == []
    assert known(tmp_path / "over") == {"c0", "c3"}


def test_a_recording_that_is_heard_again_is_decided_again(home):
    swap(home / "0.wav")
    desk = Desk.open(home / "out")
    assert {one.conversation: one.kind for one in desk.queue()}["c0"] == "changed"
    with pytest.raises(SpklinkError, match="c0: the recording has changed since these results"):
        hear(desk, "c0", ("b", "a"))
    assert len(desk.log.all()) == 2  # what would not count is not stored
    link(home / "conversations.csv", home / "out", **FAST)
    desk = Desk.open(home / "out")
    asked = {one.conversation: one for one in desk.queue()}["c0"]
    assert asked.reason == "the recording has changed since anna decided"
    hear(desk, "c0", ("b", "a"), reviewer="bert")
    assert desk.verdict(0).seats == ("b", "a")  # anna heard something else, so nobody disagrees
    assert list(desk.verdict(0).held) == ["anna"]
    assert "c0" not in {one.conversation for one in desk.queue()}
    assert desk.progress().held_back == 0
    hear(desk, "c0", ("b", "a"))
    assert not Desk.open(home / "out").verdict(0).held


def test_a_recording_that_is_gone_is_named_and_its_decision_counts(home, tmp_path, run):
    (home / "0.wav").unlink()
    (home / "3.wav").unlink()
    (home / "3.wav").mkdir()  # cannot be read either
    code, text, _ = run("decisions", home / "out", "-o", tmp_path / "over")
    assert code == 0
    for name in ("c0", "c3"):
        assert f"{name}: the recording cannot be read" in text
    assert known(tmp_path / "over") == {"c0", "c3"}
    found = json.loads((tmp_path / "over" / "review.json").read_text())
    assert [one["conversation"] for one in found["unchecked"]] == ["c0", "c3"]
    assert found["held_back"] == []
    desk = Desk.open(home / "out")
    hear(desk, "c0", ("a", "b"), reviewer="bert")  # of what the run heard
    assert desk.log.all()[-1].shown["sha256"] == desk.log.all()[0].shown["sha256"]


@pytest.mark.parametrize("shown", [{}, {"sha256": None}, {"sha256": [1]}, {"sha256": [""]}])
def test_an_entry_without_hashes_counts_as_before(home, tmp_path, shown):
    desk = Desk.open(home / "out")
    words = {"reviewer": "bert", "verdict": "heard", "seats": ("a", "c"), "request": "old"}
    desk.log.append(conversation="c1", shown={"results": desk.run_hash} | shown, **words)
    desk.log.close()
    swap(home / "1.wav")
    found, _ = export(home / "out", tmp_path / "over")
    assert held(found) == found["unchecked"] == []
    assert known(tmp_path / "over") == {"c0", "c1", "c3"}


def test_scores_that_were_given_with_recordings(tmp_path):
    """Nothing but the files themselves tells of a change."""
    out = write_results(tmp_path)
    hear(Desk.open(out), "d3", ("dan", "eve"))
    assert Desk.open(out).progress().decided == 1
    swap(tmp_path / "3.wav")
    desk = Desk.open(out)
    assert (desk.progress().decided, desk.progress().held_back) == (0, 1)
    hear(desk, "d3", ("eve", "dan"))
    assert desk.progress().decided == 1


def test_results_without_recordings_hold_nothing_back(tmp_path):
    table = [{"conversation": name, "participants": "a;b"} for name in ("one", "two")]
    header = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
    pairs = [("one", c, "two", d, 1.0 if c == d else -1.0) for c in (1, 2) for d in (1, 2)]
    scores = [dict(zip(header, pair, strict=True)) for pair in pairs]
    assign(table, scores, tmp_path / "out")
    hear(Desk.open(tmp_path / "out"), "one", ("a", "b"))
    found, _ = export(tmp_path / "out", tmp_path / "over")
    assert found["held_back"] == found["unchecked"] == []
    assert known(tmp_path / "over") == {"one"}


def test_files_of_tracks_that_are_exchanged_in_the_table(tmp_path):
    """The same two files, the other way round: what was track 1 is track 2."""
    home = write_calls(tmp_path)
    for k in range(14):
        samples, rate = soundfile.read(home / f"{k}.wav", dtype="int16")
        for track in (0, 1):
            soundfile.write(home / f"{k}_{track}.wav", samples[:, track], rate)
    table = rows(home / "conversations.csv")
    for k, row in enumerate(table):
        row["audio"] = f"{home}/{k}_0.wav;{home}/{k}_1.wav"
    link(table, home / "out", **FAST)
    desk = Desk.open(home / "out")
    hear(desk, "c0", ("a", "b"))
    assert len(set(desk.log.all()[0].shown["sha256"])) == 2
    assert Desk.open(home / "out").progress().decided == 1
    table[0]["audio"] = f"{home}/0_1.wav;{home}/0_0.wav"
    link(table, home / "out", **FAST)
    assert Desk.open(home / "out").progress().decided == 0


def test_the_commands_name_what_is_held_back(home, tmp_path, run):
    when = Desk.open(home / "out").log.all()[0].time
    line = f"c0: the recording has changed since anna decided ({when[:10]} {when[11:16]} UTC)"
    words = ("link", home / "conversations.csv", "-o", home / "out", *QUICK)
    assert line not in run(*words)[1]
    swap(home / "0.wav")
    code, text, _ = run(*words)
    assert code == 0
    assert [one for one in text.splitlines() if "changed" in one] == [
        f"{line}; that decision is held back until somebody hears it again"
    ]
    said = json.loads(run(*words, "--json")[1])
    assert any(one.startswith(line) for one in said["notes"])
    code, text, _ = run("decisions", home / "out", "-o", tmp_path / "over")
    assert code == 0
    assert line in text
    assert "1 of 14 conversations decided" in text
    assert known(tmp_path / "over") == {"c3"}
    assert "1 conversation to be heard again" in run("queue", home / "out")[1]


def test_a_log_that_cannot_be_read_spoils_no_run(home, run):
    for path in (home / "out").glob("review.sqlite*"):
        path.unlink()
    (home / "out" / "review.sqlite").write_bytes(b"no database" * 100)
    words = ("link", home / "conversations.csv", "-o", home / "out", *QUICK)
    code, text, _ = run(*words)
    assert code == 0
    assert "review.sqlite: decisions cannot be read" in text


def test_the_page_says_so(home):
    swap(home / "0.wav")
    with served(home / "out") as server:
        page = ask(server.address, "c/0").text
        assert 'id="held-back">1<' in page
        assert 'id="changed"' in page
        assert "Make the results again (link), then listen again and decide." in page
        assert 'id="changed"' not in ask(server.address, "c/3").text
        answer = decide(server.address, 0)
        assert answer.status == 409
        assert "make them again, then decide" in answer.text
    link(home / "conversations.csv", home / "out", **FAST)
    with served(home / "out") as server:
        page = ask(server.address, "c/0").text
        assert "Listen again and decide." in page
        assert 'id="held-back"' not in decide(server.address, 0).text


def test_the_page_shows_a_decision_of_more_tracks_than_there_are_now(home):
    log = Desk.open(home / "out").log
    words = {"reviewer": "bert", "verdict": "heard", "seats": ("a", "c", "b"), "request": "old"}
    log.append(conversation="c1", shown={"sha256": ["0" * 64]}, **words)
    with served(home / "out") as server:
        answer = ask(server.address, "c/1")
        assert answer.status == 200
        assert 'id="changed"' in answer.text
