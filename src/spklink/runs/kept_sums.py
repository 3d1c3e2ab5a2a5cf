"""Frequent voices in a run by a kept model: what was said before, and what is new.

Of every seat it is kept what frequent voices added to it and from which probabilities that was
made; of every frequent person a name that changes with any of his conversations. Whoever has the
same name has the same sums, unless his probabilities have moved (module `resettling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.resettling import NOBODY, Sums, owners
from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent
from spklink.runs.call_keys import Keys, Match
from spklink.runs.clique_store import joined_keys, totals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]


def frequent_names(table: Conversations, frequent: Frequent, keys: Keys) -> Keys:
    """(F,) of each frequent person: a hash of his conversations and his place in their lists."""
    listing, entry = table.listing, frequent.entry
    calls = listing.conversation_of(entry)
    each = joined_keys(keys[calls], listing.position_of(entry))
    label = np.repeat(np.arange(len(frequent)), frequent.calls)
    return joined_keys(totals(each, label, len(frequent)), frequent.calls)


def _seats(table: Conversations) -> Ints:
    """(M + 1,) where the seats of each conversation begin."""
    return np.concatenate([[0], np.cumsum(table.listing.counts * table.sides.counts)])


def sums_arrays(
    table: Conversations, frequent: Frequent, keys: Keys, sums: Floats, base: Floats
) -> dict[str, NDArray[Any]]:
    """What the next run needs to know of frequent voices."""
    return {
        "sums": sums,
        "sums_base": base,
        "sums_start": _seats(table),
        "sums_person": frequent_names(table, frequent, keys),
    }


def recalled_sums(voices: FrequentVoices, keys: Keys, kept: Arrays, match: Match) -> Sums | None:
    """What an earlier run kept, of the seats of this one; None where it kept nothing."""
    if "sums" not in kept:
        return None
    start, earlier = _seats(voices.table), np.asarray(kept["sums_start"])
    there = np.flatnonzero(match.call >= 0)
    now = ranges(start[there], np.diff(start)[there])
    then = ranges(earlier[match.call[there]], np.diff(start)[there])
    sums, base = np.zeros(int(start[-1])), voices.uniform.copy()
    sums[now], base[now] = kept["sums"][then], kept["sums_base"][then]
    names = frequent_names(voices.table, voices.frequent, keys)
    stale = ~np.isin(names, kept["sums_person"])
    owner = owners(voices)
    sums[(owner == NOBODY) | stale[owner]] = 0.0  # nobody's who is frequent now
    return Sums(sums, base, stale)
