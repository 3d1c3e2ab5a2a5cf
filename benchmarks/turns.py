"""What turns cost beside listening: processor seconds of one process, real calls.

SPKLINK_DATA=… python benchmarks/turns.py [--calls 420]
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spklink.cues.cue import chances_of_odds
from spklink.cues.turns import Spoken, TurnCue, of_table
from spklink.database.conversations import Conversations, read_conversations
from spklink.formats.turns import read_turns
from spklink.sound.features import Cepstra
from spklink.sound.listening import Sound, hear
from spklink.sound.loudness import Loudness
from spklink.tables import read_table
from timing import say_where


def first_calls(data: Path, count: int) -> Conversations:
    lines = read_table(data / "conversations.csv").data.decode().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    kept = [replace_audio(row, data) for row in rows[:count]]
    return read_conversations(kept)


def replace_audio(row: dict[str, str], data: Path) -> dict[str, str]:
    return row | {"audio": str(data / row["audio"])}


def spoken_in(table: Conversations, data: Path) -> list[Spoken]:
    given, known = read_turns(data / "turns.csv"), set(table.ids)
    files = [
        replace(one, turns=[t for t in one.turns if t.conversation in known]) for one in given.files
    ]
    return of_table(replace(given, files=files), table)


def weigh(table: Conversations, sound: Sound, spoken: list[Spoken]) -> None:
    """Turns by themselves, and once more with a witness."""
    cue = TurnCue(table, spoken, sound.levels)
    cue.terms(table)
    cue.terms(table, chances_of_odds(table, np.full(len(table), 2.0)))


def main() -> None:
    say_where()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=420)
    asked = parser.parse_args()
    data = Path(os.environ["SPKLINK_DATA"]) / "harpervalley"
    table, few = (first_calls(data, count) for count in (asked.calls, 4))
    spent = {}
    with TemporaryDirectory() as folder:
        for front_end in (Loudness(), Cepstra()):
            name = type(front_end).__name__
            hear(few, front_end, Path(folder) / "warm", min_speech=2.0, skip_bad=False)
            begun = time.process_time()
            sound = hear(table, front_end, Path(folder), min_speech=2.0, skip_bad=False)
            spent[name] = time.process_time() - begun
        spoken = spoken_in(table, data)
        weigh(table, sound, spoken)
        begun = time.process_time()
        weigh(table, sound, spoken)
        spent["turns"] = time.process_time() - begun
    for name, label in (("Loudness", "levels alone"), ("Cepstra", "features of a run with voices")):
        share = spent["turns"] / spent[name]
        print(f"listening, {label}: {spent[name]:.2f} s; turns {spent['turns']:.2f} s, {share:.1%}")


if __name__ == "__main__":
    main()
