"""What a recognizer would score: calibrated log-likelihood-ratios of a given equal error rate.

  gaussian every score independent: N(+mu, 2 mu) for the same speaker, N(-mu, 2 mu) otherwise
  plda     every side has a voice; scores are the exact ratios of two-covariance PLDA, so the
           scores of one side are correlated as real ones are
  t5       the same voices with heavy-tailed session noise (Student's t, 5 degrees of freedom),
           scored as if it were Gaussian and mended by the best affine calibration

A world is a function of who is on every side, the equal error rate (a share) and a generator; it
returns the scores of any pairs of sides that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.curves import Calibration, Line
from spklink.calibration.fitting import supervised
from spklink.errors import SpklinkError

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
ScoreSides = Callable[[Sides, Sides], Floats]
DIMENSIONS = 100  # of a simulated voice
T5 = 5  # degrees of freedom
AS_IT_IS = Line(1.0, 0.0)
LOG_BETAS = (log(1e-3), log(20.0))  # where the variance ratio is sought


def gaussian_mu(eer: float) -> float:
    """Mean of the calibrated same-speaker scores at this equal error rate (a share)."""
    from scipy.special import ndtri

    return float(2.0 * ndtri(eer) ** 2)


def _gaussian(speaker: Sides, eer: float, rng: np.random.Generator) -> ScoreSides:
    mu = gaussian_mu(eer)

    def score(side_1: Sides, side_2: Sides) -> Floats:
        mean = np.where(speaker[side_1] == speaker[side_2], mu, -mu)
        return np.asarray(mean + sqrt(2.0 * mu) * rng.standard_normal(len(side_1)))

    return score


def _plda(speaker: Sides, eer: float, rng: np.random.Generator) -> ScoreSides:
    beta = variance_ratio(eer)
    return _plda_scorer(_voices(speaker, beta, rng, None), beta, AS_IT_IS)


def _t5(speaker: Sides, eer: float, rng: np.random.Generator) -> ScoreSides:
    beta = variance_ratio(eer, T5)
    line = supervised(*_reference_trials(beta, T5), "lr")
    return _plda_scorer(_voices(speaker, beta, rng, T5), beta, line)


WORLDS = {"gaussian": _gaussian, "plda": _plda, "t5": _t5}


def _voices(speaker: Sides, beta: float, rng: np.random.Generator, degrees: int | None) -> Floats:
    """A voice for every side: the speaker's, variance beta, and the session's, variance 1."""
    identity = sqrt(beta) * rng.standard_normal((int(speaker.max()) + 1, DIMENSIONS))
    session = rng.standard_normal((len(speaker), DIMENSIONS))
    if degrees is not None:
        session *= np.sqrt((degrees - 2) / rng.chisquare(degrees, (len(speaker), 1)))
    return np.asarray(identity[speaker] + session)


def _plda_scorer(voices: Floats, beta: float, calibration: Calibration) -> ScoreSides:
    def score(side_1: Sides, side_2: Sides) -> Floats:
        out = np.empty(len(side_1))
        for begin in range(0, len(out), 1 << 16):  # bounded memory
            part = slice(begin, begin + (1 << 16))
            u, v = voices[side_1[part]], voices[side_2[part]]
            out[part] = plda_llr(((u + v) ** 2).sum(1), ((u - v) ** 2).sum(1), beta)
        return calibration(out)

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


@lru_cache(maxsize=32)
def variance_ratio(eer: float, degrees: int | None = None) -> float:
    """Between-/within-speaker variance beta at which the PLDA scores have this equal error rate."""
    from scipy.optimize import brentq

    def excess(log_beta: float) -> float:
        return _equal_error(*_reference_trials(exp(log_beta), degrees)) - eer

    if excess(LOG_BETAS[1]) > 0.0:
        least = 100.0 * (excess(LOG_BETAS[1]) + eer)
        raise SpklinkError(
            f"--eer {100.0 * eer:g}: voices of this world are confused more often than that, "
            f"even the most different ones; ask for {least:.2g} per cent or more"
        )
    return float(exp(brentq(excess, *LOG_BETAS, xtol=1e-6)))


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
    """Where the shares of misses and false alarms cross.

    `detection` has it without rounding errors: these are as large as half a trial of the sample,
    1e-5 of a variance ratio. Scores of `plda` would change with them, and they are in use.
    """
    scores = np.concatenate([targets, others])
    is_target = np.concatenate([np.ones(len(targets)), np.zeros(len(others))])
    order = np.argsort(scores, kind="stable")
    miss = np.cumsum(is_target[order]) / len(targets)
    false_alarm = 1.0 - np.cumsum(1.0 - is_target[order]) / len(others)
    at = int(np.argmax(miss >= false_alarm))
    return float((miss[at] + false_alarm[at]) / 2.0)
