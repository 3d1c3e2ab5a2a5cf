"""Posteriors of many small cliques, and cliques of a million conversations.

python benchmarks/cliques.py
"""

from __future__ import annotations

import subprocess
import sys

from timing import best_of, once, ratio, seconds, show, use_one_core

use_one_core()

import numpy as np

from spklink.database.cliques import find_cliques
from spklink.posterior.inference.enumeration import enumerate_all
from spklink.posterior.inference.network import Network, Networks, condition, take
from spklink.posterior.likelihood import build_model, join
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import simulate

CLIQUES = 1000
MILLION = 1_000_000


def thousand_cliques() -> Networks:
    models = []
    for seed in range(9):
        made = simulate(seed=seed)
        cliques = find_cliques(made.conversations)
        models.append(build_model(made.conversations, cliques, made.links, made.llr))
    return take(condition(join(models)), np.arange(CLIQUES))


def numpy_one(network: Network) -> tuple[np.ndarray, np.ndarray, float]:
    """One clique, all its configurations at once: marginals, pairwise marginals, log sum."""
    n = len(network)
    bits = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(float)
    pairs = bits[:, network.a] * bits[:, network.b]
    value = network.constant + bits @ network.field + pairs @ network.coupling
    top = value.max()
    weight = np.exp(value - top)
    total = weight.sum()
    return weight @ bits / total, weight @ pairs / total, top + np.log(total)


def numpy_by_size(networks: Networks) -> list[tuple[np.ndarray, ...]]:
    """All cliques of one size in one array: the fastest way that numpy alone knows."""
    answers = []
    sizes = networks.sizes()
    for n in np.unique(sizes):
        chosen = np.flatnonzero(sizes == n)
        part = take(networks, chosen)
        first, second = np.triu_indices(n, 1)
        place = np.full((n, n), -1)
        place[first, second] = np.arange(len(first))
        coupling = np.zeros((len(chosen), len(first)))
        owner = np.repeat(np.arange(len(chosen)), np.diff(part.edge_start))
        coupling[owner, place[part.a, part.b]] = part.coupling
        bits = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(float)
        pairs = bits[:, first] * bits[:, second]
        value = part.field.reshape(-1, n) @ bits.T + coupling @ pairs.T + part.constant[:, None]
        top = value.max(axis=1, keepdims=True)
        weight = np.exp(value - top)
        total = weight.sum(axis=1, keepdims=True)
        answers.append((weight @ bits / total, weight @ pairs / total, top + np.log(total)))
    return answers


def dwave(networks: Networks) -> object:
    """TreeDecompositionSampler asked for marginals, models built beforehand."""
    import dimod
    from dwave.samplers import TreeDecompositionSampler

    models = []
    for k in range(len(networks)):
        net = networks.one(k)
        quadratic = {
            (int(a), int(b)): -float(j) for a, b, j in zip(net.a, net.b, net.coupling, strict=True)
        }
        linear = {t: -float(h) for t, h in enumerate(net.field)}
        models.append(dimod.BinaryQuadraticModel(linear, quadratic, 0.0, "BINARY"))
    sampler = TreeDecompositionSampler()
    return lambda: [
        sampler.sample(model, num_reads=1, marginals=True, beta=1.0) for model in models
    ]


def small_cliques() -> None:
    networks = thousand_cliques()
    ours = best_of(lambda: enumerate_all(networks), repeat=30)
    alone = [networks.one(k) for k in range(len(networks))]
    check = np.concatenate([numpy_one(network)[0] for network in alone])
    assert np.allclose(check, enumerate_all(networks).one, atol=1e-10)
    peers = {
        "numpy, clique by clique": best_of(lambda: [numpy_one(network) for network in alone]),
        "numpy, all cliques of a size at once": best_of(lambda: numpy_by_size(networks), repeat=30),
        "dwave-samplers TreeDecompositionSampler": best_of(dwave(networks), repeat=3),
    }
    rows = [("spklink", seconds(ours), "1")]
    rows += [(name, seconds(time), ratio(time, ours)) for name, time in peers.items()]
    show(f"Posteriors of {CLIQUES} cliques of the paper's sizes", ["", "time", "times ours"], rows)


def million_conversations() -> None:
    """In a process of its own, so that its peak memory is its own."""
    made = subprocess.run(
        [sys.executable, __file__, "--million"], capture_output=True, text=True, check=True
    )
    print(made.stdout)


def million() -> None:
    from spklink.database.conversations import Conversations
    from spklink.database.sides import numbered
    from spklink.texts import Lists, Texts

    rng = np.random.default_rng(0)
    # Cliques of three calls on average: every call is between two people of one small circle.
    circle = rng.integers(0, MILLION // 3, MILLION)
    first = rng.integers(0, 3, MILLION)
    second = (first + 1 + rng.integers(0, 2, MILLION)) % 3
    people = np.stack([3 * circle + first, 3 * circle + second], 1).astype(np.int32).ravel()
    two = numbered(np.full(MILLION, 2).tolist())
    table = Conversations(
        ids=Texts.of(f"c{k}" for k in range(MILLION)),
        speakers=Texts.of(f"s{k}" for k in range(MILLION + 3)),
        listing=two,
        people=people,
        sides=two,
        audio=Lists.of([()] * MILLION),
        prior=np.full(MILLION, 0.5),
        group=np.zeros(MILLION, np.int32),
    )
    before = peak_memory()
    time = once(lambda: find_cliques(table))
    rows = [
        ("conversations", MILLION),
        ("cliques", len(find_cliques(table))),
        ("time", seconds(time)),
        ("peak memory, table included", f"{peak_memory() / 2**30:.2f} GiB"),
        ("of that the table", f"{before / 2**30:.2f} GiB"),
    ]
    show("Cliques of a million conversations", ["", ""], rows)


def run() -> None:
    small_cliques()
    million_conversations()


if __name__ == "__main__":
    million() if "--million" in sys.argv else run()
