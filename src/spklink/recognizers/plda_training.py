"""Two-covariance PLDA from vectors whose speakers are known: expectation-maximisation.

Where W is the unit matrix and B diagonal with values r (module `plda`), the person behind n vectors
is known up to r / (1 + n r) in every direction, about r / (1 + n r) times their sum (E-step). The
covariance of these people, and that of the vectors about them, are the next B and W (M-step), which
are turned again. The likelihood never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.recognizers.plda import TwoCovariance, covariance, of_sums, shrunk, two_covariance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 50  # a choice
SETTLED = 1e-5  # a vector, of the log-likelihood: less is no gain. A choice


@dataclass(frozen=True)
class Speakers:
    """Vectors (N, d) and whose they are (N,), numbered 0, 1, …"""

    vectors: Floats
    speaker: Ints

    @property
    def count(self) -> Ints:
        """(people,) vectors of each."""
        return np.bincount(self.speaker)

    def sums(self, values: Floats) -> Floats:
        """(people, d) of values (N, d)."""
        total = np.zeros((len(self.count), values.shape[1]))
        np.add.at(total, self.speaker, values)
        return total


@dataclass(frozen=True)
class Learned:
    """A model, and the log-likelihood of the vectors before every round and after the last."""

    model: TwoCovariance
    history: list[float]


def learn(found: Speakers, *, rounds: int = ROUNDS) -> Learned:
    """The most probable model of these vectors, up to the shrinkage of its within-speaker
    covariance, which serves those to come."""
    model = _start(found)
    history = [log_likelihood(model, found)]
    for _ in range(rounds):
        within, between = _next_covariances(model, found)
        back = np.linalg.inv(model.turn)
        model = two_covariance(model.mean, back.T @ within @ back, back.T @ between @ back)
        history.append(log_likelihood(model, found))
        if history[-1] - history[-2] < SETTLED * len(found.vectors):
            break
    within, between = covariances(model)
    return Learned(two_covariance(model.mean, shrunk(within), between), history)


def covariances(model: TwoCovariance) -> tuple[Floats, Floats]:
    """W and B of a model with as many directions as dimensions."""
    back = np.linalg.inv(model.turn)
    return np.asarray(back.T @ back), np.asarray((back.T * model.ratio) @ back)


def log_likelihood(model: TwoCovariance, found: Speakers) -> float:
    """Of all vectors, natural logarithm."""
    z = model.turned(found.vectors)
    variance = 1.0 + model.ratio
    alone = -0.5 * (z**2 / variance + np.log(2.0 * np.pi * variance)).sum()
    together = of_sums(model.ratio, found.count, found.sums(z), found.sums(z**2)).sum()
    volume = np.linalg.slogdet(model.turn)[1] * len(z)
    return float(alone + together + volume)


def _start(found: Speakers) -> TwoCovariance:
    """By moments: the scatter about the speakers' own means, and what it leaves of all. Every
    direction is given some of both, as one that starts at nothing would stay there."""
    mean = found.vectors.mean(axis=0)
    own = found.sums(found.vectors) / found.count[:, None]
    gap = found.vectors - own[found.speaker]
    free = max(len(gap) - len(found.count), 1)
    within = shrunk(gap.T @ gap / free)
    return two_covariance(mean, within, shrunk(covariance(own)))


def _next_covariances(model: TwoCovariance, found: Speakers) -> tuple[Floats, Floats]:
    """W and B in the directions of the model."""
    z, count = model.turned(found.vectors), found.count[:, None]
    sure = model.ratio / (1.0 + count * model.ratio)  # (people, d) variance of each person
    person = sure * found.sums(z)
    gap = z - person[found.speaker]
    between = person.T @ person + np.diag(sure.sum(axis=0))
    within = gap.T @ gap + np.diag((count * sure).sum(axis=0))
    return within / len(z), between / len(count)
