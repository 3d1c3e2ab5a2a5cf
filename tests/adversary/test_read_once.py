"""Inputs are read once: pipes will do, and what is hashed is what was read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spklink
from spklink import SpklinkError
from spklink.calibration.choice import Choice, compared_twice
from spklink.posterior.likelihood import Weight
from spklink.streams import Stream

NAMES = ("assignments.csv", "cliques.csv", "llrs.npz")


def through(pipe: Path, data: bytes) -> threading.Thread:
    """A pipe that gives these bytes once."""
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["scores.csv", "scores.npz"])
@pytest.mark.parametrize("pipe", ["pipe", "pipe.csv", "pipe.npz"])
def test_scores_may_come_through_a_pipe(files, tmp_path, name, pipe):
    if pipe.endswith((".csv", ".npz")) and not pipe.endswith(name[-4:]):
        return
    data = (files / name).read_bytes()
    thread = through(tmp_path / pipe, data)
    made = spklink.assign(files / "conversations.csv", tmp_path / pipe, tmp_path / "out")
    thread.join(10)
    plain = spklink.assign(files / "conversations.csv", files / name, tmp_path / "plain")
    for one in NAMES:
        assert (tmp_path / "out" / one).read_bytes() == (tmp_path / "plain" / one).read_bytes()
    said = json.loads((tmp_path / "out" / "run.json").read_text())["inputs"]["scores"]
    assert said["sha256"] == hashlib.sha256(data).hexdigest()
    assert plain.inputs.given["scores"].sha256 == made.inputs.given["scores"].sha256


def test_tables_may_come_from_standard_input(files, tmp_path):
    def assign(table, scores, data):
        words = ["assign", table, "--scores", scores, "-o", tmp_path / "out"]
        command = [sys.executable, "-m", "spklink", *map(str, words)]
        subprocess.run(command, input=data, check=True, capture_output=True)

    data = (files / "conversations.csv").read_bytes()
    assign("/dev/stdin", files / "scores.csv", data)
    assert (tmp_path / "out" / "conversations.csv").read_bytes() == data
    assign(files / "conversations.csv", "/dev/stdin", (files / "scores.npz").read_bytes())


def test_what_is_hashed_is_what_was_read(files, tmp_path, monkeypatch):
    """Scores that are replaced while they are read."""
    path = tmp_path / "scores.csv"
    good = (files / "scores.csv").read_bytes()
    path.write_bytes(good)
    from spklink.runs import assign as runs

    real = runs.read_known_channels

    def replaced(*given):
        found = real(*given)
        path.write_bytes(good.replace(b".", b".1"))
        return found

    monkeypatch.setattr(runs, "read_known_channels", replaced)
    made = spklink.assign(files / "conversations.csv", path)
    read = hashlib.sha256(good.replace(b".", b".1")).hexdigest()
    assert made.inputs.given["scores"].sha256 == read


def test_arrays_that_change_while_they_are_read_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(3))
    stream = Stream(path)
    refused = pytest.raises(SpklinkError, match="changed while")
    with refused, stream.open() as file, stream.whole(file):
        path.write_bytes(b"other")


def test_link_reads_its_key_once(files, monkeypatch):
    from spklink.runs import case as runs
    from spklink.runs.case import Case, Plan
    from spklink.settings import LinkOptions, resolved

    asked = resolved(LinkOptions, {"key": files / "key.csv"})
    case = Case.read(files / "conversations.csv", asked, Plan.of(asked))
    assert case.inputs.table("key").data == (files / "key.csv").read_bytes()
    assert "key" not in case.inputs.as_json(Path())
    assert runs.read_key is not None


def test_calibrations_are_read_once(files, tmp_path):
    """What was checked at the start is what is used and hashed hours later."""
    path = tmp_path / "calibration.json"
    good = (files / "calibration.json").read_bytes()
    path.write_bytes(good)
    choice = Choice(source=path, fallback=str(path))
    path.write_text("something else")
    again = replace(choice, first=True)
    assert (again.rule(), compared_twice(again)) == (Weight(), False)
    assert {one.sha256 for one in again.named_files().values()} == {
        hashlib.sha256(good).hexdigest()
    }


def test_a_calibration_may_come_through_a_pipe(files, tmp_path):
    data = (files / "calibration.json").read_bytes()
    thread = through(tmp_path / "pipe", data)
    table, scores = files / "conversations.csv", files / "scores.csv"
    made = spklink.assign(table, scores, tmp_path / "out", calibration=tmp_path / "pipe")
    thread.join(10)
    plain = spklink.assign(table, scores, calibration=files / "calibration.json")
    assert np.array_equal(made.posterior.exchanged, plain.posterior.exchanged)
    said = json.loads((tmp_path / "out" / "run.json").read_text())["inputs"]
    assert hashlib.sha256(data).hexdigest() in {one["sha256"] for one in said.values()}
