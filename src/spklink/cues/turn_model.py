"""How a track's level goes with the turns of its person: a model, learned without labels.

The value of a turn on its person's track is about `mean`, give or take `spread + short / seconds`
(squared). With the rate `other` it was somebody else's turn, and such turns come in runs (`stays`).
With the rate `odd` it is worth nothing: its value is as at a random place; the briefer a turn, the
likelier that is (`brief`: seconds). A transcript is on time, or late or early by a little, or by
anything up to the reach. Turns of one conversation are worthless together with the rate `useless`,
and given to the wrong people together with the rate `wrong`. All of these are learned by
expectation over who is where and over offsets.

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
Mask = NDArray[np.bool_]
ON_TIME = 0.25  # seconds
ABOUT = 1.0  # seconds: scale of small offsets
ROUNDS, SETTLED = 15, 3e-3
IMPOSSIBLE = 1e-6  # an offset less probable in its conversation is not looked at while learning
LEAST_MEAN, LEAST_SPREAD = 0.1, 0.05
BRIEF = np.geomspace(0.03, 3.0, 24)  # seconds that are tried
FITS = 0.02  # nats a turn. A choice: unrelated turns reach .012
TINY, ROUNDING = 1e-300, 1e-3


@dataclass(frozen=True)
class Worth:
    """What the first guess counts for beside the database: turns, or conversations. Choices."""

    turns: float = 10.0
    rates: float = 50.0
    brief: float = 20.0
    useless: float = 20.0
    wrong: float = 200.0
    offsets: float = 1.0


@dataclass(frozen=True)
class TurnModel:
    """The parameters; those given here are where learning begins, and what few turns leave."""

    mean: float = 1.6
    spread: float = 0.3
    short: float = 0.1
    other: float = 0.01
    stays: float = 0.1
    odd: float = 0.03
    brief: float = 0.25
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

    def odd_at(self, seconds: Floats) -> Floats:
        """(turns,) how probable it is that turns as long as that are worth nothing."""
        return self.odd + (1.0 - self.odd) * _too_brief(seconds, self.brief)

    @property
    def chain(self) -> tuple[float, float, float]:
        return self.mean, self.other, self.stays


def _too_brief(seconds: Floats, brief: Floats | float) -> Floats:
    """How probable it is that a turn is worth nothing because it is brief: half at `brief`."""
    return np.asarray(1.0 / (1.0 + (seconds / brief) ** 2))


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

    value: NDArray[np.float32]  # (rows, offsets)
    chance: Floats  # (rows,) mean square of such values at random places
    seconds: Floats  # (rows,)
    start: Ints  # (options + 1,) first row of each option
    voter_start: Ints  # (voters,) first option of each voter
    voter: Ints  # (options,)
    call_start: Ints  # (calls,) first voter of each conversation
    call: Ints  # (voters,)
    belief: Floats  # (options,) probabilities from elsewhere
    options: Floats  # (options,) how many there are of that voter

    def arrays(self, model: TurnModel) -> tuple[Any, ...]:
        """What the kernels are given."""
        variance = model.spread + model.short / self.seconds
        return self.value, variance, self.chance, model.odd_at(self.seconds), self.start

    def by_call(
        self, voters: Floats, model: TurnModel, looked: Mask | None
    ) -> tuple[Floats, float]:
        """(calls, offsets) how probable offsets are, from (voters, offsets) log-likelihoods; and
        the log-likelihood of all calls."""
        at = np.add.reduceat(voters, self.call_start, axis=0) + np.log(model.offset_prior())
        at = at if looked is None else np.where(looked, at, -np.inf)
        total = np.logaddexp.reduce(at, axis=1)
        return np.exp(at - total[:, None]), float(total.sum())


def _rows(voters: Sequence[Voter], beliefs: Sequence[Floats] | None) -> _Rows:
    counts = np.array([len(one.value) for one in voters])
    turns = np.repeat([one.value.shape[1] for one in voters], counts)
    even = 1.0 / np.repeat(counts, counts)
    calls = np.array([one.conversation for one in voters])
    value = np.concatenate([one.value.reshape(-1, one.value.shape[2]) for one in voters])
    return _Rows(
        value=value,
        chance=np.concatenate([one.spread.ravel() for one in voters]),
        seconds=np.concatenate([np.tile(one.seconds, len(one.value)) for one in voters]),
        start=np.concatenate([[0], np.cumsum(turns)]),
        voter_start=np.concatenate([[0], np.cumsum(counts)[:-1]]),
        voter=np.repeat(np.arange(len(voters)), counts),
        call_start=np.flatnonzero(np.diff(calls, prepend=-1)),
        call=np.cumsum(np.diff(calls, prepend=-1) != 0) - 1,
        belief=even if beliefs is None else np.concatenate(beliefs),
        options=np.repeat(counts, counts).astype(np.float64),
    )


@dataclass(frozen=True)
class _Seen:
    """One round of expectation."""

    right: Floats  # (options, offsets) expected: the turns are those of people who are there
    useless: float  # expected conversations
    wrong: float
    offset: Floats  # (calls, offsets) posterior
    likelihood: Floats  # (options,) log; of each option, up to a constant of its voter
    gain: float  # log-likelihood of all turns against values at random places
    more: float  # the same against turns that are anybody's, wherever they are


def _expect(rows: _Rows, model: TurnModel, looked: Mask | None = None) -> _Seen:
    """`looked`: (calls, offsets) those that are possible."""
    from spklink.cues.turn_chain import likelihoods

    shape = len(rows.voter), rows.value.shape[1]
    possible = np.ones(shape, np.bool_) if looked is None else looked[rows.call][rows.voter]
    turns, anybody = np.full(shape, -np.inf), np.zeros(shape)
    likelihoods(*rows.arrays(model), model.chain, possible, turns, anybody)  # type: ignore[call-arg]
    # Of voters: as if the turns were anybody's, and what all is set against.
    count = rows.options[rows.voter_start][:, None]
    unrelated = np.logaddexp.reduceat(anybody, rows.voter_start, axis=0) - np.log(count)
    top = np.maximum(np.maximum.reduceat(turns, rows.voter_start, axis=0), 0.0)
    scaled = np.exp(turns - top[rows.voter])  # (options, offsets)
    whole = np.add.reduceat(scaled, rows.voter_start, axis=0)[rows.voter]
    good = 1.0 - model.useless - model.wrong
    elsewhere = model.wrong / np.maximum(rows.options - 1.0, 1.0)[:, None]
    nothing = model.useless * np.exp(-top)[rows.voter]
    chance = good * scaled + elsewhere * (whole - scaled) + nothing  # of each option
    weight = rows.belief[:, None]
    of_voter = np.add.reduceat(weight * chance, rows.voter_start, axis=0)
    offset, _ = rows.by_call(np.log(of_voter) + top, model, looked)
    plain = np.log(np.add.reduceat(weight * scaled, rows.voter_start, axis=0) + TINY) + top
    best, anybodys = (rows.by_call(one, model, looked)[1] for one in (plain, unrelated))
    share = (offset[rows.call] / of_voter)[rows.voter]  # what a unit of `chance` is worth
    away = (1.0 - weight) * elsewhere * scaled * share
    return _Seen(
        right=weight * good * scaled * share + away,
        useless=float((weight * nothing * share).sum()),
        wrong=float(away.sum()),
        offset=offset,
        likelihood=np.log((chance * share).sum(axis=1)),
        gain=best,
        more=best - anybodys,
    )


def _maximise(
    rows: _Rows, seen: _Seen, model: TurnModel, first: TurnModel, worth: Worth
) -> TurnModel:
    from spklink.cues.turn_chain import GIVEN, ODD, OWN, SUMS, expected

    sums, drawn = np.zeros((len(rows.value), SUMS)), np.zeros(4)
    expected(*rows.arrays(model), model.chain, seen.right, sums, drawn)  # type: ignore[call-arg]
    own, given, odd = sums[:, OWN:GIVEN].T, sums[:, GIVEN:ODD].T, sums[:, ODD]
    weight = own[0] + given[0]
    signed = float((own[1] - given[1]).sum())
    mean = (signed + worth.turns * first.mean) / (float(weight.sum()) + worth.turns)
    mean = max(mean, LEAST_MEAN)
    squares = own[2] + given[2] - 2.0 * mean * (own[1] - given[1]) + mean * mean * weight
    spread, short = _spreads(rows.seconds, squares, weight, model, first, worth)
    away = (drawn[1] + worth.rates * first.other) / (drawn[0] + drawn[1] + worth.rates)
    anew = (drawn[2] + worth.rates * (1.0 - first.stays)) / (drawn[3] + worth.rates)
    count, kinds = len(rows.voter_start), _kinds_of(seen.offset, model, worth)
    rate, brief = _odd_rates(rows.seconds, odd, weight + odd, model, first, worth)
    return replace(
        model,
        mean=mean,
        spread=spread,
        short=short,
        other=float(away),
        stays=float(1.0 - anew),
        odd=rate,
        brief=brief,
        useless=(seen.useless + worth.useless * first.useless) / (count + worth.useless),
        wrong=(seen.wrong + worth.wrong * first.wrong) / (count + worth.wrong),
        on_time=kinds[0],
        about=kinds[1],
    )


def _odd_rates(
    seconds: Floats,
    odd: Floats,
    total: Floats,
    model: TurnModel,
    first: TurnModel,
    worth: Worth,
) -> tuple[float, float]:
    """The rate of worthless turns however long they are, and the length below which turns are;
    from (rows,) expected worthless turns, and all."""
    at_any = float((odd * model.odd / model.odd_at(seconds)).sum())
    rate = (at_any + worth.rates * first.odd) / (float(total.sum()) + worth.rates)
    chance = rate + (1.0 - rate) * _too_brief(seconds[:, None], BRIEF)
    fit = odd @ np.log(chance) + (total - odd) @ np.log1p(-np.minimum(chance, 1.0 - 1e-9))
    fit -= 0.5 * worth.brief * np.log(BRIEF / first.brief) ** 2
    return rate, float(BRIEF[np.argmax(fit)])


def _kinds_of(offset: Floats, model: TurnModel, worth: Worth) -> list[float]:
    """Shares of the three kinds of offset, from (calls, offsets) posteriors over all offsets."""
    kinds = _kinds()
    now = np.array([model.on_time, model.about, 1.0 - model.on_time - model.about])
    share = now[:, None] * kinds / (now @ kinds)
    found = offset.sum(axis=0) @ share.T + worth.offsets
    return (found / found.sum()).tolist()  # type: ignore[no-any-return]


def _spreads(
    seconds: Floats,
    squares: Floats,
    weight: Floats,
    model: TurnModel,
    first: TurnModel,
    worth: Worth,
) -> tuple[float, float]:
    """Variance = spread + short / seconds: weighted least squares, in units of what it was."""
    basis = np.stack([np.ones(len(seconds)), 1.0 / seconds])
    each = weight / (model.spread + model.short / seconds) ** 2
    guess = first.spread + first.short
    prior = worth.turns / guess**2
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
    voters: Sequence[Voter],
    beliefs: Sequence[Floats] | None = None,
    start: TurnModel | None = None,
    *,
    first: TurnModel | None = None,
    worth: Worth | None = None,
) -> TurnModel:
    """The model of a database. `beliefs`: of each voter, (options,) probabilities that other
    evidence gives; without them all options are alike. `start`: where to begin; `first`: what is
    believed before any turn is seen, and what it is worth."""
    first, worth = first or TurnModel(), worth or Worth()
    if not voters:
        return first
    rows = _rows(voters, beliefs)
    model = replace(start or first, turns=sum(len(one.seconds) for one in voters))
    looked = np.ones((len(rows.call_start), rows.value.shape[1]), np.bool_)
    for number in range(ROUNDS):
        seen, before = _expect(rows, model, looked), model
        model = _maximise(rows, seen, model, first, worth)
        if number >= 2:
            looked = seen.offset > IMPOSSIBLE
        if number >= 2 and _moved(before, model) < SETTLED:
            break
    return model if _fits(rows, seen, model) else replace(model, useless=1.0, wrong=0.0)


def _fits(rows: _Rows, seen: _Seen, model: TurnModel) -> bool:
    """Whether turns fit their recordings: better than values at random places do, and than the same
    turns if each were anybody's. If not they are of others, and nothing is believed."""
    after = model.turns - len(rows.voter_start)  # turns that could agree with an earlier one
    return seen.gain > 0.0 and seen.more > FITS * after - ROUNDING


def _moved(before: TurnModel, after: TurnModel) -> float:
    old, new = (np.array([*one.as_json().values()], float) for one in (before, after))
    return float(np.max(np.abs(new - old) / (np.abs(old) + 0.1)))


def decide(voters: Sequence[Voter], model: TurnModel) -> list[Floats]:
    """Of each voter: (options,) log-likelihoods, up to a constant."""
    if not voters:
        return []
    rows = _rows(voters, None)
    return np.split(_expect(rows, model).likelihood, rows.voter_start[1:])
