"""A real Dask cluster: a scheduler and workers, each a process of its own in another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Processes:
    """Where the scheduler is, and what can be killed."""

    address: str
    scheduler: subprocess.Popen[bytes]
    nannies: subprocess.Popen[bytes]  # which start workers, and start them again

    def workers(self) -> list[int]:
        """Process numbers of all workers that are alive."""
        import psutil

        found = []
        for one in psutil.Process(self.nannies.pid).children():
            with suppress(psutil.Error):  # it has just ended
                found += [one.pid] if "spawn_main" in " ".join(one.cmdline()) else []
        return found


@contextmanager
def dask_processes(
    folder: Path, workers: int, *words: str, failures: int = 3, own: str = ""
) -> Iterator[Processes]:
    """So many workers of one thread; a task that so many of them died of is tried once more. With
    `own`, a variable of the environment, each of them has a folder of its own by that name."""
    folder.mkdir(parents=True, exist_ok=True)
    address = folder / "scheduler.json"
    more = {
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures),
        "DASK_TEMPORARY_DIRECTORY": str(folder),
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent / "src")]),
    }
    common = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", *words]
    log = (folder / "log").open("wb")

    def start(module: str, *words: str, **beside: str) -> subprocess.Popen[bytes]:
        command, env = (
            [sys.executable, "-m", f"distributed.cli.{module}", *words],
            os.environ | more,
        )
        return subprocess.Popen(command, env=env | beside, cwd="/", stdout=log, stderr=log)

    scheduler = start("dask_scheduler", *common, "--port", "0", "--scheduler-file", str(address))
    try:
        while not address.exists():
            assert scheduler.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        found = json.loads(address.read_text())["address"]
        each = [(k, 1) for k in range(workers)] if own else [(0, workers)]
        nannies = [
            start(
                *("dask_worker", found, *common, "--nworkers", str(count), "--nthreads=1"),
                **({own: str(folder / f"own{k}")} if own else {}),
            )
            for k, count in each
        ]
        try:
            yield Processes(found, scheduler, nannies[0])
        finally:
            for one in nannies:
                one.terminate()
            for one in nannies:
                one.wait()
    finally:
        scheduler.kill()
        scheduler.wait()
        log.close()
