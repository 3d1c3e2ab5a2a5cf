"""How many conversations must be heard until all are settled, by the order of listening.

    python examples/queue_orders.py [--databases 200] [--first 1000] [--eer 7 12]
        [--calls conversations.csv key.csv WORK] [--preset default] [--seeds 10] [--picture FILE]

On simulated databases in the shape of the paper's corpus, and on databases carved from real calls
(--calls; linked without labels, the key only answers for the listener). Whoever listens is right;
after every listen its clique is solved again, and what is settled at 99 % is never heard. Prints
listens until every conversation is settled, in resolvable cliques and in the others (how many such
cliques there are, and how many of them one listen settled), how many conversations were settled
wrongly, and what was open, and how many bits were, summed over all listens: little where much is
settled early.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carve import carve, write
from spklink.cli.show import number, table, text
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.database.sides import names_on
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.runs.evidence import Evidence
from spklink.runs.link import link
from spklink.runs.part import Part, part_of, solved, with_heard
from spklink.runs.queue import Board, ordered
from spklink.scores.needed import Scores
from spklink.shared_options import ORDERS
from spklink.worlds.simulate import simulate

WORDS = {
    "fewest": "fewest listens",
    "uncertain": "most uncertain first",
    "paper": "the paper's order",
    "random": "any order",
}
COLOURS = {"fewest": "#0072b2", "uncertain": "#009e73", "paper": "#d55e00", "random": "#6b7280"}
STEPS = 101  # points of a curve


@dataclass(frozen=True)
class Heard:
    """One database heard in one order."""

    resolvable: int  # listens
    unresolvable: int
    cliques: int  # unresolvable ones
    by_one: int  # of these settled by one listen
    wrong: int  # conversations settled wrongly
    open: np.ndarray  # (listens + 1,) conversations that are not settled
    bits: np.ndarray  # (listens + 1,) that are left


class Listener:
    """A database that is heard one conversation after the other."""

    def __init__(self, evidence: Evidence, truth: np.ndarray) -> None:
        self.evidence, self.truth, self.cliques = evidence, truth, evidence.cliques
        self.calls = [self.cliques.members(k) for k in range(len(self.cliques))]
        self.at_first = Board(self.cliques.label, self.cliques.size)
        whole = self._solved(evidence, np.arange(len(truth)))
        self.at_first.take(np.arange(len(self.calls)), whole)
        self.best = whole.answer.bits.best

    def _solved(self, evidence: Evidence, calls: np.ndarray) -> Part:
        usable = np.ones(2 * len(calls), bool)
        return solved(evidence, calls, usable, rate=0.0, how=Options())

    def hear_all(self, order: str, seed: int) -> Heard:
        board, best = deepcopy(self.at_first), self.best.copy()
        heard: list[dict] = [{} for _ in self.calls]
        decided, nobody = np.zeros((2, len(self.truth)), bool)
        count, opened, bits = np.zeros(2, int), [], []
        while True:
            opened.append(int(board.open.sum()))
            bits.append(float(board.entropy[0].sum()))
            if not board.open.any():
                break
            asked = {"decided": decided, "disagree": nobody, "unsure": nobody}
            m = int(ordered(board, order, questions={}, seed=seed, **asked)[0])
            k = int(self.cliques.label[m])
            i = int(np.searchsorted(self.calls[k], m))
            heard[k][i] = names_on(self.evidence.conversations, m, int(self.truth[m]))
            decided[m] = True
            evidence = with_heard(part_of(self.evidence, self.calls[k]), heard[k])
            part = self._solved(evidence, self.calls[k])
            board.take(np.array([k]), part)
            best[self.calls[k]] = part.answer.bits.best
            count[int(self.cliques.resolvable[k])] += 1
        wrong = int(((best != self.truth) & ~decided).sum())
        alike = [len(heard[k]) for k in np.flatnonzero(~self.cliques.resolvable)]
        told = len(alike), alike.count(1), wrong
        return Heard(*count[::-1].tolist(), *told, np.array(opened), np.array(bits))


def simulated(eer: float, seed: int) -> Listener:
    made = simulate(world="gaussian", eer=eer, seed=seed)
    scores = Scores(made.llr, non_targets=made.non_targets)
    evidence = Evidence(made.conversations, made.links, scores, Weight())
    return Listener(evidence, made.truth)


def carved(source, key: Path, work: Path, preset: str, seed: int) -> Listener:
    path = write(source, carve(source, seed), work / f"carved-{seed}")
    result = link(path, preset=preset, cache=work / "cache", list_errors=0.0, report=False)
    truth = read_key(key, result.conversations).bits
    return Listener(result.evidence, truth)


def run(listeners, seeds) -> dict[str, list[Heard]]:
    found: dict[str, list[Heard]] = {order: [] for order in ORDERS}
    for listener, seed in zip(listeners, seeds, strict=True):
        for order in ORDERS:
            found[order].append(listener.hear_all(order, seed))
    return found


def show(title: str, found: dict[str, list[Heard]]) -> None:
    rows = []
    first = np.array([one.resolvable for one in found["fewest"]])
    for order in WORDS:
        some = found[order]
        listens = np.array([one.resolvable for one in some])
        more = listens - first
        error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
        half = np.mean([_area(one.open) for one in some])
        rows.append(
            (
                WORDS[order],
                number(listens.mean(), 2),
                f"{more.mean():+.2f} ± {error:.2f}" if order != "fewest" else "",
                number(np.mean([one.unresolvable for one in some]), 2),
                number(np.mean([one.cliques for one in some]), 2),
                number(np.mean([one.by_one for one in some]), 2),
                number(np.mean([one.wrong for one in some]), 2),
                number(half, 1),
                number(np.mean([_area(one.bits) for one in some]), 1),
            )
        )
    start = np.mean([one.open[0] for one in found["fewest"]])
    columns = ["order", "resolvable", "more", "unresolvable", "cliques", "by one", "wrong"]
    table(
        [*columns, "open", "bits"], rows, title=f"{title}: {start:.1f} conversations open at first"
    )


def _area(curve: np.ndarray) -> float:
    """The sum of what is left after each listen: small where much is settled early."""
    return float(curve[:-1].sum())


def draw(path: Path, groups: dict[str, dict[str, list[Heard]]]) -> None:
    """A panel a kind of database: listens against what is open."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "spklink"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(groups), figsize=(5.2 * len(groups), 3.8), squeeze=False)
    for axis, (title, found) in zip(axes[0], groups.items(), strict=True):
        most = max(len(one.open) for some in found.values() for one in some)
        for order, words in WORDS.items():
            curves = np.zeros((len(found[order]), most))
            for row, one in zip(curves, found[order], strict=True):
                row[: len(one.open)] = one.open
            total = np.mean([one.resolvable + one.unresolvable for one in found[order]])
            label = f"{words}: {total:.1f}"
            axis.plot(curves.mean(axis=0), color=COLOURS[order], label=label)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("conversations heard")
        axis.set_ylabel("conversations not settled")
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
        axis.legend(title="heard until all are settled", fontsize=8, title_fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--databases", type=int, default=200)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first database")
    parser.add_argument("--eer", type=float, nargs="*", default=[7.0, 12.0])
    parser.add_argument("--calls", type=Path, nargs=3, help="table, key and a folder to work in")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seeds", type=int, default=10, help="carved databases")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    groups = {}
    for eer in given.eer:
        seeds = range(given.first, given.first + given.databases)
        title = f"{given.databases} simulated databases, EER {eer:g} %"
        groups[title] = run((simulated(eer, seed) for seed in seeds), seeds)
        show(title, groups[title])
    if given.calls:
        source, key, work = read_conversations(given.calls[0]), given.calls[1], given.calls[2]
        seeds = range(given.seeds)
        title = f"{given.seeds} databases carved from real calls, {given.preset}"
        made = (carved(source, key, work, given.preset, seed) for seed in seeds)
        groups[title] = run(made, seeds)
        show(title, groups[title])
    if given.picture:
        draw(given.picture, groups)
        text(f"drawn: {given.picture}")


if __name__ == "__main__":
    main()
