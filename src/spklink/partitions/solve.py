"""Which method answers for a problem: exact where that can be afforded, else chains, else linking.

exact           up to EXACT_ITEMS items at once, or in groups that are all but certainly apart
sample          chains, up to SAMPLED_ITEMS items
agglomerative   linking alone, of which nothing is promised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spklink.errors import SpklinkError
from spklink.partitions.agglomerative import agglomerate
from spklink.partitions.beliefs import Beliefs, of_exact, of_linked, of_sampled, of_separated
from spklink.partitions.exact import solve_exactly
from spklink.partitions.items import Problem
from spklink.partitions.sampling import sample
from spklink.partitions.separated import MOST_SIDES, find_groups, solve_separated

METHODS = ("auto", "exact", "agglomerative", "sample")
EXACT_ITEMS = 18  # of `auto`: a second or two (benchmarks/partitions.py)
MOST_EXACT_ITEMS = 22  # minutes, and more than a gigabyte
GROUP_ITEMS = 14  # of `auto`, solved apart
SAMPLED_ITEMS = 1500  # of `auto`: minutes
SPANS = 0.01  # of `auto`: a bound above is worth less than chains
SWEEPS = 1000


@dataclass(frozen=True)
class How:
    """How a partition is looked for."""

    method: str = "auto"
    linkage: str = "gain"
    threshold: float = 0.0
    speakers: int | None = None
    floor: float = 0.01
    sweeps: int = SWEEPS
    seed: int = 0
    threads: int = 1


def solve_partition(
    problem: Problem, how: How, tell: Callable[[int, int], None] | None = None
) -> Beliefs:
    """What is believed about the partition of all items."""
    items = len(problem.items)
    if how.method not in METHODS:
        raise SpklinkError(f"--method {how.method!r} is not one of {', '.join(METHODS)}")
    if how.method == "agglomerative":
        return _linked(problem, how)
    if how.method in ("auto", "exact"):
        found = _exactly(problem, how, asked=how.method == "exact")
        if found is not None:
            return found
    if how.method == "auto" and items > SAMPLED_ITEMS:
        return _linked(problem, how)
    chains = sample(
        problem,
        sweeps=how.sweeps,
        seed=how.seed,
        threads=how.threads,
        speakers=how.speakers,
        tell=tell,
    )
    return of_sampled(chains, how.floor)


def _linked(problem: Problem, how: How) -> Beliefs:
    label = agglomerate(problem, how.linkage, threshold=how.threshold, speakers=how.speakers)
    return of_linked(problem, label, how.floor, linkage=how.linkage)


def _exactly(problem: Problem, how: How, *, asked: bool) -> Beliefs | None:
    """The exact answer, or one with a proved bound; None where neither can be had."""
    items = len(problem.items)
    if items <= (MOST_EXACT_ITEMS if asked else EXACT_ITEMS):
        return of_exact(solve_exactly(problem), how.floor)
    if problem.sides <= MOST_SIDES:
        groups, c = find_groups(problem, MOST_EXACT_ITEMS if asked else GROUP_ITEMS)
        if len(groups) > 1:
            found = solve_separated(problem, groups, c)
            if found.spans < (1.0 if asked else SPANS):
                return of_separated(found, how.floor)
    if asked:
        raise SpklinkError(
            f"{items} sides are too many for an exact partition: at most {MOST_EXACT_ITEMS} at "
            "once, and no scores separate them provably; use --method sample or agglomerative"
        )
    return None
