"""Calibration without a single label: what the participant lists alone can teach.

Two sides of one call, and sides of calls that share no participant, are certainly different people;
and of the four side pairs through which two calls share a speaker exactly one is the same person.
So the unknown channels are summed out: under the current calibration the posterior tells how
probable each pair is the same person (E-step), and these expectations, with the known non-targets,
make the next calibration (M-step). Only the probabilities of pairs are used, so cliques of any size
and those of two people count, and every way of solving them will do.

Scores are first put in units of the known non-targets: a factor or an offset on all of them changes
nothing. Of several starts the one whose data are most probable wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration, Line
from spklink.calibration.fitting import TooLittleError, Trials, fit, standard
from spklink.calibration.table import find_kind
from spklink.database.cliques import Cliques
from spklink.database.links import Links
from spklink.measures.evaluation import score_cliques
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options, Posterior

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Solve = Callable[[Floats], Posterior]
# First scales, a standard deviation of the known non-targets. A choice: one and about a third and
# three times of it.
STARTS = (0.5, 0.15, 1.5)
ROUNDS = 60  # a choice; all of the simulated worlds settle before (examples/label_free_worlds.py)
SETTLED = 1e-4  # no probability of a pair of sides moves further. A choice
QUICK_SECONDS = 5.0  # predicted for one E-step: above, one start has to do. A choice
# That share a speaker; fewer teach something, but not reliably. A choice, from what 10 to 50 calls
# teach in simulated worlds (examples/label_free_worlds.py).
ENOUGH_CONVERSATIONS = 30
FEWEST_CONVERSATIONS = 10  # a choice: fewer were not measured
FEWEST_NON_TARGETS = 30  # a choice: their quartiles have to tell middle and spread
FEWEST_CLIQUES = 30  # with known channels, to learn how a speaker's calls count. A choice
BETAS = (0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 4.0)  # a choice: a grid of factors of two to three
SAME_END = 0.01  # by this share the scales of two starts may differ. A choice


@dataclass(frozen=True)
class Pairs:
    """What there is to learn from: scores of linked calls, and of certainly different people."""

    links: Links
    scores: Floats  # (E, 2, 2)
    usable: Mask  # (E, 2, 2)
    non_targets: Floats  # (N,)
    speech: Floats | None = None  # (E, 2, 2), see module `calibration`
    non_target_speech: Floats | None = None  # (N,)

    def calibrated(self, calibration: Calibration) -> Floats:
        """(E, 2, 2) log-likelihood-ratios; 0 where a side is not usable."""
        return np.where(self.usable, calibration(self.scores, self.speech), 0.0)


@dataclass(frozen=True)
class Round:
    """One round of learning: the line in standardised scores, and how far the answer moved."""

    scale: float
    offset: float
    log_evidence: float | None  # of all cliques together, natural logarithm; None: not known
    moved: float  # largest change of the probability that two sides are one person


@dataclass(frozen=True)
class LabelFree:
    """The outcome of calibration without labels, and how it came about."""

    calibration: Calibration
    posterior: Posterior
    history: list[Round]
    converged: bool
    starts: int
    agree: bool  # all starts came to the same end
    expected_targets: float
    non_targets: int

    def as_json(self) -> dict[str, Any]:
        return {
            "rounds": len(self.history),
            "converged": self.converged,
            "starts": self.starts,
            "starts_agree": self.agree,
            "expected_targets": self.expected_targets,
            "non_targets": self.non_targets,
            "history": [asdict(step) for step in self.history],
        }


def what_is_missing(pairs: Pairs, cliques: Cliques) -> tuple[str, bool]:
    """Why there is too little structure to learn from reliably, empty where there is enough; and
    whether there is too little to learn from at all."""
    count = int(cliques.size[cliques.size > 1].sum())
    if len(pairs.non_targets) < FEWEST_NON_TARGETS:
        return (
            f"calibration without labels needs at least {FEWEST_NON_TARGETS} scores of sides that "
            f"are certainly different people (two sides of one call, or of calls that share no "
            f"participant); found {len(pairs.non_targets)}"
        ), True
    if count < ENOUGH_CONVERSATIONS:
        return (
            f"calibration without labels needs at least {ENOUGH_CONVERSATIONS} conversations "
            f"that share a speaker with another; found {count}"
        ), count < FEWEST_CONVERSATIONS
    return "", False


def label_free(
    pairs: Pairs,
    solve: Solve,
    kind: str = "lr",
    *,
    wrong_lists: float = 0.0,
    tell: Callable[[int, int], None] | None = None,
) -> LabelFree:
    """Constraint EM. `solve` maps log-likelihood-ratios of the pairs to the posterior.

    `wrong_lists` is the share of pairs that the lists may wrongly call one person: it makes a floor
    under all log-likelihood-ratios.
    """
    centre, spread = standard(pairs.non_targets)
    inner = replace(
        pairs,
        scores=(pairs.scores - centre) / spread,
        non_targets=(pairs.non_targets - centre) / spread,
    )
    learner = _Learner(inner, solve, find_kind(kind).learned_as or kind, wrong_lists, tell)
    runs = [learner.run(STARTS[0])]
    if runs[0].posterior.seconds.sum() <= QUICK_SECONDS:
        runs += [learner.run(start) for start in STARTS[1:]]
    # The first where they tie, or where a method gives no evidence.
    best = max(runs, key=lambda run: run.history[-1].log_evidence or -np.inf)
    if learner.kind != kind:
        curve = fit(learner.expected(best.posterior), kind, source="labelfree")
        best = replace(best, calibration=curve, posterior=solve(inner.calibrated(curve)))
    final = best.calibration.unstandardised(centre, spread)
    return replace(best, calibration=final, starts=len(runs), agree=_agree(runs))


def _agree(runs: list[LabelFree]) -> bool:
    ends = np.array([run.history[-1].scale for run in runs])
    return bool(np.ptp(ends) <= SAME_END * abs(ends[0]))


@dataclass(frozen=True)
class _Learner:
    """EM on standardised scores."""

    pairs: Pairs
    solve: Solve
    kind: str
    wrong_lists: float
    tell: Callable[[int, int], None] | None

    def run(self, start: float) -> LabelFree:
        line = Line(start, 0.0, floor=find_kind(self.kind).first_floor)
        posterior = self.solve(self.pairs.calibrated(line))
        history: list[Round] = []
        converged = False
        while len(history) < ROUNDS and not converged:
            line = self._maximise(posterior, line)
            before, posterior = posterior, self.solve(self.pairs.calibrated(line))
            change = self._same(posterior) - self._same(before)
            moved = float(np.abs(change).max(initial=0.0))
            evidence = float(posterior.log_evidence.sum())
            known = evidence if np.isfinite(evidence) else None
            history.append(Round(line.scale, line.offset, known, moved))
            converged = moved <= SETTLED
            if self.tell is not None:
                self.tell(len(history), ROUNDS)
        targets = self._same(posterior).sum()
        count = len(self.pairs.non_targets)
        return LabelFree(line, posterior, history, converged, 1, True, float(targets), count)

    def _same(self, posterior: Posterior) -> Floats:
        """(L, 2, 2) how probable each pair of sides is the shared speaker of its link."""
        links = self.pairs.links
        return posterior.link_probabilities(links) * self.pairs.usable[links.pair]

    def expected(self, posterior: Posterior) -> Trials:
        """Candidates with their probability, and the known non-targets."""
        pairs, place = self.pairs, self.pairs.links.pair
        same = self._same(posterior).ravel()
        kept = same > 0.0
        if not kept.any():
            raise TooLittleError("no two conversations with usable sound share a speaker")
        speech = None
        if pairs.speech is not None and pairs.non_target_speech is not None:
            speech = np.concatenate([pairs.speech[place].ravel()[kept], pairs.non_target_speech])
        scores = np.concatenate([pairs.scores[place].ravel()[kept], pairs.non_targets])
        none = np.zeros(len(pairs.non_targets))
        return Trials(
            scores=scores,
            same=np.concatenate([same[kept], none]),
            other=np.concatenate([np.zeros(int(kept.sum())), none + 1.0]),
            speech=speech,
        )

    def _maximise(self, posterior: Posterior, line: Line) -> Line:
        trials = self.expected(posterior)
        least = np.log(self.wrong_lists) if self.wrong_lists > 0.0 else None
        found = fit(trials, self.kind, source="labelfree", start=line, least_floor=least)
        assert isinstance(found, Line)
        if not found.scale > 0.0:
            raise TooLittleError(
                "calibration without labels failed: same-speaker scores do not come out higher "
                "than different-speaker ones; are the participant lists right?"
            )
        return found


def learn_weight(
    solve: Callable[[Weight], Posterior],
    truth: NDArray[np.int8],
    options: Options | None = None,
) -> Weight | None:
    """How the calls of one speaker count together, w(n; beta), where known channels can tell.

    `solve` gives the posterior under a weight rule without those channels; `truth` has them, and -1
    elsewhere. The beta under which the known channels are most probable, on cliques that it was not
    chosen on, is taken if it beats the paper's 2/n there by two standard errors; else None. Without
    any known channel nothing tells: a posterior is always most content with its own confidence.
    """
    paper = score_cliques(solve(Weight()), truth, options=options)
    telling = np.flatnonzero(paper.resolvable & np.isfinite(paper.cross_high))
    if len(telling) < FEWEST_CLIQUES:
        return None

    def cost(weight: Weight) -> Floats:
        scores = score_cliques(solve(weight), truth, options=options)
        return np.asarray((scores.cross_low + scores.cross_high)[telling] / 2.0)

    base = cost(Weight())
    gain = np.stack([base - cost(Weight("book", beta)) for beta in BETAS])
    fold, held_out = np.arange(len(telling)) % 2, np.empty(len(telling))
    for f in (0, 1):
        held_out[fold == f] = gain[np.argmax(gain[:, fold != f].sum(axis=1))][fold == f]
    if held_out.mean() <= 2.0 * held_out.std(ddof=1) / np.sqrt(len(telling)):
        return None
    return Weight("book", BETAS[int(np.argmax(gain.sum(axis=1)))])
