"""People whom no list names, on real calls: who is enrolled is found, and is it sure of itself?

    python examples/enrolment.py conversations.csv key.csv WORK [--what imc] [--half 1]

i   no lists at all: some people are enrolled from one call each (or --recordings), the others are
    nobody to the program; all other calls are asked about
m   mixed knowledge: of some calls the list is hidden, of some one of two names, the rest is right;
    nobody is enrolled; in the last row three people are `?` wherever they are
c   cliques of two people, of one to three calls, each a group of its own: how many bits are open,
    and how many when one of the two is enrolled from another call

All calls are among one half of the speakers (`--half`, or `all`); what was chosen was chosen on
half 0. The recognizer is trained once, on all calls (`voices_once.py`).
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from spklink import link
from spklink.cli.show import number, percent, table, text
from spklink.runs.result import Result
from spoiled import Call, read_calls
from voices_once import TrainedOnce, trained_once

Rows = list[dict[str, str]]
NOBODY = "*"


@dataclass(frozen=True)
class Setting:
    """What all experiments share."""

    calls: list[Call]
    voices: TrainedOnce
    given: argparse.Namespace

    def link(self, rows: Rows, enrol: Rows | None = None, **options) -> Result:
        return link(
            rows,
            recognizer=self.voices,
            cache=self.given.work / "cache",
            workers=self.given.workers,
            enrol=enrol or None,
            report=False,
            **options,
        )

    def people(self) -> list[str]:
        return sorted({who for call in self.calls for who in call.truth})


@dataclass
class Found:
    """Tracks of several databases: who is there, who is said to be, how surely."""

    truth: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    chance: list[float] = field(default_factory=list)
    settled: list[bool] = field(default_factory=list)

    def add(self, result: Result, truth: dict[tuple[str, int], str], asked=None) -> None:
        known = set(result.conversations.speakers)
        for row in result.assignments():
            name, channel, who, chance = row[0], int(row[1]), row[2], float(row[3])
            if asked is None or name in asked:
                there = truth[name, channel]
                self.truth.append(there if there in known else NOBODY)
                self.said.append(who)
                self.chance.append(chance)
                self.settled.append(row[-1] == "settled")

    def row(self, label: str) -> list[str]:
        truth, said = np.array(self.truth), np.array(self.said)
        chance, settled = np.array(self.chance), np.array(self.settled)
        known, wrong = truth != NOBODY, truth != said
        named = said != NOBODY
        missed, alarms = known & ~named, ~known & named
        return [
            label,
            f"{len(truth):,}",
            f"{known.sum():,}",
            f"{missed.sum()} ({percent(missed.sum() / max(known.sum(), 1))})",
            str((known & named & wrong).sum()),
            f"{alarms.sum()} ({percent(alarms.sum() / max((~known).sum(), 1))})",
            f"{wrong.sum()} ({(1.0 - chance).sum():.1f})",
            f"{settled.sum():,} ({(settled & wrong).sum()})",
        ]

    def reliability(self, title: str) -> None:
        right = np.array(self.truth) == np.array(self.said)
        edges = np.array([0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0])
        chance = np.array(self.chance)
        place = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, len(edges) - 2)
        rows = []
        for k in range(len(edges) - 1):
            own = place == k
            if own.any():
                stated, seen = percent(chance[own].mean(), 2), percent(right[own].mean(), 2)
                rows.append([f"{edges[k]:g} to {edges[k + 1]:g}", str(own.sum()), stated, seen])
        table(["probability", "tracks", "stated", "right"], rows, title=title)


# Tracks of people whose voices are known: called someone else, or by a wrong name; tracks of others
# that are named; all that is wrong and how much of it was expected; settled, and how many of these
# are wrong.
COLUMNS = [
    *("", "tracks", "known", "missed", "misnamed", "false", "wrong (exp.)", "settled"),
]


def truth_of(calls: list[Call]) -> dict[tuple[str, int], str]:
    return {(call.name, k): who for call in calls for k, who in enumerate(call.truth, start=1)}


def recordings(people: list[str], calls: list[Call], each: int, rng, used: set[str]) -> Rows:
    """So many calls of every person, each call for one person, and these calls are used up."""
    found = []
    for who in people:
        own = [call for call in calls if who in call.truth and call.name not in used]
        for k in rng.permutation(len(own))[:each]:
            call = own[k]
            used.add(call.name)
            channel = str(call.truth.index(who) + 1)
            found.append({"speaker": who, "audio": call.audio, "channel": channel})
    return found


def rows_of(calls: list[Call], lists: dict[str, list[str]] | None = None) -> Rows:
    return [
        {
            "conversation": call.name,
            "audio": call.audio,
            "participants": ";".join(lists[call.name]) if lists else "",
        }
        for call in calls
    ]


def identification(setting: Setting) -> None:
    """i"""
    rows, people, last = [], setting.people(), None
    for each in setting.given.recordings:
        found = Found()
        for seed in range(setting.given.repetitions):
            rng = np.random.default_rng([seed, each])
            known = sorted(rng.permutation(people)[: round(len(people) * setting.given.known)])
            used: set[str] = set()
            enrol = recordings([str(who) for who in known], setting.calls, each, rng, used)
            asked = [call for call in setting.calls if call.name not in used]
            found.add(setting.link(rows_of(asked), enrol), truth_of(asked))
        rows.append(found.row(f"{each} recording{'s' if each > 1 else ''} each"))
        last = last or found
    share = percent(setting.given.known)
    table(COLUMNS, rows, title=f"i: no lists, {share} of {len(people)} people enrolled")
    if last is not None:
        last.reliability("i: stated and observed, the first row")


def mixed(setting: Setting) -> None:
    """m"""
    rows, last = [], None
    for hidden, half, nowhere in ((0.3, 0.0, 0), (0.0, 0.3, 0), (0.3, 0.3, 0), (0.3, 0.3, 3)):
        found = Found()
        for seed in range(setting.given.repetitions):
            rng = np.random.default_rng([seed, int(100 * hidden), int(100 * half)])
            lists, asked = {}, set()
            strange = set(rng.permutation(setting.people())[:nowhere].tolist())
            for call, draw in zip(setting.calls, rng.random(len(setting.calls)), strict=True):
                names = sorted(call.truth)
                if draw < hidden:
                    names = []
                elif draw < hidden + half:
                    names = [names[int(rng.integers(2))], "?"]
                names = ["?" if who in strange else who for who in names]
                if len(names) < 2 or "?" in names:
                    asked.add(call.name)
                lists[call.name] = names
            result = setting.link(rows_of(setting.calls, lists))
            found.add(result, truth_of(setting.calls), asked)
        label = f"{percent(hidden, 0)} empty, {percent(half, 0)} name;?"
        rows.append(found.row(label + (f", {nowhere} people nowhere" if nowhere else "")))
        last = found
    table(COLUMNS, rows, title="m: calls whose list is empty or has one of two names")
    last.reliability("m: stated and observed, the last row")


def pairs(setting: Setting) -> None:
    """c"""
    rows = []
    for size in (1, 2, 3):
        before, after, wrong, cliques = 0.0, 0.0, 0, 0
        for seed in range(setting.given.repetitions):
            made = cliques_of_two(setting.calls, size, np.random.default_rng([seed, size]))
            used = {row["recording"] for row in made.enrol}
            calls = [call for call in setting.calls if call.name not in used]
            lists = {call.name: sorted(call.truth) for call in calls}
            given = rows_of(calls, lists)
            for row in given:
                row["group"] = made.group.get(row["conversation"], "")
            for k, enrol in enumerate((None, made.enrol)):
                found = Found()
                result = setting.link(given, enrol, list_errors=0.0)
                found.add(result, truth_of(calls), made.group)
                chance = np.clip(np.array(found.chance)[::2], 0.5, 1.0 - 1e-12)
                bits = -(chance * np.log2(chance) + (1.0 - chance) * np.log2(1.0 - chance))
                before += (k == 0) * bits.sum() / size
                after += (k == 1) * bits.sum() / size
            wrong += int((np.array(found.truth) != np.array(found.said))[::2].sum())
            cliques += len(made.enrol)
        counts = [str(size), str(cliques), number(before, 1), number(after, 1)]
        rows.append([*counts, f"{wrong} of {cliques * size}"])
    columns = ["calls", "cliques", "bits open", "when one is enrolled", "calls wrong then"]
    table(columns, rows, title="c: always the same two people")


@dataclass(frozen=True)
class Cliques:
    """Cliques of two people each, every one a group of its own."""

    group: dict[str, str]  # by call
    enrol: Rows


def cliques_of_two(calls: list[Call], size: int, rng) -> Cliques:
    """No person in two of them; the first of each two is enrolled from a call with a third."""
    together, taken = Counter(tuple(sorted(call.truth)) for call in calls), set()
    made = Cliques({}, [])
    for two in [list(together)[k] for k in rng.permutation(len(together))]:
        used = {row["recording"] for row in made.enrol}
        free = [call for call in calls if call.name not in used | set(made.group)]
        own = [call for call in free if tuple(sorted(call.truth)) == two]
        others = [call for call in free if two[0] in call.truth and two[1] not in call.truth]
        if len(own) < size or not others or taken & set(two):
            continue
        taken |= set(two)
        other, name = others[int(rng.integers(len(others)))], f"clique {len(made.enrol)}"
        for k in rng.permutation(len(own))[:size]:
            made.group[own[k].name] = name
        channel = str(other.truth.index(two[0]) + 1)
        row = {"speaker": two[0], "audio": other.audio, "channel": channel, "group": name}
        made.enrol.append(row | {"recording": other.name})
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--what", default="imc")
    parser.add_argument("--half", default="1", choices=("0", "1", "all"))
    parser.add_argument("--known", type=float, default=0.5, help="share of the people enrolled")
    parser.add_argument("--recordings", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    calls = read_calls(given.table, given.key)
    people = sorted({who for call in calls for who in call.truth})
    if given.half != "all":
        half = set(people[int(given.half) :: 2])
        calls = [call for call in calls if set(call.truth) <= half]
    setting = Setting(calls, trained_once(given.table, given.work / "cache"), given)
    text(f"{len(calls)} calls of {len(setting.people())} people, {given.repetitions} times each")
    for what in given.what:
        {"i": identification, "m": mixed, "c": pairs}[what](setting)


if __name__ == "__main__":
    main()
