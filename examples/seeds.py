"""How far the seed moves the answer on small databases of short calls.

    python examples/seeds.py conversations.csv key.csv WORK [--calls 40] [--seconds 12]

From the calls of one half of the speakers (--half 0 or 1) some are drawn and cut short; each such
database is linked with many seeds. Prints how far the probability of a call moves from one seed to
another, and how many answers that are settled under one seed are wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import soundfile

from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.runs.link import link
from spklink.tables import write_csv

SETTLED = 0.99


def draw(source: Conversations, half: int, seed: int, given) -> Path:
    """A table of some calls between people of one half, their sound cut short."""
    rng = np.random.default_rng([half, seed])
    mine = {name for k, name in enumerate(sorted(source.speakers)) if k % 2 == half}
    calls = [m for m in range(len(source)) if set(source.names(m)) <= mine]
    folder = given.work / f"half{half}-{seed}-{given.seconds:g}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for m in sorted(rng.permutation(calls)[: given.calls].tolist()):
        path = source.path.parent / source.audio[m][0]
        rate = soundfile.info(path).samplerate
        sound, _ = soundfile.read(path, frames=round(given.seconds * rate), dtype="int16")
        soundfile.write(folder / f"{source.ids[m]}.flac", sound, rate)
        rows.append((source.ids[m], f"{source.ids[m]}.flac", ";".join(source.names(m))))
    write_csv(folder / "table.csv", ["conversation", "audio", "participants"], rows)
    return folder / "table.csv"


def answers(table: Path, key: Path, given) -> np.ndarray:
    """(seeds, calls) how probable the truth is, of calls that voices can tell."""
    found = []
    for seed in range(given.seeds):
        result = link(
            table,
            cache=table.parent / "cache",
            seed=seed,
            on_bad_audio="skip",
            workers=given.workers,
        )
        exchanged = result.posterior.exchanged
        truth = read_key(key, result.conversations).bits
        told = result.posterior.model.cliques.resolvable[result.posterior.model.cliques.label]
        found.append(np.where(truth == 1, exchanged, 1.0 - exchanged)[told])
    return np.array(found)


def show(right: list[np.ndarray], title: str) -> None:
    """How far each call moves; what is claimed against what is true."""
    every = np.concatenate(right, axis=1)
    odds = np.log(np.clip(every, 1e-12, 1)) - np.log(np.clip(1 - every, 1e-12, 1))
    print(f"{title}: {len(right)} databases, {every.shape[1]} calls, {every.shape[0]} seeds")
    for name, value in (("probability", np.ptp(every, axis=0)), ("log-odds", np.ptp(odds, axis=0))):
        middle, most = np.percentile(value, [50, 95])
        print(f"  {name} moves by: median {middle:.4f}, 95 % {most:.4f}, largest {value.max():.4f}")
    sure = np.maximum(every, 1 - every) >= SETTLED
    wrong = every < 0.5
    both = (sure.any(axis=0) & ~sure.all(axis=0)).sum()
    print(f"  settled under one seed, open under another: {both} calls")
    print(f"  settled and wrong under some seed: {(sure & wrong).any(axis=0).sum()} calls")
    claimed = np.minimum(every, 1 - every)
    print(f"  wrong answers: {wrong.mean():.2%}, the probabilities say {claimed.mean():.2%}")
    bits = -np.log2(np.clip(every, 1e-12, 1))
    print(f"  of the settled: {wrong[sure].mean():.2%}, they say {claimed[sure].mean():.2%}")
    print(f"  cross-entropy a call: {bits.mean():.4f} bits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--half", type=int, default=0, choices=(0, 1))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    source = read_conversations(given.table)
    tables = [draw(source, given.half, n, given) for n in range(given.draws)]
    found = [answers(table, given.key, given) for table in tables]
    show(found, f"half {given.half}, {given.calls} calls cut to {given.seconds:g} s")


if __name__ == "__main__":
    main()
