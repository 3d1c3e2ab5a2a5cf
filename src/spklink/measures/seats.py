"""How good the answer in full is, where the truth is known: tracks, conversations, presence, lists.

A track is right when its best answer is who is on it, or someone else where the key names a person
who is not listed there. Nothing is given here, so the cross entropy of a clique includes whether
its lists are right; the paper's tables (module `evaluation`) take that for granted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.labels import Labels
from spklink.measures.reliability import Reliability, bins_json, finite, reliability
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.posterior import Options
from spklink.posterior.seat_truth import UNSAID, SeatScores, SeatTruth, score_seats, seat_truth

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Intervals = dict[str, tuple[float, float]]
HALF = 0.5
# Of something rare the small probabilities are those that matter.
RARE_EDGES = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Tracks:
    """Tracks with a key. Those of cliques that nobody can resolve are not counted as wrong."""

    tracks: int
    named: int  # called a listed person
    wrong_named: int
    strangers: int  # called someone else
    wrong_strangers: int
    unusable: int  # get no name, and are not counted above
    settled: int
    wrong_settled: int
    expected_wrong: float | None
    cross_entropy_bits: float | None  # mean -log2 of the probability of the truth of a track
    reliability: list[Reliability]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"reliability": bins_json(self.reliability, "tracks")}


@dataclass(frozen=True)
class Chances:
    """Probabilities of something that is so or not."""

    count: int
    observed: int  # that are so
    expected: float | None
    errors: int  # on the wrong side of one half
    expected_errors: float | None
    brier: float | None
    cross_entropy_bits: float | None
    area: float | None  # under the ROC; None where all are so, or none
    recall: float | None  # share of those that are so that have more than one half
    precision: float | None  # share of those with more than one half that are so
    reliability: list[Reliability]

    def as_json(self, name: str) -> dict[str, Any]:
        plain = {(name if k == "count" else k): v for k, v in asdict(self).items()}
        return plain | {"reliability": bins_json(self.reliability, name)}


@dataclass(frozen=True)
class SeatRow:
    """Cliques of one size, or all: nothing given, not even that their lists are right."""

    conversations: int | None
    cliques: int
    cross_entropy_bits: float | None  # a conversation, mean of the cliques
    clique_errors: int
    clique_error_rate: float | None
    intervals: Intervals = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        plain = {k: v for k, v in asdict(self).items() if k != "intervals"}
        for name, (low, high) in self.intervals.items():
            plain |= {f"{name}_low": finite(low), f"{name}_high": finite(high)}
        return plain


@dataclass(frozen=True)
class SeatEvaluation:
    """How good a posterior over states is."""

    rate: float  # of list errors, that the answer reckons with
    estimated: bool
    conversations: int  # of which all tracks have a key
    wrong_conversations: int  # some track is another's, in resolvable cliques
    tracks: Tracks
    presence: Chances  # that a listed person is there
    lists: Chances  # that somebody certain is absent
    by_size: list[SeatRow]
    resolvable: SeatRow
    all: SeatRow

    def as_json(self) -> dict[str, Any]:
        return {
            "list_errors": {"rate": self.rate, "estimated": self.estimated},
            "conversations": self.conversations,
            "wrong_conversations": self.wrong_conversations,
            "tracks": self.tracks.as_json(),
            "presence": self.presence.as_json("listings"),
            "lists": self.lists.as_json("lists"),
            "by_size": [row.as_json() for row in self.by_size],
            "resolvable": self.resolvable.as_json(),
            "all": self.all.as_json(),
        }


def evaluate_seats(
    answer: Answer,
    key: Labels,
    *,
    usable: Mask | None = None,
    options: Options | None = None,
) -> SeatEvaluation:
    """Measure a answer against the truth; tracks that are not usable have no name to be wrong."""
    truth = seat_truth(answer, key)
    scores = score_seats(answer, truth, options=options)
    table, cliques = answer.table, answer.cliques
    open_ = cliques.resolvable[cliques.label]
    off = (truth.entry != UNSAID) & (answer.entry != truth.entry)
    wrong = sums(table.sides.conversation, off, len(table)) > 0
    whole = truth.whole[answer.seats.node]
    absent = truth.place == answer.seats.layout.tracks[answer.seats.node]
    missing = sums(answer.seats.node, absent & ~table.possible, len(table)) > 0
    return SeatEvaluation(
        rate=answer.rate.value,
        estimated=answer.rate.estimated,
        conversations=int(truth.whole.sum()),
        wrong_conversations=int((wrong & truth.whole & open_).sum()),
        tracks=measure_tracks(answer, truth, usable),
        presence=measure_chances(answer.presence.chance[whole], ~absent[whole]),
        lists=measure_chances(answer.wrong.chance[truth.whole], missing[truth.whole]),
        by_size=[_row(scores, scores.size == m, int(m)) for m in np.unique(scores.size)],
        resolvable=_row(scores, scores.resolvable),
        all=_row(scores, scores.size >= 1),
    )


def measure_tracks(answer: Answer, truth: SeatTruth, usable: Mask | None) -> Tracks:
    """Answers about single tracks of resolvable cliques."""
    keyed = truth.entry != UNSAID
    good = np.ones(len(keyed), np.bool_) if usable is None else usable
    open_ = answer.cliques.resolvable[answer.cliques.label][answer.table.sides.conversation]
    counted = keyed & good & open_
    said, right = answer.entry[counted], (answer.entry == truth.entry)[counted]
    chance, settled = answer.confidence.chance[counted], answer.settled()[counted]
    named, count = said != STRANGER, int(counted.sum())
    return Tracks(
        tracks=count,
        named=int(named.sum()),
        wrong_named=int((named & ~right).sum()),
        strangers=int((~named).sum()),
        wrong_strangers=int((~named & ~right).sum()),
        unusable=int((keyed & ~good).sum()),
        settled=int(settled.sum()),
        wrong_settled=int((settled & ~right).sum()),
        expected_wrong=float((1.0 - chance).sum()) if count else None,
        cross_entropy_bits=_mean_bits(_of_truth(answer, truth)[counted]),
        reliability=reliability(chance, right),
    )


def _of_truth(answer: Answer, truth: SeatTruth) -> Floats:
    """(sides,) the probability of who really is there; 1 where nobody knows."""
    entry, track = np.maximum(truth.entry, 0), answer.table.sides.position
    named = truth.entry >= 0
    found = np.where(truth.entry == STRANGER, answer.stranger.chance, 1.0)
    if named.any():
        at = answer.seats.place_start[entry] + track
        found[named] = answer.beliefs.guess[at[named]]
    return found


def measure_chances(chance: Floats, so: Mask) -> Chances:
    """Of things that are so or not, with the probability that they are."""
    count, called = len(so), chance > HALF
    of_truth = np.where(so, chance, 1.0 - chance)
    return Chances(
        count=count,
        observed=int(so.sum()),
        expected=float(chance.sum()) if count else None,
        errors=int((called != so).sum()),
        expected_errors=float(np.minimum(chance, 1.0 - chance).sum()) if count else None,
        brier=float(((chance - so) ** 2).mean()) if count else None,
        cross_entropy_bits=_mean_bits(of_truth),
        area=area(chance, so),
        recall=_share(called[so]),
        precision=_share(so[called]),
        reliability=reliability(chance, so, RARE_EDGES),
    )


def area(chance: Floats, so: Mask) -> float | None:
    """Under the ROC: how probable it is that one which is so has more than one which is not, ties
    counting half."""
    yes, no = int(so.sum()), int((~so).sum())
    if not yes or not no:
        return None
    _, place, equal = np.unique(chance, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2.0)[place.reshape(-1)]
    return float((ranks[so].sum() - yes * (yes + 1) / 2.0) / (yes * no))


def _share(true: Mask) -> float | None:
    return float(true.mean()) if len(true) else None


def _mean_bits(chance: Floats) -> float | None:
    if not len(chance):
        return None
    with np.errstate(divide="ignore"):
        return finite(float(-np.log2(np.clip(chance, 0.0, 1.0)).mean()) + 0.0)


def _row(scores: SeatScores, chosen: Mask, size: int | None = None) -> SeatRow:
    count, intervals = int(chosen.sum()), {}
    bits = None
    if count:
        low, high = float(scores.per_low[chosen].mean()), float(scores.per_high[chosen].mean())
        bits = finite(low) if low == high else None
        if low != high:
            intervals["cross_entropy_bits"] = (low, high)
    wrong = scores.wrong[chosen]
    return SeatRow(size, count, bits, int(wrong.sum()), _share(wrong), intervals)
