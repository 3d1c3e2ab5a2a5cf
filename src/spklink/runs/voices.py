"""How alike any two sides of a run are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import pair_speech
from spklink.calibration.frequent import FrequentVoices
from spklink.database.frequent import Frequent
from spklink.runs.given_scores import GivenScorer
from spklink.runs.kept_scores import of_square
from spklink.runs.names import Voices
from spklink.runs.result import Result
from spklink.runs.scoring import Scorer
from spklink.sound.listening import Sound


def frequent_voices(scorer: Scorer | GivenScorer, frequent: Frequent) -> FrequentVoices | None:
    """Those of people whose links are not listed, as they are compared now."""
    return scorer.voices(frequent) if isinstance(scorer, Scorer) else None


def any_voices(
    result: Result,
    scorer: Scorer | GivenScorer,
    sound: Sound,
    every: NDArray[np.float64] | None,
) -> Voices:
    """Log-likelihood-ratios of any two sides, as this run calibrated them; `every` (S, S) has their
    scores, where they are at hand."""
    found = result.calibrated
    assert found is not None
    seconds = sound.known_seconds()

    def voices(side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> NDArray[np.float64]:
        speech = None if seconds is None else pair_speech(seconds, side_1, side_2)
        scores = scorer(side_1, side_2) if every is None else every[side_1, side_2]
        there = ~np.isnan(scores)  # not every score is given
        llr = found.calibration(np.where(there, scores, 0.0), speech)
        return np.where(there & sound.usable[side_1] & sound.usable[side_2], llr, np.nan)

    return voices


def with_all_pairs(
    result: Result, scorer: Scorer | GivenScorer, every: NDArray[np.float64] | None
) -> Result:
    """With the scores of all pairs; `every` (S, S) has them, where they are at hand."""
    raw = scorer.everything() if every is None else of_square(every)
    scores = result.evidence.scores
    scores = replace(scores, others=len(raw) - len(scores.needed))
    return replace(result, raw=raw, evidence=replace(result.evidence, scores=scores))
