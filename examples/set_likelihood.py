"""The likelihood of a set of sides by the book of PLDA, against the paper's averaged pairs.

    python examples/set_likelihood.py conversations.csv key.csv NAME=VECTORS.npz … [--seeds 5]

Vectors and databases as in backends.py. The same PLDA, learned without labels from the other half
of the speakers, values every configuration of every clique three ways: each person's sides as one
set (closed form), as the mean of their pairs (the paper's weight), as the sum of their pairs. PLDA
is over-confident, so all values are multiplied by the factor that was best on the first half.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from backends import Database, Vectors, carved
from spklink.cli.show import number, table
from spklink.database.cliques import find_cliques
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.database.sides import track_of
from spklink.recognizers import link_wccn
from spklink.recognizers.link_folds import taught_by
from spklink.recognizers.plda import covariance, of_sums, pair_terms, shrunk, two_covariance

FACTORS = np.geomspace(0.02, 2.0, 41)
WAYS = ("set, closed form", "pairs, averaged", "pairs, summed")


def models(data: Database) -> list[tuple[np.ndarray, np.ndarray]]:
    """(ratio, z) for judging the sides of fold 0 and 1, and which fold each call is in."""
    first = data.cosine()
    same = data.expected(data.calibrated(first, None), first)
    units, usable = data.vectors.units, data.vectors.usable
    scorer = link_wccn.fit(
        *(data.people, data.links, same, lambda sides: units[sides], usable), seed=0
    )
    every = np.arange(len(usable))
    reduced = link_wccn.principal_components(lambda sides: units[sides], usable, 0, every)
    one, two = link_wccn.candidate_sides(data.links, data.people.sides)
    link = link_wccn.link_of_candidates(data.links, data.people.sides)
    taught, heard, found = taught_by(scorer.folds, data.links)[link], reduced[usable], []
    for f in (0, 1):
        by = taught == 1 - f
        scatter = link_wccn.within_scatter(reduced, one[by], two[by], same[by])
        between = covariance(heard) - scatter
        model = two_covariance(heard.mean(axis=0), shrunk(scatter), between)
        found.append((model.ratio, model.turned(reduced)))
    return [found[f] for f in scorer.folds.call]


def values(data: Database, calls: np.ndarray, ratio, z) -> np.ndarray:
    """(3, configurations) of a clique, in the order of WAYS."""
    bits = np.array(list(itertools.product((0, 1), repeat=len(calls))))
    found, terms = np.zeros((3, len(bits))), pair_terms(ratio, z)
    seats: dict[int, list[tuple[int, int]]] = {}
    for i, m in enumerate(calls.tolist()):
        for position, who in enumerate(data.people.people[data.people.listing.of(m)].tolist()):
            seats.setdefault(who, []).append((i, position))
    for places in seats.values():
        sides = np.stack(
            [
                data.people.sides.start[calls[i]] + track_of(np.int8(position), bits[:, i])
                for i, position in places
            ],
            axis=1,
        )
        n, own = len(places), z[sides]
        count = np.full(len(bits), n)
        found[0] += of_sums(ratio, count, own.sum(axis=1), (own**2).sum(axis=1))
        if n > 1:
            a, b = np.triu_indices(n, 1)
            pairs = terms.pairs(sides[:, a].ravel(), sides[:, b].ravel())
            total = pairs.reshape(len(bits), len(a)).sum(axis=1)
            found[1] += 2.0 / n * total
            found[2] += total
    return found


def measured(given, path: Path, source) -> list[tuple]:
    half = np.random.default_rng([0, 99]).permutation(len(source.speakers)) % 2
    bits: dict[tuple[int, int], list[np.ndarray]] = {}  # by half and way: of every factor
    wrong: dict[tuple[int, int], list[bool]] = {}
    for people, of_call in carved(given, source, half):
        data = Database(people, Vectors.read(path, people), read_key(given.key, people).bits)
        model, label = models(data), find_cliques(people).label
        for c in range(label.max() + 1):
            calls = np.flatnonzero(label == c)
            true = int("".join(map(str, data.truth[calls])), 2)
            for way, value in enumerate(values(data, calls, *model[calls[0]])):
                scaled = FACTORS[:, None] * value
                chance = scaled[:, true] - np.logaddexp.reduce(scaled, axis=1)
                key = int(of_call[calls[0]]), way
                bits.setdefault(key, []).append(-chance / np.log(2) / len(calls))
                wrong.setdefault(key, []).append(bool(value.argmax() != true))
    rows = []
    for way, name in enumerate(WAYS):
        first, second = (np.mean(bits[h, way], axis=0) for h in (0, 1))
        best = int(first.argmin())
        bits_shown = [number(v, 5) for v in (first[best], second[best], second.min())]
        errors = f"{sum(wrong[1, way])} of {len(wrong[1, way])}"
        rows.append((given.name, name, number(FACTORS[best], 2), *bits_shown, errors))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("vectors", nargs="+", help="NAME=FILE.npz")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("carved"))
    given = parser.parse_args()
    given.as_is, source, rows = False, read_conversations(given.table), []
    for one in given.vectors:
        given.name, _, path = one.partition("=")
        rows += measured(given, Path(path), source)
    head = ["recognizer", "likelihood", "factor", "first half", "second", "at its best", "wrong"]
    table(head, rows, title="bits a conversation; the factor is the best of the first half")


if __name__ == "__main__":
    main()
