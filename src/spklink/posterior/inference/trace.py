"""Dense cliques of up to LIMIT nodes: all 2^n configurations, as the trace of a matrix product.

The nodes are split into three groups, in table order. Counted as changes y = x xor start from a
good configuration, log p is a constant + sum_t field[t] y[t] + sum_(t<u) coupling[t, u] y[t] y[u]
again, and no term of it joins all three groups:

    sum over y of p(y) = trace(W_0 W_1 W_2),   W_k[g, g'] = exp(own_k[g] + between_k[g, g'])

with g a state of group k, g' one of the next group (cyclic), own the terms within group k, between
those that join the two. 2^n work at the speed of matrix products, 2^(2n/3) memory. The product of
two of the matrices, times the third entry by entry, holds the sum for each pair of states of two
groups: three such tables give all P(x = 1) and P(x_a = x_b = 1), and bound the search for the best.
In the state index of a group the first node is the highest bit: integer order is table order.

Exact whatever the couplings: where the three matrices together could leave the range of floating
point, a node is fixed to each of its values in turn and the two halves are solved and added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import (
    BEYOND,
    EXACT,
    Beliefs,
    Cost,
    Piece,
    Proposal,
    exact_beliefs,
    frechet,
)
from spklink.posterior.inference.flips import climb_steeply
from spklink.posterior.inference.network import TIE, Network

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
NAME = "trace"
LIMIT = 36  # nodes: 0.6 GiB
RESTARTS = 6  # of the local search for a start
# Each matrix is scaled to a largest entry of 1. The three maxima need not meet in a configuration:
# `spread`, the log of what they would multiply to, is how far below 1 the start may come to lie.
# Entries more than spread + NEGLIGIBLE below 1 are set to 0: all configurations with such an entry
# weigh less than 2^36 exp(-80) of the start. With SPREAD as below, no product of two entries that
# are left is subnormal.
NEGLIGIBLE = 80.0
SPREAD = 270.0
# Seconds x 1e9 on one core of about 40 GFLOP/s: three products of 2^n multiply-adds each, what
# else is done with each entry of the matrices, and calls.
OPERATIONS_STATE, OPERATIONS_ENTRY, OPERATIONS_CALL = 0.2, 3.0, 5e5


@dataclass(frozen=True)
class _Problem:
    """A clique as a dense matrix, in changes y from the configuration `base`."""

    field: Floats  # (n,)
    coupling: Floats  # (n, n) symmetric, diagonal 0
    base: Bits  # (n,)

    def value(self, y: Bits) -> float:
        return float(self.field @ y + 0.5 * (y @ self.coupling @ y))

    def turned(self, start: Bits) -> _Problem:
        """The same clique counted from `start`, less the value of `start`."""
        sign = 1.0 - 2.0 * start
        return _Problem(
            field=sign * (self.field + self.coupling @ start),
            coupling=self.coupling * np.outer(sign, sign),
            base=self.base ^ start,
        )

    def without(self, t: int, bit: int) -> _Problem:
        """The clique left when node t is fixed, less the value that bit has by itself."""
        rest = np.delete(self.coupling, t, 0)
        return _Problem(
            field=np.delete(self.field, t) + bit * rest[:, t],
            coupling=np.delete(rest, t, 1),
            base=np.delete(self.base, t),
        )


@dataclass(frozen=True)
class _Answer:
    """Exact results for a problem."""

    log_sum: float
    entropy: float
    both: Floats  # (n, n) P(y_t = y_u = 1); the diagonal is P(y_t = 1)
    best: Bits  # (n,)
    value: float  # of `best`

    def turned(self, start: Bits, value: float) -> _Answer:
        """The answer to the problem of which this one's is turned(start), `value` that of start."""
        sign = 1.0 - 2.0 * start
        change = sign * np.diag(self.both)
        both: Floats = np.outer(start, change) + np.outer(change, start)
        both += np.outer(start, start) + np.outer(sign, sign) * self.both
        np.fill_diagonal(both, start + change)
        return _Answer(
            self.log_sum + value, self.entropy, both, self.best ^ start, self.value + value
        )

    def extended(self, t: int, bit: int) -> _Answer:
        """The answer with the fixed node t put back."""
        one = np.insert(np.diag(self.both), t, 1.0) * bit
        both = np.insert(np.insert(self.both, t, 0.0, 0), t, one, 1)
        both[t] = one
        best = np.insert(self.best, t, bit)
        return _Answer(self.log_sum, self.entropy, both, best, self.value)


@dataclass(frozen=True)
class _Part:
    """What one of the three matrices is made of."""

    own: Floats  # (2^size,) of its group
    tilt: Floats  # (2^size, next size) what turning a node of the next group adds
    top: float  # largest exponent


class _Trace:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal:
        n = len(piece)
        why = f"2^{n} configurations"
        return Proposal(trace_cost(n), why, lambda: trace(piece.network, seed=piece.seed))


METHOD = _Trace()


def trace(network: Network, *, seed: int = 0) -> Beliefs:
    """Everything about one dense clique; `seed` is for the search for a start alone.

    The optimum is proved, up to TIE; of several, the first in table order is given.
    """
    if len(network) > LIMIT:
        raise ValueError(f"{len(network)} nodes: the trace method takes at most {LIMIT}")
    listed = _dense(network)
    start = _search(listed, np.random.default_rng(seed))
    answer = _solve(listed.turned(start), 0.0)
    assert answer is not None  # the start itself is never negligible
    final = answer.turned(start, listed.value(start) + network.constant)
    one = np.clip(np.diag(final.both), 0.0, 1.0)
    both = frechet(network, one, final.both[network.a, network.b])
    return exact_beliefs(network, NAME, final.best, one, both, final.log_sum, final.entropy)


def trace_cost(n: int) -> Cost:
    """Operations and bytes for a clique of n nodes."""
    if n > LIMIT:
        return BEYOND
    sizes = _sizes(n)
    entries = [2.0 ** (sizes[k] + sizes[k - 1]) for k in range(3)]
    operations = OPERATIONS_STATE * 2.0**n + OPERATIONS_ENTRY * sum(entries) + OPERATIONS_CALL
    return operations, 8.0 * (sum(entries) + max(entries))


def _dense(network: Network) -> _Problem:
    coupling = np.zeros((len(network), len(network)))
    np.add.at(coupling, (network.a, network.b), network.coupling)
    return _Problem(network.field, coupling + coupling.T, np.zeros(len(network), np.int8))


def _search(problem: _Problem, rng: np.random.Generator) -> Bits:
    """The best of a few configurations that no single change improves."""
    starts = rng.integers(0, 2, (1 + RESTARTS, len(problem.field)), np.int8)
    starts[0] = 0
    climb_steeply(problem.field, problem.coupling, starts)
    values = starts @ problem.field + 0.5 * np.sum((starts @ problem.coupling) * starts, axis=1)
    return np.asarray(starts[np.argmax(values)])


def _improved(problem: _Problem, start: Bits) -> Bits:
    starts: Bits = np.array(start, np.int8)[None]
    climb_steeply(problem.field, problem.coupling, starts)
    return np.asarray(starts[0])


def _solve(problem: _Problem, known: float) -> _Answer | None:
    """Exact sums, or None if all of the problem weighs nothing against exp(known)."""
    parts = _split(problem)
    spread = sum(part.top for part in parts)
    if spread + len(problem.field) * np.log(2.0) < known - NEGLIGIBLE:
        return None
    if spread <= SPREAD:
        return _trace(problem, parts, spread)
    t = int(np.argmax(np.abs(problem.coupling).sum(0)))
    halves = []
    for bit in (0, 1):
        half = problem.without(t, bit)
        start = _improved(half, np.zeros_like(half.base))
        value = bit * float(problem.field[t]) + half.value(start)
        known = max(known, value)
        answer = _solve(half.turned(start), known - value)
        if answer is not None:
            halves.append(answer.turned(start, value).extended(t, bit))
    return _joined(halves, problem.base) if halves else None


def _joined(halves: list[_Answer], base: Bits) -> _Answer:
    log_sum = float(np.logaddexp.reduce([half.log_sum for half in halves]))
    share = [float(np.exp(half.log_sum - log_sum)) for half in halves]
    both = np.sum([p * half.both for p, half in zip(share, halves, strict=True)], axis=0)
    entropy = sum(
        p * (half.entropy + log_sum - half.log_sum) for p, half in zip(share, halves, strict=True)
    )
    top = max(half.value for half in halves)
    tied = [half for half in halves if half.value >= top - TIE]
    first = min(tied, key=lambda half: bytes(half.best ^ base))
    return _Answer(log_sum, entropy, both, first.best, first.value)


def _sizes(n: int) -> tuple[int, int, int]:
    return (n + 2) // 3, (n + 1) // 3, n // 3


def _groups(n: int) -> list[slice]:
    sizes = _sizes(n)
    return [slice(sum(sizes[:k]), sum(sizes[: k + 1])) for k in range(3)]


def _bits(size: int) -> Floats:
    """(2^size, size): the bits of each state of a group."""
    return ((np.arange(1 << size)[:, None] & _place(size)) > 0).astype(np.float64)


def _place(size: int) -> NDArray[np.int64]:
    return np.int64(1) << np.arange(size - 1, -1, -1)


def _split(problem: _Problem) -> list[_Part]:
    n = len(problem.field)
    group, parts = _groups(n), []
    for k, size in enumerate(_sizes(n)):
        here, there = group[k], group[(k + 1) % 3]
        bits = _bits(size)
        within = bits @ problem.coupling[here, here]
        own = bits @ problem.field[here] + 0.5 * np.einsum("st,st->s", within, bits)
        tilt = bits @ problem.coupling[here, there]
        parts.append(_Part(own, tilt, float(np.max(own + np.maximum(tilt, 0.0).sum(1)))))
    return parts


def _trace(problem: _Problem, parts: list[_Part], spread: float) -> _Answer:
    *weight, room = _matrices(parts, np.exp(-spread - NEGLIGIBLE))
    group, bits = _groups(len(problem.field)), [_bits(size) for size in _sizes(len(problem.field))]
    both = np.zeros_like(problem.coupling)
    for here in (1, 2, 0):
        there = (here + 1) % 3
        table = room[: weight[here].size].reshape(weight[here].shape)
        np.matmul(weight[here - 1].T, weight[there].T, out=table)
        table *= weight[here]
        rows = table.sum(1)
        both[group[here], group[here]] = bits[here].T @ (rows[:, None] * bits[here])
        both[group[here], group[there]] = bits[here].T @ (table @ bits[there])
        both[group[there], group[here]] = both[group[here], group[there]].T
    total, start_weight = float(rows.sum()), float(np.exp(-spread))
    best = np.zeros_like(problem.base)
    if start_weight <= 0.5 * total * (1.0 + TIE):
        best = _optimum(weight, table, start_weight, problem.base)
    both /= total
    log_sum = float(np.log(total)) + spread
    mean = float(problem.field @ np.diag(both) + 0.5 * np.sum(problem.coupling * both))
    return _Answer(log_sum, max(0.0, log_sum - mean), both, best, problem.value(best))


def _matrices(parts: list[_Part], floor: float) -> list[Floats]:
    """The three matrices, each scaled to a largest entry of 1, and room for a fourth."""
    arrays = three_and_room([len(part.own) for part in parts])
    for part, out in zip(parts, arrays[:3], strict=True):
        _fill(part.own, part.tilt, part.top, floor, out)
    return arrays


def three_and_room(volume: list[int]) -> list[Floats]:
    """Matrices from each group to the next, by their numbers of states, and room for a fourth."""
    shapes = [(volume[k], volume[k - 2]) for k in range(3)]
    ends = np.cumsum([0] + [rows * columns for rows, columns in shapes])
    # One block: the C library keeps it for the next call, where it would hand four back.
    block = np.empty(ends[-1] + np.diff(ends).max())
    weight = [block[ends[k] : ends[k + 1]].reshape(shapes[k]) for k in range(3)]
    return [*weight, block[ends[-1] :]]


def _optimum(weight: list[Floats], table: Floats, known: float, base: Bits) -> Bits:
    """The first optimum in table order.

    The sums over the third group, in `table`, bound its largest term: most pairs of states of the
    other two need no look, at most 1/P(optimum) of them do.
    """
    group, sizes = _groups(len(base)), _sizes(len(base))
    bases = [int(base[group[k]] @ _place(sizes[k])) for k in range(3)]
    states = heaviest(weight[0], weight[1], weight[2], table, known, bases[0], bases[1], bases[2])
    best = np.zeros_like(base)
    for k in range(3):
        best[group[k]] = (states[k] & _place(sizes[k])) > 0
    return best


@nb.njit(cache=True, nogil=True)
def _fill(own, tilt, top, floor, out):  # type: ignore[no-untyped-def]
    """out[g, h] = exp(own[g] + sum_q tilt[g, q] h_q - top), or 0 below `floor`."""
    size = tilt.shape[1]
    late = size // 2  # a row is the outer product of the factors of its early and of its late nodes
    high, low = np.empty(1 << (size - late)), np.empty(1 << late)
    for g in range(len(own)):
        largest = own[g] - top
        for q in range(size):
            largest += max(tilt[g, q], 0.0)
        _double(tilt[g, : size - late], np.exp(largest), high)
        _double(tilt[g, size - late :], 1.0, low)
        for i in range(len(high)):
            factor, part = high[i], out[g, i << late : (i + 1) << late]
            for j in range(len(low)):
                weight = factor * low[j]
                part[j] = weight if weight >= floor else 0.0


@nb.njit(cache=True, nogil=True)
def _double(tilt, largest, out):  # type: ignore[no-untyped-def]
    """Weights of all states from that of the heaviest one: no factor exceeds 1."""
    out[0] = largest
    for p in range(len(tilt)):  # bit p is the p-th node from the end
        step, m = tilt[len(tilt) - 1 - p], 1 << p
        factor = np.exp(-abs(step))
        for z in range(m):
            out[m + z] = out[z] if step > 0.0 else out[z] * factor
            out[z] = out[z] * factor if step > 0.0 else out[z]


@nb.njit(cache=True, nogil=True)
def heaviest(ab, bc, ca, table, known, base_a, base_b, base_c):  # type: ignore[no-untyped-def]
    """(a, b, c) of the largest ab[a, b] bc[b, c] ca[c, a], the first in table order."""
    size_a, size_b, size_c = len(ab), len(bc), len(ca)
    top_a, top_b = np.zeros(size_a), np.zeros(size_b)
    for c in range(size_c):
        for a in range(size_a):
            top_a[a] = max(top_a[a], ca[c, a])
    for b in range(size_b):
        for c in range(size_c):
            top_b[b] = max(top_b[b], bc[b, c])
    best, row_top = known, np.zeros(size_a)
    chosen, reach = np.empty(size_b + 3, np.int64), np.empty(size_c)
    for a in range(size_a):
        count, least = 0, best * (1.0 - TIE)
        for b in range(size_b):
            if table[a, b] >= least and ab[a, b] * top_b[b] * top_a[a] >= least:
                chosen[count] = b
                count += 1
        if count == 0:
            continue
        chosen[count : count + 3] = chosen[0]  # whole fours; a repeat changes no maximum
        reach[:] = 0.0
        for k in range(0, count, 4):
            b0, b1, b2, b3 = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
            w0, w1, w2, w3 = ab[a, b0], ab[a, b1], ab[a, b2], ab[a, b3]
            r0, r1, r2, r3 = bc[b0], bc[b1], bc[b2], bc[b3]
            for c in range(size_c):
                r = reach[c]
                v = w0 * r0[c]
                r = v if v > r else r
                v = w1 * r1[c]
                r = v if v > r else r
                v = w2 * r2[c]
                r = v if v > r else r
                v = w3 * r3[c]
                reach[c] = v if v > r else r
        for c in range(size_c):
            row_top[a] = max(row_top[a], reach[c] * ca[c, a])
        best = max(best, row_top[a])
    least = best * (1.0 - TIE)
    for i in range(size_a):
        a = i ^ base_a
        if row_top[a] < least:
            continue
        for j in range(size_b):
            b = j ^ base_b
            if table[a, b] < least * (1.0 - TIE):
                continue
            for k in range(size_c):
                c = k ^ base_c
                if ab[a, b] * bc[b, c] * ca[c, a] >= least:
                    return a, b, c
    return 0, 0, 0
