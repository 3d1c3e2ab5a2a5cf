"""What benchmarks/same_bytes.py takes for the same and what not; the commands are left out."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

BEFORE = "clique,method,bits\n1,sampling,0.5\n2,trace,0.25\n"


@pytest.fixture(scope="module")
def same_bytes():
    path = Path(__file__).parent.parent / "benchmarks" / "same_bytes.py"
    spec = spec_from_file_location("same_bytes", path)
    module = module_from_spec(spec)
    sys.modules["same_bytes"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE.replace("0.25", "0.26"), "row 3, bits: 0.25 is 0.26 now"),
        (BEFORE.replace("trace", "tree"), "row 3, method: trace is tree now"),
        ("clique,method\n1,sample\n2,trace\n", "columns clique,method, not clique,method,bits"),
        ("clique,new,method,bits\n1,x,sample,0.5\n2,y,trace,0.25\n", "columns clique,new"),
        (BEFORE + "3,trace,1\n", "3 rows, not 2"),
        (BEFORE.replace("\n", "\r\n"), "written in another way"),
    ],
)
def test_tables_that_differ(same_bytes, tmp_path, after, said):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_bytes(BEFORE.encode())
    new.write_bytes(after.encode())
    found, text = same_bytes.compare(old, new)
    assert not found
    assert said in text
    assert same_bytes.compare(old, old) == (True, "same")


def test_values_that_were_renamed(same_bytes, tmp_path, monkeypatch):
    old, new = tmp_path / "methods.csv", tmp_path / "new.csv"
    old.write_text(BEFORE)
    new.write_text(BEFORE.replace("sampling", "sample"))
    assert not same_bytes.compare(old, new)[0]
    monkeypatch.setitem(same_bytes.RENAMED, ("methods.csv", "method"), {"sampling": "sample"})
    assert same_bytes.compare(old, new) == (True, "same, but for renamed values")


def test_tolerance_is_for_numbers_only(same_bytes, tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text(BEFORE)
    new.write_text(BEFORE.replace("0.25", "0.2500001"))
    assert same_bytes.compare(old, new, 1e-6) == (True, "same within 1e-07")
    assert not same_bytes.compare(old, new, 1e-8)[0]
    new.write_text(BEFORE.replace("trace", "tree"))
    assert not same_bytes.compare(old, new, 1e-6)[0]


def test_arrays_and_missing_files(same_bytes, tmp_path):
    old, new = tmp_path / "old.npz", tmp_path / "new.npz"
    np.savez(old, a=np.array([1.0, 2.0]))
    assert same_bytes.compare(old, new) == (False, "only in the old version")
    np.savez(new, a=np.array([1.0, 2.5]))
    assert same_bytes.compare(old, new) == (False, "differs: a in 1 of 2 values, by 0.5 at most")
    assert same_bytes.compare(old, new, 0.5) == (True, "same within 0.5")
    np.savez(new, a=np.array([1.0, 2.0]), b=np.zeros(1))
    assert same_bytes.compare(old, new) == (False, "differs: arrays a, b, not a")
    np.savez(new, a=np.array([1.0, 2.0], np.float32))
    assert not same_bytes.compare(old, new)[0]


def test_json_without_what_a_clock_says(same_bytes, tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps({"rate": 0.1, "run": {"seconds": 3.0, "date": "1"}, "list": [1, 2]}))
    new.write_text(json.dumps({"rate": 0.1, "run": {"seconds": 4.0, "date": "2"}, "list": [1, 2]}))
    assert same_bytes.compare(old, new) == (True, "same, but for times")
    new.write_text(json.dumps({"rate": 0.1, "run": {"seconds": 3.0, "date": "1"}, "list": [1, 3]}))
    assert same_bytes.compare(old, new) == (False, "differs: .list[1]: 2 is 3 now")
    new.write_text(json.dumps({"rate": 0.1, "run": {}, "list": [1, 2], "more": 1}))
    assert same_bytes.compare(old, new) == (False, "differs: .more: nothing is 1 now")


def test_other_files_line_by_line(same_bytes, tmp_path):
    old, new = tmp_path / "old.rttm", tmp_path / "new.rttm"
    old.write_text("SPEAKER a 1\nSPEAKER b 1\n")
    new.write_text("SPEAKER a 1\nSPEAKER c 1\n")
    found, text = same_bytes.compare(old, new)
    assert not found
    assert "line 2" in text


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("assignments.csv", BEFORE, BEFORE.replace("0.5", "0.6")),
        ("report.json", '{"lists": {"rate": 0.05}}', '{"lists": {"rate": 0.06}}'),
        ("handed-over/known.csv", BEFORE, BEFORE.replace("trace", "tree")),
        ("exported/rttm/all.rttm", "SPEAKER a\n", "SPEAKER b\n"),
        ("queue.json", '[{"conversation": "a"}]', '[{"conversation": "b"}]'),
        ("first/run.json", '{"conversations": 3}', '{"conversations": 4}'),
    ],
)
def test_a_planted_change_in_each_kind_of_file_is_seen(same_bytes, tmp_path, name, text, changed):
    old, new = tmp_path / "old", tmp_path / "new"
    for top in (old, new):
        (top / name).parent.mkdir(parents=True)
        (top / name).write_text(text)
        (top / "page.html").write_text(str(top))  # prose is exempt
    assert same_bytes.compare_folders("case", old, new, 0.0)
    (new / name).write_text(changed)
    assert not same_bytes.compare_folders("case", old, new, 0.0)
    (new / name).unlink()
    assert not same_bytes.compare_folders("case", old, new, 0.0)


def test_decisions_are_written_as_review_writes_them(same_bytes, tmp_path):
    """The package's own reader takes the log that the benchmark writes by plain SQL."""
    from spklink.decisions.log import Decisions

    header = "conversation,channel,speaker\n"
    rows = "".join(f"call{k},{c},p{k}{c}\n" for k in range(6) for c in (1, 2))
    (tmp_path / "out").mkdir()
    for name in ("key.csv", "out/assignments.csv"):
        (tmp_path / name).write_text(header + rows)
    same_bytes.write_decisions(tmp_path, "out", "key.csv")
    log = Decisions.open(tmp_path / "out" / "review.sqlite")
    entries = log.all()
    assert log.verify() == entries[-1].hash
    log.close()
    assert [one.verdict for one in entries] == ["heard"] * 3 + ["unsure", "heard", "undo"]
    assert entries[2].seats == ("p22", "p21")
