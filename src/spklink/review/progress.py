"""How far a review is, and how often people hear what the system would have said."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.decisions.log import Decision
from spklink.measures.reliability import wilson
from spklink.runs.result import Result


@dataclass(frozen=True)
class Progress:
    """How far a database is."""

    conversations: int
    decided: int  # by people
    settled: int  # by inference alone
    open: int  # neither
    disagreements: int
    unsure: int  # heard, and nobody could tell
    held_back: int  # decided, but the recording has changed since
    bits_left: tuple[float, float]  # of what is not known, low and high end
    listens: tuple[float, float]  # expected until all is certain enough, low and high end
    listens_exact: bool
    hours_decided: float | None  # of speech in what people decided; None where nobody knows
    hours_saved: float | None  # of speech in what nobody had to hear

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"bits_left": list(self.bits_left), "listens": list(self.listens)}


@dataclass(frozen=True)
class Agreement:
    """How often people who were not shown the answer heard what it says."""

    count: int
    same: int
    expected: float  # how many of them the probabilities promise
    rate: float | None
    low: float | None  # 95 % interval of the rate
    high: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def agreement_of(blind: list[Decision]) -> Agreement:
    """Of decisions that were made blind."""
    if not blind:
        return Agreement(0, 0, 0.0, None, None, None)
    same = sum(_agrees(one) for one in blind)
    expected = sum(float(one.shown.get("probability", 0.0)) for one in blind)
    rate = same / len(blind)
    return Agreement(len(blind), same, expected, rate, *wilson(rate, len(blind)))


def _agrees(one: Decision) -> bool:
    said = one.shown.get("suggestion")
    if not isinstance(said, list) or len(said) != len(one.seats):
        return False
    return all(who is None or who == by for who, by in zip(one.seats, said, strict=True))


def hours_of(result: Result) -> NDArray[np.float64] | None:
    """(M,) of speech."""
    if result.listening is None or not result.listening.speech.known:
        return None
    sides = result.conversations.sides
    seconds = result.listening.speech.seconds
    return np.bincount(sides.conversation, seconds, len(result.conversations)) / 3600.0
