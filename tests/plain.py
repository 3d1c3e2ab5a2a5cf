"""The posterior in plain Python, straight from its definition: slow, and shares no code.

Conversations are (first, second) participants; scores a function of two sides (call, channel).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

Side = tuple[int, int]


def side_of(speaker: str, call: tuple[str, str], bit: int) -> int:
    """Channel of a speaker: as listed for bit 0, exchanged for bit 1."""
    return call.index(speaker) ^ bit


def log_likelihood(
    calls: list[tuple[str, str]],
    bits: tuple[int, ...],
    score: Callable[[Side, Side], float],
    rule: str = "paper",
    beta: float = 0.0,
) -> float:
    total = 0.0
    for speaker in {person for call in calls for person in call}:
        mine = [m for m, call in enumerate(calls) if speaker in call]
        n = len(mine)
        if rule == "chain":
            pairs, w = list(itertools.pairwise(mine)), 1.0
        else:
            pairs = list(itertools.combinations(mine, 2))
            w = 2.0 / n if rule == "paper" else (1 + 2 * beta) / (1 + n * beta)
        for i, j in pairs:
            u, v = (side_of(speaker, calls[m], bits[m]) for m in (i, j))
            total += w * score((i, u), (j, v))
    return total


def posterior(
    calls: list[tuple[str, str]],
    score: Callable[[Side, Side], float],
    prior: list[float] | None = None,
    rule: str = "paper",
    beta: float = 0.0,
) -> dict[tuple[int, ...], float]:
    """Probability of every configuration of all conversations together; prior = P(as listed)."""
    chance = prior or [0.5] * len(calls)
    weight = {}
    for bits in itertools.product((0, 1), repeat=len(calls)):
        p = math.prod(q if b == 0 else 1.0 - q for q, b in zip(chance, bits, strict=True))
        if p > 0.0:
            weight[bits] = math.log(p) + log_likelihood(calls, bits, score, rule, beta)
    top = max(weight.values())
    total = math.fsum(math.exp(v - top) for v in weight.values())
    return {bits: math.exp(v - top) / total for bits, v in weight.items()}


def entropy_bits(distribution: dict[tuple[int, ...], float]) -> float:
    return -math.fsum(p * math.log2(p) for p in distribution.values() if p > 0.0)
