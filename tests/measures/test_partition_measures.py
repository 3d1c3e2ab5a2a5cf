"""Measures of partitions, held against scikit-learn and plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink.measures.partitions import agreement, pair_measures

LABELS = st.integers(2, 25).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


@given(LABELS)
def test_rand_index_equals_scikit_learn(labels):
    metrics = pytest.importorskip("sklearn.metrics")
    label, truth = map(np.array, labels)
    expected = metrics.adjusted_rand_score(truth, label)
    assert agreement(label, truth).adjusted_rand == pytest.approx(expected, abs=1e-12)


@given(LABELS)
def test_the_rest_equals_plain_counting(labels):
    """B-cubed as Bagga and Baldwin write it, side by side; impurity as van Leeuwen does."""
    label, truth = map(np.array, labels)
    found, n = agreement(label, truth), len(label)
    precision = recall = 0.0
    for i in range(n):
        cluster = [j for j in range(n) if label[j] == label[i]]
        speaker = [j for j in range(n) if truth[j] == truth[i]]
        both = len(set(cluster) & set(speaker))
        precision += both / len(cluster) / n
        recall += both / len(speaker) / n
    assert found.bcubed_precision == pytest.approx(precision)
    assert found.bcubed_recall == pytest.approx(recall)
    assert found.bcubed == pytest.approx(2 * precision * recall / (precision + recall))
    right = sum(max(np.bincount(truth[label == c])) for c in set(label.tolist()))
    assert found.cluster_impurity == pytest.approx(1 - right / n)
    right = sum(max(np.bincount(label[truth == s])) for s in set(truth.tolist()))
    assert found.speaker_impurity == pytest.approx(1 - right / n)


def test_pairs_that_are_not_listed_count():
    truth = np.array([0, 0, 0, 1, 1, -1])
    one, two = np.array([0, 0, 3]), np.array([1, 3, 4])
    eer, observed, missed, bins = pair_measures(one, two, np.array([0.9, 0.2, 0.8]), truth)
    assert (observed, missed) == (2, 2)  # 0-2 and 1-2 are not listed
    assert 0.0 < eer < 0.5
    assert sum(b.count for b in bins) == 3
    perfect = pair_measures(np.array([0, 0, 1, 3]), np.array([1, 2, 2, 4]), np.full(4, 0.99), truth)
    assert perfect[0] == pytest.approx(0.0, abs=1e-9)
    single = pair_measures(np.array([0]), np.array([1]), np.array([0.9]), np.array([0, 0, 1]))
    assert single[0] == pytest.approx(0.0, abs=1e-9)  # one pair of one person is enough
