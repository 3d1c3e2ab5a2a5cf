"""Options and cells at the edge of what they may be: finite results or one line, and soon."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import spklink
import spklink.tables
from spklink import SpklinkError, read_conversations
from spklink.posterior.likelihood import Weight
from spklink.threads import cores

WIDE = "conversation,audio,participants\n"
SLOWEST = 20.0  # seconds of computing of one try


@pytest.fixture(scope="session")
def calls(tmp_path_factory):
    """Enough calls to learn from without labels."""
    return spklink.simulate(conversations=40, seed=1), tmp_path_factory.mktemp("edges")


ASSIGN = [
    *({"calibration": "labelfree", "wrong_lists": w} for w in (0.0, 0.4, 0.499, 1e-300)),
    *({"calibration": "labelfree", "kind": k, "wrong_lists": 0.4} for k in ("lr", "lr-floor")),
    *({"beta": b} for b in (0.0, 1e-300, 1e100, 1e308)),
    *({"budget_seconds": s} for s in (1e-300, 1e308)),
    *({"budget_gb": s} for s in (0.5, 1e308)),
    *({"seed": s} for s in (0, 2**64, 2**128 - 1)),
    {"workers": 10**6},
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", ASSIGN, ids=str)
def test_what_works_gives_finite_results(calls, options):
    made = calls[0]
    found = spklink.assign(made.table(), made.scores(), **options)
    assert np.isfinite(found.posterior.exchanged).all()
    assert np.isfinite(found.summary()["entropy_bits"]).all()


REFUSED = [
    *({"wrong_lists": w} for w in (0.5, -1e-9, float("nan"), 1e308)),
    *({"beta": b} for b in (-1e-300, float("inf"), float("nan"), 10**400)),
    *({"budget_seconds": s} for s in (0.0, -1.0, float("inf"))),
    *({"budget_gb": s} for s in (0.0, 1e-300, 0.2, float("nan"))),
    *({"seed": s} for s in (-1, 10**400, 10**5000)),
    {"workers": 0},
]


@pytest.mark.parametrize("options", REFUSED, ids=lambda o: str(list(o)))
def test_what_does_not_is_refused(calls, options):
    with pytest.raises(SpklinkError) as caught:
        spklink.assign(calls[0].table(), calls[0].scores(), **options)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("kind", [None, "lr", "lr-floor", "cmlg", "pav"])
@pytest.mark.parametrize("factor", [1e-310, 1e-120, 1e-90, 1e90, 1e98, 1e299, np.inf])
def test_scores_of_any_size(calls, factor, kind):
    made = calls[0]
    rows = [row | {"score": float(row["score"]) * factor} for row in made.scores()]
    options = {} if kind is None else {"calibration": "labelfree", "kind": kind}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if factor > 1e100:
            with pytest.raises(SpklinkError, match="not a finite number"):
                spklink.assign(made.table(), rows, **options)
            return
        found = spklink.assign(made.table(), rows, **options)
        spklink.evaluate(found, made.key())
        spklink.detect(made.table(), rows, made.key())
    assert np.isfinite(found.posterior.exchanged).all()


def test_weights_of_any_ratio():
    calls = np.array([2, 3, 1000], np.int32)
    assert np.allclose(Weight("book", 1e308).of(calls), Weight("book", 1e60).of(calls))
    assert cores(10**6) <= 10**4


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("world", ["gaussian", "plda", "t5"])
@pytest.mark.parametrize("eer", [0.01, 45.0])
def test_worlds_at_their_ends(world, eer):
    try:
        made = spklink.simulate(conversations=12, world=world, eer=eer)
    except SpklinkError as error:
        assert "ask for" in str(error)  # noqa: PT017
        return
    assert np.isfinite(made.llr).all()


COMMANDS = [
    ["simulate", "out", "--conversations", "9" * 400],
    ["simulate", "out", "--conversations", "0"],
    ["simulate", "out", "--conversations", "-1"],
    ["simulate", "out", "--conversations", "1000000000"],
    ["entropy", "--conversations", "9" * 400, "--speakers", "5"],
    ["entropy", "--conversations", "0", "--speakers", "2"],
    ["entropy", "--conversations", "5", "--speakers", "9" * 400],
    ["paper", "--databases", "0"],
    ["paper", "--databases", "9" * 400],
    ["paper", "--eer", "nan"],
    ["link", "c.csv", "-o", "out", "--components", "1000000000"],
    ["link", "c.csv", "-o", "out", "--min-speech", "nan"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda w: f"{w[0]} {w[-2]} {w[-1][:12]}")
def test_commands_refuse_in_one_line(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert len(err) < 1000


def test_entropies_of_the_largest_database(run):
    for speakers in (2, 10**6, 2 * 10**9):
        begin = time.process_time()
        code, text, err = run("entropy", "--conversations", 10**9, "--speakers", speakers, "--json")
        assert code == 0, err
        assert "NaN" not in text
        assert time.process_time() - begin < SLOWEST


def rows(*lines: str) -> str:
    return WIDE + "".join(f"{line}\n" for line in lines)


TABLES = {
    "empty": "",
    "blank": "\n\n\n",
    "header": WIDE,
    "NUL": b"\0" * 1000,
    "NUL in an id": rows("a\0b,,x;y"),
    "NUL in a name": rows("a,,x\0;y"),
    "NUL in a file": rows("a,b\0.wav,x;y"),
    "quote": rows('"a,,x;y', "b,,x;z"),
    "id": rows("a" * 10_000_000 + ",,x;y"),
    "longer id": rows("a" * 20_000_000 + ",,x;y"),
    "person": rows("a,," + "x" * 10_000_000 + ";y"),
    "people": rows("a,," + ";".join(f"p{k}" for k in range(100_000))),
    "people twice": rows("a,," + ";".join(f"p{k}" for k in range(100_000)) + ";p99999"),
    "columns": ",".join(f"c{k}" for k in range(100_000)) + "\n1\n",
    "problems": rows(*(f"{k},,x" for k in range(200_000))),
    "not UTF-8": rows(*(f"{k},,Пётр;Анна" for k in range(50))).encode("cp1251"),
    "half of UTF-16": rows("a,,x;y").encode("utf-16")[:-1],
    "an archive": b"PK\x03\x04" + bytes(range(256)) * 9,
    "Parquet": b"PAR1" + bytes(range(256)) * 9,
    "old Excel": b"\xd0\xcf\x11\xe0" + bytes(range(256)) * 9,
    "JSON": "{" * 100_000,
    "a JSON array": "[" * 100_000,
}


@pytest.mark.parametrize("name", TABLES)
def test_odd_tables_are_refused_soon_and_shortly(write, name):
    text = TABLES[name]
    path = write("c.csv", text)
    begin = time.process_time()
    for table in (path, spklink.tables.read_table(path)):
        with pytest.raises(SpklinkError) as caught:
            read_conversations(table)
        assert len(str(caught.value)) < 10_000
        assert str(path) in str(caught.value)
    assert time.process_time() - begin < SLOWEST


def test_lines_may_end_in_any_way(write):
    for end in ("\n", "\r\n", "\r"):
        table = read_conversations(write("c.csv", rows("a,,x;y", "b,,x;z").replace("\n", end)))
        assert table.ids == ["a", "b"]


def test_many_columns_do_no_harm(write):
    names = "".join(f",c{k}" for k in range(100_000))
    path = write("c.csv", f"conversation,participants{names}\na,x;y{',' * 100_000}\n")
    assert read_conversations(path).ids == ["a"]


def test_very_many_problems_in_scores(write, calls):
    table = read_conversations(calls[0].table())
    lines = "".join(f"call01,1,call02,{k},x\n" for k in range(200_000))
    path = write("s.csv", "conversation_1,channel_1,conversation_2,channel_2,score\n" + lines)
    with pytest.raises(SpklinkError, match=r"\d{6} problems") as caught:
        spklink.read_scores(path, table, spklink.find_links(table))
    assert len(str(caught.value)) < 10_000
