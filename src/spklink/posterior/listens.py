"""How few conversations have to be listened to until all of a clique are certain enough.

Whoever listens to a conversation knows its state, so the expected entropy that a listen removes is
the entropy of that conversation alone, whatever hangs on it: choosing by it is to ask for the most
uncertain one, and looks one listen ahead. Here all listens are looked at, until the end. With the
joint probabilities of all states, let V(s) be the expected number of further listens when the
conversations of s are known: 0 where each of the others has a state of the wanted probability, else

    V(s) = 1 + min over m of  sum over states x of m  of  P(x | s) V(s and m is x).

No other way to choose needs fewer listens on average, as far as the posterior is right.

Index conventions: m = conversation (axis of the joint table), x = its state; in the tables of
partial knowledge the last index of every axis stands for "not known".
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.network import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LARGEST = 2**20  # partial knowledge that is ever listed: twelve conversations of two states
NEVER = 1e-7  # states of less are left out


@dataclass(frozen=True)
class Listens:
    """What listening to a clique takes, from a joint table."""

    expected: float  # listens until all are certain enough, by the best choices
    first: Floats  # (n,) the same where this conversation is heard first
    settled: Floats  # (n,) conversations that hearing this one makes certain, itself among them
    entropy: Floats  # (n,) bits of every conversation: what hearing it tells
    joint_entropy: float  # bits of all together


def affordable(states: Ints) -> bool:
    """Whether a clique with so many states a conversation can be looked at until the end."""
    return bool(np.log2(states + 1.0).sum() <= np.log2(LARGEST))


def joint_of(network: Network) -> Floats:
    """The probabilities of all states of a small network, an axis a node."""
    n, found = len(network), np.zeros(network.size)

    def wide(values: Floats, *axes: int) -> Floats:
        """Values of all states but the first of some nodes; those of the first are 0."""
        inner = values.reshape([int(network.size[m]) - 1 for m in axes])
        shape = [int(network.size[m]) if m in axes else 1 for m in range(n)]
        return np.pad(inner, [(1, 0)] * len(axes)).reshape(shape)

    for m in range(n):
        found += wide(network.field[network.start[m] : network.start[m + 1]], m)
    for e, (a, b) in enumerate(zip(network.a.tolist(), network.b.tolist(), strict=True)):
        found += wide(network.coupling[network.cell_start[e] : network.cell_start[e + 1]], a, b)
    found = np.exp(found - found.max())
    return np.asarray(found / found.sum())


def fewest(joint: Floats, certainty: float) -> Listens:
    """From joint probabilities, an axis a conversation; they need not sum to one."""
    joint = _without_impossible(joint / joint.sum())
    known = _partial(joint)
    size = np.array(joint.shape, np.int64)
    value = np.zeros(known.size)
    first, settled = np.zeros((2, joint.ndim))
    _look_ahead(known.ravel(), size, certainty, value, first, settled)
    alone = [_bits(joint.sum(axis=_others(joint, m))) for m in range(joint.ndim)]
    return Listens(float(value[-1]), first, settled, np.array(alone), _bits(joint.ravel()))


def _without_impossible(joint: Floats) -> Floats:
    for m in range(joint.ndim):
        alone = joint.sum(axis=_others(joint, m))
        joint = np.compress(alone >= NEVER * alone.sum(), joint, axis=m)
    return np.asarray(joint / joint.sum())


def _others(joint: Floats, m: int) -> tuple[int, ...]:
    return tuple(k for k in range(joint.ndim) if k != m)


def _partial(joint: Floats) -> Floats:
    """Probabilities of all partial knowledge: every axis with its sum appended."""
    for m in range(joint.ndim):
        joint = np.concatenate([joint, joint.sum(axis=m, keepdims=True)], axis=m)
    return np.ascontiguousarray(joint)


def _bits(p: Floats) -> float:
    p = p[p > 0.0]
    return max(0.0, float(-(p * np.log2(p)).sum()))


@nb.njit(cache=True, nogil=True)
def _look_ahead(known, size, certainty, value, first, settled):  # type: ignore[no-untyped-def]
    """Fill value, of partial knowledge, in ascending order: more knowledge has smaller indices."""
    n = len(size)
    stride = np.ones(n, np.int64)
    for m in range(n - 2, -1, -1):
        stride[m] = stride[m + 1] * (size[m + 1] + 1)
    open_ = np.zeros(len(known), np.int64)
    for s in range(len(known)):
        if known[s] <= 0.0:
            continue
        for m in range(n):
            if (s // stride[m]) % (size[m] + 1) == size[m]:
                most = 0.0
                for x in range(size[m]):
                    most = max(most, known[s - (size[m] - x) * stride[m]])
                if most < certainty * known[s]:
                    open_[s] += 1
        last = s == len(known) - 1
        if open_[s] == 0 and not last:
            continue
        best = np.inf
        for m in range(n):
            if (s // stride[m]) % (size[m] + 1) != size[m]:
                continue
            after, left = 0.0, 0.0
            for x in range(size[m]):
                t = s - (size[m] - x) * stride[m]
                after += known[t] * value[t]
                left += known[t] * open_[t]
            after = 1.0 + after / known[s]
            best = min(best, after)
            if last:
                first[m], settled[m] = after, open_[s] - left / known[s]
        value[s] = best if open_[s] else 0.0
