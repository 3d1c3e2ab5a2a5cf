"""How good each kind of evidence is by itself, and all of it together, given the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.measures.reliability import Reliability, bins_json, reliability

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Bits = NDArray[np.int8]


@dataclass(frozen=True)
class CueRow:
    """One kind of evidence, conversation by conversation."""

    name: str
    conversations: int  # with a key
    says: int  # of which it says anything
    wrong: float  # a tie is half an error
    expected_wrong: float
    bits: float  # cross entropy a conversation
    clique_errors: int  # cliques with a conversation that is wrong, not merely open
    open_bits: float  # entropy of what it leaves open, in all
    reliability: list[Reliability]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"reliability": bins_json(self.reliability, "conversations")}


def measure_odds(name: str, odds: Floats, truth: Bits, clique: Ints) -> CueRow:
    """From (M,) log-odds of exchanged and the true bits, -1 where these are not known."""
    there = truth >= 0
    clique = clique[there]
    odds, right = odds[there], np.where(truth[there] == 1, odds[there], -odds[there])
    sure = -np.logaddexp(0.0, -np.abs(odds))  # log-probability of what is more probable
    unsure = -np.logaddexp(0.0, np.abs(odds))
    entropy = -(np.exp(sure) * sure + np.exp(unsure) * unsure) / np.log(2.0)
    return CueRow(
        name=name,
        conversations=int(there.sum()),
        says=int((np.abs(odds) > EQUAL).sum()),
        wrong=float((right < -EQUAL).sum() + 0.5 * (np.abs(right) <= EQUAL).sum()),
        expected_wrong=float(np.exp(unsure).sum()),
        bits=float(np.logaddexp(0.0, -right).mean() / np.log(2.0)) if len(odds) else 0.0,
        clique_errors=len(np.unique(clique[right < -EQUAL])),
        open_bits=float(entropy.sum()),
        reliability=reliability(np.exp(sure[odds != 0.0]), right[odds != 0.0] > 0.0),
    )
