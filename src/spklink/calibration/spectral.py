"""Where frequent people may be, from the main direction of their sides alone.

In conversations of one person with many others the differences of the two sides point along his
voice, or against it where he is on the other track: the signs along their main direction tell which
conversations go together, and of the two ways to read them the one with the larger sum is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration
from spklink.calibration.frequent import FrequentVoices, side_line
from spklink.posterior.likelihood import Weight
from spklink.recognizers.sums import BLOCK, Comparison, summed
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 12  # of power iteration; a choice: only signs are needed, and only as a start


def spectral_start(voices: FrequentVoices, curve: Calibration, weight: Weight) -> Floats:
    """(seats,) chances, of two tracks each: 0 or 1 for frequent people, even for others."""
    chance = voices.uniform.copy()
    line = side_line(curve, voices.seconds, len(voices.usable))
    with one_blas_thread():
        for f in range(len(voices.frequent)):
            seats, sides, start = voices.places(f)
            person = int(voices.table.people[voices.frequent.entry[voices.frequent.start[f]]])
            how = voices.comparisons(person)
            second = _signs(how[0], sides[0::2], sides[1::2])
            ways = [np.stack([1.0 - x, x], axis=1).ravel() for x in (second, 1.0 - second)]
            usable = voices.usable[sides]
            value = [summed(how, line, sides, q * usable, start) @ (q * usable) for q in ways]
            chance[seats] = ways[int(value[1] > value[0])]
    return chance


def _signs(how: Comparison, first: Ints, second: Ints) -> Floats:
    """(conversations,) 1.0 where the difference of the sides points one way, 0.0 the other."""
    blocks = [slice(k, k + BLOCK // 2) for k in range(0, len(first), BLOCK // 2)]

    def gaps(part: slice) -> NDArray[np.floating]:
        return np.asarray(how.rows(second[part])[0] - how.rows(first[part])[0])

    kept = gaps(blocks[0]) if len(blocks) == 1 else None
    along: NDArray[np.floating] = gaps(slice(0, 1))[0]
    for _ in range(ROUNDS):
        total = np.zeros_like(along)
        for part in blocks:
            own = gaps(part) if kept is None else kept
            total = total + (own @ along) @ own
        along = total / max(float(np.linalg.norm(total)), 1e-30)
    signs = [(gaps(part) if kept is None else kept) @ along > 0.0 for part in blocks]
    return np.concatenate(signs).astype(np.float64)
