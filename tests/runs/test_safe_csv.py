"""Tables for spreadsheets: what would be run is marked, and nothing else is lost."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.runs.folder import load
from spklink.runs.link import link
from spklink.tables import marked, unmarked
from spklink.worlds.voices import RATE, call, make_voices

NAMES = ["=cmd|'/C calc'!A0", "+1", "-2+3", "@SUM(A1)", "'=quoted", "plain"]
DANGER = ("=", "+", "-", "@", "\t", "\r")


def write_table(path: Path, rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@given(st.text(alphabet="';=+-@\t\r\n＝a1"))
def test_marks_come_off_again(text):
    safe = marked(text)
    assert unmarked(safe) == text
    assert not safe.startswith(DANGER)
    assert not any(part.startswith(DANGER[:4]) for part in safe.replace("\n", ";").split(";"))


def test_only_formulas_are_marked():
    for plain in ("ann", "a=b", "O'Neil", "'tis", "", "1-2", "a;b"):
        assert marked(plain) == plain
    assert marked("=a;=b") == "'=a;'=b"


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> Path:
    """Six short calls in a ring; ids and speakers are formulas, all claims are wrong in turn."""
    folder = tmp_path_factory.mktemp("calls")
    voices = make_voices(len(NAMES), np.random.default_rng(1))
    rows, key, claims = [], [], []
    for k, name in enumerate(NAMES):
        other = (k + 1) % len(NAMES)
        samples = call(voices[k], voices[other], np.random.default_rng(k), 6.0)
        soundfile.write(folder / f"={k}.wav", samples, RATE)
        rows.append((f"={k}", f"={k}.wav", f"{name};{NAMES[other]}"))
        key.append((f"={k}", 1, name))
        claims.append((f"={k}", 1, NAMES[other]))
    (folder / "=5.wav").write_bytes(b"not sound")
    write_table(folder / "c.csv", [("conversation", "audio", "participants"), *rows])
    for file, labels in (("key.csv", key), ("claimed.csv", claims)):
        write_table(folder / file, [("conversation", "channel", "speaker"), *labels])
    return folder


@pytest.fixture(scope="module")
def linked(calls) -> tuple[Path, Path]:
    """The same run without and with the option."""
    options = {"components": 8, "workers": 1, "on_bad_audio": "skip", "cache": calls / "cache"}
    for name, safe in (("plain", False), ("safe", True)):
        claimed = calls / "claimed.csv"
        link(calls / "c.csv", calls / name, claimed=claimed, safe_csv=safe, **options)
    return calls / "plain", calls / "safe"


def test_no_cell_is_a_formula(linked):
    plain, safe = linked
    for name in ("assignments.csv", "sides.csv", "problems.csv", "suspects.csv"):
        before, after = rows_of(plain / name), rows_of(safe / name)
        assert before
        assert any(cell.startswith(DANGER) for row in before for cell in row.values())
        for row in after:
            assert not any(cell.startswith(DANGER) for cell in row.values()), (name, row)
        assert [{k: unmarked(v) for k, v in row.items()} for row in after] == before
    for name in ("conversations.csv", "cliques.csv", "methods.csv", "llrs.npz"):
        assert (plain / name).read_bytes() == (safe / name).read_bytes()
    run = json.loads((safe / "run.json").read_text())
    assert run["options"]["safe_csv"] is True


def test_a_marked_folder_is_read_as_any_other(linked, calls, run):
    plain, safe = map(load, linked)
    assert safe.listening.problems == plain.listening.problems
    assert safe.listening.suspects == plain.listening.suspects
    assert safe.listening.speech.marks == plain.listening.speech.marks
    assert np.array_equal(safe.listening.speech.seconds, plain.listening.speech.seconds)
    assert safe.summary() == plain.summary()
    texts = [run("evaluate", out, "--key", calls / "key.csv", "--json")[1] for out in linked]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["conversations"]["total"] == len(NAMES)


def test_its_report_is_the_same(linked):
    plain, safe = (json.loads(write_report(out).with_suffix(".json").read_text()) for out in linked)
    for part in ("found", "suspicious", "problems", "conversations", "methods", "database"):
        assert plain[part] == safe[part]
    assert plain["suspicious"]["rows"]
    assert "--safe-csv" in safe["provenance"]["command"]
    assert "--safe-csv" not in plain["provenance"]["command"]


def test_saved_again_it_keeps_its_marks(linked, tmp_path):
    again = load(linked[1]).save(tmp_path / "again")
    for name in ("assignments.csv", "sides.csv", "problems.csv", "suspects.csv"):
        assert (again / name).read_bytes() == (linked[1] / name).read_bytes()


def test_assign_and_older_folders(calls, run, tmp_path):
    scores = np.zeros((12, 12))
    assign(calls / "c.csv", scores, tmp_path / "out", safe_csv=True)
    cells = {row["speaker"] for row in rows_of(tmp_path / "out" / "assignments.csv")}
    assert cells == {marked(name) for name in NAMES}
    described = json.loads((tmp_path / "out" / "run.json").read_text())
    assert described["options"].pop("safe_csv") is True
    (tmp_path / "out" / "run.json").write_text(json.dumps(described))
    write_report(tmp_path / "out")  # of a time when there was no such option
    assert load(tmp_path / "out").save(tmp_path / "again").exists()
