"""Fuzzing: valid files of every kind, changed at random, through every reader.

Each try ends in a result or in one SpklinkError, soon, with no other exception and no warning. The
quick set runs always; `make torture` has the long one.
"""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spklink
from adversary.tally import TORTURE, count, patience
from spklink import SpklinkError, find_links, read_conversations, read_key, read_known, read_scores
from spklink.cache import Store
from spklink.calibration import curves
from spklink.calibration.choice import saved_weight
from spklink.runs.folder import load
from spklink.sound.speech_table import read_speech_table

TRIES = 700 if TORTURE else 18  # of each reader
SLOWEST = 5.0  # seconds of computing that one try may take
PATIENCE = 60  # seconds, on a busy machine
NUMBERS = (
    *("0", "-1", "1e308", "-1e308", "1e-320", "nan", "inf", "9" * 30, "9" * 400, "0x10", "1_0"),
    *("٣", "½", "", " ", "1e999999", "-0", "+1", "1."),
)
SNIPPETS = (
    *(b"\0", b'"', b"'", b",", b";", b"\r", b"\n", b"\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3"),
    *("é".encode(), "\u202e".encode(), "😀".encode(), b"[" * 2000, b"{", b"}", b"=cmd()", b"#"),
)


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data: bytearray, rng: random.Random) -> None:
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    del data[begin : end if rng.random() < 0.5 else len(data)]


def insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(SNIPPETS) * rng.choice((1, 1, 1, 50))


def repeat_lines(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).splitlines(keepends=True)
    at = rng.randrange(len(lines))
    lines[at:at] = rng.choices(lines, k=rng.randint(1, 3))
    data[:] = b"".join(lines)


def swap_columns(data: bytearray, rng: random.Random) -> None:
    rows = [line.split(b",") for line in bytes(data).split(b"\n")]
    a, b = rng.randrange(len(rows[0])), rng.randrange(len(rows[0]))
    some = rows if rng.random() < 0.5 else rows[:1]
    for row in some:
        if len(row) > max(a, b):
            row[a], row[b] = row[b], row[a]
    data[:] = b"\n".join(b",".join(row) for row in rows)


def change_cell(data: bytearray, rng: random.Random) -> None:
    """A cell of a table, or what stands between two marks of JSON."""
    marks = [k for k, byte in enumerate(data) if byte in b',:\n"[]{}']
    if len(marks) > 1:
        k = rng.randrange(len(marks) - 1)
        data[marks[k] + 1 : marks[k + 1]] = rng.choice(NUMBERS).encode()


def splice(data: bytearray, rng: random.Random) -> None:
    a, b, size = (rng.randrange(len(data)) for _ in range(3))
    data[a : a + size % 64] = data[b : b + size % 64]


CHANGES = (flip, cut, insert, repeat_lines, swap_columns, change_cell, splice)


def spoilt(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if made:
            rng.choice(CHANGES)(made, rng)
    return bytes(made)


Reader = Callable[[Path], object]


KINDS = {
    "spoilt tables": ("wide", "long", "check", "known", "key", "sides"),
    "spoilt scores": ("scores.csv", "triples", "dense", "assign"),
    "spoilt calibrations": ("calibration",),
}


def readers(files: Path) -> dict[str, tuple[str, Reader]]:
    """What is read how: the name of a valid file, and the function."""
    table = read_conversations(files / "conversations.csv")
    links = find_links(table)

    def scores(path: Path) -> object:
        return read_scores(path, table, links)

    def assign(path: Path) -> object:
        return spklink.assign(files / "conversations.csv", path)

    return {
        "wide": ("conversations.csv", read_conversations),
        "long": ("long.csv", read_conversations),
        "check": ("conversations.csv", spklink.check),
        "known": ("known.csv", lambda path: read_known(path, table)),
        "key": ("key.csv", lambda path: read_key(path, table)),
        "scores.csv": ("scores.csv", scores),
        "triples": ("scores.npz", scores),
        "dense": ("dense.npz", scores),
        "assign": ("scores.csv", assign),
        "sides": ("sides.csv", lambda path: read_speech_table(path, table)),
        "calibration": ("calibration.json", lambda p: (curves.load(p), saved_weight(p))),
    }


def attempt(read: Callable[[], object]) -> str:
    """How it ended: result, refused, or what went wrong."""
    begin, said = time.process_time(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with patience(PATIENCE):
                read()
            end = "result"
        except SpklinkError as error:
            end, said = "refused", str(error)
        except TimeoutError:
            end = "hangs"
        except Exception:
            traceback.print_exc()
            end = "tracebacks"
    slow = time.process_time() - begin > SLOWEST
    return "hangs" if slow or len(said) > 20_000 else end


def judged(what: str, ends: Counter[str]) -> None:
    """Something was refused, and nothing went wrong."""
    wrong = {end: n for end, n in ends.items() if end not in ("result", "refused")}
    count(what, ends.total(), wrong)
    assert not wrong
    assert ends["refused"]


@pytest.mark.parametrize(
    ("what", "kind"), [(what, k) for what, some in KINDS.items() for k in some]
)
def test_spoilt_files(files, tmp_path, what, kind):
    name, read = readers(files)[kind]
    good, path = (files / name).read_bytes(), tmp_path / name
    rng, ends = random.Random(kind), Counter()
    for _ in range(TRIES):
        path.write_bytes(spoilt(good, rng))
        ends[attempt(lambda: read(path))] += 1
    judged(what, ends)


def test_spoilt_cached_files(tmp_path):
    """What is loaded is what was written, or nothing."""
    arrays = {"a": np.arange(300, dtype=np.float32).reshape(3, 100), "b": np.zeros(0)}
    name, store = "0" * 32, Store(tmp_path)
    store.write(name, {"frames": [3, 4], "text": "é"}, arrays)
    path, rng, ends = store.path(name), random.Random(1), Counter()
    good = path.read_bytes()

    def read() -> None:
        found = Store(tmp_path).load(name)
        if found is None:
            raise SpklinkError("damaged")
        same = found.about == {"frames": [3, 4], "text": "é"}
        if not same or any(found.arrays[k].tobytes() != a.tobytes() for k, a in arrays.items()):
            used.append(path.read_bytes())

    used: list[bytes] = []
    for _ in range(TRIES):
        path.write_bytes(spoilt(good, rng))
        ends[attempt(read)] += 1
    count("spoilt cached files, read", 0, {"silent uses": len(used)})
    judged("spoilt cached files, read", ends)
    assert not used


READ_AGAIN = (
    *("conversations.csv", "known.csv", "llrs.npz", "scores.npz", "calibration.json", "run.json"),
    *("sides.csv", "problems.csv", "suspects.csv"),
)


@pytest.mark.parametrize("folder", ["results", "linked"])
def test_spoilt_results(copy, folder):
    """One or two files of a results folder, changed or gone."""
    here, rng, ends = copy / folder, random.Random(folder), Counter()
    names = [name for name in READ_AGAIN if (here / name).exists()]
    good = {name: (here / name).read_bytes() for name in names}
    for _ in range(4 * TRIES if TORTURE else 2 * TRIES):
        chosen = rng.sample(names, rng.choice((1, 1, 2)))
        for name in chosen:
            (here / name).write_bytes(spoilt(good[name], rng))
            if rng.random() < 0.1:
                (here / name).unlink()
        ends[attempt(lambda: load(here))] += 1
        for name in chosen:
            (here / name).write_bytes(good[name])
    judged("spoilt results folders", ends)


@pytest.mark.parametrize("command", ["report", "evaluate", "assign", "check"])
def test_spoilt_files_on_the_command_line(copy, run, command):
    """One line on standard error and exit code 2, or results."""
    rng, here = random.Random(command), copy / "linked"
    ends = Counter()
    for _ in range(TRIES // 8 if TORTURE else 6):
        if command in ("report", "evaluate"):
            name = rng.choice([*READ_AGAIN, "methods.csv", "timings.json"])
            path = here / name
            words = [command, here] + (["--key", copy / "key.csv"] if command == "evaluate" else [])
        else:
            path = copy / ("scores.csv" if command == "assign" else "conversations.csv")
            words = ["check", path]
            if command == "assign":
                words = ["assign", copy / "conversations.csv", "--scores", path, "-o", copy / "out"]
        good = path.read_bytes()
        path.write_bytes(spoilt(good, rng))
        ends[attempt(lambda words=words: said_in_one_line(*run(*words)))] += 1
        path.write_bytes(good)
    judged("spoilt files, command line", ends)


def said_in_one_line(code: int, _: str, err: str) -> None:
    assert code in (0, 2)
    if code:
        assert err.startswith("spklink: ")
        assert err.count("\n") == 1
        raise SpklinkError(err)
