"""Where someone speaks: frames whose energy stands out on their channel.

The energy of a frame is 10 log10 of its mean square after removing its mean, in dB at int16 scale
(full scale 32768), so that 0 dB is an amplitude of one step of a 16-bit recording. A frame counts
as speech if its energy is above `reference - below` and above `floor`; optionally only where its
channel is the loudest one. The reference is a percentile of the energies of the channel's loud
frames, those less than `below` under the loudest fifth of a second.

Conventions: frame t covers the samples t*step … t*step + window - 1; energies are (frames,).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numba as nb
import numpy as np
from numpy.typing import NDArray

FRAME_SECONDS = 0.01  # from one frame to the next
SILENCE = -100.0  # dB; the energy of frames without any sound
BURST = 20  # frames; a click is shorter
# dB. White noise has .8; the least of 840 real sides 3.2 (examples/recording_margins.py).
STEADY = 2.0
ENOUGH = 100  # frames, to judge that
STRETCHES = 10  # of so many frames, to judge it within them: the least of real sides there is 2.8
# Share of speech in so many frames or more. The most of 840 real sides is .43; that of a person who
# reads aloud may be 1, but not for so long.
ENDLESS, LONG = 0.97, 3000


@dataclass(frozen=True)
class Detector:
    """When a frame is speech."""

    percentile: float = 95.0  # of the energies of loud frames: the reference; 100: of all frames
    below: float = 30.0  # dB under the reference
    floor: float = 10.0  # dB
    louder_by: float | None = None  # dB above all others; None: crosstalk is not rejected

    @property
    def key(self) -> dict[str, Any]:
        """All that it depends on, for the cache."""
        return asdict(self)

    def listener(self, tracks: int, framing: Framing) -> Listener | None:
        """What has to hear the sound itself beside its energies; None: nothing."""
        return None


class Listener(Protocol):
    """Hears a recording as it goes by."""

    def add(self, sound: NDArray[np.float32]) -> None:
        """(tracks, samples) more of it."""

    def masks(self, counts: list[int]) -> list[NDArray[np.bool_]]:
        """Of each track: which of so many frames may be speech."""


DEFAULT = Detector()
PAPER = Detector(percentile=100.0, floor=SILENCE)


@dataclass(frozen=True)
class Framing:
    """How sound is cut into frames, and which of them are speech."""

    detector: Detector = DEFAULT
    rate: int = 8000

    @property
    def settings(self) -> dict[str, Any]:
        """JSON-able: all fields, of the detector what matters."""
        return asdict(self) | {"detector": self.detector.key}

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
    kept = energy > max(reference_level(energy, detector) - detector.below, detector.floor)
    if detector.louder_by is not None and other is not None:
        both = min(len(energy), len(other))  # beyond its end the other channel is silent
        kept[:both] &= energy[:both] > other[:both] + detector.louder_by
    return np.asarray(kept, np.bool_)


def reference_level(energy: NDArray[np.float32], detector: Detector) -> float:
    """How loud speech is here, in dB. Only frames about as loud as the loudest count: how long the
    line is idle before, between and after them does not."""
    if detector.percentile == 100.0:
        return float(energy.max())
    burst = min(BURST, len(energy))
    top = float(np.partition(energy, -burst)[-burst])
    loud = energy[energy >= top - detector.below]
    return min(top, float(np.percentile(loud, detector.percentile)))


def is_steady(energy: NDArray[np.float32]) -> bool:
    """Whether these frames, all taken for speech, hardly differ in loudness: all of them, or within
    most seconds, where the level drifts."""
    if len(energy) < ENOUGH:
        return False
    long = len(energy) >= STRETCHES * ENOUGH
    return spread(energy) < STEADY or (long and spread_within(energy) < STEADY)


def is_endless(kept: NDArray[np.bool_]) -> bool:
    """Whether a channel never pauses: people do, music and noise need not."""
    return len(kept) >= LONG and float(kept.mean()) > ENDLESS


def spread(energy: NDArray[np.float32]) -> float:
    """From the median to the loudest frames, in dB."""
    middle, loudest = np.percentile(energy, [50.0, 98.0])
    return float(loudest - middle)


def spread_within(energy: NDArray[np.float32]) -> float:
    """The same within a second, on average."""
    stretches = energy[: len(energy) // ENOUGH * ENOUGH].reshape(-1, ENOUGH)
    middle, loudest = np.percentile(stretches, [50.0, 98.0], axis=1)
    return float(np.median(loudest - middle))


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
