"""Recordings that are known by their stamps: nothing that changed is taken for what it was."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from spklink.runs.link import link
from spklink.sound import listening, stamps

OPTIONS = {"components": 8, "workers": 1}


@pytest.fixture
def here(calls, tmp_path):
    """Calls whose files have rested."""
    folder = tmp_path / "calls"
    shutil.copytree(calls, folder)
    return folder


@pytest.fixture
def read(monkeypatch):
    """How many files are read from begin to end."""
    seen = []
    usual = listening.fingerprint
    monkeypatch.setattr(
        listening, "fingerprint", lambda path: seen.append(path.name) or usual(path)
    )
    return seen


def run(here, tmp_path):
    return link(here / "conversations.csv", tmp_path / "out", **OPTIONS)


def rested(monkeypatch):
    now = time.time() + 100.0
    monkeypatch.setattr(stamps.time, "time", lambda: now)


def test_what_has_rested_is_not_read_again(here, tmp_path, read, monkeypatch):
    rested(monkeypatch)
    run(here, tmp_path)
    assert len(read) == 14
    del read[:]
    run(here, tmp_path)
    assert read == []


def test_what_was_written_a_moment_ago_is_not_believed(here, tmp_path, read, monkeypatch):
    moment = (here / "0.wav").stat().st_ctime + 1.0
    monkeypatch.setattr(stamps.time, "time", lambda: moment)
    run(here, tmp_path)
    del read[:]
    run(here, tmp_path)
    assert len(read) == 14


def test_another_content_under_the_same_dates(here, tmp_path, read, monkeypatch):
    """As long, and dated back: the system knows all the same that it was touched."""
    rested(monkeypatch)
    first = run(here, tmp_path)
    path = here / "3.wav"
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-2000:] = data[-4000:-2000]
    path.write_bytes(bytes(data))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    del read[:]
    second = run(here, tmp_path)
    assert set(read) == {"3.wav"}
    one, two = (found.listening.speech.sha256 for found in (first, second))
    assert [k for k in range(28) if one[k] != two[k]] == [6, 7]


def test_features_that_are_gone_are_made_again(here, tmp_path, read, monkeypatch):
    rested(monkeypatch)
    first = run(here, tmp_path)
    shutil.rmtree(tmp_path / "out" / "cache" / "features")
    second = run(here, tmp_path)
    assert [*first.assignments()] == [*second.assignments()]
