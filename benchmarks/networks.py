"""Side embeddings a second, beside the loop that everybody writes; and memory by number of calls.

python benchmarks/networks.py model.onnx [--calls 40] [--threads 2]

The loop takes one file after the other: decode, resample, find speech (with our own front end, so
that both embed the same samples), filterbank by kaldi-native-fbank, one run of onnxruntime a side
with as many threads of its own as ours has processes. Ours is what `link` does, cache and starting
of processes included. Real calls of SPKLINK_DATA (harpervalley/); the vectors of both are compared
before anything is believed. Runs alternate; the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from spklink.cache import Store
from spklink.database.conversations import read_conversations
from spklink.recognizers.network import make
from spklink.sound.listening import Job, listen_all, load_array
from spklink.sound.network_input import pieces_of
from spklink.sound.waveform import Waveform
from timing import show

ROUNDS = 3
DEMANDED = 1.5


def recordings_of(calls: int):
    """The first calls of the real ones."""
    every = read_conversations(Path(os.environ["SPKLINK_DATA"], "harpervalley/conversations.csv"))
    if calls > len(every):
        sys.exit(f"there are {len(every)} calls")
    return [tuple(every.path.parent / name for name in every.audio[m]) for m in range(calls)]


def plain_loop(recognizer, recordings, threads: int) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    front_end, wants = recognizer.front_end, recognizer.front_end.wants
    session = onnxruntime.InferenceSession(str(front_end.network), options)
    listen = Waveform(front_end.detector, wants.rate, front_end.widen, front_end.longest)
    found = []
    for files in recordings:
        sides, _ = listen.hear(files, 2)
        for side in sides:
            pieces = pieces_of(side.array, wants)
            every = [session.run(None, {wants.input_name: one[None]})[0][0] for one in pieces]
            every = [one / np.linalg.norm(one) for one in every]
            mean = np.mean(every, axis=0)
            found.append(mean / np.linalg.norm(mean))
    return found


def ours(recognizer, recordings, threads: int) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        jobs = [Job(files, 2, recognizer.front_end, Path(folder)) for files in recordings]
        store = Store(Path(folder))
        heard = listen_all(jobs, store, workers=threads)
        return [recognizer.vector(load_array(store, one, k)) for one in heard for k in range(2)]


def memory(model: Path, calls: int, threads: int) -> tuple[float, float]:
    """Megabytes at most, of the process that asks and of the largest helper."""
    words = [sys.executable, __file__, str(model), "--calls", str(calls), "--threads"]
    done = subprocess.run(
        [*words, str(threads), "--memory"], capture_output=True, text=True, check=True
    )
    return tuple(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="used by itself")
    given = parser.parse_args()
    recordings = recordings_of(given.calls)
    recognizer = make(given.model)
    if given.memory:
        ours(recognizer, recordings, given.threads)
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        print(json.dumps([resource.getrusage(who).ru_maxrss / 1024 for who in whose]))
        return
    seconds: dict[str, list[float]] = {"loop": [], "ours": []}
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        theirs = plain_loop(recognizer, recordings, given.threads)
        middle = time.perf_counter()
        mine = ours(recognizer, recordings, given.threads)
        seconds["loop"].append(middle - begin)
        seconds["ours"].append(time.perf_counter() - middle)
        assert np.abs(np.stack(theirs) - np.stack(mine)).max() < 1e-4
    sides = 2 * given.calls
    loop, own = (min(seconds[name]) for name in ("loop", "ours"))
    row = (given.model.name, f"{sides / loop:.2f}", f"{sides / own:.2f}", f"{loop / own:.2f}")
    columns = ["network", "loop", "ours", "ratio", "demanded"]
    show(f"Sides a second, {given.threads} threads", columns, [(*row, f"{DEMANDED}")])
    counts = [given.calls // 2, given.calls, 2 * given.calls]
    rows = [(n, *(f"{m:.0f}" for m in memory(given.model, n, given.threads))) for n in counts]
    show("Megabytes at most", ["calls", "process", "largest helper"], rows)


if __name__ == "__main__":
    main()
