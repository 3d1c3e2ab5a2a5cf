"""Where compiled code is kept, and that none is compiled that a run does not use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spklink import compiled

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


def test_a_run_that_was_done_before_compiles_nothing(calls, tmp_path):
    """Nothing is solved and the report is there: no code is needed, compiled, or waited for."""
    out, empty = tmp_path / "out", tmp_path / "empty"
    words = [sys.executable, "-m", "spklink", "link", calls / "conversations.csv", "-o", out]
    words += ["--components", "16"]
    subprocess.run(words, check=True, capture_output=True)
    before = {path.name: path.read_bytes() for path in out.glob("*.*")}
    again = os.environ | {compiled.SAID: str(empty)}
    subprocess.run(words, check=True, capture_output=True, env=again)
    assert not sorted(path.name for path in empty.rglob("*.nbc"))
    after = {path.name: path.read_bytes() for path in out.glob("*.*")}
    assert [name for name in before if after[name] != before[name]] == ["timings.json"]
