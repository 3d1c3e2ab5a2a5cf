"""Whether the model of turns is more than what it was chosen on: chosen on half of the people.

    python examples/turn_choices.py DATA

Variants of the model (are brief turns worth less, do given-away turns come in runs, how often are
turns given away before any is seen) are tried on calls between people of one half, all ways to make
turns worse together, with seeds that no table uses. The one with the least bits is then measured on
calls between people of the other half, beside the one that spklink has; and the other way round.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from spklink.cues.turn_model import TurnModel, Worth, decide, learn
from spklink.cues.turn_votes import Voter, contrasts, voters
from spklink.cues.turns import of_table
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.formats.turns import read_turns
from spklink.sound.listening import hear
from spklink.sound.loudness import Loudness
from turn_cues import CASES

SEEDS = (100, 101)
FIXED = 1e9  # what a guess is worth that nothing can move
Case = tuple[str, list[Voter]]


def variants() -> dict[str, tuple[TurnModel, Worth]]:
    found = {}
    for other, brief, runs in product((0.05, 0.02, 0.01), (True, False), (True, False)):
        name = f"other {other:g}{', brief' if brief else ''}{', in runs' if runs else ''}"
        first = TurnModel(other=other, stays=0.1 if runs else 0.0, brief=0.25 if brief else 0.03)
        found[name] = first, Worth() if brief else Worth(brief=FIXED)
    return found


SHIPPED = "other 0.01, brief, in runs"


def measured(cases: list[Case], truth: np.ndarray, variant: tuple[TurnModel, Worth]) -> np.ndarray:
    """Calls, wrong, expected wrong, bits in all."""
    first, worth = variant
    sums = np.zeros(4)
    for _, some in cases:
        model = learn(some, first=first, worth=worth)
        odds = np.array([chance[1] - chance[0] for chance in decide(some, model)])
        turned = truth[[voter.conversation for voter in some]] == 1
        right = np.where(turned, odds, -odds)
        wrong = (right < 0.0) + 0.5 * (right == 0.0)
        chance = 1.0 / (1.0 + np.exp(np.abs(odds)))
        bits = np.logaddexp(0.0, -right) / np.log(2.0)
        sums += len(some), wrong.sum(), chance.sum(), bits.sum()
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("turn-cues-cache"))
    asked = parser.parse_args()
    table = read_conversations(asked.data / "conversations.csv")
    cache = asked.cache / "features"
    sound = hear(table, Loudness(), cache, min_speech=2.0, skip_bad=False)
    truth = read_key(asked.data / "key.csv", table).bits
    turns = of_table(read_turns(asked.data / "turns.csv"), table)
    half = np.random.default_rng(0).permutation(len(table.speakers)) % 2
    side = half[table.people.reshape(-1, 2)]
    halves = [np.flatnonzero((side == k).all(axis=1)).tolist() for k in (0, 1)]
    course = {m: contrasts(sound.levels(m)) for calls in halves for m in calls}
    cases: list[list[Case]] = [[], []]
    for name, worse in CASES.items():
        for seed, k in product(SEEDS, (0, 1)):
            rng = np.random.default_rng([seed, k])
            some = []
            for m in halves[k]:
                some += voters(m, course[m], worse(list(turns[m].turns), rng), pair=True)
            cases[k].append((name, some))
    print(f"calls of each half: {len(halves[0])} and {len(halves[1])}")
    print(
        f"{'chosen on':9} {'variant':37} {'bits there':>10} {'wrong':>6} {'expected':>8} "
        f"{'bits':>7}"
    )
    for k in (0, 1):
        there = {name: measured(cases[k], truth, one) for name, one in variants().items()}
        best = min(there, key=lambda name: there[name][3])
        for name in dict.fromkeys((best, SHIPPED, "other 0.05")):
            count, wrong, expected, bits = measured(cases[1 - k], truth, variants()[name])
            mark = " (chosen)" if name == best else ""
            own = there[name][3] / there[name][0]
            print(
                f"half {k + 1:4} {name + mark:37} {own:10.4f} {wrong:6.1f} {expected:8.1f} "
                f"{bits / count:7.4f}"
            )


if __name__ == "__main__":
    main()
