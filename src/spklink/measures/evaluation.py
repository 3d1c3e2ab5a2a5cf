"""How good the probabilities are, where the truth is known: the paper's Tables 2 and 3.

For a clique, cross entropy = -log2 P(true configuration), divided by its conversations (module
`posterior.truth`). Rows are plain means over cliques. Whether the probabilities mean what they say
is the other half of an evaluation: module `reliability`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.labels import Labels
from spklink.measures.cues import CueRow
from spklink.measures.reliability import (
    Marginals,
    Reliability,
    bins_json,
    error_interval,
    finite,
    measure_marginals,
    reliability,
)
from spklink.measures.seats import SeatEvaluation
from spklink.posterior.likelihood import Model, restrict
from spklink.posterior.posterior import Options, Posterior, solve
from spklink.posterior.truth import CliqueScores, score_cliques
from spklink.shown import Rows, Shown

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
Intervals = dict[str, tuple[float, float]]
QUICK_SECONDS = 2.0  # predicted, for all cliques of a row together
SCALES = (0.01, 100.0)  # where the best factor on all log-likelihood-ratios is sought


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


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """How good the probabilities of a database are."""

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
    seats: SeatEvaluation | None = None  # nothing given, not even that the lists are right
    cues: list[CueRow] = field(default_factory=list)  # each kind of evidence, where there are more

    def as_json(self) -> dict[str, Any]:
        cues = {"cues": [row.as_json() for row in self.cues]} if self.cues else {}
        if self.seats is None:
            return self._paper_json() | cues
        paper = self._paper_json() if self.all.cliques else {}
        return paper | cues | {"seats": self.seats.as_json()}

    def _paper_json(self) -> dict[str, Any]:
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
            "reliability": bins_json(self.reliability, "cliques"),
            "marginals": self.marginals.as_json(),
        }

    def _sentence(self) -> str:
        resolvable = self.resolvable
        if self.seats is not None and not self.all.cliques:
            tracks = self.seats.tracks
            return (
                f"{tracks.tracks} tracks with a key in resolvable cliques, "
                f"{tracks.wrong_named + tracks.wrong_strangers} wrong"
            )
        return (
            f"{self.total} conversations with a key, {self.wrong} wrong in resolvable cliques; "
            f"{resolvable.clique_errors} of {resolvable.cliques} resolvable cliques wrong"
        )

    def _rows(self) -> Rows:
        """Tables 2 and 3: one row a size of cliques, then the totals."""
        rows = [(str(row.conversations), row) for row in self.by_size]
        rows += [("resolvable", self.resolvable), ("at least two", self.at_least_two)]
        rows.append(("all", self.all))
        names = [one.name for one in fields(Row) if one.name not in ("conversations", "intervals")]
        cells = ([title, *(getattr(row, name) for name in names)] for title, row in rows)
        return ["conversations", *names], cells


def ends(intervals: Intervals) -> dict[str, float | None]:
    """{"x": (1, 2)} as {"x_low": 1, "x_high": 2}; an end that is not finite is None."""
    flat: dict[str, float | None] = {}
    for name, (low, high) in intervals.items():
        flat |= {f"{name}_low": finite(low), f"{name}_high": finite(high)}
    return flat


def evaluate(
    posterior: Posterior, truth: Bits, *, foreign_key_rows: int = 0, options: Options | None = None
) -> Evaluation:
    """Measure a posterior against `truth` (0, 1, or -1 where there is no key).

    `options` should be those that the posterior was solved with: the truth is solved with them too.
    """
    scores = score_cliques(posterior, truth, options=options)
    cliques = posterior.model.cliques
    counted = (truth >= 0) & cliques.resolvable[cliques.label]
    total, open_ = int((truth >= 0).sum()), scores.resolvable
    best = (scores.best_low + scores.best_high)[open_] / 2.0
    intervals: Intervals = {}

    def row(chosen: Mask, size: int | None = None) -> Row:
        return _row(posterior, truth, scores, chosen, size)

    return Evaluation(
        total=total,
        wrong=int((posterior.best[counted] != truth[counted]).sum()),
        without_key=len(truth) - total,
        foreign_key_rows=foreign_key_rows,
        cross_entropy_bits=_mean_bits(intervals, scores, total),
        by_size=[row(scores.size == m, int(m)) for m in np.unique(scores.size)],
        resolvable=row(open_),
        at_least_two=row(scores.size >= 2),
        all=row(scores.size >= 1),
        expected_clique_errors=_expected_errors(intervals, scores),
        implied_errors=error_interval(1.0 - best),
        reliability=reliability(best, ~scores.wrong[open_]),
        marginals=measure_marginals(posterior.exchanged[counted], truth[counted]),
        intervals=intervals,
    )


def of_seats(seats: SeatEvaluation, key: Labels) -> Evaluation:
    """An evaluation without the paper's tables: of conversations that one bit cannot tell."""
    nothing, nowhere = np.zeros(0), np.zeros(0, np.bool_)
    empty = Row(
        conversations=None,
        configurations=None,
        **table_row(nothing, nothing, nowhere, nowhere),
        recalibrated_bits=None,
        scale_ratio=None,
    )
    return Evaluation(
        total=seats.conversations,
        wrong=seats.wrong_conversations,
        without_key=len(key.exchanged) - seats.conversations,
        foreign_key_rows=key.foreign,
        cross_entropy_bits=None,
        by_size=[],
        resolvable=empty,
        at_least_two=empty,
        all=empty,
        expected_clique_errors=None,
        implied_errors=(0, 0),
        reliability=[],
        marginals=measure_marginals(nothing, np.zeros(0, np.int8)),
        seats=seats,
    )


def _mean_bits(intervals: Intervals, scores: CliqueScores, conversations: int) -> float | None:
    """Cross entropy a conversation of the database, not of the mean clique."""
    if not conversations:
        return None
    low, high = scores.cross_low.sum(), scores.cross_high.sum()
    return _figure(intervals, "cross_entropy_bits", low / conversations, high / conversations)


def _expected_errors(intervals: Intervals, scores: CliqueScores) -> float | None:
    """Wrong resolvable cliques as the posterior itself expects them."""
    low = (1.0 - scores.best_high[scores.resolvable]).sum()
    high = (1.0 - scores.best_low[scores.resolvable]).sum()
    return _figure(intervals, "expected_clique_errors", low, high)


def _row(
    posterior: Posterior,
    truth: Bits,
    scores: CliqueScores,
    chosen: Mask,
    size: int | None = None,
) -> Row:
    cliques = scores.clique[chosen & scores.resolvable]
    bits, scale = None, None
    # The best factor needs the sum many times over: only where that is exact and quick.
    if posterior.exact[cliques].all() and posterior.seconds[cliques].sum() <= QUICK_SECONDS:
        bits, scale = best_scale(*keep_cliques(posterior.model, truth, scores, chosen))
    return Row(
        conversations=size,
        configurations=None if size is None else configurations(size),
        **averages(scores, chosen),
        recalibrated_bits=bits,
        scale_ratio=scale,
    )


def averages(scores: CliqueScores, chosen: Mask) -> dict[str, Any]:
    """`table_row` of the chosen cliques."""
    return table_row(
        scores.per_low[chosen],
        scores.per_high[chosen],
        scores.resolvable[chosen],
        scores.wrong[chosen],
    )


def table_row(low: Floats, high: Floats, resolvable: Mask, wrong: Mask) -> dict[str, Any]:
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
        with np.errstate(over="ignore"):  # beyond all numbers it is told as none
            perplexity = np.exp2(ends_)
        for name, pair in (
            ("cross_entropy_bits", ends_),
            ("confusion", perplexity - 1.0),
            ("perplexity", perplexity),
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


def _figure(intervals: Intervals, name: str, low: float, high: float) -> float | None:
    """The figure where its ends are equal; else None, and the interval is noted."""
    if low == high:
        return finite(low)
    intervals[name] = (float(low), float(high))
    return None


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
    model: Model, truth: Bits, scores: CliqueScores, chosen: Mask
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
