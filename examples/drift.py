"""When a kept model no longer fits: the test of drift on real calls, chosen and reported apart.

    python examples/drift.py conversations.csv WORK [--splits 4]

Calls whose two speakers are both of one half of the people; a model is learned on 60 % of them, the
rest arrive: as they are, or changed by what telephone lines do. Printed are the largest distance
(in spreads) and its standard errors (module `runs/drift.py`), by half: FAR and SURE were chosen on
the first half of the speakers, the second shows what they are worth.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from scipy.signal import butter, sosfilt

from spklink.cli.show import table as show
from spklink.runs import drift, recall
from spklink.runs.link import link

Seen = list[tuple[float, float]]


def low(samples: Any, rate: int, rng: np.random.Generator) -> Any:
    return sosfilt(butter(6, 1500, "low", fs=rate, output="sos"), samples, axis=0)


def high(samples: Any, rate: int, rng: np.random.Generator) -> Any:
    return sosfilt(butter(6, 800, "high", fs=rate, output="sos"), samples, axis=0)


def noise(samples: Any, rate: int, rng: np.random.Generator) -> Any:
    level = np.sqrt((samples**2).mean(axis=0)) * 10 ** (-25 / 20)
    return samples + level * rng.standard_normal(samples.shape)


def quiet(samples: Any, rate: int, rng: np.random.Generator) -> Any:
    return 0.2 * samples


LINES = {
    "as they are": None,
    "a fifth as loud": quiet,
    "low-pass 1500 Hz": low,
    "high-pass 800 Hz": high,
    "noise 25 dB": noise,
}


def changed(rows: list[dict[str, str]], how: Any, base: Path, work: Path) -> list[dict[str, str]]:
    """The same rows, their recordings through a line."""
    if how is None:
        return rows
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rng, found = np.random.default_rng(0), []
    for row in rows:
        samples, rate = soundfile.read(base / row["audio"])
        path = work / f"{row['conversation']}.wav"
        soundfile.write(path, how(samples, rate, rng), rate)
        found.append(row | {"audio": str(path.resolve())})
    return found


def arrived(out: Path, rows: list[dict[str, str]], seen: Seen) -> tuple[float, float]:
    link(rows, out, on_bad_audio="skip")
    return seen[-1]


def listen_in(seen: Seen) -> None:
    """Every test of drift is noted, and none renews a model."""
    usual = drift.drift_of

    def noted(*given: Any) -> drift.Drift:
        found = usual(*given)
        k = int(np.argmax(np.abs(found.far)))
        seen.append((float(abs(found.far[k])), float(abs(found.sure[k]))))
        return replace(found, people=0)

    recall.drift_of = noted  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--splits", type=int, default=4)
    asked = parser.parse_args()
    with asked.table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    base = asked.table.resolve().parent
    for row in rows:
        row["audio"] = str(base / row["audio"])
    people = sorted({who for row in rows for who in row["participants"].split(";")})
    random.Random(0).shuffle(people)
    seen: Seen = []
    listen_in(seen)
    for name, half in (("chosen on", people[::2]), ("reported on", people[1::2])):
        own = [row for row in rows if set(row["participants"].split(";")) <= set(half)]
        found: dict[str, Seen] = {line: [] for line in LINES}
        for split in range(asked.splits):
            random.Random(split).shuffle(own)
            first, rest = own[: len(own) * 7 // 10], own[len(own) * 7 // 10 :]
            out = asked.work / f"{name.split()[0]}-{split}"
            shutil.rmtree(out, ignore_errors=True)
            link(first, out)
            for line, how in LINES.items():
                new = changed(rest, how, base, asked.work / "changed")
                found[line].append(arrived(out, [*first, *new], seen))
        lines = [
            (
                line,
                len(both),
                f"{min(f for f, _ in both):.2f} to {max(f for f, _ in both):.2f}",
                f"{min(s for _, s in both):.1f} to {max(s for _, s in both):.1f}",
                sum(f > drift.FAR and s > drift.SURE for f, s in both),
            )
            for line, both in found.items()
        ]
        columns = ("new calls", "databases", "spreads", "standard errors", "renewed")
        show(columns, lines, title=f"{name} {len(own)} calls of {len(half)} people")


if __name__ == "__main__":
    main()
