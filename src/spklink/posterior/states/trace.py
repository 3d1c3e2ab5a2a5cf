"""Dense networks of up to LIMIT bits: all configurations, as the trace of a matrix product.

The nodes are split into three groups of about as many joint states each. Counted in changes from a
good configuration (`turned`), no term of log p joins all three groups:

    sum over z of p(z) = trace(W_0 W_1 W_2),   W_k[g, h] = exp(own_k[g] + between_k[g, h])

with g a joint state of group k, h one of the next group (cyclic), own the terms within group k,
between those that join the two. All configurations at the speed of matrix products, in the memory
of pairs of groups. The product of two of the matrices, times the third entry by entry, holds the
sum for each pair of joint states of two groups: three such tables give all marginals and pairs, and
bound the search for the best. Joint states are digits as in `digits`.

Exact whatever the terms: where the three matrices together could leave the range of floating
point, terms are moved from one to the other, and where that does not help a node is taken case by
case, and the cases are solved and mixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.posterior.inference.beliefs import BEYOND, EXACT, Cost
from spklink.posterior.inference.network import TIE
from spklink.posterior.inference.trace import (
    NAME,
    NEGLIGIBLE,
    OPERATIONS_ENTRY,
    OPERATIONS_STATE,
    RESTARTS,
    SPREAD,
    heaviest,
    three_and_room,
)
from spklink.posterior.states.beliefs import (
    StateBeliefs,
    StatePiece,
    StateProposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.states.cases import case, mixed
from spklink.posterior.states.enumeration import ROUNDING
from spklink.posterior.states.network import StateNetwork, turned

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LIMIT = 40.0  # log2 of the configurations; budgets mostly end before
SWEEPS = 12  # in which terms are moved between matrices before a node is taken case by case
OPERATIONS_CALL = 1.5e6  # seconds x 1e9 on one core; the others are those of two states


@dataclass(frozen=True)
class _Group:
    """A third of the nodes."""

    nodes: Ints
    size: Ints  # of each of them
    place: Ints  # of their states in `unary`
    picks: Floats  # (joint states, states): which states a joint state is made of

    @property
    def volume(self) -> int:
        return len(self.picks)


class _Trace:
    name, certainty = NAME, EXACT

    def propose(self, piece: StatePiece) -> StateProposal:
        why = f"2^{piece.network.bits:.1f} configurations"
        cost = trace_cost(piece.network.size)
        return StateProposal(cost, why, lambda: trace(piece.network, seed=piece.seed))


METHOD = _Trace()


def trace_cost(size: Ints) -> Cost:
    """Operations and bytes for a network of nodes of these sizes."""
    if np.log2(size).sum() > LIMIT + ROUNDING:
        return BEYOND
    volume = [float(np.prod(size[nodes])) for nodes in _thirds(size)]
    entries = [volume[k] * volume[k - 1] for k in range(3)]
    operations = OPERATIONS_STATE * float(np.prod(volume)) + OPERATIONS_ENTRY * sum(entries)
    lists = 3.0 * max(volume) * float(size.sum())  # picks and tilts
    return operations + OPERATIONS_CALL, 8.0 * (sum(entries) + max(entries) + lists)


def trace(network: StateNetwork, *, seed: int = 0) -> StateBeliefs:
    """Everything about one dense network; `seed` is for the search for a start alone.

    The optimum is proved, up to TIE.
    """
    if network.bits > LIMIT + ROUNDING:
        raise ValueError(f"2^{network.bits:.1f}: the trace method takes at most 2^{LIMIT:.0f}")
    start = _search(network, np.random.default_rng(seed))
    found = _solve(turned(network, start), start, 0.0)
    assert found is not None  # the start itself is never negligible
    log_sum = found.log_sum[0] + network.value(start)
    return replace(found, log_sum=(log_sum, log_sum))


def _dense(network: StateNetwork) -> Floats:
    """(states, states) all tables in one symmetric matrix."""
    row, column = network.ends()
    matrix = np.zeros((len(network.unary), len(network.unary)))
    matrix[row, column] = matrix[column, row] = network.table
    return matrix


def _search(network: StateNetwork, rng: np.random.Generator) -> Ints:
    """The best of a few configurations that no single change improves."""
    matrix = _dense(network)
    starts = rng.integers(0, network.size, (1 + RESTARTS, len(network)))
    starts[0] = 0
    return max((_climb(network, matrix, z) for z in starts), key=network.value)


def _climb(network: StateNetwork, matrix: Floats, start: Ints) -> Ints:
    """Always the change that gains most, while there is one."""
    first, z = network.start[:-1], start.copy()
    node = np.repeat(np.arange(len(network)), network.size)
    field = network.unary + matrix[:, first + z].sum(1)
    while len(z):
        gain = field - field[(first + z)[node]]
        to = int(np.argmax(gain))
        if gain[to] <= TIE:
            break
        t = node[to]
        field += matrix[:, to] - matrix[:, first[t] + z[t]]
        z[t] = to - first[t]
    return z


def _solve(network: StateNetwork, start: Ints, known: float) -> StateBeliefs | None:
    """Exact figures of a network turned to `start`, whose value is 0.

    None if all of it weighs nothing against exp(known).
    """
    groups = _groups(network)
    *logs, room = _matrices(network, groups)
    nothing = known - NEGLIGIBLE - network.bits * np.log(2.0)
    spread = _spread(logs)
    for _ in range(SWEEPS):
        if spread <= SPREAD or spread < nothing:
            break
        _even(logs)
        spread = _spread(logs)
    if spread < nothing:
        return None
    if spread <= SPREAD:
        return _trace(network, start, groups, logs, room)
    del logs, room
    return _by_cases(network, start, known)


def _by_cases(network: StateNetwork, start: Ints, known: float) -> StateBeliefs | None:
    """As `_solve`, for each state of the node that has the strongest ties."""
    tie = np.abs(_dense(network)).max(1)
    t = int(np.argmax(np.maximum.reduceat(tie, network.start[:-1])))
    rests = [case(network, t, s) for s in range(network.size[t])]
    good = [_climb(rest, _dense(rest), np.delete(start, t)) for rest in rests]
    value = [rest.value(z) for rest, z in zip(rests, good, strict=True)]
    known = max(known, *value)
    found = [
        _solve(turned(rest, z), z, known - at)
        for rest, z, at in zip(rests, good, value, strict=True)
    ]
    log_sums = np.array(
        [
            -np.inf if one is None else at + one.log_sum[0]
            for at, one in zip(value, found, strict=True)
        ]
    )
    return _joined(network, t, found, log_sums) if np.isfinite(log_sums).any() else None


def _joined(
    network: StateNetwork, t: int, found: list[StateBeliefs | None], log_sums: Floats
) -> StateBeliefs:
    log_sum = float(np.logaddexp.reduce(log_sums))
    share = np.exp(log_sums - log_sum)
    marginal, pair = mixed(network, t, found, share)
    bests = [
        np.insert(one.best, t, s).astype(np.int64) for s, one in enumerate(found) if one is not None
    ]
    entropy = sum(
        p * (one.entropy[0] - float(np.log(p)))
        for p, one in zip(share.tolist(), found, strict=True)
        if one is not None and p > 0.0
    )
    return exact_beliefs(NAME, max(bests, key=network.value), marginal, pair, log_sum, entropy)


def _thirds(size: Ints) -> list[Ints]:
    """Three groups of nodes: the largest node left goes to the group of the fewest joint states."""
    load, member = [0.0, 0.0, 0.0], np.zeros(len(size), np.int64)
    for t in np.argsort(-size, kind="stable"):
        k = int(np.argmin(load))
        member[t], load[k] = k, load[k] + float(np.log2(size[t]))
    return [np.flatnonzero(member == k) for k in range(3)]


def _groups(network: StateNetwork) -> list[_Group]:
    groups = []
    for nodes in _thirds(network.size):
        size = network.size[nodes]
        digits = _digits(np.arange(np.prod(size)), size)
        first = np.cumsum(size) - size
        picks = np.zeros((len(digits), int(size.sum())))
        np.put_along_axis(picks, digits + first, 1.0, axis=1)
        groups.append(_Group(nodes, size, ranges(network.start[nodes], size), picks))
    return groups


def _digits(joint: Ints, size: Ints) -> Ints:
    """(joint states, nodes) the state of each node."""
    above = np.cumprod(size[::-1])[::-1]
    return np.asarray(joint[:, None] % above // (above // size), np.int64)


def _matrices(network: StateNetwork, groups: list[_Group]) -> list[Floats]:
    """Exponents of the three matrices, and room for a fourth."""
    matrix, arrays = _dense(network), three_and_room([group.volume for group in groups])
    for k, here in enumerate(groups):
        there = groups[k - 2]
        within = here.picks @ matrix[np.ix_(here.place, here.place)]
        own = here.picks @ network.unary[here.place]
        own += 0.5 * np.einsum("gs,gs->g", within, here.picks)
        tilt = here.picks @ matrix[np.ix_(here.place, there.place)]
        np.matmul(tilt, there.picks.T, out=arrays[k])
        arrays[k] += own[:, None]
    return arrays


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


def _trace(
    network: StateNetwork, start: Ints, groups: list[_Group], weight: list[Floats], room: Floats
) -> StateBeliefs:
    """The sums; `weight` comes as exponents."""
    spread = _spread(weight)
    floor, start_weight = float(np.exp(-spread - NEGLIGIBLE)), float(np.exp(-spread))
    for one in weight:
        one -= one.max()
        np.exp(one, out=one)
        one[one < floor] = 0.0
    both = np.zeros((len(network.unary), len(network.unary)))
    for k in (1, 2, 0):
        here, there = groups[k], groups[k - 2]
        table = room[: weight[k].size].reshape(weight[k].shape)
        np.matmul(weight[k - 1].T, weight[k - 2].T, out=table)
        table *= weight[k]
        rows = table.sum(1)
        both[np.ix_(here.place, here.place)] = here.picks.T @ (rows[:, None] * here.picks)
        across = here.picks.T @ (table @ there.picks)
        both[np.ix_(here.place, there.place)] = across
        both[np.ix_(there.place, here.place)] = across.T
    total, best = float(rows.sum()), start.copy()
    if start_weight <= 0.5 * total * (1.0 + TIE):
        joint = heaviest(weight[0], weight[1], weight[2], table, start_weight, 0, 0, 0)
        for group, g in zip(groups, joint, strict=True):
            best[group.nodes] = _digits(np.array([g]), group.size)[0]
    both /= total
    row, column = network.ends()
    marginal, pair, log_sum = np.diag(both).copy(), both[row, column], float(np.log(total)) + spread
    entropy = max(0.0, log_sum - mean_value(network, marginal, pair))
    return exact_beliefs(NAME, best, marginal, pair, log_sum, entropy)
