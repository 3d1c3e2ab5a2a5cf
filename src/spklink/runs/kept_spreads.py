"""What flips of a frequent person's conversations can change in each other, kept for later runs.

That proves how far sums may be off (module `certificate`), and takes time with the square of his
conversations. It depends on these, on where he is in them and on a model, and on nothing else: a
hash of the first two is its name in a file that belongs to a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.spread import LINES, Spread, of_largest
from spklink.runs.call_keys import Keys
from spklink.runs.clique_store import joined_keys, totals

Ints = NDArray[np.int64]
VERSION = 4  # of kept spreads
NAMES = ("pair", "row", "together", "largest", "shared", "at_best")


@dataclass(frozen=True)
class KeptSpreads:
    """Those of the last run by a model. Only what all pairs of conversations were looked at for is
    kept; the rest is made as quickly as it is read."""

    store: Store
    model: str  # its name
    keys: Keys  # of the conversations of this run

    def found(self, voices: FrequentVoices, place: Ints, *, nowhere: bool) -> dict[int, Spread]:
        """Of people of whom nothing has changed."""
        file = self._file(nowhere)
        kept = self.store.load(file)
        if kept is None:
            return {}
        number = {name: k for k, name in enumerate(kept.arrays["person"].tolist())}
        names = self._names(voices, place).tolist()
        try:
            return {
                f: _spread(kept.arrays, number[n], nowhere)
                for f, n in enumerate(names)
                if n in number
            }
        except (LookupError, ValueError):
            self.store.reject(file)
            return {}

    def keep(
        self,
        voices: FrequentVoices,
        place: Ints,
        spreads: list[Spread],
        *,
        nowhere: bool,
        new: bool,
    ) -> None:
        """Those of this run, unless they are there."""
        if not new:
            return
        some = [f for f, one in enumerate(spreads) if one.largest is not None]
        arrays: dict[str, NDArray[Any]] = {"person": self._names(voices, place)[some]}
        for name in NAMES:
            values = [getattr(spreads[f], name) for f in some]
            arrays[name] = np.concatenate([np.zeros(0), *(one.ravel() for one in values)])
            sizes = np.array([one.size for one in values], np.int64)
            arrays[f"{name}_start"] = np.concatenate([[0], np.cumsum(sizes)])
        arrays["largest"] = arrays["largest"].astype(np.float32)
        self.store.write(self._file(nowhere), {"model": self.model}, arrays)

    def _file(self, nowhere: bool) -> str:
        return key_of({"spreads": VERSION, "of": self.model, "nowhere": nowhere})

    def _names(self, voices: FrequentVoices, place: Ints) -> Keys:
        """(F,) one after the other, since what is kept is in this order too."""
        frequent, listing = voices.frequent, voices.table.listing
        calls = listing.conversation_of(frequent.entry)
        label = np.repeat(np.arange(len(frequent)), frequent.calls)
        rank = np.arange(len(label)) - frequent.start[label]
        each = joined_keys(self.keys[calls], rank, place)
        return joined_keys(totals(each, label, len(frequent)), frequent.calls)


def _spread(arrays: Mapping[str, NDArray[Any]], k: int, nowhere: bool) -> Spread:
    """That of the k-th person; his conversations, or his sides, are in the order of the table."""
    parts = []
    for name in NAMES:
        start = arrays[f"{name}_start"]
        parts.append(np.array(arrays[name][start[k] : start[k + 1]]))
    pair, row, together, largest, shared, at_best = parts
    largest = largest.reshape(len(pair), -1)
    finer = shared.reshape(2, LINES, -1, 1 + nowhere, len(pair))
    return Spread(pair, row, together, of_largest(largest), largest, finer, at_best)
