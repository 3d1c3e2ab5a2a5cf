"""The recognizer that needs nothing but the calls: how a side differs from a mixture of all.

Two presets. `paper`: 1024 Gaussians, relevance MAP with r = 16, the dot score of van Leeuwen and
Brümmer with frame normalisation, made symmetric. `default`, what measured best without labels: 256
Gaussians, r = 1/4, the cosine between weighted shifts about the mean of the database, then
normalised against strangers (normalise.py) and, once links are known to some degree, compared
again as they teach (link_wccn.py).

Symbols: n_j and f_j are the statistics of a side, f already divided by sigma_j, T = sum n_j its
frames, w_j the weight of Gaussian j. A side's vector holds
  dot      all f_j / T, and all n_j               (shift_x . f_y / T_y + shift_y . f_x / T_x) / 2
                                                  with shift_j = f_j / (n_j + r)
  cosine   sqrt(w_j) f_j / (n_j + r) for all j    cosine, once the mean is subtracted
and never changes when calls are added; the mean can be kept or renewed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Literal

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.recognizers import products as recognizers
from spklink.recognizers.mixture import Blocks, Mixture, statistics, train
from spklink.recognizers.products import Floats, Operand, Sides, Singles
from spklink.tables import write_npz

MEAN_ROWS = 256  # vectors read at a time


@dataclass(frozen=True)
class Preset:
    """Settings that are published under one name."""

    name: str
    components: int
    relevance: float
    score: Literal["dot", "cosine"]
    normalise: bool  # against strangers
    iterations: int = 10
    link_wccn: bool = False  # compare once more, as the links teach
    calibration: str = "cmlg"


PAPER = Preset("paper", components=1024, relevance=16.0, score="dot", normalise=False)
DEFAULT = Preset(
    "default",
    components=256,
    relevance=0.25,
    score="cosine",
    normalise=True,
    link_wccn=True,
    calibration="lr-dur",
)
PRESETS = {preset.name: preset for preset in (DEFAULT, PAPER)}


@dataclass(frozen=True)
class GmmUbm:
    """A trained recognizer; `mean` is the database mean of the vectors, unused by the dot score."""

    preset: Preset
    mixture: Mixture
    mean: Singles = field(default_factory=lambda: np.zeros(0, np.float32))

    @cached_property
    def fingerprint(self) -> str:
        parts = (self.mixture.weights, self.mixture.means, self.mixture.variances)
        digest = hashlib.sha256(f"{self.preset.score} {self.preset.relevance!r}".encode())
        for array in parts:
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()

    @property
    def depth(self) -> int:
        return self.mixture.means.size * (2 if self.preset.score == "dot" else 1)

    def vector(self, features: Singles) -> Singles:
        found = statistics(self.mixture, features)
        f = found.f / np.sqrt(self.mixture.variances)
        if self.preset.score == "dot":
            rate = f.ravel() / max(len(features), 1)
            return np.concatenate([rate, found.n]).astype(np.float32)
        shift = f / (found.n + self.preset.relevance)[:, None]
        return (np.sqrt(self.mixture.weights)[:, None] * shift).ravel().astype(np.float32)

    def left(self, vectors: Singles) -> tuple[Operand, Singles]:
        if self.preset.score == "cosine":
            unit = np.empty(vectors.shape, np.float32)
            less = np.empty(len(vectors), np.float32)
            _unit_rows(vectors, self.mean, unit, less)
            return (unit,), less
        return (self._half_shifts(vectors), self._rates(vectors)), np.zeros(
            len(vectors), np.float32
        )

    def right(self, vectors: Singles) -> tuple[Operand, Singles]:
        if self.preset.score == "cosine":
            scale = np.empty(len(vectors), np.float32)
            _inverse_lengths(vectors, self.mean, scale)
            return (vectors,), scale
        return (self._rates(vectors), self._half_shifts(vectors)), np.ones(len(vectors), np.float32)

    def _rates(self, vectors: Singles) -> Singles:
        return vectors[:, : self.mixture.means.size]

    def _half_shifts(self, vectors: Singles) -> Singles:
        count, width = self.mixture.means.shape
        shift = np.empty((len(vectors), count * width), np.float32)
        _shift_rows(vectors, 0.5, self.preset.relevance, count, width, shift)
        return shift

    def scores(self, vectors: Singles, side_1: Sides, side_2: Sides, *, threads: int = 1) -> Floats:
        return recognizers.pair_scores(self, vectors, side_1, side_2, threads=threads)

    def table(self, vectors: Singles, rows: Sides, columns: Sides, *, threads: int = 1) -> Singles:
        return recognizers.table(self, vectors, rows, columns, threads=threads)

    def centred(self, vectors: Singles, usable: NDArray[np.bool_] | None = None) -> GmmUbm:
        """The same recognizer with the mean of these vectors, of the usable sides only."""
        if self.preset.score == "dot":
            return self
        sides = np.arange(len(vectors)) if usable is None else np.flatnonzero(usable)
        total = np.zeros(vectors.shape[1])
        for begin in range(0, len(sides), MEAN_ROWS):
            total += vectors[sides[begin : begin + MEAN_ROWS]].sum(0, dtype=np.float64)
        return replace(self, mean=(total / max(len(sides), 1)).astype(np.float32))

    def save(self, path: str | PathLike[str]) -> None:
        """One .npz without pickle."""
        arrays = {"preset": np.array(json.dumps(asdict(self.preset))), "mean": self.mean}
        write_npz(path, arrays | asdict(self.mixture))


def load(path: str | PathLike[str]) -> GmmUbm:
    """A recognizer that `save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            preset = Preset(**json.loads(str(arrays["preset"])))
            mixture = Mixture(*(arrays[name] for name in ("weights", "means", "variances")))
            return GmmUbm(preset, mixture, arrays["mean"])
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise SpklinkError(
            f"{path}: not a recognizer saved by spklink ({error}); train it anew"
        ) from None


def train_recognizer(
    preset: Preset,
    blocks: Blocks,
    *,
    seed: int,
    threads: int = 1,
    progress: Callable[[int, float], None] | None = None,
) -> GmmUbm:
    """A mixture of all frames; the mean follows once the sides have vectors (`centred`)."""
    mixture = train(
        blocks,
        preset.components,
        seed=seed,
        iterations=preset.iterations,
        threads=threads,
        progress=progress,
    )
    width = mixture.means.size if preset.score == "cosine" else 0
    return GmmUbm(preset, mixture, np.zeros(width, np.float32))


@nb.njit(cache=True, nogil=True, fastmath=True)
def _inverse_lengths(vectors, mean, scale):  # type: ignore[no-untyped-def]
    """1 / |vector - mean|."""
    for i in range(vectors.shape[0]):
        vector, square = vectors[i], 0.0
        for d in range(vector.size):
            centred = np.float64(vector[d]) - np.float64(mean[d])
            square += centred * centred
        scale[i] = 1.0 / np.sqrt(max(square, 1e-30))


@nb.njit(cache=True, nogil=True, fastmath=True)
def _unit_rows(vectors, mean, unit, less):  # type: ignore[no-untyped-def]
    """unit = (vector - mean) / |vector - mean|, and less = unit . mean."""
    _inverse_lengths(vectors, mean, less)
    for i in range(vectors.shape[0]):
        vector, row, scale, along = vectors[i], unit[i], less[i], 0.0
        for d in range(row.size):
            row[d] = (vector[d] - mean[d]) * scale
            along += np.float64(row[d]) * np.float64(mean[d])
        less[i] = along


@nb.njit(cache=True, nogil=True, fastmath=True)
def _shift_rows(vectors, factor, relevance, count, width, shift):  # type: ignore[no-untyped-def]
    """shift = factor x f_j / (n_j + r), from f_j / T and n_j."""
    for i in range(vectors.shape[0]):
        rate, n = vectors[i, : count * width], vectors[i, count * width :]
        frames = 0.0
        for j in range(count):
            frames += n[j]
        for j in range(count):
            scale = np.float32(factor * frames / (n[j] + relevance))
            for d in range(j * width, (j + 1) * width):
                shift[i, d] = rate[d] * scale
