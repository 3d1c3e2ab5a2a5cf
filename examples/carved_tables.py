"""The paper's experiment on other calls: databases of small cliques carved from one collection.

    python examples/carved_tables.py conversations.csv key.csv WORK [--preset default] [--seeds 20]
        [--recognizer model.onnx] [--speech silero_vad.onnx]

Each database is linked by itself, without labels (the key is read only to measure), and once more
from the same scores with a calibration that knows the key. Listening is shared through one cache.
Prints Tables 2 and 3 over all databases together.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carve import carve, write
from spklink.calibration.choice import with_speakers
from spklink.calibration.pairs import make_pairs
from spklink.cli.show import number, percent, table, text
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.database.sides import speakers_on
from spklink.measures.detection import measure
from spklink.measures.evaluation import (
    best_scale,
    keep_cliques,
    table_row,
)
from spklink.measures.reliability import error_interval
from spklink.posterior.likelihood import Model, build_model, join
from spklink.posterior.posterior import solve
from spklink.posterior.truth import CliqueScores, score_cliques
from spklink.runs.link import link
from spklink.runs.result import Result
from spklink.scores.needed import SideScores
from spklink.scores.trials import read_trials


@dataclass(frozen=True)
class Measured:
    """One database under one calibration."""

    model: Model
    truth: np.ndarray
    scores: CliqueScores


def link_database(source, seed: int, given) -> tuple[Measured, Measured, float]:
    """Without labels, with the key, and the equal error rate of the scores."""
    folder = given.work / f"carved-{seed}"
    path = write(source, carve(source, seed), folder)
    name = [Path(given.recognizer).stem, Path(given.speech).stem, given.preset, given.kind or ""]
    out = folder / "-".join([*name, "" if given.link_wccn else "plain"])
    result = link(
        path,
        out,
        recognizer=given.recognizer,
        speech=given.speech,
        preset=given.preset,
        cache=given.cache or given.work / "cache",
        link_wccn=given.link_wccn,
        kind=given.kind,
        workers=given.workers,
        report=False,
    )
    key = read_key(given.key, result.conversations)
    free = Measured(result.posterior.model, key.bits, score_cliques(result.posterior, key.bits))
    model = model_with_key(result, key.bits)
    taught = Measured(model, key.bits, score_cliques(solve(model), key.bits))
    eer = measure(*read_trials(out / "scores.npz", result.conversations, key)).eer
    return free, taught, eer


def model_with_key(result: Result, truth: np.ndarray) -> Model:
    """The same scores, calibrated by the truth."""
    people, links, raw = result.conversations, result.evidence.links, result.raw
    needed, speech = len(result.evidence.scores.needed), result.listening.speech
    others = SideScores(raw.side_1[needed:], raw.side_2[needed:], raw.score[needed:])
    pairs = make_pairs(
        people,
        links,
        raw.score[:needed],
        others,
        seconds=speech.seconds,
        usable=speech.usable,
    )
    on_sides, kind = speakers_on(people, truth), result.calibration["kind"]
    llr = pairs.calibrated(with_speakers(people, pairs, on_sides, kind))
    cliques, weight = result.posterior.model.cliques, result.evidence.weight
    return build_model(people, cliques, links, llr, weight=weight, prior=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--recognizer", default="gmm-ubm", help="or a network, model.onnx")
    parser.add_argument("--speech", default="energy", help="or a network, silero_vad.onnx")
    parser.add_argument("--cache", type=Path, help="else WORK/cache")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", help="form of the calibration, else the preset's")
    parser.add_argument("--no-link-wccn", dest="link_wccn", action="store_false")
    given = parser.parse_args()
    source = read_conversations(given.table)
    runs = []
    for seed in range(given.seeds):
        runs.append(link_database(source, seed, given))
        found = runs[-1][0].scores
        print(
            f"database {seed}: {len(found.size)} cliques, {int(found.wrong.sum())} wrong, "
            f"{found.per_conversation.mean():.4f} bits, EER {100 * runs[-1][2]:.1f} %",
            flush=True,
        )
    recipe = f"preset {given.preset}" + (f", {given.kind}" if given.kind else "")
    recipe = recipe if given.recognizer == "gmm-ubm" else f"{Path(given.recognizer).stem}, {recipe}"
    recipe += "" if given.link_wccn else " without link-WCCN"
    eer = 100 * np.mean([run[2] for run in runs])
    text(f"EER of the scores, mean of databases {eer:.1f} %")
    for which, name in enumerate(("without labels", "with the true labels")):
        show([run[which] for run in runs], f"{len(runs)} carved databases, {recipe}, {name}")


def show(runs: list[Measured], title: str) -> None:
    sizes = np.unique(np.concatenate([run.scores.size for run in runs])).tolist()
    table(
        ["conversations", "cliques", "bits", "F", "wrong", "E", "recalibrated", "a_min/a"],
        [row_of(runs, size) for size in (*sizes, None)],
        title=title,
    )
    chance = np.concatenate([1.0 - run.scores.best_low for run in runs])
    low, high = error_interval(chance)
    observed = sum(int(run.scores.wrong.sum()) for run in runs)
    text(f"wrong cliques: expected {chance.sum():.1f} (95 %: {low} to {high}), observed {observed}")
    text()


def row_of(runs: list[Measured], size: int | None) -> tuple:
    here = [run.scores.size == size if size else run.scores.size > 0 for run in runs]
    low, high, resolvable, wrong = (
        np.concatenate([getattr(run.scores, name)[h] for run, h in zip(runs, here, strict=True)])
        for name in ("per_low", "per_high", "resolvable", "wrong")
    )
    row = table_row(low, high, resolvable, wrong)
    kept = [
        keep_cliques(run.model, run.truth, run.scores, h) for run, h in zip(runs, here, strict=True)
    ]
    bits, scale = best_scale(
        join([model for model, _ in kept if len(model.cliques)]),
        np.concatenate([truth for _, truth in kept]),
    )
    return (
        size or "all",
        row["cliques"],
        number(row["cross_entropy_bits"], 4),
        number(row["confusion"], 4),
        row["clique_errors"],
        percent(row["clique_error_rate"], 2),
        number(bits, 4),
        number(scale, 2),
    )


if __name__ == "__main__":
    main()
