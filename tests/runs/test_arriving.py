"""Calls that are added to a table: a kept model, work in proportion to what is new, renewal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spklink.cache import ENDING
from spklink.runs import evidence as runs_evidence
from spklink.runs import kept_scores
from spklink.runs.link import link
from spklink.worlds.shapes import as_table, clique_calls

CALLS, NEW = 240, 6
WIDTH = 24


class World:
    """Small cliques whose sides have vectors; the last calls bring somebody new to old people."""

    def __init__(self, seed: int = 0, noise: float = 0.45) -> None:
        rng = np.random.default_rng(seed)
        calls = clique_calls([(4, 3)] * (CALLS // 4), rng)
        first = max(max(call) for call in calls) + 1
        calls += [(int(rng.integers(0, first)), first + k) for k in range(NEW)]
        self.table = as_table(calls, rng)
        people = self.table.people.reshape(-1, 2)
        turned = rng.random(len(people)) < 0.5
        speaker = np.where(turned[:, None], people[:, ::-1], people).ravel()
        voices = rng.standard_normal((len(self.table.speakers), WIDTH))
        made = voices[speaker] + noise * rng.standard_normal((len(speaker), WIDTH))
        self.vectors = made.astype(np.float32)
        self.names = [self.table.names(m) for m in range(len(self.table))]

    def rows(self, calls) -> list[dict[str, str]]:
        return [
            {"conversation": self.table.ids[m], "participants": ";".join(self.names[m])}
            for m in calls
        ]

    def link(self, calls, out: Path, vectors: np.ndarray | None = None, **more):
        calls = np.asarray(calls)
        own = self.vectors if vectors is None else vectors
        sides = np.stack([2 * calls, 2 * calls + 1], axis=1).ravel()
        return link(self.rows(calls.tolist()), out, embeddings=own[sides], seed=1, **more)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def before(world, tmp_path_factory) -> Path:
    """A run on the first calls; copied, never written to."""
    out = tmp_path_factory.mktemp("before") / "out"
    world.link(range(CALLS), out)
    return out


@pytest.fixture
def out(before, tmp_path) -> Path:
    import shutil

    return Path(shutil.copytree(before, tmp_path / "out"))


def content(out: Path) -> dict[str, bytes]:
    files = (path for path in out.iterdir() if path.is_file() and path.name != "timings.json")
    return {path.name: path.read_bytes() for path in files}


def answers(result) -> dict[tuple[str, str], tuple[str, float]]:
    return {(row[0], row[1]): (row[2], float(row[3])) for row in result.assignments()}


def run_json(out: Path) -> dict:
    return json.loads((out / "run.json").read_text())


def test_the_same_calls_give_the_same_bytes(world, before, out):
    found = world.link(range(CALLS), out)
    assert content(out) == content(before)
    said = run_json(out)["model"]
    assert said["learned_on"] == {"conversations": CALLS, "sides": 2 * CALLS, "usable_sides": 480}
    assert said["new"] == 0
    assert json.loads((out / "calibration.json").read_text())["model"] == said["name"]
    assert (out / "cache" / "models" / f"{said['name']}{ENDING}").exists()
    assert not found.notes or "model" not in found.notes[-1]


def test_new_calls_cost_what_they_touch(world, before, out, monkeypatch):
    solved, scored = [], []
    solve, score = runs_evidence.solve, kept_scores.Scorer.__call__
    monkeypatch.setattr(
        runs_evidence,
        "solve",
        lambda model, **more: solved.append(len(model.field)) or solve(model, **more),
    )
    monkeypatch.setattr(
        kept_scores.Scorer,
        "__call__",
        lambda self, one, two: scored.append(len(one)) or score(self, one, two),
    )
    found = world.link(range(CALLS + NEW), out)
    assert sum(solved) <= 5 * NEW  # cliques of four, and the new call of each
    said = run_json(out)["model"]
    assert said["name"] == run_json(before)["model"]["name"]
    assert said["new"] == NEW
    assert "came after model" in found.notes[-1]


def test_close_to_a_fresh_run(world, out, tmp_path):
    kept = answers(world.link(range(CALLS + NEW), out))
    fresh = answers(world.link(range(CALLS + NEW), tmp_path / "fresh"))
    assert kept.keys() == fresh.keys()
    sure = [key for key in fresh if fresh[key][1] > 0.9]
    assert len(sure) > CALLS
    assert all(kept[key][0] == fresh[key][0] for key in sure)
    assert np.mean([abs(kept[key][1] - fresh[key][1]) for key in fresh]) < 0.01


def test_retrain_is_a_fresh_run_to_the_byte(world, out, tmp_path):
    world.link(range(CALLS + NEW), out)
    world.link(range(CALLS + NEW), out, retrain=True)
    world.link(range(CALLS + NEW), tmp_path / "fresh")
    assert content(out) == content(tmp_path / "fresh")
    assert len(list((out / "cache" / "models").glob(f"*{ENDING}"))) == 2  # the old one stays


def test_what_is_kept_is_what_would_be_solved(world, out, tmp_path):
    """Without the answers of the run before, the same model says the same."""
    import shutil

    other = Path(shutil.copytree(out, tmp_path / "other"))
    shutil.rmtree(other / "cache" / "answers")
    one, two = world.link(range(CALLS + NEW), out), world.link(range(CALLS + NEW), other)
    assert one.model == two.model
    a, b = answers(one), answers(two)
    assert a.keys() == b.keys()
    assert all(a[key][0] == b[key][0] for key in a if a[key][1] > 0.6)
    assert max(abs(a[key][1] - b[key][1]) for key in a) < 1e-6
    assert np.allclose(one.posterior.entropy_bits, two.posterior.entropy_bits, atol=1e-6)
    assert np.allclose(one.posterior.both_exchanged, two.posterior.both_exchanged, atol=1e-6)
    assert not one.answer.binary
    assert not two.answer.binary
    for name in ("presence", "wrong", "stranger"):
        these, those = getattr(one.answer, name), getattr(two.answer, name)
        assert np.allclose(these.chance, those.chance, atol=1e-6)
    assert np.allclose(one.answer.log_evidence, two.answer.log_evidence, atol=1e-6)
    assert one.answer.certainty == two.answer.certainty


def test_rows_in_another_order(world, out):
    first = answers(world.link(range(CALLS), out))
    order = np.random.default_rng(5).permutation(CALLS)
    found = world.link(order, out)
    again = answers(found)
    assert {key: again[key][0] for key in first if first[key][1] > 0.6} == {
        key: first[key][0] for key in first if first[key][1] > 0.6
    }
    assert max(abs(again[key][1] - first[key][1]) for key in first) < 1e-6
    assert run_json(out)["model"]["new"] == 0


def test_a_row_that_was_changed_is_a_new_one(world, out, monkeypatch):
    changed = World()
    first, second = changed.names[0]
    changed.names[0] = (first, "somebody else")
    found = changed.link(range(CALLS), out)
    assert run_json(out)["model"]["new"] == 1
    assert {row[2] for row in found.assignments() if row[0] == world.table.ids[0]} <= {
        *(first, "somebody else", "*")
    }
    assert second not in changed.names[0]


def test_rows_that_are_gone(world, out):
    found = world.link(range(4, CALLS), out)
    assert found.model is not None
    assert found.model["learned_on"]["conversations"] == CALLS
    assert len(found.conversations) == CALLS - 4
    few = world.link(range(CALLS // 2), out)  # too many are gone: another database
    assert few.model is not None
    assert few.model["learned_on"]["conversations"] == CALLS // 2


@pytest.mark.parametrize("folder", ["models", "answers"])
@pytest.mark.parametrize("how", ["cut", "byte", "empty", "swapped"])
def test_damage_is_seen(world, before, out, folder, how):
    (path,) = (out / "cache" / folder).glob(f"*{ENDING}")
    data = path.read_bytes()
    if how == "swapped":
        data = next(
            out.glob(f"cache/{'answers' if folder == 'models' else 'models'}/*")
        ).read_bytes()
    spoilt = bytearray(data)
    spoilt[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[:-7], "byte": bytes(spoilt), "empty": b""}.get(how, data))
    found = world.link(range(CALLS), out)
    assert any("damaged" in note for note in found.notes)
    before_run, after = content(before), content(out)
    for name in ("assignments.csv", "presence.csv", "cliques.csv", "calibration.json"):
        assert after[name] == before_run[name]


def test_calls_of_another_character_renew_the_model(world, tmp_path):
    out, strange = tmp_path / "out", world.vectors.copy()
    strange[2 * CALLS - 40 :] += 3.0  # all of one line
    few = np.r_[: CALLS - 20]
    learned = world.link(few, out)
    usual = world.link(range(CALLS + NEW), out)
    assert usual.model is not None
    assert learned.model is not None
    assert usual.model["name"] == learned.model["name"]
    found = world.link(range(CALLS + NEW), out, strange)
    assert found.model is not None
    assert found.model["name"] != learned.model["name"]
    assert "do not look like those" in found.model["why"]
    assert any("renewed" in note for note in found.notes)
    again = world.link(range(CALLS + NEW), out, strange)
    assert again.model == found.model


def test_many_more_calls_renew_the_model(world, tmp_path):
    out = tmp_path / "out"
    first = world.link(range(120), out)
    same = world.link(range(170), out)
    more = world.link(range(200), out)
    assert first.model is not None
    assert same.model is not None
    assert more.model is not None
    assert first.model["name"] == same.model["name"] != more.model["name"]
    assert "200 conversations now, learned on 120" in more.model["why"]


def test_other_options_have_another_model(world, before, out):
    for more in ({"list_errors": "0.01"}, {"back_end": "wccn"}, {"kind": "cmlg"}):
        found = world.link(range(CALLS), out, **more)
        assert found.model is not None
        assert found.model["name"] != run_json(before)["model"]["name"]


def test_lists_of_possible_people(world, tmp_path):
    """More than a bit a conversation: the answer in full is kept and put together as well."""
    import shutil

    vague = World()
    people = vague.table.speakers
    for m in range(0, CALLS, 3):
        more = people[(7 * m) % len(people)]
        if more not in vague.names[m]:
            vague.names[m] = (*vague.names[m], f"?{more}")
    out = tmp_path / "out"
    first = vague.link(range(CALLS), out)
    bytes_then = content(out)
    assert not first.conversations.plain
    assert first.model is not None
    vague.link(range(CALLS), out)
    assert content(out) == bytes_then
    other = Path(shutil.copytree(out, tmp_path / "other"))
    shutil.rmtree(other / "cache" / "answers")
    one, two = vague.link(range(CALLS + NEW), out), vague.link(range(CALLS + NEW), other)
    assert one.model == two.model
    assert one.model["new"] == NEW
    a, b = answers(one), answers(two)
    assert max(abs(a[key][1] - b[key][1]) for key in a if a[key][0] == b[key][0]) < 0.02


def test_known_channels_touch_their_cliques(world, out):
    before = answers(world.link(range(CALLS), out))
    name = world.table.ids[0]
    known = [{"conversation": name, "channel": 1, "speaker": before[name, 1][0]}]
    result = world.link(range(CALLS), out, known=known)
    found = answers(result)
    assert {row[8] for row in result.assignments() if row[0] == name} == {"given"}
    cliques = result.evidence.cliques
    mine = {world.table.ids[m] for m in cliques.members(int(cliques.label[0])).tolist()}
    others = [key for key in before if key[0] not in mine]
    assert len(others) == 2 * (CALLS - 4)
    assert {key: found[key] for key in others} == {key: before[key] for key in others}
