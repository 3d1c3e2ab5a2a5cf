"""How probable a partition is before any voice is heard.

A prior is a value h(n) of every block of n sides and a value g(K) of the number of blocks, both
natural logarithms up to a constant:

    uniform             every partition alike
    crp:ALPHA           Chinese restaurant: ALPHA^K times the product of (n - 1)!
    pitman-yor:ALPHA,D  the same with heavier tails: few people of many sides, many of one

A number of speakers that is known leaves the partitions into so many blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from spklink.errors import SpklinkError

Floats = NDArray[np.float64]
UNIFORM, CRP, PITMAN_YOR = "uniform", "crp", "pitman-yor"
HOW = f"{UNIFORM}, {CRP}:ALPHA or {PITMAN_YOR}:ALPHA,D"


@dataclass(frozen=True)
class PartitionPrior:
    """One of the laws above."""

    name: str = UNIFORM
    alpha: float = 1.0
    discount: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in (UNIFORM, CRP, PITMAN_YOR):
            raise SpklinkError(f"--prior {self.name!r} is not {HOW}")
        if not (isfinite(self.alpha) and 0.0 <= self.discount < 1.0):
            raise SpklinkError(f"--prior {self}: ALPHA is a number, D from 0 to below 1")
        if self.name != UNIFORM and not self.alpha > -self.discount:
            raise SpklinkError(f"--prior {self}: ALPHA has to be above {-self.discount:g}")
        if self.name == CRP and self.discount:
            raise SpklinkError(f"--prior {CRP} takes no second number; that is {PITMAN_YOR}")

    def __str__(self) -> str:
        numbers = {CRP: f":{self.alpha:g}", PITMAN_YOR: f":{self.alpha:g},{self.discount:g}"}
        return self.name + numbers.get(self.name, "")

    def of_block(self, sides: int) -> Floats:
        """(sides + 1,) h(n); that of no sides is 0."""
        found = np.zeros(sides + 1)
        n = np.arange(1, sides + 1, dtype=np.float64)
        if self.name == CRP:
            found[1:] = np.log(self.alpha) + gammaln(n)
        elif self.name == PITMAN_YOR:
            found[1:] = gammaln(n - self.discount) - gammaln(1.0 - self.discount)
        return found

    def of_count(self, blocks: int) -> Floats | None:
        """(blocks + 1,) g(K); None where the blocks say all."""
        if self.name != PITMAN_YOR:
            return None
        steps = np.log(self.alpha + self.discount * np.arange(1, max(blocks, 1)))
        return np.concatenate([[0.0, 0.0], np.cumsum(steps)])[: blocks + 1]


def read_prior(text: str) -> PartitionPrior:
    """`crp:2.5` as a prior."""
    name, _, numbers = text.partition(":")
    try:
        values = [float(one) for one in numbers.split(",")] if numbers else []
    except ValueError:
        values = [float("nan")]
    wanted = {UNIFORM: 0, CRP: 1, PITMAN_YOR: 2}.get(name, -1)
    if wanted != len(values):
        raise SpklinkError(f"--prior {text!r} is not {HOW}")
    return PartitionPrior(name, *values)
