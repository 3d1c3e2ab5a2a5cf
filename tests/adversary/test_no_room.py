"""No memory, a full disk, a kill: earlier results stay whole until new ones are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spklink
from spklink import tables
from spklink.report import figures
from spklink.runs import folder as folders
from spklink.runs.folder import load

MOMENTS = 60  # writes and renames of one run, at most


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def assigned(files: Path, out: Path, seed: int):
    return spklink.assign(files / "conversations.csv", files / "scores.csv", out, seed=seed)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_a_full_disk_leaves_the_earlier_results(files, tmp_path, monkeypatch, run, code):
    """At whichever file it happens."""
    out, words = tmp_path / "out", ["assign", files / "conversations.csv", "--scores"]
    words += [files / "scores.csv", "-o", out, "--seed", "2"]
    assigned(files, out, 1)
    before = contents(out)
    for moment in range(MOMENTS):
        with monkeypatch.context() as patch:
            left = [moment]

            def full(handle, left=left):
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(code, os.strerror(code))

            patch.setattr(tables.os, "fsync", full)
            status, _, err = run(*words)
        if status == 0:
            break
        assert status == (3 if code in (errno.ENOSPC, errno.EDQUOT) else 2)
        assert err.count("\n") == 1
        assert os.strerror(code) in err
        assert str(out) in err
        assert contents(out) == before
        assert not list(out.glob(".*"))
    assert moment > 5
    assert contents(out) != before


def test_a_full_disk_leaves_the_earlier_report(files, tmp_path, monkeypatch):
    """Its page, its numbers and all of its figures."""
    out = tmp_path / "out"
    drawn = dict.fromkeys(figures.FIGURES, ("<svg></svg>", b"%PDF"))
    monkeypatch.setattr(figures, "draw_all", lambda _: drawn)
    assigned(files, out, 1)
    spklink.write_report(out)
    (out / "figures" / "mine.txt").write_text("a person's own")
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    left = [5]

    def full(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tables.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            spklink.write_report(out, key=files / "key.csv")
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    spklink.write_report(out, key=files / "key.csv")
    assert (out / "report.html").read_bytes() != before[out / "report.html"]
    assert (out / "figures" / "mine.txt").exists()


def test_a_failed_swap_says_that_nothing_is_complete(files, tmp_path, monkeypatch):
    """The same command completes it."""
    out = tmp_path / "out"
    assigned(files, out, 1)
    whole = assigned(files, tmp_path / "other", 2)
    real, moment = Path.replace, -1
    while not (moment > 0 and (out / "run.json").exists() and load(out).options["seed"] == 2):
        moment += 1
        left = [moment]

        def failing(self, target, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", failing)
            try:
                assigned(files, out, 2)
            except OSError:
                assert not (out / "run.json").exists()
                assert not list(out.glob(".*"))
    assert moment > 5
    expected = contents(whole.save(tmp_path / "again"))
    assert {**contents(out), "timings.json": b""} == {**expected, "timings.json": b""}


def test_a_real_full_disk(files, tmp_path, run):
    """As long as somebody may make so small a disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True
    )
    if made.returncode:
        pytest.skip("a small disk: only root may mount one")
    try:
        words = ["assign", files / "conversations.csv", "--scores", files / "scores.csv"]
        assert run(*words, "-o", disk / "out")[0] == 0
        before = contents(disk / "out")
        with (disk / "filling").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(512))
        code, _, err = run(*words, "-o", disk / "out", "--seed", "3")
        assert code == 3
        assert "No space left on device" in err
        assert "MB are free" in err
        assert contents(disk / "out") == before
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_run_killed_at_any_moment(files, tmp_path):
    """Old results or new ones, or none for a moment; and the same command finishes."""
    out, random_ = tmp_path / "out", random.Random(1)
    command = [sys.executable, "-c", SLOWLY, str(files), str(out)]
    results = {}
    for seed in ("1", "2"):
        spklink.assign(files / "conversations.csv", files / "scores.csv", seed=int(seed)).save(out)
        results[seed] = {k: v for k, v in contents(out).items() if k != "timings.json"}
    for k in range(4):
        seed = "12"[k % 2]
        process = subprocess.Popen([*command, seed, "0.01"], stdout=subprocess.PIPE)
        process.stdout.readline()  # it begins to write
        time.sleep(random_.uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        found = {k: v for k, v in contents(out).items() if k != "timings.json"}
        assert "run.json" not in found or found in results.values()
    subprocess.run([*command, "1", "0"], check=True, capture_output=True)
    assert {k: v for k, v in contents(out).items() if k != "timings.json"} == results["1"]
    assert not list(out.glob(".*"))


# Every write and rename takes its time, so that kills hit them.
SLOWLY = """
import os, sys, time
from pathlib import Path
import spklink
from spklink.runs import folder
files, out, seed, wait = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
def slowly(real):
    def call(*given, **more):
        time.sleep(wait)
        return real(*given, **more)
    return call
os.fsync, os.replace = slowly(os.fsync), slowly(os.replace)
Path.replace, os.unlink = slowly(Path.replace), slowly(os.unlink)
made = spklink.assign(files / "conversations.csv", files / "scores.csv", seed=seed)
print("writing", flush=True)
made.save(out)
"""


def test_no_memory_says_at_what(files, tmp_path, run, monkeypatch):
    out = tmp_path / "out"
    assigned(files, out, 1)
    before = contents(out)
    words = ["assign", files / "conversations.csv", "--scores", files / "scores.csv", "-o", out]
    for name, stage in (
        ("spklink.runs.assign.read_scores", "reading the scores"),
        ("spklink.runs.evidence.solve", "computing the posterior"),
        ("spklink.runs.folder_files.write_scores", "writing the results"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, exhausted)
            code, _, err = run(*words)
        assert code == 3
        assert err.startswith(f"spklink: out of memory while {stage} (Unable to allocate 8 TiB)")
        assert contents(out) == before
    monkeypatch.setattr("spklink.runs.check.find_cliques", exhausted)
    code, _, err = run("check", files / "conversations.csv")
    assert (code, err.count("\n")) == (3, 1)


def exhausted(*_, **__):
    raise MemoryError("Unable to allocate 8 TiB")


def test_nothing_is_written_where_nothing_can_be_made(files, tmp_path, run):
    (tmp_path / "file").write_text("")
    code, _, err = run("simulate", tmp_path / "file" / "sim")
    assert (code, err.count("\n")) == (2, 1)
    assert folders.RUN_FILE == "run.json"
