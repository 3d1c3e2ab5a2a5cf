"""Where someone speaks: frames whose energy stands out on their channel.

The energy of a frame is 10 log10 of its mean square after removing its mean, in dB at int16 scale
(full scale 32768), so that 0 dB is an amplitude of one step of a 16-bit recording. A frame counts
as speech if its energy is above `reference - below`, the reference being a percentile of the
channel's own energies, and above `floor`; optionally only where its channel is the loudest one.

Conventions: frame t covers the samples t*step … t*step + window - 1; energies are (frames,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

FRAME_SECONDS = 0.01  # from one frame to the next
SILENCE = -100.0  # dB; the energy of frames without any sound


@dataclass(frozen=True)
class Detector:
    """When a frame is speech."""

    percentile: float = 99.0  # of the channel's frame energies: the reference
    below: float = 30.0  # dB under the reference
    floor: float = 10.0  # dB
    louder_by: float | None = None  # dB above all others; None: crosstalk is not rejected


DEFAULT = Detector()
PAPER = Detector(percentile=100.0, floor=-np.inf)


@dataclass(frozen=True)
class Framing:
    """How sound is cut into frames, and which of them are speech."""

    detector: Detector = DEFAULT
    rate: int = 8000

    @property
    def step(self) -> int:
        """Samples from one frame to the next."""
        return round(FRAME_SECONDS * self.rate)

    @property
    def window(self) -> int:
        """Samples a frame."""
        return round(0.025 * self.rate)


def frame_count(samples: int, window: int, step: int) -> int:
    """Whole frames in a stretch of sound."""
    return max(0, (samples - window) // step + 1)


def frame_energies(samples: NDArray[np.float32], window: int, step: int) -> NDArray[np.float32]:
    """(frames,) energies in dB of (samples,) sound with full scale 1.0."""
    energy = np.empty(frame_count(len(samples), window, step))
    _mean_squares(samples, window, step, energy)
    decibels = 10 * np.log10(np.maximum(energy * 32768.0**2, 10 ** (SILENCE / 10)))
    return decibels.astype(np.float32)  # one is held for every frame of a side


def speech_frames(
    energy: NDArray[np.float32], detector: Detector, other: NDArray[np.float32] | None = None
) -> NDArray[np.bool_]:
    """(frames,) True where this channel carries speech; `other` = energies of the loudest other."""
    if not len(energy):
        return np.zeros(0, np.bool_)
    reference = float(np.percentile(energy, detector.percentile))
    kept = energy > max(reference - detector.below, detector.floor)
    if detector.louder_by is not None and other is not None:
        both = min(len(energy), len(other))  # beyond its end the other channel is silent
        kept[:both] &= energy[:both] > other[:both] + detector.louder_by
    return np.asarray(kept, np.bool_)


def loudest_other(energies: list[NDArray[np.float32]], k: int) -> NDArray[np.float32] | None:
    """(frames,) the energy of the loudest channel beside channel k; None where there is none."""
    others = energies[:k] + energies[k + 1 :]
    if not others:
        return None
    loudest = np.full(max(map(len, others)), -np.inf, np.float32)
    for energy in others:
        np.maximum(loudest[: len(energy)], energy, out=loudest[: len(energy)])
    return loudest


def speech_seconds(kept: NDArray[np.bool_]) -> float:
    """Seconds of speech on a side."""
    return round(int(kept.sum()) * FRAME_SECONDS, 2)


# Sums may be taken in any order (they are then vectorised); float64 leaves an offset of half the
# full scale and a signal of one step with nine correct digits.
@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _mean_squares(x, window, step, energy):  # type: ignore[no-untyped-def]
    """Mean square about the mean of each frame."""
    for t in range(len(energy)):
        frame = x[t * step : t * step + window]
        total, squares = 0.0, 0.0
        for i in range(window):
            value = np.float64(frame[i])
            total += value
            squares += value * value
        energy[t] = max(squares / window - (total / window) ** 2, 0.0)
