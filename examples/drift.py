"""When a kept model no longer fits: the test of drift on real calls, chosen and reported apart.

    python examples/drift.py conversations.csv WORK [--splits 4] [--key key.csv]

Calls whose two speakers are both of one half of the people; a model is learned on 60 % of them, the
rest arrive: as they are, or changed by what telephone lines do. Printed are the largest distance
(in spreads) and its standard errors (module `runs/drift.py`), by half: FAR and SURE were chosen on
the first half of the speakers, the second shows what they are worth. With a key also how good the
answers about the new calls are, by the kept model and by one that is renewed whatever the test says
(which keeps the trained recognizer, as renewed models do): wrong calls; and of every link with
another call by itself, as if the two were all there is, how often it is misjudged, how often that
is expected, and how many bits the truth costs.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from scipy.signal import butter, sosfilt

from spklink.cli.show import table as show
from spklink.database.labels import read_key
from spklink.database.links import candidates
from spklink.recognizers.link_wccn import candidate_sides
from spklink.runs import drift, recall
from spklink.runs.link import link

Seen = list[tuple[float, float]]
SQUARE = 4  # candidates of a link between calls of two tracks


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


@dataclass(frozen=True)
class Measured:
    """Of some calls, and of their links with others, each link judged by itself."""

    calls: int = 0
    wrong: int = 0
    links: int = 0
    misjudged: int = 0
    bits: float = 0.0  # that the truth of the links costs
    expected: float = 0.0  # links that would be misjudged as probabilities have it

    def __add__(self, other: Measured) -> Measured:
        return Measured(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def cells(self) -> tuple[str, ...]:
        each = max(self.links, 1)
        shares = (f"{100.0 * part / each:.2f} %" for part in (self.misjudged, self.expected))
        return str(self.wrong), *shares, f"{self.bits / each:.4f}"


def arrived(out: Path, rows: list[dict[str, str]], new: int, key: Path | None) -> Measured | None:
    """A run on a table whose last rows are new; how good it is on these, if there is a key."""
    found = link(rows, out, on_bad_audio="skip")
    if key is None:
        return None
    table, links = found.conversations, found.evidence.links
    truth = read_key(key, table)
    speaker = truth.speakers(table)
    one, two = candidate_sides(links, table.sides)
    same = (speaker[one] == speaker[two]).reshape(-1, SQUARE)
    llr = found.evidence.scores.needed[candidates(links, table.sides)].reshape(-1, SQUARE)
    mine = (links.second[links.pair] >= len(table) - new) & (same.sum(axis=1) == 1)
    chance = np.exp(llr - np.logaddexp.reduce(llr, axis=1, keepdims=True))[mine]
    right = chance[same[mine]]
    return Measured(
        new,
        int((found.posterior.best != truth.exchanged)[-new:].sum()),
        len(right),
        int((right < chance.max(axis=1)).sum()),
        float(-np.log2(np.maximum(right, 1e-300)).sum()),
        float((1.0 - chance.max(axis=1)).sum()),
    )


def listen_in(seen: Seen, renewing: list[bool]) -> None:
    """Every test of drift is noted; a model is renewed where `renewing` ends with it."""
    usual = drift.drift_of

    def noted(*given: Any) -> drift.Drift:
        found = usual(*given)
        k = int(np.argmax(np.abs(found.far)))
        seen.append((float(abs(found.far[k])), float(abs(found.sure[k]))))
        if renewing[-1]:
            return replace(found, far=np.full(4, np.inf), sure=np.full(4, np.inf), people=99)
        return replace(found, people=0)

    recall.drift_of = noted  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--lines", nargs="+", default=list(LINES), choices=list(LINES))
    asked = parser.parse_args()
    with asked.table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    base = asked.table.resolve().parent
    for row in rows:
        row["audio"] = str(base / row["audio"])
    people = sorted({who for row in rows for who in row["participants"].split(";")})
    random.Random(0).shuffle(people)
    seen: Seen = []
    renewing = [False]
    listen_in(seen, renewing)
    for name, half in (("chosen on", people[::2]), ("reported on", people[1::2])):
        own = [row for row in rows if set(row["participants"].split(";")) <= set(half)]
        found: dict[str, Seen] = {line: [] for line in asked.lines}
        kept, renewed = ({line: Measured() for line in asked.lines} for _ in range(2))
        for split in range(asked.splits):
            random.Random(split).shuffle(own)
            first, rest = own[: len(own) * 7 // 10], own[len(own) * 7 // 10 :]
            out = asked.work / f"{name.split()[0]}-{split}"
            shutil.rmtree(out, ignore_errors=True)
            link(first, out)
            for line in asked.lines:
                new = [*first, *changed(rest, LINES[line], base, asked.work / "changed")]
                measured = arrived(out, new, len(rest), asked.key)
                found[line].append(seen[-1])
                if measured is None:
                    continue
                kept[line] += measured
                other = asked.work / "renewed"
                shutil.rmtree(other, ignore_errors=True)
                shutil.copytree(out, other)
                renewing.append(True)
                renewed[line] += arrived(other, new, len(rest), asked.key) or Measured()
                renewing.append(False)
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
        if asked.key is not None:
            answers = [
                (line, model, of[line].calls, of[line].links, *of[line].cells())
                for line in asked.lines
                for model, of in (("kept", kept), ("renewed", renewed))
            ]
            columns = ("new calls", "model", "calls", "links", "wrong calls")
            columns += ("links misjudged", "expected", "bits a link")
            show(columns, answers, title="answers about the new calls")


if __name__ == "__main__":
    main()
