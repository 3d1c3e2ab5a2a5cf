"""The budget of a run holds for all of it; what cannot fit is refused before it begins."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import spklink
from spklink import SpklinkError, memory
from spklink.hands import Here
from spklink.memory import ALLOTMENT, GB, Memory, held_by, limited_to
from spklink.processes import in_processes
from spklink.recognizers import products
from spklink.recognizers.training import room

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")


def test_shares_together_are_within_the_budget():
    for asked in (0.5, 1.0, 4.0, 64.0):
        one = Memory(asked)
        assert memory.BASE * GB + max(one.free, 4 * one.vectors, 2 * one.clique * GB) <= asked * GB
        tiles = one.at_once(1000, products.TABLES * one.tile) * products.TABLES * one.tile
        assert tiles + one.vectors <= 1.26 * one.free


def test_no_share_is_more_than_the_machine_has(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 2 * GB)
    assert Memory(4.0).free == Memory(2.0).free < Memory(2.0).gigabytes * GB
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    assert Memory(4.0).free > 3 * GB


def test_a_container_with_less_is_seen(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "CGROUPS", (str(limit), str(tmp_path / "missing")))
    whole = memory.machine_memory()
    limit.write_text("max\n")
    assert memory.machine_memory() == whole
    limit.write_text(f"{GB}\n")
    assert memory.machine_memory() == GB


def test_a_run_refuses_before_it_begins():
    rows = [{"conversation": f"c{k}", "participants": f"a;b{k}"} for k in range(1500)]
    with pytest.raises(SpklinkError, match=r"--budget-gb allows 0\.6; .*'a' has 1,500.*allow more"):
        spklink.assign(rows, lambda one, two: 1 / 0, budget_gb=0.6)  # no score was asked for
    for run in (spklink.assign, lambda table, _, **how: spklink.link(table, **how)):
        with pytest.raises(SpklinkError, match=r"a run needs 0\.5 GB at least"):
            run(rows[:3], lambda one, two: 1 / 0, budget_gb=0.3)


def test_a_limit_ends_where_it_ends():
    usual = memory.now()
    with limited_to(1.0), limited_to(2.0):
        assert memory.now() == Memory(2.0)
    assert memory.now() == usual


def own_process(_: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def test_helpers_are_as_many_as_can_be_held():
    items = list(range(12))
    with limited_to(0.5):  # room for two beyond the base
        assert len(set(in_processes(own_process, items, 4))) <= 2
    assert len(set(in_processes(own_process, items, 3))) == 3


def test_vectors_beyond_their_share_are_on_disk(tmp_path):
    with limited_to(0.5):
        large = room((20_000, 1000), tmp_path)
        assert isinstance(large, np.memmap)
        assert not isinstance(room((1000, 1000), tmp_path), np.memmap)
    assert not isinstance(room((20_000, 1000), tmp_path), np.memmap)


def test_scores_do_not_depend_on_threads_under_a_small_budget():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(300, 40_000)).astype(np.float32)
    cosine = products.Cosine(np.zeros(40_000, np.float32))
    sides = np.arange(300)
    usual = products.table(cosine, vectors, sides, sides)
    with limited_to(0.5):
        assert products._step(cosine) < 300
        assert products._hands(cosine, Here(64)).count < 8
        one, many = (products.table(cosine, vectors, sides, sides, hands=Here(t)) for t in (1, 8))
    assert one.tobytes() == many.tobytes()
    assert np.allclose(one, usual, atol=1e-5)


def test_cliques_side_by_side_share_the_memory_of_one():
    at_work, most, lock = [0], [0], threading.Lock()

    def work(size):
        with ALLOTMENT.of(size, 100):
            with ALLOTMENT.of(90, 100):  # of a part: this thread has it already
                with lock:
                    at_work[0] += size
                    most[0] = max(most[0], at_work[0])
                time.sleep(0.01)
            with lock:
                at_work[0] -= size

    threads = [threading.Thread(target=work, args=(size,)) for size in (60, 50, 30, 100, 10) * 3]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20.0)
    assert not any(one.is_alive() for one in threads)
    assert 60 <= most[0] <= 100
    assert ALLOTMENT.taken == 0


# --- whole runs -----------------------------------------------------------------------------------


def most_held(words: list[str]) -> float:
    """Gigabytes that a run and its helpers held at most, looked at every few milliseconds."""
    run = subprocess.Popen([sys.executable, "-m", "spklink", *words], stdout=subprocess.DEVNULL)
    most = 0
    while run.poll() is None:
        most = max(most, held_by(run.pid))
        time.sleep(0.01)
    assert run.returncode == 0
    return most / GB


def answers(path: Path) -> list[tuple[str, str, str]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return sorted((row["conversation"], row["channel"], row["speaker"]) for row in rows)


@linux
def test_real_calls_within_half_a_gigabyte(real_calls, tmp_path):
    """All 420 calls without a label: none wrong, and exactly the 21 exchanged ones among claims."""
    calls, out = real_calls, tmp_path / "out"
    words = ["link", str(calls / "conversations.csv"), "--claimed", str(calls / "claimed.csv")]
    words += ["--workers", "2", "--budget-gb", "0.5", "-o"]
    if most_held([*words, str(out)]) >= 0.5:  # a process that compiles holds more: once more
        out = tmp_path / "again"
        assert most_held([*words, str(out)]) < 0.5
    right, claimed = (answers(calls / f"{name}.csv") for name in ("key", "claimed"))
    assert answers(out / "assignments.csv") == right
    exchanged = {conversation for conversation, _, _ in set(claimed) - set(right)}
    assert len(exchanged) == 21
    with (out / "suspects.csv").open() as file:
        assert {row["conversation"] for row in csv.DictReader(file)} == exchanged


@linux
def test_given_vectors_within_the_budget(tmp_path):
    """15,000 sides of 4,096 numbers: held in memory, they would be too much."""
    made = spklink.simulate(shape="network", conversations=7_500, seed=1)
    random = np.random.default_rng(0)
    voices = random.normal(size=(made.speakers.max() + 1, 4096)).astype(np.float32)
    vectors = voices[made.speakers]
    vectors += 0.5 * random.normal(size=vectors.shape).astype(np.float32)
    ids = np.repeat(made.conversations.ids, 2)
    channel = np.tile(["1", "2"], len(made.conversations))
    vectors_file = tmp_path / "vectors.npz"
    np.savez(vectors_file, conversation=ids, channel=channel, embedding=vectors)
    table = tmp_path / "conversations.csv"
    with table.open("w", newline="") as file:
        rows = csv.DictWriter(file, ["conversation", "participants"], extrasaction="ignore")
        rows.writeheader()
        rows.writerows(made.table())
    words = ["link", str(table), "--embeddings", str(vectors_file), "--no-report"]
    held = most_held([*words, "-o", str(tmp_path / "out"), "--budget-gb", "0.52"])
    assert held < 0.52
