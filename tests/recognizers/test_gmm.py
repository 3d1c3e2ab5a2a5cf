from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from spklink.errors import SpklinkError
from spklink.hands import Here
from spklink.recognizers import mixture as gmm
from spklink.recognizers import responsibilities
from spklink.recognizers.mixture import (
    Mixture,
    check_frames,
    expectation,
    maximisation,
    statistics,
    train,
)
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


def some_frames(count: int, width: int, seed: int, clusters: int = 6) -> Singles:
    """Frames around a few centres, of unequal spread."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(clusters, width)) * 1.5
    spread = random.uniform(0.3, 1.2, (clusters, width))
    which = random.integers(clusters, size=count)
    frames = centres[which] + spread[which] * random.normal(size=(count, width))
    return frames.astype(np.float32)


def some_mixture(components: int, width: int, seed: int) -> Mixture:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(components, 3.0))
    means = random.normal(size=(components, width))
    return Mixture(weights, means, random.uniform(0.2, 1.5, (components, width)))


def plain_posteriors(mixture: Mixture, frames: Singles) -> tuple[Floats, Floats]:
    """(frames, J) posteriors and (frames,) log-likelihoods, straight from the definition."""
    x = frames.astype(np.float64)[:, None, :]
    log = (-0.5 * (x - mixture.means) ** 2 / mixture.variances).sum(2)
    log += np.log(mixture.weights) - 0.5 * np.log(2 * np.pi * mixture.variances).sum(1)
    top = log.max(1, keepdims=True)
    total = np.exp(log - top).sum(1, keepdims=True)
    return np.exp(log - top) / total, (top + np.log(total))[:, 0]


def plain_step(mixture: Mixture, frames: Singles) -> tuple[Mixture, float]:
    gamma, log = plain_posteriors(mixture, frames)
    x, n = frames.astype(np.float64), gamma.sum(0)
    means = gamma.T @ x / n[:, None]
    variances = np.stack([gamma[:, j] @ (x - means[j]) ** 2 / n[j] for j in range(len(n))])
    return Mixture(n / n.sum(), means, variances), float(log.sum())


def em_step(mixture: Mixture, frames: Singles) -> tuple[Mixture, float]:
    moments = expectation(mixture, [frames])
    stepped = maximisation(moments, np.random.default_rng(0), variance_floor=1e-6)
    return stepped, moments.log_likelihood


def parameters(mixture: Mixture) -> bytes:
    return b"".join(a.tobytes() for a in (mixture.weights, mixture.means, mixture.variances))


@pytest.mark.parametrize(
    ("components", "width", "offset"), [(5, 3, 0.0), (33, 60, 0.0), (8, 4, 1e3)]
)
def test_em_agrees_with_plain_float64(components: int, width: int, offset: float) -> None:
    frames = some_frames(1700, width, 1) + np.float32(offset)
    ours = theirs = Mixture(
        np.full(components, 1 / components),
        frames[:: 1700 // components][:components].astype(np.float64),
        np.ones((components, width)),
    )
    for _ in range(6):
        ours, our_sum = em_step(ours, frames)
        theirs, their_sum = plain_step(theirs, frames)
        assert our_sum == pytest.approx(their_sum, rel=1e-6)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-3)
    np.testing.assert_allclose(ours.means - offset, theirs.means - offset, atol=1e-3)
    np.testing.assert_allclose(ours.variances, theirs.variances, rtol=1e-3, atol=1e-5)


def test_likelihood_never_falls() -> None:
    frames, found = some_frames(3000, 10, 2), []
    train(
        lambda: [frames],
        12,
        seed=3,
        iterations=15,
        variance_floor=1e-6,
        progress=lambda done, mean: found.append((done, mean)),
    )
    assert [done for done, _ in found] == list(range(1, 16))
    means = np.array([mean for _, mean in found])
    assert (np.diff(means) > -1e-6).all()
    assert means[-1] > means[0] + 0.1


def test_training_finds_the_clusters() -> None:
    random = np.random.default_rng(4)
    centres = np.array([[-5.0, 0.0], [5.0, 0.0], [0.0, 8.0]])
    frames = np.concatenate(
        [c + random.normal(size=(500 * k, 2)) for k, c in enumerate(centres, 1)]
    )
    mixture = train(lambda: [frames.astype(np.float32)], 3, seed=0, iterations=20)
    order = [int(np.square(mixture.means - c).sum(1).argmin()) for c in centres]
    np.testing.assert_allclose(mixture.means[order], centres, atol=0.2)
    np.testing.assert_allclose(mixture.weights[order], [1 / 6, 2 / 6, 3 / 6], atol=0.02)
    np.testing.assert_allclose(mixture.variances[order], 1.0, atol=0.2)


def test_variances_stay_above_the_floor() -> None:
    frames = some_frames(400, 5, 5)
    frames[:100] = frames[0]  # a heap of one value would have no variance
    mixture = train(lambda: [frames], 8, seed=0, variance_floor=0.05)
    floor = 0.05 * frames.var(0, dtype=np.float64)
    assert (mixture.variances >= floor * (1 - 1e-5)).all()
    assert (mixture.variances <= floor * (1 + 1e-5)).all(1).any()


def test_dead_gaussian_is_put_where_the_frames_are() -> None:
    frames = some_frames(2000, 4, 6)
    away = Mixture(np.array([0.5, 0.5]), np.array([np.zeros(4), np.full(4, 1e3)]), np.ones((2, 4)))
    moments = expectation(away, [frames])
    assert moments.zeroth[1] < 1e-6
    alive = maximisation(moments, np.random.default_rng(0))
    np.testing.assert_allclose(alive.weights, 0.5)
    assert np.abs(alive.means).max() < 10.0
    assert not np.allclose(alive.means[0], alive.means[1])
    again = expectation(alive, [frames])
    assert again.zeroth.min() > 200
    assert again.log_likelihood > moments.log_likelihood


@given(st.integers(1, 130), st.integers(1, 9), st.floats(0.1, 3000.0), st.integers(0, 2**32 - 1))
def test_softmax_kernel(count: int, rows: int, spread: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    table = (random.normal(size=(rows, count)) * spread).astype(np.float32)
    constant = (random.normal(size=count) * spread).astype(np.float32)
    given_sum = (table + constant).astype(np.float64)
    value = np.exp2(given_sum - given_sum.max(1, keepdims=True))
    expected = value / value.sum(1, keepdims=True)
    n = np.zeros(count, np.float32)
    total = responsibilities.softmax(table, constant, n)
    rounding = 2e-7 * spread  # of the two sums in float32
    np.testing.assert_allclose(table, expected, rtol=2e-6 + 10 * rounding, atol=1e-12)
    np.testing.assert_allclose(n, expected.sum(0), rtol=2e-6 + 10 * rounding, atol=1e-12)
    log = given_sum.max(1) + np.log2(value.sum(1))
    assert total == pytest.approx(log.sum(), rel=1e-6, abs=rows * 1e-6 * max(spread, 1.0))


def test_fast_power_of_two() -> None:
    x = np.linspace(-100.0, 0.0, 200_001).astype(np.float32)
    found = np.array([responsibilities.exp2(v) for v in x], np.float64)
    assert np.abs(found / np.exp2(x.astype(np.float64)) - 1.0).max() < 3e-7


@pytest.mark.parametrize("frames", [0, 1, 1023, 1024, 2300])
def test_statistics_agree_with_plain_sums(frames: int) -> None:
    mixture, x = some_mixture(20, 7, 7), some_frames(frames, 7, 8)
    found = statistics(mixture, x)
    gamma, _ = plain_posteriors(mixture, x)
    centred = x.astype(np.float64)[:, None, :] - mixture.means
    np.testing.assert_allclose(found.n, gamma.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.f, np.einsum("tj,tjd->jd", gamma, centred), atol=1e-3)
    assert found.n.sum() == pytest.approx(frames, rel=1e-6)


@pytest.mark.parametrize("components", [5, 64, 70, 200])
@pytest.mark.parametrize("top", [1, 3, 16])
def test_sparse_statistics_keep_the_largest(components: int, top: int) -> None:
    mixture, x = some_mixture(components, 5, 9), some_frames(600, 5, 10)
    gamma, log = plain_posteriors(mixture, x)
    kept = min(top, components)
    least = np.sort(gamma, 1)[:, -kept]
    sparse = np.where(gamma >= least[:, None], gamma, 0.0)
    mass = sparse.sum(1)
    sparse /= mass[:, None]
    moments = expectation(mixture, [x], top=top)
    np.testing.assert_allclose(moments.zeroth, sparse.sum(0), atol=2e-3)
    y = x - mixture.density.origin
    both = np.concatenate([y, y * y], axis=1)
    np.testing.assert_allclose(moments.first_second, sparse.T @ both, atol=2e-2)
    assert moments.log_likelihood == pytest.approx((log + np.log(mass)).sum(), rel=1e-5)


def test_sparse_with_all_gaussians_is_exact() -> None:
    mixture, x = some_mixture(70, 6, 11), some_frames(900, 6, 12)
    exact, sparse = expectation(mixture, [x]), expectation(mixture, [x], top=1000)
    np.testing.assert_allclose(sparse.zeroth, exact.zeroth, atol=1e-3)
    np.testing.assert_allclose(sparse.first_second, exact.first_second, atol=1e-2)


def cuts(frames: Singles, sizes: Iterable[int]) -> list[Singles]:
    return np.split(frames, np.cumsum(list(sizes)))


def test_cuts_and_threads_do_not_change_a_byte() -> None:
    frames = some_frames(5000, 6, 13)
    whole = train(lambda: [frames], 16, seed=1, iterations=3)
    for sizes in ([1, 0, 700, 2, 3000], [1024] * 4, [4999]):
        pieces = cuts(frames, sizes)
        again = train(lambda pieces=pieces: pieces, 16, seed=1, iterations=3, hands=Here(3))
        assert parameters(again) == parameters(whole)
    streamed = train(
        lambda: iter(cuts(frames, [999] * 5)), 16, seed=1, iterations=3, max_frames=None
    )
    assert parameters(streamed) == parameters(whole)
    assert parameters(train(lambda: [frames], 16, seed=2, iterations=3)) != parameters(whole)
    sparse = [
        train(lambda: [frames], 16, seed=1, iterations=3, top=3, hands=Here(t)) for t in (1, 2)
    ]
    assert parameters(sparse[0]) == parameters(sparse[1])


def test_a_limit_takes_frames_from_everywhere() -> None:
    frames = np.arange(1000, dtype=np.float32)[:, None]
    picked = gmm._spread(cuts(frames, [3, 0, 400]), 1000, 250)
    np.testing.assert_array_equal(picked[:, 0], np.arange(0, 1000, 4))
    both = np.concatenate([some_frames(3000, 3, 14), some_frames(3000, 3, 15) + 50.0])
    limited = train(lambda: [both], 4, seed=0, max_frames=500)
    assert (limited.weights[limited.means[:, 0] > 25.0]).sum() == pytest.approx(0.5, abs=0.01)


def test_early_rounds_see_frames_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gmm, "EARLY_FRAMES", 25)
    frames = np.repeat(np.arange(1000), 2)[:, None].astype(np.float32)
    seen: list[tuple[int, float]] = []
    expectation = gmm.expectation

    def looked(mixture, blocks, **how):  # type: ignore[no-untyped-def]
        held = np.concatenate(list(blocks))
        seen.append((len(held), float(held.mean())))
        return expectation(mixture, [held], **how)

    monkeypatch.setattr(gmm, "expectation", looked)
    train(lambda: [frames], 4, seed=0, early=3, iterations=2)
    assert [count for count, _ in seen] == [100] * 3 + [2000] * 2
    assert all(abs(mean - 499.5) < 10.0 for _, mean in seen)


def test_frames_that_are_all_alike() -> None:
    mixture = train(lambda: [np.ones((50, 3), np.float32)], 8, seed=0)
    assert all(np.isfinite(a).all() for a in (mixture.weights, mixture.means, mixture.variances))


def test_a_few_frames_for_many_gaussians() -> None:
    mixture = train(lambda: [some_frames(40, 3, 16)], 20, seed=0)
    assert np.isfinite(mixture.means).all()
    assert mixture.weights.sum() == pytest.approx(1.0)
    few = r"39 frames of speech \(0 s\) cannot train 20 Gaussians, which need 40; add .* 19\)"
    with pytest.raises(SpklinkError, match=few):
        train(lambda: [some_frames(39, 3, 16)], 20, seed=0)


def test_a_large_mixture_needs_more_of_every_gaussian() -> None:
    """Up to the paper's 1024 two frames are enough to run; an hour's work must be worth it."""
    check_frames(2048, 1024)
    for total, components, enough in ((20499, 1025, 1024), (400_000, 77_777, 20_000)):
        with pytest.raises(SpklinkError, match=rf"need {20 * components}; .*components {enough}\)"):
            check_frames(total, components)
        check_frames(total, enough)
    with pytest.raises(SpklinkError, match=r"the 600000 frames .* cannot train .* ask for fewer"):
        check_frames(9_000_000, 77_777)


def test_values_that_are_no_numbers_are_refused() -> None:
    frames = some_frames(600, 3, 17)
    frames[550, 1] = np.nan
    with pytest.raises(SpklinkError, match="not a finite number"):
        statistics(some_mixture(4, 3, 18), frames)
    frames[550, 1] = np.inf
    with pytest.raises(SpklinkError, match="not a finite number"):
        expectation(some_mixture(4, 3, 18), [frames], threads=2)


def blas_threads() -> list[int]:
    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return [one["num_threads"] for one in libraries if "numpy" in one["filepath"]] or [1]


def test_products_run_on_one_thread_until_the_last_has_left() -> None:
    before = blas_threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 4])
def test_results_come_in_order(threads: int) -> None:
    assert list(in_order(lambda k: k * k, range(50), threads)) == [k * k for k in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda k: 1 / (k - 30), range(50), threads))
