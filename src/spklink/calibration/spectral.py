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
from spklink.recognizers.centre import main_signs
from spklink.recognizers.sums import BLOCK, Comparison
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def spectral_start(voices: FrequentVoices, curve: Calibration, weight: Weight) -> Floats:
    """(seats,) chances, of two tracks each: 0 or 1 for frequent people, even for others."""
    chance = voices.uniform.copy()
    line = side_line(curve, voices.seconds, len(voices.usable))
    with one_blas_thread():
        for f in range(len(voices.frequent)):
            seats, together = voices.seats[f], voices.together[f]
            sides = together.sides
            second = _signs(together.comparisons[0], sides[0::2], sides[1::2])
            ways = [np.stack([1.0 - x, x], axis=1).ravel() for x in (second, 1.0 - second)]
            usable = voices.usable[sides]
            value = [together(line, q * usable) @ (q * usable) for q in ways]
            chance[seats] = ways[int(value[1] > value[0])]
    return chance


def _signs(how: Comparison, first: Ints, second: Ints) -> Floats:
    """(conversations,) 1.0 where the difference of the sides points one way, 0.0 the other."""

    def gaps(part: slice) -> NDArray[np.floating]:
        return np.asarray(how.rows(second[part])[0] - how.rows(first[part])[0])

    return main_signs(gaps, len(first), BLOCK // 2).astype(np.float64)
