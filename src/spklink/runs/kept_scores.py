"""Scores by a kept model: sides that were measured stay as they were, only new ones are measured.

A layer is one comparison that is normalised: that of the recognizer, then those of the two folds of
the second comparison. Index conventions: (L, S) layer, side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import certainly_different, pairs_within
from spklink.recognizers.link_folds import BOTH, Folds
from spklink.recognizers.link_wccn import LinkScorer, Terms, TermsAsAsked, View
from spklink.recognizers.normalise import ROWS, SMALLEST, Cohorts, Normaliser
from spklink.recognizers.plda import PairTerms
from spklink.recognizers.products import Cosine
from spklink.runs.call_keys import NONE, Keys, Match, hashed
from spklink.runs.model import Model
from spklink.runs.scoring import Scorer
from spklink.scores.needed import SideScores
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]
Earlier = Sequence[tuple[Arrays, Match]]  # what was kept, and where this run's sides are in it
MOST_SIDES = 1500  # of a database of which all pairs are kept: 9 MB. A choice
EACH = 5  # strangers that every new side is compared with, for the sample of known non-targets


# --- sides that were measured ---------------------------------------------------------------------


def layers_of(scorer: Scorer) -> list[Normaliser]:
    """How the comparisons of a scorer are normalised."""
    first = [] if scorer.normaliser is None else [scorer.normaliser]
    return first + (list(scorer.again.normaliser) if isinstance(scorer.again, LinkScorer) else [])


def measured_arrays(scorer: Scorer) -> dict[str, NDArray[Any]]:
    """What was measured of all sides."""
    layers, sides = layers_of(scorer), len(scorer.sound.marks)
    return {
        "centre": np.array([one.centre for one in layers]).reshape(len(layers), sides),
        "scale": np.array([one.scale for one in layers]).reshape(len(layers), sides),
        "strangers": np.array([one.strangers for one in layers], np.int32).reshape(
            len(layers), sides
        ),
    }


def medians(scorer: Scorer) -> Floats:
    """(L, 2) what a side with few strangers takes for its own."""
    usable, found = scorer.sound.usable, []
    for one in layers_of(scorer):
        known = usable & (one.strangers >= SMALLEST)
        both = (one.centre[known], one.scale[known])
        found.append([float(np.median(of)) for of in both] if known.any() else [0.0, 1.0])
    return np.array(found, np.float64).reshape(len(found), 2)


@dataclass(frozen=True)
class _Measuring:
    """Measures the sides that nobody has measured yet."""

    model: Model
    earlier: Earlier
    pool: Ints
    scorer: Scorer

    def layer(self, k: int, table: Callable[[Ints, Ints], NDArray[Any]]) -> Normaliser:
        sides = len(self.scorer.sound.marks)
        centre, scale, size = np.zeros(sides), np.ones(sides), np.zeros(sides, np.int64)
        left = np.ones(sides, np.bool_)
        for arrays, match in self.earlier:
            there = np.flatnonzero(left & (match.side >= 0))
            at = match.side[there]
            centre[there], scale[there] = arrays["centre"][k][at], arrays["scale"][k][at]
            size[there], left[there] = arrays["strangers"][k][at], False
        reason = self.model.reasons[k]
        new = self.scorer.sound.order[left[self.scorer.sound.order]]
        cohorts = Cohorts.of(self.scorer.conversations, self.pool)
        for begin in range(0, 0 if reason else len(new), ROWS):
            rows = new[begin : begin + ROWS]
            found = cohorts.measure(table, rows)
            few = found[2] < SMALLEST
            middle, spread = self.model.arrays["median"][k]
            centre[rows] = np.where(few, middle, found[0])
            scale[rows] = np.where(few, spread, found[1])
            size[rows] = found[2]
        return Normaliser(centre, scale, size, reason)


def scorer_by(model: Model, plain: Scorer, match: Match, earlier: Earlier, folds: Folds) -> Scorer:
    """The scorer of a model on the sides of this run; `match` has those the model was learned on,
    `earlier` whatever was kept of sides."""
    assert plain.trained is not None
    trained = plain.trained
    if "middle" in model.arrays:
        plain = replace(plain, centre=Cosine(np.array(model.arrays["middle"])))
    if "mean" in model.arrays:
        mean = {"mean": np.array(model.arrays["mean"])}
        recognizer = trained.recognizer.restored(trained.recognizer.arrays() | mean)
        trained = replace(trained, recognizer=recognizer)
    plain = replace(plain, trained=trained)
    here = np.full(len(model.sides), NONE, np.int64)
    known = np.flatnonzero(match.side >= 0)
    here[match.side[known]] = known
    pool = here[model.arrays["pool"]]
    measuring = _Measuring(model, earlier, pool[pool >= 0], plain)
    view, first = model.view, len(model.reasons)
    if view is not None:
        plain = replace(plain, again=_second(view, measuring, folds))
        first -= 2
    return replace(plain, normaliser=measuring.layer(0, plain.table)) if first else plain


def _second(view: View, measuring: _Measuring, folds: Folds) -> LinkScorer:
    last = len(measuring.model.reasons)
    with one_blas_thread():
        terms = _terms(view, measuring)
        one, two = (measuring.layer(last - 2 + f, terms[f].table) for f in (0, 1))
    return LinkScorer(folds, terms, (one, two), view)


def _terms(view: View, measuring: _Measuring) -> tuple[Terms, Terms]:
    """All sides as the second comparison sees them; those that were kept as they were. Of many
    those that are asked for."""
    scorer = measuring.scorer
    sides, order = len(scorer.sound.marks), scorer.sound.order
    if sides > MOST_SIDES:
        units = scorer.units()
        one, two = (TermsAsAsked(view, f, units, sides, scorer.near) for f in (0, 1))
        return one, two
    left = np.ones(sides, np.bool_)
    unit = np.zeros((2, sides, view.reduction.size), np.float32)
    less = np.zeros((2, sides))
    for arrays, match in measuring.earlier:
        if "unit" in arrays:
            there = np.flatnonzero(left & (match.side >= 0))
            unit[:, there] = arrays["unit"][:, match.side[there]]
            less[:, there] = arrays["less"][:, match.side[there]]
            left[there] = False
    new, units = order[left[order]], scorer.units()
    for begin in range(0, len(new), ROWS):
        rows = new[begin : begin + ROWS]
        for f, terms in enumerate(view.terms(view.reduction.reduced(units(rows)))):
            unit[f, rows], less[f, rows] = terms.unit, terms.less
    return PairTerms(unit[0], less[0]), PairTerms(unit[1], less[1])


def terms_arrays(scorer: Scorer) -> dict[str, NDArray[Any]]:
    """Sides as the second comparison sees them, where they are not too many."""
    again = scorer.again
    if not isinstance(again, LinkScorer):
        return {}
    if len(scorer.sound.marks) > MOST_SIDES:
        return {}
    unit, less = ([getattr(one, name) for one in again.terms] for name in ("unit", "less"))
    return {"unit": np.stack(unit), "less": np.stack(less)}


# --- who is judged by what the links taught -------------------------------------------------------


def person_keys(table: Conversations) -> Keys:
    return hashed(table.speakers)


def folds_by(table: Conversations, place: Ints, keys: Keys, fold: NDArray[np.int8]) -> Folds:
    """People in the folds they were in. A new one, whose calls have taught nothing, joins somebody
    he speaks with, so that their calls are of one fold; else chance decides."""
    own = person_keys(table)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], own), max(len(keys) - 1, 0))
    known = keys[order][at] == own if len(keys) else np.zeros(len(own), np.bool_)
    person = np.where(known, fold[order][at] if len(keys) else 0, (own & np.uint64(1)))
    person = person.astype(np.int8)
    call, people = table.listing.conversation, table.people
    near = np.full(len(table), BOTH, np.int8)  # the lowest fold of a known person of the call
    there = known[people]
    np.minimum.at(near, call[there], person[people[there]])
    joins = np.full(len(own), BOTH, np.int8)
    np.minimum.at(joins, people, near[call])
    person = np.where(known | (joins == BOTH), person, joins).astype(np.int8)
    low, high = np.ones(len(table), np.int8), np.zeros(len(table), np.int8)
    np.minimum.at(low, call, person[people])
    np.maximum.at(high, call, person[people])
    return Folds(table, person, np.where(low == high, low, BOTH).astype(np.int8), place)


# --- scores of pairs ------------------------------------------------------------------------------


def pair_code(one: Ints, two: Ints, sides: int) -> Ints:
    """One number a pair, whichever side is named first."""
    return np.minimum(one, two) * np.int64(sides) + np.maximum(one, two)


def scored(
    scorer: Scorer, one: Ints, two: Ints, kept: Arrays | None, match: Match | None
) -> tuple[Floats, int]:
    """Scores of pairs, those of earlier ones as they were; and how many were computed."""
    found = np.full(len(one), np.nan)
    if kept is not None and match is not None:
        a, b = match.side[one], match.side[two]
        there = np.flatnonzero((a >= 0) & (b >= 0))
        code, known = pair_code(a[there], b[there], int(kept["tracks"].sum())), kept["needed_code"]
        at = np.minimum(np.searchsorted(known, code), max(len(known) - 1, 0))
        same = known[at] == code if len(known) else np.zeros(len(code), np.bool_)
        found[there[same]] = kept["needed_score"][at[same]]
    left = np.flatnonzero(np.isnan(found))
    if len(left):
        found[left] = scorer(one[left], two[left])
    return found, len(left)


def every_pair(scorer: Scorer, kept: Arrays | None, match: Match | None) -> Floats | None:
    """(S, S) the score of any two sides, where these are not too many; on the diagonal 0."""
    sides = len(scorer.sound.marks)
    if sides > MOST_SIDES:
        return None
    found = np.full((sides, sides), np.nan)
    if kept is not None and match is not None and "every" in kept:
        there, earlier = np.flatnonzero(match.side >= 0), int(kept["tracks"].sum())
        square = np.zeros((earlier, earlier))
        square[np.triu_indices(earlier, 1)] = kept["every"]
        at = match.side[there]
        found[np.ix_(there, there)] = (square + square.T)[np.ix_(at, at)]
    one, two = np.nonzero(np.triu(np.isnan(found), 1))
    found[one, two] = found[two, one] = scorer(one, two)
    np.fill_diagonal(found, 0.0)
    return found


def of_square(every: Floats) -> SideScores:
    """The scores of all pairs as a list."""
    one, two = np.triu_indices(len(every), 1)
    return SideScores(one, two, every[one, two])


def sample(
    scorer: Scorer, kept: Arrays | None, match: Match | None, pool: Ints, seed: int
) -> SideScores:
    """Known non-targets: the earlier sample as far as it is still there, and pairs of new sides
    with one another and with some of the pool."""
    table, usable = scorer.conversations, scorer.sound.usable
    none = np.zeros(0, np.int64)
    old = SideScores(none, none, np.zeros(0))
    new = np.ones(len(usable), np.bool_)
    if kept is not None and match is not None:
        here = np.full(int(kept["tracks"].sum()), NONE, np.int64)
        known = np.flatnonzero(match.side >= 0)
        here[match.side[known]], new[known] = known, False
        one, two = here[kept["other_1"]], here[kept["other_2"]]
        both = (one >= 0) & (two >= 0)
        old = SideScores(one[both], two[both], np.array(kept["other_score"])[both])
    fresh = scorer.sound.order[(new & usable)[scorer.sound.order]]
    if not len(fresh):
        return old
    one, two = _with_pool(table, fresh, pool, seed)
    inner = pairs_within(table.sides)
    inner = inner[new[inner[:, 0]] & usable[inner].all(axis=1)]
    if not table.split:
        one, two = np.concatenate([one, inner[:, 0]]), np.concatenate([two, inner[:, 1]])
    return SideScores(
        np.concatenate([old.side_1, one]),
        np.concatenate([old.side_2, two]),
        np.concatenate([old.score, scorer(one, two)]),
    )


def _with_pool(table: Conversations, fresh: Ints, pool: Ints, seed: int) -> tuple[Ints, Ints]:
    """Pairs of new sides and a few of the pool who are certainly somebody else."""
    if not len(pool):
        return pool, pool
    rng = np.random.default_rng([seed, 2])
    one = np.repeat(fresh, EACH)
    two = pool[rng.integers(0, len(pool), len(one))]
    apart = certainly_different(table, one, two) & (one != two)
    code = pair_code(one, two, len(table.sides))
    _, first = np.unique(code, return_index=True)
    chosen = np.sort(first[apart[first]])
    return one[chosen], two[chosen]
