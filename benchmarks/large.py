"""Large cliques: against pyAgrum and D-Wave, and how time and memory grow.

python benchmarks/large.py            all of it (about ten minutes)
python benchmarks/large.py star       one of: star, memory, tree, certified, network, growth
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from timing import best_of, once, ratio, seconds, show, use_one_core

use_one_core()

import numpy as np

from spklink.database.cliques import find_cliques
from spklink.database.links import find_links
from spklink.posterior.inference.network import Network, condition
from spklink.posterior.inference.plan import Budget, solve_network
from spklink.posterior.inference.roof import find_optimum
from spklink.posterior.likelihood import Model, build_model
from spklink.posterior.posterior import Options, solve
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import Simulation, simulate

MU_2 = 15.87  # equal error rate in per cent at which calibrated Gaussian scores have mu = 2
LIMIT_SECONDS = 10.0


def model_of(made: Simulation) -> Model:
    return build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)


def clique(shape: str, size: int, eer: float = 7.0, seed: int = 0) -> Network:
    made = simulate(shape=shape, conversations=size, eer=eer, seed=seed)
    return condition(model_of(made)).one(0)


def numpy_doubling(network: Network) -> tuple[np.ndarray, float]:
    """All configurations in one array, built by doubling: the quickest plain numpy."""
    n = len(network)
    dense = np.zeros((n, n))
    dense[network.a, network.b] = dense[network.b, network.a] = network.coupling
    value = np.zeros(1 << n)
    for i in range(n):
        m = 1 << i
        growth = np.empty(m)
        growth[0] = network.field[i]
        for k in range(i):
            growth[1 << k : 2 << k] = growth[: 1 << k] + dense[i, k]
        value[m : 2 * m] = value[:m] + growth
    top = value.max()
    weight = np.exp(value - top)
    total = weight.sum()
    one = np.array([weight.reshape(-1, 2, 1 << i)[:, 1].sum() for i in range(n)]) / total
    return one, network.constant + top + np.log(total)


def pyagrum(network: Network) -> Callable[[], object]:
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    model = gum.MarkovRandomField()
    for t in range(len(network)):
        model.add(gum.RangeVariable(f"x{t}", "", 0, 1))
        model.addFactor([f"x{t}"]).fillWith([1.0, float(np.exp(network.field[t]))])
    for a, b, j in zip(network.a, network.b, network.coupling, strict=True):
        model.addFactor([f"x{a}", f"x{b}"]).fillWith([1.0, 1.0, 1.0, float(np.exp(j))])

    def infer() -> np.ndarray:
        engine = gum.ShaferShenoyMRFInference(model)
        engine.makeInference()
        return np.array([engine.posterior(f"x{t}")[1] for t in range(len(network))])

    return infer


def dwave(network: Network) -> Callable[[], object]:
    import dimod
    from dwave.samplers import TreeDecompositionSampler

    quadratic = {
        (int(a), int(b)): -float(j)
        for a, b, j in zip(network.a, network.b, network.coupling, strict=True)
    }
    linear = {t: -float(h) for t, h in enumerate(network.field)}
    model = dimod.BinaryQuadraticModel(linear, quadratic, 0.0, "BINARY")
    sampler = TreeDecompositionSampler()
    return lambda: sampler.sample(model, num_reads=1, marginals=True, beta=1.0)


def star() -> None:
    """A 24-call star: log of the sum and all marginals."""
    network = clique("star", 24)
    ours = best_of(lambda: solve_network(network, method="trace"), repeat=20)
    plain = numpy_doubling(network)
    found = solve_network(network, method="trace").beliefs
    assert np.allclose(plain[0], found.one, atol=1e-9)
    rows = [("spklink, trace", seconds(ours), "1")]
    for name, work in (
        ("numpy enumeration", lambda: numpy_doubling(network)),
        ("pyAgrum, Shafer-Shenoy", pyagrum(network)),
        ("dwave-samplers, tree decomposition", dwave(network)),
    ):
        time = once(work)
        rows.append((name, seconds(time), ratio(time, ours)))
    show("A star of 24 calls: log of the sum and all marginals", ["", "time", "times ours"], rows)


def memory() -> None:
    """A 34-call star in a process of its own."""
    solve_network(clique("star", 14), method="trace")
    before = peak_memory()
    network = clique("star", 34)
    time = once(lambda: solve_network(network, method="trace", budget=Budget(600.0, 4.0)))
    rows = [
        ("time", seconds(time)),
        ("peak memory of the process", f"{peak_memory() / 2**30:.2f} GiB"),
        ("before the clique was solved", f"{before / 2**30:.2f} GiB"),
    ]
    show("A star of 34 calls, exact", ["", ""], rows)


def tree() -> None:
    """The largest tree-like network solved exactly in ten seconds, and 1499 calls."""
    rows = []
    network = clique("network", 1499)
    solve_network(clique("network", 300))
    solved = None

    def ours() -> None:
        nonlocal solved
        solved = solve_network(network)

    time = once(ours)
    rows.append(
        ("spklink", 1499, seconds(time), f"{solved.beliefs.method}, {solved.beliefs.certainty}")
    )
    for size in (149, 299, 449, 749, 1499):
        peer = clique("network", size)
        try:
            spent = once(dwave(peer))
        except Exception as error:
            rows.append(("dwave-samplers", size, "-", str(error)[:60]))
            break
        rows.append(("dwave-samplers", size, seconds(spent), "exact"))
        if spent > LIMIT_SECONDS:
            break
    show("Tree-like networks, exact", ["", "calls", "time", ""], rows)


def certified() -> None:
    """A 500-call star at mu = 2: proved optimum, all marginals certified."""
    warm = clique("star", 40, eer=MU_2)
    solve_network(warm, method="certified")
    network = clique("star", 500, eer=MU_2)
    solved = None

    def ours() -> None:
        nonlocal solved
        solved = solve_network(network)

    time = once(ours)
    found = solved.beliefs
    width = found.one_high - found.one_low
    low, high = (float(np.exp(network.value(found.best) - z)) for z in found.log_sum[::-1])
    rows = [
        ("time, optimum and certificate", seconds(time)),
        ("certainty", found.certainty),
        ("proved bits", f"{int(found.proved.sum())} of {len(network)}"),
        ("widest interval of a marginal", f"{width.max():.2g}"),
        ("probability of the best", f"{low:.8f} to {high:.8f}"),
    ]
    show("A star of 500 calls, mu = 2", ["", ""], rows)


def network() -> None:
    """100,000 calls at mu = 4.36."""
    solve_network(clique("network", 2000))
    net = clique("network", 100_000)
    optimum = None

    def find() -> None:
        nonlocal optimum
        optimum = find_optimum(net)

    first = once(find)
    solved = None

    def ours() -> None:
        nonlocal solved
        solved = solve_network(net)

    time = once(ours)
    found = solved.beliefs
    width = found.one_high - found.one_low
    rows = [
        ("optimum", seconds(first)),
        ("bits of it proved", f"{100 * optimum.proved.mean():.3f} %"),
        ("all of it, as planned", seconds(time)),
        ("method", f"{found.method}, {found.certainty}"),
        ("bits proved", f"{100 * found.proved.mean():.3f} %"),
        ("widest interval of a marginal", f"{width.max():.2g}"),
        ("mean width", f"{width.mean():.2g}"),
        ("peak memory", f"{peak_memory() / 2**30:.2f} GiB"),
    ]
    show("A network of 100,000 calls, mu = 4.36", ["", ""], rows)


def grow(size: int) -> None:
    """One line of the growth table, in a process of its own."""
    small = simulate(shape="network", conversations=50)
    solve(model_of(small), options=Options(method="certified"))
    made = simulate(shape="network", conversations=size)
    before = peak_memory()
    found = None

    def ours() -> None:
        nonlocal found
        cliques, links = find_cliques(made.conversations), find_links(made.conversations)
        found = solve(build_model(made.conversations, cliques, links, made.llr))

    time = once(ours)
    width = found.exchanged_high - found.exchanged_low
    wrong = int((found.best != made.truth).sum())
    print(
        *(size, len(made.links.first), f"{time:.2f}", f"{before / 2**30:.2f}"),
        *(f"{peak_memory() / 2**30:.2f}", found.method[0], found.certainty[0]),
        *(f"{width.max():.2g}", wrong),
    )


def growth() -> None:
    rows = []
    for size in (100, 1000, 10_000, 100_000, 1_000_000):
        done = alone("grow", str(size))
        rows.append(tuple(done.split()))
    columns = ["conversations", "pairs", "seconds", "GiB before", "GiB peak"]
    columns += ["method", "certainty", "widest", "wrong"]
    show("Growth: a sparse network, from table and scores to posterior", columns, rows)


def alone(*words: str) -> str:
    command = [sys.executable, __file__, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run() -> None:
    star()
    print(alone("memory"))
    tree()
    certified()
    print(alone("network"))
    growth()


if __name__ == "__main__":
    parts = {f.__name__: f for f in (star, memory, tree, certified, network, growth)}
    if len(sys.argv) > 2 and sys.argv[1] == "grow":
        grow(int(sys.argv[2]))
    elif len(sys.argv) > 1:
        parts[sys.argv[1]]()
    else:
        run()
