"""Time of every inference method against clique size, as docs/inference-time.svg.

python benchmarks/picture.py
"""

from __future__ import annotations

from pathlib import Path

from timing import once, use_one_core

use_one_core()

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from large import clique
from spklink.errors import SpklinkError
from spklink.posterior.inference.plan import Budget, solve_network
from spklink.posterior.inference.table import METHODS

OUT = Path(__file__).parent.parent / "docs" / "inference-time.svg"
STAR = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 50, 100, 200, 400, 800, 1600)
NETWORK = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
TOO_LONG = 8.0  # seconds: a method is not tried on larger cliques after that


def curve(shape: str, sizes: tuple[int, ...], method: str, eer: float) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    for size in sizes:
        network = clique(shape, size, eer)
        try:
            solve_network(network, method=method, budget=Budget(60.0, 2.0))
            spent = once(
                lambda net=network: solve_network(net, method=method, budget=Budget(60.0, 2.0))
            )
        except SpklinkError:
            continue  # the method has nothing to say about this clique
        points.append((size, spent))
        if spent > TOO_LONG:
            break
    return points


def main() -> None:
    plt.rcParams.update({"svg.hashsalt": "spklink", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, shape, sizes, eer in (
        (axes[0], "star", STAR, 16.0),
        (axes[1], "network", NETWORK, 7.0),
    ):
        for method in METHODS:
            points = curve(shape, sizes, method, eer)
            if points:
                axis.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=method)
        axis.set_xlabel(f"conversations in a {shape} (EER {eer:g} %)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds, one core")
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)


if __name__ == "__main__":
    main()
