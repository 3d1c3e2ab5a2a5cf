"""How far ordinary recordings are from being taken for noise, or for one signal sent twice.

    python examples/recording_margins.py FOLDER...

Every sound file below the folders is heard as it is. Prints, of all channels, the smallest spread
of loudness, as a whole and within seconds (below STEADY a channel is no speech), the largest share
of speech in channels that are long enough to be judged by that (above ENDLESS it never pauses);
of all pairs of channels of a file the
largest correlations (above SAME_COURSE and SAME_SOUND both, it is one signal); and how many
channels have other seconds of speech than with the 99th percentile of all frames.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np

from spklink.sound import sameness, speech
from spklink.sound.audio import channel_blocks, channels_of
from spklink.sound.background_speech import SOUNDS
from spklink.sound.chunks import CHUNK, chunks_of
from spklink.sound.features import DEFAULT

DETECTOR = DEFAULT.detector
WITHIN = speech.STRETCHES * speech.ENOUGH  # frames


def seconds_before(energy: np.ndarray) -> float:
    """With the 99th percentile of all frames."""
    threshold = np.percentile(energy, 99.0) - DETECTOR.below
    return float((energy > max(threshold, DETECTOR.floor)).sum() * speech.FRAME_SECONDS)


def measure(path: Path) -> tuple[list, list]:
    """(spread, seconds, seconds before, spread within seconds, share of speech) of every channel,
    the last two nan where it is too short to be judged by them; (course, alike) of every two."""
    tracks = channels_of(path)
    blocks = list(channel_blocks((path,), tracks))
    sound = np.concatenate(blocks)
    levels = [speech.frame_energies(x, DEFAULT.window, DEFAULT.step) for x in sound.T.copy()]
    kept = [speech.speech_frames(level, DETECTOR) for level in levels]
    sides = [
        (
            speech.spread(level[mask]),
            speech.speech_seconds(mask),
            seconds_before(level),
            speech.spread_within(level[mask]) if mask.sum() >= WITHIN else np.nan,
            mask.mean() if len(mask) >= speech.LONG else np.nan,
        )
        for level, mask in zip(levels, kept, strict=True)
        if mask.any()
    ]
    chunks, advance = list(chunks_of([sound], DEFAULT)), CHUNK * DEFAULT.step
    pairs = [
        (
            sameness.same_course(levels[a], levels[b]),
            sameness.alike(chunks, a, b, advance, DEFAULT.rate),
        )
        for a, b in combinations(range(tracks), 2)
    ]
    return sides, pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    for folder in parser.parse_args().folders:
        files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SOUNDS)
        found = [measure(path) for path in files]
        sides = np.array([side for one, _ in found for side in one])
        print(f"{folder}: {len(files)} files, {len(sides)} channels")
        low = np.sort(sides[:, 0])
        print(f"  spread in dB: smallest {np.round(low[:5], 2)}, median {np.median(low):.2f}")
        within, share = (column[np.isfinite(column)] for column in sides[:, 3:].T)
        if len(within):
            print(f"  spread within seconds: smallest {np.round(np.sort(within)[:5], 2)}")
        if len(share):
            print(f"  share of speech: largest {np.round(np.sort(share)[-5:], 2)}")
        moved = sides[:, 1] - sides[:, 2]
        other = np.abs(moved) > 0.005
        print(
            f"  seconds of speech: {other.sum()} changed, "
            f"by {moved.min():+.2f} to {moved.max():+.2f}"
        )
        if other.any():
            print(
                f"    mean of these {moved[other].mean():+.3f} s, of {sides[other, 2].mean():.1f} s"
            )
        pairs = np.array([pair for _, two in found for pair in two])
        if len(pairs):
            print(f"  course of energies: largest {np.round(np.sort(pairs[:, 0])[-5:], 3)}")
            print(f"  correlation of samples: largest {np.round(np.sort(pairs[:, 1])[-5:], 3)}")


if __name__ == "__main__":
    main()
