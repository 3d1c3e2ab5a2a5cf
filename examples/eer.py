"""Equal error rate of the scores in a results folder, held against a key.

    spklink link conversations.csv -o OUT --all-pairs
    python examples/eer.py OUT key.csv

All scored pairs of sides of different calls count; a target is the same speaker. The rate is that
of the convex hull of the ROC curve; the step rate is given too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from spklink.conversations import read_conversations
from spklink.labels import read_key


def roc(targets: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of false alarms and hits as the threshold falls, equal scores together."""
    scores = np.concatenate([targets, others])
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    hit = np.cumsum(order < len(targets))[last] / len(targets)
    alarm = np.cumsum(order >= len(targets))[last] / len(others)
    return np.append(0.0, alarm), np.append(0.0, hit)


def hull(alarm: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """Upper convex hull of the curve."""
    points: list[tuple[float, float]] = []
    for x, y in zip(alarm, hit, strict=True):
        while len(points) > 1:
            (ax, ay), (bx, by) = points[-2:]
            if (bx - ax) * (y - ay) < (by - ay) * (x - ax):
                break
            points.pop()
        points.append((x, y))
    return np.array(points)


def crossing(alarm: np.ndarray, hit: np.ndarray) -> float:
    """Where misses and false alarms are equally frequent, between two points of the curve."""
    excess = alarm + hit - 1.0
    k = int(np.argmax(excess >= 0))
    share = excess[k - 1] / (excess[k - 1] - excess[k])
    return float(alarm[k - 1] + share * (alarm[k] - alarm[k - 1]))


def main() -> None:
    out, key = Path(sys.argv[1]), Path(sys.argv[2])
    table = read_conversations(out / "conversations.csv")
    truth = read_key(key, table).bits
    channels = np.stack([truth, 1 - truth], axis=1)
    speaker = np.take_along_axis(table.participants, channels, axis=1).ravel()
    with np.load(out / "scores.npz", allow_pickle=False) as arrays:
        one, two, score = (arrays[name] for name in ("side_1", "side_2", "score"))
    apart = one // 2 != two // 2
    same = speaker[one] == speaker[two]
    targets, others = score[apart & same], score[apart & ~same]
    alarm, hit = roc(targets, others)
    step = float(alarm[np.argmin(np.abs(alarm + hit - 1.0))])
    print(
        f"{len(targets)} same-speaker and {len(others)} different-speaker pairs: "
        f"EER {100 * crossing(*hull(alarm, hit).T):.2f} % (convex hull), {100 * step:.2f} % (step)"
    )


if __name__ == "__main__":
    main()
