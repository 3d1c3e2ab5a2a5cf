"""Damage, kills and company: no state of the cache gives other results, an error or silence.

Every kind of cached file is damaged in every way, with the files made of it removed, so that it is
needed. The results must be the same bytes, and a note must name the damage. The normal run tries a
few; `make torture` some hundreds, kills runs and their helpers at random moments, and starts runs
in pairs.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from adversary.tally import TORTURE, count, patience
from made_calls import write_calls, write_table
from spklink.runs.link import link
from spklink.worlds.voices import RATE, call, make_voices

LONG = pytest.mark.skipif(not TORTURE, reason="make torture")
RESULTS = ("assignments.csv", "cliques.csv", "llrs.npz")
PATIENCE = 120  # seconds, after which a run hangs
FOLDERS = ("features", "recognizers", "vectors")


def results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in RESULTS}


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """Fourteen calls, `out` what comes of them, `cache` what was kept."""
    folder = write_calls(tmp_path_factory.mktemp("caches"))
    linked(folder, folder / "cache", folder / "out")
    return folder


def linked(folder: Path, cache: Path, out: Path):
    return link(folder / "conversations.csv", out, cache=cache, components=16, workers=1)


# --- damage ---------------------------------------------------------------------------------------


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def flip_early(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(min(200, len(data)))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def zeros(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    begin = rng.randrange(len(data) - 1)
    end = min(len(data), begin + 4096)
    data[begin:end] = bytes(255 - byte for byte in data[begin:end])
    path.write_bytes(data)


def cut(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(1, len(data))])


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def longer(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 100)))


def swap(path: Path, rng: random.Random) -> None:
    """Another file of the same kind, whole, under this name."""
    twins = [other for other in path.parent.glob(f"*{path.suffix}") if other != path]
    path.write_bytes(rng.choice(sorted(twins)).read_bytes())


def text(path: Path, rng: random.Random) -> None:
    path.write_text('{"version": 99}\n')


def pickled(path: Path, rng: random.Random) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def huge(path: Path, rng: random.Random) -> None:
    with path.open("wb") as file:
        head = {"descr": "<f4", "fortran_order": False, "shape": (10**12, 60)}
        np.lib.format.write_array_header_1_0(file, head)


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def dangling(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def gone(path: Path, rng: random.Random) -> None:
    path.unlink()


def locked(path: Path, rng: random.Random) -> None:
    path.chmod(0)


DAMAGE = [flip, flip_early, zeros, cut, empty, longer, swap, text, pickled, huge, folder, gone]
DAMAGE += [dangling, pipe] if hasattr(os, "mkfifo") else []
DAMAGE += [locked] if hasattr(os, "getuid") and os.getuid() else []  # root may read all


def damaged(cache: Path, where: str, how, rng: random.Random) -> str:
    """One file of a cache damaged, and what was made of it removed; the file's name."""
    files = sorted(path for path in (cache / where).rglob("*") if path.is_file())
    path = rng.choice(files)
    how(path, rng)
    if where == "features":
        shutil.rmtree(cache / "recognizers")
        shutil.rmtree(cache / "vectors")
    elif where == "recognizers":  # what is left is what was learned, or the same, settled
        for other in files:
            if other != path and (other.stem != path.stem or how is gone):
                other.unlink()
    return path.name


def verdict(clean: Path, cache: Path, out: Path, name: str, how) -> str:
    """What a run makes of it: "" or what is wrong."""
    try:
        with patience(PATIENCE):
            found = linked(clean, cache, out)
    except TimeoutError:
        return "hangs"
    except Exception:
        traceback.print_exc()
        return "tracebacks"
    if results(out) != results(clean / "out"):
        return "other bytes"
    if how is not gone and not any("damaged" in note and name in note for note in found.notes):
        return "silent uses"
    return ""


def tried(clean: Path, where: str, how, seed: int, place: Path) -> str:
    cache, out = place / "cache", place / "out"
    shutil.copytree(clean / "cache", cache)
    name = damaged(cache, where, how, random.Random(seed))
    wrong = verdict(clean, cache, out, name, how)
    if not wrong and any("damaged" in note for note in linked(clean, cache, out).notes):
        wrong = "silent uses"  # what was made anew is damaged too
    shutil.rmtree(place)
    return wrong


SETS = list(itertools.product(DAMAGE, FOLDERS))
QUICK = random.Random(1).sample(SETS, 15)


@pytest.mark.parametrize(("how", "where"), QUICK, ids=lambda x: getattr(x, "__name__", x))
def test_damage_is_noticed_and_mended(how, where, clean, tmp_path):
    assert tried(clean, where, how, 1, tmp_path / "try") == ""


@LONG
def test_two_hundred_damaged_caches(clean, tmp_path):
    counts: Counter[str] = Counter()
    for seed, (how, where) in zip(range(220), itertools.cycle(SETS), strict=False):
        wrong = tried(clean, where, how, seed, tmp_path / f"{seed}")
        if wrong:
            counts[wrong] += 1
            print(seed, how.__name__, where, wrong)
    count("damaged caches, whole runs", seed + 1, counts)
    assert not counts


# --- kills and company ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    """Enough calls for helper processes, a table of all and two of some that overlap."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(6)
    cast = dict(zip("abcd", make_voices(4, rng), strict=True))
    rows = []
    for k, (first, second) in enumerate([*itertools.combinations("abcd", 2)] * 4):
        samples = call(cast[first], cast[second], np.random.default_rng(k), 6.0)
        soundfile.write(folder / f"{k}.wav", samples, RATE)
        rows.append((f"c{k}", f"{k}.wav", f"{first};{second}"))
    columns = ["conversation", "audio", "participants"]
    for name, some in (("all", rows), ("first", rows[:18]), ("last", rows[-18:])):
        write_table(folder / f"{name}.csv", columns, some)
        link(folder / f"{name}.csv", folder / name, **SMALL)
    return folder


SMALL = {"components": 16, "min_speech": 0.5}


def command(folder: Path, table: str, out: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "spklink", "link", str(folder / f"{table}.csv"), "-o", str(out)]
    small = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    return [*words, *small, "--workers", "2", "--no-report", *more]


def started(words: list[str]) -> subprocess.Popen[str]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, start_new_session=True, **quiet)


def ended(process: subprocess.Popen[str], counts: Counter[str]) -> str:
    """What it said; counted where it hangs or ends in a traceback."""
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        counts["hangs"] += 1
        return ""
    if "Traceback" in said:
        counts["tracebacks"] += 1
        print(said)
    return said


def children(pid: int) -> list[int]:
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def running(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.append(pid)
    return found


def kill(process: subprocess.Popen[str], victim: str, rng: random.Random) -> None:
    """The main process, one of its helpers, or all at once as a terminal does it."""
    helpers = children(process.pid)
    if victim == "helper" and helpers:
        os.kill(rng.choice(helpers), signal.SIGKILL)
    elif victim == "Ctrl-C to all":
        os.killpg(process.pid, signal.SIGINT)
    elif victim == "terminal closed":
        os.killpg(process.pid, signal.SIGHUP)
    else:
        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))


def survivors(helpers: list[int]) -> int:
    end = time.monotonic() + 5
    while running(helpers) and time.monotonic() < end:
        time.sleep(0.05)
    return len(running(helpers))


def kill_once(words: list[str], victim: str, moment: float, rng, counts) -> None:
    """Counted where it hangs, ends in a traceback or otherwise oddly, or leaves helpers behind."""
    process = started(words)
    time.sleep(moment)
    while victim != "main process" and not children(process.pid) and process.poll() is None:
        time.sleep(0.02)  # no program can handle Ctrl-C before it is loaded
    helpers = children(process.pid)
    if process.poll() is None:
        kill(process, victim, rng)
        counts["kills"] += 1
    said = ended(process, counts)
    counts["hangs"] += survivors(helpers)
    fine = process.returncode in (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)
    if not fine and not (process.returncode in (130, -signal.SIGINT) and "stopped" in said):
        counts["tracebacks"] += "Traceback" not in said  # if it has one, it is counted
        print(victim, moment, process.returncode, said)


VICTIMS = ("main process", "helper", "Ctrl-C to all", "terminal closed")


@LONG
def test_fifty_kills(many, tmp_path):
    if not Path("/proc/self/task").exists():
        pytest.skip("helpers are found in /proc")
    rng, expected, total = random.Random(7), results(many / "all"), Counter()
    begin = time.monotonic()
    subprocess.run(command(many, "all", tmp_path / "timed"), check=True, capture_output=True)
    whole = time.monotonic() - begin
    for k, victim in enumerate(itertools.cycle(VICTIMS)):
        if total["kills"] >= 52:
            break
        counts, out = Counter(), tmp_path / f"{k}"
        for share in (0.8, 0.5, 0.3):  # what is done already need not be done again
            moment = rng.uniform(0.1, share) * whole
            kill_once(command(many, "all", out), victim, moment, rng, counts)
        kills = counts.pop("kills", 0)
        count(f"kills: {victim}", kills, counts)
        resumed: Counter[str] = Counter()
        ended(started(command(many, "all", out)), resumed)
        resumed["other bytes"] += results(out) != expected
        count("runs resumed after kills", 1, resumed)
        total.update(counts + resumed, kills=kills)
        shutil.rmtree(out)
    assert set(+total) == {"kills"}, total


def pair(many: Path, tables: tuple[str, str], place: Path, counts: Counter[str]) -> None:
    """Two runs with one cache."""
    cache = ("--cache", str(place / "cache"))
    runs = [started(command(many, table, place / f"{k}", *cache)) for k, table in enumerate(tables)]
    for k, (process, table) in enumerate(zip(runs, tables, strict=True)):
        said = ended(process, counts)
        if process.returncode:
            counts["tracebacks"] += "Traceback" not in said
            print(said)
        else:
            counts["other bytes"] += results(place / f"{k}") != results(many / table)
            counts["other bytes"] += "damaged" in (place / f"{k}" / "run.json").read_text()
    shutil.rmtree(place)


@pytest.mark.parametrize("pairs", [pytest.param(32, marks=LONG), 1])
def test_pairs_of_runs(many, tmp_path, pairs):
    counts: Counter[str] = Counter()
    for k in range(pairs):
        pair(many, [("first", "last"), ("all", "all")][k % 2], tmp_path / f"{k}", counts)
    count("pairs of runs, one cache", pairs, counts)
    assert not any(counts.values()), counts
