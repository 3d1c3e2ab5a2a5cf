"""Mixture and recognizer on one core: EM against scikit-learn and against what sgemm allows.

`gmm.py` for all but the last; `gmm.py long` also streams 10^7 frames through 1024 Gaussians.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from timing import Runs, in_turns, ratio, seconds, show, use_one_core

use_one_core()

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import make_conversations
from spklink.recognizers import gmm_ubm, normalise
from spklink.recognizers import mixture as gmm
from spklink.recognizers.mixture import Mixture, expectation, maximisation, statistics
from spklink.recognizers.products import all_pairs, pair_scores, table
from spklink.runs.stages import peak_memory

Singles = NDArray[np.float32]
WIDTH = 60
FRAMES = 32_768


def speech_like(count: int, seed: int) -> Singles:
    """Slowly moving frames, about standard normal in every dimension."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=(count + 15, WIDTH))
    smooth = sum(steps[k : k + count] for k in range(16)) / 4.0
    return np.asarray(smooth, np.float32)


def least(works: dict[str, Callable[[], Any]], repeat: int = 7) -> dict[str, Runs]:
    """Seconds of CPU of each."""
    return in_turns(works, repeat, time.process_time)


def square_product(size: int = 2048) -> tuple[Callable[[], Any], float]:
    """A large matrix product and its number of operations."""
    a = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    out = np.empty_like(a)
    b = a.T.copy()
    return lambda: np.matmul(a, b, out=out), 2.0 * size**3


def peer(mixture: Mixture, dtype: type, iterations: int, frames: Singles) -> Any:
    """scikit-learn from the same start."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        len(mixture.weights),
        covariance_type="diag",
        tol=0.0,
        reg_covar=0.0,
        max_iter=iterations,
        weights_init=mixture.weights.astype(dtype),
        means_init=mixture.means.astype(dtype),
        precisions_init=(1.0 / mixture.variances).astype(dtype),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(frames.astype(dtype))


def em_speed(components: int) -> None:
    frames = speech_like(FRAMES, 1)
    mixture = gmm.train(lambda: [frames], components, seed=0, iterations=1)
    product, operations = square_product()
    random = np.random.default_rng(0)

    def step(top: int | None) -> Callable[[], Any]:
        return lambda: maximisation(expectation(mixture, [frames], top=top), random)

    found = least(
        {
            "sgemm": product,
            "exact": step(None),
            "top 8": step(8),
            "statistics": lambda: statistics(mixture, frames),
            "one": lambda: peer(mixture, np.float32, 1, frames),
            "three": lambda: peer(mixture, np.float32, 3, frames),
        },
        repeat=3,
    )
    theirs = (found["three"] - found["one"]) / 2.0
    speed = operations / found["sgemm"]
    # Two products of (frames x 120) with (120 x Gaussians); statistics need 120 and 60 columns.
    allowed = FRAMES * 4.0 * 2 * WIDTH * components / speed
    rows = [
        ("sgemm allows", seconds(allowed), "", ""),
        *(
            (name, seconds(found[name]), f"{100 * share / found[name]:.0f} %", other)
            for name, share, other in (
                ("exact", allowed, ratio(theirs, found["exact"])),
                ("top 8", allowed, ratio(theirs, found["top 8"])),
                ("statistics", 0.75 * allowed, ""),
            )
        ),
        ("scikit-learn, float32", seconds(theirs), f"{100 * allowed / theirs:.0f} %", "1"),
    ]
    show(
        f"EM iteration, {components} Gaussians x {WIDTH}, {FRAMES} frames; sgemm "
        f"{speed / 1e9:.0f} Gflop/s",
        ["", "time", "of sgemm", "x scikit-learn"],
        rows,
    )


def em_agreement() -> None:
    frames = speech_like(8192, 2)
    start = gmm.train(lambda: [frames], 64, seed=0, iterations=1)
    ours, random = start, np.random.default_rng(0)
    for _ in range(5):
        ours = maximisation(expectation(ours, [frames]), random, variance_floor=1e-9)
    theirs = peer(start, np.float64, 5, frames)
    mean = expectation(ours, [frames]).log_likelihood / len(frames)
    rows = [
        ("mean log-likelihood", f"{abs(mean - theirs.score(frames.astype(np.float64))):.1e}"),
        ("weights", f"{np.abs(ours.weights - theirs.weights_).max():.1e}"),
        ("means", f"{np.abs(ours.means - theirs.means_).max():.1e}"),
        ("variances", f"{np.abs(ours.variances - theirs.covariances_).max():.1e}"),
    ]
    show(
        "after 5 iterations from one start, largest difference from scikit-learn in float64",
        ["", "difference"],
        rows,
    )


def scoring_speed(name: str, sides: int) -> None:
    preset = gmm_ubm.PRESETS[name]
    random = np.random.default_rng(3)
    shape = (preset.components, WIDTH)
    mixture = Mixture(np.full(shape[0], 1.0 / shape[0]), np.zeros(shape), np.ones(shape))
    depth = shape[0] * WIDTH
    vectors = random.random((sides, depth + (shape[0] if preset.score == "dot" else 0)), np.float32)
    compared = gmm_ubm.GmmUbm(preset, (mixture,), np.full(depth, 0.5, np.float32)).product
    half = np.arange(sides // 2)
    pairs = random.integers(sides, size=(2, 2000))
    product, operations = square_product()
    found = least(
        {
            "sgemm": product,
            "table": lambda: table(compared, vectors, half, half + len(half)),
            "all pairs": lambda: all_pairs(compared, vectors),
            "few pairs": lambda: pair_scores(compared, vectors, *pairs),
        },
        repeat=3,
    )
    speed = operations / found["sgemm"]
    cost = 2.0 * compared.depth / speed
    rows = [
        (
            name,
            seconds(found[name]),
            f"{1e6 * found[name] / count:.2f}",
            of(cost * count, found[name]),
        )
        for name, count in (
            ("table", len(half) ** 2),
            ("all pairs", sides * (sides + 1) // 2),
            ("few pairs", pairs.shape[1]),
        )
    ]
    show(
        f"scoring, preset {name}, {sides} sides of {depth} numbers; sgemm "
        f"{speed / 1e9:.0f} Gflop/s",
        ["", "time", "µs a pair", "of sgemm"],
        rows,
    )


def of(allowed: float, needed: float) -> str:
    return f"{100 * allowed / needed:.0f} %"


def normalisation_speed(sides: int = 20_000) -> None:
    random = np.random.default_rng(4)
    scores = random.normal(size=(normalise.ROWS, normalise.POOL)).astype(np.float32)
    who = random.integers(3000, size=sides // 2)
    calls = make_conversations((f"{m}", f"a{k}", f"b{m % 3000}") for m, k in enumerate(who))
    begin = time.perf_counter()
    normalise.fit(
        lambda r, c: scores[: len(r), : len(c)].copy(), calls, np.ones(sides, bool), seed=0
    )
    taken = time.perf_counter() - begin
    show(
        "normalisation without the scores",
        ["sides", "time", "µs a side"],
        [(sides, seconds(taken), f"{1e6 * taken / sides:.0f}")],
    )


def streaming(total: int, components: int) -> None:
    block = speech_like(50_000, 5)

    def blocks() -> Iterator[Singles]:
        return (block for _ in range(total // len(block)))

    gmm.train(lambda: [block[:5000]], 8, seed=0, iterations=1)
    before, begin = peak_memory(), time.perf_counter()
    gmm.train(blocks, components, seed=0, iterations=1, max_frames=None)
    taken = time.perf_counter() - begin
    held = peak_memory() - before
    gmm.train(blocks, 8, seed=0, iterations=1)
    rows = [
        (f"all streamed, {components} Gaussians", seconds(taken), f"{held / 1e6:.0f} MB"),
        ("600,000 spread frames held, 8 Gaussians", "", f"{(peak_memory() - before) / 1e6:.0f} MB"),
    ]
    show(
        f"one EM iteration from its start over {total:,} frames, memory beyond the features",
        ["", "time", "memory"],
        rows,
    )


def main() -> None:
    long = "long" in sys.argv[1:]
    streaming(10_000_000 if long else 1_000_000, 1024 if long else 256)  # first: peak memory
    for components in (1024, 256):
        em_speed(components)
    em_agreement()
    scoring_speed("default", 4096)
    scoring_speed("paper", 1024)
    normalisation_speed()


if __name__ == "__main__":
    main()
