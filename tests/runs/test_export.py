"""Results folders written in other formats: what goes along, what stays out, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands import rows
from spklink import SpklinkError, export, link
from spklink.formats.out.table import FORMATS

SEGMENTS = "conversation,channel,start,end\n"


@pytest.fixture(scope="module")
def linked(calls, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("results")
    link(calls / "conversations.csv", out, list_errors=0.0)
    return out


def rttm(folder: Path) -> list[tuple[str, str, str, float]]:
    lines = (folder / "speakers.rttm").read_text().splitlines()
    fields = [line.split() for line in lines]
    return [(f[1], f[2], f[7], float(f[3])) for f in fields]


@pytest.mark.parametrize("only", ["settled", "all"])
def test_what_is_settled_or_everything(run, linked, tmp_path, only):
    decided = {(r["conversation"], r["channel"]): r for r in rows(linked / "assignments.csv")}
    words = ("-o", tmp_path / "x", "--to", "rttm", "--only", only, "--json")
    code, text, _ = run("export", linked, *words)
    assert code == 0
    told = rttm(tmp_path / "x")
    for name, channel, who, _ in told:
        assert decided[name, channel]["speaker"] == who
    sides = {(name, channel) for name, channel, _, _ in told}
    wanted = {k for k, r in decided.items() if only == "all" or r["decision"] == "settled"}
    assert sides == wanted
    times = [
        (r["conversation"], r["channel"], float(r["start"])) for r in rows(linked / "segments.csv")
    ]
    assert [(n, c, t) for n, c, _, t in told] == [one for one in times if one[:2] in wanted]
    found = json.loads(text)
    assert found["left_out"] == ({} if only == "all" else {"unresolvable": 4})
    assert (found["sides"], found["segments"]) == (len(wanted), len(told))


def test_what_is_left_out_is_said(run, linked, tmp_path):
    code, text, _ = run("export", linked, "-o", tmp_path / "x", "--to", "rttm")
    assert code == 0
    said = "left out: 4 sides, 4 unresolvable (--only all writes those that have a name)"
    assert said in text.splitlines()


@pytest.mark.parametrize("to", FORMATS)
def test_the_same_results_give_the_same_bytes(linked, tmp_path, to):
    for name in ("one", "two"):
        export(linked, tmp_path / name, to)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two
    assert set(one) == {"export.json", *json.loads(one["export.json"])["files"]}


def test_only_a_folder_of_its_own_is_replaced(linked, tmp_path):
    own = tmp_path / "own"
    export(linked, own, "textgrid")
    export(linked, own, "rttm")
    assert {p.name for p in own.iterdir()} == {"export.json", "speakers.rttm"}
    (own / "mine.txt").write_text("precious")
    with pytest.raises(SpklinkError, match=r"has files beside what spklink exported \(mine.txt\)"):
        export(linked, own, "rttm")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    export(linked, foreign, "stm")  # an empty one is anybody's
    (foreign / "export.json").unlink()
    with pytest.raises(SpklinkError, match="something in this folder that spklink did not export"):
        export(linked, foreign, "stm")
    assert (own / "mine.txt").read_text() == "precious"
    assert {p.name for p in tmp_path.iterdir()} == {"own", "foreign"}


def test_what_goes_wrong_leaves_the_earlier_files(linked, tmp_path, monkeypatch):
    export(linked, tmp_path / "x", "rttm")
    before = {p.name: p.read_bytes() for p in (tmp_path / "x").iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spklink.formats.out.rttm.write_lines", full)
    with pytest.raises(OSError, match="No space"):
        export(linked, tmp_path / "x", "rttm", only="all")
    assert {p.name: p.read_bytes() for p in (tmp_path / "x").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_results_of_before_are_told_what_to_do(run, linked, tmp_path, write):
    (linked / "segments.csv").rename(linked / "away.csv")
    try:
        code, _, err = run("export", linked, "-o", tmp_path / "x", "--to", "rttm")
        assert code == 2
        assert "segments.csv is missing" in err
        assert "run the same command again" in err
        given = write("mine.csv", SEGMENTS + "c0,1,1,2\nc0,1,2.2,3\nc0,1,5,5.05\n")
        found = export(linked, tmp_path / "x", "rttm", segments=given, join=0.3, shortest=0.1)
        assert (found.sides, found.segments) == (1, 1)
        assert " 1.000 2.000 " in (tmp_path / "x" / "speakers.rttm").read_text()
    finally:
        (linked / "away.csv").rename(linked / "segments.csv")


def test_an_assignment_that_is_not_of_the_table(linked, tmp_path):
    kept = (linked / "assignments.csv").read_text()
    for text in (kept.replace("\nc3,1,", "\nc3,2,", 1), "\n".join(kept.splitlines()[:-1])):
        try:
            (linked / "assignments.csv").write_text(text)
            with pytest.raises(SpklinkError, match="make the results anew"):
                export(linked, tmp_path / "x", "rttm")
        finally:
            (linked / "assignments.csv").write_text(kept)


@pytest.fixture(scope="module")
def meetings(tmp_path_factory) -> Path:
    """Diarized meetings with vectors given; somebody who is not listed takes part in the last."""
    folder = tmp_path_factory.mktemp("meetings")
    rng = np.random.default_rng(3)
    voices = {who: rng.standard_normal(24) for who in ("ann lee", "bob", "cy", "eve")}
    lists = [["ann lee", "bob", "cy"]] * 4 + [["ann lee", "bob", "?"]]
    there = [["ann lee", "bob", "cy"]] * 4 + [["ann lee", "bob", "eve"]]
    table, tracks, names, numbers, vectors = [], [], [], [], []
    for m, people in enumerate(there):
        table.append({"conversation": f"m{m}", "audio": "", "participants": ";".join(lists[m])})
        for k, who in enumerate(people):
            tracks += [
                {"conversation": f"m{m}", "track": f"t{k}", "start": start, "end": start + 1.5}
                for start in (k, 10 + k)  # neighbours overlap
            ]
            names.append(f"m{m}")
            numbers.append(k + 1)
            vectors.append(voices[who] + 0.1 * rng.standard_normal(24))
    arrays = {"conversation": np.array(names), "channel": np.array(numbers)}
    arrays["embedding"] = np.array(vectors, np.float32)
    link(table, folder, embeddings=arrays, tracks=tracks, list_errors=0.01)
    return folder


def test_diarized_meetings_have_the_segments_of_the_diarization(meetings, tmp_path):
    found = export(meetings, tmp_path / "x", "rttm", only="all")
    told = rttm(tmp_path / "x")
    assert found.segments == len(told) == 30
    assert {channel for _, channel, _, _ in told} == {"1"}
    best = [r["speaker"] for r in rows(meetings / "assignments.csv")]
    assert "*" in best[-3:]
    strangers = {(name, who) for name, _, who, _ in told if who.startswith("unknown")}
    expected = {
        (r["conversation"], f"unknown-{r['conversation']}-{r['channel']}")
        for r in rows(meetings / "assignments.csv")
        if r["speaker"] == "*"
    }
    assert strangers == expected
    names = rows(tmp_path / "x" / "names.csv")
    assert names == [{"what": "speaker", "name": "ann lee", "written": "ann%20lee"}]
    assert found.changed == 1


def test_a_stranger_is_nobody_who_is_listed(linked, tmp_path, monkeypatch):
    monkeypatch.setattr("spklink.runs.export.OTHERS", "a")
    export(linked, tmp_path / "x", "parquet", only="all")
    import pandas

    found = pandas.read_parquet(tmp_path / "x" / "segments.parquet")
    strangers = found[found["speaker"].str.startswith("unknown-")]
    sides = strangers.groupby(["conversation", "channel"])
    assert strangers["speaker"].nunique() == len(sides)
    assert "a" not in set(found["speaker"])


def test_an_unknown_format_is_answered_with_the_nearest(run, linked, tmp_path):
    with pytest.raises(SpklinkError, match="did you mean 'textgrid'"):
        export(linked, tmp_path / "x", "textgrd")
    code, _, err = run("export", linked, "-o", tmp_path / "x", "--to", "praat")
    assert code == 2
    assert "textgrid" in err
