"""Side embeddings a second, beside the loop that everybody writes; and memory by number of calls.

python benchmarks/networks.py model.onnx [--calls 20] [--threads 2]

The loop takes one file after the other: decode, resample, filterbank by kaldi-native-fbank, one run
of onnxruntime a side, with as many threads of its own as ours has processes. Once it embeds whole
channels, as there is no more to it; once only the speech that our own front end finds, so that both
do the same work, and its vectors must be ours. Ours is what `link` does, the cache and the start of
processes included. Real calls of SPKLINK_DATA (harpervalley/); runs alternate, the best counts.
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
import onnxruntime
import soundfile
import soxr

from spklink.cache import Store
from spklink.database.conversations import read_conversations
from spklink.hands import Here
from spklink.recognizers.network import make
from spklink.sound.heard import Job
from spklink.sound.listening import listen_all, load_array
from spklink.sound.network_input import pieces_of
from spklink.sound.waveform import Waveform
from timing import show

ROUNDS = 2
DEMANDED = 1.5


def recordings_of(calls: int):
    """The first calls of the real ones."""
    every = read_conversations(Path(os.environ["SPKLINK_DATA"], "harpervalley/conversations.csv"))
    if calls > len(every):
        sys.exit(f"there are {len(every)} calls")
    return [tuple(every.path.parent / name for name in every.audio[m]) for m in range(calls)]


def whole_channels(recognizer, files) -> list[np.ndarray]:
    sound, rate = soundfile.read(files[0], dtype="float32")
    return list(soxr.resample(sound, rate, recognizer.front_end.rate).T.copy())


def speech_alone(recognizer, files) -> list[np.ndarray]:
    ear = recognizer.front_end
    plain = Waveform(ear.detector, ear.rate, ear.widen, ear.longest)
    return [side.array for side in plain.hear(files, 2)[0]]


def plain_loop(recognizer, recordings, threads: int, listen) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    wants, path = recognizer.front_end.wants, str(recognizer.front_end.network)
    session = onnxruntime.InferenceSession(path, options)
    found = []
    for files in recordings:
        for samples in listen(recognizer, files):
            pieces = pieces_of(samples, wants)
            every = [session.run(None, {wants.input_name: one[None]})[0][0] for one in pieces]
            every = [one / np.linalg.norm(one) for one in every]
            mean = np.mean(every, axis=0)
            found.append(mean / np.linalg.norm(mean))
    return found


def ours(recognizer, recordings, threads: int) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        jobs = [Job(files, 2, recognizer.front_end, Path(folder)) for files in recordings]
        store = Store(Path(folder))
        heard = listen_all(jobs, store, hands=Here(threads))
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
    parser.add_argument("--calls", type=int, default=20)
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
    loops = {"whole channels": whole_channels, "the same speech": speech_alone}
    seconds: dict[str, list[float]] = {name: [] for name in ("ours", *loops)}
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        mine = ours(recognizer, recordings, given.threads)
        seconds["ours"].append(time.perf_counter() - begin)
        for name, listen in loops.items():
            begin = time.perf_counter()
            theirs = plain_loop(recognizer, recordings, given.threads, listen)
            seconds[name].append(time.perf_counter() - begin)
        assert np.abs(np.stack(theirs) - np.stack(mine)).max() < 1e-4  # of the same speech
    sides, own, rows = 2 * given.calls, min(seconds["ours"]), []
    for name in loops:
        best = min(seconds[name])
        row = (f"{sides / best:.2f}", f"{sides / own:.2f}", f"{best / own:.2f}", f"{DEMANDED}")
        rows.append((name, *row))
    columns = ["the loop embeds", "loop", "ours", "ratio", "demanded"]
    show(f"Sides a second, {given.model.name}, {given.threads} threads", columns, rows)
    counts = [given.calls // 2, given.calls, 2 * given.calls]
    rows = [(n, *(f"{m:.0f}" for m in memory(given.model, n, given.threads))) for n in counts]
    show("Megabytes at most", ["calls", "process", "largest helper"], rows)


if __name__ == "__main__":
    main()
