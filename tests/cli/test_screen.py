"""What a terminal gets to see: names, files and messages are shown, never carried out."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from pathlib import Path

import pytest

from reviewed import CALLS, write_results
from spklink.cli import show

NAMES = [
    "\x1b[2J\x1b]owned\x07",  # clears the screen, begins a command
    "ann\rbob",  # writes over the beginning of the line
    "line\nspklink: all is well",  # feigns a line of ours
    "\x9b31mred\x9b0m",  # the same in one character (C1)
    "x\u202egnp.exe\u2066",  # turned around
    "back\x08\x08\x7fspace",
    "para\u2029graph\u2028",
    "[bold]markup[/bold] [link=http://x]",
    "שלום עולם",
]
TURNING = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "PDI"}


def assert_harmless(text: str, *, lines: int | None = None) -> None:
    """No character that a terminal carries out; isolates are ours, and closed one by one."""
    without = re.sub("\u2068[^\u2066-\u2069]*\u2069", "", text)
    for letter in without.replace("\n", ""):
        assert unicodedata.category(letter) not in ("Cc", "Zl", "Zp"), ascii(text)
        assert unicodedata.bidirectional(letter) not in (*TURNING, "FSI"), ascii(text)
    if lines is not None:
        assert text.count("\n") == lines


def write_table(path: Path, name: str) -> None:
    """Three calls of one speaker of that name."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [(f"call {k}", f"{name};friend {k}") for k in range(3)]
        csv.writer(file).writerows([("conversation", "participants"), *rows])


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_check_shows_names_and_carries_none_out(run, tmp_path, name):
    write_table(tmp_path / "c.csv", name)
    code, text, _ = run("check", tmp_path / "c.csv")
    assert code == 0
    assert "has most conversations" in text.splitlines()[0]
    assert_harmless(text)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_json_has_the_true_names(run, tmp_path, name):
    write_table(tmp_path / "c.csv", name)
    code, text, _ = run("check", tmp_path / "c.csv", "--json")
    assert code == 0
    assert json.loads(text)["most_calls"]["speaker"] == name.strip()
    if name != NAMES[-1]:
        assert_harmless(text)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_errors_are_one_harmless_line(run, tmp_path, name):
    file = tmp_path / f"{name.replace('/', '')}.csv"
    for words in (("check", file), ("evaluate", tmp_path / name), ("check", tmp_path, f"--{name}")):
        code, text, error = run(*words)
        assert (code, text) == (2, "")
        assert error.startswith("spklink: ")
        assert_harmless(error, lines=1)
    file.write_text("conversation,participants\nc,a\n")
    _, _, error = run("check", file)
    assert "only one participant" in error
    assert_harmless(error, lines=1)


def test_tracebacks_too(run, tmp_path):
    code, _, error = run("--debug", "check", tmp_path / "\x1b[2J.csv")
    assert code == 2
    assert "Traceback" in error
    assert "SpklinkError" in error
    assert "\\x1b[2J.csv: cannot be read" in error
    assert_harmless(error)


def test_lines_tables_and_stages(capsys):
    for name in NAMES:
        show.text(name)
        show.paragraph(name)
        show.table([name, "b"], [(name, None)], title=name)
        interrupted = pytest.raises(SystemExit)
        with interrupted, show.stages_on_stderr() as stages, stages.stage(name):
            raise KeyboardInterrupt
    out, err = capsys.readouterr()
    assert_harmless(out)
    assert_harmless(err, lines=len(NAMES))
    assert out.count("[bold]markup[/bold]") == 5
    assert "\\x1b[2J" in out
    assert "\u2068שלום עולם\u2069" in out


def test_a_report_printed_as_json(run, tmp_path):
    write_table(tmp_path / "c.csv", NAMES[3])
    header = "conversation_1,channel_1,conversation_2,channel_2,score\n"
    pairs = [(0, 1), (0, 2), (1, 2)]
    lines = [f"call {i},{a},call {j},{b},1\n" for i, j in pairs for a in (1, 2) for b in (1, 2)]
    (tmp_path / "s.csv").write_text(header + "".join(lines))
    words = ("--scores", tmp_path / "s.csv", "-o", tmp_path / "out")
    assert run("assign", tmp_path / "c.csv", *words)[0] == 0
    code, text, _ = run("report", tmp_path / "out", "--json")
    assert code == 0
    assert_harmless(text)
    assert json.loads(text) == json.loads((tmp_path / "out" / "report.json").read_text())
    assert any(NAMES[3] in row["speakers"] for row in json.loads(text)["conversations"])


@pytest.fixture(scope="module", params=["call{}", "2024-03-01T12:0{}:59_agent-00000003"])
def queued(request, tmp_path_factory):
    """Results with short ids, or with long ones, and the ids of which there is something to ask."""
    names = [request.param.format(k) for k in range(len(CALLS))]
    return write_results(tmp_path_factory.mktemp("out"), names=names), names[3:]


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_narrow_screen_has_whole_ids_and_all_else(run, queued, columns, monkeypatch):
    out, ids = queued
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    text = re.sub(r"\x1b\[[0-9;]*m", "", run("queue", out)[1])
    for name in ids:
        assert re.search(rf"(^| ){name}( |$)", text, re.MULTILINE)
    assert "…" not in text
    for word in ("sure", "bits", "settles", "question", "50 %", "1.00", "channel", "voice"):
        assert text.count(word) >= 1, word
    if "settles:" not in text:  # a table, not a line for every cell
        assert max(map(len, text.splitlines())) <= columns


def test_a_pipe_has_whole_rows(run, queued, monkeypatch):
    out, ids = queued
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = run("queue", out)[1].splitlines()
    for name in ids:
        [row] = [line for line in lines if f" {name} " in line]
        assert re.search(r"50 % .* channel 1\? .* no voice can tell", row)


def test_a_table_too_wide_for_the_screen(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    show.table(["name", "number", ""], [("anna", 1.25, None), ("[b]ben", 2, "x")], title="People")
    assert capsys.readouterr().out.splitlines() == [
        *("People", "name anna", "    number: 1.25", "    -"),
        *("name [b]ben", "    number: 2", "    x"),
    ]
    show.table(["name", "number"], [("anna", 1.25), ("ben", 2)])
    assert [line.split() for line in capsys.readouterr().out.split("\n")[1:5:3]] == [
        ["name", "number"],
        ["ben", "2"],
    ]
