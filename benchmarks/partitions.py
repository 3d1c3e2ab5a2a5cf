"""Partitions: time and memory of the exact programme, and of linking very many sides.

    python benchmarks/partitions.py exact 8 22          exact posterior, by the number of sides
    python benchmarks/partitions.py enumerate 8 12      all partitions one by one, for comparison
    python benchmarks/partitions.py convolution 8 20    fast subset convolution, and its error
    python benchmarks/partitions.py linking 10000 30000 100000     simulated sides, linked

Every row is a process of its own; memory is its peak. Seconds are of the processor, so that what
else runs on the machine matters little; nothing is asserted about them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from timing import say_where

ROOT = Path(__file__).parent.parent


def voices(sides: int, people: int, seed: int = 0, mu: float = 4.0) -> np.ndarray:
    """Calibrated log-likelihood-ratios between sides."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, people, sides)
    llr = rng.normal(np.where(who[:, None] == who, mu, -mu), np.sqrt(2 * mu), (sides, sides))
    return np.triu(llr, 1) + np.triu(llr, 1).T


def memory() -> float:
    from spklink.runs.stages import peak_memory

    return (peak_memory() or 0) / 1e9


def exact(sides: int) -> str:
    from spklink.partitions.exact import solve_exactly
    from spklink.partitions.items import make_items, make_problem

    rows = []
    for speakers in (None, max(2, sides // 3)):
        small = make_problem(make_items(voices(5, 2)), speakers=None if speakers is None else 2)
        solve_exactly(small).entropy_bits  # noqa: B018  (compiles)
        problem = make_problem(make_items(voices(sides, max(2, sides // 3))), speakers=speakers)
        begin = time.process_time()
        found = solve_exactly(problem)
        found.pairs, found.entropy_bits  # noqa: B018
        rows.append(f"{time.process_time() - begin:9.3f}")
    return f"{sides:6}  level I {rows[0]} s  level II {rows[1]} s  {memory():6.3f} GB"


def enumeration(sides: int) -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    from plain_partitions import enumerate_all

    llr = voices(sides, max(2, sides // 3)).tolist()
    begin = time.process_time()
    every = enumerate_all(llr, weight=lambda n: 2 / n, prior=("uniform", 1.0, 0.0))
    seconds = time.process_time() - begin
    return f"{sides:6}  {len(every):12,} partitions  {seconds:9.3f} s  {memory():6.3f} GB"


def convolution(sides: int) -> str:
    """Z by ranked transforms: exp of a set power series, floats throughout."""
    from spklink.partitions.blocks import block_values
    from spklink.partitions.exact import solve_exactly
    from spklink.partitions.items import make_items, make_problem

    rows = []
    for what, mu in (("no scores", 0.0), ("weak", 0.5), ("ordinary", 4.0)):
        llr = voices(sides, max(2, sides // 3), mu=mu) if mu else np.zeros((sides, sides))
        problem = make_problem(make_items(llr))
        value = block_values(problem)
        begin = time.process_time()
        z = set_power_exp(np.exp(value), sides)
        seconds = time.process_time() - begin
        right = solve_exactly(problem).log_total
        error = abs(z / np.exp(right) - 1.0)
        rows.append(f"{what} {error:.1e}")
    return f"{sides:6}  {seconds:8.3f} s  relative error: {', '.join(rows)}"


def set_power_exp(f: np.ndarray, n: int) -> float:
    """The coefficient of the full set in exp of a set power series: a ranked zeta transform, the
    exponential of a polynomial for every subset, and back."""
    bits = np.array([bin(mask).count("1") for mask in range(1 << n)])
    ranked = np.zeros((n + 1, 1 << n))
    for k in range(1, n + 1):
        ranked[k, bits == k] = f[bits == k]
    for i in range(n):
        view = ranked.reshape(n + 1, -1, 2, 1 << i)
        view[:, :, 1] += view[:, :, 0]
    z = np.zeros_like(ranked)
    z[0] = 1.0
    for k in range(1, n + 1):  # k z_k = sum over j of j f_j z_(k-j)
        for j in range(1, k + 1):
            z[k] += j * ranked[j] * z[k - j]
        z[k] /= k
    sign = np.where((n - bits) % 2 == 0, 1.0, -1.0)
    return float((sign * z[n]).sum())


def linking(sides: int) -> str:
    import spklink
    from spklink.measures.partitions import agreement

    rng = np.random.default_rng(0)
    people, width = sides // 8, 64
    voice = rng.normal(size=(people, width)).astype(np.float32)
    calls = rng.integers(0, people, (sides // 2, 2))
    calls[:, 1] = (calls[:, 0] + 1 + rng.integers(0, people - 1, len(calls))) % people
    who = calls.ravel()
    vectors = voice[who] + 0.75 * rng.normal(size=(len(who), width)).astype(np.float32)
    rows = [{"conversation": f"c{m}"} for m in range(sides // 2)]
    begin, clock = time.process_time(), time.time()
    found = spklink.partition(rows, embeddings=vectors, method="agglomerative")
    seconds, wall = time.process_time() - begin, time.time() - clock
    a = agreement(found.beliefs.label, who[found.used])
    stages = ", ".join(f"{k} {v:.1f}" for k, v in found.stages.seconds.items() if v > 1.0)
    impure = f"{100 * a.cluster_impurity:.2f} and {100 * a.speaker_impurity:.2f} %"
    return (
        f"{sides:8}  {people:7} speakers, found {a.clusters:7}  ARI {a.adjusted_rand:.4f}  "
        f"impurity {impure}  {seconds:8.1f} s of the processor, {wall:.0f} s  "
        f"{memory():6.2f} GB  ({stages})"
    )


WORK = {"exact": exact, "enumerate": enumeration, "convolution": convolution, "linking": linking}


def main(what: str, *numbers: str) -> None:
    sizes = [int(n) for n in numbers]
    if what != "linking" and len(sizes) == 2:
        sizes = list(range(sizes[0], sizes[1] + 1))
    if len(sizes) == 1:
        print(WORK[what](sizes[0]), flush=True)
        return
    say_where()
    for size in sizes:
        subprocess.run([sys.executable, __file__, what, str(size)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
