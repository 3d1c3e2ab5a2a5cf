"""A recognizer whose vectors somebody else computed: it hears nothing and learns nothing.

Vectors are compared as those of any other: by their cosine about the mean of the database, in the
order of their bytes, so that rows and names change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from spklink.cache import key_of
from spklink.database.segments import Turns
from spklink.errors import SpklinkError
from spklink.formats.vectors import Vectors
from spklink.recognizers.products import MEAN_ROWS
from spklink.recognizers.recognizer import Embedding, Recognizer, Singles
from spklink.recognizers.training import Trained, room, usable_calls
from spklink.sound.audio import Problem
from spklink.sound.front_end import FrontEnd, Side
from spklink.sound.listening import Sound

ALIKE = 1e-6  # vectors closer to their mean than this share of its length are one and the same


@dataclass(frozen=True)
class Unheard:
    """The front end of vectors that are there already."""

    @property
    def key(self) -> dict[str, Any]:
        return {"given": "embeddings"}

    def hear(
        self, files: tuple[Path, ...], tracks: int, *, turns: Turns | None = None
    ) -> tuple[list[Side], list[Problem]]:
        raise SpklinkError("embeddings were given: nobody listens")


@dataclass(frozen=True)
class GivenVectors(Embedding):
    """Known by the hash of the file, or of the vectors themselves."""

    sha256: str
    dimensions: int
    name: ClassVar[str] = "embeddings"
    front_end: FrontEnd = Unheard()

    @property
    def recipe(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "dimensions": self.dimensions}

    def vector(self, heard: Singles) -> Singles:
        raise SpklinkError("embeddings were given: no vector is computed")


def given_vectors(found: Vectors, sound: Sound, sha256: str, folder: Path) -> Trained | None:
    """The vectors of all sides in the order of the sound, as any recognizer's; None where no side
    can be used."""
    if not sound.usable.any():
        return None
    order, calls = sound.order, usable_calls(sound)
    vectors = room(found.vectors.shape, folder)
    for begin in range(0, len(order), MEAN_ROWS):
        sides = order[begin : begin + MEAN_ROWS]
        vectors[begin : begin + len(sides)] = found.vectors[sides]
    vectors[~sound.usable[order]] = 0.0
    plain: Recognizer = GivenVectors(sha256, vectors.shape[1])
    ready = plain.centred(vectors, sound.usable[order])
    _refuse_alike(vectors, ready.arrays()["mean"], np.flatnonzero(sound.usable[order]))
    name = key_of({"embeddings": sha256, "calls": calls})
    return Trained(name, ready, vectors, np.argsort(order), len(calls), len(calls))


def _refuse_alike(vectors: Singles, mean: Singles, rows: Any) -> None:
    far = 0.0
    for begin in range(0, len(rows), MEAN_ROWS):
        gap = vectors[rows[begin : begin + MEAN_ROWS]].astype(np.float64) - mean
        far = max(far, float(np.abs(gap).max()))
    if len(rows) > 1 and far <= ALIKE * max(float(np.abs(mean).max()), 1e-30):
        raise SpklinkError(
            f"embeddings: all {len(rows)} vectors are alike; they tell no voice from another: "
            "is it the right column, layer or model?"
        )
