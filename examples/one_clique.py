"""A second comparison where all people hang together: is it honest, and does it help?

    python examples/one_clique.py [--databases 8]

Simulated vectors: 200 people in a ring, each speaks with the next and with some of the next but
one, so that all calls are one clique; the recordings of a person scatter most in ten directions of
eighty. Prints bits a call, wrong calls and how many the posterior expects, with folds of people
(module link_folds) and without, where covariances judge the calls that they were learned from.
"""

from __future__ import annotations

import argparse

import numpy as np

from backends import Database, Vectors
from spklink.cli.show import number, table
from spklink.database.conversations import make_conversations
from spklink.database.links import needed_sides
from spklink.database.sides import speakers_on
from spklink.measures.reliability import error_interval
from spklink.recognizers import link_wccn, normalise

PEOPLE, WIDTH = 200, 80


def made(seed: int) -> Database:
    rng = np.random.default_rng(seed)
    pairs = [(i, (i + 1) % PEOPLE) for i in range(PEOPLE)]
    pairs += [(i, (i + 2) % PEOPLE) for i in range(PEOPLE) if rng.random() < 0.5]
    order = rng.permutation(len(pairs))
    people = make_conversations(
        (f"c{k}", f"s{pairs[at][0]}", f"s{pairs[at][1]}") for k, at in enumerate(order)
    )
    truth = rng.integers(0, 2, len(people)).astype(np.int8)
    on = speakers_on(people, truth)
    spread = np.where(np.arange(WIDTH) < 10, 3.0, 1.0)
    vectors = spread * rng.standard_normal((len(on), WIDTH))
    vectors += 0.75 * rng.standard_normal((PEOPLE, WIDTH))[on]
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    usable = np.ones(len(on), bool)
    return Database(people, Vectors(vectors.astype(np.float32), usable, None), truth)


def without_folds(data: Database, pairs, same: np.ndarray, back_end: str):
    """Judged by what it taught itself."""
    units, usable = data.vectors.units, data.vectors.usable
    one, two = link_wccn.candidate_sides(data.links, data.people.sides)
    every = np.arange(len(units))
    reduced = link_wccn.principal_components(lambda sides: units[sides], usable, 0, every)
    scatter = link_wccn.within_scatter(reduced, one, two, same)
    terms = link_wccn.compared(back_end, reduced, scatter, usable).terms(reduced)
    fitted = normalise.fit(terms.table, data.people, usable, seed=0)

    def scores(one, two):
        return fitted.apply(terms.pairs(one, two), one, two)

    others = pairs.non_targets
    needed = needed_sides(data.links, data.people.sides)
    return pairs.added(scores(*needed), scores(others.side_1, others.side_2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--databases", type=int, default=8)
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for seed in range(parser.parse_args().databases):
        data = made(seed)
        first = data.cosine()
        once = data.calibrated(first, "lr")
        same, compared = data.expected(once, first), {"cosine": once}
        for name in link_wccn.BACK_ENDS:
            again = data.again(first, same, name)
            compared[f"{name}, folds of people"] = data.calibrated(again, "lr")
            itself = without_folds(data, first, same, name)
            compared[f"{name}, without folds"] = data.calibrated(itself, "lr")
        for name, one in compared.items():
            found.setdefault(name, []).append((one.answer.bits.exchanged, data.truth))
    rows = []
    for name, runs in found.items():
        chance, truth = (np.concatenate(values) for values in zip(*runs, strict=True))
        of_truth = np.where(truth == 1, chance, 1.0 - chance)
        unsure = np.minimum(chance, 1.0 - chance)
        low, high = error_interval(unsure)
        wrong = int((of_truth < 0.5).sum())
        bits = float(-np.log2(np.maximum(of_truth, 1e-300)).mean())
        expected = f"{unsure.sum():.1f} ({low} to {high})"
        rows.append((name, len(truth), number(bits, 4), wrong, expected))
    table(["back-end", "calls", "bits", "wrong", "expected (95 %)"], rows)


if __name__ == "__main__":
    main()
