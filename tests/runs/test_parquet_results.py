"""Results as Parquet: the values of the CSV files, typed; a folder reads the same with either."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
import test_safe_csv
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from test_safe_csv import NAMES

from spklink import parquet_tables
from spklink.parquet_tables import NUMBERS, WHOLE, YES_OR_NO, write_parquet, write_parquet_rows
from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.runs.folder import load
from spklink.runs.link import link
from spklink.runs.measure import evaluate
from spklink.runs.watch import answers_in
from spklink.written_columns import Column, numbers, rows_of, whole_numbers

calls = test_safe_csv.calls  # six calls, ids and names of which are formulas
TABLES = (
    *("assignments", "cliques", "methods", "presence", "misfits", "sides", "segments"),
    *("problems", "suspects"),
)


@pytest.fixture(scope="module")
def linked(calls) -> dict[str, Path]:
    """The same run with each form of tables, marked for spreadsheets."""
    options = {"components": 8, "workers": 1, "on_bad_audio": "skip", "cache": calls / "cache"}
    options |= {"claimed": calls / "claimed.csv", "safe_csv": True}
    for form in ("csv", "parquet", "both"):
        link(calls / "c.csv", calls / form, tables=form, **options)
    return {form: calls / form for form in ("csv", "parquet", "both")}


def typed(path: Path) -> pandas.DataFrame:
    """A CSV file as somebody would read it who knows the types; nothing is lost."""
    kinds = dict.fromkeys(path.read_text().split("\n", 1)[0].split(","), "str")
    found = pandas.read_csv(path, dtype=kinds, keep_default_na=False)
    for name in found:
        if name in WHOLE or name in NUMBERS:
            found[name] = pandas.to_numeric(found[name])
        elif name in YES_OR_NO:
            found[name] = found[name] == "true"
        else:
            found[name] = found[name].map(test_safe_csv.unmarked)
    return found


@pytest.mark.parametrize("name", TABLES)
def test_values_are_those_of_csv(linked, name):
    wanted, found = typed(linked["csv"] / f"{name}.csv"), linked["parquet"] / f"{name}.parquet"
    pandas.testing.assert_frame_equal(pandas.read_parquet(found), wanted, check_dtype=False)
    assert found.read_bytes() == (linked["both"] / f"{name}.parquet").read_bytes()
    assert (linked["csv"] / f"{name}.csv").read_bytes() == (
        linked["both"] / f"{name}.csv"
    ).read_bytes()
    assert not (linked["parquet"] / f"{name}.csv").exists()
    assert not (linked["csv"] / f"{name}.parquet").exists()


def test_types_are_what_people_expect(linked):
    schema = parquet.read_schema(linked["parquet"] / "assignments.parquet")
    kinds = dict(zip(schema.names, map(str, schema.types), strict=True))
    assert kinds == {
        **dict.fromkeys(("conversation", "speaker", "certainty", "origin", "decision"), "string"),
        **dict.fromkeys(("channel", "clique"), "int64"),
        **dict.fromkeys(("probability", "low", "high"), "double"),
    }
    cliques = pandas.read_parquet(linked["parquet"] / "cliques.parquet")
    assert cliques["resolvable"].dtype == bool
    assert cliques["conversations"].dtype == np.int64


def test_a_folder_is_read_alike(linked, calls):
    results = {form: load(folder) for form, folder in linked.items()}
    csv = results["csv"]
    for form in ("parquet", "both"):
        one = results[form]
        assert one.summary() == csv.summary()
        assert list(one.assignments()) == list(csv.assignments())
        assert one.listening.problems == csv.listening.problems
        assert one.listening.speech.marks == csv.listening.speech.marks
        assert np.array_equal(one.listening.marks.times, csv.listening.marks.times)
        assert [row[0] for row in one.misfits] == [row[0] for row in csv.misfits]
        assert str(evaluate(one, calls / "key.csv")) == str(evaluate(csv, calls / "key.csv"))
    assert answers_in(linked["parquet"]) == {
        tuple(map(test_safe_csv.unmarked, place)): tuple(map(test_safe_csv.unmarked, said))
        for place, said in answers_in(linked["csv"]).items()
    }


def test_everything_that_reads_a_folder_does(linked, calls, run, tmp_path):
    key = calls / "key.csv"
    told = {}
    for form in ("csv", "parquet"):
        out = linked[form]
        commands = [
            ("evaluate", out, "--key", key, "--json"),
            ("queue", out, "--json"),
            ("export", out, "-o", tmp_path / form, "--to", "rttm", "--only", "all"),
            ("decisions", out, "-o", tmp_path / f"{form}-handed"),
            ("detect", calls / "c.csv", "--scores", out / "llrs.npz", "--key", key, "--json"),
        ]
        said = [run(*map(str, words)) for words in commands]
        assert [code for code, *_ in said] == [0] * len(commands), said
        told[form] = [said[k][1] for k in (0, 1, 4)]
    assert told["csv"] == told["parquet"]
    for name in ("csv", "csv-handed"):
        other = tmp_path / name.replace("csv", "parquet")
        for path in (tmp_path / name).glob("*.*"):
            if path.suffix not in (".json", ".jsonl"):  # these name the folder
                assert path.read_bytes() == (other / path.name).read_bytes(), path


def test_its_report_names_its_files(linked):
    pages = {form: write_report(linked[form]).read_text() for form in ("csv", "parquet")}
    assert "assignments.csv" in pages["csv"]
    assert "assignments.csv" not in pages["parquet"]
    assert "assignments.parquet" in pages["parquet"]
    assert "--tables parquet" in pages["parquet"]


def test_another_form_leaves_nothing_of_the_first(calls, run, tmp_path):
    scores = np.zeros((12, 12))
    for form in ("both", "csv", "parquet"):
        assign(calls / "c.csv", scores, tmp_path / "out", tables=form)
        endings = {path.suffix for path in (tmp_path / "out").glob("assignments.*")}
        assert endings == {"both": {".csv", ".parquet"}}.get(form, {f".{form}"})
    again = load(tmp_path / "out").save(tmp_path / "again")
    for name in ("assignments.parquet", "cliques.parquet"):
        assert (again / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert json.loads((again / "run.json").read_text())["options"]["tables"] == "parquet"
    assert pandas.read_parquet(again / "assignments.parquet")["speaker"].tolist()[0] in NAMES


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1 and nothing else PAR1"])
def test_a_damaged_table_is_named(linked, calls, run, tmp_path, damage):
    out = load(linked["parquet"]).save(tmp_path / "out")
    (out / "sides.parquet").write_bytes(damage)
    code, _, err = run("evaluate", str(out), "--key", str(calls / "key.csv"))
    assert code
    assert "sides.parquet" in err


@given(
    st.lists(st.tuples(st.text("ab,\"\n'=ä"), st.floats(0, 1), st.integers(1, 5)), max_size=20),
    st.integers(1, 7),
)
def test_columns_and_rows_are_one_table(tmp_path_factory, rows, group):
    folder, names = tmp_path_factory.mktemp("parquet"), ("speaker", "probability", "channel")
    texts, chances, tracks = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [
        Column(texts, np.arange(len(texts))),
        *numbers(np.array(chances, np.float64)),
        whole_numbers(np.array(tracks, np.int64)),
    ]
    whole, parquet_tables.GROUP = parquet_tables.GROUP, group
    try:
        write_parquet(folder / "a.parquet", names, columns)
        write_parquet_rows(folder / "b.parquet", names, rows_of(columns))
    finally:
        parquet_tables.GROUP = whole
    assert (folder / "a.parquet").read_bytes() == (folder / "b.parquet").read_bytes()
    found = pandas.read_parquet(folder / "a.parquet")
    assert found["speaker"].tolist() == list(texts)
    assert found["channel"].tolist() == list(tracks)
    assert found["probability"].tolist() == [float(f"{one:.10g}") for one in chances]
