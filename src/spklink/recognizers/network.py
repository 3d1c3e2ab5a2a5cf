"""A speaker network in an ONNX file as a recognizer: its vectors, compared by their cosine.

The front end (`sound/embedded.py`) runs the network; a side's vector is the mean of those of its
pieces, each of length one. Nothing is learned; vectors are seen from the mean of the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.onnx_files import open_network, unit
from spklink.recognizers.network_reading import Understood, tried, understand
from spklink.recognizers.recognizer import Embedding
from spklink.sound.embedded import Embedded, embedded
from spklink.sound.speech import DEFAULT, Detector

Singles = NDArray[np.float32]
Mask = NDArray[np.bool_]
VERSION = 1  # of what is done with the vectors of pieces
ALIKE = 1e-4  # of the length of vectors: sides that all differ by less are told apart by nothing


@dataclass(frozen=True)
class NetworkRecognizer(Embedding):
    """A network that has been read and tried."""

    front_end: Embedded
    title: str
    mean: Singles | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.title

    @property
    def recipe(self) -> dict[str, Any]:
        return {"version": VERSION}

    def vector(self, heard: Singles) -> Singles:
        mean: Singles = heard.mean(0, dtype=np.float64, keepdims=True).astype(np.float32)
        return np.asarray(unit(mean)[0], np.float32)

    def centred(self, vectors: Singles, usable: Mask) -> Self:
        """Settled on a database; refused where all its sides are one to the network."""
        some = vectors[usable]
        if len(some) > 1 and np.abs(some - some[0]).max() < ALIKE:
            raise SpklinkError(
                f"{self.front_end.network}: gives the same vector for all {len(some)} sides; it is "
                "no speaker network, or wants other settings (`spklink recognizers` lists them)"
            )
        return super().centred(vectors, usable)


def make(path: str | Path, *, speech: Detector | None = None) -> NetworkRecognizer:
    """The recognizer of an .onnx file; what is wrong with that is said before any listening."""
    understood = understand(Path(path))
    return made_of(understood, speech or DEFAULT)


def made_of(understood: Understood, speech: Detector = DEFAULT) -> NetworkRecognizer:
    network = open_network(understood.path, understood.sha256)
    width = tried(network, understood)
    front_end = embedded(understood.path, understood.sha256, understood.wants, width, speech)
    return NetworkRecognizer(front_end, understood.name)
