"""Does calibration gain from the quality of sides: level, noise, clipping beside seconds of speech?

    python examples/quality.py conversations.csv key.csv NAME=VECTORS.npz …

Vectors as in backends.py. The calls of one half of the speakers teach a logistic regression from
score and quality to log-likelihood-ratio, with their true labels, the most that any measure could
bring; the calls of the other half are measured (Cllr, in bits), and the other way round. A measure
of a pair is the mean of its two sides' and their difference; each also changes the slope.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from backends import Vectors
from spklink.calibration.curves import pair_speech
from spklink.calibration.logistic import Regression, logistic
from spklink.cli.show import number, table, text
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.database.sides import speakers_on
from spklink.measures.detection import measure
from spklink.recognizers import normalise
from spklink.sound.chunks import find_speech
from spklink.sound.speech import Framing, frame_energies

HALVES = 3  # ways to cut the speakers in two
LOUDEST = 0.98  # of the side's own peak: samples that may be clipped
RIDGE = 1e-3


def qualities(people: Conversations) -> dict[str, np.ndarray]:
    """(S,) of every side: level of speech in dB, its distance from the noise between, and the share
    of clipped samples, as a logarithm."""
    framing, found = Framing(), {"level": [], "noise": [], "clipping": []}
    for files in people.audio:
        paths = tuple(people.path.parent / name for name in files)
        spoken = find_speech(paths, 2, framing, 10.0, None)
        sound = np.concatenate(list(spoken.chunks()), axis=1)
        for track in (0, 1):
            energy = frame_energies(sound[track], framing.window, framing.step)
            kept = spoken.kept[track]
            energy = energy[: len(kept)]
            level = float(np.median(energy[kept])) if kept.any() else 0.0
            rest = energy[~kept]
            found["level"].append(level)
            found["noise"].append(level - (float(np.median(rest)) if len(rest) else 0.0))
            loud = np.abs(sound[track]).max()
            share = (np.abs(sound[track]) >= LOUDEST * loud).mean()
            found["clipping"].append(float(np.log10(share + 1e-6)))
    return {name: np.array(values) for name, values in found.items()}


def columns(score, measures) -> np.ndarray:
    """Score, 1, and each measure by itself and times the score."""
    every = [score, np.ones_like(score)]
    for one in measures:
        every += [one, one * score]
    return np.stack(every, axis=1)


def learned(x: np.ndarray, same: np.ndarray) -> np.ndarray:
    weight = [same / (2 * same.sum()), ~same / (2 * (~same).sum())]
    prior = np.full(x.shape[1], RIDGE / same.sum())
    return logistic(Regression(x, *weight, prior), np.zeros(x.shape[1]))


def cllr(llr: np.ndarray, same: np.ndarray) -> float:
    return measure(llr[same], llr[~same]).cllr


def measured(name: str, path: Path, people: Conversations, truth, quality) -> Iterator[tuple]:
    vectors = Vectors.read(path, people)
    on, every = speakers_on(people, truth), vectors.units @ vectors.units.T
    fitted = normalise.fit(lambda r, c: every[np.ix_(r, c)], people, vectors.usable, seed=0)
    one, two = np.triu_indices(len(every), 1)
    fair = vectors.usable[one] & vectors.usable[two]
    one, two = one[fair], two[fair]
    score = fitted.apply(every[one, two].astype(np.float64), one, two)
    speech = pair_speech(vectors.seconds, one, two)
    sets = {"score": [], "score, speech": [speech]}
    for what, q in quality.items():
        z = (q - q.mean()) / q.std()
        sets[f"score, speech, {what}"] = [speech, (z[one] + z[two]) / 2, np.abs(z[one] - z[two])]
    sets["all of these"] = [speech, *(m for few in list(sets.values())[2:] for m in few[1:])]
    row, same = [name], on[one] == on[two]
    for measures in sets.values():
        x, costs = columns(score, measures), []
        for cut in range(HALVES):
            half = np.random.default_rng([cut, 99]).permutation(len(people.speakers)) % 2
            for h in (0, 1):
                taught, tested = ((half[on[one]] == k) & (half[on[two]] == k) for k in (h, 1 - h))
                costs.append(cllr(x[tested] @ learned(x[taught], same[taught]), same[tested]))
        row.append(np.array(costs))
    base = row[2]
    for what, costs in zip(sets, row[1:], strict=True):
        gap = costs - base
        yield name, what, number(costs.mean(), 4), f"{gap.mean():+.4f} ± {spread(gap):.4f}"


def spread(gap: np.ndarray) -> float:
    """Of the mean, as if the halves were independent (they are not: it is larger)."""
    return float(gap.std(ddof=1) / np.sqrt(len(gap)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("vectors", nargs="+", help="NAME=FILE.npz")
    given = parser.parse_args()
    people = read_conversations(given.table)
    truth, quality = read_key(given.key, people).bits, qualities(people)
    rows = []
    for one in given.vectors:
        name, _, path = one.partition("=")
        rows += measured(name, Path(path), people, truth, quality)
    shown = ["recognizer", "what calibration knows", "Cllr", "against score, speech"]
    table(shown, rows, title="bits, of the half of the speakers that taught nothing")
    text("± is the spread of the mean as if the halves were independent, which they are not")


if __name__ == "__main__":
    main()
