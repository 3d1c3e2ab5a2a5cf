"""What turns are worth on real calls, as they are and made worse.

    python examples/turn_cues.py DATA --what A     turns alone, without voices, degraded
    python examples/turn_cues.py DATA --what B     with voices: turns for half of the calls
    python examples/turn_cues.py DATA --what C     two people who only talk to each other

DATA is a folder with conversations.csv, key.csv, turns.csv and recordings. What is heard is kept in
--cache, so that a second run is quick.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from carve import carve
from spklink import evaluate, link
from spklink.cues.cue import odds_in
from spklink.cues.turns import Spoken, TurnCue, of_table
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.formats.turns import read_turns
from spklink.measures.cues import measure_odds
from spklink.sound.listening import Sound, hear
from spklink.sound.loudness import Loudness

Turns = list[tuple[int, float, float]]
Worse = Callable[[Turns, np.random.Generator], Turns]


def jitter(spread: float) -> Worse:
    def worse(turns: Turns, rng: np.random.Generator) -> Turns:
        return [one for t in turns for one in _moved([t], rng.normal(0.0, spread))]

    return worse


def offset(most: float) -> Worse:
    return lambda turns, rng: _moved(turns, rng.uniform(-most, most))


def dropped(share: float) -> Worse:
    def worse(turns: Turns, rng: np.random.Generator) -> Turns:
        kept = [t for t in turns if rng.random() >= share]
        return kept or [turns[rng.integers(len(turns))]]

    return worse


def given_away(share: float) -> Worse:
    return lambda turns, rng: [
        (1 - who if rng.random() < share else who, a, b) for who, a, b in turns
    ]


def coarse(seconds: float) -> Worse:
    return lambda turns, rng: [
        (who, seconds * np.floor(a / seconds), seconds * np.ceil(b / seconds))
        for who, a, b in turns
    ]


def _moved(turns: Turns, by: float) -> Turns:
    return [(who, max(a + by, 0.0), b + by) for who, a, b in turns if b + by > 0.0]


def unrelated(turns: Turns, rng: np.random.Generator) -> Turns:
    """Turns of another call: as long, drawn anew."""
    shuffled = rng.permutation(len(turns))
    found, now = [], 0.0
    for k in shuffled:
        who, a, b = turns[k]
        now += rng.exponential(0.5)
        found.append((who if rng.random() < 0.5 else 1 - who, now, now + b - a))
        now += b - a
    return found


CASES: dict[str, Worse] = {
    "as they are": lambda turns, rng: turns,
    "jitter .5 s": jitter(0.5),
    "jitter 2 s": jitter(2.0),
    "offset to ± 10 s": offset(10.0),
    "50 % dropped": dropped(0.5),
    "90 % dropped": dropped(0.9),
    "10 % given away": given_away(0.1),
    "30 % given away": given_away(0.3),
    "one turn only": lambda turns, rng: [turns[rng.integers(len(turns))]],
    "in steps of 5 s": coarse(5.0),
    "unrelated": unrelated,
}


def degraded(data: Path, cache: Path, seeds: int) -> None:
    table = read_conversations(data / "conversations.csv")
    begun = time.process_time()
    sound = hear(table, Loudness(), cache / "features", min_speech=2.0, skip_bad=False)
    print(f"heard (or found in the cache) in {time.process_time() - begun:.1f} s")
    truth = read_key(data / "key.csv", table).bits
    turns = of_table(read_turns(data / "turns.csv"), table)
    print(
        f"{'turns':18} {'wrong':>6} {'expected':>8} {'bits':>7} {'settled':>7} {'seconds':>7}"
        "   expected/wrong/calls at .5-.75, .75-.9, .9-.99, above"
    )
    for name, worse in CASES.items():
        rows = [_case(table, sound, turns, truth, worse, seed) for seed in range(seeds)]
        wrong, expected, bits, settled, seconds = np.mean([row[:5] for row in rows], axis=0)
        bins = np.sum([row[5] for row in rows], axis=0) / seeds
        told = "  ".join(f"{e:.1f}/{w:.1f}/{n:.0f}" for e, w, n in bins)
        print(
            f"{name:18} {wrong:6.1f} {expected:8.1f} {bits:7.4f} {settled:7.1f} {seconds:7.1f}"
            f"   {told}"
        )


def _case(
    table: Conversations,
    sound: Sound,
    turns: list[Spoken],
    truth: np.ndarray,
    worse: Worse,
    seed: int,
) -> tuple[float, float, float, int, float, np.ndarray]:
    rng = np.random.default_rng(seed)
    changed = [Spoken(worse(list(one.turns), rng), (), one.where) for one in turns]
    begun = time.process_time()
    cue = TurnCue(table, changed, sound.levels)
    odds = odds_in(table, cue.terms(table).seat)
    seconds = time.process_time() - begun
    row = measure_odds("turns", odds, truth, np.arange(len(table)))
    chance = 1.0 / (1.0 + np.exp(np.abs(odds)))
    wrong = ((odds > 0) != (truth == 1)).astype(np.float64)
    place = np.searchsorted([0.25, 0.1, 0.01][::-1], chance)[:, None] == [3, 2, 1, 0]
    bins = np.stack([chance @ place, wrong @ place, place.sum(axis=0)], axis=1)
    return row.wrong, row.expected_wrong, row.bits, int((chance <= 0.01).sum()), seconds, bins


def with_voices(
    data: Path, cache: Path, seeds: int, cliques: Callable[..., list[list[int]]]
) -> None:
    table = read_conversations(data / "conversations.csv")
    with (data / "turns.csv").open() as file:
        every = list(csv.DictReader(file))
    print(
        f"{'seed':4} {'calls':>5} {'cliques':>7} {'evidence':9} {'says':>5} {'wrong':>6} "
        f"{'expected':>8} {'bits':>7} {'cliques wrong':>13} {'bits open':>9}"
    )
    for seed in range(seeds):
        rows, names = [], []
        for k, clique in enumerate(cliques(table, seed)):
            for m in clique:
                names.append(table.ids[m])
                rows.append(
                    {
                        "conversation": table.ids[m],
                        "audio": str((data / table.audio[m][0]).resolve()),
                        "participants": ";".join(table.names(m)),
                        "group": f"clique{k}",
                    }
                )
        half = set(np.random.default_rng(seed).permutation(names)[: len(names) // 2].tolist())
        turns = [row for row in every if row["conversation"] in half]
        found = link(rows, cache=cache, turns=turns, list_errors=0.0, report=False, seed=0)
        for row in evaluate(found, data / "key.csv").cues:
            print(
                f"{seed:4} {len(rows):5} {len(found.evidence.cliques):7} {row.name:9} "
                f"{row.says:5} {row.wrong:6.1f} {row.expected_wrong:8.2f} {row.bits:7.4f} "
                f"{row.clique_errors:13} {row.open_bits:9.2f}"
            )


def two_people(table: Conversations, seed: int) -> list[list[int]]:
    """All calls of pairs of people who have two or more: cliques that no voice resolves. Nobody is
    in two of them."""
    calls: dict[frozenset[str], list[int]] = {}
    for m in range(len(table)):
        calls.setdefault(frozenset(table.names(m)), []).append(m)
    found = [one for one in calls.values() if len(one) > 1]
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[k] for k in order[: 2 * len(order) // 3]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--what", choices=("A", "B", "C"), default="A")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path("turn-cues-cache"))
    asked = parser.parse_args()
    if asked.what == "A":
        degraded(asked.data, asked.cache, asked.seeds)
    else:
        shape = carve if asked.what == "B" else two_people
        with_voices(asked.data, asked.cache, asked.seeds, shape)


if __name__ == "__main__":
    main()
