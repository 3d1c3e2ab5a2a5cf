from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spklink.database.conversations import Conversations, make_conversations
from spklink.errors import SpklinkError
from spklink.hands import Here
from spklink.recognizers import gmm_ubm, mixture, normalise, products
from spklink.recognizers.gmm_ubm import DEFAULT, EARLY, LAST, PAPER, GmmUbm, Preset
from spklink.recognizers.mixture import Mixture, statistics, train
from spklink.recognizers.products import all_pairs, pair_scores, table, unit_vectors
from spklink.recognizers.table import RECOGNIZERS, make_recognizer
from spklink.runs.recipe import RECIPES

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
SMALL = {"components": 6, "iterations": 3}
WIDTH = 4


def sides(count: int, seed: int = 0) -> list[Singles]:
    """Features of sides, each with a shift of its own and its own length."""
    random = np.random.default_rng(seed)
    return [
        (
            random.normal(size=(int(random.integers(40, 700)), WIDTH)) + random.normal(size=WIDTH)
        ).astype(np.float32)
        for _ in range(count)
    ]


def trained(preset: Preset, features: list[Singles]) -> tuple[GmmUbm, Singles]:
    small = Preset(**(vars(preset) | SMALL))
    recognizer = GmmUbm(small).learn(lambda: features, seed=0)
    vectors = np.stack([recognizer.vector(x) for x in features])
    return recognizer.centred(vectors, np.ones(len(vectors), bool)), vectors


def plain_dot_score(recognizer: GmmUbm, x: Singles, y: Singles) -> float:
    (mixture,), total = recognizer.mixtures, 0.0
    for one, two in ((x, y), (y, x)):
        a, b = statistics(mixture, one), statistics(mixture, two)
        shift = a.f / (a.n + recognizer.preset.relevance)[:, None]
        total += float((shift / mixture.variances * b.f).sum()) / len(two)
    return total / 2.0


def plain_vector(mixture: Mixture, x: Singles, recognizer: GmmUbm) -> Floats:
    found = statistics(mixture, x)
    z = found.f / np.sqrt(mixture.variances) / (found.n + recognizer.preset.relevance)[:, None]
    return np.asarray((np.sqrt(mixture.weights)[:, None] * z).ravel())


def plain_cosines(recognizer: GmmUbm, features: list[Singles]) -> Floats:
    rows = [
        np.concatenate([plain_vector(one, x, recognizer) for one in recognizer.mixtures])
        for x in features
    ]
    centred = np.stack(rows) - np.mean(rows, axis=0)
    centred /= np.sqrt((centred**2).sum(1, keepdims=True))
    return np.asarray(centred @ centred.T)


def test_presets_are_those_of_the_reference() -> None:
    assert (PAPER.components, PAPER.relevance, PAPER.score) == (1024, 16, "dot")
    assert (DEFAULT.components, DEFAULT.relevance, DEFAULT.score) == (256, 0.25, "cosine")
    assert DEFAULT.iterations == 10
    assert (PAPER.trainings, DEFAULT.trainings) == (1, 8)
    assert list(gmm_ubm.PRESETS) == list(RECIPES) == ["default", "paper"]
    assert [recipe.normalise for recipe in RECIPES.values()] == [True, False]


def test_recognizers_are_made_by_name() -> None:
    assert list(RECOGNIZERS) == ["gmm-ubm", "none"]
    made = make_recognizer("gmm-ubm", preset="paper", components=64)
    assert made == GmmUbm(Preset(64, 16.0, "dot", PAPER.front_end))
    assert make_recognizer("gmm-ubm").recipe["components"] == 256
    for wrong, message in (
        ({"preset": "best"}, "preset 'best' is not one of default, paper"),
        ({"components": 0}, "at least 1"),
        ({"components": 77_777}, r"cannot train 77777 .* need 1555540; .*components 30000"),
    ):
        with pytest.raises(SpklinkError, match=message):
            make_recognizer("gmm-ubm", **wrong)
    with pytest.raises(SpklinkError, match="recognizer: 'x' is not one of gmm-ubm"):
        make_recognizer("x")


def plain_table(recognizer: GmmUbm, features: list[Singles]) -> Floats:
    if recognizer.preset.score == "cosine":
        return plain_cosines(recognizer, features)
    return np.array([[plain_dot_score(recognizer, x, y) for y in features] for x in features])


@pytest.mark.parametrize("preset", [PAPER, DEFAULT])
@pytest.mark.parametrize("tile", [1024, 7])
def test_scores_agree_with_plain_numpy(
    preset: Preset, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "TILE_SIDES", tile)
    features = sides(22)  # the last tile of 7 is a single side
    recognizer, vectors = trained(preset, features)
    expected = plain_table(recognizer, features)
    scale = np.abs(expected).max()
    i, j = (k.ravel() for k in np.indices(expected.shape))
    dense = pair_scores(recognizer.product, vectors, i, j)
    np.testing.assert_allclose(dense, expected.ravel(), atol=3e-6 * scale)
    some = np.random.default_rng(1).permutation(len(i))[:25]
    np.testing.assert_allclose(
        pair_scores(recognizer.product, vectors, i[some], j[some]),
        expected[i[some], j[some]],
        atol=3e-6 * scale,
    )
    rows, columns = np.array([4, 21, 4]), np.arange(21, -1, -2)
    np.testing.assert_allclose(
        table(recognizer.product, vectors, rows, columns),
        expected[np.ix_(rows, columns)],
        atol=3e-6 * scale,
    )
    whole = all_pairs(recognizer.product, vectors)
    np.testing.assert_allclose(whole, expected, atol=3e-6 * scale)
    np.testing.assert_array_equal(whole, whole.T)
    assert pair_scores(recognizer.product, vectors, np.zeros(0, int), np.zeros(0, int)).shape == (
        0,
    )


@pytest.mark.parametrize("preset", [PAPER, DEFAULT])
def test_few_pairs_are_scored_one_by_one(preset: Preset, monkeypatch: pytest.MonkeyPatch) -> None:
    recognizer, vectors = trained(preset, sides(40))
    calls: list[int] = []
    real = products._add_dots
    monkeypatch.setattr(products, "_add_dots", lambda *a: (calls.append(len(a[2])), real(*a)))
    whole = all_pairs(recognizer.product, vectors)
    i, j = (k.ravel() for k in np.indices((40, 40)))
    pair_scores(recognizer.product, vectors, i, j)
    assert not calls
    i = np.random.default_rng(0).permutation(20)
    found = pair_scores(recognizer.product, vectors, i + 20, i)
    assert set(calls) == {20}
    np.testing.assert_allclose(found, whole[i, i + 20], atol=1e-6 * np.abs(whole).max())


def test_few_pairs_of_many_tiles_are_one_task() -> None:
    """As many tasks as there are pairs would cost more than the scores themselves."""
    rng = np.random.default_rng(0)
    one, two = np.sort(rng.integers(0, 5000, (2, 300)), axis=0)
    tasks = list(products._tasks(one, two, 10))
    assert len(tasks) < 40
    assert max(len(task.where) for task in tasks) <= 10
    assert np.array_equal(np.sort(np.concatenate([task.where for task in tasks])), np.arange(300))
    for task in tasks:
        assert np.array_equal(task.rows[task.row], one[task.where])
        assert np.array_equal(task.columns[task.column], two[task.where])
    crowded = list(products._tasks(np.repeat(np.arange(10), 10), np.tile(np.arange(10), 10), 10))
    assert len(crowded) == 1


@pytest.mark.parametrize("preset", [PAPER, DEFAULT])
def test_threads_and_memory_maps_do_not_change_a_byte(
    preset: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "TILE_SIDES", 8)
    recognizer, vectors = trained(preset, sides(30))
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    random = np.random.default_rng(2)
    i, j = random.integers(30, size=(2, 60))
    one = pair_scores(recognizer.product, vectors, i, j)
    assert one.tobytes() == pair_scores(recognizer.product, mapped, i, j, hands=Here(3)).tobytes()
    assert one.tobytes() == pair_scores(recognizer.product, vectors, j, i, hands=Here(2)).tobytes()
    all_one = all_pairs(recognizer.product, vectors)
    out = np.lib.format.open_memmap(tmp_path / "s.npy", "w+", np.float32, (30, 30))
    all_pairs(recognizer.product, mapped, hands=Here(3), out=out)
    assert all_one.tobytes() == np.load(tmp_path / "s.npy").tobytes()
    again = recognizer.centred(mapped, np.ones(30, bool))
    if preset is DEFAULT:
        assert again.mean.tobytes() == recognizer.mean.tobytes()


def test_little_speech_trains_several_mixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together see no more frames than one would of much speech; that one is the same
    as ever."""
    features = sides(22)
    frames = sum(map(len, features))
    monkeypatch.setattr(gmm_ubm, "EARLY_FRAMES", frames)
    for little, count in ((20 * frames, 8), (3 * frames, 3), (2 * frames - 1, 1), (0, 1)):
        monkeypatch.setattr(gmm_ubm, "LITTLE", little)
        told: list[tuple[int, int]] = []
        small = Preset(**(vars(DEFAULT) | SMALL))
        found = GmmUbm(small).learn(
            lambda: features, seed=5, progress=lambda *now, told=told: told.append(now)
        )
        assert len(found.mixtures) == len({one.means.tobytes() for one in found.mixtures}) == count
        assert told == [(k, 3 * count) for k in range(1, 3 * count + 1)]
        alone = train(lambda: features, 6, seed=5, iterations=3)
        assert found.mixtures[0].means.tobytes() == alone.means.tobytes()


def test_much_speech_is_seen_as_a_whole_at_the_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    features, small = sides(22), Preset(**(vars(DEFAULT) | SMALL))
    frames = sum(map(len, features))
    monkeypatch.setattr(gmm_ubm, "LITTLE", 0)
    for early, rounds in ((frames // 12 - 1, (EARLY, LAST)), (frames // 12 + 1, (0, 3))):
        monkeypatch.setattr(gmm_ubm, "EARLY_FRAMES", early)  # six Gaussians, twice that: all frames
        monkeypatch.setattr(mixture, "EARLY_FRAMES", early)
        told: list[tuple[int, int]] = []
        found = GmmUbm(small).learn(
            lambda: features, seed=5, progress=lambda *now, told=told: told.append(now)
        )
        alone = train(lambda: features, 6, seed=5, early=rounds[0], iterations=rounds[1])
        assert found.mixtures[0].means.tobytes() == alone.means.tobytes()
        assert told[-1] == (sum(rounds), sum(rounds))


def test_mean_is_that_of_the_usable_sides() -> None:
    recognizer, vectors = trained(DEFAULT, sides(9))
    usable = np.arange(9) % 3 > 0
    found = recognizer.centred(vectors, usable).mean
    np.testing.assert_allclose(found, vectors[usable].mean(0), rtol=1e-5, atol=1e-7)
    assert not np.allclose(found, recognizer.mean)


def test_vector_of_a_side_without_frames_is_zero() -> None:
    for preset in (PAPER, DEFAULT):
        recognizer, vectors = trained(preset, sides(5))
        nothing = recognizer.vector(np.zeros((0, WIDTH), np.float32))
        assert not nothing.any()
        scores = pair_scores(
            recognizer.product, np.stack([nothing, vectors[0]]), np.array([0]), np.array([1])
        )
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("preset", [PAPER, DEFAULT])
def test_recognizer_is_restored_from_its_arrays(preset: Preset) -> None:
    features = sides(6)
    recognizer, vectors = trained(preset, features)
    again = GmmUbm(recognizer.preset).restored(recognizer.arrays())
    assert again.fingerprint == recognizer.fingerprint
    assert again.vector(features[2]).tobytes() == vectors[2].tobytes()
    i, j = np.array([0, 1, 5]), np.array([3, 2, 4])
    expected = pair_scores(recognizer.product, vectors, i, j)
    assert pair_scores(again.product, vectors, i, j).tobytes() == expected.tobytes()


@pytest.mark.parametrize("preset", [PAPER, DEFAULT])
def test_unit_vectors(preset: Preset) -> None:
    recognizer, vectors = trained(preset, sides(6))
    unit = unit_vectors(recognizer.product, vectors, np.array([4, 0, 2]))
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-5)
    if preset is DEFAULT:
        expected = table(recognizer.product, vectors, np.array([4, 0]), np.array([2]))[:, 0]
        np.testing.assert_allclose(unit[:2] @ unit[2], expected, atol=1e-6)


def test_fingerprint_tells_recognizers_apart() -> None:
    features = sides(6)
    a, _ = trained(DEFAULT, features)
    b, _ = trained(PAPER, features)
    c = GmmUbm(a.preset).learn(lambda: features, seed=1)
    assert len({a.fingerprint, b.fingerprint, c.fingerprint}) == 3


# Normalisation against strangers


def database(calls: int, people: int, seed: int) -> tuple[Floats, NDArray[np.int32]]:
    """Symmetric scores of all sides, and the participants of the calls."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(2 * calls, 2 * calls))
    level = random.normal(size=2 * calls) * 2.0
    scores = scores + scores.T + level[:, None] + level
    who = np.stack([random.permutation(people)[:2] for _ in range(calls)])
    return scores, who.astype(np.int32)


def calls_of(who: NDArray[np.int32]) -> Conversations:
    return make_conversations([(f"c{m}", f"{a}", f"{b}") for m, (a, b) in enumerate(who)])


def plain_normalised(scores: Floats, who: NDArray[np.int32], good: list[int]) -> Floats:
    """s' for all pairs by the definition; NaN for sides outside `good`."""
    size = len(scores)
    mean, spread = np.full(size, np.nan), np.full(size, np.nan)
    for i in good:
        strangers = [j for j in good if not {*who[i // 2]} & {*who[j // 2]}]
        best = sorted((scores[i, j] for j in strangers), reverse=True)
        best = best[: int(np.ceil(0.15 * len(best)))]
        mean[i], spread[i] = np.mean(best), np.std(best)
    return np.asarray(((scores - mean[:, None]) / spread[:, None] + (scores - mean) / spread) / 2.0)


def test_normalisation_agrees_with_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "ROWS", 17)
    scores, who = database(60, 20, 1)
    usable = np.ones(120, bool)
    usable[[3, 50, 51]] = False
    scores[3] = scores[:, 3] = 1e3  # a bad side would spoil every cohort it is in
    found = normalise.fit(
        lambda r, c: scores[np.ix_(r, c)].astype(np.float32), calls_of(who), usable, seed=0
    )
    assert found.reason == ""
    expected = plain_normalised(scores, who, np.flatnonzero(usable).tolist())
    i, j = np.triu_indices(120, 1)
    good = usable[i] & usable[j]
    i, j = i[good], j[good]
    np.testing.assert_allclose(found.apply(scores[i, j], i, j), expected[i, j], atol=1e-4)


def test_large_databases_use_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "POOL", 80)
    scores, who = database(150, 40, 2)
    asked: list[tuple[int, ...]] = []

    def of(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Singles:
        asked.append(tuple(columns))
        return scores[np.ix_(rows, columns)].astype(np.float32)

    usable = np.arange(300) % 7 > 0
    found = normalise.fit(of, calls_of(who), usable, seed=5)
    pool = asked[0]
    assert set(asked) == {pool}
    assert len(set(pool)) == 80
    assert usable[list(pool)].all()
    again = normalise.fit(of, calls_of(who), usable, seed=5, threads=3)
    assert again.centre.tobytes() == found.centre.tobytes()
    assert (
        normalise.fit(of, calls_of(who), usable, seed=6).centre.tobytes() != found.centre.tobytes()
    )
    strangers = [j for j in pool if not {*who[10]} & {*who[j // 2]}]
    best = np.sort(scores[20, strangers])[::-1][: int(np.ceil(0.15 * len(strangers)))]
    assert found.centre[20] == pytest.approx(best.mean(), rel=1e-5)
    assert found.scale[20] == pytest.approx(best.std(), rel=1e-5)
    assert found.strangers[20] == len(strangers)


def test_small_databases_are_left_as_they_are() -> None:
    scores, who = database(20, 30, 3)
    found = normalise.fit(
        lambda r, c: scores[np.ix_(r, c)].astype(np.float32),
        calls_of(who),
        np.ones(40, bool),
        seed=0,
    )
    assert found.reason.startswith("scores are not normalised: 40 of 40 sides have fewer than 50")
    i = np.arange(39)
    np.testing.assert_array_equal(found.apply(scores[i, i + 1], i, i + 1), scores[i, i + 1])


def test_a_side_with_few_strangers_takes_the_medians() -> None:
    scores, who = database(80, 200, 4)
    who[:] = 2 + np.arange(160).reshape(80, 2)
    who[1:31, 0], who[31:61, 0], who[0] = 0, 1, [0, 1]  # the two of call 0 know most of the others
    found = normalise.fit(
        lambda r, c: scores[np.ix_(r, c)].astype(np.float32),
        calls_of(who),
        np.ones(160, bool),
        seed=0,
    )
    assert found.reason == ""
    assert found.strangers[:2].tolist() == [38, 38]
    assert found.strangers[2:].min() == 98
    assert found.centre[0] == np.median(found.centre[2:])
    assert found.scale[1] == np.median(found.scale[2:])
