"""Whether probabilities mean what they say: of the answers given with 90 %, are 90 % right?

Answers are cliques (their most probable configuration) or single conversations (the more probable
bit), where the truth is known. They are put in bins by their probability, and the share of right
ones is held against the mean probability of a bin. `hide_known` does so without a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.likelihood import Model
from spklink.posterior.posterior import Options, solve
from spklink.shown import Rows, Shown

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
TWO_SIDED = 1.959963984540054  # standard deviations that bound the middle 95 % of a normal law
NORMAL_SPREAD = 30.0  # standard deviation of a number of errors from which it is taken for normal
RELIABILITY_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True)
class Reliability:
    """Answers (cliques, or conversations) whose probability lies in [low, high)."""

    low: float
    high: float
    count: int
    predicted: float  # mean probability of the answers
    observed: float  # share of them that are right
    observed_low: float  # 95 % Wilson interval
    observed_high: float


@dataclass(frozen=True, repr=False)
class Marginals(Shown):
    """How good the probabilities of single conversations are: those of resolvable cliques, or some
    whose channels were known and hidden. Estimates and intervals count by their middle."""

    conversations: int
    wrong: int
    expected_wrong: float | None
    brier: float | None  # mean squared error of the probability of "exchanged"
    log_score_bits: float | None  # mean -log2 of the probability of the truth
    reliability: list[Reliability]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"reliability": bins_json(self.reliability, "conversations")}

    def _sentence(self) -> str:
        expected = "" if self.expected_wrong is None else f" ({self.expected_wrong:.2f} expected)"
        return f"{self.conversations} conversations, {self.wrong} wrong{expected}"

    def _rows(self) -> Rows:
        """Their reliability."""
        return [one.name for one in fields(Reliability)], map(astuple, self.reliability)


def bins_json(bins: list[Reliability], name: str) -> list[dict[str, Any]]:
    """The count of a bin goes by the name of what is counted."""
    return [
        {(name if key == "count" else key): value for key, value in asdict(bin_).items()}
        for bin_ in bins
    ]


def reliability(
    probability: Floats, right: NDArray[np.bool_], bounds: Sequence[float] = RELIABILITY_EDGES
) -> list[Reliability]:
    """Predicted against observed share of right answers, in bins of their probability."""
    edges = np.array(bounds)
    place = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    bins = []
    for k in range(len(edges) - 1):
        here = place == k
        if not here.any():
            continue
        count, share = int(here.sum()), float(right[here].mean())
        low, high = wilson(share, count)
        bins.append(
            Reliability(
                low=float(edges[k]),
                high=float(edges[k + 1]),
                count=count,
                predicted=float(probability[here].mean()),
                observed=share,
                observed_low=low,
                observed_high=high,
            )
        )
    return bins


def wilson(share: float, count: int, z: float = TWO_SIDED) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in `count` trials."""
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + (z / (2 * count)) ** 2) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def measure_marginals(exchanged: Floats, truth: Bits) -> Marginals:
    """Of conversations with a known truth (0 or 1) and P(exchanged)."""
    chance = np.maximum(exchanged, 1.0 - exchanged)
    right = np.where(exchanged == 0.5, True, (exchanged > 0.5) == (truth == 1))
    of_truth = np.where(truth == 1, exchanged, 1.0 - exchanged)
    count = len(truth)
    with np.errstate(divide="ignore"):
        bits = -np.log2(of_truth)
    return Marginals(
        conversations=count,
        wrong=int((~right).sum()),
        expected_wrong=float((1.0 - chance).sum()) if count else None,
        brier=float(((exchanged - truth) ** 2).mean()) if count else None,
        log_score_bits=finite(float(bits.mean())) if count else None,
        reliability=reliability(chance, right),
    )


def hide_known(
    model: Model, bits: Bits, *, folds: int = 10, seed: int = 0, options: Options | None = None
) -> Marginals:
    """Consistency without a key: conversations whose channels somebody knows are hidden, a part of
    them at a time, predicted from all else, and compared. `model` must not know them already."""
    known = np.random.default_rng(seed).permutation(np.flatnonzero(bits >= 0))
    known = known[model.cliques.resolvable[model.cliques.label[known]]]
    exchanged = np.full(len(bits), np.nan)
    for hidden in np.array_split(known, min(folds, len(known))) if len(known) else ():
        rest = bits.copy()
        rest[hidden] = -1
        exchanged[hidden] = solve(model, rest, options=options).exchanged[hidden]
    known = np.sort(known)
    return measure_marginals(exchanged[known], bits[known])


def error_interval(chance: Floats) -> tuple[int, int]:
    """Of independent errors with these probabilities, the numbers of them that bound the middle
    95 % of what can happen: exactly, by adding one error after the other; by the normal law
    where they are very many."""
    law = np.ones(1)
    spread = float(np.sqrt((chance * (1.0 - chance)).sum()))
    if spread > NORMAL_SPREAD:
        half = TWO_SIDED * spread
        return round(max(chance.sum() - half, 0.0)), round(min(chance.sum() + half, len(chance)))
    most = int(chance.sum() + 10.0 * spread + 20.0)  # more is out of the question
    for p in chance[chance > 0.0]:
        law = np.convolve(law, [1.0 - p, p])[: most + 1]
    total = np.cumsum(law)
    return int(np.searchsorted(total, 0.025)), int(np.searchsorted(total, 0.975))


def finite(value: float | None) -> float | None:
    """Infinite cross entropy (a known channel that is wrong) has no number in JSON."""
    return value if value is not None and isfinite(value) else None
