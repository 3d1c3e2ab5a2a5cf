"""`watch` as people run it: processes of their own, files in pieces, kills at any time."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from kills import killed_when
from spklink.errors import SpklinkError
from spklink.runs.link import link
from spklink.runs.watch import locked, watch
from spklink.settings import LinkOptions, resolved
from spklink.sound.whole import Arrivals, unreadable

OPTIONS = ["--components", "8", "--workers", "1", "--no-report"]
HEAD = "conversation,audio,participants\n"
LONG = 120.0  # seconds that a machine at work may need


def command(source: Path, out: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "spklink", "-q", "watch", str(source), "-o", str(out)]
    return [*words, *OPTIONS, "--every", "0.2", "--rest", "0.5", "--json", *more]


@contextmanager
def watching(source: Path, out: Path, *more: str):
    one = subprocess.Popen(command(source, out, *more), stdout=subprocess.PIPE, text=True)
    try:
        yield one
    finally:
        one.kill()
        one.wait()
        one.stdout.close()


def until(one: subprocess.Popen[str], wanted) -> dict:
    """The first round that is as wanted."""
    begin = time.monotonic()
    while time.monotonic() - begin < LONG:
        line = one.stdout.readline()
        assert line, "the watch has ended"
        found = json.loads(line)
        if wanted(found):
            return found
    raise AssertionError("nothing came")


def rows_of(calls: Path) -> list[str]:
    return (calls / "conversations.csv").read_text().splitlines()[1:]


def results(out: Path) -> dict[str, bytes]:
    names = ("assignments.csv", "sides.csv", "presence.csv", "calibration.json", "llrs.npz")
    return {name: (out / name).read_bytes() for name in names}


def copy_slowly(one: Path, two: Path, pieces: int = 4) -> None:
    data = one.read_bytes()
    step = len(data) // pieces + 1
    with two.open("wb") as file:
        for begin in range(0, len(data), step):
            file.write(data[begin : begin + step])
            file.flush()
            time.sleep(0.3)


def test_recordings_and_rows_as_they_come(calls, tmp_path):
    """Copied in pieces, a bad one in between, a row without its end: the end is that of one run."""
    here, out = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    rows = rows_of(calls)
    table = here / "conversations.csv"
    for k in range(10):
        shutil.copy(calls / f"{k}.wav", here)
    table.write_text(HEAD + "".join(f"{row}\n" for row in rows[:10]))
    with watching(table, out) as one:
        first = until(one, lambda found: found["conversations"] == 10)
        assert len(first["new"]) == 10
        with table.open("a") as file:
            file.write(f"{rows[10]}\nc99,bad.wav,x;y\n{rows[11]}\n{rows[12][:4]}")
        (here / "bad.wav").write_bytes(b"RIFF....WAVEnothing of the kind")
        copy_slowly(calls / "10.wav", here / "10.wav")
        shutil.copy(calls / "11.wav", here / "11.wav")
        with table.open("a") as file:
            file.write(f"{rows[12][4:]}\n")
        shutil.copy(calls / "12.wav", here / "12.wav")
        last = until(one, lambda found: found["conversations"] == 13 and "bad.wav" in found["bad"])
        assert not last["error"]
        one.send_signal(signal.SIGTERM)
        assert one.wait(LONG) == 130
    names = {row.split(",")[0] for row in (out / "assignments.csv").read_text().splitlines()[1:]}
    assert names == {f"c{k}" for k in range(13)}


KEPT, COMPARED = "cache/features/*.kept", "cache/vectors/*/*.kept"
MOMENTS = {12: ((KEPT, 6), (COMPARED, 6)), 14: ((KEPT, 13), (COMPARED, 13))}


def test_killed_while_listening_and_comparing(calls, tmp_path):
    """Earlier results stay whole, and the next watch ends as one that was never disturbed. `make
    torture` has kills at random moments."""
    here, plain, out = tmp_path / "here", tmp_path / "plain", tmp_path / "out"
    shutil.copytree(calls, here)
    rows = rows_of(calls)
    for count, moments in MOMENTS.items():
        (here / "conversations.csv").write_text(HEAD + "".join(f"{r}\n" for r in rows[:count]))
        for pattern, files in moments:
            assert killed_when(command(here, out), out, pattern, files)
            check_whole(out)
        subprocess.run(command(here, out, "--once"), check=True, stdout=subprocess.DEVNULL)
        (found,) = watch(here, plain, options(), rest=0.0, once=True)
        assert found.conversations == count
        assert results(out) == results(plain)


def check_whole(out: Path) -> None:
    """Results are all there, or not at all."""
    if (out / "run.json").exists():
        known = json.loads((out / "run.json").read_text())["result"]["conversations"]
        lines = (out / "assignments.csv").read_text().splitlines()
        assert len(lines) == 2 * known + 1


@pytest.mark.skipif("SPKLINK_TORTURE" not in os.environ, reason="takes a minute: make torture")
def test_killed_at_any_moment(calls, tmp_path):
    """Whatever was under way: earlier results stay whole, and the next watch ends as one that was
    never disturbed."""
    here = tmp_path / "here"
    shutil.copytree(calls, here)
    rows, rng = rows_of(calls), random.Random(4)
    plain, out = tmp_path / "plain", tmp_path / "out"
    for one, kills in ((plain, 0), (out, 4)):
        for count in (12, 14):
            (here / "conversations.csv").write_text(HEAD + "".join(f"{r}\n" for r in rows[:count]))
            time.sleep(0.6)
            for _ in range(kills):
                with watching(here, one) as running:
                    time.sleep(rng.uniform(0.5, 6.0))
                    running.kill()
                check_whole(one)
            subprocess.run(command(here, one, "--once"), check=True, stdout=subprocess.DEVNULL)
    assert results(out) == results(plain)


def test_one_watch_a_folder(calls, tmp_path):
    with locked(tmp_path):
        done = subprocess.run(
            command(calls / "conversations.csv", tmp_path, "--once"), capture_output=True, text=True
        )
    assert done.returncode == 2
    assert "another watch is at work here" in done.stderr
    assert not (tmp_path / "run.json").exists()


def options(**more):
    return {**resolved(LinkOptions, {"components": 8, "workers": 1}), **more}


def test_a_folder_whose_names_say_who(calls, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    for k, row in enumerate(rows_of(calls)):
        one, two = row.split(",")[2].split(";")
        shutil.copy(calls / f"{k}.wav", here / f"{one}_{two}_{k}.wav")
    pattern = "{caller}_{callee}_{number}.wav"
    (found,) = watch(here, tmp_path / "out", options(audio=pattern), rest=0.0, once=True)
    assert found.conversations == 14
    assert not found.error
    (told,) = watch(here, tmp_path / "two", options(), rest=0.0, once=True)
    assert "nobody says who takes part" in told.error


def test_the_same_as_link(calls, tmp_path):
    (found,) = watch(calls, tmp_path / "one", options(), rest=0.0, once=True)
    link(calls / "conversations.csv", tmp_path / "two", components=8, workers=1)
    assert results(tmp_path / "one") == results(tmp_path / "two")
    assert found.new_settled == found.settled
    (again,) = watch(calls, tmp_path / "one", options(), rest=0.0, once=True)
    assert (again.new, again.changed, again.gone) == ([], [], 0)
    assert "0 new conversations; 0 earlier answers changed" in again.line()


def test_what_is_wrong_with_a_table_ends_nothing(tmp_path, calls):
    table = tmp_path / "t.csv"
    table.write_text("conversation,participants\nc1,\n\nc1,a;b\n")
    rounds = watch(table, tmp_path / "out", options(), rest=0.0, every=0.01)
    assert next(rounds).error
    shutil.copytree(calls, tmp_path / "calls")
    rows = [row.replace(",", ",calls/", 1) for row in rows_of(calls)]
    table.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    assert next(rounds).conversations == 14
    rounds.close()


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg"])
def test_recordings_that_are_not_whole(tmp_path, calls, ending):
    import soundfile

    samples, rate = soundfile.read(calls / "0.wav")
    whole, part = tmp_path / f"whole.{ending}", tmp_path / f"part.{ending}"
    soundfile.write(whole, samples, rate)
    assert unreadable(whole) == ""
    data = whole.read_bytes()
    for share in (0.02, 0.3, 0.9):
        part.write_bytes(data[: int(share * len(data))])
        assert unreadable(part)


def test_a_file_is_at_rest_by_its_clock_or_ours(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(b"x")
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    arrivals = Arrivals(rest=5.0)
    os.utime(path, (time.time() + 1e6,) * 2)  # a clock that is ahead
    assert not arrivals.at_rest(path)
    now[0] += 4.0
    assert not arrivals.at_rest(path)
    now[0] += 2.0
    assert arrivals.at_rest(path)
    path.write_bytes(b"xy")
    assert not arrivals.at_rest(path)
    assert not arrivals.at_rest(tmp_path / "none")


def test_a_folder_in_use_is_refused_in_words(tmp_path):
    with locked(tmp_path), pytest.raises(SpklinkError, match="another watch"), locked(tmp_path):
        pass
