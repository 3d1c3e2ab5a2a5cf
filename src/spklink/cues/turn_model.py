"""How a track's level goes with the turns of its person: a model, learned without labels.

The value of a turn on its person's track is about `mean`, give or take `spread + short / seconds`
(squared); with the rates `other` it was somebody else's turn, with `odd` it can be anything. A
transcript is on time, or late or early by a little, or by anything up to the reach. Turns of one
conversation are worthless together with the rate `useless`, and given to the wrong people together
with the rate `wrong`. All of these are learned by expectation over who is where and over offsets.

Values at random places are the yardstick: an offset or a track wins by what it explains better than
chance, summed over all offsets, so that the freedom to choose one is paid for. What one turn can
say is bounded by `other`, what all of them can say by `wrong`. Frames never count, turns do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cues.turn_votes import NEAR, Voter, offsets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ANYTHING = 3.0  # variance of odd values
ON_TIME = 0.25  # seconds
ABOUT = 1.0  # seconds: scale of small offsets
ROUNDS, SETTLED = 15, 3e-3
IMPOSSIBLE = 1e-6  # an offset less probable in every conversation is not looked at while learning
LEAST_MEAN, LEAST_SPREAD = 0.1, 0.05
TINY = 1e-300
# What the first guess counts for beside the database: turns, or conversations. Choices.
WORTH_TURNS, WORTH_RATES, WORTH_USELESS, WORTH_WRONG, WORTH_OFFSETS = 10.0, 50.0, 20.0, 200.0, 1.0


@dataclass(frozen=True)
class TurnModel:
    """The parameters; those given here are where learning begins, and what few turns leave."""

    mean: float = 1.6
    spread: float = 0.3
    short: float = 0.1
    other: float = 0.05
    odd: float = 0.03
    useless: float = 0.02
    wrong: float = 0.001
    on_time: float = 0.6  # share of the conversations
    about: float = 0.3
    turns: int = 0  # that it was learned from

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def offset_prior(self) -> Floats:
        """(offsets,) probabilities."""
        return np.array([self.on_time, self.about, 1.0 - self.on_time - self.about]) @ _kinds()


def _kinds() -> Floats:
    """(3, offsets) probabilities of offsets: on time, by a little, by anything."""
    at = offsets()
    width = np.gradient(at)
    kinds = np.stack([np.abs(at) < ON_TIME, np.exp(-np.abs(at) / ABOUT), np.ones(len(at))]) * width
    assert at[-1] > NEAR
    return np.asarray(kinds / kinds.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Rows:
    """All voters as arrays: a row is a turn under one option of its voter."""

    value: Floats  # (rows, offsets)
    chance: Floats  # (rows, offsets) log-density of such a value at a random place
    seconds: Floats  # (rows,)
    option_start: Ints  # (options,) first row of each option
    option: Ints  # (rows,)
    voter_start: Ints  # (voters,) first option of each voter
    voter: Ints  # (options,)
    call_start: Ints  # (calls,) first voter of each conversation
    call: Ints  # (voters,)
    belief: Floats  # (options,) log-probabilities from elsewhere
    options: Floats  # (options,) how many there are of that voter

    def at(self, kept: NDArray[np.bool_]) -> _Rows:
        return replace(self, value=self.value[:, kept], chance=self.chance[:, kept])


def _rows(voters: Sequence[Voter], elsewhere: Floats | None) -> _Rows:
    counts = np.array([len(one.value) for one in voters])
    turns = np.repeat([one.value.shape[1] for one in voters], counts)
    value = np.concatenate([one.value.reshape(-1, one.value.shape[2]) for one in voters])
    spread = np.concatenate([one.spread.ravel() for one in voters])[:, None]
    belief = -np.log(np.repeat(counts, counts).astype(np.float64))
    if elsewhere is not None:
        for k, one in enumerate(voters):
            odds = float(elsewhere[one.conversation])
            if len(one.people) > 1:
                first = int(counts[:k].sum())
                belief[first : first + 2] = -np.logaddexp(0.0, [odds, -odds])
    calls = np.array([one.conversation for one in voters])
    return _Rows(
        value=value,
        chance=-0.5 * (value * value / spread + np.log(2.0 * np.pi * spread)),
        seconds=np.concatenate([np.tile(one.seconds, len(one.value)) for one in voters]),
        option_start=np.concatenate([[0], np.cumsum(turns)[:-1]]),
        option=np.repeat(np.arange(len(turns)), turns),
        voter_start=np.concatenate([[0], np.cumsum(counts)[:-1]]),
        voter=np.repeat(np.arange(len(voters)), counts),
        call_start=np.flatnonzero(np.diff(calls, prepend=-1)),
        call=np.cumsum(np.diff(calls, prepend=-1) != 0) - 1,
        belief=belief,
        options=np.repeat(counts, counts).astype(np.float64),
    )


@dataclass(frozen=True)
class _Seen:
    """One round of expectation."""

    own: Floats  # (rows, offsets) share of a turn's density: its person's own
    other: Floats  # somebody else's
    odd: Floats
    right: Floats  # (options, offsets) expected: the turns are those of people who are there
    useless: float  # expected conversations
    wrong: float
    offset: Floats  # (calls, offsets) posterior
    likelihood: Floats  # (options,) log; of each option, up to a constant of its voter
    gain: float  # log-likelihood of all turns against values at random places


def _normal(x: Floats, variance: Floats | float) -> Floats:
    return np.asarray(np.exp(-0.5 * x * x / variance) / np.sqrt(2.0 * np.pi * variance))


def _expect(rows: _Rows, model: TurnModel, prior: Floats) -> _Seen:
    variance = (model.spread + model.short / rows.seconds)[:, None]
    own = (1.0 - model.other - model.odd) * _normal(rows.value - model.mean, variance)
    other = model.other * _normal(rows.value + model.mean, variance)
    odd = model.odd * _normal(rows.value, ANYTHING)
    density = own + other + odd
    turns = np.add.reduceat(np.log(density) - rows.chance, rows.option_start, axis=0)
    top = np.maximum(np.maximum.reduceat(turns, rows.voter_start, axis=0), 0.0)
    scaled = np.exp(turns - top[rows.voter])  # (options, offsets)
    whole = np.add.reduceat(scaled, rows.voter_start, axis=0)[rows.voter]
    good = 1.0 - model.useless - model.wrong
    elsewhere = model.wrong / np.maximum(rows.options - 1.0, 1.0)[:, None]
    nothing = model.useless * np.exp(-top)[rows.voter]
    chance = good * scaled + elsewhere * (whole - scaled) + nothing  # of each option
    weight = np.exp(rows.belief)[:, None]
    plain = np.log(np.add.reduceat(weight * scaled, rows.voter_start, axis=0) + TINY) + top
    gain = np.logaddexp.reduce(
        np.add.reduceat(plain, rows.call_start, axis=0) + np.log(prior), axis=1
    )
    of_voter = np.add.reduceat(weight * chance, rows.voter_start, axis=0)
    log_voter = np.log(of_voter) + top
    at = np.add.reduceat(log_voter, rows.call_start, axis=0) + np.log(prior)
    height = at.max(axis=1, keepdims=True)
    offset = np.exp(at - height)
    total = offset.sum(axis=1, keepdims=True)
    offset /= total
    share = (offset[rows.call] / of_voter)[rows.voter]  # what a unit of `chance` is worth
    kept = weight * good * scaled * share
    away = (1.0 - weight) * elsewhere * scaled * share
    return _Seen(
        own / density,
        other / density,
        odd / density,
        right=kept + away,
        useless=float((weight * nothing * share).sum()),
        wrong=float(away.sum()),
        offset=offset,
        likelihood=np.log((chance * share).sum(axis=1)),
        gain=float(gain.sum()),
    )


def _maximise(rows: _Rows, seen: _Seen, model: TurnModel, first: TurnModel) -> TurnModel:
    each = seen.right[rows.option]
    own, other = each * seen.own, each * seen.other
    total, count = float(each.sum()), len(rows.voter_start)
    weight = float(own.sum() + other.sum())
    signed = float(((own - other) * rows.value).sum())
    mean = (signed + WORTH_TURNS * first.mean) / (weight + WORTH_TURNS)
    mean = max(mean, LEAST_MEAN)
    squares = (own * (rows.value - mean) ** 2 + other * (rows.value + mean) ** 2).sum(axis=1)
    spread, short = _spreads(rows.seconds, squares, (own + other).sum(axis=1), model, first)
    worth = total + WORTH_RATES
    kinds = _kinds_of(seen.offset, model)
    return replace(
        model,
        mean=mean,
        spread=spread,
        short=short,
        other=float((other.sum() + WORTH_RATES * first.other) / worth),
        odd=float(((each * seen.odd).sum() + WORTH_RATES * first.odd) / worth),
        useless=(seen.useless + WORTH_USELESS * first.useless) / (count + WORTH_USELESS),
        wrong=(seen.wrong + WORTH_WRONG * first.wrong) / (count + WORTH_WRONG),
        on_time=kinds[0],
        about=kinds[1],
    )


def _kinds_of(offset: Floats, model: TurnModel) -> list[float]:
    """Shares of the three kinds of offset, from (calls, offsets) posteriors over all offsets."""
    kinds = _kinds()
    now = np.array([model.on_time, model.about, 1.0 - model.on_time - model.about])
    share = now[:, None] * kinds / (now @ kinds)
    found = offset.sum(axis=0) @ share.T + WORTH_OFFSETS
    return (found / found.sum()).tolist()  # type: ignore[no-any-return]


def _spreads(
    seconds: Floats, squares: Floats, weight: Floats, model: TurnModel, first: TurnModel
) -> tuple[float, float]:
    """Variance = spread + short / seconds: weighted least squares, in units of what it was."""
    basis = np.stack([np.ones(len(seconds)), 1.0 / seconds])
    each = weight / (model.spread + model.short / seconds) ** 2
    guess = first.spread + first.short
    prior = WORTH_TURNS / guess**2
    left = (basis * each) @ basis.T + prior * np.ones((2, 2)) + 1e-6 * np.eye(2)
    right = (basis * each) @ (squares / np.maximum(weight, 1e-12)) + prior * guess
    spread, short = np.linalg.solve(left, right).tolist()
    if short < 0.0:
        spread, short = float(right[0] / left[0, 0]), 0.0
    if spread < LEAST_SPREAD:
        rest = (right[1] - LEAST_SPREAD * left[0, 1]) / left[1, 1]
        spread, short = LEAST_SPREAD, max(float(rest), 0.0)
    return spread, short


def learn(
    voters: Sequence[Voter], elsewhere: Floats | None = None, start: TurnModel | None = None
) -> TurnModel:
    """The model of a database. `elsewhere`: (conversations,) log-odds of exchanged that other
    evidence gives; without it both ways are alike. `start`: where to begin."""
    first = TurnModel()
    if not voters:
        return first
    rows = _rows(voters, elsewhere)
    model = replace(start or first, turns=sum(len(one.seconds) for one in voters))
    kept = np.ones(len(offsets()), np.bool_)
    for number in range(ROUNDS):
        seen = _expect(rows.at(kept), model, model.offset_prior()[kept])
        full = np.zeros((len(seen.offset), len(kept)))
        full[:, kept] = seen.offset
        before = model
        model = _maximise(rows.at(kept), replace(seen, offset=full), model, first)
        if number >= 2:
            kept &= full.max(axis=0) > IMPOSSIBLE
        if number >= 2 and _moved(before, model) < SETTLED:
            break
    # Turns that fit their recordings worse than chance does are of others: nothing is believed.
    return model if seen.gain > 0.0 else replace(model, useless=1.0, wrong=0.0)


def _moved(before: TurnModel, after: TurnModel) -> float:
    old, new = (np.array([*one.as_json().values()], float) for one in (before, after))
    return float(np.max(np.abs(new - old) / (np.abs(old) + 0.1)))


def decide(voters: Sequence[Voter], model: TurnModel) -> list[Floats]:
    """Of each voter: (options,) log-likelihoods, up to a constant."""
    if not voters:
        return []
    rows = _rows(voters, None)
    seen = _expect(rows, model, model.offset_prior())
    ends = rows.voter_start[1:]
    return np.split(seen.likelihood, ends)
