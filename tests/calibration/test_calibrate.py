"""The commands calibrate, detect, and assign with a calibration; evaluate without a key."""

from __future__ import annotations

import json

import numpy as np
import pytest

from commands import assign, rows
from spklink.measures.detection import measure
from spklink.tables import write_csv
from spklink.worlds import simulate


@pytest.fixture
def moved(tmp_path):
    """A simulated database, and the same with all scores multiplied and shifted."""
    made = simulate.simulate(eer=10.0, seed=4)
    simulate.write_simulation(made, tmp_path / "sim")
    table = rows(tmp_path / "sim" / "scores.csv")
    names = list(table[0])
    lines = [(*list(r.values())[:4], 12.5 * float(r["score"]) - 800.0) for r in table]
    write_csv(tmp_path / "sim" / "moved.csv", names, lines)
    return tmp_path / "sim"


def learn(run, sim, out, *more, scores="scores.csv"):
    table = sim / "conversations.csv"
    return run("calibrate", table, "--scores", sim / scores, "-o", out, *more)


def test_posteriors_do_not_change_with_a_factor_or_an_offset(run, moved, tmp_path):
    found = {}
    for name in ("scores.csv", "moved.csv"):
        out = tmp_path / name.split(".")[0]
        table = moved / "conversations.csv"
        chosen = ("--calibration", "labelfree", "--json")
        code, text, _ = run("assign", table, "--scores", moved / name, "-o", out, *chosen)
        assert code == 0
        assert json.loads(text)["notes"] == []
        found[name] = np.array([float(r["probability"]) for r in rows(out / "assignments.csv")])
        assert json.loads((out / "calibration.json").read_text())["kind"] == "lr-floor"
        assert (out / "scores.npz").exists()
    assert np.allclose(found["scores.csv"], found["moved.csv"], atol=1e-6)


def test_calibrate_without_and_with_a_key(run, moved, tmp_path):
    path = tmp_path / "c.json"
    code, text, _ = learn(run, moved, path, "--json")
    assert code == 0
    free = json.loads(text)
    assert (free["kind"], free["source"], free["converged"]) == ("lr-floor", "labelfree", True)
    assert free["scale"] == pytest.approx(1.0, abs=0.25)
    code, text, _ = learn(run, moved, path)
    assert "rounds, 3 starts came to one end" in text
    code, text, _ = learn(run, moved, path, "--key", moved / "key.csv", "--kind", "cmlg", "--json")
    assert code == 0
    assert json.loads(text)["source"] == "supervised"
    assert json.loads(text)["scale"] == pytest.approx(1.0, abs=0.25)
    code, text, _ = learn(run, moved, path, "--kind", "pav")
    assert code == 0
    assert "steps" in text


def test_a_saved_calibration_serves_another_run(run, moved, tmp_path):
    path = tmp_path / "c.json"
    assert learn(run, moved, path, scores="moved.csv")[0] == 0
    table = moved / "conversations.csv"
    for name, chosen in (("file", path), ("free", "labelfree")):
        found = ("--scores", moved / "moved.csv", "-o", tmp_path / name, "--calibration", chosen)
        assert run("assign", table, *found)[0] == 0
    file, free = (rows(tmp_path / name / "assignments.csv") for name in ("file", "free"))
    assert [r["speaker"] for r in file] == [r["speaker"] for r in free]


def test_speech_needs_a_table_of_sides(run, moved, tmp_path):
    table = moved / "conversations.csv"
    asked = ("--scores", moved / "scores.csv", "-o", tmp_path / "o", "--calibration", "labelfree")
    assert run("assign", table, *asked, "--kind", "lr-dur")[0] == 2  # not a silent guess
    assert run("assign", table, *asked, "--wrong-lists", "0.9")[0] == 2
    assert run("assign", table, *asked, "--fallback", tmp_path / "none.json")[0] == 2
    code, _, err = learn(run, moved, tmp_path / "c.json", "--kind", "lr-dur")
    assert code == 2
    assert "seconds of speech" in err
    made = rows(moved / "conversations.csv")
    lines = [(r["conversation"], c, 5 + k % 40, "") for k, r in enumerate(made) for c in (1, 2)]
    sides = tmp_path / "sides.csv"
    write_csv(sides, ("conversation", "channel", "speech_seconds", "mark"), lines)
    code, text, _ = learn(run, moved, tmp_path / "c.json", "--sides", sides, "--json")
    assert code == 0
    assert json.loads(text)["kind"] == "lr-dur"


def test_too_small_to_calibrate(run, tmp_path):
    made = simulate.simulate(shape="star", conversations=4)
    simulate.write_simulation(made, tmp_path / "sim")
    code, _, err = learn(run, tmp_path / "sim", tmp_path / "c.json")
    assert code == 2
    assert "--key" in err
    assert not (tmp_path / "c.json").exists()


def test_detect(run, moved):
    given = ("--scores", moved / "scores.csv", "--key", moved / "key.csv")
    code, text, _ = run("detect", moved / "conversations.csv", *given, "--json")
    assert code == 0
    found = json.loads(text)
    assert set(found) == {
        *("targets", "nontargets", "eer", "eer_step", "cllr", "min_cllr"),
        *("calibration_loss", "min_dcf"),
    }
    assert found["eer"] == pytest.approx(0.10, abs=0.015)
    assert found["calibration_loss"] < 0.02
    code, text, _ = run("detect", moved / "conversations.csv", *given)
    assert "equal error rate (convex hull)" in text
    assert measure(np.array([1.0]), np.array([0.0])).eer == 0.0


def test_evaluate_without_a_key_hides_known_channels(run, moved, tmp_path):
    key = rows(moved / "key.csv")[::2]
    known = tmp_path / "known.csv"
    write_csv(known, list(key[0]), [tuple(r.values()) for r in key[:200]])
    out = tmp_path / "out"
    assert assign(run, moved, out, "--known", known)[0] == 0
    code, text, _ = run("evaluate", out, "--json")
    assert code == 0
    found = json.loads(text)
    assert 150 < found["conversations"] <= 200
    assert abs(found["wrong"] - found["expected_wrong"]) < 10
    assert assign(run, moved, out)[0] == 0
    code, _, err = run("evaluate", out)
    assert code == 2
    assert "nothing to hide" in err
