"""What flips of a frequent person's conversations can change in each other, kept for later runs.

That proves how far sums may be off (module `certificate`), and takes time with the square of his
conversations. It depends on these, on where he is in them and on a model, and on nothing else: a
hash of the first two is its name in a file that belongs to a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.calibration.certificate import Spread
from spklink.calibration.frequent import FrequentVoices
from spklink.runs.call_keys import Keys
from spklink.runs.clique_store import joined_keys, totals

Bits = NDArray[np.int8]
VERSION = 1  # of kept spreads
NAMES = tuple(one.name for one in fields(Spread))


@dataclass(frozen=True)
class KeptSpreads:
    """Those of the last run by a model."""

    store: Store
    model: str  # its name
    keys: Keys  # of the conversations of this run

    def found(self, voices: FrequentVoices, best: Bits) -> dict[int, Spread]:
        """Of people of whom nothing has changed."""
        kept = self.store.load(self._file)
        if kept is None:
            return {}
        number = {name: k for k, name in enumerate(kept.arrays["person"].tolist())}
        names = self._names(voices, best).tolist()
        try:
            return {f: _spread(kept.arrays, number[n]) for f, n in enumerate(names) if n in number}
        except (LookupError, ValueError):
            self.store.reject(self._file)
            return {}

    def keep(self, voices: FrequentVoices, best: Bits, spreads: list[Spread]) -> None:
        """Those of this run."""
        arrays: dict[str, NDArray[Any]] = {"person": self._names(voices, best)}
        for name in NAMES:
            values = [getattr(one, name) for one in spreads]
            arrays[name] = np.concatenate([one.ravel() for one in values])
            sizes = np.array([one.size for one in values])
            arrays[f"{name}_start"] = np.concatenate([[0], np.cumsum(sizes)])
        self.store.write(self._file, {"model": self.model}, arrays)

    @property
    def _file(self) -> str:
        return key_of({"spreads": VERSION, "of": self.model})

    def _names(self, voices: FrequentVoices, best: Bits) -> Keys:
        """(F,) one after the other, since what is kept is in this order too."""
        frequent, listing = voices.frequent, voices.table.listing
        calls = listing.conversation_of(frequent.entry)
        label = np.repeat(np.arange(len(frequent)), frequent.calls)
        rank = np.arange(len(label)) - frequent.start[label]
        position = listing.position_of(frequent.entry)
        each = joined_keys(self.keys[calls], position, rank, best[calls])
        return joined_keys(totals(each, label, len(frequent)), frequent.calls)


def _spread(arrays: Mapping[str, NDArray[Any]], k: int) -> Spread:
    """That of the k-th person; the conversations of one person are the rows of every array."""
    parts = {}
    for name in NAMES:
        start = arrays[f"{name}_start"]
        parts[name] = np.array(arrays[name][start[k] : start[k + 1]])
    parts["largest"] = parts["largest"].reshape(len(parts["pair"]), -1)
    return Spread(**parts)
