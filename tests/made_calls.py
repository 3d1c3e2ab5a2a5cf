"""A few short calls of artificial voices, with their truth."""

from __future__ import annotations

import csv
import itertools
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from spklink.worlds.voices import RATE, call, make_voices

# Two circles of three people, everyone calls everyone; one pair that only calls each other.
PAIRS = [*itertools.combinations("abc", 2), *itertools.combinations("def", 2), ("g", "h")] * 2


def write_calls(folder: Path) -> Path:
    """Fourteen calls of ten seconds with truth."""
    rows, key = [], []
    for k, (pair, (first, samples)) in enumerate(zip(PAIRS, spoken(), strict=True)):
        soundfile.write(folder / f"{k}.wav", samples, RATE)
        rows.append((f"c{k}", f"{k}.wav", ";".join(pair)))
        key.append((f"c{k}", 1, first))
    write_table(folder / "conversations.csv", ["conversation", "audio", "participants"], rows)
    write_table(folder / "key.csv", ["conversation", "channel", "speaker"], key)
    return folder


@cache
def spoken() -> list[tuple[str, NDArray[np.int16]]]:
    """Who is on channel 1 of each call, and its sound; made once, as many tests use it."""
    rng = np.random.default_rng(5)
    cast = dict(zip("abcdefgh", make_voices(8, rng), strict=True))
    calls = []
    for k, pair in enumerate(PAIRS):
        first, second = pair if rng.random() < 0.5 else pair[::-1]
        calls.append((first, call(cast[first], cast[second], np.random.default_rng(k), 10.0)))
    return calls


def write_table(path: Path, columns, rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
