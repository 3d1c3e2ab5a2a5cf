"""Back-ends on speakers of another kind: circles of four people, each with two recordings.

    python examples/circles.py NAME=VECTORS.npz …

The files have the arrays speaker, channel (1 or 2: a recording of that speaker), embedding and
seconds. In a circle everybody speaks with two neighbours, once in each recording.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from backends import Database, Vectors, compared, eer, row
from spklink.cli.show import table, text
from spklink.database.conversations import make_conversations
from spklink.posterior.truth import score_cliques


def circles(path: Path) -> Database:
    with np.load(path, allow_pickle=False) as found:
        speakers, channels = found["speaker"].tolist(), found["channel"].tolist()
        where = {name: k for k, name in enumerate(zip(speakers, channels, strict=True))}
        vectors, seconds = found["embedding"].astype(np.float64), found["seconds"]
    rng = np.random.default_rng(0)
    names = [sorted(set(speakers))[k] for k in rng.permutation(len(set(speakers)))]
    calls, rows, truth = [], [], []
    for begin in range(0, len(names) - 3, 4):
        four = names[begin : begin + 4]
        for k in range(4):
            pair = [where[four[k], 1], where[four[(k + 1) % 4], 2]]
            turned = int(rng.integers(2))
            calls.append((f"c{len(calls)}", *(speakers[one] for one in pair)))
            rows += pair[::-1] if turned else pair
            truth.append(turned)
    people = make_conversations(calls)
    units = vectors[rows] - vectors[rows].mean(axis=0)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    made = Vectors(units.astype(np.float32), np.ones(len(rows), bool), seconds[rows])
    return Database(people, made, np.array(truth, np.int8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", nargs="+", help="NAME=FILE.npz")
    parser.add_argument("--kind", help="form of the calibration")
    given = parser.parse_args()
    for one in given.vectors:
        name, _, path = one.partition("=")
        data, rows = circles(Path(path)), []
        for back_end, (found, pairs) in compared(data, given.kind).items():
            scores = score_cliques(found.answer.bits, data.truth)
            part = [(scores, np.ones(len(scores.size), bool))]
            rows.append(row(back_end, part, [eer(data, pairs)]))
        head = ["back-end", "EER", "cliques", "bits", "E", "wrong", "expected (95 %)"]
        table(head, rows, title=f"{name}, circles of four")
        text()


if __name__ == "__main__":
    main()
