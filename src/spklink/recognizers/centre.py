"""The middle of a database in which one person is on very many sides.

Vectors are compared as seen from the mean of all sides. Where one person takes part in a large
share of the conversations that mean leans towards his voice: seen from there he and all the others
stand on opposite sides, the others look alike, and nothing tells him from them. So his sides are
left out of the mean. Which they are is not known, but it shows: the two sides of his conversations
fall into two heaps, and the tighter one is one voice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent, chosen_frequent
from spklink.database.sides import TWO
from spklink.recognizers.products import MEAN_ROWS, Singles, mean_of

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Of all conversations: a choice. The mean leans by half of it towards the person's voice.
LARGE_SHARE = 0.05
# The same of people whose links are listed, whose vectors may teach what is kept for later runs: a
# choice, far above the .16 of the real calls that all else was measured on.
MOST = 0.5
ROUNDS = 12  # of power iteration: only signs are needed
FEWEST = 50  # sides that a mean needs


def balanced_mean(
    conversations: Conversations, frequent: Frequent, vectors: Singles, row: Sides, usable: Mask
) -> Singles | None:
    """(width,) the mean of all usable sides but those of people with a large share of the
    conversations; None where nobody has one, or too little would be left. The vector of side s is
    vectors[row[s]]."""
    theirs = np.zeros(len(usable), np.bool_)
    large = np.flatnonzero(frequent.calls > LARGE_SHARE * len(conversations)).tolist()
    entries = [frequent.of(f) for f in large] if len(frequent) else leading(conversations)
    for own in entries:
        calls = conversations.listing.conversation_of(own)
        calls = calls[conversations.sides.counts[calls] == TWO]
        first = conversations.sides.start[calls]
        both = usable[first] & usable[first + 1]
        if both.sum() > FEWEST:
            theirs[_one_voice(vectors, row, first[both])] = True
    left = usable & ~theirs
    if not theirs.any() or left.sum() < FEWEST:
        return None
    chosen = np.zeros(len(vectors), np.bool_)
    chosen[row[left]] = True
    return mean_of(vectors, chosen)


def leading(conversations: Conversations) -> list[Sides]:
    """The entries of whoever takes part in more than half of the conversations. Where two do so the
    middle is between their voices, which is where both are seen best from."""
    found = chosen_frequent(conversations, max(int(MOST * len(conversations)), FEWEST))
    return [found.of(0)] if len(found) == 1 else []


def _one_voice(vectors: Singles, row: Sides, first: Sides) -> Sides:
    """The sides of the tighter of two heaps, one of each conversation; `first` are its first
    sides."""
    turned = _signs(vectors, row, first)
    heaps = [first + turned, first + ~turned]
    spread = [_scatter(vectors, row[heap]) for heap in heaps]
    return heaps[int(spread[1] < spread[0])]


def _signs(vectors: Singles, row: Sides, first: Sides) -> Mask:
    """(conversations,) which way the difference of the two sides points along the main direction
    of all differences."""

    def gaps(part: slice) -> Singles:
        return np.asarray(vectors[row[first[part] + 1]] - vectors[row[first[part]]])

    return main_signs(gaps, len(first), MEAN_ROWS)


def main_signs(
    gaps: Callable[[slice], NDArray[np.floating]], count: int, step: int
) -> NDArray[np.bool_]:
    """(count,) which way each of many vectors points along the main direction of all, by power
    iteration; `gaps` gives some of them, `step` at a time."""
    blocks = [slice(k, min(k + step, count)) for k in range(0, count, step)]
    kept = gaps(blocks[0]) if len(blocks) == 1 else None
    along: NDArray[np.floating] = gaps(slice(0, 1))[0]
    for _ in range(ROUNDS):
        total = np.zeros_like(along)
        for part in blocks:
            own = gaps(part) if kept is None else kept
            total = total + (own @ along) @ own
        along = total / max(float(np.linalg.norm(total)), 1e-30)
    signs = [(gaps(part) if kept is None else kept) @ along > 0.0 for part in blocks]
    return np.concatenate(signs)


def _scatter(vectors: Singles, rows: Sides) -> float:
    """Mean square distance from the mean."""
    square, total = 0.0, np.zeros(vectors.shape[1])
    for k in range(0, len(rows), MEAN_ROWS):
        own = vectors[rows[k : k + MEAN_ROWS]].astype(np.float64)
        square += float((own**2).sum())
        total += own.sum(axis=0)
    return square / len(rows) - float((total / len(rows)) @ (total / len(rows)))
