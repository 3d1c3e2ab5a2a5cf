"""The answer of a run in its results folder: posterior.npz, so that nothing that was solved is
solved again.

Arrays are in table order, as an `Answer` has them. An interval is kept where it has a width; texts
are numbers into a list of words. Where every conversation has two certain people on two tracks
there are two answers: of its states, and as bits given that the lists are right.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.npz_files import TEXT, Arrays, open_arrays
from spklink.posterior.answer import Answer, answer_of_states
from spklink.posterior.list_errors import Rate
from spklink.posterior.posterior import CALLS, CLIQUES, KIND, PAIRS, Options, Posterior
from spklink.posterior.states.marginals import Events
from spklink.posterior.states.solve import SeatBeliefs
from spklink.runs.evidence import Evidence
from spklink.whole_files import write_npz

NAME = "posterior.npz"
WORDS = ("method", "certainty", "reason")  # texts
INTERVALS = {  # of bits: a figure, and its two ends
    "exchanged": ("exchanged_low", "exchanged_high"),
    "both_exchanged": ("both_low", "both_high"),
    "log_evidence_low": ("log_evidence_low", "log_evidence_high"),
    "entropy_low": ("entropy_low", "entropy_high"),
}
ROUNDED = 1e-6  # by so much a sum may miss the end of what it can be
Kept = dict[str, NDArray[Any]]


def write_answer(answer: Answer, folder: Path) -> None:
    """posterior.npz. People on two tracks each are solved again: what was solved for them is a
    larger table."""
    if answer.split is not None:
        return
    words: dict[str, int] = {}
    found: Kept = {}
    if answer.table.plain:
        bits = answer.given(lists_right=True).bits
        found |= {f"bits_{name}": _coded(getattr(bits, name), words) for name in _whole_names()}
        for name, (low, high) in INTERVALS.items():
            ends = (getattr(bits, one) for one in (name, low, high))
            found |= _interval(f"bits_{name}", *ends)
    if not answer.binary:
        beliefs = answer.beliefs
        found |= {f"state_{name}": _coded(getattr(beliefs, name), words) for name in WORDS}
        found |= {f"state_{name}": getattr(beliefs, name) for name in ("place", "piece", "proved")}
        found |= {"state_log_sum_low": beliefs.log_sum[0], "state_log_sum_high": beliefs.log_sum[1]}
        found |= _interval("state_chance", beliefs.guess, beliefs.low, beliefs.high)
    write_npz(folder / NAME, found | {"words": np.array(list(words), np.str_)})


def read_answer(path: Path, evidence: Evidence, rate: Rate | None, how: Options) -> Answer:
    """What was kept, about the evidence of the same folder; `rate` is that of list errors, None
    where lists were taken at their word. `how` is for what was not kept, should anybody ask."""
    with open_arrays(path) as arrays:
        reader = _Reader(arrays)
        right = None
        if evidence.conversations.plain:
            right = evidence.of_bits(_bits(reader, evidence))
        if rate is None:
            if right is None:
                raise reader.unfit("bits")
            return right
        seats = evidence.seats(rate.value)
        beliefs = _beliefs(reader, Events(seats), evidence)
    given = partial(_known, right) if right else cache(partial(evidence.lists_right, how))
    table, cliques = evidence.conversations, evidence.cliques
    return answer_of_states(table, cliques, rate, seats, beliefs, given)


def _known(answer: Answer) -> Answer:
    return answer


def _whole_names() -> list[str]:
    """Arrays of bits that are kept as they are."""
    ends = {one for name, both in INTERVALS.items() for one in (name, *both)}
    return [name for name in KIND if name not in ends]


def _coded(values: Any, words: dict[str, int]) -> NDArray[Any]:
    """Texts as numbers into a list of words; anything else as it is."""
    array = np.asarray(values)
    if array.dtype.kind not in "OU":
        return array
    return np.array([words.setdefault(str(one), len(words)) for one in array.tolist()], np.int32)


def _interval(name: str, middle: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> Kept:
    apart = np.flatnonzero((low != middle) | (high != middle))
    return {
        name: middle,
        f"{name}_apart": apart,
        f"{name}_from": low[apart],
        f"{name}_to": high[apart],
    }


class _Reader:
    """Arrays that fit the table, or one line that says which does not."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.words = [str(word) for word in arrays.whole("words", kinds=TEXT)]

    def unfit(self, name: str) -> SpklinkError:
        return SpklinkError(f"{name} does not fit the table; make the results anew")

    def whole(self, name: str, size: int, least: float, most: float) -> NDArray[Any]:
        """Numbers between two ends, which may be infinite."""
        found = self.arrays.whole(name, kinds=TEXT)
        if len(found) != size or found.dtype.kind == "U":
            raise self.unfit(name)
        if size and not (found.min() >= least - ROUNDED and found.max() <= most + ROUNDED):
            raise self.unfit(name)
        return found

    def texts(self, name: str, size: int) -> list[str]:
        codes = self.whole(name, size, 0, len(self.words) - 1)
        if codes.dtype.kind not in "iu":
            raise self.unfit(name)
        return [self.words[k] for k in codes.tolist()]

    def interval(
        self, name: str, size: int, least: float, most: float
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        middle = self.whole(name, size, least, most).astype(np.float64)
        apart = self.arrays.whole(f"{name}_apart").astype(np.int64)
        if len(apart) and not (apart.min() >= 0 and apart.max() < size):
            raise self.unfit(f"{name}_apart")
        low, high = middle.copy(), middle.copy()
        for end, part in ((low, "from"), (high, "to")):
            end[apart] = self.whole(f"{name}_{part}", len(apart), least, most)
        return middle, low, high


def _bits(reader: _Reader, evidence: Evidence) -> Posterior:
    """The answer given that the lists are right."""
    sizes = {CALLS: len(evidence.conversations), PAIRS: len(evidence.links.first)}
    sizes[CLIQUES] = len(evidence.cliques)
    found: dict[str, Any] = {}
    for name in _whole_names():
        size = sizes[KIND[name]]
        if name in WORDS:
            found[name] = np.array(reader.texts(f"bits_{name}", size), object)
            continue
        known = {"bits": (-1, 1), "best": (0, 1), "proved": (0, 1)}
        found[name] = reader.whole(f"bits_{name}", size, *known.get(name, (-np.inf, np.inf)))
    for name, ends in INTERVALS.items():
        chance = (0.0, 1.0) if "exchanged" in name else (-np.inf, np.inf)
        middle, low, high = reader.interval(f"bits_{name}", sizes[KIND[name]], *chance)
        found |= dict(zip((*ends, name), (low, high, middle), strict=True))
    return Posterior(model=evidence.model, **found)


def _beliefs(reader: _Reader, events: Events, evidence: Evidence) -> SeatBeliefs:
    """What is believed of events."""
    table, seats = evidence.conversations, events.seats
    piece = reader.whole("state_piece", len(table), 0, max(len(table) - 1, 0)).astype(np.int64)
    pieces = int(piece.max(initial=-1)) + 1
    tracks = seats.layout.tracks[seats.node]
    place = reader.whole("state_place", len(table.people), 0, int(tracks.max(initial=0)))
    if (place > tracks).any():
        raise reader.unfit("state_place")
    guess, low, high = reader.interval("state_chance", events.count, 0.0, 1.0)
    ends = [
        reader.whole(f"state_log_sum_{end}", pieces, -np.inf, np.inf) for end in ("low", "high")
    ]
    method, certainty, reason = (reader.texts(f"state_{name}", pieces) for name in WORDS)
    return SeatBeliefs(
        place=place.astype(np.int64),
        guess=guess,
        low=low,
        high=high,
        piece=piece,
        log_sum=np.stack(ends),
        method=method,
        certainty=certainty,
        reason=reason,
        proved=reader.whole("state_proved", pieces, 0, 1).astype(np.bool_),
    )
