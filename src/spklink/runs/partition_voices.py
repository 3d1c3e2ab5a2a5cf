"""From voices to log-likelihood-ratios where no list says who takes part.

Scores of all pairs are set against those that each side has with everybody else (nobody is known to
be a stranger, and of many others few are the same person), then calibrated. Of very many sides only
the pairs that matter are kept, and not normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration import curves
from spklink.calibration.curves import Calibration, Line, Saved
from spklink.calibration.fitting import TooLittleError
from spklink.database.conversations import Conversations
from spklink.database.links import find_links
from spklink.database.sides import side_name
from spklink.errors import SpklinkError
from spklink.hands import Hands
from spklink.partitions.graph import Graph, link_graph
from spklink.partitions.items import Ints
from spklink.partitions.learning import Learned, first_guess, learn, learn_dense
from spklink.partitions.neighbours import find_neighbours
from spklink.posterior.likelihood import Weight
from spklink.recognizers.products import all_pairs, pair_scores
from spklink.recognizers.training import Trained
from spklink.scores.files import read_all_scores

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LABELFREE, NONE = "labelfree", "none"
DENSE_SIDES = 6000  # scores of all pairs are held up to here: .3 GB
FEWEST_OTHERS = 50  # sides that scores are set against; as in module `normalise`
KEPT_A_SIDE = 100  # pairs that matter, among very many
MOST_TAUGHT = 200_000  # pairs of one person that calibration learns from


def given_matrix(scores: Any, table: Conversations, *, within: bool) -> Floats:
    """(S, S) given scores of all pairs; those `within` calls may be missing where nobody needs
    them (NaN)."""
    sides = len(table.sides)
    if sides > DENSE_SIDES:
        raise SpklinkError(
            f"{sides} sides: at most {DENSE_SIDES} are partitioned by given scores; give the "
            "vectors they come from (--embeddings)"
        )
    found = np.full((sides, sides), np.nan)

    def keep(one: Ints, two: Ints, score: Floats) -> None:
        found[one, two] = found[two, one] = score

    if callable(scores) and not isinstance(scores, str | PathLike):
        _ask(scores, table, found)
    else:
        read_all_scores(scores, table, find_links(table), keep)
    call = table.sides.conversation
    wanted = np.isnan(found) & ((call[:, None] != call) | within)
    np.fill_diagonal(wanted, False)
    if wanted.any():
        one, two = np.argwhere(wanted)[0].tolist()
        raise SpklinkError(
            f"scores: {int(wanted.sum()) // 2} pairs of sides have no score, such as "
            f"{side_name(table, one)} with {side_name(table, two)}; a partition needs all of them"
        )
    return found


def _ask(score: Callable[..., float], table: Conversations, found: Floats) -> None:
    ids = [table.ids[m] for m in table.sides.conversation.tolist()]
    names = list(zip(ids, (table.sides.position + 1).tolist(), strict=True))
    for one in range(len(names)):
        for two in range(one):
            found[one, two] = found[two, one] = float(score(names[two], names[one]))


def voice_matrix(trained: Trained, table: Conversations, usable: Mask) -> tuple[Floats, str]:
    """(S, S) scores of all pairs, normalised; and what a person should know."""
    row = np.where(usable, trained.row, 0)
    every = all_pairs(trained.recognizer.product, trained.vectors)[np.ix_(row, row)]
    scores = np.asarray(every, np.float64)
    call = table.sides.conversation
    others = (call[:, None] != call) & usable
    if int(others[usable].sum(axis=1).min()) < FEWEST_OTHERS:
        return scores, (
            f"scores are not normalised: that takes {FEWEST_OTHERS} other sides for each"
        )
    return normalised(scores, others), ""


def normalised(scores: Floats, others: Mask) -> Floats:
    """Every score in units of both sides' scores with `others` (S, S)."""
    n = others.sum(axis=1)
    mean = np.where(others, scores, 0.0).sum(axis=1) / n
    spread = np.sqrt((np.where(others, scores - mean[:, None], 0.0) ** 2).sum(axis=1) / n)
    spread = np.maximum(spread, 1e-12)
    one = (scores - mean[:, None]) / spread[:, None]
    return np.asarray((one + one.T) / 2.0)


@dataclass(frozen=True)
class Calibrated:
    """A calibration of this run, how it was learned, and what to say of it."""

    calibration: Calibration
    learned: Learned | None = None
    note: str = ""

    def as_json(self, weight: Weight) -> dict[str, Any]:
        learned = {} if self.learned is None else self.learned.as_json()
        rule = {"weight": weight.rule, "beta": weight.beta}
        return self.calibration.as_json() | rule | learned


def calibrate_matrix(
    scores: Floats, apart: Ints | None, weight: Weight, source: Saved
) -> Calibrated:
    """Of the scores (S, S) of usable sides."""
    if source == NONE:
        return Calibrated(Line(1.0, 0.0, kind=NONE))
    if source != LABELFREE:
        return Calibrated(_saved(source))
    try:
        return _learned(learn_dense(scores, apart, weight))
    except TooLittleError as error:
        line = first_guess(scores[np.triu_indices(len(scores), 1)], str(error))
        note = f"{line.source}; give --calibration FILE of a similar database"
        return Calibrated(line, note=note)


def _saved(source: Saved) -> Calibration:
    found = curves.load(source)
    if found.needs_speech:
        raise SpklinkError(
            f"{curves.name_of(source)}: a calibration by seconds of speech (lr-dur) cannot be used "
            "here; calibrate with --kind cmlg"
        )
    return found


def _learned(found: Learned) -> Calibrated:
    note = (
        "probabilities are calibrated from the voices alone: no list vouches for them "
        "(--calibration FILE of a database with lists or labels would)"
    )
    if not found.settled:
        note = f"calibration had not settled after {found.rounds} rounds; {note}"
    return Calibrated(found.calibration, found, note)


def neighbour_graph(
    trained: Trained,
    apart: Ints,
    weight_tables: tuple[Floats, Floats],
    source: Saved,
    *,
    hands: Hands,
    seed: int,
    tell: Callable[[int, int], None] | None = None,
) -> tuple[Graph, Calibrated]:
    """The pairs that matter among very many sides (those of `trained`), calibrated."""
    product, vectors = trained.recognizer.product, trained.vectors
    floor = _first_floor(trained, seed)
    near = find_neighbours(product, vectors, floor, hands=hands, seed=seed, tell=tell)

    def graph(line: Calibration) -> Graph:
        rest = float(line(near.sample[near.sample <= near.floor]).mean())
        llr = line(near.score.astype(np.float64))
        kept = llr > rest
        one, two = (side[kept].astype(np.int64) for side in (near.one, near.two))
        return Graph(near.sides, one, two, llr[kept], rest, apart)

    def link(line: Calibration) -> Ints:
        return link_graph(graph(line), *weight_tables)

    def pairs_of(label: Ints) -> tuple[Floats, Floats]:
        one, two = pairs_within(label, MOST_TAUGHT, seed)
        return pair_scores(product, vectors, one, two, hands=hands), near.sample

    if source in (LABELFREE, NONE):
        if source == NONE:
            raise SpklinkError("--calibration none: cosines are no log-likelihood-ratios")
        found = _learned(learn(link, pairs_of, near.sample))
    else:
        found = Calibrated(_saved(source))
    return graph(found.calibration), found


def _first_floor(trained: Trained, seed: int) -> float:
    """A score that about KEPT_A_SIDE pairs of a side are above."""
    rng = np.random.default_rng([seed, 3])
    sides, draws = len(trained.vectors), 400_000
    one, two = rng.integers(0, sides, (2, draws))
    apart = one != two
    found = pair_scores(trained.recognizer.product, trained.vectors, one[apart], two[apart])
    return float(np.quantile(found, 1.0 - min(0.05, KEPT_A_SIDE / sides)))


def pairs_within(label: Ints, most: int, seed: int) -> tuple[Ints, Ints]:
    """Pairs of sides of one block: all of them, or a sample."""
    order = np.argsort(label, kind="stable")
    size = np.bincount(label)
    end = np.repeat(np.cumsum(size), size)
    later = end - 1 - np.arange(len(order))
    total = int(later.sum())
    pick = np.arange(total)
    if total > most:
        pick = np.sort(np.random.default_rng([seed, 4]).choice(total, most, replace=False))
    before = np.cumsum(later)
    first = np.searchsorted(before, pick, side="right")
    second = first + 1 + pick - (before[first] - later[first])
    return order[first], order[second]
