"""Detection metrics: all of 10^7 trials against llreval, and time and memory of 10^8.

`detection.py` for all; `detection.py large` only the 10^8, which that also runs in a fresh process.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spklink.measures.detection import COSTS, Detection, measure, order
from spklink.runs.stages import peak_memory
from timing import once, ratio, seconds, show

Singles = NDArray[np.float32]
Scores = NDArray[np.floating]
Timing = tuple[float, float]
MOST_MEMORY = 1.5e9
BLOCK = 1 << 20
NAMES = ("eer", "cllr", "min_cllr", *COSTS)


def scores(count: int, mean: float, seed: int) -> Singles:
    """Calibrated if the others have minus this mean; made in blocks, so that no copy is held."""
    random, made = np.random.default_rng(seed), np.empty(count, np.float32)
    for begin in range(0, count, BLOCK):
        part = made[begin : begin + BLOCK]
        random.standard_normal(out=part, dtype=np.float32)
        part *= np.float32(math.sqrt(2.0 * abs(mean)))
        part += np.float32(mean)
    return made


def trials(total: int, share: float) -> tuple[Singles, Singles]:
    targets = int(total * share)
    return scores(targets, 3.0, 1), scores(total - targets, -3.0, 2)


def llreval(targets: Singles, others: Singles) -> list[float]:
    """The same metrics, from one PAV of theirs."""
    from llreval.cllr import cllr, min_cllr
    from llreval.pav_rocch import PAV, ROCCH
    from llreval.utils import tarnon_2_scoreslabels

    pooled = PAV(*tarnon_2_scoreslabels(targets, others))
    hull = ROCCH(pooled)

    def cost(p: float, c_miss: float, c_fa: float) -> float:
        odds = p * c_miss / ((1.0 - p) * c_fa)
        return float(hull.Bayes_error_rate(math.log(odds)) * (1.0 + odds) / min(odds, 1.0))

    costs = [float(np.mean([cost(*point) for point in points])) for points in COSTS.values()]
    return [hull.EER(), float(cllr(targets, others)), float(min_cllr(pooled)), *costs]


def numbers(found: Detection) -> list[float]:
    return [found.eer, found.cllr, found.min_cllr, *found.min_dcf.values()]


def farthest(a: list[float], b: list[float]) -> str:
    name, gap = max(
        ((name, abs(x - y)) for name, x, y in zip(NAMES, a, b, strict=True)), key=lambda g: g[1]
    )
    return f"{gap:.0e} ({name})"


def least(works: dict[str, Callable[[], object]], repeat: int = 3) -> dict[str, Timing]:
    """Least wall and CPU seconds of each, taking turns so that a busy moment hits all."""
    found = dict.fromkeys(works, (math.inf, math.inf))
    for _ in range(repeat):
        for name, work in works.items():
            cpu = time.process_time()
            wall = once(work)
            cpu = time.process_time() - cpu
            found[name] = min(found[name][0], wall), min(found[name][1], cpu)
    return found


def row(name: str, targets: Scores, others: Scores) -> tuple[str, ...]:
    found = least(
        {
            "one": lambda: measure(targets, others, threads=1),
            "two": lambda: measure(targets, others, threads=2),
            "llreval": lambda: llreval(targets, others),
        }
    )
    (_, one), (two, _), (wall, cpu) = found.values()
    gap = farthest(numbers(measure(targets, others)), llreval(targets, others))
    alone = (seconds(one), seconds(cpu), ratio(cpu, one))
    return name, *alone, seconds(two), seconds(wall), ratio(wall, two), gap


def against_llreval(total: int) -> None:
    half, few = trials(total, 0.5), trials(total, 0.01)
    double = [part.astype(np.float64) for part in half]
    rows = [
        row("half targets, float32", *half),
        row("1 % targets, float32", *few),
        row("half targets, float64", *double),
        row("the same, to .1", *(part.round(1) for part in double)),
    ]
    columns = ["", "1 thread", "llreval", "x, CPU", "2 threads", "llreval", "x, wall"]
    show(
        f"EER, Cllr, min Cllr and {len(COSTS)} minimum costs of {total:,} trials: CPU time with 1 "
        "thread, wall time with 2",
        [*columns, "differs at most"],
        rows,
    )


def large(total: int = 100_000_000) -> None:
    """In this process, whose peak is that of the scores and all metrics together."""
    measure([1.0], [0.0])
    rows = []
    for share in (0.01, 0.5):  # first the one that needs more
        targets, others = trials(total, share)
        taken = once(lambda t=targets, n=others: measure(t, n))
        rows.append((f"{share:.0%} targets", seconds(taken), f"{peak_memory() / 1e9:.2f} GB"))
        del targets, others
    show(
        f"{total:,} trials, float32, scores included; allowed {MOST_MEMORY / 1e9:.1f} GB",
        ["", "time", "peak so far"],
        rows,
    )


def curves(total: int) -> None:
    sorted_trials = order(*trials(total, 0.5))
    rows = [
        (name, seconds(once(work)))
        for name, work in (
            ("PAV", sorted_trials.pav),
            ("DET, 500 points", sorted_trials.det_points),
            ("Tippett, 500 points", sorted_trials.tippett_points),
        )
    ]
    show(f"after the sort of {total:,} trials", ["", "time"], rows)


def main() -> None:
    if "large" in sys.argv[1:]:
        large()
        return
    for dtype in (np.float32, np.float64):  # compile and import first
        llreval(np.ones(2, dtype), np.zeros(2, dtype))
        measure(np.ones(2, dtype), np.zeros(2, dtype))
    against_llreval(10_000_000)
    curves(10_000_000)
    subprocess.run([sys.executable, __file__, "large"], check=True)


if __name__ == "__main__":
    main()
