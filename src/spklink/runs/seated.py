"""From scores to the answer in full: lists that may be wrong, conversations of any shape.

Two certain people on two channels are first linked as if the lists were right: one bit a
conversation, quick, and what the paper's tables are about. Then the rate of list errors is
estimated. Where it is not negligible, calibration had taken strangers for targets, so it is learned
once more with a posterior that knows of absences.
"""

from __future__ import annotations

from dataclasses import replace

from spklink.calibration.choice import Choice, calibrated
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.label_free import LabelFree
from spklink.calibration.pairs import Pairs
from spklink.database.conversations import Conversations
from spklink.posterior.answer import Answer, said_about
from spklink.posterior.list_errors import FIRST
from spklink.posterior.posterior import Options
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


def answered(
    evidence: Evidence,
    asked: float | None,
    how: Options,
    stages: Stages,
    right: Answer | None = None,
) -> Answer:
    """Who is where; without a rate of list errors it is estimated. `right` is the answer given that
    the lists are right; of two certain people on two tracks it is found first where it is not
    known."""
    if evidence.conversations.plain and right is None:
        right = evidence.lists_right(how, stages.progress)
    return evidence.answered(asked, how, right=right, tell=stages.progress)


def with_doubted_lists(result: Result, asked: float | None, how: Options) -> Result:
    """A result whose lists may be wrong, unless they are to be taken at their word."""
    right = result.answer if result.answer.binary else None
    return replace(result, answer=answered(result.evidence, asked, how, result.stages, right))


def with_misfits(result: Result, voices: Voices | None) -> Result:
    """A result with what the voices contradict."""
    if result.answer.binary:
        return result
    said = said_about(result.conversations, result.evidence.known)
    found = find_misfits(result.answer, result.evidence.weight, said, voices)
    return replace(result, misfits=[one.row() for one in found])


def learned_again(
    result: Result,
    pairs: Pairs,
    choice: Choice,
    how: Options,
    voices: FrequentVoices | None = None,
) -> Result:
    """The result once more with a calibration that knows of absences, where there are many."""
    first, found = result.answer, result.calibrated
    if first.binary or found is None or found.learned is None:
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
    return with_doubted_lists(
        result.recalibrated(again, how), None if first.rate.estimated else first.rate.value, how
    )


def _flattened(first: LabelFree, again: LabelFree) -> bool:
    """Whether learning with absences has ended where scores say next to nothing and everybody may
    be absent, which explains any database: without strangers a line is steeper, not flatter."""
    return again.history[-1].scale < FLATTEST * first.history[-1].scale
