"""Databases with a known truth: who talks to whom, and what a recognizer would score.

Shapes of a database
  cgn      the paper's corpus: 122 cliques, 348 conversations, exactly 356 speakers; or, with a
           number of conversations, cliques drawn in its proportions
  pairs    the same with as many calls again, by pairs of people who hold two to six of them and
           none with others; a number of conversations is that of the first half
  star     one speaker in every conversation, partners that come back
  network  a sparse tree of acquaintances with repeated calls and a few closed triangles
Worlds of scores, all meant as calibrated log-likelihood-ratios with the asked equal error rate
  gaussian every score independent: N(+mu, 2 mu) for the same speaker, N(-mu, 2 mu) otherwise
  plda     every side has a voice; scores are the exact ratios of two-covariance PLDA, so the
           scores of one side are correlated as real ones are
  t5       the same voices with heavy-tailed session noise (Student's t, 5 degrees of freedom),
           scored as if it were Gaussian and mended by the best affine calibration
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations, make_conversations
from spklink.database.links import Links, find_links
from spklink.errors import SpklinkError
from spklink.scores.needed import COLUMNS, SideScores, known_non_targets, needed_sides, write_scores
from spklink.tables import write_csv

Floats = NDArray[np.float64]
Calls = list[tuple[int, int]]
SHAPES = ("cgn", "pairs", "star", "network")
WORLDS = ("gaussian", "plda", "t5")
# The paper's Table 2: number of cliques by number of conversations; 4 of the 61 are unresolvable.
CGN_CLIQUES = {1: 8, 2: 61, 3: 13, 4: 26, 5: 9, 6: 5}
CGN_UNRESOLVABLE_PAIRS = 4
CGN_SPEAKERS = 356
DIMENSIONS = 100  # of a simulated voice


@dataclass(frozen=True)
class Simulation:
    """A simulated database and its truth."""

    conversations: Conversations
    links: Links
    llr: Floats  # (E, 2, 2)
    truth: NDArray[np.int8]  # (M,) 0 = as listed, 1 = exchanged
    non_targets: tuple[NDArray[np.int64], NDArray[np.int64], Floats]  # sides, sides, scores


def simulate(
    *,
    shape: str = "cgn",
    conversations: int | None = None,
    world: str = "gaussian",
    eer: float = 7.0,
    seed: int = 0,
) -> Simulation:
    """Make a database; `eer` in per cent."""
    if shape not in SHAPES:
        raise SpklinkError(f"shape {shape!r} is not one of {', '.join(SHAPES)}")
    if world not in WORLDS:
        raise SpklinkError(f"world {world!r} is not one of {', '.join(WORLDS)}")
    if not 0.01 <= eer <= 45.0:
        raise SpklinkError(f"--eer {eer}: an equal error rate between 0.01 and 45 per cent")
    rng = np.random.default_rng(seed)
    return simulate_table(as_table(_calls(shape, conversations, rng), rng), world, eer, rng)


def simulate_table(
    table: Conversations, world: str, eer: float, rng: np.random.Generator
) -> Simulation:
    """A truth and scores for the conversations of a table; `eer` in per cent."""
    links = find_links(table)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    on_side = np.take_along_axis(table.participants, np.stack([truth, 1 - truth], 1), 1).ravel()
    score = _WORLD[world](on_side, eer / 100.0, rng)
    side_1, side_2 = needed_sides(links)
    llr = score(side_1, side_2).reshape(-1, 2, 2)
    first, second = known_non_targets(table, rng)
    return Simulation(table, links, llr, truth, (first, second, score(first, second)))


def write_simulation(
    simulation: Simulation, folder: str | PathLike[str], *, npz: bool = False
) -> list[Path]:
    """conversations.csv, scores.csv or scores.npz, key.csv; the paths written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table = simulation.conversations
    rows = ((i, "", ";".join(table.names(m))) for m, i in enumerate(table.ids))
    write_csv(folder / "conversations.csv", ["conversation", "audio", "participants"], rows)
    needed = needed_sides(simulation.links)
    other_1, other_2, other_score = simulation.non_targets
    side_1 = np.concatenate([needed[0], other_1])
    side_2 = np.concatenate([needed[1], other_2])
    score = np.concatenate([simulation.llr.ravel(), other_score])
    scores = folder / ("scores.npz" if npz else "scores.csv")
    if npz:
        write_scores(scores, table, SideScores(side_1, side_2, score))
    else:
        triples = zip(side_1.tolist(), side_2.tolist(), score.tolist(), strict=True)
        ids = table.ids
        lines = ((ids[a // 2], a % 2 + 1, ids[b // 2], b % 2 + 1, s) for a, b, s in triples)
        write_csv(scores, COLUMNS, lines)
    names = (table.names(m) for m in range(len(table)))
    key = (
        (i, channel + 1, people[channel ^ int(x)])
        for i, people, x in zip(table.ids, names, simulation.truth, strict=True)
        for channel in (0, 1)
    )
    write_csv(folder / "key.csv", ["conversation", "channel", "speaker"], key)
    return [folder / "conversations.csv", scores, folder / "key.csv"]


# --- who talks to whom ---------------------------------------------------------------------------


def _calls(shape: str, conversations: int | None, rng: np.random.Generator) -> Calls:
    if conversations is not None and conversations < 1:
        raise SpklinkError(f"--conversations {conversations}: at least 1 is needed")
    if shape == "cgn":
        return cgn_calls(rng) if conversations is None else small_calls(conversations, rng)
    if shape == "pairs":
        calls = cgn_calls(rng) if conversations is None else small_calls(conversations, rng)
        return with_pairs(calls, rng)
    count = conversations if conversations is not None else 100
    return star_calls(count, rng) if shape == "star" else network_calls(count, rng)


def small_calls(count: int, rng: np.random.Generator) -> Calls:
    """Resolvable cliques of three people or more in the paper's proportions of sizes; the last one
    as small as the number of conversations asks for."""
    sizes = [m for m, n in CGN_CLIQUES.items() if m > 1 for _ in range(n)]
    plans: list[tuple[int, int]] = []
    left = count
    while left > 0:
        size = min(int(rng.choice(sizes)), left)
        plans.append((size, 3 if size > 1 else 2))
        left -= size
    return clique_calls(plans, rng)


def with_pairs(calls: Calls, rng: np.random.Generator) -> Calls:
    """As many calls again by pairs of people who only call each other."""
    speakers = max(max(call) for call in calls) + 1
    more: Calls = []
    while len(more) < len(calls):
        more += [(speakers, speakers + 1)] * int(rng.integers(2, 7))
        speakers += 2
    every = calls + more
    return [every[k] for k in rng.permutation(len(every))]


def cgn_calls(rng: np.random.Generator) -> Calls:
    """The paper's cliques, in random order; speakers numbered apart in every clique."""
    plans = [(1, 2)] * CGN_CLIQUES[1] + [(2, 2)] * CGN_UNRESOLVABLE_PAIRS
    plans += [(2, 3)] * (CGN_CLIQUES[2] - CGN_UNRESOLVABLE_PAIRS)
    large = [size for size in (3, 4, 5, 6) for _ in range(CGN_CLIQUES[size])]
    # 356 speakers leave two more than three for each of these cliques: two of them have four.
    spare = CGN_SPEAKERS - sum(s for _, s in plans) - 3 * len(large)
    extra = set(rng.choice(len(large), spare, replace=False).tolist())
    plans += [(size, 4 if k in extra else 3) for k, size in enumerate(large)]
    return clique_calls(plans, rng)


def clique_calls(plans: list[tuple[int, int]], rng: np.random.Generator) -> Calls:
    """Connected cliques of (calls, people), in random order; people numbered apart in each."""
    calls: Calls = []
    speakers = 0
    for k in rng.permutation(len(plans)):
        size, people = plans[k]
        calls += [(a + speakers, b + speakers) for a, b in _connected(size, people, rng)]
        speakers += people
    return calls


def _connected(size: int, people: int, rng: np.random.Generator) -> Calls:
    """`size` calls that connect all of `people`: a random tree, then random pairs."""
    calls = [(int(rng.integers(k)), k) for k in range(1, people)]
    while len(calls) < size:
        a, b = rng.choice(people, 2, replace=False)
        calls.append((int(a), int(b)))
    return [calls[k] for k in rng.permutation(len(calls))]


def star_calls(count: int, rng: np.random.Generator) -> Calls:
    """Speaker 0 in every call; every partner has one to five of them."""
    calls: Calls = []
    while len(calls) < count:
        partner = calls[-1][1] + 1 if calls else 1
        calls += [(0, partner)] * int(rng.integers(1, 6))
    return calls[:count]


def network_calls(count: int, rng: np.random.Generator) -> Calls:
    """Everyone is introduced by someone; a third of the calls repeat a tie or close a triangle."""
    people = max(2, (2 * count + 2) // 3 + 1)
    parent = np.zeros(people, np.int64)
    parent[1:] = rng.integers(0, np.arange(1, people))
    calls = [(int(parent[k]), k) for k in range(1, people)][:count]
    extra = count - len(calls)
    who = rng.integers(1, people, extra)
    closing = (rng.random(extra) < 0.2) & (parent[who] != 0)
    partner = np.where(closing, parent[parent[who]], parent[who])
    return calls + [(int(a), int(b)) for a, b in zip(partner, who, strict=True)]


def as_table(calls: Calls, rng: np.random.Generator) -> Conversations:
    """Named conversations with the participants listed in random order."""
    turned = rng.random(len(calls)) < 0.5
    width = len(str(len(calls)))
    people = len(str(max((max(c) for c in calls), default=0)))
    return make_conversations(
        (f"call{k:0{width}d}", f"s{b if t else a:0{people}d}", f"s{a if t else b:0{people}d}")
        for k, ((a, b), t) in enumerate(zip(calls, turned, strict=True), start=1)
    )


# --- what a recognizer would score ---------------------------------------------------------------

ScoreSides = Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]


def gaussian_mu(eer: float) -> float:
    """Mean of the calibrated same-speaker scores at this equal error rate (a share)."""
    from scipy.special import ndtri

    return float(2.0 * ndtri(eer) ** 2)


def _gaussian(speaker: NDArray[np.int32], eer: float, rng: np.random.Generator) -> ScoreSides:
    mu = gaussian_mu(eer)

    def score(side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> Floats:
        mean = np.where(speaker[side_1] == speaker[side_2], mu, -mu)
        return np.asarray(mean + sqrt(2.0 * mu) * rng.standard_normal(len(side_1)))

    return score


def _voices(
    speaker: NDArray[np.int32], beta: float, rng: np.random.Generator, degrees: int | None
) -> Floats:
    """A voice for every side: the speaker's, variance beta, and the session's, variance 1."""
    identity = sqrt(beta) * rng.standard_normal((int(speaker.max()) + 1, DIMENSIONS))
    session = rng.standard_normal((len(speaker), DIMENSIONS))
    if degrees is not None:
        session *= np.sqrt((degrees - 2) / rng.chisquare(degrees, (len(speaker), 1)))
    return np.asarray(identity[speaker] + session)


def _plda_scorer(voices: Floats, beta: float, scale: float, offset: float) -> ScoreSides:
    def score(side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> Floats:
        out = np.empty(len(side_1))
        for begin in range(0, len(out), 1 << 16):  # bounded memory
            part = slice(begin, begin + (1 << 16))
            u, v = voices[side_1[part]], voices[side_2[part]]
            out[part] = plda_llr(((u + v) ** 2).sum(1), ((u - v) ** 2).sum(1), beta)
        return scale * out + offset

    return score


def plda_llr(sum_square: Floats, difference_square: Floats, beta: float) -> Floats:
    """Two-covariance log-likelihood-ratio from |u + v|^2 and |u - v|^2 (within-variance 1)."""
    same_sum, different = 2.0 + 4.0 * beta, 2.0 + 2.0 * beta
    constant = -0.5 * DIMENSIONS * (log(same_sum) + log(2.0) - 2.0 * log(different))
    return np.asarray(
        constant
        - 0.5 * sum_square * (1.0 / same_sum - 1.0 / different)
        - 0.5 * difference_square * (0.5 - 1.0 / different)
    )


def _plda(speaker: NDArray[np.int32], eer: float, rng: np.random.Generator) -> ScoreSides:
    beta = variance_ratio(eer)
    return _plda_scorer(_voices(speaker, beta, rng, None), beta, 1.0, 0.0)


def _t5(speaker: NDArray[np.int32], eer: float, rng: np.random.Generator) -> ScoreSides:
    beta = variance_ratio(eer, degrees=5)
    targets, others = _reference_trials(beta, 5)
    scale, offset = _affine_calibration(targets, others)
    return _plda_scorer(_voices(speaker, beta, rng, 5), beta, scale, offset)


_WORLD = {"gaussian": _gaussian, "plda": _plda, "t5": _t5}


@lru_cache(maxsize=32)
def variance_ratio(eer: float, degrees: int | None = None) -> float:
    """Between-/within-speaker variance beta at which the PLDA scores have this equal error rate."""
    from scipy.optimize import brentq

    def excess(log_beta: float) -> float:
        return _equal_error(*_reference_trials(exp(log_beta), degrees)) - eer

    return float(exp(brentq(excess, log(1e-3), log(20.0), xtol=1e-6)))


def _reference_trials(
    beta: float, degrees: int | None, count: int = 100_000
) -> tuple[Floats, Floats]:
    """Same- and different-speaker scores of a fixed random sample, drawn through their statistics.

    In isotropic PLDA a score depends on |u + v|^2 and |u - v|^2 only, so voices need not be drawn.
    """
    rng = np.random.default_rng(20140914)
    noise = np.ones((2, count))
    if degrees is not None:
        noise = (degrees - 2) / rng.chisquare(degrees, (2, count))
    normal = rng.standard_normal((4, count))  # one dimension of u, v explicitly, for correlation
    square = rng.chisquare(DIMENSIONS - 1, (2, count))
    trials = []
    for shared in (2.0 * beta, 0.0):
        var_u, var_v = beta + noise[0], beta + noise[1]
        cov = shared / 2.0
        sum_var, diff_var = var_u + var_v + 2 * cov, var_u + var_v - 2 * cov
        cross = (var_u - var_v) / sum_var  # regression of u - v on u + v
        rest = diff_var - cross**2 * sum_var
        plus = sum_var * (normal[0] ** 2 + square[0])
        along = cross * np.sqrt(sum_var) * np.sqrt(normal[0] ** 2 + square[0])
        minus = (along + np.sqrt(rest) * normal[1]) ** 2 + rest * square[1]
        trials.append(plda_llr(plus, minus, beta))
    return trials[0], trials[1]


def _equal_error(targets: Floats, others: Floats) -> float:
    """Where the shares of misses and false alarms cross."""
    scores = np.concatenate([targets, others])
    is_target = np.concatenate([np.ones(len(targets)), np.zeros(len(others))])
    order = np.argsort(scores, kind="stable")
    miss = np.cumsum(is_target[order]) / len(targets)
    false_alarm = 1.0 - np.cumsum(1.0 - is_target[order]) / len(others)
    at = int(np.argmax(miss >= false_alarm))
    return float((miss[at] + false_alarm[at]) / 2.0)


def _affine_calibration(targets: Floats, others: Floats) -> tuple[float, float]:
    """Scale and offset of least cross entropy at even odds."""
    from scipy.optimize import minimize
    from scipy.special import expit

    score = np.concatenate([targets, others])
    sign = np.concatenate([np.ones(len(targets)), -np.ones(len(others))])

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = sign * (theta[0] * score + theta[1])
        slope = -sign * expit(-margin)
        return float(np.logaddexp(0.0, -margin).mean()), np.array(
            [(slope * score).mean(), slope.mean()]
        )

    scale, offset = minimize(loss, np.array([0.5, 0.0]), jac=True, method="BFGS").x
    return float(scale), float(offset)
