"""The pictures of docs/calibration.md, from simulated databases.

    python examples/calibration_pictures.py docs

calibration-learning.svg: what calibration without labels sees and how it settles.
calibration-reliability.svg: do the probabilities that follow mean what they say?
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

from spklink import build_model, find_cliques, solve
from spklink.calibration.label_free import LabelFree, label_free
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.measures.reliability import reliability
from spklink.worlds import simulate

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#6b7280"
DATABASES = 50


def learn(world: str, eer: float, seed: int) -> tuple[simulate.Simulation, Pairs, LabelFree]:
    made = simulate.simulate(world=world, eer=eer, seed=seed)
    cliques = find_cliques(made.conversations)
    # As a recognizer would give them: neither the scale nor the offset of a likelihood-ratio.
    others = made.non_targets.scored(3 * made.non_targets.score + 40)
    pairs = make_pairs(made.conversations, made.links, 3 * made.llr + 40, others)

    def posterior(llr, curve=None):
        return solve(build_model(made.conversations, cliques, made.links, llr))

    return made, pairs, label_free(pairs, posterior, "lr-floor")


def draw_learning(path: Path) -> None:
    import matplotlib.pyplot as plt

    made, pairs, found = learn("plda", 7.0, 1)
    same = found.posterior.candidate_probabilities(made.links)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    values = pairs.scores[made.links.pair].ravel()
    edges = np.linspace(pairs.non_targets.min(), values.max(), 50)
    common = {"bins": edges, "density": True, "alpha": 0.55}
    left.hist(pairs.non_targets, color=GREY, label="known non-targets", **common)
    left.hist(values, weights=same.ravel(), color=BLUE, label="expected targets", **common)
    true = np.sort(np.concatenate([pairs.non_targets, values]))
    left.set(xlabel="score", ylabel="density", title="What the participant lists give")
    left.legend(frameon=False, loc="upper left")
    twin = left.twinx()
    twin.plot(true, found.calibration(true), color=ORANGE)
    twin.plot(true, (true - 40) / 3, color="black", linestyle=":", linewidth=1)
    twin.set_ylabel("learned ratio, true one dotted")
    rounds = np.arange(1, len(found.history) + 1)
    right.semilogy(rounds, [step.moved for step in found.history], "o-", color=BLUE)
    right.set(xlabel="round", ylabel="largest move of a probability", title="How it settles")
    figure.savefig(path, metadata={"Date": None})


def draw_reliability(path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
    for axis, (world, eer) in zip(axes, [("plda", 7.0), ("plda", 20.0), ("t5", 7.0)], strict=True):
        chance, right = [], []
        for seed in range(DATABASES):
            made, _, found = learn(world, eer, seed)
            cliques = found.posterior.model.cliques
            open_ = cliques.resolvable[cliques.label]
            chance.append(found.posterior.confidence()[0][open_])
            right.append((found.posterior.best == made.truth)[open_])
        bins = reliability(np.concatenate(chance), np.concatenate(right))
        x, y = [b.predicted for b in bins], [b.observed for b in bins]
        ends = np.array([(b.observed_low, b.observed_high) for b in bins]).T
        bars = np.maximum(np.abs(ends - np.array(y)), 0.0)
        axis.plot([0.4, 1], [0.4, 1], color=GREY, linestyle="--", linewidth=1)
        axis.errorbar(x, y, bars, fmt="o", color=BLUE, capsize=2, markersize=4)
        axis.set(xlabel="probability of the assignment", title=f"{world}, EER {eer:g} %")
    axes[0].set_ylabel("share that is right")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "spklink", "svg.fonttype": "none", "font.size": 9}
    draw_learning(folder / "calibration-learning.svg")
    draw_reliability(folder / "calibration-reliability.svg")


if __name__ == "__main__":
    main()
