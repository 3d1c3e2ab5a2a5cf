"""From scores to the answer in full: lists that may be wrong, conversations of any shape.

Two certain people on two channels are first linked as if the lists were right: one bit a
conversation, quick, and what the paper's tables are about. Then the rate of list errors is
estimated. Where it is not negligible, calibration had taken strangers for targets, so it is learned
once more with a posterior that knows of absences.
"""

from __future__ import annotations

from dataclasses import replace

from spklink.calibration.choice import Calibrated, Choice, calibrated
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.label_free import LabelFree
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.posterior.list_errors import FIRST
from spklink.posterior.posterior import Options, Posterior
from spklink.posterior.seating import Seating, places_of, said_about, seat
from spklink.runs.evidence import Evidence
from spklink.runs.misfits import find_misfits
from spklink.runs.names import Voices
from spklink.runs.result import Result
from spklink.runs.stages import Stages

FLATTEST = 0.5  # of the slope that was learned at first. A choice
MANY = 0.006  # rate of list errors from which calibration is learned once more


def rate_while_learning(table: Conversations, asked: float | None) -> float:
    """The rate of list errors with which calibration is learned at first."""
    if table.plain:
        return 0.0
    return FIRST if asked is None else asked


def with_posterior(result: Result, how: Options) -> Result:
    """A result with the bits of its conversations, where bits will do."""
    if not result.conversations.plain:
        return result
    return replace(result, solution=result.evidence.solved(how, result.stages.progress))


def with_seating(result: Result, asked: float | None, how: Options) -> Result:
    """A result with the answer in full, unless the bits of its posterior say all of it."""
    if result.conversations.plain and asked == 0.0:
        return result
    seating = seated(result.evidence, asked, result.solution, how, result.stages)
    return replace(result, seating=seating)


def seated(
    evidence: Evidence,
    asked: float | None,
    posterior: Posterior | None,
    how: Options,
    stages: Stages,
) -> Seating:
    """Who is where; without a rate of list errors it is estimated."""
    table = evidence.conversations
    found = seat(
        *(table, evidence.cliques, evidence.links, evidence.scores.needed),
        weight=evidence.weight,
        rate=asked,
        said=said_about(table, evidence.known),
        start=None if posterior is None else places_of(table, posterior.best),
        options=how,
        tell=stages.progress,
    )
    return evidence.promised_seats(found)


def with_misfits(result: Result, voices: Voices | None) -> Result:
    """A result with what the voices contradict."""
    if result.seating is None:
        return result
    said = said_about(result.conversations, result.evidence.known)
    found = find_misfits(result.seating, result.evidence.weight, said, voices)
    return replace(result, misfits=[one.row() for one in found])


def learned_again(
    result: Result,
    pairs: Pairs,
    choice: Choice,
    how: Options,
    voices: FrequentVoices | None = None,
) -> Result:
    """The result once more with a calibration that knows of absences, where there are many."""
    first, found = result.seating, result.calibrated
    if first is None or found is None or found.learned is None:
        return result
    if not result.conversations.plain or first.rate.value < MANY:
        return result
    again = calibrated(
        *(result.conversations, pairs, choice),
        known=result.evidence.known,
        weight=found.weight,
        rate=first.rate.value,
        again=found.learned.history[-1].scale,
        options=how,
        voices=voices,
    )
    if again.learned is None or _flattened(found.learned, again.learned):
        return result
    again = replace(again, first=found.first)
    fresh = result.recalibrated(_of_bits(result, again, how))
    return with_seating(fresh, None if first.rate.estimated else first.rate.value, how)


def _flattened(first: LabelFree, again: LabelFree) -> bool:
    """Whether learning with absences has ended where scores say next to nothing and everybody may
    be absent, which explains any database: without strangers a line is steeper, not flatter."""
    return again.history[-1].scale < FLATTEST * first.history[-1].scale


def _of_bits(result: Result, found: Calibrated, how: Options) -> Calibrated:
    """The same calibration with the posterior that takes lists at their word."""
    scores = replace(result.evidence.scores, needed=found.llr, non_targets=found.non_targets)
    evidence = replace(result.evidence, scores=scores, weight=found.weight).with_sums(found.sums)
    return replace(found, posterior=evidence.solved(how))
