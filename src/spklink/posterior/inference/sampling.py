"""Perfect sampling: independent samples of the posterior itself, so all error is statistical.

Coupling from the past. One sweep redraws every bit from its conditional distribution, with random
numbers that belong to the time of the sweep. If every configuration at time -T is led to the same
one at time 0, that one is a sample of the posterior. All configurations are followed at once by a
bounding chain (Huber 1998) whose bits are 0, 1 or unknown: a bit is known when its random number
decides alike for the smallest and the largest log-odds that the unknown neighbours allow. If bits
are unknown at time 0, T is doubled, and a time that is visited again has the same random numbers.

Conventions: y = x xor start tells which bits are turned from a reference configuration. That does
not alter the chain, but keeps small probabilities precise and P(start) easy to count. The random
number of sample s, time -t, node i is a hash of (seed, s, t, i), so nothing depends on the order
or the number of threads. A word holds one bit of 64 samples.

What is guaranteed:
- The samples are exact but for rounding. Fields and couplings are rounded to multiples of a `unit`
  in which all sums are exact: no drift, and the bounds stay bounds. That moves no log-probability
  by more than (n + E) units: 1e-11 for 500 calls with ordinary scores, 1e-6 if couplings are 1e4.
  Random numbers have 52 bits.
- Each interval is that of Clopper and Pearson (1934) for the count of its event, chosen because it
  covers 99 % or more whatever the probability. It is cut with what a bit's smallest and largest
  log-odds imply for sure. The single figure `one` is the mean of the conditional probabilities
  (Rao-Blackwell): closer to the truth than the count, but what it gains is not known beforehand.
- Work is bounded. If one sample is not settled from time -`sweeps` on, or all would take more than
  `work`, the answer is None: to leave slow samples out would favour what settles fast. So the
  probability that a figure is both reported and outside its interval is at most 1 %.

Stars and call centres settle in a few to some hundred sweeps, also where their scores leave much in
doubt. What does not settle: posteriors with two far modes, as of calls between the same two
speakers, and large tree-like graphs with scores so strong that single neighbours decide.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy import special

from spklink.posterior.inference.beliefs import SAMPLED, Beliefs
from spklink.posterior.inference.network import Network
from spklink.posterior.inference.propagation import adjacency, climb, frechet

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
MISS = 0.01  # probability that an interval does not contain the truth
TIE = 1e-9  # log-probabilities closer than this are equal
WORD = 64
UNKNOWN = 2
CERTAIN = 37.0  # the log-odds of a random number of 52 bits are below log(2^53) = 36.7
DENSE = 4096  # nodes; beyond, the full matrix of couplings is too large
UPDATE = 25.0  # operations to redraw a bit

MASK, SHIFT_12, SHIFT_20, SHIFT_32 = (np.uint64(v) for v in (0xFFFFFFFF, 12, 20, 32))
MULTIPLY_0, MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
PAIRS, FOURS, BYTES = (np.uint64(0xFFFFFFFFFFFFFFFF // v) for v in (3, 5, 17))
ONES, FULL = np.uint64(0x0101010101010101), np.uint64(0xFFFFFFFFFFFFFFFF)


class Chain(NamedTuple):
    """The clique seen from `start`, in integers: log p(y) = unit * sum (field y + coupling y y).

    The couplings are in `rows` where the clique is dense, else in lists of neighbours.
    """

    start: Bits  # (n,)
    field: Integers  # (n,)
    low: Integers  # (n,) smallest log-odds of y = 1, whatever the other bits are
    high: Integers  # (n,)
    first: Integers  # (n + 1,) entries first[i] to first[i + 1] are the neighbours of node i
    other: NDArray[np.int32]  # (2E,) or empty
    coupling: Integers  # (2E,) or empty
    rows: Integers  # (n, n) or empty
    unit: float
    slack: float  # no log-probability is further than this from that of the network


@dataclass(frozen=True)
class Draws:
    """The samples, a row a word."""

    turned: NDArray[np.uint64]  # (words, n) bit s is y of sample s
    chance: Floats  # (words, n) sum of P(y = 1 | all other bits)
    doubt: Floats  # (words, 64) entropy of those probabilities, summed over the nodes
    best: Bits  # (words, n) the most probable y
    gain: Floats  # (words,) its log-probability less that of `start`
    starts: Integers  # (words,) samples that equal `start`


def sample(
    network: Network,
    *,
    start: Bits | None = None,
    proved: NDArray[np.bool_] | None = None,
    samples: int = 4000,
    sweeps: int = 512,
    work: float = math.inf,
    seed: int = 0,
    threads: int | None = None,
) -> Beliefs | None:
    """Beliefs from exact samples, or None if that takes more `sweeps` for one or `work` for all.

    `start` must be chosen without a look at these samples; the closer to the optimum, the narrower
    is log_sum. `proved` tells which of its bits are proved optimal. `work` is in the unit of
    `sample_cost`. `threads`: all cores if None; the result is the same.
    """
    x = climb(network) if start is None else np.asarray(start, np.int8)
    chain = build(network, x)
    draws = draw(chain, samples=samples, sweeps=sweeps, work=work, seed=seed, threads=threads)
    if draws is None:
        return None
    ones, boths = _counts(network, chain, draws, samples)
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
        method="sampling",
        certainty=SAMPLED,
        best=best,
        proved=np.zeros(len(x), np.bool_) if proved is None else proved & (best == x),
        one=one,
        one_low=one_low,
        one_high=one_high,
        both=both,
        both_low=np.minimum(both_low, both),
        both_high=np.maximum(both_high, both),
        log_sum=_log_sum(network, chain, int(draws.starts.sum()), samples),
        entropy=_entropy(draws, ones, sure, samples),
    )


def sample_cost(network: Network, samples: int) -> tuple[float, float]:
    """Operations (some 1e9 a second on one core) and bytes, if samples settle in 16 sweeps."""
    nodes, entries, words = len(network), 2.0 * len(network.a), -(-samples // WORD)
    square = float(nodes**2) if _dense(network) else 0.0
    told = 0.4 * square or 2.0 * entries  # once to all neighbours, whenever a span is tried
    work = samples * (16.0 * UPDATE * nodes + 4.0 * told)
    return work + 2.0 * entries * words, 8.0 * (square + 3.0 * entries + 4.0 * nodes * words)


def build(network: Network, start: Bits) -> Chain:
    """Integers as large as they can be without any sum of them overflowing."""
    nodes, a, b = len(network), network.a, network.b
    size = np.abs(network.coupling)
    reach = np.abs(network.field) + np.bincount(a, size, nodes) + np.bincount(b, size, nodes)
    unit = 2.0 ** (math.frexp(max(1.0, float(reach.max(initial=0.0))))[1] - 61)
    field = np.rint(network.field / unit).astype(np.int64)
    coupling = np.rint(network.coupling / unit).astype(np.int64)
    for near, far in ((a, b), (b, a)):
        np.add.at(field, near, coupling * start[far])
    sign = 1 - 2 * start.astype(np.int64)
    field, coupling = sign * field, sign[a] * sign[b] * coupling
    low, high = field.copy(), field.copy()
    for end in (a, b):
        np.add.at(low, end, np.minimum(coupling, 0))
        np.add.at(high, end, np.maximum(coupling, 0))
    neighbours = _neighbours(network, coupling)
    return Chain(start, field, low, high, *neighbours, unit, (nodes + len(a)) * unit)


def _neighbours(
    network: Network, coupling: Integers
) -> tuple[Integers, NDArray[np.int32], Integers, Integers]:
    """Full rows, which have no indirection, are faster than lists if a quarter of them is used."""
    nodes, near = len(network), adjacency(network)
    if not _dense(network):
        return near.first, near.other, coupling[near.edge], np.zeros((0, 0), np.int64)
    rows = np.zeros((nodes, nodes), np.int64)
    np.add.at(rows, (network.a, network.b), coupling)
    return near.first, near.other[:0], coupling[:0], rows + rows.T


def _dense(network: Network) -> bool:
    return len(network) <= DENSE and 8 * len(network.a) >= len(network) ** 2


def draw(
    chain: Chain,
    *,
    samples: int,
    sweeps: int = 512,
    work: float = math.inf,
    seed: int = 0,
    threads: int | None = None,
) -> Draws | None:
    """Independent exact samples, or None if that takes too much of something; as in `sample`."""
    nodes, words = len(chain.field), -(-samples // WORD)
    turned, chance = np.zeros((words, nodes), np.uint64), np.zeros((words, nodes))
    doubt, best = np.zeros((words, WORD)), np.zeros((words, nodes), np.int8)
    gain, starts = np.full((words, 1), -math.inf), np.zeros((words, 1), np.int64)
    failed = np.zeros(1, np.bool_)
    key = np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint64)
    share = work * WORD / max(1, samples)  # of a word, so that threads do not matter

    def draw_word(w: int) -> None:
        rows = turned[w], chance[w], doubt[w], best[w], gain[w], starts[w]
        begin, end = w * WORD, min(samples, (w + 1) * WORD)
        _draw_word(chain, key, sweeps, share, begin, end, *rows, failed)

    draw_word(0)  # first and alone: a clique that does not settle shows it here
    if words > 1 and not failed[0]:
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            list(pool.map(draw_word, range(1, words)))
    return None if failed[0] else Draws(turned, chance, doubt, best, gain[:, 0], starts[:, 0])


def clopper_pearson(count: Integers, samples: int, miss: float) -> tuple[Floats, Floats]:
    """Intervals for the probability of events seen `count` times; wrong at most a share `miss`."""
    seen, where = np.unique(count, return_inverse=True)
    low = special.betaincinv(np.maximum(seen, 1), samples - seen + 1, miss / 2)
    high = special.betaincinv(seen + 1, np.maximum(samples - seen, 1), 1.0 - miss / 2)
    low, high = np.where(seen == 0, 0.0, low), np.where(seen == samples, 1.0, high)
    return low[where], high[where]


def _counts(
    network: Network, chain: Chain, draws: Draws, samples: int
) -> tuple[Integers, Integers]:
    """How often x = 1 for each node, and x_a = x_b = 1 for each edge."""
    one, both = np.zeros(len(network), np.int64), np.zeros(len(network.a), np.int64)
    _count(draws.turned.T.copy(), chain.start, samples, network.a, network.b, one, both)
    return one, both


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


@nb.njit(cache=True, nogil=True)
def _philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Philox 4x32-10 (Salmon et al. 2011): counter c and key k to four random 32-bit words."""
    for _ in range(10):
        p0, p1 = MULTIPLY_0 * c0, MULTIPLY_1 * c2
        c0, c2 = (p1 >> SHIFT_32) ^ c1 ^ k0, (p0 >> SHIFT_32) ^ c3 ^ k1
        c1, c3 = p1 & MASK, p0 & MASK
        k0, k1 = (k0 + WEYL_0) & MASK, (k1 + WEYL_1) & MASK
    return c0, c1, c2, c3


@nb.njit(cache=True, nogil=True)
def _log_odds(word_0, word_1):  # type: ignore[no-untyped-def]
    """log(u / (1 - u)) with u the middle of one of 2^52 cells of (0, 1): u and 1 - u are exact."""
    u = (np.float64((word_0 << SHIFT_20) | (word_1 >> SHIFT_12)) + 0.5) * 2.0**-52
    return np.log(u / (1.0 - u))


@nb.njit(cache=True, nogil=True)
def _tell(chain, low, high, i, old, new):  # type: ignore[no-untyped-def]
    """Tell the neighbours of i that its state went from old to new.

    A neighbour's (low, high) has (0, 0), (J, J) or (min(J, 0), max(J, 0)) from i in state 0, 1 or
    unknown. Masks pick the difference without branches; s turns its sign.
    """
    s = np.int64(-1) if new == 0 or old == 1 else np.int64(0)
    m = np.int64(0) if old + new == 3 else np.int64(-1)
    p = np.int64(0) if old + new == 2 else np.int64(-1)
    if len(chain.rows) > 0:
        row = chain.rows[i]
        for k in range(len(row)):
            fall, rise = min(row[k], 0), max(row[k], 0)
            low[k] += (((fall & m) | (rise & p)) ^ s) - s
            high[k] += (((rise & m) | (fall & p)) ^ s) - s
    else:
        for e in range(chain.first[i], chain.first[i + 1]):
            k, fall, rise = chain.other[e], min(chain.coupling[e], 0), max(chain.coupling[e], 0)
            low[k] += (((fall & m) | (rise & p)) ^ s) - s
            high[k] += (((rise & m) | (fall & p)) ^ s) - s


@nb.njit(cache=True, nogil=True)
def _follow(chain, key, s, span, y, low, high):  # type: ignore[no-untyped-def]
    """Follow all configurations from time -span to 0; sweeps until they were one, 0 if never."""
    n, unit = len(y), chain.unit
    y[:], low[:], high[:] = UNKNOWN, chain.low, chain.high
    unknown, settled, certain = n, 0, CERTAIN / unit
    w0 = w1 = w2 = w3 = np.uint64(0)
    for t in range(span, 0, -1):
        block = -1
        for i in range(n):
            if low[i] > certain:
                new = 1
            elif high[i] < -certain:
                new = 0
            else:
                if block != i >> 1:  # nodes 2k and 2k + 1 share a call of the generator
                    block = i >> 1
                    c0, c1, c2 = np.uint64(block), np.uint64(t), np.uint64(s)
                    w0, w1, w2, w3 = _philox(c0, c1, c2, np.uint64(0), key[0], key[1])
                odds = _log_odds(w2, w3) if i & 1 else _log_odds(w0, w1)
                # Integer to float keeps order, so what low and high decide alike, every
                # log-odds between them would decide too.
                if odds < low[i] * unit:
                    new = 1
                elif odds >= high[i] * unit:
                    new = 0
                else:
                    new = UNKNOWN
            old = y[i]
            if new != old:
                y[i] = new
                unknown += (new == UNKNOWN) - (old == UNKNOWN)
                _tell(chain, low, high, i, old, new)
        if unknown == 0 and settled == 0:
            settled = span - t + 1
    return settled


@nb.njit(cache=True, nogil=True)
def _draw_word(  # type: ignore[no-untyped-def]
    chain, key, sweeps, work, begin, end, turned, chance, doubt, best, gain, starts, failed
):
    """Samples begin to end. Which span is tried first changes the time taken, never a sample."""
    n, unit = len(chain.field), chain.unit
    y, low, high = np.empty(n, np.int8), np.empty(n, np.int64), np.empty(n, np.int64)
    told, done, total = 0.4 * n * n if len(chain.rows) else 2.0 * len(chain.other), 0.0, 0
    for s in range(begin, end):
        k, settled = s - begin, 0
        span = min(sweeps, 1 + 3 * total // max(1, 2 * k))
        while n > 0 and settled == 0:
            settled = _follow(chain, key, s, span, y, low, high)
            done += UPDATE * n * span + told
            if (settled == 0 and span >= sweeps) or done > work:
                failed[0] = True
            if failed[0]:  # perhaps in another thread
                return
            span = min(sweeps, 2 * span)
        total += settled
        value, ones = 0.0, 0
        for i in range(n):
            f = low[i] * unit
            small = np.exp(-abs(f))
            chance[i] += 1.0 / (1.0 + small) if f > 0 else small / (1.0 + small)
            doubt[k] += np.log1p(small) + abs(f) * small / (1.0 + small)
            if y[i] == 1:
                turned[i] |= np.uint64(1) << np.uint64(k)
                ones += 1
                value += 0.5 * (chain.field[i] * unit + f)
        starts[0] += ones == 0
        if value > gain[0]:
            gain[0] = value
            best[:] = y


@nb.njit(cache=True, nogil=True)
def _ones(w):  # type: ignore[no-untyped-def]
    """Bits set in a 64-bit word."""
    w = w - ((w >> np.uint64(1)) & PAIRS)
    w = (w & FOURS) + ((w >> np.uint64(2)) & FOURS)
    return np.int64((((w + (w >> np.uint64(4))) & BYTES) * ONES) >> np.uint64(56))


@nb.njit(cache=True, nogil=True)
def _count(words, start, samples, a, b, one, both):  # type: ignore[no-untyped-def]
    """Turn y into x, in place, and count."""
    for i in range(len(start)):
        for k in range(words.shape[1]):
            if start[i] == 1:
                words[i, k] ^= FULL >> np.uint64(max(0, (k + 1) * WORD - samples))
            one[i] += _ones(words[i, k])
    for e in range(len(a)):
        for k in range(words.shape[1]):
            both[e] += _ones(words[a[e], k] & words[b[e], k])
