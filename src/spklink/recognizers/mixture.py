"""A Gaussian mixture with diagonal covariances: training by EM, and the statistics of a side.

Conventions: rows = frames t, columns = features d, j = Gaussian; features are float32, parameters
and totals float64. Frames come from a callable whose blocks can be iterated again and again
(arrays, memory-mapped files); they are cut anew into blocks of BLOCK frames, so the result does not
depend on how they arrive, and no frames x Gaussians array spans more than one block.

A block costs two matrix products in float32, [x, x^2] @ [mean/var, -1/(2 var)] and
posterior.T @ [x, x^2], about an origin amid the means so that little is lost to cancellation, and
one softmax between them; its totals are added up in float64, in the order of the blocks, by groups
of GROUP blocks, and those of the groups in their order. The same input and seed give the same bytes
whatever hands do it: a matrix product never runs on more than one thread (its rounding would depend
on the number), blocks run side by side instead or, where hands are far, groups.

Exact by default. With `top` only the `top` most probable Gaussians of a frame share it. Telephone
speech, 1024 Gaussians, top = 8: 1.5 times as fast, the log-likelihood .01 a frame too low (of 78),
.2 % of the posterior on other Gaussians; top = 16: .002 and .05 %. With 256 it gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.hands import ALONE, Hands, Reached
from spklink.recognizers.responsibilities import softmax, sparse_sums
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Blocks = Callable[[], Iterable[Singles]]

BLOCK = 1024  # frames: posteriors for 1024 Gaussians are 4 MB and stay in the cache
GROUP = 64  # blocks
SPEED = 2e10  # frames x Gaussians x features a second of one core, roughly
START_FRAMES = 20  # a Gaussian, for k-means++, and
FEWEST_START_FRAMES = 5000
START_ROUNDS = 4  # of k-means after it
DEAD = 0.02  # of the average frames a Gaussian: one with less, or under 3, is put elsewhere
MOST_FRAMES = 600_000  # that are learned from
EARLY_FRAMES = 300  # a Gaussian, in rounds that only have to come near
LARGE = 1024  # Gaussians: the largest published mixture. Few frames are enough to run up to there;
FEWEST_FRAMES, FEWEST_OF_LARGE = 2, START_FRAMES  # a Gaussian; beyond, they must teach something
LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class Mixture:
    """Weights (J,), means (J, D) and variances (J, D)."""

    weights: Floats
    means: Floats
    variances: Floats

    @cached_property
    def density(self) -> _Density:
        """The mixture as the block products use it."""
        origin = (self.weights @ self.means).astype(np.float32)
        means = self.means - origin
        scaled = np.concatenate([means / self.variances, -0.5 / self.variances], axis=1)
        constant = np.log(self.weights) - 0.5 * (
            np.log(2.0 * np.pi * self.variances) + means**2 / self.variances
        ).sum(1)
        return _Density(
            origin,
            np.ascontiguousarray((LOG2E * scaled).T, np.float32),
            (LOG2E * constant).astype(np.float32),
        )


UNTRAINED = Mixture(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))


@dataclass(frozen=True)
class _Density:
    """log2 of weight x density of Gaussian j at x = constant[j] + [y, y^2] @ linear[:, j]."""

    origin: Singles  # (D,), y = x - origin
    linear: Singles  # (2D, J)
    constant: Singles  # (J,)


@dataclass(frozen=True)
class Statistics:
    """What a side says about each Gaussian: n_j = sum gamma, f_j = sum gamma (x - mean_j)."""

    n: Floats  # (J,)
    f: Floats  # (J, D)


@dataclass(frozen=True)
class Moments:
    """Totals of one E-step, about the origin of its mixture."""

    origin: Floats  # (D,)
    zeroth: Floats  # (J,)
    first_second: Floats  # (J, 2D)
    log_likelihood: float  # sum over the frames, nats

    @classmethod
    def nothing(cls, mixture: Mixture) -> Moments:
        """Of no frames at all."""
        (count, width), origin = mixture.means.shape, mixture.density.origin
        return cls(origin.astype(np.float64), np.zeros(count), np.zeros((count, 2 * width)), 0.0)

    def __add__(self, other: Moments) -> Moments:
        both = self.first_second + other.first_second
        found = self.log_likelihood + other.log_likelihood
        return Moments(self.origin, self.zeroth + other.zeroth, both, found)


def train(
    blocks: Blocks,
    components: int,
    *,
    seed: int | list[int],
    iterations: int = 10,
    early: int = 0,
    variance_floor: float = 0.01,
    max_frames: int | None = MOST_FRAMES,
    top: int | None = None,
    hands: Hands = ALONE,
    progress: Callable[[int, float], None] | None = None,
) -> Mixture:
    """EM from a k-means++ start; `variance_floor` is a share of the variance of all frames.

    Of more than `max_frames` frames that many, evenly spread, are used and held; with None all are
    streamed in every iteration. `early` iterations come before the others and see EARLY_FRAMES a
    Gaussian. `progress` is told the iterations done and the mean log-likelihood of a frame that the
    last one found.
    """
    total = sum(len(block) for block in blocks())
    check_frames(total, components, max_frames)
    held = None
    if max_frames is not None:
        held = _spread(blocks(), total, min(total, max(max_frames, components)))
        blocks, total = partial(iter, [held]), len(held)
    expect = _expecting(blocks, held, components, top, hands)
    random = np.random.default_rng(seed)
    sampled = min(total, max(START_FRAMES * components, FEWEST_START_FRAMES))
    mixture = _start(_spread(blocks(), total, sampled), components, random)
    few = [_spread(blocks(), total, min(total, EARLY_FRAMES * components))] if early else []
    threads = hands.worth(0.0).count
    for done in range(1, early + iterations + 1):
        soon = done <= early
        moments = expectation(mixture, few, top=top, threads=threads) if soon else expect(mixture)
        mixture = maximisation(moments, random, variance_floor=variance_floor)
        if progress is not None:
            progress(done, moments.log_likelihood / moments.zeroth.sum())
    return mixture


def check_frames(total: int, components: int, max_frames: int | None = MOST_FRAMES) -> None:
    """Refuse more Gaussians than so many frames can teach."""
    used = total if max_frames is None else min(total, max_frames)
    needed = components * (FEWEST_FRAMES if components <= LARGE else FEWEST_OF_LARGE)
    if used >= needed:
        return
    there = f"{total} frames of speech ({total // 100} s)"
    if used == max_frames:
        there = f"the {used} frames that are learned from, however much speech there is,"
    enough = max(used // FEWEST_OF_LARGE, min(used // FEWEST_FRAMES, LARGE))
    remedy = "ask for" if used == max_frames else "add audio, give background audio or ask for"
    raise SpklinkError(
        f"{there} cannot train {components} Gaussians, which need {needed}; {remedy} fewer "
        f"components (--components {enough})"
    )


def _spread(blocks: Iterable[Singles], total: int, count: int) -> Singles:
    """(count, D) frames at even distances over all of them."""
    wanted = np.arange(count, dtype=np.int64) * total // count
    picked, begin = np.empty((0, 0), np.float32), 0
    for block in blocks:
        first, last = np.searchsorted(wanted, [begin, begin + len(block)])
        if not picked.size:
            picked = np.empty((count, block.shape[1]), np.float32)
        picked[first:last] = block[wanted[first:last] - begin]
        begin += len(block)
    return picked


def expectation(
    mixture: Mixture, blocks: Iterable[Singles], *, top: int | None = None, threads: int = 1
) -> Moments:
    """Posterior-weighted totals of all frames."""
    total = Moments.nothing(mixture)
    work = partial(_block_moments, mixture.density, top=top)
    with one_blas_thread():
        found = in_order(work, _recut(blocks), threads)
        while some := list(islice(found, GROUP)):
            total += _group_moments(mixture, some)
    return total


def _group_moments(mixture: Mixture, blocks: Iterable[tuple[Singles, Singles, float]]) -> Moments:
    """What some blocks come to."""
    total, log_likelihood = Moments.nothing(mixture), 0.0
    for n, sums, found in blocks:
        np.add(total.zeroth, n, out=total.zeroth)
        np.add(total.first_second, sums, out=total.first_second)
        log_likelihood += found
    return replace(total, log_likelihood=log_likelihood)


def _expecting(
    blocks: Blocks, held: Singles | None, components: int, top: int | None, hands: Hands
) -> Callable[[Mixture], Moments]:
    """Who computes the totals: these hands, where the frames are held and there are enough."""
    work = 0.0 if held is None else held.size * components / SPEED
    hands = hands.worth(work)
    if held is None or not hands.far:
        return lambda mixture: expectation(mixture, blocks(), top=top, threads=hands.count)
    laid, begins = hands.reach(held), range(0, len(held), GROUP * BLOCK)

    def far(mixture: Mixture) -> Moments:
        groups = hands.each(partial(_moments_from, mixture, laid, top), begins)
        return sum(groups, start=Moments.nothing(mixture))

    return far


def _moments_from(mixture: Mixture, frames: Reached, top: int | None, begin: int) -> Moments:
    """The totals of one group of frames."""
    return expectation(mixture, [frames.get()[begin : begin + GROUP * BLOCK]], top=top)


def maximisation(
    moments: Moments, random: np.random.Generator, *, variance_floor: float = 0.01
) -> Mixture:
    """The mixture that the totals call for; Gaussians without frames split the heaviest ones."""
    n, width = moments.zeroth, len(moments.origin)
    both = moments.first_second / np.maximum(n, 1e-30)[:, None]
    means, squares = both[:, :width], both[:, width:]
    overall = moments.first_second.sum(0) / n.sum()
    floor = variance_floor * np.maximum(overall[width:] - overall[:width] ** 2, 1e-10)
    variances = np.maximum(squares - means**2, floor)
    means, weights = means + moments.origin, n / n.sum()
    for j in np.flatnonzero(n < max(DEAD * n.mean(), min(3.0, n.mean() / 2.0))):
        heaviest = int(weights.argmax())
        step = 0.5 * np.sqrt(variances[heaviest]) * random.choice([-1.0, 1.0], width)
        weights[[j, heaviest]] = weights[heaviest] / 2.0
        variances[j] = variances[heaviest]
        means[j], means[heaviest] = means[heaviest] + step, means[heaviest] - step
    return Mixture(weights / weights.sum(), means, variances)


def statistics(mixture: Mixture, features: Singles, *, top: int | None = None) -> Statistics:
    """Zeroth and centred first moments of one side, (frames, D)."""
    density = mixture.density
    n, f = np.zeros(len(mixture.weights)), np.zeros(mixture.means.shape)
    with one_blas_thread():
        for block in _recut([features]):
            zeroth, sums, _ = _block_moments(density, block, top=top, moments=1)
            n += zeroth
            f += sums
    return Statistics(n, f - n[:, None] * (mixture.means - density.origin))


def _recut(blocks: Iterable[Singles]) -> Iterator[Singles]:
    """The same frames in blocks of BLOCK, all finite: the kernels rely on it."""
    parts: list[Singles] = []
    waiting = 0
    for block in blocks:
        begin = 0
        while begin < len(block):
            parts.append(block[begin : begin + BLOCK - waiting])
            begin, waiting = begin + len(parts[-1]), waiting + len(parts[-1])
            if waiting == BLOCK:
                yield _joined(parts)
                parts, waiting = [], 0
    if parts:
        yield _joined(parts)


def _joined(parts: list[Singles]) -> Singles:
    """One block; what is in one piece already is not copied."""
    single = len(parts) == 1 and parts[0].dtype == np.float32
    frames = parts[0] if single else np.concatenate(parts, dtype=np.float32)
    if not np.isfinite(frames).all():
        raise SpklinkError("features hold a value that is not a finite number")
    return frames


def _block_moments(
    density: _Density, frames: Singles, *, top: int | None = None, moments: int = 2
) -> tuple[Singles, Singles, float]:
    """Zeroth (J,) and the first `moments` moments (J, moments x D) of a block; log-likelihood."""
    width, count = frames.shape[1], len(density.constant)
    both = np.empty((len(frames), 2 * width), np.float32)
    np.subtract(frames, density.origin, out=both[:, :width])
    np.square(both[:, :width], out=both[:, width:])
    table = both @ density.linear
    n = np.zeros(count, np.float32)
    used = both[:, : moments * width]
    if top is None:
        found = softmax(table, density.constant, n)
        return n, table.T @ used, found / LOG2E
    sums = np.zeros((count, moments * width), np.float32)
    found = sparse_sums(table, density.constant, used, min(top, count), n, sums)
    return n, sums, found / LOG2E


def _start(frames: Singles, components: int, random: np.random.Generator) -> Mixture:
    """k-means++ and a few rounds of k-means on a sample; all Gaussians share one variance."""
    origin = frames.mean(0, dtype=np.float64)
    frames = (frames - origin).astype(np.float32)
    centres = _plus_plus(frames, components, random)
    for _ in range(START_ROUNDS):
        nearest = _nearest(frames, centres)
        count = np.bincount(nearest, minlength=components)
        begin, full = np.cumsum(count) - count, count > 0
        by_centre = frames[np.argsort(nearest, kind="stable")].astype(np.float64)
        centres[full] = np.add.reduceat(by_centre, begin[full]) / count[full, None]
    within = np.square(frames - centres[nearest], dtype=np.float64).mean(0)
    variance = np.maximum(within, 0.01 * frames.var(0, dtype=np.float64) + 1e-10)
    weights = np.maximum(count, 1) / np.maximum(count, 1).sum()
    return Mixture(weights, centres + origin, np.tile(variance, (components, 1)))


def _plus_plus(frames: Singles, components: int, random: np.random.Generator) -> Singles:
    """Centres drawn one by one, each with probability proportional to the squared distance."""
    chosen = int(random.integers(len(frames)))
    centres = np.empty((components, frames.shape[1]), np.float32)
    distance = np.full(len(frames), 3e38, np.float32)
    for j in range(components):
        centres[j] = frames[chosen]
        _shorten(frames, centres[j], distance)
        up_to = np.cumsum(distance, dtype=np.float64)
        drawn = np.searchsorted(up_to, random.random() * up_to[-1], side="right")
        chosen = min(int(drawn), len(frames) - 1)
    return centres


def _nearest(frames: Singles, centres: Singles) -> NDArray[np.int64]:
    half_square = 0.5 * (centres * centres).sum(1)
    parts = []
    with one_blas_thread():
        for begin in range(0, len(frames), BLOCK):
            parts.append((frames[begin : begin + BLOCK] @ centres.T - half_square).argmax(1))
    return np.concatenate(parts)


@nb.njit(cache=True, nogil=True, fastmath=True)
def _shorten(frames, centre, distance):  # type: ignore[no-untyped-def]
    """Squared distance of every frame to the nearest centre so far."""
    for t in range(frames.shape[0]):
        square = np.float32(0.0)
        for d in range(frames.shape[1]):
            step = frames[t, d] - centre[d]
            square += step * step
        distance[t] = min(distance[t], square)
