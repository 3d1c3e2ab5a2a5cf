"""Where the nodes of a drawing lie. It needs nothing of a run: whoever draws can do without."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import two_each
from spklink.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Drawing = dict[str, Any]


def in_order(drawing: Drawing) -> list[int]:
    """The nodes of a table, those with most conversations first."""
    calls = [0] * len(drawing["nodes"])
    for edge in drawing["edges"]:
        for end in set(edge["ends"]):
            calls[end] += edge["conversations"]
    return sorted(range(len(calls)), key=lambda node: (-calls[node], node))


def layout(drawing: Drawing) -> Floats:
    """(nodes, 2) places in the unit square: drawn distances follow the steps between speakers."""
    count = len(drawing["nodes"])
    if count == 1:
        return np.full((1, 2), 0.5)
    ends = two_each(np.array([edge["ends"] for edge in drawing["edges"]], np.int64))
    with one_blas_thread():  # whoever draws, the same bytes
        place = _stress(_steps(ends, count))
        place = place - place.mean(axis=0)
        _, _, axes = np.linalg.svd(place, full_matrices=False)
        place = place @ axes.T  # the longest way lies flat
    # Signs of singular vectors are arbitrary: the first speaker lies left and above.
    place *= np.where(place[0] > 0.0, -1.0, 1.0)
    spread = np.ptp(place, axis=0).max()
    return np.asarray(0.5 + (place / spread if spread > 0.0 else place))


def _steps(ends: Ints, count: int) -> Floats:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import shortest_path

    apart = ends[ends[:, 0] != ends[:, 1]]
    graph = coo_matrix((np.ones(len(apart)), (apart[:, 0], apart[:, 1])), shape=(count, count))
    steps = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    return np.where(np.isfinite(steps), steps, 3.0)


def _stress(steps: Floats, rounds: int = 80) -> Floats:
    """Stress majorisation (Gansner, Koren & North 2004) from a circle, with weights steps^-2."""
    count = len(steps)
    angle = 2.0 * np.pi * np.arange(count) / count + 0.3
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    if count < 3:
        return place
    weight = np.zeros_like(steps)
    apart = steps > 0
    weight[apart] = steps[apart] ** -2.0
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(rounds):
        distance = np.linalg.norm(place[:, None] - place[None], axis=2)
        ratio = weight * steps / np.maximum(distance, 1e-9)
        np.fill_diagonal(ratio, 0.0)
        place = inverse @ (np.diag(ratio.sum(axis=1)) - ratio) @ place
    return place
