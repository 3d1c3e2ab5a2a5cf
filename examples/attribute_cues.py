"""What is known of people, as evidence: calls made of read speech, by sex, and by lot.

    python examples/attribute_cues.py FOLDER WORK [--pairs] [--seed 0]

FOLDER has recordings of one speaker each, SPEAKER-….flac (LibriSpeech). Every utterance is cut into
parts, and each part is one side of a call. With --pairs two people only call each other, twice: no
voice can tell who is who, one bit a pair. Without, everybody calls two others once each.

The sex of a speaker is told here by his pitch (the median of the fundamental frequency, in two
clusters; nobody between them counts), not by the vectors that spklink learns it from. A second
attribute is drawn by lot: it must change nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import soundfile

from spklink import evaluate, link
from spklink.tables import write_csv

RATE = 8000
LOWEST, HIGHEST = 70.0, 330.0  # Hz
BETWEEN = (150.0, 170.0)  # Hz: neither


def pitch(samples: np.ndarray) -> float:
    """Median fundamental frequency of voiced frames, in Hz, by autocorrelation."""
    window, step = 320, 160
    frames = np.lib.stride_tricks.sliding_window_view(samples, window)[::step]
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = (frames**2).sum(axis=1)
    frames = frames[power > 0.1 * np.percentile(power, 95)]
    spectrum = np.fft.rfft(frames, 1024, axis=1)
    course = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)
    lags = np.arange(int(RATE / HIGHEST), int(RATE / LOWEST))
    taper = 1.0 - lags / window
    likeness = course[:, lags] / course[:, :1] / taper
    best = likeness.argmax(axis=1)
    voiced = likeness[np.arange(len(best)), best] > 0.6
    return float(np.median(RATE / lags[best[voiced]])) if voiced.sum() > 10 else np.nan


def make_calls(
    folder: Path, work: Path, pairs: bool, seed: int
) -> tuple[list[dict[str, str]], list[tuple[str, int, str]], list[dict[str, str]]]:
    """Calls, their truth, and what is known of the people."""
    rng = np.random.default_rng(seed)
    files = {path.name.split("-")[0]: path for path in sorted(folder.glob("*-*.flac"))}
    sounds = {who: soundfile.read(path)[0] for who, path in files.items()}
    order = rng.permutation(sorted(sounds)).tolist()
    if pairs:
        couples = [(a, b) for a, b in zip(order[::2], order[1::2], strict=False) for _ in (0, 1)]
    else:
        couples = list(zip(order, order[1:] + order[:1], strict=True))
    used: dict[str, int] = {}
    calls, key = [], []
    for k, couple in enumerate(couples):
        on = couple if rng.random() < 0.5 else couple[::-1]
        sides = []
        for track, who in enumerate(on):
            part = used.setdefault(who, 0)
            used[who] += 1
            half = len(sounds[who]) // 2
            sides.append(sounds[who][part * half : (part + 1) * half])
            key.append((f"c{k}", track + 1, who))
        length = max(map(len, sides))
        stereo = np.stack([np.pad(side, (0, length - len(side))) for side in sides], axis=1)
        stereo += 1e-4 * rng.normal(size=stereo.shape)
        soundfile.write(work / f"c{k}.flac", stereo, RATE)
        calls.append(
            {
                "conversation": f"c{k}",
                "audio": str((work / f"c{k}.flac").resolve()),
                "participants": ";".join(sorted(couple)),
            }
        )
    people = []
    for who, sound in sounds.items():
        hertz = pitch(sound)
        sex = (
            ""
            if hertz != hertz or BETWEEN[0] < hertz < BETWEEN[1]
            else ("f" if hertz > BETWEEN[0] else "m")
        )
        people.append({"speaker": who, "sex": sex, "lot": str(rng.choice(["heads", "tails"]))})
    return calls, key, people


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    calls, key, people = make_calls(asked.folder, asked.work, asked.pairs, asked.seed)
    write_csv(asked.work / "key.csv", ("conversation", "channel", "speaker"), key)
    count = {sex: sum(row["sex"] == sex for row in people) for sex in ("f", "m", "")}
    print(
        f"{len(calls)} calls of {len(people)} people: {count['f']} f, {count['m']} m by pitch, "
        f"{count['']} neither"
    )
    print(
        f"{'attribute':9} {'evidence':9} {'says':>5} {'wrong':>6} {'expected':>8} {'bits':>7} "
        f"{'bits open':>9}"
    )
    for attribute in ("sex", "lot"):
        found = link(
            calls,
            cache=asked.work / "cache",
            speakers=people,
            attribute=attribute,
            list_errors=0.0,
            min_speech=1.0,
            report=False,
        )
        for row in evaluate(found, asked.work / "key.csv").cues:
            print(
                f"{attribute:9} {row.name:9} {row.says:5} {row.wrong:6.1f} "
                f"{row.expected_wrong:8.2f} {row.bits:7.4f} {row.open_bits:9.2f}"
            )
        print(f"{'':9} learned: {found.evidence.cues[0].about}; {' '.join(found.notes)}")


if __name__ == "__main__":
    main()
