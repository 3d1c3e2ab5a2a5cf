"""The paper's experiment on other calls: databases of small cliques carved from one collection.

    python examples/carved_tables.py conversations.csv key.csv WORK [--preset default] [--seeds 20]

Each database is linked by itself, without labels, and measured with the key. Listening is shared
through one cache. Prints Tables 2 and 3 over all databases together.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from carve import carve, write
from spklink.assignment import load
from spklink.conversations import read_conversations
from spklink.evaluation import best_scale, score_cliques, table_row
from spklink.labels import read_key
from spklink.likelihood import join
from spklink.linking import Settings, link
from spklink.posterior import Options, solve
from spklink.show import number, percent, table, text


def link_database(source, seed: int, given) -> tuple:
    """Model, truth, clique scores and equal error rate of one carved database."""
    folder = given.work / f"carved-{seed}"
    path = write(source, carve(source, seed), folder)
    out = folder / given.preset
    link(
        path,
        out,
        settings=Settings(preset=given.preset, cache=given.work / "cache"),
        options=Options(workers=given.workers),
    )
    database, options = load(out)
    truth = read_key(given.key, database.conversations).bits
    scores = score_cliques(solve(database.model, options=options), truth)
    return database.model, truth, scores, equal_error(database, truth)


def equal_error(database, truth) -> float:
    """Of the needed pairs: same speaker against different speakers."""
    links, llr = database.links, database.scores.llr
    people = database.conversations.participants
    on_side = np.take_along_axis(people, np.stack([truth, 1 - truth], 1), 1)
    same = on_side[links.first][:, :, None] == on_side[links.second][:, None, :]
    target, other = np.sort(llr[same]), np.sort(llr[~same])
    at = np.concatenate([target, other])
    miss = np.searchsorted(target, at) / len(target)
    alarm = 1.0 - np.searchsorted(other, at) / len(other)
    return float(miss[np.argmin(np.abs(miss - alarm))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    source = read_conversations(given.table)
    runs = []
    for seed in range(given.seeds):
        runs.append(link_database(source, seed, given))
        found = runs[-1][2]
        print(
            f"database {seed}: {len(found.size)} cliques, {int(found.wrong.sum())} wrong, "
            f"{found.per_conversation.mean():.4f} bits, EER {100 * runs[-1][3]:.1f} %",
            flush=True,
        )
    show(runs, given.preset)


def show(runs, preset: str) -> None:
    size = np.concatenate([run[2].size for run in runs])
    rows = []
    for m in (*np.unique(size), None):
        here = [run[2].size == m if m is not None else run[2].size > 0 for run in runs]
        parts = [run[2] for run in runs]
        low, high, resolvable, wrong = (
            np.concatenate([getattr(s, name)[h] for s, h in zip(parts, here, strict=True)])
            for name in ("per_low", "per_high", "resolvable", "wrong")
        )
        row = table_row(low, high, resolvable, wrong)
        rows.append(("all" if m is None else m, row))
    table(
        ["conversations", "cliques", "bits", "F", "wrong", "E"],
        [
            (
                name,
                row["cliques"],
                number(row["cross_entropy_bits"], 4),
                number(row["confusion"], 4),
                row["clique_errors"],
                percent(row["clique_error_rate"], 2),
            )
            for name, row in rows
        ],
        title=f"{len(runs)} carved databases, preset {preset}, calibrated without labels",
    )
    bits, scale = best_scale(
        join([run[0] for run in runs]), np.concatenate([run[1] for run in runs])
    )
    expected = sum(float((1.0 - run[2].best_low).sum()) for run in runs)
    observed = sum(int(run[2].wrong.sum()) for run in runs)
    text(f"EER of the needed pairs, mean of databases {100 * np.mean([r[3] for r in runs]):.1f} %")
    text(f"wrong cliques: expected {expected:.1f}, observed {observed}")
    text(f"a_min/a {number(scale, 2)}, {number(bits, 4)} bits after it")


if __name__ == "__main__":
    main()
