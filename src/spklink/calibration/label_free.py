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
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration, Line
from spklink.calibration.fitting import TooLittleError, Trials, fit, standard
from spklink.calibration.pairs import Pairs
from spklink.calibration.table import find_kind
from spklink.database.cliques import Cliques
from spklink.database.links import Links

Floats = NDArray[np.float64]


class Solution(Protocol):
    """What learning asks of a posterior, however many states its conversations have."""

    @property
    def log_evidence(self) -> Floats:
        """(K,) log of the sum over the configurations of every clique."""
        ...

    @property
    def seconds(self) -> Floats:
        """(K,) predicted, to solve every clique."""
        ...

    def candidate_probabilities(self, links: Links) -> Floats:
        """(C,) how probable each candidate of every link is its speaker twice."""
        ...


class Sampled(Protocol):
    """A solution where the links of some people are not listed but sampled."""

    def sampled_probabilities(self, links: Links) -> Floats:
        """(C,) the same of such links."""
        ...


# From log-likelihood-ratios of the listed pairs, and the curve they come from, to the posterior.
Solve = Callable[[Floats, Calibration], Solution]
# First scales, a standard deviation of the known non-targets. A choice: the first is near most
# ends, the others a third and three times of it.
STARTS = (0.5, 0.15, 1.5)
ROUNDS = 60  # a choice; all of the simulated worlds settle before (examples/label_free_worlds.py)
SETTLED = 1e-4  # no probability of a pair of sides moves further. A choice
# Where lists are wrong strangers pass for targets and flatten the line; from there a posterior that
# knows of absences finds back in very many rounds, from a line that is too steep in a few. Its
# offset is that of two normal laws with the spread of the non-targets. A choice: the one value that
# was tried, on simulated calls and three carved databases (examples/list_errors.py --what B).
STEEPER = 3.0
# A posterior over states may be estimated by chains: their noise alone moves probabilities further
# than SETTLED. Choices.
ROUNDS_AGAIN, SETTLED_AGAIN = 20, 0.02
QUICK_SECONDS = 5.0  # predicted for one E-step: above, one start has to do. A choice
# That share a speaker; fewer teach something, but not reliably. A choice, from what 10 to 50 calls
# teach in simulated worlds (examples/label_free_worlds.py).
ENOUGH_CONVERSATIONS = 30
FEWEST_CONVERSATIONS = 10  # a choice: fewer were not measured
FEWEST_NON_TARGETS = 30  # a choice: their quartiles have to tell middle and spread
SAME_END = 0.01  # by this share the scales of two starts may differ. A choice
SQUARE = 4  # candidates of a link between calls of two tracks
ARRIVED = 0.01  # no log-likelihood-ratio further from those of an end: it leads there. A choice
NEGLIGIBLE = 1e-12  # a probability that adds nothing to any sum


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
    posterior: Solution
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
    states: bool = False,
    again: float | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> LabelFree:
    """Constraint EM. `solve` maps log-likelihood-ratios of the pairs, and the curve of them, to the
    posterior.

    `wrong_lists` is the share of pairs that the lists may wrongly call one person: it makes a floor
    under all log-likelihood-ratios. A posterior over `states` may be estimated by chains, whose
    noise nothing settles below. With `again`, a scale that was learned with strangers among the
    targets, learning begins where these are seen, and a few rounds have to do.
    """
    centre, spread = standard(pairs.non_targets.score)
    inner = pairs.standardised(centre, spread)
    units = centre, spread
    learner = _Learner(inner, solve, units, find_kind(kind).learned_as or kind, wrong_lists, tell)
    learner = replace(learner, states=states)
    if again is not None:
        learner = replace(learner, rounds=ROUNDS_AGAIN, settled=SETTLED_AGAIN)
        steep = STEEPER * again
        runs = [learner.run(steep, -0.5 * steep * steep)]
    else:
        runs = [learner.run(STARTS[0])]
    blind = states and runs[0].history[-1].log_evidence is None  # no start is the better one
    if again is None and not blind and runs[0].posterior.seconds.sum() <= QUICK_SECONDS:
        runs += [learner.run(start, end=runs[0]) for start in STARTS[1:]]
    # The first where they tie, or where a method gives no evidence.
    best = max(runs, key=lambda run: run.history[-1].log_evidence or -np.inf)
    if learner.kind != kind:
        trials = learner.expected(learner.same(best.posterior))
        curve = fit(trials, kind, source="labelfree")
        best = replace(best, calibration=curve, posterior=learner.posterior(curve))
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
    units: tuple[float, float]  # centre and spread of the scores as they were
    kind: str
    wrong_lists: float
    tell: Callable[[int, int], None] | None
    rounds: int = ROUNDS
    settled: float = SETTLED
    states: bool = False

    def run(self, start: float, offset: float = 0.0, end: LabelFree | None = None) -> LabelFree:
        """From a start to where it settles; with an `end` that another start has come to, only as
        far as it is on the way there."""
        line = Line(start, offset, floor=find_kind(self.kind).first_floor)
        same = self._first(line)
        history: list[Round] = []
        converged = False
        rounds, settled = self.rounds, self.settled
        while len(history) < rounds and not converged:
            line = self._maximise(same, line)
            if end is not None and end.converged and self._arrived(line, end):
                return end
            posterior = self.posterior(line)
            before, same = same, self.same(posterior)
            moved = float(np.abs(same - before).max(initial=0.0))
            evidence = float(posterior.log_evidence.sum())
            known = evidence if np.isfinite(evidence) else None
            history.append(Round(line.scale, line.offset, known, moved))
            if known is None and self.states:  # chains: their noise moves probabilities further
                rounds, settled = min(rounds, ROUNDS_AGAIN), max(settled, SETTLED_AGAIN)
            converged = moved <= settled
            if self.tell is not None:
                self.tell(len(history), rounds)
        # A sum, not a product of vectors: the bytes of that depend on the threads of its library.
        targets, count = float((same * self._times()).sum()), len(self.pairs.non_targets)
        return LabelFree(line, posterior, history, converged, 1, True, targets, count)

    def posterior(self, curve: Calibration) -> Solution:
        """Under a curve of the standardised scores."""
        return self.solve(self.pairs.calibrated(curve), curve.unstandardised(*self.units))

    def _every(self) -> list[Pairs]:
        """Listed pairs, and sampled ones where there are any: candidates are those of both."""
        some = self.pairs.sample
        return [self.pairs] if some is None else [self.pairs, some]

    def _times(self) -> Floats:
        """(C,) for how many each candidate stands."""
        each = [
            np.ones(len(pairs.candidates)) if pairs.times is None else pairs.times
            for pairs in self._every()
        ]
        return np.concatenate(each)

    def _first(self, line: Line) -> Floats:
        """(C,) what is believed under a first line, which is a guess: of two people on two tracks
        what every link says by itself. To solve whole cliques takes longest under a flat line, and
        tells little more about it."""
        every = self._every()
        if self.states or any(len(p.candidates) != SQUARE * len(p.links.pair) for p in every):
            return self.same(self.posterior(line))
        llr = np.concatenate([pairs.calibrated(line)[pairs.candidates] for pairs in every])
        each = llr.reshape(-1, SQUARE)
        each = np.exp(each - each.max(axis=1, keepdims=True))
        same: Floats = (each / each.sum(axis=1, keepdims=True)).ravel()
        usable = np.concatenate([pairs.usable[pairs.candidates] for pairs in every])
        return np.asarray(same * usable)

    def _arrived(self, line: Line, end: LabelFree) -> bool:
        gaps = [
            np.abs(pairs.calibrated(line) - pairs.calibrated(end.calibration)).max(initial=0.0)
            for pairs in self._every()
        ]
        return bool(max(gaps) <= ARRIVED)

    def same(self, posterior: Solution) -> Floats:
        """(C,) how probable each candidate is the shared speaker of its link."""
        pairs, some = self.pairs, self.pairs.sample
        found = posterior.candidate_probabilities(pairs.links) * pairs.usable[pairs.candidates]
        if some is None:
            return found
        drawn = cast(Sampled, posterior).sampled_probabilities(some.links)
        return np.concatenate([found, drawn * some.usable[some.candidates]])

    def expected(self, same: Floats) -> Trials:
        """Candidates with their probability, and the known non-targets."""
        kept = same > NEGLIGIBLE
        if not kept.any():
            raise TooLittleError("no two conversations with usable sound share a speaker")
        every, others = self._every(), self.pairs.non_targets
        scores = np.concatenate([pairs.scores[pairs.candidates] for pairs in every])[kept]
        speech, known = None, self.pairs.non_target_speech
        if known is not None:
            own = [p.speech[p.candidates] for p in every if p.speech is not None]
            speech = np.concatenate([np.concatenate(own)[kept], known])
        return Trials(
            scores=np.concatenate([scores, others.score]),
            same=np.concatenate([(same * self._times())[kept], np.zeros(len(others))]),
            other=np.repeat([0.0, 1.0], [int(kept.sum()), len(others)]),
            speech=speech,
        )

    def _maximise(self, same: Floats, line: Line) -> Line:
        trials = self.expected(same)
        least = np.log(self.wrong_lists) if self.wrong_lists > 0.0 else None
        found = fit(trials, self.kind, source="labelfree", start=line, least_floor=least)
        assert isinstance(found, Line)
        if not found.slope(_usual_speech(trials)) > 0.0:
            raise TooLittleError(
                "calibration without labels failed: same-speaker scores do not come out higher "
                "than different-speaker ones; are the participant lists right?"
            )
        return found


def _usual_speech(trials: Trials) -> float:
    """That of the pairs that are taken for the same speaker: of short calls alone, the slope at ten
    seconds of speech is a guess about what nobody heard."""
    if trials.speech is None:
        return 0.0
    return float(np.average(trials.speech, weights=trials.same))
