"""The recognizer that needs nothing but the calls: how a side differs from a mixture of all.

Two presets. `paper`: 1024 Gaussians, relevance MAP with r = 16, the dot score of van Leeuwen and
Brümmer with frame normalisation, made symmetric. `default`, what measured best without labels: 256
Gaussians, r = 1/4, the cosine between weighted shifts about the mean of the database.

Symbols: n_j and f_j are the statistics of a side, f already divided by sigma_j, T = sum n_j its
frames, w_j the weight of Gaussian j. A side's vector holds
  dot      all f_j / T, and all n_j               (shift_x . f_y / T_y + shift_y . f_x / T_x) / 2
                                                  with shift_j = f_j / (n_j + r)
  cosine   sqrt(w_j) f_j / (n_j + r) for all j    cosine, once the mean is subtracted
and never changes when calls are added; the mean can be kept or renewed.

Where there is little speech, `default` trains several mixtures from several starts, and a side's
vector is that of all of them one after the other: how one start happened to cut the space of sounds
counts for less then (docs/calibration.md says by how much). Where there is much, half of the rounds
see a sample of the frames only, and none sees more than so many a Gaussian: as good, in a third of
the time (examples/training_rounds.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.hands import Hands, Here
from spklink.recognizers.mixture import (
    EARLY_FRAMES,
    MOST_FRAMES,
    UNTRAINED,
    Blocks,
    Mixture,
    check_frames,
    statistics,
    train,
)
from spklink.recognizers.products import Cosine, InnerProduct, Operand, Singles, mean_of
from spklink.sound.features import PRESETS as CEPSTRA
from spklink.sound.features import Cepstra
from spklink.sound.listening import Tell
from spklink.sound.speech import Detector


@dataclass(frozen=True)
class Preset:
    """Settings that are published under one name."""

    components: int
    relevance: float
    score: Literal["dot", "cosine"]
    front_end: Cepstra
    iterations: int = 10
    trainings: int = 1  # where there is little speech


# Frames, over an hour of speech. All trainings together take no longer than one with so many; from
# half of them on a single mixture is trained.
LITTLE = 400_000
# Rounds on a sample, and on all frames after them, instead of `iterations` on all: where the sample
# is less than half of these. A choice: twelve and two told speakers apart as well, but left more
# bits in small cliques carved from real calls (examples/carved_tables.py).
EARLY, LAST = 5, 5
# Frames a Gaussian, of 256 or more, that are learned from at most. Neighbouring frames say much the
# same: with twice as many, voices are told apart no better (examples/training_rounds.py).
LEARNED_FROM, FEWEST_GAUSSIANS = 1200, 256
PAPER = Preset(1024, relevance=16.0, score="dot", front_end=CEPSTRA["paper"])
DEFAULT = Preset(256, 0.25, "cosine", front_end=CEPSTRA["default"], trainings=8)
PRESETS = {"default": DEFAULT, "paper": PAPER}


def make(
    preset: str = "default", components: int | None = None, speech: Detector | None = None
) -> GmmUbm:
    """The recognizer of a preset, perhaps with another number of Gaussians or another detector of
    speech, not yet trained."""
    if preset not in PRESETS:
        raise SpklinkError(f"preset {preset!r} is not one of {', '.join(PRESETS)}")
    chosen = PRESETS[preset]
    if speech is not None:
        chosen = replace(chosen, front_end=replace(chosen.front_end, detector=speech))
    if components is None:
        return GmmUbm(chosen)
    if components < 1:
        raise SpklinkError(f"--components {components}: at least 1")
    check_frames(MOST_FRAMES, components)  # the most there can be: refused before any listening
    return GmmUbm(replace(chosen, components=components))


@dataclass(frozen=True)
class GmmUbm:
    """`mean` is the database mean of the vectors, unused by the dot score."""

    preset: Preset
    mixtures: tuple[Mixture, ...] = (UNTRAINED,)  # one, unless the score is a cosine
    mean: Singles | None = None
    name: str = "gmm-ubm"
    learns: bool = True

    @property
    def front_end(self) -> Cepstra:
        return self.preset.front_end

    @property
    def recipe(self) -> dict[str, Any]:
        return {
            name: getattr(self.preset, name)
            for name in ("components", "relevance", "score", "iterations", "trainings")
        } | {"early": [EARLY_FRAMES, EARLY, LAST], "frames": [LEARNED_FROM, MOST_FRAMES]}

    def learn(
        self,
        blocks: Blocks,
        *,
        seed: int,
        threads: int = 1,
        progress: Tell | None = None,
        hands: Hands | None = None,
    ) -> GmmUbm:
        """With mixtures of all frames; the mean follows once the sides have vectors."""
        frames = sum(len(block) for block in blocks())
        most = min(MOST_FRAMES, LEARNED_FROM * max(self.preset.components, FEWEST_GAUSSIANS))
        early, last = self._rounds(min(frames, most))
        count = max(1, min(self.preset.trainings, LITTLE // max(frames, 1)))

        def trained(start: int) -> Mixture:
            def told(done: int, _: float) -> None:
                if progress is not None:
                    progress(start * (early + last) + done, count * (early + last))

            return train(
                blocks,
                self.preset.components,
                seed=[seed, start] if start else seed,
                iterations=last,
                early=early,
                max_frames=most,
                hands=hands or Here(threads),
                progress=told,
            )

        return replace(self, mixtures=tuple(trained(start) for start in range(count)))

    def _rounds(self, frames: int) -> tuple[int, int]:
        """Rounds of training on a sample of so many frames, and on all of them."""
        much = frames > 2 * EARLY_FRAMES * self.preset.components
        return (EARLY, LAST) if much else (0, self.preset.iterations)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.preset.score} {self.preset.relevance!r}".encode())
        for one in self.mixtures:
            for array in (one.weights, one.means, one.variances):
                digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()

    def vector(self, heard: Singles) -> Singles:
        return np.concatenate([self._vector(mixture, heard) for mixture in self.mixtures])

    def _vector(self, mixture: Mixture, heard: Singles) -> Singles:
        found = statistics(mixture, heard)
        f = found.f / np.sqrt(mixture.variances)
        if self.preset.score == "dot":
            rate = f.ravel() / max(len(heard), 1)
            return np.concatenate([rate, found.n]).astype(np.float32)
        shift = f / (found.n + self.preset.relevance)[:, None]
        return (np.sqrt(mixture.weights)[:, None] * shift).ravel().astype(np.float32)

    def centred(self, vectors: Singles, usable: NDArray[np.bool_]) -> GmmUbm:
        """With the mean of these vectors, of the usable sides only."""
        if self.preset.score == "dot":
            return self
        return replace(self, mean=mean_of(vectors, usable))

    @property
    def product(self) -> InnerProduct:
        count, width = self.mixtures[0].means.shape
        if self.preset.score == "dot":
            return Dot(self.preset.relevance, count, width)
        every = len(self.mixtures) * count * width
        return Cosine(np.zeros(every, np.float32) if self.mean is None else self.mean)

    def arrays(self) -> dict[str, NDArray[Any]]:
        each = [asdict(mixture) for mixture in self.mixtures]
        stacked = {name: np.stack([one[name] for one in each]) for name in each[0]}
        return stacked | ({} if self.mean is None else {"mean": self.mean})

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> GmmUbm:
        stacked = (arrays[name] for name in ("weights", "means", "variances"))
        mixtures = tuple(Mixture(*one) for one in zip(*stacked, strict=True))
        return replace(self, mixtures=mixtures, mean=arrays.get("mean"))


@dataclass(frozen=True)
class Dot:
    """The symmetric dot score of vectors with `count` Gaussians of `width` features."""

    relevance: float
    count: int
    width: int

    @property
    def depth(self) -> int:
        return 2 * self.count * self.width

    def left(self, vectors: Singles) -> tuple[Operand, Singles]:
        less = np.zeros(len(vectors), np.float32)
        return (self._half_shifts(vectors), self._rates(vectors)), less

    def right(self, vectors: Singles) -> tuple[Operand, Singles]:
        scale = np.ones(len(vectors), np.float32)
        return (self._rates(vectors), self._half_shifts(vectors)), scale

    def _rates(self, vectors: Singles) -> Singles:
        return vectors[:, : self.count * self.width]

    def _half_shifts(self, vectors: Singles) -> Singles:
        shift = np.empty((len(vectors), self.count * self.width), np.float32)
        _shift_rows(vectors, 0.5, self.relevance, self.count, self.width, shift)
        return shift


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
