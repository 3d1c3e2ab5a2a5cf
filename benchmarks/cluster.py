"""One run on this machine, and on a Dask cluster of separate processes: bytes, time, memory, kills.

    python benchmarks/cluster.py conversations.csv [--workers 2] [--runs 3] [--kills 10] [--seed 0]

Every run is a fresh process with an empty cache. First local runs and cluster runs in turn; then
runs in which a worker chosen by lot is killed (SIGKILL) at a moment chosen by lot while the cluster
is at work; then one whose scheduler is killed, which must end in one line and exit code 2 and go on
with another scheduler. All result files but timings.json are compared byte by byte with those of
the first local run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from timing import show

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from dask_processes import Processes, dask_processes

TICK = 0.5  # seconds between two looks at the memory


@dataclass(frozen=True)
class Done:
    """One run."""

    out: Path
    code: int
    seconds: float
    said: str
    main_mb: float  # most memory of the process itself
    workers_mb: float  # the same of all workers together; 0 without

    @property
    def stages(self) -> dict[str, float]:
        return json.loads((self.out / "timings.json").read_text())["seconds"]

    def content(self) -> dict[str, bytes]:
        files = [one for one in self.out.iterdir() if one.is_file() and one.name != "timings.json"]
        return {one.name: one.read_bytes() for one in files}


def linked(
    table: Path,
    out: Path,
    words: list[str],
    at: Processes | None = None,
    meanwhile: Callable[[Path], None] | None = None,
) -> Done:
    """Run `spklink link` in a process of its own."""
    command = [sys.executable, "-m", "spklink", "link", str(table), "-o", str(out), "--no-report"]
    where = [] if at is None else ["--cluster", at.address]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, *where, *words], stdout=-3, stderr=-1, text=True)
    if meanwhile is not None:
        threading.Thread(target=meanwhile, args=(out,), daemon=True).start()
    peak = [0.0, 0.0]
    while process.poll() is None:
        every = [] if at is None else at.workers()
        for k, some in enumerate(([process.pid], every)):
            peak[k] = max(peak[k], sum(map(resident, some)))
        time.sleep(TICK)
    seconds = time.perf_counter() - begin
    return Done(out, process.returncode, seconds, process.stderr.read(), *peak)


def resident(number: int) -> float:
    try:
        return psutil.Process(number).memory_info().rss / 2**20
    except psutil.Error:
        return 0.0


@dataclass(frozen=True)
class Moment:
    """When something is killed: so many recordings are heard, so many calls have vectors, and then
    so many seconds later."""

    heard: int
    vectors: int
    seconds: float

    @classmethod
    def drawn(cls, chance: random.Random, calls: int) -> Moment:
        """While recordings are heard, the recognizer learns, or vectors are made."""
        kept, wait = chance.randrange(calls), chance.uniform(0.0, 2.0)
        choices = [cls(kept, 0, 0.0), cls(calls, 0, wait), cls(calls, kept, 0.0)]
        return chance.choice(choices)

    def __str__(self) -> str:
        return f"{self.heard} heard, {self.vectors} with vectors, {self.seconds:.1f} s later"

    def wait(self, out: Path) -> None:
        while count(out, "features") < self.heard or count(out, "vectors/*") < self.vectors:
            time.sleep(0.02)
        time.sleep(self.seconds)


def count(out: Path, folder: str) -> int:
    return sum(1 for _ in (out / "cache").glob(f"{folder}/*.kept"))


def killer(victim: Callable[[], int], moment: Moment) -> Callable[[Path], None]:
    def kill(out: Path) -> None:
        moment.wait(out)
        os.kill(victim(), signal.SIGKILL)

    return kill


def span(values: list[float], form: str = "{:.1f}") -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def compared(local: list[Done], far: list[Done]) -> None:
    names = [name for name, seconds in local[0].stages.items() if seconds >= 0.1]
    rows = [
        (
            name,
            span([one.stages[name] for one in local]),
            span([one.stages[name] for one in far]),
            span([b.stages[name] / a.stages[name] for a, b in zip(local, far, strict=True)]),
        )
        for name in names
    ]
    whole = [[one.seconds for one in some] for some in (local, far)]
    ratios = [b / a for a, b in zip(*whole, strict=True)]
    rows.append(("the whole command", span(whole[0]), span(whole[1]), span(ratios, "{:.2f}")))
    show("Seconds here and on the cluster", ["stage", "here", "cluster", "ratio"], rows)
    memory = [[one.main_mb for one in local], [one.main_mb for one in far]]
    workers = span([one.workers_mb for one in far], "{:.0f}")
    print(f"memory of the main process, MB: here {span(memory[0], '{:.0f}')}, with the cluster")
    print(f"{span(memory[1], '{:.0f}')}; of all workers together {workers}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, failed = random.Random(given.seed), 0
    print(f"{processor()}, {os.cpu_count()} cores, {given.workers} workers")
    with tempfile.TemporaryDirectory() as name:
        folder, here = Path(name), ["--workers", str(given.workers)]
        local, far = [], []
        with dask_processes(folder / "dask", given.workers) as dask:
            for k in range(given.runs):
                local.append(linked(given.table, folder / f"local{k}", here))
                far.append(linked(given.table, folder / f"far{k}", here, dask))
            expected = local[0].content()
            same = sum(one.code == 0 and one.content() == expected for one in (*local, *far))
            failed += 2 * given.runs - same
            compared(local, far)
            print(f"{same} of {2 * given.runs} runs have the same bytes in {len(expected)} files")
            calls, right = count(far[0].out, "features"), []
            for k in range(given.kills):
                moment = Moment.drawn(chance, calls)
                kill = killer(lambda: chance.choice(dask.workers()), moment)
                one = linked(given.table, folder / f"kill{k}", here, dask, kill)
                right.append(one.code == 0 and one.content() == expected)
                print(
                    f"a worker killed ({moment}): {one.seconds:.1f} s in all, "
                    f"{'same bytes' if right[-1] else 'NOT the same bytes'}",
                    flush=True,
                )
            failed += right.count(False)
            print(f"{sum(right)} of {given.kills} runs with a killed worker have the same bytes")
        moment = Moment(chance.randrange(calls), 0, 0.0)
        failed += not scheduler_killed(given.table, folder, here, moment, expected)
    return 1 if failed else 0


def scheduler_killed(
    table: Path, folder: Path, words: list[str], moment: Moment, expected: dict[str, bytes]
) -> bool:
    """Whether a run that loses its scheduler ends in one line, and goes on with another."""
    out, workers = folder / "lost", int(words[1])
    with dask_processes(folder / "one", workers) as dask:
        kill = killer(lambda: dask.scheduler.pid, moment)
        lost = linked(table, out, words, dask, kill)
    kept = len(list((out / "cache" / "features").glob("*.kept")))
    print(f"scheduler killed ({moment}): exit code {lost.code}, {kept} recordings kept")
    print(lost.said.splitlines()[-1])
    with dask_processes(folder / "two", workers) as dask:
        again = linked(table, out, words, dask)
    same = again.content() == expected
    print(f"with another scheduler: {again.seconds:.1f} s, {'same' if same else 'OTHER'} bytes")
    return same and lost.code == 2


if __name__ == "__main__":
    sys.exit(main())
