"""Exit codes, and how much is said: --quiet, --verbose, --log."""

from __future__ import annotations

import errno
import io
import re

import numpy as np
import pytest
import soundfile
from rich.console import Console

from commands import assign
from made_calls import write_calls
from spklink.cli import progress
from spklink.cli.app import EXIT_CODES
from spklink.cli.progress import Bar, in_words
from spklink.cli.talk import TALK


@pytest.fixture
def simulated(run, tmp_path):
    assert run("simulate", tmp_path / "sim", "--conversations", "20")[0] == 0
    return tmp_path / "sim"


def test_the_codes_are_those_of_the_reference():
    assert list(EXIT_CODES) == [0, 1, 2, 3, 70, 130]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError("1 TB"), 3),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 3),
        (OSError(errno.EMFILE, "Too many open files", "x"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2),
        (RuntimeError("a fault"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_codes_of_what_goes_wrong(run, monkeypatch, error, code):
    def fail(*_):
        raise error

    monkeypatch.setattr("spklink.measures.entropy.levels", fail)
    found, _, text = run("entropy", "--conversations", 5, "--speakers", 4)
    assert found == code
    assert ("Traceback" in text) == (code == 70)


def test_recordings_that_were_not_used_are_code_1(run, tmp_path):
    write_calls(tmp_path)
    words = ("link", tmp_path / "conversations.csv", "-o", tmp_path / "out", "--no-report")
    words += ("--components", 8, "--workers", 1)
    soundfile.write(tmp_path / "3.wav", np.zeros((80000, 2)), 8000)
    assert run(*words)[0] == 2
    code, text, _ = run(*words, "--on-bad-audio", "skip")
    assert code == 1
    assert "who is where" in text


def test_a_log_has_the_command_the_stages_and_what_went_wrong(run, simulated, tmp_path):
    log = tmp_path / "log.txt"
    assert assign(run, simulated, tmp_path / "out", "--log", log)[0] == 0
    assert run("evaluate", tmp_path / "none", f"--log={log}")[0] == 2
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in lines)
    said = [line[20:] for line in lines]
    assert said[0].startswith("spklink 0.1.0: ")
    assert f"-o {tmp_path / 'out'}" in said[0]
    assert "begin reading the scores" in said
    assert any(re.fullmatch(r"done writing the results: [\d.]+ s", line) for line in said)
    assert said[said.index("exit code 0") + 1].startswith("spklink 0.1.0: ")
    assert any(line.startswith("error: ") and "run.json is missing" in line for line in said)
    assert any(line.startswith("Traceback") for line in said)
    assert said[-1] == "exit code 2"
    assert TALK.file is None


def test_a_log_that_cannot_be_written(run, tmp_path):
    code, _, err = run("check", "none.csv", "--log", tmp_path)
    assert (code, err) == (2, f"spklink: {tmp_path} is a folder; give a file\n")


def test_verbose_tells_the_time_of_stages_without_a_screen(run, simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SHORT", 0.0)
    _, _, err = assign(run, simulated, tmp_path / "out", "-v")
    assert re.search(r"^ +\d+\.\d s  reading the scores$", err, re.MULTILINE)
    assert assign(run, simulated, tmp_path / "out")[2] == ""
    assert assign(run, simulated, tmp_path / "out", "--quiet")[2] == ""


class Shown:
    """What a bar was told."""

    def __init__(self):
        self.told, self.disable, self.console = [], False, Console(file=io.StringIO())

    def update(self, _, **what):
        self.told.append(what)

    reset = update


def test_a_first_run_tells_of_compiling_where_something_is_compiled(monkeypatch):
    from numba.core import event

    for happens, said in (
        (lambda bar: bar.step(3, 5), 0),  # from the cache
        (lambda bar: bar.step(0, 5), 1),  # helpers are to listen
        (lambda bar: event.start_event("numba:compile"), 1),
    ):
        monkeypatch.setattr(Bar, "told", False)
        shown = Shown()
        for _ in range(2):  # the run, and its report
            bar = Bar(shown, None)
            bar.first = True
            bar.begin("listening")
            happens(bar)
        text = shown.console.file.getvalue()
        assert text.count("first run: compiling") == said


def test_nothing_is_said_of_compiling_where_all_is_compiled(run, simulated, tmp_path, monkeypatch):
    assert assign(run, simulated, tmp_path / "out")[0] == 0
    monkeypatch.setattr(Bar, "told", False)
    monkeypatch.setattr(progress, "is_compiled", lambda: False)  # nobody has listened
    assert "compiling" not in assign(run, simulated, tmp_path / "out", "-v")[2]


def test_a_bar_never_goes_back():
    shown = Shown()
    bar = Bar(shown, None)
    bar.begin("listening")
    for done, total in [(1, 10), (5, 10), (5, 8), (9, 10), (1, 10), (10, 10)]:
        bar.step(done, total)
    shares = [w["completed"] / w["total"] for w in shown.told if w.get("total")]
    assert shares == sorted(shares) == [0.1, 0.5, 0.625, 0.9]
    assert shown.told[-1] == {"total": None, "left": "10 of 10"}
    assert bar.where == "listening, 10 of 10 done"
    bar.begin("scoring")
    assert bar.where == "scoring"


def test_the_time_left_is_said_when_it_can_be_known(monkeypatch):
    bar = Bar(Shown(), None)
    bar.begin("x")
    bar.since -= 20.0
    bar.step(1, 100)
    assert bar.left() == "1 of 100"
    bar.step(50, 100)
    assert bar.left() == "50 of 100, about 20 s left"
    assert [in_words(s) for s in (1, 52, 150, 7000)] == [
        *("about 5 s", "about 50 s", "about 2 min", "about 1.9 h"),
    ]
