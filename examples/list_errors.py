"""Participant lists with planted mistakes, on real calls: what is found, and is it sure of itself?

    python examples/list_errors.py conversations.csv key.csv WORK [--what abcBdefgh]

a   lists right: small cliques carved as in the paper, `--list-errors auto` against 0
b   5 % of the listed people replaced by another person of the database
c   the same, but whoever is heard in their place is listed nowhere
B   as b, in the carved cliques, with other people of the clique
d   60 calls written `name;?`
e   one call of two people who are listed nowhere, under two other names
f   12 known channels, 6 of them wrong
g   two people under one name; one person under two
h   meetings: two calls each make a session of four tracks, 10 % of the names left out, 10 % added

All but a and B are about calls among one half of the speakers (`--half 1`). The prior of the rate
was chosen on the other half; when to learn calibration again, and from where, on databases of a and
B themselves, whose figures are therefore not of unseen data. The recognizer is
trained once, on all calls (`voices_once.py`).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import spoiled
from carve import carve
from meetings import meetings
from spklink import evaluate, link
from spklink.cli.show import number, percent, table, text
from spklink.database.conversations import read_conversations
from spklink.measures.evaluation import Evaluation
from spklink.measures.seats import Chances, measure_chances
from spklink.runs.result import Result
from spklink.runs.rows import SETTLED, decisions
from spoiled import Call, Spoiled
from voices_once import TrainedOnce, trained_once

SHARE = 0.05  # of the listed people that are replaced


@dataclass(frozen=True)
class Setting:
    """What all experiments share."""

    calls: list[Call]
    half: list[Call]
    voices: TrainedOnce
    given: argparse.Namespace

    def link(self, made: Spoiled, **options) -> Result:
        options = {"known": made.known or None, **options}
        return link(
            made.rows,
            recognizer=self.voices,
            cache=self.given.work / "cache",
            workers=self.given.workers,
            budget_seconds=self.given.budget,
            report=False,
            **options,
        )

    def carved(self, seed: int) -> Spoiled:
        """Small cliques in the paper's proportions, each a group of its own."""
        people = read_conversations(self.given.table)
        at = {call.name: call for call in self.calls}
        groups = carve(people, seed)
        named = [(at[people.ids[m]], f"clique{k}") for k, one in enumerate(groups) for m in one]
        made = spoiled.right([call for call, _ in named])
        return replace(made, groups=[group for _, group in named])


@dataclass
class Found:
    """What repetitions found, one after the other."""

    chance: list[np.ndarray] = field(default_factory=list)  # that a list is wrong
    wrong: list[np.ndarray] = field(default_factory=list)
    elsewhere: list[np.ndarray] = field(default_factory=list)  # other calls of a planted name
    rate: list[float] = field(default_factory=list)
    true_rate: list[float] = field(default_factory=list)
    suggested: list[bool] = field(default_factory=list)  # the right one, where he is listed at all
    settled: list[str] = field(default_factory=list)  # planted names that are, and what speaks

    def add(self, made: Spoiled, result: Result) -> None:
        assert not result.answer.binary
        lists = range(len(made.calls))
        self.chance.append(result.answer.wrong.chance)
        self.wrong.append(np.array([m in made.planted for m in lists]))
        other = [made.elsewhere(m) if m in made.planted else 0 for m in lists]
        self.elsewhere.append(np.array(other))
        self.rate.append(result.answer.rate.value)
        self.true_rate.append(len(made.planted) / sum(map(len, made.lists)))
        self._settled(made, result)
        rows = {row[0]: row[4] for row in result.misfits if row[1] == "absent"}
        for m in made.planted:
            ranked = rows.get(made.calls[m].name)
            there = set(made.calls[m].truth) - set(made.lists[m])
            if ranked is not None and made.listed_elsewhere(m, there):
                first = ranked.split(";")[0].rsplit(" ", 1)[0]
                self.suggested.append(first in there)

    def _settled(self, made: Spoiled, result: Result) -> None:
        assert not result.answer.binary
        people, speaker = result.conversations, result.answer.speaker()
        for side, decision in enumerate(decisions(result.answer, result.usable)):
            m = int(people.sides.conversation[side])
            if decision != SETTLED or m not in made.planted or speaker[side] < 0:
                continue
            if people.speakers[speaker[side]] == made.planted[m]:
                self.settled.append(made.told_by(m))

    def measured(self, fewest: int = 0) -> Chances:
        """Of all lists, or of the right ones and those whose planted name has other calls."""
        chance, wrong, other = map(np.concatenate, (self.chance, self.wrong, self.elsewhere))
        kept = ~wrong | (other >= fewest)
        return measure_chances(chance[kept], wrong[kept])


def show_found(found: Found, title: str) -> None:
    rows = [
        (name, one.observed, one.count, number(one.area, 3), percent(one.recall), share, brier)
        for name, fewest in (("all", 0), ("one or more", 1), ("two or more", 2))
        for one in (found.measured(fewest),)
        for share, brier in ((percent(one.precision), number(one.brier, 4)),)
    ]
    head = ["other calls of the planted name", "wrong", "lists", "ROC area", "recall", "precision"]
    table([*head, "Brier"], rows, title=title)
    table(
        ["stated", "lists", "mean", "wrong", "95 % interval"],
        [
            (
                f"{one.low:g} to {one.high:g}",
                one.count,
                percent(one.predicted),
                percent(one.observed),
                f"{percent(one.observed_low)} to {percent(one.observed_high)}",
            )
            for one in found.measured().reliability
        ],
        title="Probability that a list is wrong, and how often it is",
    )
    rates, hits = found.rate, found.suggested
    text(
        f"rate of list errors: estimated {np.mean(rates):.4f} (from {min(rates):.4f} to "
        f"{max(rates):.4f}), true {np.mean(found.true_rate):.4f}"
    )
    text(
        f"the right person suggested first: {sum(hits)} of {len(hits)} told lists whose right "
        "person is listed in another call of the clique"
    )
    text(
        "planted names settled: "
        + ", ".join(f"{found.settled.count(kind)} {kind}" for kind in spoiled.TOLD_BY)
    )
    text()


def lists_right(setting: Setting, seeds: range) -> None:
    """Experiment a."""
    rows, sums = [], np.zeros((2, 4))
    for seed in seeds:
        made = setting.carved(seed)
        for k, rate in enumerate(("0", "auto")):
            result = setting.link(made, list_errors=rate)
            found: Evaluation = evaluate(result, made.key)
            whole = found.seats.resolvable.cross_entropy_bits if found.seats else None
            row, n = found.resolvable, found.resolvable.cliques
            bits = row.cross_entropy_bits or 0.0
            sums[k] += [n, row.clique_errors, n * bits, n * (bits if whole is None else whole)]
            estimate = result.answer.rate.value if result.answer else 0.0
            rows.append((seed, rate, n, row.clique_errors, number(bits, 4), number(whole, 4)))
            rows[-1] += (f"{estimate:.5f}", found.seats.lists.errors if found.seats else "-")
        print(*rows[-2:], sep="\n", flush=True)
    for name, (n, wrong, bits, whole) in zip(("0", "auto"), sums, strict=True):
        share, mean = percent(wrong / n, 2), number(bits / n, 4)
        rows.append(("all", name, int(n), int(wrong), mean, number(whole / n, 4), share, ""))
    head = ["database", "--list-errors", "cliques", "wrong", "bits given right lists", "bits"]
    table([*head, "rate, or E", "lists called wrong"], rows, title="a. Lists that are right")


def replaced(setting: Setting, seeds: range, kind: str) -> None:
    """Experiments b, c and B."""
    found = Found()
    for seed in seeds:
        rng = np.random.default_rng([seed, ord(kind)])
        if kind == "c":
            made = spoiled.outside(setting.half, SHARE, rng)
        else:
            start = setting.carved(seed) if kind == "B" else spoiled.right(setting.half)
            made = spoiled.inside(start, SHARE, rng)
        found.add(made, setting.link(made))
        print(
            f"{kind} {seed}: {found.wrong[-1].sum()} planted, rate {found.rate[-1]:.4f}", flush=True
        )
    what = {
        "b": "b. Replaced by another person of the database",
        "c": "c. Somebody heard who is listed nowhere",
        "B": "B. Carved cliques: replaced by another person of the clique",
    }
    show_found(found, f"{what[kind]} ({len(seeds)} databases)")


def unknown_partners(setting: Setting, seeds: range) -> None:
    """Experiment d."""
    rows = []
    for seed in seeds:
        made = spoiled.with_unknown(setting.half, np.random.default_rng([seed, ord("d")]))
        seats = evaluate(setting.link(made), made.key).seats
        assert seats is not None
        one = seats.tracks
        rows.append((seed, one.tracks, one.named, one.wrong_named, one.settled, one.wrong_settled))
        print(*rows[-1], flush=True)
    head = ["database", "tracks", "named", "wrong", "settled", "settled and wrong"]
    table(head, rows, title="d. 60 calls `name;?`")


def whole_call(setting: Setting, seeds: range) -> None:
    """Experiment e."""
    hits, stated = 0, []
    for seed in seeds:
        made = spoiled.both_outside(setting.half, np.random.default_rng([seed, ord("e")]))
        result = setting.link(made)
        stated.append(float(result.answer.wrong.chance[-1]))
        hits += any(row[0] == made.calls[-1].name for row in result.misfits)
    text(
        f"e. A call of two strangers: told {hits} of {len(seeds)} times, more probably wrong than "
        f"right {sum(p > 0.5 for p in stated)} times; least probability {min(stated):.3f}"
    )


def known_channels(setting: Setting, seeds: range) -> None:
    """Experiment f."""
    told = wrong = alarms = 0
    for seed in seeds:
        made = spoiled.wrongly_known(setting.half, np.random.default_rng([seed, ord("f")]))
        truth = {(row["conversation"], row["channel"]): row["speaker"] for row in made.key}
        bad = {
            row["conversation"]
            for row in made.known
            if truth[row["conversation"], row["channel"]] != row["speaker"]
        }
        flagged = {row[0] for row in setting.link(made).misfits if row[1] == "known channel"}
        told, wrong, alarms = (
            told + len(bad & flagged),
            wrong + len(bad),
            alarms + len(flagged - bad),
        )
    text(f"f. Known channels that are wrong: told {told} of {wrong}; {alarms} right ones told")


def names(setting: Setting, seeds: range) -> None:
    """Experiment g."""
    counts = {"two people": [0, 0], "one person": [0, 0]}
    for seed in seeds:
        for kind, plant in (
            ("two people", spoiled.one_name_for_two),
            ("one person", spoiled.two_names_for_one),
        ):
            made, (one, two) = plant(setting.half, np.random.default_rng([seed, ord("g")]))
            rows = [row for row in setting.link(made).misfits if row[1] in counts]
            wanted = {one} if kind == "two people" else {one, two}
            hit = [row for row in rows if row[1] == kind and set(row[3].split(";")) == wanted]
            counts[kind][0] += bool(hit)
            counts[kind][1] += len(rows) - len(hit)
    for kind, (hits, others) in counts.items():
        text(f"g. {kind}: found {hits} of {len(seeds)}; {others} others told")


def in_meetings(setting: Setting, seeds: range) -> None:
    """Experiment h."""
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([seed, ord("h")])
        made = meetings(setting.half, setting.given.work / "tracks", rng)
        seats = evaluate(setting.link(made), made.key).seats
        assert seats is not None
        tracks, there = seats.tracks, seats.presence
        wrong = tracks.wrong_named + tracks.wrong_strangers
        rows.append(
            (
                *(seed, len(made.calls), tracks.tracks, wrong, number(tracks.expected_wrong, 1)),
                *(tracks.settled, tracks.wrong_settled, there.count, there.errors),
                *(number(there.expected_errors, 1), number(there.cross_entropy_bits, 3)),
                number(seats.rate, 3),
            )
        )
        print(*rows[-1], flush=True)
    head = ["seed", "sessions", "tracks", "wrong", "expected", "settled", "wrong", "listings"]
    head += ["presence errors", "expected", "bits", "rate"]
    table(head, rows, title="h. Sessions of four tracks")


EXPERIMENTS = {
    "a": lists_right,
    **{k: lambda setting, seeds, k=k: replaced(setting, seeds, k) for k in "bcB"},
    "d": unknown_partners,
    "e": whole_call,
    "f": known_channels,
    "g": names,
    "h": in_meetings,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--what", default="abcBdefgh")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--half", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60.0)
    given = parser.parse_args()
    calls = spoiled.read_calls(given.table, given.key)
    voices = trained_once(given.table, given.work / "cache")
    setting = Setting(calls, spoiled.half_of(calls, given.half), voices, given)
    for name in given.what:
        EXPERIMENTS[name](setting, range(given.repetitions))


if __name__ == "__main__":
    main()
