"""The library as people discover it: exports, tables and scores from memory, results as objects."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pandas
import pytest

import spklink
from made_calls import write_calls
from spklink.worlds.simulate import write_simulation

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def made():
    return spklink.simulate(eer=3.0, seed=2)


@pytest.fixture(scope="module")
def files(made, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    write_simulation(made, folder)
    return folder


def tables_of(folder: Path, name: str) -> list:
    """The same table as a path, as text, as a DataFrame and as rows."""
    frame = pandas.read_csv(folder / name, dtype=str)
    return [folder / name, str(folder / name), frame, frame.to_dict("records")]


def test_every_export_is_there_and_typed():
    text = (ROOT / "src" / "spklink" / "__init__.py").read_text()
    typed = {
        line.split(" as ")[1] for line in text.splitlines() if " as " in line and "from" in line
    }
    assert set(spklink.__all__) == typed | {"__version__"} == set(dir(spklink))
    for name in spklink.__all__:
        assert getattr(spklink, name) is not None
    with pytest.raises(AttributeError, match="lnik"):
        _ = spklink.lnik


def test_types_are_those_of_the_functions(tmp_path):
    """What an editor shows; a misspelt name, or option, does not pass a type checker."""
    (tmp_path / "user.py").write_text(
        "import spklink\n"
        "reveal_type(spklink.link)\n"
        "reveal_type(spklink.assign('t.csv', 's.csv').posterior)\n"
        "spklink.lnik\n"
        "spklink.link('t.csv', calibratoin='none')\n"
        "spklink.link('t.csv', calibration='labelfree', known='known.csv', cache='c')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    lines = done.stdout.splitlines()
    assert "-> spklink.runs.result.Result" in next(li for li in lines if "user.py:2" in li)
    assert "spklink.posterior.posterior.Posterior" in next(li for li in lines if "user.py:3" in li)
    assert 'has no attribute "lnik"' in next(li for li in lines if "user.py:4" in li)
    assert "calibratoin" in next(li for li in lines if "user.py:5" in li)
    assert not any("user.py:6" in line for line in lines)


def test_help_lists_every_option():
    for function in (spklink.link, spklink.assign, spklink.calibrate):
        names = inspect.signature(function).parameters
        assert {"seed", "workers", "known"} <= set(names)
        assert "seed: Seed of all random numbers." in function.__doc__


def test_tables_in_any_form_give_the_same(made, files):
    expected = spklink.assign(files / "conversations.csv", files / "scores.csv")
    for table in tables_of(files, "conversations.csv"):
        for scores in tables_of(files, "scores.csv")[2:]:
            found = spklink.assign(table, scores)
            assert np.array_equal(found.posterior.exchanged, expected.posterior.exchanged)
    for key in tables_of(files, "key.csv"):
        assert spklink.evaluate(expected, key).total == len(made.conversations)
        known = spklink.assign(files / "conversations.csv", files / "scores.csv", known=key)
        assert (known.posterior.best == made.truth).all()
        assert set(known.to_pandas()["origin"]) == {"given"}
    assert spklink.check(tables_of(files, "conversations.csv")[3])["conversations"] == 348


def test_scores_as_an_array_or_a_function(made, files):
    sides = len(made.conversations.sides)
    square = np.random.default_rng(0).normal(size=(sides, sides))
    square = (square + square.T) / 2
    where = {name: m for m, name in enumerate(made.conversations.ids)}

    def score(one, two):
        return square[2 * where[one[0]] + one[1] - 1, 2 * where[two[0]] + two[1] - 1]

    results = [spklink.assign(files / "conversations.csv", given) for given in (square, score)]
    assert np.array_equal(results[0].posterior.exchanged, results[1].posterior.exchanged)
    assert len(results[0].evidence.scores.non_targets) > 1000
    with pytest.raises(spklink.SpklinkError, match="where the table has 696 sides"):
        spklink.assign(files / "conversations.csv", square[:5, :5])
    with pytest.raises(spklink.SpklinkError, match="not a finite number"):
        spklink.assign(files / "conversations.csv", lambda one, two: float("nan"))


def test_what_is_no_table_is_refused():
    for wrong in ([], [1, 2], 7, [("x", "a", "b")]):
        with pytest.raises(spklink.SpklinkError, match="conversations: give a file, a DataFrame"):
            spklink.check(wrong)
    with pytest.raises(spklink.SpklinkError, match="conversations: row 2: only one participant"):
        spklink.check([{"conversation": "x", "participants": "a"}])
    with pytest.raises(spklink.SpklinkError, match="no option 'metod'"):
        spklink.assign([], [], metod="auto")


def test_cells_of_a_frame_are_read_as_a_file_would_be():
    rows = [
        {"conversation": 1, "participants": ["a", "b"], "prior": 0.9, "group": None},
        {"conversation": 2, "participants": ("a", "c"), "prior": float("nan"), "group": "g"},
    ]
    table = spklink.read_conversations(pandas.DataFrame(rows))
    assert table.ids == ["1", "2"]
    assert table.names(1) == ("a", "c")
    assert table.prior.tolist() == [0.9, 0.5]
    assert table.groups == ["", "g"]


def test_results_are_objects(made, files, tmp_path):
    found = spklink.assign(
        files / "conversations.csv", files / "scores.csv", calibration="labelfree"
    )
    assert repr(found).startswith("<spklink: 348 conversations of 356 speakers, ")
    assert len(repr(found)) < 120
    frame = found.to_pandas()
    assert list(frame.columns)[:4] == ["conversation", "channel", "speaker", "probability"]
    assert len(frame) == 696
    assert frame["probability"].dtype == float
    html = found._repr_html_()
    assert html.count("<tr>") == 11
    assert "and 686 more rows" in html
    folder = found.save(tmp_path / "out")
    assert pandas.read_csv(folder / "assignments.csv").equals(frame.astype({"channel": int}))
    again = spklink.load(folder)
    assert np.allclose(again.posterior.exchanged, found.posterior.exchanged, atol=1e-12)
    assert again.notes == found.notes
    assert again.options["calibration"] == "labelfree"
    assert spklink.write_report(folder, key=pandas.read_csv(files / "key.csv")).exists()
    copy = again.save(tmp_path / "copy")
    assert spklink.load(copy).to_pandas().equals(again.to_pandas())


def test_measures_are_objects_too(files):
    table, scores, key = (files / f"{name}.csv" for name in ("conversations", "scores", "key"))
    result = spklink.assign(table, scores, known=pandas.read_csv(key).head(60))
    measured = spklink.evaluate(result, key)
    frame = measured.to_pandas()
    assert frame["conversations"].tolist()[-3:] == ["resolvable", "at least two", "all"]
    assert frame["cliques"].tolist()[-1] == 122
    hidden = spklink.consistency(result)
    assert hidden.to_pandas()["count"].sum() == hidden.conversations > 20
    detection = spklink.detect(table, scores, key)
    assert detection.to_pandas().set_index("measure")["value"]["eer"] == detection.eer
    for one in (measured, hidden, detection):
        assert repr(one).startswith("<spklink: ")
        assert len(repr(one)) < 160
        assert one._repr_html_().count("<table>") == 1


def test_a_calibration_from_memory(files):
    table, scores = files / "conversations.csv", files / "scores.csv"
    learned = spklink.calibrate(table, scores, key=files / "key.csv")
    found = spklink.assign(table, scores, calibration=learned)
    assert found.calibration["scale"] == learned["scale"]
    with pytest.raises(spklink.SpklinkError, match="calibration: not a calibration"):
        spklink.assign(table, scores, calibration={"kind": "lr"})


def test_a_simulation_goes_from_hand_to_hand(made, files):
    result = spklink.assign(made.table(), made.scores())
    expected = spklink.assign(files / "conversations.csv", files / "scores.csv")
    assert np.array_equal(result.posterior.exchanged, expected.posterior.exchanged)
    assert spklink.evaluate(result, made.key()).total == 348


def test_the_page_says_what_came_from_memory(made, tmp_path):
    result = spklink.assign(made.table(), made.scores(), tmp_path / "out", known=made.key()[:4])
    numbers = spklink.write_report(tmp_path / "out", result=result).with_suffix(".json")
    told = json.loads(numbers.read_text())["provenance"]
    assert told["command"] == "spklink assign conversations.csv -o . --known known.csv"
    assert "by a program: conversations, known, scores" in " ".join(told["notes"])
    again = spklink.load(tmp_path / "out")
    assert (again.posterior.bits >= 0).sum() == 2


def test_what_was_loaded_can_be_saved_whole(tmp_path):
    """Saved elsewhere, and over itself: nothing is lost, and the page can be made."""
    calls = write_calls(tmp_path)
    words = {"components": 16, "workers": 1, "claimed": calls / "key.csv"}
    folder = tmp_path / "out"
    spklink.link(calls / "conversations.csv", folder, **words)
    kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    copy = spklink.load(folder).save(tmp_path / "copy")
    assert {p.name for p in copy.iterdir()} == set(kept)
    # Known non-targets are sorted when they are read: llrs.npz has them in another order.
    for name in set(kept) - {"timings.json", "run.json", "llrs.npz"}:
        assert (copy / name).read_bytes() == kept[name], name
    run, old = (json.loads((where / "run.json").read_text()) for where in (copy, folder))
    assert run["options"] == old["options"]
    assert run["recognizer"] == old["recognizer"]
    assert spklink.write_report(copy).exists()
    assert spklink.load(folder).save(folder) == folder
    assert {p.name for p in folder.iterdir() if p.is_file()} == set(kept)


def test_a_script_needs_no_guard(tmp_path):
    """`link` starts processes, which must not run the caller's script again."""
    write_calls(tmp_path)
    (tmp_path / "script.py").write_text(
        "import spklink\n"
        "import spklink.sound.listening\n"
        "spklink.sound.listening.FEWEST_FOR_PROCESSES = 2\n"
        "print('begin')\n"
        "found = spklink.link('conversations.csv', components=16, workers=2)\n"
        "print(len(found.to_pandas()))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "begin\n28\n", done.stderr


def test_names_in_a_notebook_are_text():
    rows = [{"conversation": "<b>x</b>", "participants": "<script>a</script>;b"}]
    html = spklink.assign(rows, np.zeros((2, 2)))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_frame_in_and_a_frame_out_from_sound(tmp_path):
    """The main job without a single file of ours: rows in, rows out."""
    calls = write_calls(tmp_path)
    table = pandas.read_csv(calls / "conversations.csv")
    table["audio"] = [str(calls / name) for name in table["audio"]]
    key = pandas.read_csv(calls / "key.csv")
    found = spklink.link(table, components=16, workers=1, claimed=key, known=key.head(2))
    frame = found.to_pandas()
    assert len(frame) == 28
    assert set(frame["origin"]) == {"given", "inferred"}
    assert found.listening.suspects is not None
    saved = found.save(tmp_path / "out")
    audio = pandas.read_csv(saved / "conversations.csv")["audio"]
    assert all((saved / name).resolve().is_file() for name in audio)
    hashes = pandas.read_csv(saved / "sides.csv")["sha256"]
    assert hashes.str.len().eq(64).all()


def test_pandas_is_asked_for_by_name_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = spklink.assign([{"conversation": "x", "participants": "a;b"}], np.zeros((2, 2)))
    with pytest.raises(ImportError, match=r"pip install 'spklink\[pandas\]'"):
        found.to_pandas()


def test_modules_do_not_hide_functions():
    """An imported module becomes an attribute of its package: no export may share its name."""
    for name in spklink.__all__:
        assert not isinstance(getattr(spklink, name), types.ModuleType)
        assert not (ROOT / "src" / "spklink" / name).exists()
        assert not (ROOT / "src" / "spklink" / f"{name}.py").exists()
