"""Results of earlier versions, kept as they were written: what people have on their disks.

Each folder in tests/kept must be read as well as on the day it was made (`make_kept.py` says how):
the same assignments, a report, measures, exports, a queue, and decisions that are handed over as
they were then. Where a version cannot read one any more, every command must refuse it in one line
that says which command to run; such folders are named in REFUSED.

Numbers are compared within 1e-9, as last digits differ between machines; text that is only passed
on, such as a log of decisions, byte for byte.
"""

from __future__ import annotations

import csv
import json
import shutil
from math import isclose
from pathlib import Path

import pyarrow.parquet
import pytest

import spklink

KEPT = Path(__file__).parent / "kept"
NAMES = sorted(path.name for path in KEPT.iterdir())
PARTITIONS = ["partition"]
LINKED = [name for name in NAMES if name not in PARTITIONS]
LOGGED = [name for name in NAMES if (KEPT / name / "handed-over").exists()]
REFUSED: dict[str, str] = {}  # folder → the command that its refusal names
LAST_HASH = {"enrolled": "1938debb88dda8c86add8f150e9fd2c56bed427a79b4549d1c806a2eb58e2fd5"}
FORMATS = ("rttm", "ctm")
COPIED = ("conversations", "known", "tracks", "enrol")  # copies of what was given


@pytest.fixture
def kept(tmp_path):
    """A copy of a kept folder, as commands may write into it."""

    def copied(name: str) -> Path:
        return shutil.copytree(KEPT / name, tmp_path / name)

    return copied


@pytest.fixture
def done(run):
    """Run a command that must do what it is asked; its standard output."""

    def call(*words):
        code, out, err = run(*words)
        assert code == 0, err
        return out

    return call


def cells(path: Path) -> list[list[str]]:
    """A table with its header, also of Parquet."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))
    table = pyarrow.parquet.read_table(path)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [table.column_names, *([str(cell) for cell in row] for row in rows)]


# p10 is in one of two conversations, and as probably in either: which one is named is rounding.
TIED = {"parquet": ("call13", "call17")}


def assert_equal_tables(found: Path, wanted: Path, tied: tuple[str, ...] = ()) -> None:
    here, there = cells(found), cells(wanted)
    assert here[0] == there[0], found.name
    assert len(here) == len(there), found.name
    for number, (row, old) in enumerate(zip(here, there, strict=True), start=1):
        if row[0] in tied:
            continue
        for name, one, two in zip(here[0], row, old, strict=True):
            assert equal(one, two), f"{found.name}, row {number}, {name}: {two!r} is {one!r} now"


def equal(one: object, two: object) -> bool:
    """Values of tables and of JSON; numbers may differ in their last digits."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(equal(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(equal, one, two))
    if one == two:
        return True
    try:
        numbers = float(one), float(two)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return isclose(*numbers, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("name", sorted(set(LINKED) - set(REFUSED)))
def test_load_computes_what_was_written(kept, tmp_path, name):
    """All tables, written again."""
    old, new = kept(name) / "results", tmp_path / "again"
    spklink.load(old).save(new)
    tables = [path for path in old.iterdir() if path.suffix in (".csv", ".parquet")]
    assert len(tables) >= 4
    for table in tables:
        if table.stem in COPIED:
            assert (new / table.name).exists()
        else:
            assert_equal_tables(new / table.name, table, TIED.get(name, ()))
    assert {path.name for path in old.iterdir()} - {path.name for path in new.iterdir()} <= {
        "review.sqlite"
    }


def test_what_is_tied_is_as_probable(kept):
    answer = spklink.load(kept("parquet") / "results").answer
    one, two = (
        next(e for e in range(*span) if answer.table.speakers[answer.table.people[e]] == "p10")
        for m in map(answer.table.index().__getitem__, TIED["parquet"])
        for span in [(answer.table.listing.start[m], answer.table.listing.start[m + 1])]
    )
    other = answer.place.copy()
    other[[one, two]] = (1, 2) if answer.place[one] == 2 else (2, 1)
    found, best = answer.posterior_of(other), answer.posterior_of(answer.place)
    assert (other != answer.place).sum() == 2
    assert found == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", sorted(set(LINKED) - set(REFUSED)))
def test_commands_read_it(kept, done, tmp_path, name):
    folder = kept(name)
    results, key = folder / "results", folder / "key.csv"
    done("report", results)
    assert (results / "report.html").exists()
    measured = json.loads(done("evaluate", results, "--key", key, "--json"))
    assert measured
    asked = json.loads(done("queue", results, "--json"))
    assert asked["progress"]["conversations"] > 0
    if (folder / "segments.csv").exists():
        for to in FORMATS:
            more = ("--segments", folder / "segments.csv", "--only", "all")
            done("export", results, "-o", tmp_path / to, "--to", to, *more)
            assert len(list((tmp_path / to).iterdir())) > 1
    assert (results / "run.json").read_bytes() == (KEPT / name / "results/run.json").read_bytes()


@pytest.mark.parametrize("name", PARTITIONS)
def test_commands_read_a_partition(kept, done, name):
    results = kept(name) / "results"
    done("report", results)
    assert (results / "report.html").exists()
    measured = json.loads(done("evaluate", results, "--key", KEPT / name / "key.csv", "--json"))
    assert measured["agreement"]["bcubed"] > 0.8


@pytest.mark.parametrize("name", LOGGED)
def test_decisions_are_handed_over_as_they_were(kept, done, tmp_path, name):
    """The log, what was heard and the lists byte for byte; probabilities within 1e-9."""
    folder, old = kept(name), KEPT / name / "handed-over"
    new = folder / "again"
    done("decisions", folder / "results", "-o", new, "--claimed", folder / "claimed.csv")
    assert sorted(path.name for path in new.iterdir()) == sorted(p.name for p in old.iterdir())
    for same in ("log.jsonl", "known.csv", "conversations.csv"):
        assert (new / same).read_bytes() == (old / same).read_bytes(), same
    for table in ("assignments.csv", "changes.csv"):
        assert_equal_tables(new / table, old / table)
    said, before = (json.loads((at / "review.json").read_text()) for at in (new, old))
    assert equal(said, before)


@pytest.mark.parametrize("name", LOGGED)
def test_the_log_has_the_hash_that_people_noted(kept, done, name):
    folder = kept(name)
    for log in (folder / "results", folder / "handed-over" / "log.jsonl"):
        found = json.loads(done("decisions", log, "--json"))
        assert found["last_hash"] == LAST_HASH[name]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_read_says_which_command_to_run(kept, run, name):
    results = kept(name) / "results"
    for words in (("report", results), ("queue", results), ("decisions", results)):
        code, _, err = run(*words)
        assert code == 2
        assert err.count("\n") == 1
        assert f"spklink {REFUSED[name]}" in err
