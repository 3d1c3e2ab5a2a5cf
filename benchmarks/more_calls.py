"""More calls than there are, made out of real ones: for how long a larger database takes.

Copy k of a call is its sound from another moment on (what was before comes last), a little louder
or softer, with a little noise. Half of the copies are calls of other people: every voice in them is
played at 6/7 of its speed, which makes it lower, under another name; one person stays the same,
so that all hang together. 1446 calls made of 420 of 30 people have 59 people and 71,000 links, as a
real corpus of so many calls has. Voices of copies are more alike than those of real calls: such
tables say what a run costs, not how good it is.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

Row = dict[str, str]
SLOWER = 6, 7  # of the speed
NOISE = 0.01  # of every sample: pauses stay as silent as they were


def rows_of(path: Path) -> list[Row]:
    with path.open() as file:
        return list(csv.DictReader(file))


def written(rows: list[Row], path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def by_full_paths(table: Path, folder: Path) -> Path:
    """The same table, to be read from anywhere."""
    rows = rows_of(table)
    full = [row | {"audio": str((table.parent / row["audio"]).resolve())} for row in rows]
    return written(full, folder / "table.csv")


def more_calls(table: Path, key: Path, count: int, folder: Path) -> tuple[Path, Path]:
    """Table and key of `count` calls; `table` has full paths."""
    calls, sides = rows_of(table), rows_of(key)
    common = Counter(row["speaker"] for row in sides).most_common(1)[0][0]
    copies = -(-count // len(calls))
    made, truth, random = list[Row](), list[Row](), np.random.default_rng(0)
    for n in range(count):
        copy, call = divmod(n, len(calls))
        others = 2 * copy >= copies
        own = [row for row in sides if row["conversation"] == calls[call]["conversation"]]
        names = {row["speaker"]: _name(row["speaker"], common, others) for row in own}
        new = {"conversation": f"{calls[call]['conversation']}-{copy}"}
        if copy:
            new["audio"] = str(folder / f"{new['conversation']}.flac")
            lower = [
                int(row["channel"]) - 1 for row in own if names[row["speaker"]] != row["speaker"]
            ]
            _copy(calls[call]["audio"], new["audio"], lower, random)
        listed = (names[one] for one in calls[call]["participants"].split(";"))
        made.append(calls[call] | new | {"participants": ";".join(listed)})
        new.pop("audio", None)
        truth += [row | new | {"speaker": names[row["speaker"]]} for row in own]
    return written(made, folder / "more.csv"), written(truth, folder / "more-key.csv")


def _name(speaker: str, common: str, others: bool) -> str:
    return f"{speaker}-lower" if others and speaker != common else speaker


def _copy(path: str, copy: str, lower: list[int], random: np.random.Generator) -> None:
    """The channels `lower` are played slower."""
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    for channel in lower:
        sound[:, channel] = _slower(sound[:, channel])
    sound = np.roll(sound, int(random.integers(len(sound))), axis=0)
    sound *= 1.0 + NOISE * random.standard_normal(sound.shape, np.float32)
    sound *= 10 ** random.uniform(-0.15, 0.15)
    soundfile.write(copy, np.clip(sound, -1.0, 1.0), rate, "PCM_16")


def _slower(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.resize(soxr.resample(samples, *SLOWER), samples.shape)
