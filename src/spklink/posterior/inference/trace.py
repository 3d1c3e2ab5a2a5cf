"""Dense cliques of up to 2^LIMIT configurations: all of them, as the trace of a matrix product.

The nodes are split into three groups of about as many joint states each. Counted in changes from a
good configuration `start`, no term of log p joins all three groups:

    sum over z of p(z) = trace(W_0 W_1 W_2),   W_k[g, h] = exp(own_k[g] + between_k[g, h])

with g a joint state of group k, h one of the next group (cyclic), own the terms within group k,
between those that join the two. All configurations at the speed of matrix products, in the memory
of pairs of groups (of n bits: 2^n work, 2^(2n/3) memory). The product of two of the matrices, times
the third entry by entry, holds the sum for each pair of joint states of two groups: three such
tables give all marginals, and bound the search for the best. A joint state is a number whose digits
are the states of the group's nodes, the first node the highest. Here all states have an entry, the
first as well: those of node t are first[t]:first[t + 1].

Exact whatever the terms: where the three matrices together could leave the range of floating
point, terms are moved from one to the other, and where that does not help a node is taken case by
case, and the cases are solved and mixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
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
from spklink.posterior.inference.network import TIE, TWO, Network, starts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAME = "trace"
LIMIT = 36  # bits: 0.6 GiB
WIDEST = 40.0  # doublings of several states; budgets mostly end before
RESTARTS = 6  # of the local search for a start
# Each matrix is scaled to a largest entry of 1. The three maxima need not meet in a configuration:
# `spread`, the log of what they would multiply to, is how far below 1 the start may come to lie.
# Entries more than spread + NEGLIGIBLE below 1 are set to 0: all configurations with such an entry
# weigh less than 2^36 exp(-80) of the start. With SPREAD as below, no product of two entries that
# are left is subnormal.
NEGLIGIBLE = 80.0
SPREAD = 270.0
SWEEPS = 12  # in which terms are moved between matrices before a node is taken case by case
ROUNDING = 1e-9  # of a sum of logarithms
# Seconds x 1e9 on one core of about 40 GFLOP/s: three products of as many multiply-adds each as
# there are configurations, what else is done with each entry of the matrices, and calls.
OPERATIONS_STATE, OPERATIONS_ENTRY = 0.2, 3.0
OPERATIONS_CALL, OPERATIONS_CALL_WIDE = 5e5, 1.5e6  # of bits, and of several states


@dataclass(frozen=True)
class _Problem:
    """A clique as a dense matrix over the states of its nodes."""

    size: Ints  # (n,)
    own: Floats  # (states,)
    matrix: Floats  # (states, states) symmetric, 0 between states of one node

    @cached_property
    def first(self) -> Ints:
        return starts(self.size)

    @property
    def doublings(self) -> float:
        return float(np.log2(self.size).sum())

    def value(self, z: Ints) -> float:
        at = self.first[:-1] + z
        return float(self.own[at].sum() + 0.5 * self.matrix[at[:, None], at].sum())

    def turned(self, z: Ints) -> _Problem:
        """The same counted in changes from z: terms in which z takes part are 0."""
        at = self.first[:-1] + z
        here = np.repeat(at, self.size)
        pull = self.own + self.matrix.take(at, 1).sum(1)
        down = self.matrix.take(here, 1)
        matrix = (self.matrix - down) - (down.T - down.take(here, 0))
        return replace(self, own=pull - pull[here], matrix=matrix)

    def case(self, t: int, s: int) -> _Problem:
        """What is left when node t is in state s, less the value that this has by itself."""
        mine = slice(self.first[t], self.first[t + 1])
        rest = np.delete(self.matrix, mine, 0)
        own = np.delete(self.own, mine) + rest[:, self.first[t] + s]
        return _Problem(np.delete(self.size, t), own, np.delete(rest, mine, 1))


@dataclass(frozen=True)
class _Answer:
    """Exact results for a problem."""

    log_sum: float
    entropy: float
    both: Floats  # (states, states) joint probabilities; on the diagonal those of single states
    best: Ints  # (n,)

    def extended(self, problem: _Problem, t: int, s: int) -> _Answer:
        """The answer with node t, in state s, put back."""
        mine = np.arange(problem.first[t], problem.first[t + 1])
        at = int(problem.first[t]) + s
        others = np.delete(np.arange(len(problem.own)), mine)
        both = np.zeros_like(problem.matrix)
        both[np.ix_(others, others)] = self.both
        both[at, others] = both[others, at] = np.diag(self.both)
        both[at, at] = 1.0
        return replace(self, both=both, best=np.insert(self.best, t, s))


@dataclass(frozen=True)
class _Part:
    """A third of the nodes, and what the matrix from it to the next is made of."""

    nodes: Ints
    size: Ints  # of each of them
    place: Ints  # of their states
    span: slice  # where these stand when the thirds stand one after the other
    picks: Floats  # (joint states, states): which states a joint state is made of
    own: Floats  # (joint states,)
    tilt: Floats  # (joint states, states of the next) what these add
    top: float  # largest exponent


class _Trace:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal:
        network, cost = piece.network, trace_cost(piece.network.size)
        digits = 0 if network.binary else 1
        why = f"2^{network.doublings:.{digits}f} configurations"
        return Proposal(cost, why, lambda: trace(network, seed=piece.seed))


METHOD = _Trace()


def trace_cost(size: Ints) -> Cost:
    """Operations and bytes for a network of nodes of these sizes."""
    binary = bool((size == TWO).all())
    if np.log2(size).sum() > (LIMIT if binary else WIDEST) + ROUNDING:
        return BEYOND
    volume = [float(np.prod(size[nodes])) for nodes in _thirds(size)]
    entries = [volume[k] * volume[k - 1] for k in range(3)]
    operations = OPERATIONS_STATE * float(np.prod(volume)) + OPERATIONS_ENTRY * sum(entries)
    memory = sum(entries) + max(entries)
    if binary:
        return operations + OPERATIONS_CALL, 8.0 * memory
    lists = 3.0 * max(volume) * float(size.sum())  # picks and tilts
    return operations + OPERATIONS_CALL_WIDE, 8.0 * (memory + lists)


def trace(network: Network, *, seed: int = 0) -> Beliefs:
    """Everything about one dense clique; `seed` is for the search for a start alone.

    The optimum is proved, up to TIE; of several, the first in table order is given where all nodes
    have as many states.
    """
    most = LIMIT if network.binary else WIDEST
    if network.doublings > most + ROUNDING:
        raise ValueError(f"2^{network.doublings:.1f}: the trace method takes at most 2^{most:.0f}")
    problem = _dense(network)
    start = _search(problem, np.random.default_rng(seed))
    value = problem.value(start)
    found = _solve(problem.turned(start), start, 0.0)
    assert found is not None  # the start itself is never negligible
    place = _places(network)
    single, (row, column) = np.clip(np.diag(found.both), 0.0, 1.0), network.ends
    # What the others leave is closer to the probability of what is nearly certain than its own sum.
    surest = problem.first[:-1] + found.best
    single[surest] = 0.0
    single[surest] = np.maximum(1.0 - np.add.reduceat(single, problem.first[:-1]), 0.0)
    one = single[place]
    both = frechet(network, one, found.both[place[row], place[column]])
    return exact_beliefs(
        network,
        NAME,
        found.best,
        one,
        both,
        found.log_sum + value + network.constant,
        found.entropy,
        zero=single[problem.first[:-1]],
    )


def _dense(network: Network) -> _Problem:
    place, (row, column) = _places(network), network.ends
    own = np.zeros(len(network.field) + len(network))
    own[place] = network.field
    matrix = np.zeros((len(own), len(own)))
    np.add.at(matrix, (place[row], place[column]), network.coupling)
    return _Problem(network.size, own, matrix + matrix.T)


def _places(network: Network) -> Ints:
    """Where states but the first stand among all."""
    others = np.ones(len(network.field) + len(network), np.bool_)
    others[starts(network.size)[:-1]] = False
    return np.flatnonzero(others)


def _search(problem: _Problem, rng: np.random.Generator) -> Ints:
    """The best of a few configurations that no single change improves."""
    drawn = rng.integers(0, problem.size, (1 + RESTARTS, len(problem.size)))
    drawn[0] = 0
    return _improved(problem, drawn)


def _improved(problem: _Problem, drawn: Ints) -> Ints:
    """The best of configurations that no single change improves, one near each of those drawn."""
    values = np.empty(len(drawn))
    least = TIE * (1.0 + np.abs(problem.matrix).sum())  # rounding must not send it in circles
    _climb(problem.first, problem.own, problem.matrix, least, drawn, values)
    return np.asarray(drawn[np.argmax(values)])


def _solve(problem: _Problem, start: Ints, known: float) -> _Answer | None:
    """Exact sums of a problem turned to `start`; None if it weighs nothing against exp(known)."""
    parts = _split(problem)
    spread = sum(part.top for part in parts)
    nothing = known - NEGLIGIBLE - problem.doublings * np.log(2.0)
    if spread <= SPREAD:
        return None if spread < nothing else _trace(problem, start, parts, spread)
    logs, room = _logarithms(parts)
    for _ in range(SWEEPS):
        if spread <= SPREAD or spread < nothing:
            break
        _even(logs)
        spread = _spread(logs)
    if spread < nothing:
        return None
    if spread <= SPREAD:
        return _trace(problem, start, parts, spread, (logs, room))
    del logs, room
    return _by_cases(problem, start, known)


def _by_cases(problem: _Problem, start: Ints, known: float) -> _Answer | None:
    """As `_solve`, for each state of the node that has the strongest ties."""
    tie = np.add.reduceat(np.abs(problem.matrix).sum(1), problem.first[:-1])
    t = int(np.argmax(tie))
    answers = []
    for s in range(int(problem.size[t])):
        rest = problem.case(t, s)
        z = _improved(rest, np.delete(start, t)[None])
        value = float(problem.own[problem.first[t] + s]) + rest.value(z)
        known = max(known, value)
        found = _solve(rest.turned(z), z, known - value)
        if found is not None:
            found = replace(found, log_sum=found.log_sum + value)
            answers.append(found.extended(problem, t, s))
    return _joined(problem, answers) if answers else None


def _joined(problem: _Problem, answers: list[_Answer]) -> _Answer:
    log_sum = float(np.logaddexp.reduce([found.log_sum for found in answers]))
    share = [float(np.exp(found.log_sum - log_sum)) for found in answers]
    both = np.sum([p * found.both for p, found in zip(share, answers, strict=True)], axis=0)
    entropy = sum(
        p * (found.entropy + log_sum - found.log_sum)
        for p, found in zip(share, answers, strict=True)
    )
    values = [problem.value(found.best) for found in answers]
    tied = [z for z, v in zip(answers, values, strict=True) if v >= max(values) - TIE]
    return _Answer(log_sum, entropy, both, min((z.best for z in tied), key=tuple))


def _thirds(size: Ints) -> list[Ints]:
    """Three groups of nodes, in table order where all have as many states, else the largest node
    left goes to the group of the fewest joint states."""
    n = len(size)
    if n == 0 or (size == size[0]).all():
        ends, nodes = (0, (n + 2) // 3, (n + 2) // 3 + (n + 1) // 3, n), np.arange(n)
        return [nodes[ends[k] : ends[k + 1]] for k in range(3)]
    load, member = [0.0, 0.0, 0.0], np.zeros(n, np.int64)
    for t in np.argsort(-size, kind="stable"):
        k = int(np.argmin(load))
        member[t], load[k] = k, load[k] + float(np.log2(size[t]))
    return [np.flatnonzero(member == k) for k in range(3)]


def _split(problem: _Problem) -> list[_Part]:
    groups = _thirds(problem.size)
    nodes = np.concatenate(groups)
    order = ranges(problem.first[:-1][nodes], problem.size[nodes])
    matrix, terms = problem.matrix.take(order, 0).take(order, 1), problem.own[order]
    sizes = [problem.size[group] for group in groups]
    ends = starts(np.array([int(size.sum()) for size in sizes]))
    spans, parts = [slice(*ends[k : k + 2]) for k in range(3)], []
    for k, (size, here, there) in enumerate(zip(sizes, spans, spans[1:] + spans[:1], strict=True)):
        picks = np.zeros((int(size.prod()), here.stop - here.start))
        _pick(size, picks)
        within = picks @ matrix[here, here]
        own = picks @ terms[here] + 0.5 * np.einsum("gs,gs->g", within, picks)
        tilt = picks @ matrix[here, there]
        top = _top(own, tilt, sizes[k - 2])
        parts.append(_Part(groups[k], size, order[here], here, picks, own, tilt, top))
    return parts


def _room(parts: list[_Part]) -> tuple[list[Floats], Floats]:
    """Matrices from each group to the next, and room for a fourth."""
    volume = [len(part.own) for part in parts]
    shapes = [(volume[k], volume[k - 2]) for k in range(3)]
    ends = np.cumsum([0] + [rows * columns for rows, columns in shapes])
    # One block: the C library keeps it for the next call, where it would hand four back.
    block = np.empty(ends[-1] + np.diff(ends).max())
    return [block[ends[k] : ends[k + 1]].reshape(shapes[k]) for k in range(3)], block[ends[-1] :]


def _logarithms(parts: list[_Part]) -> tuple[list[Floats], Floats]:
    """Exponents of the three matrices, and room for a fourth."""
    logs, room = _room(parts)
    for k, part in enumerate(parts):
        np.matmul(part.tilt, parts[k - 2].picks.T, out=logs[k])
        logs[k] += part.own[:, None]
    return logs, room


def _spread(logs: list[Floats]) -> float:
    """The log of what the largest entries of the three matrices would multiply to."""
    return sum(float(one.max()) for one in logs)


def _even(logs: list[Floats]) -> None:
    """Move terms of one group between its two matrices until the largest are alike.

    No configuration changes, and the spread never grows.
    """
    for k in range(3):
        move = 0.5 * (logs[k].max(1) - logs[k - 1].max(0))
        logs[k] -= move[:, None]
        logs[k - 1] += move


def _weights(
    parts: list[_Part], floor: float, logs: tuple[list[Floats], Floats] | None
) -> tuple[list[Floats], Floats]:
    """The three matrices, each scaled to a largest entry of 1, and room for a fourth."""
    if logs is None:
        weight, room = _room(parts)
        for k, part in enumerate(parts):
            _fill(part.own, part.tilt, parts[k - 2].size, part.top, floor, weight[k])
        return weight, room
    for one in logs[0]:
        one -= one.max()
        np.exp(one, out=one)
        one[one < floor] = 0.0
    return logs


def _trace(
    problem: _Problem,
    start: Ints,
    parts: list[_Part],
    spread: float,
    logs: tuple[list[Floats], Floats] | None = None,
) -> _Answer:
    """The sums; exponents of the matrices are given where terms have been moved between them."""
    floor, start_weight = float(np.exp(-spread - NEGLIGIBLE)), float(np.exp(-spread))
    weight, room = _weights(parts, floor, logs)
    inner = np.zeros_like(problem.matrix)
    for k in (1, 2, 0):
        here, there = parts[k], parts[k - 2]
        table = room[: weight[k].size].reshape(weight[k].shape)
        np.matmul(weight[k - 1].T, weight[k - 2].T, out=table)
        table *= weight[k]
        rows = table.sum(1)
        inner[here.span, here.span] = here.picks.T @ (rows[:, None] * here.picks)
        across = (here.picks.T @ table) @ there.picks
        inner[here.span, there.span], inner[there.span, here.span] = across, across.T
    order, both = np.concatenate([part.place for part in parts]), np.empty_like(inner)
    both[order[:, None], order] = inner
    total, best = float(rows.sum()), start.copy()
    if start_weight <= 0.5 * total * (1.0 + TIE):
        joint = _heaviest(weight[0], weight[1], weight[2], table, start_weight)
        for part, g in zip(parts, joint, strict=True):
            best[part.nodes] = np.unravel_index(g, part.size)
    both /= total
    log_sum = float(np.log(total)) + spread
    mean = float(problem.own @ np.diag(both) + 0.5 * np.sum(problem.matrix * both))
    return _Answer(log_sum, max(0.0, log_sum - mean), both, best)


@nb.njit(cache=True, nogil=True)
def _climb(first, own, matrix, least, drawn, values):  # type: ignore[no-untyped-def]
    """Always the change that gains most, while there is one of more than `least`, in place."""
    for i in range(len(drawn)):
        z, slope, values[i] = drawn[i], own.copy(), 0.0
        for t in range(len(z)):
            slope += matrix[first[t] + z[t]]
        while True:
            gain, node, state = least, -1, 0
            for t in range(len(z)):
                now = slope[first[t] + z[t]]
                for s in range(first[t + 1] - first[t]):
                    if slope[first[t] + s] - now > gain:
                        gain, node, state = slope[first[t] + s] - now, t, s
            if node < 0:
                break
            slope += matrix[first[node] + state] - matrix[first[node] + z[node]]
            z[node] = state
        for t in range(len(z)):
            at = first[t] + z[t]
            values[i] += 0.5 * (slope[at] + own[at])


@nb.njit(cache=True, nogil=True)
def _pick(size, out):  # type: ignore[no-untyped-def]
    """1 for the state of each node in each joint state."""
    for g in range(len(out)):
        left, at = g, out.shape[1]
        for q in range(len(size) - 1, -1, -1):
            at -= size[q]
            out[g, at + left % size[q]] = 1.0
            left //= size[q]


@nb.njit(cache=True, nogil=True)
def _top(own, tilt, size):  # type: ignore[no-untyped-def]
    """The largest entry of a matrix from one group to the next."""
    top = -np.inf
    for g in range(len(own)):
        largest, at = own[g], 0
        for q in range(len(size)):
            most = tilt[g, at]
            for s in range(1, size[q]):
                most = max(most, tilt[g, at + s])
            largest += most
            at += size[q]
        top = max(top, largest)
    return top


@nb.njit(cache=True, nogil=True)
def _fill(own, tilt, size, top, floor, out):  # type: ignore[no-untyped-def]
    """out[g, h] = exp(own[g] + sum over nodes q of tilt[g, state of q in h] - top), or 0 below
    `floor`; a row is the outer product of the factors of its early and of its late nodes."""
    n, columns = len(size), out.shape[1]
    early, rows, states = 0, 1, 0
    while early < n and rows * size[early] * rows * size[early] <= columns * size[early]:
        rows *= size[early]
        states += size[early]
        early += 1
    high, low = np.empty(rows), np.empty(columns // rows)
    width = len(low)
    for g in range(len(own)):
        late_most = _multiply(tilt, size, g, early, n, states, low)
        largest = _multiply(tilt, size, g, 0, early, 0, high) + late_most + own[g] - top
        scale = np.exp(largest)
        for i in range(rows):
            factor, part = scale * high[i], out[g, i * width : (i + 1) * width]
            for j in range(width):
                weight = factor * low[j]
                part[j] = weight if weight >= floor else 0.0


@nb.njit(cache=True, nogil=True, inline="always")  # arrays that are handed on cost more than this
def _multiply(tilt, size, g, q0, q1, at, out):  # type: ignore[no-untyped-def]
    """Weights of all states of nodes q0:q1 against the heaviest, whose log is returned; their
    terms begin at tilt[g, at]. No factor exceeds 1."""
    largest, count = 0.0, 1
    out[0] = 1.0
    for q in range(q0, q1):
        at += size[q]
    for q in range(q1 - 1, q0 - 1, -1):
        at -= size[q]
        most = tilt[g, at]
        for s in range(1, size[q]):
            most = max(most, tilt[g, at + s])
        largest += most
        for s in range(size[q] - 1, -1, -1):  # state 0 last: the others need what it overwrites
            step = tilt[g, at + s] - most
            factor = np.exp(step) if step < 0.0 else 1.0
            for y in range(count):
                out[s * count + y] = out[y] * factor
        count *= size[q]
    return largest


@nb.njit(cache=True, nogil=True)
def _heaviest(ab, bc, ca, table, known):  # type: ignore[no-untyped-def]
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
    for a in range(size_a):
        if row_top[a] < least:
            continue
        for b in range(size_b):
            if table[a, b] < least * (1.0 - TIE):
                continue
            for c in range(size_c):
                if ab[a, b] * bc[b, c] * ca[c, a] >= least:
                    return a, b, c
    return 0, 0, 0
