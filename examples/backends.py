"""Back-ends on vectors, without labels and with: cosine, link-WCCN, PLDA.

    python examples/backends.py conversations.csv key.csv NAME=VECTORS.npz … [--seeds 20]

A file of vectors has the arrays conversation, channel (from 1), embedding (sides, width) and, for
calibration by the seconds of speech, seconds. Databases of small cliques are carved from the calls
(carve.py), always with the same two halves of the speakers, which never meet in a clique: the form
of PLDA was chosen on the first half. Covariances for one half are learned from the other half's
calls of the same database: without labels, or from the key. With --as-is the table is taken as it
is, and all of it is reported.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from carve import carve, write
from spklink.calibration.choice import Calibrated, Choice, calibrated
from spklink.calibration.pairs import Pairs, make_pairs
from spklink.cli.show import number, percent, table, text
from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.database.links import Links, find_links, needed_sides
from spklink.database.sides import speakers_on
from spklink.measures.detection import measure
from spklink.measures.reliability import error_interval
from spklink.posterior.truth import CliqueScores, score_cliques
from spklink.recognizers import link_wccn, normalise
from spklink.scores.needed import SideScores, known_non_targets

SHORTEST = 2.0  # seconds of speech that a side needs
ROUNDS = 3  # of learning without labels, where it is done again and again


@dataclass(frozen=True)
class Vectors:
    """What a recognizer made of the sides of a table."""

    units: np.ndarray  # (S, width) centred, at length one
    usable: np.ndarray  # (S,)
    seconds: np.ndarray | None

    @classmethod
    def read(cls, path: Path, people: Conversations) -> Vectors:
        with np.load(path, allow_pickle=False) as found:
            names, channels = found["conversation"].tolist(), found["channel"].tolist()
            where = {
                (name, k): row for row, (name, k) in enumerate(zip(names, channels, strict=True))
            }
            rows = [
                where[people.ids[m], track + 1]
                for m, track in zip(people.sides.conversation, people.sides.position, strict=True)
            ]
            vectors = found["embedding"][rows].astype(np.float64)
            seconds = found["seconds"][rows] if "seconds" in found else None
        usable = np.ones(len(rows), bool) if seconds is None else seconds >= SHORTEST
        vectors -= vectors[usable].mean(axis=0)
        length = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return cls((vectors / length).astype(np.float32), usable, seconds)


@dataclass(frozen=True)
class Database:
    """A table with vectors, and the truth to measure by."""

    people: Conversations
    vectors: Vectors
    truth: np.ndarray  # (M,) bits

    @cached_property
    def links(self) -> Links:
        return find_links(self.people)

    def pairs(self, scores) -> Pairs:
        """Needed pairs and known non-targets, scored by a function of two lists of sides."""
        usable, rng = self.vectors.usable, np.random.default_rng([0, 1])
        others = known_non_targets(self.people, rng, usable, np.arange(len(usable)))
        needed = scores(*needed_sides(self.links, self.people.sides))
        sample = SideScores(*others, scores(*others))
        seconds = self.vectors.seconds
        return make_pairs(self.people, self.links, needed, sample, seconds=seconds, usable=usable)

    def cosine(self) -> Pairs:
        units = self.vectors.units

        def of(rows, columns):
            return units[rows] @ units[columns].T

        fitted = normalise.fit(of, self.people, self.vectors.usable, seed=0)

        def scores(one, two):
            plain = np.einsum("pd,pd->p", units[one], units[two]).astype(np.float64)
            return fitted.apply(plain, one, two)

        return self.pairs(scores)

    def calibrated(self, pairs: Pairs, kind: str | None) -> Calibrated:
        return calibrated(self.people, pairs, Choice(kind=kind))

    def expected(self, found: Calibrated, pairs: Pairs) -> np.ndarray:
        """(C,) how probable each candidate is the shared speaker of its link."""
        chance = found.answer.candidate_probabilities(self.links)
        return chance * pairs.usable[pairs.candidates]

    def known(self, pairs: Pairs) -> np.ndarray:
        """(C,) the same, by the key."""
        on = speakers_on(self.people, self.truth)
        entry = self.people.listing.start[self.links.first[self.links.pair]]
        who = self.people.people[entry + self.links.position_first]
        one, two = link_wccn.candidate_sides(self.links, self.people.sides)
        who = who[link_wccn.link_of_candidates(self.links, self.people.sides)]
        return ((on[one] == who) & (on[two] == who) & pairs.usable[pairs.candidates]).astype(float)

    def again(self, pairs: Pairs, same: np.ndarray, back_end: str) -> Pairs:
        """With a second comparison, as these links teach."""
        units, usable = self.vectors.units, self.vectors.usable
        found = link_wccn.fit(
            *(self.people, self.links, same, lambda sides: units[sides], usable),
            seed=0,
            back_end=back_end,
        )
        if isinstance(found, str):
            raise SystemExit(found)
        one, two = needed_sides(self.links, self.people.sides)
        others = pairs.non_targets
        return pairs.added(found.scores(one, two), found.scores(others.side_1, others.side_2))


def compared(data: Database, kind: str | None) -> dict[str, tuple[Calibrated, Pairs]]:
    """Every back-end on one database."""
    first = data.cosine()
    once = data.calibrated(first, kind)
    found = {"cosine": (once, first)}

    def put(name: str, pairs: Pairs) -> Calibrated:
        found[name] = data.calibrated(pairs, kind), pairs
        return found[name][0]

    same = data.expected(once, first)
    put("link-WCCN, no labels", data.again(first, same, "wccn"))
    again = put("PLDA, no labels", data.again(first, same, "plda"))
    for _ in range(ROUNDS - 1):
        again = put(
            f"PLDA, no labels, {ROUNDS} rounds",
            data.again(first, data.expected(again, first), "plda"),
        )
    put("PLDA, true labels", data.again(first, data.known(first), "plda"))
    return found


def eer(data: Database, pairs: Pairs) -> float:
    """Of all scores there are: linked calls, and certainly different people."""
    on = speakers_on(data.people, data.truth)
    one, two = needed_sides(data.links, data.people.sides)
    same = (on[one] == on[two]) & pairs.usable
    other = pairs.scores[(on[one] != on[two]) & pairs.usable]
    return measure(pairs.scores[same], np.concatenate([other, pairs.non_targets.score])).eer


Part = tuple[CliqueScores, np.ndarray]  # a database, and which of its cliques are meant


def row(name: str, parts: list[Part], eers: list[float]) -> tuple:
    bits, wrong, chance = (
        np.concatenate([value(scores)[here] for scores, here in parts])
        for value in (
            lambda s: s.per_conversation,
            lambda s: s.wrong,
            lambda s: 1.0 - s.best_low,
        )
    )
    low, high = error_interval(chance)
    return (
        name,
        percent(float(np.mean(eers)), 2),
        len(bits),
        number(float(bits.mean()), 5),
        percent(float(wrong.mean()), 2),
        int(wrong.sum()),
        f"{chance.sum():.1f} ({low} to {high})",
    )


def carved(given, source: Conversations, half: np.ndarray):
    """Databases, and of every conversation the half its people are in."""
    if given.as_is:
        yield source, np.ones(len(source), np.int64)
        return
    where = {name: int(h) for name, h in zip(source.speakers, half, strict=True)}
    for seed in range(given.seeds):
        folder = given.work / f"halves-{seed}"
        made = read_conversations(write(source, carve(source, seed, half), folder))
        yield made, np.array([where[made.names(m)[0]] for m in range(len(made))])


def measured(given, path: Path, source: Conversations) -> None:
    half = np.random.default_rng([0, 99]).permutation(len(source.speakers)) % 2
    parts: dict[tuple[str, int], list[Part]] = {}
    eers: dict[str, list[float]] = {}
    for people, of_call in carved(given, source, half):
        data = Database(people, Vectors.read(path, people), read_key(given.key, people).bits)
        of_clique = np.zeros(len(find_cliques(people)), np.int64)
        of_clique[find_cliques(people).label] = of_call
        for name, (found, pairs) in compared(data, given.kind).items():
            scores = score_cliques(found.answer.bits, data.truth)
            eers.setdefault(name, []).append(eer(data, pairs))
            for h in (0, 1):
                parts.setdefault((name, h), []).append((scores, of_clique == h))
    titles = {1: "all" if given.as_is else "second half: reported"}
    titles = titles if given.as_is else {0: "first half: chosen on"} | titles
    for h, title in titles.items():
        table(
            ["back-end", "EER", "cliques", "bits", "E", "wrong", "expected (95 %)"],
            [row(name, parts[name, h], eers[name]) for name in eers],
            title=f"{given.name}, {title}",
        )
        text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("vectors", nargs="+", help="NAME=FILE.npz")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("carved"))
    parser.add_argument("--kind", help="form of the calibration")
    parser.add_argument("--as-is", action="store_true", help="carve nothing")
    given = parser.parse_args()
    source = read_conversations(given.table)
    for one in given.vectors:
        given.name, _, path = one.partition("=")
        measured(given, Path(path), source)


if __name__ == "__main__":
    main()
