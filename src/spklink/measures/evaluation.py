"""How good the probabilities are, where the truth is known: the paper's Tables 2 and 3.

For a clique, cross entropy = -log2 P(true configuration), divided by its conversations. Rows are
plain means over cliques. A clique is wrong when the truth is not among its most probable
configurations (ties, as in every unresolvable clique, are no errors). Conversations without a key
are left out: the probability of the keyed ones, whatever the others are, is what counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import exp, isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.network import TIE
from spklink.posterior.likelihood import Model, restrict
from spklink.posterior.posterior import Options, Posterior, Tell, solve

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
Intervals = dict[str, tuple[float, float]]
QUICK_SECONDS = 2.0  # predicted, for all cliques of a row together
SCALES = (0.01, 100.0)  # where the best factor on all log-likelihood-ratios is sought
NORMAL_SPREAD = 30.0  # standard deviation of a number of errors from which it is taken for normal
RELIABILITY_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True)
class CliqueScores:
    """One entry a clique that has a key for at least one conversation."""

    clique: NDArray[np.int64]
    size: NDArray[np.int64]
    keyed: NDArray[np.int64]
    resolvable: NDArray[np.bool_]
    cross_low: Floats  # -log2 P(truth): both ends, equal where the posterior is exact
    cross_high: Floats
    wrong: NDArray[np.bool_]
    best_low: Floats  # probability of the maximum, all tied configurations together
    best_high: Floats

    @property
    def per_low(self) -> Floats:
        """Bits a conversation, low end."""
        return self.cross_low / self.keyed

    @property
    def per_high(self) -> Floats:
        return self.cross_high / self.keyed

    @property
    def per_conversation(self) -> Floats:
        """Bits a conversation, the middle of the interval."""
        return (self.per_low + self.per_high) / 2.0


@dataclass(frozen=True)
class Row:
    """One row of Tables 2 and 3 together."""

    conversations: int | None  # a clique, None for mixed rows
    configurations: int | str | None
    cliques: int
    unresolvable: int
    cross_entropy_bits: float | None
    resolvable_bits: float | None
    confusion: float | None
    perplexity: float | None
    clique_errors: int
    clique_error_rate: float | None
    recalibrated_bits: float | None
    scale_ratio: float | None
    intervals: Intervals = field(default_factory=dict)  # of figures that are not exact

    def as_json(self) -> dict[str, Any]:
        """The row, with <figure>_low and <figure>_high beside every figure that is not exact."""
        plain = asdict(self)
        return {name: value for name, value in plain.items() if name != "intervals"} | ends(
            self.intervals
        )


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


@dataclass(frozen=True)
class Marginals:
    """How good the probabilities of single conversations are: those of resolvable cliques, or some
    whose channels were known and hidden. Estimates and intervals count by their middle."""

    conversations: int
    wrong: int
    expected_wrong: float | None
    brier: float | None  # mean squared error of the probability of "exchanged"
    log_score_bits: float | None  # mean -log2 of the probability of the truth
    reliability: list[Reliability]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"reliability": _bins_json(self.reliability, "conversations")}


@dataclass(frozen=True)
class Evaluation:
    total: int
    wrong: int
    without_key: int
    foreign_key_rows: int
    cross_entropy_bits: float | None
    by_size: list[Row]
    resolvable: Row
    at_least_two: Row
    all: Row
    expected_clique_errors: float | None
    implied_errors: tuple[int, int]  # 95 % of the numbers of wrong cliques the posteriors imply
    reliability: list[Reliability]
    marginals: Marginals
    intervals: Intervals = field(default_factory=dict)  # of the totals that are not exact

    def as_json(self) -> dict[str, Any]:
        totals = {k: v for k, v in self.intervals.items() if k == "cross_entropy_bits"}
        expected = {k: v for k, v in self.intervals.items() if k == "expected_clique_errors"}
        return {
            "conversations": {
                "total": self.total,
                "wrong": self.wrong,
                "cross_entropy_bits": self.cross_entropy_bits,
                "without_key": self.without_key,
                "foreign_key_rows": self.foreign_key_rows,
                **ends(totals),
            },
            "by_size": [row.as_json() for row in self.by_size],
            "resolvable": self.resolvable.as_json(),
            "at_least_two": self.at_least_two.as_json(),
            "all": self.all.as_json(),
            "expected_clique_errors": self.expected_clique_errors,
            **ends(expected),
            "implied_clique_errors": list(self.implied_errors),
            "reliability": _bins_json(self.reliability, "cliques"),
            "marginals": self.marginals.as_json(),
        }


def _bins_json(bins: list[Reliability], name: str) -> list[dict[str, Any]]:
    """The count of a bin goes by the name of what is counted."""
    return [
        {(name if key == "count" else key): value for key, value in asdict(bin_).items()}
        for bin_ in bins
    ]


def ends(intervals: Intervals) -> dict[str, float | None]:
    """{"x": (1, 2)} as {"x_low": 1, "x_high": 2}; an end that is not finite is None."""
    flat: dict[str, float | None] = {}
    for name, (low, high) in intervals.items():
        flat |= {f"{name}_low": _finite(low), f"{name}_high": _finite(high)}
    return flat


def evaluate(
    model: Model,
    truth: Bits,
    *,
    foreign_key_rows: int = 0,
    options: Options | None = None,
    tell: Tell | None = None,
) -> Evaluation:
    """Measure the posterior of `model` against `truth` (0, 1, or -1 where there is no key)."""
    posterior = solve(model, options=options, tell=tell)
    scores = score_cliques(posterior, truth, options=options)
    sizes = np.unique(scores.size)
    keyed = truth >= 0
    counted = keyed & model.cliques.resolvable[model.cliques.label]
    total, open_ = int(keyed.sum()), scores.resolvable
    intervals: Intervals = {}

    def figure(name: str, low: float, high: float) -> float | None:
        return _figure(intervals, name, low, high)

    def row(chosen: NDArray[np.bool_], size: int | None = None) -> Row:
        return _row(posterior, truth, scores, chosen, size)

    return Evaluation(
        total=total,
        wrong=int((posterior.best[counted] != truth[counted]).sum()),
        without_key=len(truth) - total,
        foreign_key_rows=foreign_key_rows,
        cross_entropy_bits=figure(
            "cross_entropy_bits", scores.cross_low.sum() / total, scores.cross_high.sum() / total
        )
        if total
        else None,
        by_size=[row(scores.size == m, int(m)) for m in sizes],
        resolvable=row(open_),
        at_least_two=row(scores.size >= 2),
        all=row(np.ones(len(scores.size), np.bool_)),
        expected_clique_errors=figure(
            "expected_clique_errors",
            (1.0 - scores.best_high[open_]).sum(),
            (1.0 - scores.best_low[open_]).sum(),
        ),
        implied_errors=error_interval(1.0 - (scores.best_low + scores.best_high)[open_] / 2.0),
        reliability=reliability(
            (scores.best_low + scores.best_high)[open_] / 2.0, ~scores.wrong[open_]
        ),
        marginals=measure_marginals(posterior.exchanged[counted], truth[counted]),
        intervals=intervals,
    )


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
        log_score_bits=_finite(float(bits.mean())) if count else None,
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
        half = 1.959963984540054 * spread
        return round(max(chance.sum() - half, 0.0)), round(min(chance.sum() + half, len(chance)))
    most = int(chance.sum() + 10.0 * spread + 20.0)  # more is out of the question
    for p in chance[chance > 0.0]:
        law = np.convolve(law, [1.0 - p, p])[: most + 1]
    total = np.cumsum(law)
    return int(np.searchsorted(total, 0.025)), int(np.searchsorted(total, 0.975))


def _figure(intervals: Intervals, name: str, low: float, high: float) -> float | None:
    """The figure where its ends are equal; else None, and the interval is noted."""
    if low == high:
        return _finite(low)
    intervals[name] = (float(low), float(high))
    return None


def score_cliques(
    posterior: Posterior, truth: Bits, *, options: Options | None = None
) -> CliqueScores:
    """Cross entropy and error of every clique with a key."""
    model = posterior.model
    cliques = model.cliques
    # The same sum with the keyed conversations at the truth.
    given = solve(model, truth, options=options)
    keyed = sums(cliques.label, truth >= 0, len(cliques)).astype(np.int64)
    denied = (truth >= 0) & (model.prior.clamped >= 0) & (truth != model.prior.clamped)
    impossible = sums(cliques.label, denied, len(cliques)) > 0
    low = np.maximum(posterior.log_evidence_low - given.log_evidence_high, 0.0) / np.log(2.0)
    high = np.maximum(posterior.log_evidence_high - given.log_evidence_low, 0.0) / np.log(2.0)
    best_low, best_high = posterior.best_probability()
    ties = np.maximum(posterior.ties, 1)
    k = np.flatnonzero(keyed)
    return CliqueScores(
        clique=k,
        size=cliques.size[k],
        keyed=keyed[k],
        resolvable=cliques.resolvable[k],
        cross_low=np.where(impossible, np.inf, low)[k],
        cross_high=np.where(impossible, np.inf, high)[k],
        wrong=(impossible | (given.best_value < posterior.best_value - TIE))[k],
        best_low=np.minimum(best_low * ties, 1.0)[k],
        best_high=np.minimum(best_high * ties, 1.0)[k],
    )


def table_row(
    low: Floats, high: Floats, resolvable: NDArray[np.bool_], wrong: NDArray[np.bool_]
) -> dict[str, Any]:
    """The paper's averages over cliques: confusion of the mean, not mean of the confusions.

    `low` and `high` are the bits a conversation of each clique, equal where they are exact.
    """
    intervals: Intervals = {}
    count, solvable = len(low), int(resolvable.sum())
    row: dict[str, Any] = {"cliques": count, "unresolvable": count - solvable}
    for name in ("cross_entropy_bits", "resolvable_bits", "confusion", "perplexity"):
        row[name] = None
    if count:
        ends_ = np.array([low.mean(), high.mean()])
        for name, pair in (
            ("cross_entropy_bits", ends_),
            ("confusion", np.exp2(ends_) - 1.0),
            ("perplexity", np.exp2(ends_)),
        ):
            row[name] = _figure(intervals, name, *pair)
    if solvable:
        pair = low[resolvable].mean(), high[resolvable].mean()
        row["resolvable_bits"] = _figure(intervals, "resolvable_bits", *pair)
    return row | {
        "clique_errors": int(wrong.sum()),
        "clique_error_rate": float(wrong.mean()) if count else None,
        "intervals": intervals,
    }


def _row(
    posterior: Posterior,
    truth: Bits,
    scores: CliqueScores,
    chosen: NDArray[np.bool_],
    size: int | None = None,
) -> Row:
    cliques = scores.clique[chosen & scores.resolvable]
    bits, scale = None, None
    # The best factor needs the sum many times over: only where that is exact and quick.
    if posterior.exact[cliques].all() and posterior.seconds[cliques].sum() <= QUICK_SECONDS:
        bits, scale = best_scale(*keep_cliques(posterior.model, truth, scores, chosen))
    averages = table_row(
        scores.per_low[chosen],
        scores.per_high[chosen],
        scores.resolvable[chosen],
        scores.wrong[chosen],
    )
    return Row(
        conversations=size,
        configurations=None if size is None else configurations(size),
        **averages,
        recalibrated_bits=bits,
        scale_ratio=scale,
    )


def configurations(size: int) -> int | str:
    """2^M as an integer while a double can hold it exactly, else as text."""
    return 2**size if size <= 53 else f"2^{size}"


def best_scale(model: Model, truth: Bits) -> tuple[float | None, float | None]:
    """Least mean cross entropy of all cliques over a factor on all scores, and that factor.

    The mean is convex in the factor, so its slope has one root: bracketed and solved, not searched
    for on a grid. The factor is None where the slope has no root within SCALES.
    """
    from scipy.optimize import brentq

    if not len(model.cliques):
        return None, None
    low, high = (log(scale) for scale in SCALES)

    def slope(log_scale: float) -> float:
        return _scaled(model, truth, exp(log_scale))[1]

    if slope(low) >= 0.0:
        return _scaled(model, truth, SCALES[0])[0], None
    if slope(high) <= 0.0:
        return _scaled(model, truth, SCALES[1])[0], None
    scale = exp(brentq(slope, low, high, xtol=1e-10))
    return _scaled(model, truth, scale)[0], scale


def keep_cliques(
    model: Model, truth: Bits, scores: CliqueScores, chosen: NDArray[np.bool_]
) -> tuple[Model, Bits]:
    """What Table 3 is about: resolvable cliques of a finite cross entropy."""
    wanted = np.zeros(len(model.cliques), np.bool_)
    wanted[scores.clique[chosen & scores.resolvable & np.isfinite(scores.cross_high)]] = True
    part, kept = restrict(model, wanted)
    return part, truth[kept]


def _scaled(model: Model, truth: Bits, scale: float) -> tuple[float, float]:
    """Mean cross entropy (bits a conversation) with all scores multiplied, and its derivative."""
    scaled = model.scaled(scale)
    free, given = solve(scaled), solve(scaled, truth)
    keyed = sums(model.cliques.label, truth >= 0, len(model.cliques)) * np.log(2.0)
    bits = np.maximum(free.log_evidence - given.log_evidence, 0.0) / keyed
    slope = (_mean_likelihood(model, free) - _mean_likelihood(model, given)) / keyed
    return float(bits.mean()), float(slope.mean())


def _mean_likelihood(model: Model, posterior: Posterior) -> Floats:
    """(K,) expected log-likelihood at scale 1 under a posterior: the derivative of log_evidence."""
    label, count = model.cliques.label, len(model.cliques)
    return (
        model.constant
        + sums(label, model.field * posterior.exchanged, count)
        + sums(label[model.first], model.coupling * posterior.both_exchanged, count)
    )


def reliability(probability: Floats, right: NDArray[np.bool_]) -> list[Reliability]:
    """Predicted against observed share of right answers, in bins of their probability."""
    edges = np.array(RELIABILITY_EDGES)
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


def wilson(share: float, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in `count` trials."""
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + (z / (2 * count)) ** 2) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def _finite(value: float | None) -> float | None:
    """Infinite cross entropy (a known channel that is wrong) has no number in JSON."""
    return value if value is not None and isfinite(value) else None
