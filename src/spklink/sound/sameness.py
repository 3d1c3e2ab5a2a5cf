"""Two channels that carry the same sound: scaled, turned upside down or a moment later.

Such channels are one signal sent twice, and the question who is on which is empty. An echo or
crosstalk is something else: there both people are heard as well, each loudest on their own line.

First the energies are compared, frame by frame, within LATEST: they cost nothing, and those of two
people who take turns go against each other. Only where they run together are the samples compared:
`alike` is the largest correlation of the two channels within LATEST, its sign left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spklink.sound.audio import Samples
from spklink.sound.speech import FRAME_SECONDS

Singles = NDArray[np.float32]
LATEST = 0.05  # seconds
# Correlations of the energies in dB, and of the samples. The largest of 420 real calls are .22 and
# .02 (examples/recording_margins.py); a copy with some noise is above .99.
SAME_COURSE = 0.7
SAME_SOUND = 0.9
HEARD = 30.0  # dB under the loudest frames; what is softer counts as that


def same_course(one: Singles, two: Singles) -> float:
    """The largest correlation of the frame energies of two channels within LATEST."""
    size, reach = min(len(one), len(two)), round(LATEST / FRAME_SECONDS)
    if size <= 2 * reach:
        return 0.0
    a, b = (np.maximum(x[:size], np.percentile(x, 99.0) - HEARD).astype(float) for x in (one, two))
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(_dot(a, a) * _dot(b, b))
    lags = range(-reach, reach + 1)
    found = [_dot(a[max(k, 0) : size + k], b[max(-k, 0) : size - k]) for k in lags]
    return float(max(found) / scale) if scale > 0.0 else 0.0


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """By numpy itself: the matrix library would wake its threads for it, which fight with those of
    all other helpers and take a hundred times as long."""
    return float(np.einsum("i,i->", a, b))


def alike(chunks: Iterable[Samples], one: int, two: int, advance: int, rate: int) -> float:
    """The largest correlation of two channels within LATEST, between 0 and 1. Chunks overlap:
    their first `advance` samples are their own."""
    from scipy.fft import irfft, next_fast_len, rfft  # a run that listens to nothing does without

    reach = round(LATEST * rate)
    products, energies = np.zeros(2 * reach + 1), np.zeros(2)
    for chunk in chunks:
        pair = chunk[[one, two], :advance].astype(np.float64)
        pair -= pair.mean(axis=1, keepdims=True)
        size = next_fast_len(pair.shape[1] + reach, real=True)
        spectrum = rfft(pair, size)
        crossed = irfft(spectrum[0] * spectrum[1].conj(), size)
        products += np.concatenate([crossed[-reach:], crossed[: reach + 1]])
        energies += np.square(pair).sum(axis=1)
    scale = np.sqrt(energies[0] * energies[1])
    return float(np.abs(products).max() / scale) if scale > 0.0 else 0.0
