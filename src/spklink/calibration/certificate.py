"""How far figures may be off where frequent voices were summed: a slack that is proved.

Sums take the other conversations of a person as they are on average. All but certainly no more than
k of them are otherwise than in the best configuration (module `counting`), and what k of them can
change is at most the sum of the k largest changes that single ones make. That, and how far the sums
in use are from those of the best configuration, is the slack of a conversation (module
`posterior.summed`).

Every two conversations of a person are looked at once for this, in blocks, and nothing is kept of
them but a few figures a conversation: time grows with the square of his conversations. Where that
would exceed the budget, or conversations have more than two states, nothing is proved.

Conventions: x_i = 1 as everywhere where conversation i is exchanged; a flip is a conversation that
is otherwise than in the best configuration; G_ij is what two flips gain beyond the two by
themselves, so that flipping j moves the log-odds of i by G_ij or by -G_ij.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums as added
from spklink.calibration.counting import most_flips
from spklink.calibration.curves import Calibration
from spklink.calibration.frequent import FrequentVoices, side_line
from spklink.database.sides import chances_of_bits, odds_of_seats, track_of
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Posterior
from spklink.posterior.summed import Slack, unknown_slack
from spklink.recognizers.sums import SideLine, table_of_ratios
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
SPEED = 2e10  # multiplications a second of a table of ratios, and
PAIR = 5e-9  # seconds that each pair of sides takes beside
BYTES = 1 << 27  # of the ratios of one block
WHOLE = 4096  # conversations of one person whose couplings are all in memory at once
FEWEST, MOST, PART = 32, 256, 16  # largest changes that are kept: one in so many, within limits
ROUNDING = 1e-3  # share by which single precision may be off, generously


@dataclass(frozen=True)
class Spread:
    """Of every conversation of one person, what flips of his others can change."""

    pair: Floats  # (n,) the most that one other flip gains with one here
    row: Floats  # (n,) and, at most, all together, shared evenly between the flips
    alone: Floats  # (n,) the same of one flip here and any others there
    largest: Singles  # (n, k) changes by single others, the largest first

    def of(self, count: int) -> Floats:
        """(n,) what so many others can change."""
        kept = self.largest.shape[1]
        found = self.largest[:, :count].sum(axis=1, dtype=np.float64)
        return np.asarray(found + max(count - kept, 0) * self.largest[:, -1])


class Before(Protocol):
    """Spreads of earlier runs: they depend on a person's conversations and where he is in them."""

    def found(self, voices: FrequentVoices, best: NDArray[np.int8]) -> dict[int, Spread]:
        """By the number of the person."""
        ...

    def keep(
        self, voices: FrequentVoices, best: NDArray[np.int8], spreads: list[Spread]
    ) -> None: ...


def certify(
    voices: FrequentVoices,
    curve: Calibration,
    weight: Weight,
    posterior: Posterior,
    piece: Ints,
    seconds: float,
    before: Before | None = None,
) -> Slack:
    """The slack of a posterior of bits; `piece` (M,) are conversations that listed links hold
    together. `before` knows spreads that an earlier run made."""
    table, frequent = voices.table, voices.frequent
    calls = table.listing.conversation_of(frequent.entry)
    assert frequent.most is not None
    if cost(voices) > seconds:
        return unknown_slack(np.bincount(calls, minlength=len(table)) > 0, frequent.most)
    best = posterior.best
    at_best = voices.gains(curve, weight, chances_of_bits(best.astype(np.float64)))
    gap = odds_of_seats(at_best) - odds_of_seats(table.sums)
    log_odds = _flip_odds(posterior, gap)[calls]
    line = side_line(curve, voices.seconds, len(voices.usable))
    people = range(len(frequent))

    def spread(f: int) -> Spread:
        return _spread(voices, f, line, weight, best)

    kept = {} if before is None else before.found(voices, best)
    left = [f for f in people if f not in kept]
    with one_blas_thread():
        kept |= zip(left, in_order(spread, left, voices.threads), strict=True)
    spreads = [kept[f] for f in people]
    if before is not None and left:
        before.keep(voices, best, spreads)
    every = np.concatenate([one.alone for one in spreads])
    # Of two frequent people in one conversation each sees the other's at its worst.
    log_odds += added(calls, every, len(table))[calls] - every
    counted = in_order(
        lambda f: most_flips(log_odds[_own(voices, f)], spreads[f].pair, spreads[f].row),
        people,
        voices.threads,
    )
    others = np.bincount(piece)[piece] - 1
    shift, tail = np.abs(gap), np.zeros(len(table))
    for f, (most, beyond) in enumerate(counted):
        own = calls[_own(voices, f)]
        shift[own] += spreads[f].of(most) + others[own] * spreads[f].largest[:, 0]
        tail[own] += beyond
    known = posterior.bits >= 0
    return Slack(np.where(known, 0.0, shift), np.where(known, 0.0, tail), frequent.most)


def cost(voices: FrequentVoices) -> float:
    """Seconds that certifying may take."""
    pairs = (2.0 * voices.frequent.calls) ** 2
    return float(pairs.sum()) * (2.0 * voices.width / SPEED + PAIR) / voices.threads


def _own(voices: FrequentVoices, f: int) -> slice:
    return slice(int(voices.frequent.start[f]), int(voices.frequent.start[f + 1]))


def _flip_odds(posterior: Posterior, gap: Floats) -> Floats:
    """(M,) log of the largest odds of a flip, all other conversations of frequent people being at
    their best and those that listed links join wherever that speaks for it. `gap` leads from the
    sums in use to those of the best configuration."""
    model, x = posterior.model, posterior.best.astype(np.float64)
    i, j, size = model.first, model.second, len(x)
    sign = 1.0 - 2.0 * x  # a flip raises x where it is 0
    odds = model.field + model.prior.log_odds + gap
    odds += added(i, model.coupling * x[j], size) + added(j, model.coupling * x[i], size)
    gain = np.maximum(sign[i] * sign[j] * model.coupling, 0.0)
    found = sign * odds + added(i, gain, size) + added(j, gain, size)
    return np.where(posterior.bits >= 0, -np.inf, found)


def _spread(
    voices: FrequentVoices, f: int, line: SideLine, weight: Weight, best: NDArray[np.int8]
) -> Spread:
    """What flips of one person's conversations can change in each other."""
    _, sides, start = voices.places(f)
    entries = voices.frequent.of(f)
    size = len(entries)
    kept = min(max(size // PART, FEWEST), MOST, size)
    listing = voices.table.listing
    position = listing.position_of(entries).astype(np.int8)
    track = track_of(position, best[listing.conversation_of(entries)]).astype(np.int64)
    here, other = start[:-1] + track, start[:-1] + (1 - track)
    person = int(voices.table.people[entries[0]])
    each = float(weight.of(np.array([size], np.int32))[0])
    ratios = table_of_ratios(voices.comparisons(person), line, sides, voices.usable[sides])
    pair, row = np.empty(size), np.empty(size)
    largest = np.empty((size, kept), np.float32)
    every = np.empty((size, size), np.float32) if size <= WHOLE else None
    step = max(1, BYTES // (16 * size))
    for begin in range(0, size, step):
        part = slice(begin, min(begin + step, size))
        table = ratios(slice(int(start[part.start]), int(start[part.stop])))
        offset = int(start[part.start])
        gap = table[other[part] - offset] - table[here[part] - offset]
        gain = each * (gap[:, other] - gap[:, here])
        gain[np.arange(len(gain)), np.arange(part.start, part.stop)] = 0.0
        pair[part] = np.maximum(gain.max(axis=1), 0.0)
        row[part] = np.maximum(gain, 0.0).sum(axis=1, dtype=np.float64)
        most = np.partition(np.abs(gain), size - kept, axis=1)[:, size - kept :]
        largest[part] = -np.sort(-most, axis=1)
        if every is not None:
            every[part] = gain
    more, together = 1.0 + ROUNDING, row
    if every is not None:
        together = np.minimum(row, _largest_eigenvalue(every))
    return Spread(more * pair, more * together, more * row, largest)


def _largest_eigenvalue(gain: Singles) -> float:
    """Of the symmetric part: no set of flips gains more than half of it a flip."""
    both = (gain + gain.T) / np.float32(2.0)
    return max(float(np.linalg.eigvalsh(both)[-1]), 0.0)
