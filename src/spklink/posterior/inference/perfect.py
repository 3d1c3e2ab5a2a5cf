"""Perfect samples: independent draws from the posterior itself, by coupling from the past.

One sweep redraws every bit from its conditional distribution, with random numbers that belong to
the time of the sweep. If every configuration at time -T is led to the same one at time 0, that one
is a sample of the posterior. All configurations are followed at once by a bounding chain (Huber
1998) whose bits are 0, 1 or unknown: a bit is known when its random number decides alike for the
smallest and the largest log-odds that the unknown neighbours allow. If bits are unknown at time 0,
T is doubled, and a time that is visited again has the same random numbers.

Conventions: y = x xor start tells which bits are turned from a reference configuration. That does
not alter the chain, but keeps small probabilities precise and P(start) easy to count. The random
number of sample s, time -t, node i is a hash of (seed, s, t, i), so nothing depends on the order
or the number of threads. A word holds one bit of 64 samples.

The samples are exact but for rounding. Fields and couplings are rounded to multiples of a `unit` in
which all sums are exact: no drift, and the bounds stay bounds. That moves no log-probability by
more than (n + E) units: 1e-11 for 500 calls with ordinary scores, 1e-6 if couplings are 1e4. Random
numbers have 52 bits.

Work is bounded. If one sample is not settled from time -`sweeps` on, or all would take more than
`work`, there are none: to leave slow samples out would favour what settles fast.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import Cost
from spklink.posterior.inference.network import Network, slots_of
from spklink.threads import in_order

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.int8]
WORD = 64
UNKNOWN = 2
CERTAIN = 37.0  # the log-odds of a random number of 52 bits are below log(2^53) = 36.7
DENSE = 4096  # nodes; beyond, the full matrix of couplings is too large
# Seconds x 1e9 on one core: to redraw a bit, and to tell a neighbour in a full row, or in a list.
UPDATE, TELL_ROW, TELL_LIST = 25.0, 0.4, 2.0
SWEEPS = 512  # of one sample, at most
USUAL = 16  # sweeps until a sample settles, where the method is worth planning

# Of Philox 4x32 (Salmon et al. 2011): multipliers and the Weyl sequence of its keys.
MULTIPLY_0, MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
MASK, SHIFT_12, SHIFT_20, SHIFT_32 = (np.uint64(v) for v in (0xFFFFFFFF, 12, 20, 32))
# To count the bits of a word in parallel: 0101..., 00110011..., 00001111..., a one a byte.
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


def draw_cost(network: Network, samples: int) -> Cost:
    """Operations and bytes, if samples settle in USUAL sweeps."""
    nodes, entries, words = len(network), 2.0 * len(network.a), -(-samples // WORD)
    square = float(nodes**2) if is_dense(network) else 0.0
    told = TELL_ROW * square or TELL_LIST * entries  # all neighbours once, whenever a span is tried
    work = samples * (USUAL * UPDATE * nodes + 4.0 * told)
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
    nodes, slots = len(network), slots_of(network, uncoupled=True)
    other = slots.other.astype(np.int32)
    if not is_dense(network):
        return slots.start, other, coupling[slots.edge], np.zeros((0, 0), np.int64)
    rows = np.zeros((nodes, nodes), np.int64)
    np.add.at(rows, (network.a, network.b), coupling)
    return slots.start, other[:0], coupling[:0], rows + rows.T


def is_dense(network: Network) -> bool:
    return len(network) <= DENSE and 8 * len(network.a) >= len(network) ** 2


def draw(
    chain: Chain,
    *,
    samples: int,
    sweeps: int = SWEEPS,
    work: float = math.inf,
    seed: int = 0,
    threads: int = 1,
) -> Draws | None:
    """Independent exact samples, or None if that takes too much of something.

    Too much is more than `sweeps` for one sample, or `work` (as of `draw_cost`) for all.
    """
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
        deque(in_order(draw_word, range(1, words), threads), maxlen=0)
    return None if failed[0] else Draws(turned, chance, doubt, best, gain[:, 0], starts[:, 0])


def count(network: Network, chain: Chain, draws: Draws, samples: int) -> tuple[Integers, Integers]:
    """How often x = 1 for each node, and x_a = x_b = 1 for each edge."""
    one, both = np.zeros(len(network), np.int64), np.zeros(len(network.a), np.int64)
    _count(draws.turned.T.copy(), chain.start, samples, network.a, network.b, one, both)
    return one, both


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
    told = TELL_ROW * n * n if len(chain.rows) else TELL_LIST * len(chain.other)
    done, total = 0.0, 0
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
