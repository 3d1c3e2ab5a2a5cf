"""Where compiled code is kept, and a process that compiles beside a first run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from spklink import compiled
from spklink.cli import compile as compiling
from spklink.cli.progress import LISTENING, SEATING, Bar
from test_processes import gone_within

posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Neither the package nor any folder of the user can be written to."""
    monkeypatch.delenv(compiled.SAID, raising=False)
    monkeypatch.setattr(compiled.os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@posix
def test_code_is_kept_among_temporary_files_where_nothing_else_can_be_written(nowhere):
    compiled.keep_somewhere()
    folder = Path(os.environ.pop(compiled.SAID))
    assert folder.parent == nowhere
    assert folder.stat().st_mode & 0o777 == 0o700
    compiled.keep_somewhere()
    assert Path(os.environ.pop(compiled.SAID)) == folder


@posix
@pytest.mark.parametrize("how", ["open to others", "a link", "a file"])
def test_a_folder_that_others_may_have_written_to_is_not_used(nowhere, how, monkeypatch):
    folder = nowhere / f"spklink-compiled-{os.getuid()}"
    if how == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif how == "a link":
        (nowhere / "theirs").mkdir(mode=0o700)
        folder.symlink_to(nowhere / "theirs")
    else:
        folder.write_text("")
    compiled.keep_somewhere()
    found = Path(os.environ.pop(compiled.SAID))
    assert found != folder
    assert found.stat().st_mode & 0o777 == 0o700


def test_what_is_said_or_can_be_written_stays(monkeypatch, nowhere):
    monkeypatch.setenv(compiled.SAID, "mine")
    compiled.keep_somewhere()
    assert os.environ[compiled.SAID] == "mine"
    monkeypatch.delenv(compiled.SAID)
    monkeypatch.setattr(compiled.os, "access", lambda path, _: Path(path) != compiled.__file__)
    compiled.keep_somewhere()
    assert compiled.SAID not in os.environ


class Screen:
    def __init__(self):
        self.told = []

    def update(self, _, **what):
        self.told.append(what.get("description"))

    reset = update


def test_a_first_run_compiles_beside_and_says_so_while_it_waits(monkeypatch):
    waited = []

    class Compiler:
        def wait(self):
            waited.append(screen.told[-1])

    monkeypatch.setattr(compiling, "beside", Compiler)
    for first in (True, False):
        screen = Screen()
        bar = Bar(screen, None)
        bar.first = first
        for stage in (LISTENING, "calibrating and linking", SEATING, LISTENING, SEATING):
            bar.begin(stage)
    assert waited == [f"{SEATING} (compiling)"]


@posix
def test_that_process_ends_with_the_run():
    script = """
import sys
from spklink.cli.compile import beside
print(beside().pid, flush=True)
sys.stdin.read()
"""
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        pid = int(run.stdout.readline())
        time.sleep(1.0)
        run.kill()
    assert gone_within([pid], 20.0)
