"""Files that somebody spoilt: each ends in one error that names the file, never in a traceback."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import spklink
from spklink import SpklinkError, find_links, read_conversations, read_scores
from spklink.json_files import Each, misfit
from spklink.report import provenance
from spklink.runs.folder import load
from spklink.runs.stages import Stages

NPY_START = 10  # bytes before the text of a header


def npy(array) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """A .npy with this header."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def shaped(shape: str, descr: str = "'<f8'", data: bytes = b"") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}", data)


SPOILT = {
    "no zip": lambda m: b"nothing",
    "empty": lambda m: b"",
    "object array": lambda m: m | {"score": npy(np.array([{}, None], object))},
    "complex": lambda m: m | {"score": npy(np.zeros(3, complex))},
    "text for numbers": lambda m: m | {"score": npy(np.array(["a"]))},
    "structured": lambda m: m | {"score": shaped("(1,)", "[('a', '<f8')]", bytes(8))},
    "old alias": lambda m: m | {"conversation": shaped("(1,)", "'a8'", bytes(8))},
    "bytes": lambda m: m | {"conversation": npy(np.array([b"x"]))},
    "no text": lambda m: m | {"conversation": shaped("(24,)", "'<U1'", b"\xff" * 96)},
    "huge shape": lambda m: m | {"score": shaped("(10**9,)".replace("10**9", "1" + "0" * 12))},
    "huger shape": lambda m: m | {"score": shaped(f"({'9' * 300},)")},
    "nothing wide": lambda m: m | {"conversation": shaped("(999999999999,)", "'<U0'", bytes(9))},
    "negative": lambda m: m | {"score": shaped("(-1,)")},
    "3-d": lambda m: m | {"score": npy(np.zeros((2, 2, 2)))},
    "0-d": lambda m: m | {"score": npy(np.float64(1))},
    "bool shape": lambda m: m | {"score": shaped("(True,)", data=bytes(8))},
    "deep header": lambda m: m | {"score": header("(" * 5000)},
    "long header": lambda m: m | {"score": b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31)},
    "no header": lambda m: m | {"score": b"\x93NUMPY\x01"},
    "not npy": lambda m: m | {"score": b"hello there, this is text"},
    "wrong keys": lambda m: m | {"score": header("{'shape': (1,)}")},
    "no member": lambda m: {k: v for k, v in m.items() if k != "channel"},
    "no score": lambda m: {k: v for k, v in m.items() if k != "score"},
    "lengths": lambda m: m | {"score": npy(np.zeros(1))},
    "NaN": lambda m: m | {"score": npy(np.full(NEEDED(m), np.nan))},
    "infinite": lambda m: m | {"score": npy(np.full(NEEDED(m), -np.inf))},
    "wild index": lambda m: m | {"side_1": npy(np.full(NEEDED(m), 2**63, np.uint64))},
    "no index": lambda m: m | {"side_1": npy(np.full(NEEDED(m), np.nan))},
    "same side": lambda m: m | {"channel": npy(np.ones(24, np.int8))},
}


def NEEDED(members) -> int:  # noqa: N802
    return len(np.load(io.BytesIO(members["score"])))


def members_of(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {n.removesuffix(".npy"): archive.read(n) for n in archive.namelist()}


def write_members(path, members, kind=zipfile.ZIP_STORED) -> None:
    if isinstance(members, bytes):
        path.write_bytes(members)
        return
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)


def refused(path, table) -> str:
    with pytest.raises(SpklinkError) as caught:
        read_scores(path, table, find_links(table))
    said = str(caught.value)
    assert said.startswith(str(path))
    assert len(said) < 5000
    return said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_spoilt_arrays_are_refused(files, tmp_path, how, kind):
    table, path = read_conversations(files / "conversations.csv"), tmp_path / "s.npz"
    write_members(path, SPOILT[how](members_of(files / "scores.npz")), kind)
    refused(path, table)


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("name", ["llrs.npz", "scores.npz"])
def test_spoilt_arrays_in_results_are_refused(copy, how, name):
    path = copy / "results" / name
    write_members(path, SPOILT[how](members_of(path)))
    with pytest.raises(SpklinkError, match=name):
        load(copy / "results")


def test_other_archives_are_refused(files, tmp_path):
    table, path = read_conversations(files / "conversations.csv"), tmp_path / "s.npz"
    good = members_of(files / "scores.npz")
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        write_members(path, good, kind)
        assert "compressed in a way" in refused(path, table)
    write_members(path, good)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("score.npy", good["score"])
    assert "twice" in refused(path, table)
    write_members(path, good)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1  # the flag of encrypted members
    path.write_bytes(data)
    assert "encrypted" in refused(path, table)
    write_members(path, good, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = data.index(b"\x93NUMPY") if b"\x93NUMPY" in data else 60
    data[at : at + 40] = b"\xff" * 40
    path.write_bytes(data)
    refused(path, table)


def test_a_bomb_takes_no_memory(files, tmp_path):
    """A megabyte that says it is a terabyte, and one that is a gigabyte."""
    import tracemalloc

    table, path = read_conversations(files / "conversations.csv"), tmp_path / "s.npz"
    good = members_of(files / "scores.npz")
    zeros = 1 << 28
    bomb = shaped(f"({zeros // 4},)", "'<U1'") + bytes(zeros)
    write_members(path, good | {"conversation": bomb}, zipfile.ZIP_DEFLATED)
    del bomb
    tracemalloc.start()
    refused(path, table)
    assert tracemalloc.get_traced_memory()[1] < 1 << 27
    tracemalloc.stop()


def test_fortran_order_and_other_numbers_mean_the_same(files, tmp_path):
    table, path = read_conversations(files / "conversations.csv"), tmp_path / "s.npz"
    links = find_links(table)
    expected = read_scores(files / "dense.npz", table, links).needed
    with np.load(files / "dense.npz") as arrays:
        held = dict(arrays)
    for change in (np.asfortranarray, lambda a: a.astype(">f8"), lambda a: a.astype(np.longdouble)):
        np.savez_compressed(path, **held | {"scores": change(held["scores"])})
        assert np.array_equal(read_scores(path, table, links).needed, expected)


JSON = {
    "deep": '{"a":' * 100_000,
    "no object": "[1, 2]",
    "text": '"hello"',
    "empty": "",
    "NaN": '{"kind": NaN}',
    "Infinity": '{"kind": -Infinity}',
    "huge": '{"kind": 1e999}',
    "digits": '{"kind": ' + "9" * 5000 + "}",
    "digits below the limit": '{"kind": ' + "9" * 400 + "}",
    "twice": '{"kind": 1, "kind": 2}',
    "cut": '{"kind": "lr',
    "other encoding": '{"kind": "é"}'.encode("latin1"),
    "utf-16": '{"kind": "lr"}'.encode("utf-16"),
    "NUL": b"\0" * 100,
}


@pytest.mark.parametrize("how", JSON)
@pytest.mark.parametrize("name", ["run.json", "calibration.json", "timings.json"])
def test_spoilt_json_is_refused(copy, how, name):
    text = JSON[how]
    (copy / "results" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpklinkError, match=name) as caught:  # noqa: PT012
        load(copy / "results")
        provenance.times(SimpleNamespace(folder=copy / "results"), Stages())
    assert len(str(caught.value)) < 500


def test_a_byte_order_mark_does_no_harm(copy):
    for name in ("run.json", "calibration.json"):
        path = copy / "results" / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    load(copy / "results")


WRONG = [None, 1, -1, 1e300, True, "", "x", [], {}, [[]], {"a": 1}]


@pytest.mark.parametrize("name", ["run.json", "calibration.json"])
def test_any_value_may_be_wrong(copy, name):
    """Every value of the file, removed and replaced by every other kind of value."""
    path = copy / "linked" / name
    good = json.loads(path.read_text())
    ends = {True: 0, False: 0}
    for place in places(good):
        for value in (KeyError, *WRONG):
            path.write_text(json.dumps(changed(good, place, value)))
            ends[said_of(copy / "linked", name)] += 1
    assert min(ends.values()) > 10


def said_of(folder, name) -> bool:
    """Whether the folder is read; else the error is about that file."""
    try:
        load(folder)
        return True
    except SpklinkError as error:
        said = str(error)
    others = ("run.json", "conversations.csv: 12", "no score", "the run knew no channels")
    assert any(words in said for words in (name, *others)), said
    return False


def places(value, here=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*here, key)
            yield from places(inner, (*here, key))


def changed(good, place, value):
    made = json.loads(json.dumps(good))
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return made


HOW = ("missing", "empty", "header", "cut", "renamed", "fields", "numbers")
TABLES = (
    *("conversations.csv", "known.csv", "sides.csv", "problems.csv", "suspects.csv"),
    "methods.csv",
)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "how", ["missing", "empty", "header", "cut", "renamed", "fields", "numbers"]
)
def test_spoilt_tables_in_results_are_refused(copy, run, name, how):
    path = copy / "linked" / name
    if name == "suspects.csv" and how == "missing":
        return  # nothing was claimed, then
    lines = path.read_text().splitlines(keepends=True)
    if name == "methods.csv":
        lines.append("1,tree,exact,1,1,0,0,0,0,why\n")
    first, rest = lines[0], lines[1:]
    spoilt = {
        "empty": "",
        "header": first,
        "cut": first + "".join(rest)[: -len(rest[-1]) // 2],
        "renamed": first.replace(first.split(",")[0], "other", 1) + "".join(rest),
        "fields": first + "".join(rest) + "1,2,3,4,5,6,7,8,9,10,11,12\n",
        "numbers": first + "".join(rest) + ",".join(["-7"] * len(first.split(","))) + "\n",
    }
    path.unlink()
    if how != "missing":
        path.write_text(spoilt[how])
    words = ["report"] if name == "methods.csv" else ["evaluate", "--key", copy / "key.csv"]
    code, _, err = run(*words, copy / "linked")
    harmless = (name, how) in (
        *(("sides.csv", "numbers"), ("problems.csv", "numbers"), ("problems.csv", "header")),
        *(("suspects.csv", "header"), ("methods.csv", "header"), ("known.csv", "header")),
    )
    assert code == (0 if harmless else 2), err
    assert harmless or err.count("\n") == 1


def test_channels_that_the_run_did_not_know_are_refused(copy):
    spklink.assign(copy / "conversations.csv", copy / "scores.csv", copy / "plain")
    shutil.copy(copy / "known.csv", copy / "plain" / "known.csv")
    with pytest.raises(SpklinkError, match=r"known\.csv.*--known"):
        load(copy / "plain")


def test_results_of_other_conversations_are_refused(copy, tmp_path):
    spklink_rows = [f"call{k},,p{k};p{k + 1}" for k in range(12)]
    text = "conversation,audio,participants\n" + "\n".join(spklink_rows) + "\n"
    (copy / "results" / "conversations.csv").write_text(text)
    (copy / "results" / "known.csv").write_text("conversation,channel,speaker\n")
    with pytest.raises(SpklinkError, match="have no score"):
        load(copy / "results")


def test_shapes():
    shape = {"a": float, "b?": [int], "c": (str, None), "d": Each(bool)}
    good = {"a": 1, "c": None, "d": {"x": True}, "more": object}
    assert misfit(good, shape) == ""
    assert misfit(good | {"b": [1, 2]}, shape) == ""
    assert misfit(good | {"b": [1, 2.5]}, shape) == "b[1]: 2.5 is not a whole number"
    assert misfit(good | {"a": True}, shape) == "a: True is not a number"
    assert misfit(good | {"d": {"x": 1}}, shape) == "d.x: 1 is not true or false"
    assert misfit({"a": 1.0}, shape) == "c is missing"
    assert misfit([], shape) == "[] is not an object"
