"""Large databases whose lists may be wrong: certified, next to the engine of two states.

python benchmarks/states_large.py                    all of it, each case in a process of its own
python benchmarks/states_large.py network 2000 7     one case: shape, conversations, error rate
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter, process_time

import numpy as np

from spklink.database.cliques import find_cliques
from spklink.posterior.likelihood import build_model
from spklink.posterior.posterior import solve
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.seats import build_seats
from spklink.posterior.states.solve import solve_seats
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import simulate

RATE = 0.01  # of list errors
CASES = [("network", n, eer) for n in (2_000, 20_000, 100_000) for eer in (3.0, 7.0)]
CASES += [("star", n, 7.0) for n in (100, 500)]
WIDE = 0.05


def run(shape: str, conversations: int, eer: float) -> None:
    _solve(shape, 30, eer)  # compiles
    found = _solve(shape, conversations, eer)
    print(f"{shape} {conversations} at {eer:g} %:", "; ".join(found), flush=True)


def _solve(shape: str, conversations: int, eer: float) -> list[str]:
    made = simulate(shape=shape, conversations=conversations, eer=eer, seed=1)
    cliques = find_cliques(made.conversations)
    began, used = perf_counter(), process_time()
    best = solve(build_model(made.conversations, cliques, made.links, made.llr)).best
    lines = [f"two states {_since(began, used)}"]
    start = np.stack([best, 1 - best], axis=1).ravel().astype(np.int64)
    began, used = perf_counter(), process_time()
    seats = build_seats(made.conversations, made.links, made.llr, rate=RATE)
    found = solve_seats(seats, start=start)
    lines.append(f"states {_since(began, used)}, {peak_memory() / 1e9:.2f} GB")
    width = np.zeros(len(seats))
    np.maximum.at(width, Events(seats).node, found.high - found.low)
    kinds = {kind: found.certainty.count(kind) for kind in sorted(set(found.certainty))}
    lines.append(f"pieces {kinds}, mean width {(found.high - found.low).mean():.2g}")
    half, nearly = np.quantile(width, [0.5, 0.99])
    share = float((width > WIDE).mean())
    lines.append(f"of conversations: half {half:.2g}, 99 % {nearly:.2g}, {share:.2%} above {WIDE}")
    return lines


def _since(began: float, used: float) -> str:
    return f"{perf_counter() - began:.1f} s ({process_time() - used:.1f} s of processor)"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
    else:
        for shape, conversations, eer in CASES:
            subprocess.run(
                [sys.executable, __file__, shape, str(conversations), str(eer)], check=True
            )
