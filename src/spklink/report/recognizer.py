"""What the recognizer did: scores of people who are the same and of people who are not.

Without a key two kinds of side pairs are told apart: *known non-targets*, sides of one call or of
calls that share no participant, and *expected targets*, where every needed pair counts as much as
the posterior holds it for one person. With a key, every pair of the file is one or the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.links import candidates
from spklink.database.sides import certainly_different
from spklink.posterior.posterior import Options
from spklink.report.glossary import NAMES
from spklink.report.results import Results
from spklink.scores.files import Collector
from spklink.scores.files import read_pairs as read_side_scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = dict[str, Any]  # {"columns": [...], "rows": [[...], ...]}
BINS = 48
CURVE_POINTS = 200
UNLIKELY = 1e-6  # a pair that is less probably one person does not count as an expected target


@dataclass(frozen=True)
class Pairs:
    """The usable side pairs of one file and what they are."""

    score: Floats
    same: Floats  # probability of being one person; NaN where the posterior does not say
    stranger: NDArray[np.bool_]  # certainly two people
    target: NDArray[np.int8]  # by the key: 1 one person, 0 two, -1 not known

    def classes(self) -> dict[str, tuple[Floats, Floats]]:
        """Name → scores and weights, empty classes left out."""
        said = ~np.isnan(self.same) & ~self.stranger
        likely = said & (self.same > UNLIKELY)
        found = {
            "known non-targets": (self.score[self.stranger], np.ones(int(self.stranger.sum()))),
            "expected targets": (self.score[likely], self.same[likely]),
        }
        if not self.stranger.any():
            found["expected non-targets"] = self.score[said], 1.0 - self.same[said]
        for name, value in (("non-targets by the key", 0), ("targets by the key", 1)):
            chosen = self.score[self.target == value]
            found[name] = chosen, np.ones(len(chosen))
        return {name: both for name, both in found.items() if both[1].sum() > 0.0}


def recognizer(results: Results, after: Pairs) -> dict[str, Any]:
    """Everything about scores: histograms, measures and curves, speech, calibration. `after`: the
    log-likelihood-ratios."""
    files = [("log-likelihood-ratios", after)]
    if results.calibration is not None:
        files.insert(0, ("scores", read_pairs(results, results.folder / "scores.npz")))
    found: dict[str, Any] = {
        "histograms": [{"name": name, "table": histogram(pairs)} for name, pairs in files],
        "measures": None,
        "det": None,
        "tippett": None,
        "speech": speech(results),
        "calibration": calibration(results),
    }
    if results.key is not None:
        found |= measured(files)
    return found


def read_pairs(results: Results, path: Path) -> Pairs:
    """Pairs of usable sides with what is known of each."""
    found = read_side_scores(path, results.table)
    one, two, score = found.side_1, found.side_2, found.score.astype(np.float64)
    usable = results.usable()
    kept = usable[one] & usable[two]
    one, two, score = one[kept], two[kept], score[kept]
    return Pairs(
        score=score,
        same=_probability_of_one_person(results, one, two),
        stranger=certainly_different(results.table, one, two),
        target=_by_key(results, one, two),
    )


def _probability_of_one_person(results: Results, one: Ints, two: Ints) -> Floats:
    links, sides = results.evidence.links, results.table.sides
    linked = _links(results)
    # Two shared speakers: either may be the one.
    chance = sums(candidates(links, sides), linked, len(results.evidence.scores.needed))
    at = Collector(results.table, links).positions(one, two)
    needed = at >= 0
    found = np.full(len(one), np.nan)
    found[needed] = np.minimum(chance[at[needed]], 1.0)
    return found


def _links(results: Results) -> Floats:
    """(C,) how probable it is that a candidate of a link is its speaker twice: as the lists have
    it, times that he is there both times; where bits do not do, solved once more for pairs."""
    links, answer = results.evidence.links, results.answer
    if answer.binary:
        return results.posterior.candidate_probabilities(links)
    if not results.table.plain:
        return answer.with_pairs(Options()).candidate_probabilities(links)
    seats = answer.seats
    there = answer.presence.chance[seats.first] * answer.presence.chance[seats.second]
    found = results.posterior.candidate_probabilities(links)
    return np.asarray(found * np.repeat(there, len(found) // max(len(there), 1)))


def _by_key(results: Results, one: Ints, two: Ints) -> NDArray[np.int8]:
    if results.key is None:
        return np.full(len(one), -1, np.int8)
    speaker = results.key.speakers(results.table)
    keyed = (speaker[one] >= 0) & (speaker[two] >= 0)
    return np.where(keyed, speaker[one] == speaker[two], -1).astype(np.int8)


def histogram(pairs: Pairs) -> Table:
    """Share of every class in bins of the score; the outermost bins are open."""
    classes = pairs.classes()
    if not classes:
        return {"columns": ["from", "to"], "counts": {}, "rows": []}
    # Of each class by itself: targets are few, and would otherwise pile up in the last bin.
    ends = np.array([np.quantile(values, [0.001, 0.999]) for values, _ in classes.values()])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    shares = []
    for values, weights in classes.values():
        inside = np.clip(values, low, high)
        counts = np.histogram(inside, edges, weights=weights)[0]
        shares.append(counts / weights.sum())
    rows = np.column_stack([edges[:-1], edges[1:], *shares])
    return {
        "columns": ["from", "to", *classes],
        "counts": {name: round(float(weights.sum()), 1) for name, (_, weights) in classes.items()},
        "rows": rounded(rows),
    }


def measured(files: list[tuple[str, Pairs]]) -> dict[str, Any]:
    """Error rates and costs of every file, the curves of the last."""
    from spklink.measures.detection import det_points, measure, tippett_points

    rows = []
    for name, pairs in files:
        targets, others = pairs.score[pairs.target == 1], pairs.score[pairs.target == 0]
        if len(targets) and len(others):
            found = measure(targets, others)
            rows.append(
                [name, found.targets, found.nontargets, *_costs(found, name == files[-1][0])]
            )
    if not rows:
        return {}
    curve, sums = (
        det_points(targets, others, CURVE_POINTS),
        tippett_points(targets, others, CURVE_POINTS),
    )
    return {
        "measures": {
            "columns": ["of", "targets", "non-targets", "EER", "Cllr", "min Cllr"],
            "rows": rows,
        },
        "det": {
            "columns": ["false alarms", "misses"],
            "rows": rounded(np.column_stack(curve)),
        },
        "tippett": {
            "columns": ["log-likelihood-ratio", "targets above", "non-targets above"],
            "rows": rounded(np.column_stack(sums)),
        },
    }


def _costs(found: Any, calibrated: bool) -> list[float | None]:
    """Cllr means something of log-likelihood-ratios only."""
    cost = found.cllr if calibrated else None
    return [None if v is None else float(f"{v:.6g}") for v in (found.eer, cost, found.min_cllr)]


def speech(results: Results) -> Table | None:
    """Sides by their seconds of speech, used and not."""
    if results.speech is None or not results.speech.known:
        return None
    seconds, usable = results.speech.seconds, results.usable()
    edges = _speech_edges(float(seconds.max(initial=0.0)))
    used, unused = (np.histogram(seconds[mask], edges)[0] for mask in (usable, ~usable))
    return {
        "columns": ["from", "to", "sides used", "sides not used"],
        "rows": [
            [float(a), float(b), int(n), int(u)]
            for a, b, n, u in zip(edges[:-1], edges[1:], used, unused, strict=True)
        ],
        "hours": round(float(seconds.sum()) / 3600.0, 3),
        "median": round(float(np.median(seconds)), 2),
        "unused": int((~usable).sum()),
    }


def _speech_edges(longest: float) -> Floats:
    """Some twenty bins of a round width."""
    widths = np.array([m * 10.0**e for e in range(-1, 5) for m in (1, 2, 5)])
    width = widths[np.searchsorted(widths, max(longest, 1.0) / 24.0)]
    return np.asarray(np.round(width * np.arange(int(longest / width) + 2), 3))


def calibration(results: Results) -> dict[str, Any] | None:
    """What calibration.json says: its plain values, and how the scale came to rest."""
    if results.calibration is None:
        return None
    plain = [
        [
            NAMES.get(name, name.replace("_", " ")),
            NAMES.get(value, value) if isinstance(value, str) else value,
        ]
        for name, value in results.calibration.items()
        if isinstance(value, str | int | float | bool) or value is None
    ]
    return {
        "values": {"columns": ["what", "value"], "rows": plain},
        "history": _history(results.calibration.get("history")),
    }


def _history(steps: Any) -> Table:
    """Rounds of calibration, each a scale or several named values."""
    rounds = [s if isinstance(s, dict) else {"scale": s} for s in steps or []]
    names = list(rounds[0]) if rounds else ["scale"]
    rows = [[k, *(one.get(name) for name in names)] for k, one in enumerate(rounds, start=1)]
    return {"columns": ["round", *names], "rows": rows}


def rounded(rows: NDArray[np.float64]) -> list[list[float]]:
    """Six significant digits are more than a picture shows."""
    return [[float(f"{value:.6g}") for value in row] for row in rows.tolist()]
