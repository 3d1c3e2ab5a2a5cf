"""Tutorials are run as they stand: every command of every page, in order, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.fixture
def shell(tmp_path):
    """Runs a line as a reader would, with the `spklink` of this Python."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "spklink"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spklink "$@"\n')
    script.chmod(0o755)
    here = tmp_path / "work"
    here.mkdir()
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}

    def run(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], cwd=here, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def test_own_calls_and_a_corpus(shell):
    """One after the other in one folder: both begin with the same demo."""
    lines = commands(PAGES / "own-calls.md") + commands(PAGES / "corpus.md")
    assert len(lines) > 12
    said = {line: shell(line) for line in dict.fromkeys(lines)}
    assert "81 conversations" in said["spklink check demo/calls/conversations.csv"]
    assert "81 conversations" in said["spklink check tables/conversations.csv"]
    assert said["head -n 3 relabelled/utt2spk"].count("\n") == 3


def test_meetings(shell):
    said = {line: shell(line) for line in commands(PAGES / "meetings.md")}
    assert len(said) > 5
    assert "absent" in said["cat meetings/results/misfits.csv"]
