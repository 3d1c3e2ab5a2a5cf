"""Sums of scores against scores pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spklink.recognizers import sums
from spklink.recognizers.gmm_ubm import Dot
from spklink.recognizers.normalise import Normaliser
from spklink.recognizers.plda import PairTerms
from spklink.recognizers.products import Cosine, pair_scores
from spklink.recognizers.sums import SideLine, Summing, compared_again, compared_by, pair_ratios


def some_normaliser(rng: np.random.Generator, count: int) -> Normaliser:
    return Normaliser(
        rng.normal(size=count), rng.uniform(0.5, 2.0, count), np.full(count, 99, np.int64)
    )


def slow(llr, q, start) -> np.ndarray:
    """Pair by pair, from the (sides, sides) table of log-likelihood-ratios."""
    call = np.repeat(np.arange(len(start) - 1), np.diff(start))
    apart = call[:, None] != call
    return (llr * apart) @ q


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_pairs(tracks, seed, normalised, twice):
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(tracks)])
    count = int(start[-1])
    every = count + 5
    vectors = rng.normal(size=(every, 7)).astype(np.float32)
    row = rng.permutation(every)
    fitted = some_normaliser(rng, every) if normalised else None
    product = Cosine(vectors.mean(axis=0))
    comparisons = [compared_by(product, vectors, row, fitted)]
    again = PairTerms(rng.normal(size=(every, 3)), rng.normal(size=every))
    second = some_normaliser(rng, every)
    if twice:
        comparisons.append(compared_again(again, second))
    line = SideLine(rng.uniform(0.1, 2.0, every), rng.normal(size=every))
    sides = rng.permutation(every)[:count]
    q = rng.uniform(size=count)
    one, two = (x.ravel() for x in np.meshgrid(sides, sides, indexing="ij"))
    score = pair_scores(product, vectors, row[one], row[two])
    if fitted is not None:
        score = fitted.apply(score, one, two)
    if twice:
        score = score + second.apply(again.pairs(one, two), one, two)
    llr = (line.slope[one] + line.slope[two]) * score + line.offset[one] + line.offset[two]
    expected = slow(llr.reshape(count, count), q, start)
    found = Summing(tuple(comparisons), sides, start)(line, q)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        pair_ratios(tuple(comparisons), line, one, two), llr, rtol=1e-4, atol=1e-4
    )


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 5, 60))])
    count = int(start[-1])
    vectors = rng.normal(size=(count, 5)).astype(np.float32)
    how = (compared_by(Cosine(np.zeros(5, np.float32)), vectors, np.arange(count), None),)
    line = SideLine(np.full(count, 0.5), np.zeros(count))
    q = rng.uniform(size=count)
    whole = Summing(how, np.arange(count), start)(line, q)
    monkeypatch.setattr(sums, "BLOCK", 7)
    np.testing.assert_allclose(
        Summing(how, np.arange(count), start)(line, q), whole, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("normalised", [False, True])
def test_the_dot_score_of_the_paper(normalised):
    rng = np.random.default_rng(5)
    product, count = Dot(16.0, 3, 4), 12
    vectors = np.abs(rng.normal(size=(count, 15))).astype(np.float32)
    fitted = some_normaliser(rng, count) if normalised else None
    how = (compared_by(product, vectors, np.arange(count), fitted),)
    line = SideLine(np.full(count, 0.5), np.zeros(count))
    one, two = (x.ravel() for x in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    score = pair_scores(product, vectors, one, two)
    score = score if fitted is None else fitted.apply(score, one, two)
    start, q = np.arange(0, count + 1, 2), rng.uniform(size=count)
    expected = slow(score.reshape(count, count), q, start)
    np.testing.assert_allclose(
        Summing(how, np.arange(count), start)(line, q), expected, rtol=1e-4, atol=1e-4
    )
