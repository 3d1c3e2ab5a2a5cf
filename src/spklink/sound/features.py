"""What a side sounds like, frame by frame: 20 cepstra, their first and second deltas, warped.

Frames of 25 ms every 10 ms → pre-emphasis → Hamming window → power spectrum → mel bands (triangles
on the mel scale 1127 ln(1 + f/700)) → natural log, energies below 1 (int16 scale: less than
rounding noise) taken as 1 → orthonormal DCT-II, no lifter, C0 included → deltas by regression over
±2 frames, the first and last frame repeated beyond the edges at either stage → speech frames only
→ feature warping: each value becomes Φ⁻¹((rank - ½)/W), its rank being taken among the W speech
frames around it; at the edges the window stays inside, and a side shorter than it is ranked whole.
Rank = 1 + the number of strictly smaller values: equal values all get the lowest of their ranks.

Conventions: rows = frames, columns = features (cepstra, deltas, double deltas); float32; samples
have full scale 1.0. The result does not depend on how the audio is cut into blocks. Beside it only
bounded buffers and one energy a frame are held. Cepstra are computed where speech needs them only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.sound import speech
from spklink.sound.audio import Problem, Samples
from spklink.sound.chunks import AFTER, BEFORE, CHUNK, changed, chunks_of, find_speech
from spklink.sound.front_end import Side
from spklink.sound.speech import (
    Framing,
    frame_count,
    frame_energies,
    speech_frames,
    speech_seconds,
)
from spklink.sound.speech_marks import runs_of

VERSION = 2  # of the features: a change makes cached ones worthless
WARPED = 4096  # rows warped at a time
BUCKETS, LANES = 128, 8  # of the warping kernel


@dataclass(frozen=True)
class Cepstra(Framing):
    """A front end: all settings from audio to (speech frames, 3 x cepstra) features."""

    bands: int = 26
    cepstra: int = 20
    lowest: float = 130.0  # Hz
    highest: float = 3900.0
    warping: int = 401  # speech frames

    @property
    def key(self) -> dict[str, Any]:
        return {"front_end": "cepstra", "version": VERSION} | self.settings

    def hear(
        self,
        files: tuple[Path, ...],
        tracks: int,
        block_seconds: float = 10.0,
        *,
        turns: Turns | None = None,
    ) -> tuple[list[Side], list[Problem]]:
        """All sides of a recording; a side with a fatal problem has no frames."""
        spoken = find_speech(files, tracks, self, block_seconds, turns)
        features = _features(spoken.chunks(), spoken.kept, self, files[0])
        sides = [
            Side(
                warp(rows, self.warping), speech_seconds(kept), seconds, level, speech=runs_of(kept)
            )
            for rows, kept, seconds, level in zip(
                features, spoken.kept, spoken.seconds, spoken.levels, strict=True
            )
        ]
        return sides, spoken.problems


# The whole band carries more of a voice than the telephone channel is said to pass.
DEFAULT = Cepstra(lowest=0.0, highest=4000.0)
PRESETS = {"default": DEFAULT, "paper": Cepstra(detector=speech.PAPER)}


def side_features(samples: Samples, settings: Cepstra = DEFAULT) -> Side:
    """The features of (samples,) decoded sound at the rate of the settings."""
    energy = frame_energies(samples, settings.window, settings.step)
    kept = speech_frames(energy, settings.detector)
    features = _features(chunks_of([samples[:, None]], settings), [kept], settings)[0]
    seconds = len(samples) / settings.rate
    return Side(warp(features, settings.warping), speech_seconds(kept), seconds)


def mfcc(samples: Samples, settings: Cepstra = DEFAULT) -> NDArray[np.float32]:
    """(frames, 3 x cepstra) cepstra and deltas of every frame, speech or not, unwarped."""
    every = np.ones(frame_count(len(samples), settings.window, settings.step), np.bool_)
    return _features(chunks_of([samples[:, None]], settings), [every], settings)[0]


def warp(features: NDArray[np.float32], window: int = 401) -> NDArray[np.float32]:
    """Warp (frames, features) in place, and return it."""
    from scipy.special import ndtri

    count = len(features)
    window = min(window, count, (1 << 15) - 1)  # the kernel counts in 16 bits
    table = ndtri((np.arange(window) + 0.5) / max(window, 1)).astype(np.float32)
    before = features[:0]
    for start in range(0, count, WARPED):
        stop = min(start + WARPED, count)
        end = min(stop + window // 2, count)
        raw = np.concatenate([before, features[start:end]])  # what is ranked, not yet warped
        known = len(before)
        warped = np.empty((features.shape[1], stop - start), np.float32)
        _warp_columns(np.ascontiguousarray(raw.T), known, window, table, warped)
        features[start:stop] = warped.T
        before = raw[: known + stop - start][-window:]
    return features


def _features(
    chunks: Iterable[Samples],
    kept: list[NDArray[np.bool_]],
    settings: Cepstra,
    name: str | Path = "samples",
) -> list[NDArray[np.float32]]:
    """Unwarped features of the frames to keep, for each channel of the chunks."""
    out = [np.empty((int(mask.sum()), 3 * settings.cepstra), np.float32) for mask in kept]
    filled = [0] * len(kept)
    for index, chunk in enumerate(chunks):
        own = slice(BEFORE if index else 0, CHUNK + BEFORE)  # other frames: those of neighbours
        there = frame_count(chunk.shape[1], settings.window, settings.step)
        for k, channel in enumerate(chunk):
            chosen = kept[k][index * CHUNK :][: min(CHUNK + BEFORE + AFTER, there)].copy()
            chosen[: own.start] = chosen[own.stop :] = False
            count = int(chosen.sum())
            if count:
                _chunk_features(channel, chosen, settings, out[k][filled[k] : filled[k] + count])
                filled[k] += count
    if filled != [len(rows) for rows in out]:
        raise changed(name)
    return out


def _chunk_features(
    samples: Samples, chosen: NDArray[np.bool_], settings: Cepstra, out: NDArray[np.float32]
) -> None:
    """Fill (chosen frames, 3 x cepstra); cepstra are computed within two deltas' reach of them."""
    from scipy.fft import dct, rfft  # a run that listens to nothing does without

    reached = chosen.copy()
    for shift in range(1, AFTER + 1):
        reached[shift:] |= chosen[:-shift]
        reached[:-shift] |= chosen[shift:]
    needed = np.flatnonzero(reached)
    taper, edges, rise = _tables(settings)
    frames = np.zeros((len(needed), _transform_size(settings)), np.float32)
    _cut_frames(samples, needed, settings.step, taper, frames)
    energies = np.empty((len(needed), settings.bands), np.float32)
    _mel_energies(rfft(frames, overwrite_x=True), edges, rise, energies)
    log_energies = np.log(np.maximum(energies, 1.0, out=energies), out=energies)
    cepstra = dct(log_energies, norm="ortho")[:, : settings.cepstra].copy()
    _with_deltas(cepstra, np.flatnonzero(chosen[needed]), np.empty_like(cepstra), out)


def _transform_size(settings: Cepstra) -> int:
    return 1 << (settings.window - 1).bit_length()


@lru_cache(maxsize=8)
def _tables(
    settings: Cepstra,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """The taper (int16 scale); where between the band edges each bin of the spectrum lies.

    Band j rises from edge j to j + 1 and falls to j + 2. Bins edges[j] … edges[j + 1] - 1 lie
    between edges j and j + 1: a share `rise` of their power belongs to band j, the rest to j - 1.
    """
    size = _transform_size(settings)
    mel = 1127 * np.log1p(np.arange(size // 2 + 1) * settings.rate / size / 700)
    low, high = 1127 * np.log1p(np.array([settings.lowest, settings.highest]) / 700)
    place = (mel - low) / (high - low) * (settings.bands + 1)
    edges = np.searchsorted(place, np.arange(settings.bands + 2)).astype(np.int64)
    taper = 32768.0 * np.hamming(settings.window)
    return taper.astype(np.float32), edges, (place - np.floor(place)).astype(np.float32)


@nb.njit(cache=True, nogil=True)
def _cut_frames(samples, chosen, step, taper, frames):  # type: ignore[no-untyped-def]
    """Pre-emphasised, tapered frames; the sample before the first is taken as equal to it."""
    emphasised = np.empty_like(samples)
    emphasised[0] = np.float32(1 - 0.97) * samples[0]
    for i in range(1, len(samples)):
        emphasised[i] = samples[i] - np.float32(0.97) * samples[i - 1]
    for row in range(len(chosen)):
        frame, cut = frames[row], emphasised[chosen[row] * step :]
        for i in range(len(taper)):
            frame[i] = cut[i] * taper[i]


@nb.njit(cache=True, nogil=True)
def _mel_energies(spectra, edges, rise, energies):  # type: ignore[no-untyped-def]
    for t in range(len(spectra)):
        spectrum, rising = spectra[t], np.float32(0.0)
        for j in range(len(edges) - 1):
            power, share = np.float32(0.0), np.float32(0.0)
            for k in range(edges[j], edges[j + 1]):
                x, y = spectrum[k].real, spectrum[k].imag
                square = x * x + y * y
                power += square
                share += square * rise[k]
            if j > 0:
                energies[t, j - 1] = rising + (power - share)
            rising = share


@nb.njit(cache=True, nogil=True)
def _slope(x, t, out):  # type: ignore[no-untyped-def]
    """Regression over ±2 rows, rows beyond the edges being those at the edges."""
    last = len(x) - 1
    a, b, c, d = x[max(t - 2, 0)], x[max(t - 1, 0)], x[min(t + 1, last)], x[min(t + 2, last)]
    for k in range(x.shape[1]):
        out[k] = np.float32(0.1) * (c[k] - b[k]) + np.float32(0.2) * (d[k] - a[k])


@nb.njit(cache=True, nogil=True)
def _with_deltas(cepstra, chosen, delta, out):  # type: ignore[no-untyped-def]
    width = cepstra.shape[1]
    for t in range(len(cepstra)):
        _slope(cepstra, t, delta[t])
    for row in range(len(chosen)):
        t = chosen[row]
        for k in range(width):
            out[row, k], out[row, width + k] = cepstra[t, k], delta[t, k]
        _slope(delta, t, out[row, 2 * width :])


@nb.njit(cache=True, nogil=True)
def _warp_columns(columns, first, window, table, warped):  # type: ignore[no-untyped-def]
    """warped[d, t] = table[number of smaller values in the window around columns[d, first + t]].

    Every value falls into one of BUCKETS buckets by a monotone map. `smaller[b]` is the number of
    values of the window in buckets below b, kept up to date as the window slides. `sorted_by`
    lists the values bucket by bucket in order of time, so those of the window in bucket b are the
    stretch head[b] … tail[b] - 1, and only these few must be compared with.
    """
    features, n = columns.shape
    level = np.arange(BUCKETS, dtype=np.int16)
    bucket, sorted_by = np.empty(n, np.uint8), np.zeros(n + LANES, np.float32)
    head, tail = np.empty(BUCKETS + 1, np.int64), np.empty(BUCKETS, np.int64)
    smaller = np.empty(BUCKETS, np.int16)
    for d in range(features):
        column = columns[d]
        _fill_buckets(column, bucket, sorted_by, head, tail)
        start = min(max(first - window // 2, 0), n - window)
        for t in range(start):
            head[bucket[t]] += 1
        for t in range(start + window):
            tail[bucket[t]] += 1
        smaller[0] = 0
        for b in range(1, BUCKETS):
            smaller[b] = smaller[b - 1] + tail[b - 1] - head[b - 1]
        for t in range(first, first + warped.shape[1]):
            if min(max(t - window // 2, 0), n - window) > start:
                leaves, enters = np.int16(bucket[start]), np.int16(bucket[start + window])
                head[np.uint64(leaves)] += 1
                tail[np.uint64(enters)] += 1
                for b in range(BUCKETS):
                    smaller[b] += np.int16(level[b] > enters) - np.int16(level[b] > leaves)
                start += 1
            value, own = column[t], np.uint64(bucket[t])
            rank, at, size = np.int64(smaller[own]), head[own], tail[own] - head[own]
            for i in range(LANES):  # a fixed number at once is faster than the right number
                rank += np.int64((sorted_by[np.uint64(at + i)] < value) & (i < size))
            for i in range(LANES, size):
                rank += np.int64(sorted_by[np.uint64(at + i)] < value)
            warped[d, t - first] = table[rank]


@nb.njit(cache=True, nogil=True)
def _fill_buckets(column, bucket, sorted_by, head, tail):  # type: ignore[no-untyped-def]
    """Buckets are even over ±2.5 standard deviations; head and tail of each = its beginning."""
    mean, spread = _mean_and_spread(column)
    low = np.float32(mean - 2.5 * spread)
    scale = np.float32((BUCKETS - 1) / (5 * spread)) if spread > 1e-30 else np.float32(0)
    for b in range(BUCKETS + 1):
        head[b] = 0
    for t in range(len(column)):
        place = (column[t] - low) * scale
        bucket[t] = np.uint8(min(max(place, np.float32(0)), np.float32(BUCKETS - 1)))
        head[bucket[t] + 1] += 1
    for b in range(BUCKETS):
        head[b + 1] += head[b]
        tail[b] = head[b]
    for t in range(len(column)):
        sorted_by[tail[bucket[t]]] = column[t]
        tail[bucket[t]] += 1
    for b in range(BUCKETS):
        tail[b] = head[b]


# Any order of summation will do: buckets steer the search, ranks do not depend on them.
@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _mean_and_spread(column):  # type: ignore[no-untyped-def]
    total, squares = 0.0, 0.0
    for t in range(len(column)):
        value = np.float64(column[t])
        total += value
        squares += value * value
    mean = total / len(column)
    return mean, np.sqrt(max(squares / len(column) - mean * mean, 0.0))
