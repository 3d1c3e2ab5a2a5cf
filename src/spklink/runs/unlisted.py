"""A run where lists have open ends: learned from enrolled people where lists teach nothing, and
solved once more with whoever may be on the tracks that nobody is listed on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.choice import LABELFREE, Calibrated, Choice
from spklink.calibration.fitting import TooLittleError
from spklink.calibration.identified import learn_identified
from spklink.calibration.label_free import ENOUGH_CONVERSATIONS
from spklink.calibration.pairs import Pairs
from spklink.database.candidates import widened, with_candidates
from spklink.database.conversations import Conversations
from spklink.posterior.posterior import Options
from spklink.runs.given_scores import GivenScorer
from spklink.runs.names import Voices
from spklink.runs.naming import find_candidates
from spklink.runs.result import Result
from spklink.runs.scoring import Scorer
from spklink.runs.seated import with_doubted_lists
from spklink.runs.unknown import Earlier, find_unknown

Mask = NDArray[np.bool_]


def lists_are_few(table: Conversations) -> bool:
    """Whether fewer conversations list anybody than calibration can reliably learn from."""
    return int((table.listing.counts[: table.asked] > 0).sum()) < ENOUGH_CONVERSATIONS


def identified(
    table: Conversations,
    scorer: Scorer | GivenScorer,
    pairs: Pairs,
    found: Calibrated,
    choice: Choice,
) -> Calibrated:
    """Calibrated by what enrolled people teach, where lists could teach nothing."""
    if choice.source != LABELFREE or choice.fallback is not None:
        return found
    sound = scorer.sound
    try:
        learned = learn_identified(
            *(table, scorer, pairs, choice.kind_for(pairs)),
            seconds=sound.known_seconds(),
            usable=sound.usable,
            order=sound.order,
        )
    except TooLittleError:
        return found
    line = learned.calibration
    return replace(
        found,
        calibration=line,
        llr=pairs.calibrated(line),
        non_targets=pairs.calibrated_non_targets(line),
        learned=learned,
        note="",
    )


def with_names(
    result: Result,
    voices: Voices,
    usable: Mask,
    rate: float | None,
    how: Options,
    before: Earlier,
) -> Result:
    """The answer in full where people may be on tracks that do not list them, and labels for those
    who stay without a name."""
    result = _named(result, voices, usable, rate, how)
    weight = result.evidence.weight
    found = find_unknown(result.answer, voices, usable, weight, how, before)
    notes = [*result.notes, *filter(None, [found.note])]
    return replace(result, unknown=found, notes=notes)


def _named(
    result: Result, voices: Voices, usable: Mask, rate: float | None, how: Options
) -> Result:
    """With names; the links, and so the scores, stay as they are."""
    evidence = result.evidence
    naming = find_candidates(result.answer, voices, usable)
    result = replace(result, naming=naming)
    if not len(naming.candidates):
        return result
    listed = evidence.conversations
    table = with_candidates(listed, naming.candidates)
    cues = [replace(one, seat=widened(one.seat, listed, table.listing)) for one in evidence.cues]
    wider = replace(evidence, conversations=table, cues=tuple(cues))
    return with_doubted_lists(replace(result, evidence=wider), rate, how)
