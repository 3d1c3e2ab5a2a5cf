"""How good each kind of evidence is by itself, and all of it together, given the truth.

Conversation by conversation where each is one bit; else track by track.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import EQUAL
from spklink.measures.reliability import Reliability, bins_json, reliability
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.seat_truth import UNSAID

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
LEAST = 1e-12  # probability: less is taken for this


@dataclass(frozen=True)
class CueRow:
    """One kind of evidence, conversation by conversation or track by track."""

    name: str
    conversations: int  # with a key; tracks where `tracks`
    says: int  # of which it says anything
    wrong: float  # a tie is half an error
    expected_wrong: float
    bits: float  # cross entropy a conversation
    clique_errors: int  # cliques with a conversation that is wrong, not merely open
    open_bits: float  # entropy of what it leaves open, in all
    reliability: list[Reliability]
    tracks: bool = False

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


def measure_tracks(name: str, answer: Answer, truth: Ints) -> CueRow:
    """From the (sides,) entries of lists that are truly there; STRANGER for somebody else, UNSAID
    where that is not known. Several who are equally probable are right in turn."""
    count = says = cliques = 0
    wrong = expected = bits = left = 0.0
    sure, right = [], []
    bad, table = set[int](), answer.table
    for side in np.flatnonzero(truth != UNSAID).tolist():
        m, track = int(table.sides.conversation[side]), int(table.sides.position[side])
        chance = _on_track(answer, m, track)
        entry = int(truth[side])
        own = chance[-1] if entry == STRANGER else chance[entry - table.listing.of(m).start]
        top = float(chance.max())
        ties = int((chance > top - EQUAL).sum())
        count += 1
        says += ties == 1
        wrong += 1.0 - (own > top - EQUAL) / ties
        expected += 1.0 - top
        bits -= float(np.log2(max(own, LEAST)))
        left -= float((chance * np.log2(np.maximum(chance, LEAST))).sum())
        if own <= top - EQUAL:
            bad.add(int(answer.cliques.label[m]))
        if ties == 1:
            sure.append(top)
            right.append(own > top - EQUAL)
    cliques = len(bad)
    kept = reliability(np.array(sure), np.array(right, np.bool_)) if sure else []
    return CueRow(
        name, count, says, wrong, expected, bits / max(count, 1), cliques, left, kept, tracks=True
    )


def _on_track(answer: Answer, m: int, track: int) -> Floats:
    """(people + 1,) who is on a track; the last one is someone else."""
    entries = answer.table.listing.of(m)
    own = [answer.places(e).chance[track] for e in range(entries.start, entries.stop)]
    return np.array([*own, answer.stranger.chance[answer.table.sides.start[m] + track]])
