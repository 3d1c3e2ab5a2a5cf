"""The examples keep working."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from spklink import find_cliques, read_conversations
from spklink.database.conversations import make_conversations

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dense_table(seed: int = 0):
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(20, 2, replace=False) for _ in range(300)]
    return make_conversations((f"c{k}", f"s{a}", f"s{b}") for k, (a, b) in enumerate(pairs))


@pytest.mark.parametrize("seed", range(3))
def test_carved_cliques_are_small_disjoint_and_resolvable(seed, tmp_path):
    carve = load("carve")
    table = dense_table()
    cliques = carve.carve(table, seed)
    calls = [m for clique in cliques for m in clique]
    assert len(calls) == len(set(calls))
    assert len(cliques) > 25
    sizes = [len(clique) for clique in cliques]
    assert 0.4 < sizes.count(2) / len(sizes) < 0.6
    carved = read_conversations(carve.write(table, cliques, tmp_path))
    found = find_cliques(carved)
    assert len(found) == len(cliques)
    assert found.resolvable.all()
    assert found.speakers.max() <= 5
    assert cliques == carve.carve(table, seed)


def test_worlds_without_labels(capsys, monkeypatch):
    worlds = load("label_free_worlds")
    monkeypatch.setattr(worlds, "WORLDS", [("gaussian", "cgn", 50, 7.0)])
    monkeypatch.setattr("sys.argv", ["label_free_worlds.py", "--databases", "2"])
    worlds.main()
    assert "gaussian, cgn, 50 calls" in capsys.readouterr().out
