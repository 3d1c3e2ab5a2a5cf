"""How often `assign` doubts scores that are log-likelihood-ratios, and how often others.

Databases of every shape and world of `spklink simulate`, small ones too, with several equal error
rates. Their scores are calibrated; then they are changed into what people have by mistake.

python examples/uncalibrated.py --seeds 10
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from spklink.calibration.doubts import best_line
from spklink.calibration.pairs import make_pairs
from spklink.worlds.simulate import Simulation, simulate

Floats = np.ndarray
Change = Callable[[Floats, float, float], Floats]  # scores, mean and spread of the non-targets
DATABASES = {  # shape and conversations
    "348 calls (cgn)": ("cgn", None),
    "100 calls (pairs)": ("pairs", 100),
    "100 calls (network)": ("network", 100),
    "50 calls (star)": ("star", 50),
    "40 meetings": ("meetings", 40),
    "20 calls (cgn)": ("cgn", 20),
    "15 calls (network)": ("network", 15),
}
EERS = (1.0, 7.0, 20.0)
CHANGES: dict[str, Change] = {
    "as they are": lambda s, m, d: s,
    "20 % off": lambda s, m, d: 1.2 * s + 0.3,
    "x 2": lambda s, m, d: 2.0 * s,
    "x 3": lambda s, m, d: 3.0 * s,
    "+ 3": lambda s, m, d: s + 3.0,
    "- 3": lambda s, m, d: s - 3.0,
    "base 10": lambda s, m, d: s / np.log(10.0),
    "z-scores": lambda s, m, d: (s - m) / d,
    "cosines": lambda s, m, d: (s - m) / (10.0 * d),
    "percents": lambda s, m, d: 50.0 + 10.0 * (s - m) / d,
}


def doubted(made: Simulation, changes: int) -> list[bool]:
    """Of the first changes, whether each is told."""
    mean, spread = made.non_targets.score.mean(), made.non_targets.score.std()
    found = []
    for change in list(CHANGES.values())[:changes]:
        others = made.non_targets.scored(change(made.non_targets.score, mean, spread))
        scores = change(made.llr, mean, spread)
        pairs = make_pairs(made.conversations, made.links, scores, others)
        line = best_line(pairs, made.conversations.sides)
        found.append(line is not None and bool(line.doubt))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--changes", type=int, default=len(CHANGES), help="only so many of them")
    parser.add_argument("--worlds", default="gaussian,plda,t5")
    parser.add_argument("--only", default="", help="databases with this in their name")
    asked = parser.parse_args()
    names = list(CHANGES)[: asked.changes]
    print(f"| database | world | databases | {' | '.join(names)} |")
    print("|---|---|" + "---:|" * (len(names) + 1))
    for name, (shape, calls) in DATABASES.items():
        if asked.only not in name:
            continue
        for world in asked.worlds.split(","):
            told = [
                doubted(
                    simulate(shape=shape, conversations=calls, world=world, eer=eer, seed=seed),
                    asked.changes,
                )
                for eer in EERS
                for seed in range(asked.first, asked.first + asked.seeds)
            ]
            counts = " | ".join(str(count) for count in np.sum(told, axis=0).tolist())
            print(f"| {name} | {world} | {len(told)} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
