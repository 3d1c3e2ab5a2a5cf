"""Several recognizers on one database, side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spklink
from commands import rows
from given_voices import make_voices
from spklink.errors import SpklinkError
from spklink.runs import compare as module
from spklink.runs.candidates import candidates, differing
from spklink.runs.compare import DONE, Job, _kept

VOICES = make_voices(towns=12)
WORSE = make_voices(towns=12, noise=1.2)
LISTS = {"list_errors": 0.0}  # taken at their word


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = VOICES.write(tmp_path_factory.mktemp("compare"))
    np.savez(home / "worse.npz", **WORSE.arrays())
    return home


@pytest.fixture(scope="module")
def compared(folder):
    out = folder / "out"
    found = spklink.compare(
        folder / "conversations.csv",
        out,
        embeddings=[str(folder / "vectors.npz"), str(folder / "worse.npz"), "gone.npz"],
        key=folder / "key.csv",
        **LISTS,
    )
    return found, out


def test_a_row_for_each_and_one_that_fails_ends_no_other(compared):
    found, out = compared
    table = rows(out / "compare.csv")
    assert [row["name"] for row in table] == ["vectors", "worse", "gone"]
    assert "cannot be read" in table[2]["failed"]
    assert table[2]["eer"] == ""
    assert any(note.startswith("gone failed") for note in found.notes)
    good, worse = (found.runs[k].measures for k in (0, 1))
    assert good.eer < worse.eer
    assert good.cllr < worse.cllr
    assert good.cross_entropy_bits <= worse.cross_entropy_bits
    assert good.trials == 144 * 143 // 2  # all pairs of sides have a key
    assert good.peak_memory_bytes > 1e7
    assert good.seconds > 0.0
    written = json.loads((out / "compare.json").read_text())
    assert [row["name"] for row in written["runs"]] == ["vectors", "worse", "gone"]


def test_measures_are_those_of_the_single_commands(compared, folder):
    found, out = compared
    alone = spklink.evaluate(out / "vectors", folder / "key.csv")
    assert found.runs[0].measures.wrong == alone.marginals.wrong
    bits = alone.resolvable.cross_entropy_bits
    assert found.runs[0].measures.cross_entropy_bits == pytest.approx(bits, abs=1e-9)
    raw = spklink.detect(
        folder / "conversations.csv", out / "vectors" / "scores.npz", folder / "key.csv"
    )
    assert found.runs[0].measures.eer == pytest.approx(raw.eer, abs=0.01)


def test_disagreements_are_listed(compared):
    found, out = compared
    table = rows(out / "disagreements.csv")
    first = {(r[0], str(r[1])): r[2] for r in spklink.load(out / "vectors").assignments()}
    second = {(r[0], str(r[1])): r[2] for r in spklink.load(out / "worse").assignments()}
    differ = {place for place, name in first.items() if second[place] != name}
    assert 0 < len(differ) < 72
    assert {(r["conversation"], r["channel"]) for r in table} == differ
    assert len(found.places) == len(differ)
    assert {run.disagreements for run in found.runs[:2]} == {len(differ)}
    for row in table:
        place = row["conversation"], row["channel"]
        assert (row["speaker vectors"], row["speaker worse"]) == (first[place], second[place])
        assert 0.0 <= float(row["probability vectors"]) <= 1.0


def test_a_finished_run_is_not_run_again(compared, folder, monkeypatch):
    _, out = compared

    def refuse(*_, **__):
        raise AssertionError("linked again")

    monkeypatch.setattr(module, "in_processes", refuse)
    again = spklink.compare(
        folder / "conversations.csv",
        out,
        embeddings=[str(folder / "vectors.npz")],
        key=folder / "key.csv",
        **LISTS,
    )
    assert again.runs[0].measures.wrong == 0
    with pytest.raises(SpklinkError, match="linked again"):
        spklink.compare(
            *(folder / "conversations.csv", out),
            embeddings=[str(folder / "vectors.npz")],
            key=folder / "key.csv",
            seed=1,
            **LISTS,
        )


def test_what_a_run_depends_on(folder, tmp_path):
    home = VOICES.write(tmp_path / "home")

    def state(**more):
        options = spklink.settings.CompareOptions(embeddings=[str(home / "vectors.npz")], **more)
        asked = module.resolved(module.CompareOptions, options)
        inputs, people = module._read(home / "conversations.csv", asked)
        (one,) = candidates(asked)
        return Job.of(one, home / "conversations.csv", tmp_path, people, inputs, asked).state

    first = state()
    assert state(workers=1) == first
    assert state(key=home / "key.csv") == first
    assert state(list_errors=0.0) != first
    np.savez(home / "vectors.npz", **WORSE.arrays())
    assert state() != first


def test_a_damaged_note_of_a_run_is_not_believed(compared, folder, tmp_path):
    _, out = compared
    job = Job("", out / "vectors", {}, "another state", None)
    assert _kept(job) is None
    copy = tmp_path / "vectors"
    copy.mkdir()
    for text in ("", "{}", '{"state": "s", "key": null, "measures": {"nonsense": 1}}'):
        (copy / DONE).write_text(text)
        (copy / "run.json").write_text("{}")
        assert _kept(Job("", copy, {}, "s", None)) is None


def test_names_of_candidates():
    asked = {
        "recognizer": ("gmm-ubm", "gmm-ubm:paper", "some/net.onnx"),
        "embeddings": ("a/net.npz", "b/net.npz:paper", "a/../x.ark"),
        "scores": ("net.csv",),
    }
    found = candidates(asked)
    assert [one.name for one in found] == [
        *("gmm-ubm", "gmm-ubm-paper", "net", "net-2", "net-paper", "x", "net-3"),
    ]
    assert found[1].options == {"recognizer": "gmm-ubm", "preset": "paper"}
    assert found[2].options["recognizer"] == "some/net.onnx"
    with pytest.raises(SpklinkError, match="nothing to compare"):
        candidates({"recognizer": (), "embeddings": None, "scores": ()})


def test_where_one_has_no_name_nobody_disagrees():
    one = {("a", "1"): ("x", "1"), ("a", "2"): ("y", "1"), ("b", "1"): ("", "")}
    two = {("a", "1"): ("x", ".6"), ("a", "2"): ("z", ".6"), ("b", "1"): ("q", ".6")}
    assert differing([one, two]) == [("a", "2")]


def test_all_that_fail_is_an_error(folder, tmp_path):
    with pytest.raises(SpklinkError, match=r"no recognizer came to an end: gmm-ubm: .*no audio"):
        spklink.compare(folder / "conversations.csv", tmp_path / "out", recognizer=["gmm-ubm"])


def test_the_command_and_its_pictures(run, compared, folder):
    _, out = compared
    code, said, wrong = run(
        *("compare", folder / "conversations.csv", "-o", out, "--key", folder / "key.csv"),
        *("--embeddings", folder / "vectors.npz", "--embeddings", folder / "worse.npz"),
        *("--list-errors", 0),
    )
    assert code == 0, wrong
    assert "Against the key" in said
    assert "tracks in dispute" in said
    for name in ("eer", "cllr", "bits", "confusion", "cliques", "wrong", "evidence", "memory"):
        for kind in ("svg", "png"):
            assert (out / "figures" / f"compare-{name}.{kind}").stat().st_size > 500
    page = (out / "compare.html").read_text()
    assert "<script" not in page
    assert "compare-eer.svg" in page


def test_without_a_key_the_runs_speak_for_themselves(folder, compared, run):
    _, out = compared
    code, said, wrong = run(
        *("compare", folder / "conversations.csv", "-o", out, "--json", "--list-errors", 0),
        *("--embeddings", folder / "vectors.npz", "--embeddings", folder / "worse.npz"),
    )
    assert code == 0, wrong
    found = json.loads(said)["runs"]
    assert found[0]["eer"] is None
    assert found[0]["wrong"] is None
    assert found[0]["evidence_bits"] > found[1]["evidence_bits"]
    assert found[0]["expected_errors"] <= found[1]["expected_errors"]
    assert found[0]["settled"] == found[0]["tracks"] == 144
    assert not (out / "figures" / "compare-eer.svg").exists()


def test_names_of_others_are_text_on_the_page(tmp_path):
    from spklink.report.comparison import write_comparison
    from spklink.runs.comparison import Compared, Comparison

    answers = {"a": {("<i>", "1"): ("<b>", ".5")}, "b": {("<i>", "1"): ("c", ".5")}}
    found = Comparison([Compared("a"), Compared("b")], [("<i>", "1")], answers, ["<u>"])
    page = write_comparison(found, tmp_path).read_text()
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert "<u>" not in page
    assert "<i>" not in page
