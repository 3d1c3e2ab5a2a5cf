"""From raw scores to log-likelihood-ratios: small frozen objects, and how they are fitted.

  cmlg     the paper's: same- and different-speaker scores are Gaussians of one variance, so the
           log-likelihood-ratio is a straight line in the score
  lr       a straight line by logistic regression, both classes with half of the weight
  lr-floor the same with a floor: a share of the same-speaker scores, exp(floor), may be outliers
           that look like any two people, so no score speaks against a pair more than that
  lr-dur   a line whose slope and offset change with the seconds of speech
  pav      a rising step function: pooled adjacent violators
  default  one unit a standard deviation: a guess for where there is nothing to learn from

A line is lambda = (scale + scale_speech l) s + offset + offset_speech l, where l tells how much
speech a pair of sides has: l = ln(t_1 t_2) / 2 - ln 10, 0 at ten seconds each. With a floor f it
becomes log((1 - e^f) e^lambda + e^f).

Everything is fitted to weighted trials, so the truth (weights 0 and 1) and expectations of it
(module `learning`) go the same way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.tables import read_json, write_json
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
KINDS = ("cmlg", "lr", "lr-floor", "lr-dur", "pav")
SHORTEST = 0.1  # seconds of speech; less counts as this
# Strength of the Gaussian priors of a logistic regression, to be divided by the number of targets:
# they keep a few well separated targets from asking for an infinite slope, and fade with many.
SLOPE_PRIOR = 0.004
SPEECH_PRIOR = 0.1
FLOOR_PRIOR = 0.4  # for each unit that the floor is above the lowest
NEWTON_STEPS = 100
FLOORS = (-12.0, -1.0)  # where it is sought: one pair in 160,000 is never out of the question
FIRST_FLOOR = -4.0


class TooLittleError(SpklinkError):
    """The data do not teach a calibration: another has to serve."""


@dataclass(frozen=True)
class Line:
    """A straight line from score to log-likelihood-ratio, perhaps another for each l."""

    scale: float
    offset: float
    scale_speech: float = 0.0
    offset_speech: float = 0.0
    speech_low: float | None = None  # what l it was fitted to; beyond, the ends serve
    speech_high: float | None = None
    floor: float | None = None
    kind: str = "cmlg"
    source: str = "given"  # where it comes from: supervised, labelfree, given, ...

    @property
    def needs_speech(self) -> bool:
        return self.scale_speech != 0.0 or self.offset_speech != 0.0

    def __call__(self, scores: Floats, speech: Floats | None = None) -> Floats:
        if speech is None or not self.needs_speech:
            if self.needs_speech:
                raise SpklinkError(
                    "this calibration (lr-dur) needs the seconds of speech of every side; give "
                    "--sides sides.csv, or calibrate with --kind lr"
                )
            return self._floored(self.scale * scores + self.offset)
        speech = np.clip(speech, self.speech_low, self.speech_high)
        slope = np.maximum(self.scale + self.scale_speech * speech, 0.0)
        return self._floored(slope * scores + self.offset + self.offset_speech * speech)

    def _floored(self, line: Floats) -> Floats:
        return line if self.floor is None else floored(line, self.floor)

    def unstandardised(self, centre: float, spread: float) -> Line:
        """This line of (score - centre) / spread, as a line of the score."""
        scale, scale_speech = self.scale / spread, self.scale_speech / spread
        return replace(
            self,
            scale=scale,
            offset=self.offset - scale * centre,
            scale_speech=scale_speech,
            offset_speech=self.offset_speech - scale_speech * centre,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class StepCurve:
    """Scores from edges[k - 1] up to below edges[k] mean values[k]."""

    edges: tuple[float, ...]
    values: tuple[float, ...]
    kind: str = "pav"
    source: str = "given"
    needs_speech: bool = field(default=False, repr=False)

    def __call__(self, scores: Floats, speech: Floats | None = None) -> Floats:
        place = np.searchsorted(np.array(self.edges), scores, side="right")
        return np.asarray(np.array(self.values)[place], np.float64)

    def unstandardised(self, centre: float, spread: float) -> StepCurve:
        return replace(self, edges=tuple(centre + spread * edge for edge in self.edges))

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        del found["needs_speech"]
        return found


Calibration = Line | StepCurve


@dataclass(frozen=True)
class Trials:
    """Scores with how much each counts as the same speaker and as different speakers."""

    scores: Floats
    same: Floats
    other: Floats
    speech: Floats | None = None


def save(path: str | PathLike[str], calibration: Calibration, **more: Any) -> None:
    """JSON that a person can read; `more` says how it came about."""
    write_json(path, calibration.as_json() | more)


def load(path: str | PathLike[str], *, first: bool = False) -> Calibration:
    """A calibration that `save` wrote; the one of the first comparison, where there were two."""
    found = read_json(path)
    try:
        if first and found.get("first") is not None:
            found = found["first"]
        if found["kind"] not in (*KINDS, "none", "default"):
            raise ValueError(f"kind {found['kind']!r} is not one of {', '.join(KINDS)}")
        names = StepCurve if found["kind"] == "pav" else Line
        values = {k: found[k] for k in names.__dataclass_fields__ if k in found}
        if names is StepCurve:
            curve = StepCurve(**values | {k: tuple(values[k]) for k in ("edges", "values")})
            _check_curve(curve)
            return curve
        line = Line(**values)
        _check_line(line)
        return line
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise SpklinkError(f"{path}: not a calibration saved by spklink ({error})") from None


def _check_line(line: Line) -> None:
    maybe = (line.speech_low, line.speech_high, line.floor)
    numbers = [line.scale, line.offset, line.scale_speech, line.offset_speech]
    numbers += [x for x in maybe if x is not None]
    if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in numbers):
        raise ValueError("its values are not numbers")
    if not np.isfinite(numbers).all() or line.scale < 0.0 or (line.floor or 0.0) > 0.0:
        raise ValueError("its numbers are not finite, its scale is below or its floor above 0")


def _check_curve(curve: StepCurve) -> None:
    edges, values = np.array(curve.edges, np.float64), np.array(curve.values, np.float64)
    if len(values) != len(edges) + 1 or not np.isfinite(np.concatenate([edges, values])).all():
        raise ValueError("its steps are not finite numbers, one more than its edges")
    if (np.diff(edges) <= 0.0).any() or (np.diff(values) < 0.0).any():
        raise ValueError("its steps do not rise")


def pair_speech(seconds: Floats, side_1: NDArray[np.int64], side_2: NDArray[np.int64]) -> Floats:
    """l of pairs of sides."""
    log = np.log(np.maximum(seconds, SHORTEST) / 10.0)
    return np.asarray((log[side_1] + log[side_2]) / 2.0)


def gaussian_line(
    mean_same: float, variance_same: float, mean_other: float, variance_other: float
) -> tuple[float, float]:
    """CMLG: one variance for both classes, the mean of the two."""
    variance = (variance_same + variance_other) / 2.0
    scale = (mean_same - mean_other) / variance
    return scale, -scale * (mean_same + mean_other) / 2.0


def fit(
    trials: Trials,
    kind: str,
    *,
    source: str,
    start: Line | None = None,
    least_floor: float | None = None,
) -> Calibration:
    """The calibration of one kind that suits weighted trials best; lines with a floor of at least
    `least_floor` where one is given."""
    if kind not in KINDS:
        raise SpklinkError(f"calibration kind {kind!r} is not one of {', '.join(KINDS)}")
    if not (trials.same.sum() > 0.0 and trials.other.sum() > 0.0):
        raise TooLittleError("calibration needs scores of the same and of different speakers")
    if kind == "cmlg":
        return _fit_gaussians(trials, source)
    if kind == "pav":
        return _fit_steps(trials, source)
    if kind == "lr-dur" and trials.speech is None:
        raise SpklinkError("calibration lr-dur needs the seconds of speech of every side")
    floors = None if least_floor is None else (least_floor, least_floor)
    if kind == "lr-floor":
        floors = (FLOORS[0] if least_floor is None else least_floor, FLOORS[1])
    # A matrix product may depend on the number of threads in its last bits.
    with one_blas_thread():
        return _fit_logistic(trials, kind, source, start, floors)


def _fit_gaussians(trials: Trials, source: str) -> Line:
    def moments(weight: Floats) -> tuple[float, float]:
        mean = np.average(trials.scores, weights=weight)
        return float(mean), float(np.average((trials.scores - mean) ** 2, weights=weight))

    return Line(*gaussian_line(*moments(trials.same), *moments(trials.other)), source=source)


def _fit_steps(trials: Trials, source: str) -> StepCurve:
    from spklink.scores.pooling import pav

    same, other = trials.same > 0.0, trials.other > 0.0
    steps = pav(trials.scores[same], trials.scores[other], trials.same[same], trials.other[other])
    return StepCurve(tuple(steps.edges.tolist()), tuple(steps.llr.tolist()), source=source)


def _fit_logistic(
    trials: Trials, kind: str, source: str, start: Line | None, floors: tuple[float, float] | None
) -> Line:
    """Least cross entropy at even odds, with priors that fade with the number of targets."""
    targets = float(trials.same.sum())
    columns = [trials.scores, np.ones_like(trials.scores)]
    prior = [SLOPE_PRIOR, 0.0]
    theta = [1.0, 0.0] if start is None else [start.scale, start.offset]
    ends: tuple[float | None, float | None] = (None, None)
    if kind == "lr-dur":
        speech = cast("Floats", trials.speech)
        columns += [trials.scores * speech, speech]
        prior += [SPEECH_PRIOR, SPEECH_PRIOR]
        theta += [0.0, 0.0] if start is None else [start.scale_speech, start.offset_speech]
        ends = float(speech.min()), float(speech.max())
    given = (
        np.stack(columns, axis=1),
        trials.same / (2.0 * targets),
        trials.other / (2.0 * trials.other.sum()),
        np.array(prior) / targets,
    )
    floor = None
    if floors is None:
        found = logistic(*given, np.array(theta))
    else:
        first = FIRST_FLOOR if start is None or start.floor is None else start.floor
        found, floor = floored_logistic(
            *given, np.array(theta), first, floors, FLOOR_PRIOR / targets
        )
    scale, offset, scale_speech, offset_speech = (*found.tolist(), 0.0, 0.0)[:4]
    return Line(scale, offset, scale_speech, offset_speech, *ends, floor, kind, source)


def floored_logistic(
    columns: Floats,
    same: Floats,
    other: Floats,
    prior: Floats,
    theta: Floats,
    floor: float,
    floors: tuple[float, float],
    rise: float,
) -> tuple[Floats, float]:
    """theta and floor of least weighted cross entropy, plus priors (`rise` is the price of a unit
    of the floor): no longer convex, so by L-BFGS."""
    from scipy.optimize import minimize
    from scipy.special import expit

    def cost_at(at: Floats) -> tuple[float, Floats]:
        line, low = columns @ at[:-1], float(at[-1])
        llr = floored(line, low)
        value = same @ np.logaddexp(0.0, -llr) + other @ np.logaddexp(0.0, llr)
        pull = other * expit(llr) - same * expit(-llr)
        inlier = expit(np.log1p(-np.exp(low)) + line - low)  # d llr / d line
        by_floor = (1.0 - inlier) - inlier * np.exp(low) / (1.0 - np.exp(low))
        slope = columns.T @ (pull * inlier) + prior * at[:-1]
        cost = value + 0.5 * prior @ at[:-1] ** 2 + rise * (low - FLOORS[0])
        return float(cost), np.append(slope, pull @ by_floor + rise)

    bounds = [(None, None)] * len(theta) + [floors]
    precisely = {"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-8}
    first = np.append(theta, np.clip(floor, *floors))
    found = minimize(cost_at, first, jac=True, method="L-BFGS-B", bounds=bounds, options=precisely)
    return found.x[:-1], float(found.x[-1])


def floored(line: Floats, floor: float) -> Floats:
    """log((1 - e^floor) e^line + e^floor): never much below the floor."""
    return np.asarray(np.logaddexp(np.log1p(-np.exp(floor)) + line, floor))


def logistic(columns: Floats, same: Floats, other: Floats, prior: Floats, theta: Floats) -> Floats:
    """theta of least weighted cross entropy of `columns @ theta`, plus prior theta^2 / 2."""
    from scipy.special import expit

    def loss(at: Floats) -> float:
        llr = columns @ at
        cost = same @ np.logaddexp(0.0, -llr) + other @ np.logaddexp(0.0, llr)
        return float(cost + 0.5 * prior @ at**2)

    now = loss(theta)
    for _ in range(NEWTON_STEPS):
        share = expit(columns @ theta)
        slope = columns.T @ (other * share - same * (1.0 - share)) + prior * theta
        curve = (columns * ((same + other) * share * (1.0 - share))[:, None]).T @ columns
        curve[np.diag_indices_from(curve)] += prior + 1e-12  # never singular
        step = np.linalg.solve(curve, slope)
        length = 1.0
        while length > 1e-8 and loss(theta - length * step) > now:
            length /= 2.0
        before, theta = now, theta - length * step
        now = loss(theta)
        if before - now <= 1e-13:
            break
    return theta


def supervised(
    same: Floats,
    other: Floats,
    kind: str = "cmlg",
    *,
    speech_same: Floats | None = None,
    speech_other: Floats | None = None,
) -> Calibration:
    """From scores whose truth is known."""
    if len(same) < 2 or len(other) < 2:
        raise SpklinkError(
            f"calibration needs scores of both kinds; found {len(same)} of the same speaker and "
            f"{len(other)} of different speakers"
        )
    speech = None
    if speech_same is not None and speech_other is not None:
        speech = np.concatenate([speech_same, speech_other])
    centre, spread = standard(other)
    weight = np.repeat([1.0, 0.0], [len(same), len(other)])
    scores = (np.concatenate([same, other]) - centre) / spread
    trials = Trials(scores, weight, 1.0 - weight, speech)
    return fit(trials, kind, source="supervised").unstandardised(centre, spread)


def standard(others: Floats) -> tuple[float, float]:
    """Middle and spread of different-speaker scores, such that a few wild ones do not matter: all
    fits work in these units, so that a factor or an offset on all scores changes nothing."""
    low, centre, high = (float(x) for x in np.quantile(others, [0.25, 0.5, 0.75]))
    spread = (high - low) / 1.349 or float(others.std())
    if not np.isfinite(spread) or not spread > 1e-12 * abs(centre):
        raise TooLittleError(
            "all scores of different speakers are equal: there is nothing to learn"
        )
    return centre, spread


def stated_default(scores: Floats, why: str) -> Line:
    """One unit of log-likelihood-ratio a standard deviation of all scores: a guess, and said so."""
    spread = float(scores.std()) if len(scores) else 0.0
    scale = 1.0 / spread if spread > 0.0 else 0.0
    centre = float(scores.mean()) if len(scores) else 0.0
    source = f"probabilities are not calibrated: {why}"
    return Line(scale, -scale * centre, kind="default", source=source)
