"""What turns are worth in diarized recordings: tracks are segments of one channel, not channels.

    python examples/meeting_turns.py DATA [--voices]

DATA is a folder with conversations.csv, key.csv (conversation,track,speaker), recordings and rttm/.
The turns are the segments with the names of the people, as they are and made worse; who is on which
track has to be found again. With --voices the voices are compared too.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from spklink import Result, link
from turn_cues import dropped, jitter, offset

Rows = dict[str, list[tuple[int, float, float]]]
CASES = {
    "as they are": lambda turns, rng: turns,
    "jitter .5 s": jitter(0.5),
    "jitter 2 s": jitter(2.0),
    "offset to ± 5 s": offset(5.0),
    "50 % dropped": dropped(0.5),
    "10 % given away": lambda turns, rng: given_away(turns, rng, 0.1),
    "30 % given away": lambda turns, rng: given_away(turns, rng, 0.3),
    "unrelated": lambda turns, rng: unrelated(turns, rng),
}


def given_away(turns: list, rng: np.random.Generator, share: float) -> list:
    """Some turns are said to be of another of the people."""
    people = sorted({who for who, _, _ in turns})
    return [(int(rng.choice(people)) if rng.random() < share else who, a, b) for who, a, b in turns]


def unrelated(turns: list, rng: np.random.Generator) -> list:
    """Turns as long, of anybody and at any time."""
    end, people = max(b for _, _, b in turns), sorted({who for who, _, _ in turns})
    begin = [float(rng.uniform(0.0, max(end - (b - a), 0.1))) for _, a, b in turns]
    return [
        (int(rng.choice(people)), at, at + b - a)
        for at, (_, a, b) in zip(begin, turns, strict=True)
    ]


def read(data: Path) -> tuple[dict[tuple[str, str], str], dict[str, list[str]], Rows]:
    """The key, the people of each conversation, and its turns."""
    with (data / "key.csv").open() as file:
        key = {(row["conversation"], row["track"]): row["speaker"] for row in csv.DictReader(file)}
    people: dict[str, list[str]] = {}
    for (conversation, _), who in key.items():
        people.setdefault(conversation, []).append(who)
    turns: Rows = {}
    for path in sorted((data / "rttm").glob("*.rttm")):
        for line in path.read_text().splitlines():
            kind, name, _, start, lasts, _, _, track, *_ = line.split()
            if kind == "SPEAKER":
                who = people[name].index(key[name, track])
                row = who, float(start), float(start) + float(lasts)
                turns.setdefault(name, []).append(row)
    return key, people, turns


def measured(found: Result, key: dict[tuple[str, str], str]) -> tuple[int, int, float, int]:
    """Tracks, wrong ones, expected wrong ones, settled ones."""
    where, table = found.conversations.index(), found.conversations
    count = wrong = settled = 0
    expected = 0.0
    for name, track, who, chance, *_ in found.assignments():
        label = table.tracks(where[name])[int(track) - 1]
        count += 1
        wrong += who != key[name, label]
        settled += float(chance) >= 0.99
        expected += 1.0 - float(chance)
    return count, wrong, expected, settled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--voices", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path("turn-cues-cache"))
    asked = parser.parse_args()
    key, people, turns = read(asked.data)
    print(f"{'turns':18} {'tracks':>6} {'wrong':>6} {'expected':>8} {'settled':>7}")
    for name, worse in CASES.items():
        rows = []
        for seed in range(asked.seeds):
            rng = np.random.default_rng(seed)
            given = [
                {"conversation": m, "speaker": people[m][who], "start": a, "end": b}
                for m, some in turns.items()
                for who, a, b in worse(some, rng)
                if b > a
            ]
            found = link(
                asked.data / "conversations.csv",
                tracks=asked.data / "rttm",
                turns=given,
                recognizer="gmm-ubm" if asked.voices else "none",
                components=64 if asked.voices else None,
                min_speech=0.5,
                list_errors=0.0,
                cache=asked.cache,
                report=False,
            )
            rows.append(measured(found, key))
        count, wrong, expected, settled = np.mean(rows, axis=0)
        print(f"{name:18} {count:6.0f} {wrong:6.1f} {expected:8.2f} {settled:7.1f}")


if __name__ == "__main__":
    main()
