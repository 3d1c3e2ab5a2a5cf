"""Scores with a known truth, as a recognizer is judged by: same speaker or not."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import find_links
from spklink.errors import SpklinkError
from spklink.scores.files import read_all_scores
from spklink.scores.needed import SideScores

Floats = NDArray[Any]  # float32 or float64
Sides = NDArray[np.int64]


def read_trials(scores: Any, conversations: Conversations, key: Labels) -> tuple[Floats, Floats]:
    """All scores between two sides with a key: of the same speaker, and of others.

    One name in two groups may or may not be one person: such pairs are left out.
    """
    tell_apart = _truth(conversations, key)
    parts: tuple[list[Floats], list[Floats]] = ([], [])

    def observe(side_1: Sides, side_2: Sides, score: NDArray[np.float64]) -> None:
        for found, mask in zip(parts, tell_apart(side_1, side_2), strict=True):
            found.append(_narrow(score[mask]))

    read_all_scores(scores, conversations, find_links(conversations), observe)
    targets, others = (np.concatenate(p) if p else np.zeros(0) for p in parts)
    if not len(targets) or not len(others):
        name = scores if isinstance(scores, str | PathLike) else "scores"
        raise SpklinkError(
            f"{name}: {len(targets)} scores of the same speaker and {len(others)} of different "
            "speakers have a key; both kinds are needed"
        )
    return targets, others


def split_trials(
    conversations: Conversations, key: Labels, scores: SideScores
) -> tuple[Floats, Floats]:
    """The same of scores that are at hand; either may be empty."""
    same, other = _truth(conversations, key)(scores.side_1, scores.side_2)
    return scores.score[same], scores.score[other]


def _truth(
    conversations: Conversations, key: Labels
) -> Callable[[Sides, Sides], tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Which pairs are the same speaker, and which two."""
    speaker = key.speakers(conversations)
    group = conversations.group[conversations.sides.conversation]

    def tell_apart(side_1: Sides, side_2: Sides) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        one, two = speaker[side_1], speaker[side_2]
        kept = (one >= 0) & (two >= 0)
        same = kept & (one == two) & (group[side_1] == group[side_2])
        return same, kept & (one != two)

    return tell_apart


def _narrow(score: NDArray[np.float64]) -> Floats:
    """Half the memory where nothing is lost by it."""
    with np.errstate(over="ignore"):
        small = score.astype(np.float32)
    return small if np.array_equal(small.astype(np.float64), score) else score
