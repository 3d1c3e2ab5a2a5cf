"""What a recognizer is: from what it hears of a side to a vector, from two vectors to a score.

One object does it, one file a recognizer, and the pipeline knows nothing else of it: listening asks
for its front end, training lets it learn and settle on a database, scoring uses its inner product.
Scores are higher for the same speaker, symmetric, and not yet calibrated.

`Embedding` is the base of those that learn nothing: they give a front end and a vector, and vectors
are compared by their cosine about the mean of the database.

Conventions: a row of `vectors` is the vector of one side; those of unusable sides are zero. Which
row is which side is no concern of a recognizer: they lie in the order of their sound.
"""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spklink.recognizers.products import Cosine, InnerProduct, mean_of
from spklink.sound.front_end import FrontEnd
from spklink.sound.listening import Tell

Singles = NDArray[np.float32]
Mask = NDArray[np.bool_]
Blocks = Callable[[], Iterable[Singles]]  # can be gone through again and again
Arrays = Mapping[str, NDArray[Any]]


class Recognizer(Protocol):
    """Every method returns something new; a recognizer itself never changes."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def front_end(self) -> FrontEnd:
        """What it wants to hear."""

    @property
    def recipe(self) -> dict[str, Any]:
        """JSON-able: all that training depends on beyond speech and seed."""

    @property
    def learns(self) -> bool:
        """Whether it has to be trained on speech."""

    def learn(
        self, blocks: Blocks, *, seed: int, threads: int = 1, progress: Tell | None = None
    ) -> Self:
        """Trained on blocks of what the front end gives."""

    @property
    def fingerprint(self) -> str:
        """Vectors made under the same one can be compared."""

    def vector(self, heard: Singles) -> Singles:
        """(width,) the vector of a side; called from several threads, never with nothing heard."""

    def centred(self, vectors: Singles, usable: Mask) -> Self:
        """Settled on a database, of which these are the vectors."""

    @property
    def product(self) -> InnerProduct:
        """How two vectors are compared, once it is settled."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it has learned, for the cache."""

    def restored(self, arrays: Arrays) -> Self:
        """With what it had learned."""


class Embedding(ABC):
    """A recognizer that learns nothing: give `name`, `front_end` and `vector`; and in `recipe` all
    that a vector depends on beside the front end (the hash of a model, a version)."""

    name: ClassVar[str]
    front_end: FrontEnd
    learns: ClassVar[bool] = False
    mean: Singles | None = None  # of the database

    @property
    def recipe(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def vector(self, heard: Singles) -> Singles:
        """(width,) float32, from what the front end gave."""

    def learn(
        self, blocks: Blocks, *, seed: int, threads: int = 1, progress: Tell | None = None
    ) -> Self:
        return self

    @property
    def fingerprint(self) -> str:
        what = {"name": self.name, "front_end": self.front_end.key, "recipe": self.recipe}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def centred(self, vectors: Singles, usable: Mask) -> Self:
        return self._about(mean_of(vectors, usable))

    @property
    def product(self) -> InnerProduct:
        assert self.mean is not None, "not settled on a database yet"
        return Cosine(self.mean)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self.mean is None else {"mean": self.mean}

    def restored(self, arrays: Arrays) -> Self:
        return self._about(arrays["mean"])

    def _about(self, mean: Singles) -> Self:
        twin = copy.copy(self)
        object.__setattr__(twin, "mean", mean)  # a subclass may be a frozen dataclass
        return twin
