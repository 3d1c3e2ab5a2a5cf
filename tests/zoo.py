"""Random cliques of every shape, and a slow plain reference that shares no code with the package.

Every inference method is held against `brute_force` on these.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple

import numpy as np

from spklink.posterior.inference.beliefs import Beliefs
from spklink.posterior.inference.network import Network

SHAPES = (
    "star",
    "chain",
    "centre",
    "tree",
    "two_speakers",
    "clamped",
    "zero_couplings",
    "huge_couplings",
    "single",
    "disconnected",
)


def calls_of(shape: str, size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Who talks to whom in `size` calls; speakers are numbers, order of listing random."""
    if shape in ("star", "clamped", "zero_couplings", "huge_couplings"):
        calls = [(0, 1 + int(rng.integers(max(2, size // 2)))) for _ in range(size)]
    elif shape == "chain":
        calls = [(k, k + 1) for k in range(size)]
    elif shape == "centre":
        agents = 2 + size // 8
        calls = [
            (int(rng.integers(agents)), agents + int(rng.integers(1 + size // 2)))
            for _ in range(size)
        ]
    elif shape in ("tree", "disconnected"):
        calls = [(int(rng.integers(k)), k) for k in range(1, 1 + (2 * size + 2) // 3)]
        while len(calls) < size:
            a, b = calls[int(rng.integers(len(calls)))]
            _, d = calls[int(rng.integers(len(calls)))]
            calls.append((a, d) if a != d and rng.random() < 0.4 else (a, b))
        calls = calls[:size]
    else:  # two_speakers, single
        calls = [(0, 1)] * size
    return [(a, b) if rng.random() < 0.5 else (b, a) for a, b in calls]


def network_of(
    calls: list[tuple[int, int]],
    mu: float,
    rng: np.random.Generator,
    *,
    prior: bool = False,
) -> Network:
    """Independent Gaussian scores N(+-mu, 2 mu) on the calls, weights 2/n, as a pairwise model."""
    n = len(calls)
    truth = rng.integers(0, 2, n)
    on = [(c[0], c[1]) if t == 0 else (c[1], c[0]) for c, t in zip(calls, truth, strict=True)]
    count: dict[int, int] = {}
    for call in calls:
        for s in call:
            count[s] = count.get(s, 0) + 1
    field, coupling, constant = np.zeros(n), {}, 0.0
    if prior:
        field = rng.normal(size=n)
    for i, j in itertools.combinations(range(n), 2):
        shared = set(calls[i]) & set(calls[j])
        if not shared:
            continue
        llr = np.array(
            [
                [
                    (mu if on[i][u] == on[j][v] else -mu) + math.sqrt(2 * mu) * rng.normal()
                    for v in (0, 1)
                ]
                for u in (0, 1)
            ]
        )
        for s in shared:
            p, q, w = calls[i].index(s), calls[j].index(s), 2.0 / count[s]
            t = [[w * llr[p ^ x, q ^ y] for y in (0, 1)] for x in (0, 1)]
            constant += t[0][0]
            field[i] += t[1][0] - t[0][0]
            field[j] += t[0][1] - t[0][0]
            coupling[i, j] = coupling.get((i, j), 0.0) + t[1][1] - t[1][0] - t[0][1] + t[0][0]
    pairs = sorted(coupling)
    return Network(
        field=field,
        a=np.array([i for i, _ in pairs], np.int32),
        b=np.array([j for _, j in pairs], np.int32),
        coupling=np.array([coupling[p] for p in pairs]),
        constant=constant,
    )


def random_network(
    shape: str, size: int, rng: np.random.Generator, mu: float | None = None
) -> Network:
    """A clique of one of SHAPES with scores of a random (or the given) strength."""
    strength = float(rng.choice([0.2, 1.0, 2.0, 4.36, 8.0])) if mu is None else mu
    net = network_of(calls_of(shape, size, rng), strength, rng, prior=bool(rng.random() < 0.3))
    if shape == "two_speakers":
        net = network_of([(0, 1)] * size, strength, rng)  # no prior: the mirror symmetry is exact
    field, coupling = net.field, net.coupling
    if shape == "zero_couplings":
        coupling = np.where(rng.random(len(coupling)) < 0.6, 0.0, coupling)
    if shape == "huge_couplings" and len(coupling):
        scale = 1e4 / max(1e-9, float(np.abs(coupling).max()))
        field, coupling = field * scale, coupling * scale
    if shape == "disconnected":
        keep = (net.a < size // 2) == (net.b < size // 2)
        return Network(field, net.a[keep], net.b[keep], coupling[keep], net.constant)
    if shape == "clamped":  # a few conversations fixed: fields far from balanced
        field = np.where(rng.random(size) < 0.3, 1e3 * rng.choice([-1.0, 1.0], size), field)
    return Network(field, net.a, net.b, coupling, net.constant)


def make(field: object, a: object = (), b: object = (), coupling: object = ()) -> Network:
    """A clique as it is written down."""
    ends = np.asarray(a, np.int32), np.asarray(b, np.int32)
    return Network(np.asarray(field, float), *ends, np.asarray(coupling, float), 0.25)


def mixture(count: int, seed: int, largest: int = 7) -> list[Network]:
    """Cliques of all shapes in turn, of random sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, count)
    return [random_network(SHAPES[k % len(SHAPES)], int(n), rng) for k, n in enumerate(sizes)]


def as_bytes(beliefs: Beliefs | None) -> list[bytes]:
    """Every figure, to the last bit."""
    assert beliefs is not None
    values = astuple(beliefs)
    return [v.tobytes() if isinstance(v, np.ndarray) else repr(v).encode() for v in values]


def brute_force(net: Network) -> dict[str, object]:
    """log_sum, one, both, entropy, best value and its configurations, by plain enumeration."""
    n = len(net)
    states = list(itertools.product((0, 1), repeat=n))
    values = []
    for x in states:
        v = net.constant
        for t in range(n):
            v += net.field[t] * x[t]
        for e in range(len(net.coupling)):
            v += net.coupling[e] * x[net.a[e]] * x[net.b[e]]
        values.append(v)
    top = max(values)
    weights = [math.exp(v - top) for v in values]
    total = math.fsum(weights)
    log_sum = top + math.log(total)
    one = np.zeros(n)
    both = np.zeros(len(net.coupling))
    for x, w in zip(states, weights, strict=True):
        bits = np.array(x)
        one += w * bits
        both += w * bits[net.a] * bits[net.b]
    entropy = math.fsum(w * (log_sum - v) for w, v in zip(weights, values, strict=True)) / total
    return {
        "log_sum": log_sum,
        "one": one / total,
        "both": both / total,
        "entropy": entropy,
        "best_value": top,
        "best": [x for x, v in zip(states, values, strict=True) if v >= top - 1e-9],
    }
