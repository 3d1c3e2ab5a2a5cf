"""Beliefs from perfect samples (module `perfect`), so all error is statistical.

What is guaranteed:
- Each interval is that of Clopper and Pearson (1934) for the count of its event, chosen because it
  covers 99 % or more whatever the probability. It is cut with what a bit's smallest and largest
  log-odds imply for sure. The single figure `one` is the mean of the conditional probabilities
  (Rao-Blackwell): closer to the truth than the count, but what it gains is not known beforehand.
- There is an answer only if every sample settled within bounds on the work. So the probability that
  a figure is both reported and outside its interval is at most 1 %.

Stars and call centres settle in a few to some hundred sweeps, also where their scores leave much in
doubt. What does not settle: posteriors with two far modes, as of calls between the same two
speakers, and large tree-like graphs with scores so strong that single neighbours decide.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spklink.posterior.inference.beliefs import SAMPLED, Beliefs, Piece, Proposal, frechet
from spklink.posterior.inference.flips import climb
from spklink.posterior.inference.network import TIE, Network
from spklink.posterior.inference.perfect import SWEEPS, Chain, Draws, build, count, draw, draw_cost

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
NAME = "sample"
SAMPLES = 4000  # planned: an interval of 99 % is 0.04 wide at most
MISS = 0.01  # probability that an interval does not contain the truth


class _Sampling:
    name, certainty = NAME, SAMPLED

    def propose(self, piece: Piece) -> Proposal | None:
        if not piece.network.binary:
            return None

        def run() -> Beliefs | None:
            optimum = piece.optimum()
            return sample(
                piece.network,
                start=optimum.best,
                proved=optimum.proved,
                work=piece.operations,
                seed=piece.seed,
                threads=piece.threads,
            )

        cost = draw_cost(piece.network, SAMPLES)
        return Proposal(cost, f"{SAMPLES} samples", run, silence="sampling does not settle")


METHOD = _Sampling()


def sample(
    network: Network,
    *,
    start: Bits | None = None,
    proved: NDArray[np.bool_] | None = None,
    samples: int = SAMPLES,
    sweeps: int = SWEEPS,
    work: float = math.inf,
    seed: int = 0,
    threads: int = 1,
) -> Beliefs | None:
    """Beliefs from exact samples, or None if that takes more `sweeps` for one or `work` for all.

    `start` must be chosen without a look at these samples; the closer to the optimum, the narrower
    is log_sum. `proved` tells which of its bits are proved optimal. `work` is in the unit of
    `perfect.draw_cost`. The number of threads does not change the result.
    """
    x = climb(network) if start is None else np.asarray(start, np.int8)
    chain = build(network, x)
    draws = draw(chain, samples=samples, sweeps=sweeps, work=work, seed=seed, threads=threads)
    if draws is None:
        return None
    ones, boths = count(network, chain, draws, samples)
    floor, ceiling = sure = _sure(chain)
    one_low, one_high = _cut(clopper_pearson(ones, samples, MISS), sure)
    chance = draws.chance.sum(axis=0) / samples
    one = np.clip(np.where(x == 1, 1.0 - chance, chance), one_low, one_high)
    a, b = network.a, network.b
    least, most = np.maximum(floor[a] + floor[b] - 1.0, 0.0), np.minimum(ceiling[a], ceiling[b])
    both_low, both_high = _cut(clopper_pearson(boths, samples, MISS), (least, most))
    both = frechet(network, one, boths / samples)
    best = _best(network, x, draws)
    return Beliefs(
        method=NAME,
        certainty=SAMPLED,
        best=best,
        proved=np.zeros(len(x), np.bool_) if proved is None else proved & (best == x),
        zero=1.0 - one,
        one=one,
        one_low=one_low,
        one_high=one_high,
        both=both,
        both_low=np.minimum(both_low, both),
        both_high=np.maximum(both_high, both),
        log_sum=_log_sum(network, chain, int(draws.starts.sum()), samples),
        entropy=_entropy(draws, ones, sure, samples),
    )


def clopper_pearson(count: Integers, samples: int, miss: float) -> tuple[Floats, Floats]:
    """Intervals for the probability of events seen `count` times; wrong at most a share `miss`."""
    seen, where = np.unique(count, return_inverse=True)
    low = special.betaincinv(np.maximum(seen, 1), samples - seen + 1, miss / 2)
    high = special.betaincinv(seen + 1, np.maximum(samples - seen, 1), 1.0 - miss / 2)
    low, high = np.where(seen == 0, 0.0, low), np.where(seen == samples, 1.0, high)
    return low[where], high[where]


def _sure(chain: Chain) -> tuple[Floats, Floats]:
    """P(x = 1) is a mean of conditional probabilities, so it lies between their extremes."""
    low = special.expit(chain.low * chain.unit - chain.slack)
    high = special.expit(chain.high * chain.unit + chain.slack)
    turned = chain.start == 1
    return np.where(turned, 1.0 - high, low), np.where(turned, 1.0 - low, high)


def _cut(interval: tuple[Floats, Floats], sure: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The part of an interval that is possible; where there is none, all that is possible."""
    none = (interval[0] > sure[1]) | (interval[1] < sure[0])
    low, high = np.maximum(interval[0], sure[0]), np.minimum(interval[1], sure[1])
    return np.where(none, sure[0], low), np.where(none, sure[1], high)


def _best(network: Network, start: Bits, draws: Draws) -> Bits:
    """The most probable of the samples, if that is better than the reference."""
    found = start ^ draws.best[int(draws.gain.argmax())]
    return found if network.value(found) > network.value(start) + TIE else start


def _log_sum(network: Network, chain: Chain, starts: int, samples: int) -> tuple[float, float]:
    """value(start) - log P(start), with P(start) from its share of the samples.

    What is sure: P(start) is the product of P(y_i = 0 | y_j = 0 for all j < i).
    """
    nodes, a = len(network), network.a
    sign = 1.0 - 2.0 * chain.start
    coupling = sign[a] * sign[network.b] * network.coupling
    field = chain.field * chain.unit
    low = field + np.bincount(a, np.minimum(coupling, 0.0), nodes)
    high = field + np.bincount(a, np.maximum(coupling, 0.0), nodes)
    sure = np.array([-np.logaddexp(0.0, f).sum() for f in (high, low)])
    with np.errstate(divide="ignore"):
        least, most = np.log(clopper_pearson(np.array([starts]), samples, MISS))
    least, most = _cut((least, most), (sure[:1], sure[1:]))
    value = network.value(chain.start)
    terms = abs(network.constant) + np.abs(network.field).sum() + np.abs(network.coupling).sum()
    slack = chain.slack + 1e-14 * (1.0 + float(terms))
    return value - float(most[0]) - slack, value - float(least[0]) + slack


def _entropy(
    draws: Draws, ones: Integers, sure: tuple[Floats, Floats], samples: int
) -> tuple[float, float]:
    """Below misses with at most half of MISS, the two bounds above with a quarter each.

    Below: the sum of each bit's entropy given all others is never more than the whole. It is the
    mean of `doubt`, in the empirical Bernstein bound of Maurer and Pontil (2009).
    Above: the sum of the bits' own entropies, with intervals that hold all at once (Bonferroni);
    or the entropy of whether y = 0, and if not, that of all the rest being equally likely.
    """
    nodes, rest, rarity = len(ones), max(1, samples - 1), math.log(4.0 / MISS)
    doubt = draws.doubt.ravel()[:samples]
    variance = float(((doubt - doubt.mean()) ** 2).sum()) / rest
    widest = float(_binary_entropy(np.clip(0.5, *sure)).sum())
    error = math.sqrt(2.0 * variance * rarity / samples) + 7.0 * widest * rarity / (3.0 * rest)
    surely = float(np.minimum(_binary_entropy(sure[0]), _binary_entropy(sure[1])).sum())
    low, high = _cut(clopper_pearson(ones, samples, MISS / 4 / max(1, nodes)), sure)
    apart = float(_binary_entropy(np.clip(0.5, low, high)).sum())
    away = samples - draws.starts.sum(keepdims=True)
    share = clopper_pearson(away, samples, MISS / 4)[1]
    grouped = float((_binary_entropy(np.minimum(share, 0.5)) + share * nodes * math.log(2.0))[0])
    above = min(apart, grouped)
    return min(above, max(surely, float(doubt.mean()) - error)), above


def _binary_entropy(p: Floats) -> Floats:
    return np.asarray(special.entr(p) + special.entr(1.0 - p))
