"""All partitions of a few things, one by one: what everything exact is held against.

It shares no code with the package: a partition is a list of labels, each block is valued by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator


def partitions(n: int) -> Iterator[list[int]]:
    """Every partition of n things, by the label of each."""

    def grow(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for k in range(used + 1):
            yield from grow([*labels, k], max(used, k + 1))

    yield from grow([], 0)


def log_prior(name: str, alpha: float, discount: float, sizes: list[int]) -> float:
    """Of block sizes, as one customer after the other sits down (up to the constant)."""
    if name == "uniform":
        return 0.0
    total = 0.0
    for tables, size in enumerate(sizes):
        total += math.log(alpha + discount * tables) if tables or name == "crp" else 0.0
        total += sum(math.log(k - discount) for k in range(1, size))
    return total


def weigh(llr, labels, *, weight, prior, together=(), apart=(), speakers=None) -> float:
    """log of prior times likelihood of one partition of the sides; -inf where it may not be."""
    blocks = [[i for i, k in enumerate(labels) if k == b] for b in sorted(set(labels))]
    if speakers is not None and len(blocks) != speakers:
        return -math.inf
    if any(labels[a] != labels[b] for a, b in together):
        return -math.inf
    if any(labels[a] == labels[b] for a, b in apart):
        return -math.inf
    total = log_prior(*prior, [len(block) for block in blocks])
    for block in blocks:
        n = len(block)
        if n > 1:
            pairs = sum(llr[i][j] for k, i in enumerate(block) for j in block[k + 1 :])
            total += weight(n) * pairs
    return total


def enumerate_all(llr, **options) -> list[tuple[list[int], float]]:
    """Every partition that may be, and log of its weight."""
    found = ((labels, weigh(llr, labels, **options)) for labels in partitions(len(llr)))
    return [(labels, value) for labels, value in found if value > -math.inf]
