"""The examples keep working."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from spklink import find_cliques, read_conversations
from spklink.database.conversations import make_conversations

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name: str):
    if str(EXAMPLES) not in sys.path:  # examples import one another
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
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


def some_calls(spoiled, seed: int = 0):
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(12, 2, replace=False) for _ in range(80)]
    return [
        spoiled.Call(f"c{k:02}", f"{k}.wav", (f"s{a:02}", f"s{b:02}"))
        for k, (a, b) in enumerate(pairs)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_planted_names_are_not_there_and_nothing_else_is_changed(seed):
    spoiled, rng = load("spoiled"), np.random.default_rng(seed)
    calls = some_calls(spoiled)
    made = spoiled.inside(spoiled.right(calls), 0.05, rng)
    assert len(made.planted) == 8
    for m, (call, names) in enumerate(zip(made.calls, made.lists, strict=True)):
        extra = set(names) - set(call.truth)
        assert extra == ({made.planted[m]} if m in made.planted else set())
    out = spoiled.outside(calls, 0.05, rng)
    listed = {who for names in out.lists for who in names}
    for m, call in enumerate(out.calls):
        strange = set(call.truth) - listed
        assert bool(strange) == (m in out.planted)
    share = len(out.planted) / (2 * len(out.calls))
    assert 0.03 < share < 0.06


def test_what_could_tell_a_planted_name():
    spoiled = load("spoiled")
    call = spoiled.Call
    calls = [call("1", "", ("ann", "bob")), call("2", "", ("ann", "cid"))]
    alias = spoiled.Spoiled(calls, [["bob", "cid"], ["ann", "cid"]], {0: "cid"})
    assert alias.told_by(0) == spoiled.SAME_VOICE
    others = [call("1", "", ("ann", "bob")), call("2", "", ("cid", "dora"))]
    plain = spoiled.Spoiled(others, [["ann", "cid"], ["cid", "dora"]], {0: "cid"})
    assert plain.told_by(0) == spoiled.ANOTHER
    alone = spoiled.Spoiled(calls, [["ann", "dora"], ["ann", "cid"]], {0: "dora"})
    assert alone.told_by(0) == spoiled.NOTHING


SCRIPTS = sorted((*EXAMPLES.glob("*.py"), *(EXAMPLES.parent / "benchmarks").glob("*.py")))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_take_from_the_package_only_what_it_has(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spklink":
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(
                    f"{node.module}.{name.name}"
                )


def test_orders_of_listening(capsys, monkeypatch, tmp_path):
    orders = load("queue_orders")
    picture = tmp_path / "queue.svg"
    words = ["--databases", "1", "--eer", "7", "--picture", str(picture)]
    monkeypatch.setattr("sys.argv", ["queue_orders.py", *words])
    orders.main()
    assert "1 simulated databases, EER 7 %" in capsys.readouterr().out
    assert picture.read_text().count("conversations heard") == 1
