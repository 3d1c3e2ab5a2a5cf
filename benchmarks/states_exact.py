"""Exact inference with several states a conversation: time and memory, and ratios to peers.

python benchmarks/states_exact.py            all of it (some three minutes)
python benchmarks/states_exact.py growth     one of: many, growth, strong
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

from timing import best_of, once, ratio, seconds, show, use_one_core

use_one_core()

import numpy as np

from spklink.database.cliques import find_cliques
from spklink.posterior.inference.enumeration import enumerate_all
from spklink.posterior.inference.network import Network, beside, condition, gauged, marginals
from spklink.posterior.inference.plan import Budget, solve_exact
from spklink.posterior.likelihood import build_model
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import simulate

BUDGET = Budget(60.0, 4.0)
PLAIN_BITS = 20.0  # numpy enumerates up to here
PEER_BITS = 15.0  # of a bag; pyAgrum takes minutes beyond
Edges = list[tuple[int, int]]


def network_of(size: list[int], edges: Edges, scale: float = 1.0, seed: int = 0) -> Network:
    """Normal terms on any graph."""
    rng = np.random.default_rng(seed)
    ends = np.array(sorted(edges), np.int64).reshape(-1, 2)
    sizes = np.array(size, np.int64)
    a, b = ends.T.copy()
    cells = int((sizes[a] * sizes[b]).sum())
    unary, table = rng.normal(size=sizes.sum()), rng.normal(size=cells)
    return gauged(sizes, scale * unary, a, b, scale * table)[0]


def terms_of(network: Network, t: int) -> np.ndarray:
    """Of all states of a node; that of the first is 0."""
    return np.pad(network.field[network.start[t] : network.start[t + 1]], (1, 0))


def table_of(network: Network, e: int) -> np.ndarray:
    """Of all states of the two ends of an edge."""
    shape = network.size[network.a[e]] - 1, network.size[network.b[e]] - 1
    cells = network.coupling[network.cell_start[e] : network.cell_start[e + 1]]
    return np.pad(cells.reshape(shape), ((1, 0), (1, 0)))


def edges_of(shape: str, calls: int) -> Edges:
    if shape == "star":
        return list(itertools.combinations(range(calls), 2))
    if shape == "chain":
        return [(k, k + 1) for k in range(calls - 1)]
    made = simulate(shape="network", conversations=calls, eer=7.0, seed=0)
    model = build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)
    graph = condition(model).one(0)
    return list(zip(graph.a.tolist(), graph.b.tolist(), strict=True))


def numpy_enumeration(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """All configurations in one array, an axis a node: marginals and pairs."""
    n, value = len(network), np.zeros(network.size)

    def along(terms: np.ndarray, *axes: int) -> np.ndarray:
        return terms.reshape([network.size[t] if t in axes else 1 for t in range(n)])

    for t in range(n):
        value += along(terms_of(network, t), t)
    for e, (a, b) in enumerate(zip(network.a, network.b, strict=True)):
        value += along(table_of(network, e), a, b)
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    rest = range(n)
    one = [weight.sum(axis=tuple(u for u in rest if u != t)) for t in rest]
    pairs = zip(network.a, network.b, strict=True)
    both = [weight.sum(axis=tuple(u for u in rest if u not in (a, b))).ravel() for a, b in pairs]
    return np.concatenate(one), np.concatenate(both)


def pyagrum(network: Network) -> Callable[[], np.ndarray]:
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    model = gum.MarkovRandomField()
    for t, states in enumerate(network.size.tolist()):
        model.add(gum.RangeVariable(f"x{t}", "", 0, states - 1))
        own = terms_of(network, t)
        model.addFactor([f"x{t}"]).fillWith(np.exp(own).tolist())
    for e, (a, b) in enumerate(zip(network.a, network.b, strict=True)):
        by_b = table_of(network, e).T  # its first variable runs first
        model.addFactor([f"x{a}", f"x{b}"]).fillWith(np.exp(by_b).ravel().tolist())

    def infer() -> np.ndarray:
        engine = gum.ShaferShenoyMRFInference(model)
        engine.makeInference()
        return np.concatenate([engine.posterior(f"x{t}").toarray() for t in range(len(network))])

    return infer


def memory_of(work: Callable[[], object]) -> str:
    """What the work adds to the memory of this process at its peak."""
    forget = Path("/proc/self/clear_refs")
    if not forget.exists():
        return "?"
    ctypes.CDLL(None).malloc_trim(0)  # what earlier work has left would be used again
    forget.write_text("5")
    before = peak_memory() or 0
    work()
    return f"{((peak_memory() or 0) - before) / 2**20:.0f} MiB"


def many() -> None:
    """A thousand small cliques in one call, and by numpy one after the other."""
    rows, rng = [], np.random.default_rng(0)
    for states, most in ((2, 7), (3, 7), (4, 6), (7, 4), (7, 5)):
        calls = rng.integers(1, most + 1, 1000).tolist()
        made = [
            network_of([states] * n, edges_of("star", n), seed=k) for k, n in enumerate(calls) if n
        ]
        together = beside(made)
        ours = best_of(lambda together=together: enumerate_all(together), repeat=10)
        pairs = [one for one in made if len(one.a)]
        plain = once(lambda pairs=pairs: [numpy_enumeration(one) for one in pairs])
        count = f"{np.exp2(together.doublings()).sum():,.0f}"
        rows.append((states, f"1 to {most}", count, seconds(ours), ratio(plain, ours)))
    columns = ["states", "calls each", "configurations", "time", "numpy: times ours"]
    show("A thousand cliques, every two calls coupled", columns, rows)


GROWTH = (
    ("star", 2, (12, 20, 30)),
    ("star", 3, (8, 12, 18)),
    ("star", 7, (4, 6, 8, 10, 12)),
    ("chain", 7, (10, 100, 1000, 10000)),
    ("chain", 50, (10, 1000)),
    ("network", 2, (100, 500, 1499)),
    ("network", 3, (30, 100, 300)),
    ("network", 7, (10, 20, 30)),
)


def peers(network: Network, ours: float, marginal: np.ndarray, width: float) -> list[str]:
    """Times ours of numpy and of pyAgrum, where they can do it; their answers are compared."""
    cells = []
    if network.doublings <= PLAIN_BITS and len(network) < 30:
        assert np.allclose(numpy_enumeration(network)[0], marginal, atol=1e-9)
        cells.append(ratio(once(lambda: numpy_enumeration(network)), ours))
    else:
        cells.append("-")
    try:
        work = pyagrum(network) if width <= PEER_BITS and len(network) <= 1000 else None
    except ImportError:
        work = None
    if work is None:
        return [*cells, "-"]
    theirs = work()
    if not np.isfinite(theirs).all():  # it does not scale its sums
        return [*cells, "not a number"]
    assert np.allclose(theirs, marginal, atol=1e-9)
    return [*cells, ratio(once(work), ours)]


def growth() -> None:
    """The planner's choice against size and states."""
    from spklink.posterior.inference.tree import find_bags

    rows = []
    for shape, states, counts in GROWTH:
        for calls in counts:
            network = network_of([states] * calls, edges_of(shape, calls))
            found = solve_exact(network, BUDGET)
            head = (shape, states, calls, f"2^{network.doublings:.0f}")
            if found is None:
                rows.append((*head, "none", "-", "-", "-", "-"))
                continue
            memory = memory_of(lambda network=network: solve_exact(network, BUDGET))
            time = best_of(
                lambda network=network: solve_exact(network, BUDGET), repeat=5, at_most=2.0
            )
            marginal = marginals(network, found.zero, found.one)
            others = peers(network, time, marginal, find_bags(network).widest)
            rows.append((*head, found.method, seconds(time), memory, *others))
    columns = ["shape", "states", "calls", "configurations", "method", "time", "memory"]
    show("Exact, as planned", [*columns, "numpy: times ours", "pyAgrum"], rows)


def strong() -> None:
    """Dense cliques of 10 calls of 7 states, the stronger the further from exp's range."""
    rows = []
    for scale in (1.0, 20.0, 200.0, 1e4):
        network = network_of([7] * 10, edges_of("star", 10), scale)
        time = best_of(lambda network=network: solve_exact(network), repeat=3, at_most=2.0)
        rows.append((f"{scale:g}", seconds(time), solve_exact(network).method))
    show("A star of 10 calls of 7 states", ["terms of", "time", "method"], rows)


def main() -> None:
    parts = {"many": many, "growth": growth, "strong": strong}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
