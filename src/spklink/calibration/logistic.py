"""Lines from weighted trials by logistic regression: least cross entropy at even odds.

Rows are trials, columns what is known of them: score, 1 and, by speech, score l and l (module
`curves`). Weak Gaussian priors, divided by the number of targets, keep a few well separated targets
from asking for an infinite slope, and fade with many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spklink.calibration.curves import Floats, Line, floored
from spklink.calibration.fitting import Trials
from spklink.threads import one_blas_thread

# Strengths of the priors, all choices by hand; "does" means within 2 % of the bits, seen on
# eight databases of six worlds of examples/label_free_worlds.py and on simulated trials.
# Anything from 0 to .04 does for databases of the paper's size; 20 Gaussian targets want more.
SLOPE_PRIOR = 0.004
# Anything from 0 to .3 does from 300 targets on; 20 and fewer want more, or the kind `lr`.
SPEECH_PRIOR = 0.1
# For each unit that the floor is above the lowest. Anything from 0 to .8 does for databases of the
# paper's size; 20 heavy-tailed calls want less.
FLOOR_PRIOR = 0.4
# Where a floor is sought, choices: one pair in 160,000 may always be an outlier (anything from -20
# to -8 does for databases of the paper's size; with 20 heavy-tailed calls the lower, the worse),
# and no more than a third of the pairs are (-1/2 does as well).
FLOORS = (-12.0, -1.0)
FIRST_FLOOR = -4.0  # where the search begins. A choice: two pairs in a hundred
NEWTON_STEPS = 100  # numerical: a bound only, the cost is convex; 5 to 13 were seen
# Numerical, for a cost of about one: steps that gain less end it, shorter ones are not tried, and
# no matrix is singular.
LEAST_GAIN = 1e-13
SHORTEST_STEP = 1e-8
RIDGE = 1e-12
PRECISELY = {"maxiter": 1000, "ftol": LEAST_GAIN, "gtol": 1e-8}  # numerical: as Newton's steps


@dataclass(frozen=True)
class Regression:
    """Columns (N, d); what each trial weighs in each class (N,); strengths of the priors (d,)."""

    columns: Floats
    same: Floats
    other: Floats
    prior: Floats

    def cost(self, llr: Floats, theta: Floats) -> float:
        """Weighted cross entropy in nats, plus prior theta^2 / 2."""
        soft = np.logaddexp(0.0, llr)  # of -llr it is soft - llr
        entropy = self.same @ (soft - llr) + self.other @ soft
        return float(entropy + 0.5 * self.prior @ theta**2)


def fit_line(
    trials: Trials,
    kind: str,
    source: str,
    *,
    start: Line | None = None,
    floors: tuple[float, float] | None = None,
    speech: Floats | None = None,
) -> Line:
    """A line; with a floor between two bounds, by speech where these are given."""
    targets = float(trials.same.sum())
    given = _regression(trials, speech, targets)
    first = Line(1.0, 0.0) if start is None else start
    theta = np.array([first.scale, first.offset, first.scale_speech, first.offset_speech])
    theta = theta[: given.columns.shape[1]]
    floor = None
    # A matrix product may depend on the number of threads in its last bits.
    with one_blas_thread():
        if floors is None:
            theta = logistic(given, theta)
        else:
            floor = FIRST_FLOOR if first.floor is None else first.floor
            theta, floor = floored_logistic(given, theta, floor, floors, FLOOR_PRIOR / targets)
    low, high = (None, None) if speech is None else (float(speech.min()), float(speech.max()))
    scale, offset, scale_speech, offset_speech = (*theta.tolist(), 0.0, 0.0)[:4]
    return Line(scale, offset, scale_speech, offset_speech, low, high, floor, kind, source)


def fixed(floor: float | None) -> tuple[float, float] | None:
    """Bounds that leave no choice."""
    return None if floor is None else (floor, floor)


def _regression(trials: Trials, speech: Floats | None, targets: float) -> Regression:
    columns, prior = [trials.scores, np.ones_like(trials.scores)], [SLOPE_PRIOR, 0.0]
    if speech is not None:
        columns += [trials.scores * speech, speech]
        prior += [SPEECH_PRIOR, SPEECH_PRIOR]
    return Regression(
        np.stack(columns, axis=1),
        trials.same / (2.0 * targets),
        trials.other / (2.0 * trials.other.sum()),
        np.array(prior) / targets,
    )


def logistic(given: Regression, theta: Floats) -> Floats:
    """theta of least cost: Newton's steps, each halved until it does not lead up."""

    def cost_at(at: Floats) -> float:
        return given.cost(given.columns @ at, at)

    now = cost_at(theta)
    for _ in range(NEWTON_STEPS):
        step = _newton_step(given, theta)
        length, before, now = 1.0, now, cost_at(theta - step)
        while length > SHORTEST_STEP and now > before:
            length /= 2.0
            now = cost_at(theta - length * step)
        theta = theta - length * step
        if before - now <= LEAST_GAIN:
            break
    return theta


def _newton_step(given: Regression, theta: Floats) -> Floats:
    from scipy.special import expit

    columns, same, other, prior = given.columns, given.same, given.other, given.prior
    share = expit(columns @ theta)
    slope = columns.T @ (other * share - same * (1.0 - share)) + prior * theta
    curve = (columns * ((same + other) * share * (1.0 - share))[:, None]).T @ columns
    curve[np.diag_indices_from(curve)] += prior + RIDGE
    return np.asarray(np.linalg.solve(curve, slope))


def floored_logistic(
    given: Regression, theta: Floats, floor: float, floors: tuple[float, float], rise: float
) -> tuple[Floats, float]:
    """theta and floor of least cost, where a unit of the floor costs `rise`: no longer convex, so
    by L-BFGS."""
    from scipy.optimize import minimize
    from scipy.special import expit

    columns, prior = given.columns, given.prior

    def cost_at(at: Floats) -> tuple[float, Floats]:
        line, low = columns @ at[:-1], float(at[-1])
        llr = floored(line, low)
        cost = given.cost(llr, at[:-1]) + rise * (low - FLOORS[0])
        pull = given.other * expit(llr) - given.same * expit(-llr)
        inlier = expit(np.log1p(-np.exp(low)) + line - low)  # d llr / d line
        by_floor = (1.0 - inlier) - inlier * np.exp(low) / (1.0 - np.exp(low))
        slope = columns.T @ (pull * inlier) + prior * at[:-1]
        return cost, np.append(slope, pull @ by_floor + rise)

    bounds = [(None, None)] * len(theta) + [floors]
    first = np.append(theta, np.clip(floor, *floors))
    found = minimize(cost_at, first, jac=True, method="L-BFGS-B", bounds=bounds, options=PRECISELY)
    return found.x[:-1], float(found.x[-1])
