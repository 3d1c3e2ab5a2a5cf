"""Helpers that are started ahead of their work: when, and when not."""

from __future__ import annotations

import pytest

from spklink.cli import ahead as module
from spklink.cli.ahead import DRAW, LISTEN, MANY, start_listeners, start_painters
from spklink.runs.stages import Stages

USUAL = {
    **dict.fromkeys(("embeddings", "scores", "cluster", "cache")),
    **{"workers": 2, "recognizer": "gmm-ubm", "budget_gb": 4.0, "report": True},
}


@pytest.fixture
def started(monkeypatch):
    found: list[tuple[object, int]] = []
    monkeypatch.setattr(module, "ahead", lambda work, count: found.append((work, count)))
    return found


def table_of(folder, rows: int):
    path = folder / "conversations.csv"
    path.write_text("conversation,audio,participants\n" + "a,a.wav,A;B\n" * rows)
    return path


def test_listeners_start_where_many_recordings_are_new(tmp_path, started):
    start_listeners(table_of(tmp_path, MANY), tmp_path / "out", USUAL)
    assert started == [(LISTEN, 2)]


@pytest.mark.parametrize(
    "other",
    [{"workers": 1}, {"embeddings": "x.npz"}, {"cluster": "local:2"}, {"recognizer": "a.onnx"}],
)
def test_nobody_starts_to_listen_for_nothing(tmp_path, started, other):
    start_listeners(table_of(tmp_path, MANY), tmp_path / "out", USUAL | other)
    start_listeners(table_of(tmp_path, 5), tmp_path / "out", USUAL)
    start_listeners(tmp_path / "nothing.csv", tmp_path / "out", USUAL)
    (tmp_path / "out" / "cache" / "features").mkdir(parents=True)
    start_listeners(table_of(tmp_path, MANY), tmp_path / "out", USUAL)
    assert started == []


def test_painters_start_once_when_cliques_are_solved(started):
    told: list[str] = []
    stages = Stages(tell=told.append)
    start_painters(stages, USUAL)
    for name in ("listening", "calibrating and linking", "looking for wrong lists"):
        assert len(started) == (name == "looking for wrong lists")
        with stages.stage(name):
            pass
    assert started == [(DRAW, module.PAINTERS)]
    assert told == ["listening", "calibrating and linking", "looking for wrong lists"]


def test_no_painters_where_nobody_wants_a_report(started):
    stages = Stages()
    start_painters(stages, USUAL | {"report": False})
    start_painters(stages, USUAL | {"workers": 1})
    with stages.stage("calibrating and linking"):
        pass
    assert started == []
