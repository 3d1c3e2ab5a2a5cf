"""The answers of cliques kept for later runs: what is the same in every number is not solved again.

A clique's answer depends on its conversations, what is known of them, and the log-likelihood-ratios
and weights of its links; a hash of all that is its name. (Model, rate of list errors and options
are those of the whole store.) Arrays are kept clique by clique, in table order within each, so that
what belongs to a clique is a range of every array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.links import pair_starts
from spklink.posterior.answer import Answer
from spklink.posterior.posterior import CALLS, CLIQUES, KIND, PAIRS, Posterior
from spklink.posterior.states.solve import SeatBeliefs
from spklink.runs.call_keys import Keys
from spklink.runs.evidence import Evidence

Arrays = dict[str, NDArray[Any]]
Ints = NDArray[np.int64]
ENTRIES, PLACES, SIDES, PIECES = "entries", "places", "sides", "pieces"
WORDS = ("method", "certainty", "reason")  # text, kept as numbers into a list
EVENTS = ("guess", "low", "high")
ODD = np.uint64(0x9E3779B97F4A7C15)


# --- names of cliques -----------------------------------------------------------------------------


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a number spread over all of another (splitmix64)."""
    x = values + ODD
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def joined_keys(*parts: NDArray[Any]) -> NDArray[np.uint64]:
    """One number of several, in this order."""
    found = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        whole = np.ascontiguousarray(part)
        bits = whole.view(np.uint64) if whole.dtype == np.float64 else whole.astype(np.uint64)
        found = _mixed(found * np.uint64(3) + bits)
    return found


def totals(values: NDArray[np.uint64], label: NDArray[Any], count: int) -> NDArray[np.uint64]:
    """(count,) sums that wrap around, by label."""
    order = np.argsort(label, kind="stable")
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values[order], dtype=np.uint64)])
    end = np.cumsum(np.bincount(label, minlength=count))
    return np.asarray(np.diff(total[np.concatenate([[0], end])]))


def clique_names(evidence: Evidence, keys: Keys) -> Keys:
    """(K,) of all that the answer of a clique depends on."""
    table, links, cliques = evidence.conversations, evidence.links, evidence.cliques
    rank = np.empty(len(table), np.int64)
    rank[cliques.order] = ranges(np.zeros(len(cliques), np.int64), cliques.size)
    node = joined_keys(keys, rank, table.prior, _known(evidence), _sums(evidence))
    start = pair_starts(links, table.sides)
    llr = evidence.scores.needed
    place = ranges(np.zeros(len(start) - 1, np.int64), np.diff(start))
    pair = np.repeat(np.arange(len(start) - 1), np.diff(start))
    of_pair = totals(joined_keys(place, llr), pair, len(start) - 1)
    first, second = links.first[links.pair], links.second[links.pair]
    where = links.position_first.astype(np.int64) << 8 | links.position_second.astype(np.int64)
    weight = evidence.weight.of(links.calls)
    link = joined_keys(node[first], node[second], where, weight, of_pair[links.pair])
    label, count = cliques.label, len(cliques)
    resolvable = cliques.resolvable.astype(np.uint64)
    return joined_keys(totals(node, label, count), totals(link, label[first], count), resolvable)


def _known(evidence: Evidence) -> NDArray[np.uint64]:
    """(M,) what somebody knows of the channels of each."""
    known, size = evidence.known, len(evidence.conversations)
    if known is None:
        return np.zeros(size, np.uint64)
    said = known.said
    rows = joined_keys(said.track, said.person + 2, said.probability)
    label = np.asarray(said.conversation, np.int64)
    return joined_keys(np.nan_to_num(known.exchanged, nan=2.0), totals(rows, label, size))


def _sums(evidence: Evidence) -> NDArray[np.uint64]:
    """(M,) what frequent voices add to the seats of each."""
    table, size = evidence.conversations, len(evidence.conversations)
    if not len(table.sums):
        return np.zeros(size, np.uint64)
    count = table.listing.counts * table.sides.counts
    place = ranges(np.zeros(size, np.int64), count)
    return totals(joined_keys(place, table.sums), np.repeat(np.arange(size), count), size)


# --- where the values of cliques stand ------------------------------------------------------------


@dataclass(frozen=True)
class Ranges:
    """Values clique by clique: which of a flat array, and where those of each clique begin."""

    order: Ints
    start: Ints  # (K + 1,)

    def of(self, cliques: Ints) -> Ints:
        """Places in clique order of all values of some cliques."""
        return ranges(self.start[cliques], np.diff(self.start)[cliques])


class Layout:
    """How the arrays of a database fall into cliques."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @cached_property
    def all(self) -> dict[str, Ranges]:
        table, cliques = self.evidence.conversations, self.evidence.cliques
        people, tracks = table.listing.counts, table.sides.counts
        counts = {
            CALLS: np.ones(len(table), np.int64),
            ENTRIES: people,
            PLACES: people * (tracks + 1),
            SIDES: tracks,
        }
        found = {kind: _of_calls(count, cliques) for kind, count in counts.items()}
        label = cliques.label[self.evidence.links.first]
        found[PAIRS] = _by_label(label, len(cliques))
        found[CLIQUES] = Ranges(np.arange(len(cliques)), np.arange(len(cliques) + 1))
        return found


def _of_calls(count: Ints, cliques: Any) -> Ranges:
    begin = np.cumsum(count) - count
    of_clique = np.concatenate([[0], np.cumsum(count[cliques.order])])
    return Ranges(ranges(begin[cliques.order], count[cliques.order]), of_clique[cliques.start])


def _by_label(label: NDArray[Any], count: int) -> Ranges:
    start = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    return Ranges(np.argsort(label, kind="stable"), start)


# --- kept and taken out again ---------------------------------------------------------------------


def _coded(texts: Any, words: list[str]) -> NDArray[np.int32]:
    """Text as numbers into a list of words, which grows."""
    number = {word: k for k, word in enumerate(words)}
    found = [number.setdefault(str(text), len(number)) for text in texts]
    words[:] = list(number)
    return np.array(found, np.int32)


def bits_arrays(posterior: Posterior, layout: Layout, words: list[str]) -> Arrays:
    """A posterior of bits, clique by clique."""
    found: Arrays = {}
    for name, kind in KIND.items():
        values = getattr(posterior, name)[layout.all[kind].order]
        found[f"bits_{name}"] = _coded(values, words) if name in WORDS else values
    return found


def seat_arrays(answer: Answer, layout: Layout, words: list[str]) -> Arrays:
    """A posterior over states, clique by clique."""
    beliefs, places, sides = answer.beliefs, answer.events.places, answer.events.sides
    cuts = {PLACES: slice(0, places), SIDES: slice(places, places + sides)}
    cuts[CALLS] = slice(places + sides, None)
    found: Arrays = {"seat_place": beliefs.place[layout.all[ENTRIES].order]}
    for name in EVENTS:
        for kind, cut in cuts.items():
            found[f"seat_{name}_{kind}"] = getattr(beliefs, name)[cut][layout.all[kind].order]
    pieces, local = _pieces(beliefs.piece, answer.cliques.label, len(answer.cliques))
    found["seat_piece"] = local[layout.all[CALLS].order]
    found["seat_piece_start"] = pieces.start
    found["seat_log_sum"] = beliefs.log_sum[:, pieces.order]
    found["seat_proved"] = beliefs.proved[pieces.order]
    for name in WORDS:
        texts = getattr(beliefs, name)
        found[f"seat_{name}"] = _coded([texts[k] for k in pieces.order.tolist()], words)
    return found


def _pieces(piece: Ints, label: NDArray[Any], cliques: int) -> tuple[Ranges, Ints]:
    """Pieces clique by clique, and (M,) the number of its piece within its clique."""
    first = np.zeros(int(piece.max(initial=-1)) + 1, np.int64)
    first[piece[::-1]] = np.arange(len(piece))[::-1]
    found = _by_label(label[first], cliques)
    rank = np.empty(len(first), np.int64)
    rank[found.order] = np.arange(len(first))
    return found, rank[piece] - found.start[label]


@dataclass(frozen=True)
class KeptCliques:
    """Answers of an earlier run, and which cliques of this one they are about."""

    arrays: Mapping[str, NDArray[Any]]
    words: list[str]
    now: Ints  # cliques of this run that are kept
    then: Ints  # the same in the earlier one
    touched: NDArray[np.bool_]  # (K,) cliques of this run that are not

    def _start(self, kind: str) -> Ints:
        return np.asarray(self.arrays[f"start_{kind}"])

    def _filled(self, name: str, kind: str, layout: Layout, fresh: NDArray[Any]) -> NDArray[Any]:
        """Values of all cliques: kept ones, and fresh ones of those touched."""
        of, start = layout.all[kind], self._start(kind)
        kept = np.asarray(self.arrays[name])
        values = np.empty(len(of.order), fresh.dtype if len(fresh) else kept.dtype)
        values[of.order[of.of(self.now)]] = kept[
            ranges(start[self.then], np.diff(start)[self.then])
        ]
        mine = np.zeros(len(of.order), np.bool_)
        mine[of.order[of.of(np.flatnonzero(self.touched))]] = True
        values[mine] = fresh
        return values

    def bits(self, evidence: Evidence, layout: Layout, fresh: Posterior | None) -> Posterior:
        """The posterior of all cliques, given that of those touched."""
        arrays: Arrays = {}
        for name, kind in KIND.items():
            own = np.zeros(0) if fresh is None else getattr(fresh, name)
            if name not in WORDS:
                arrays[name] = self._filled(f"bits_{name}", kind, layout, own)
                continue
            texts = np.full(len(evidence.cliques), "", object)
            codes = np.asarray(self.arrays[f"bits_{name}"])[self.then].tolist()
            texts[self.now] = np.array([self.words[k] for k in codes], object)
            texts[self.touched] = own if fresh is not None else texts[self.touched]
            arrays[name] = texts
        return Posterior(model=evidence.model, **arrays)

    def seats(self, layout: Layout, fresh: SeatBeliefs | None) -> SeatBeliefs:
        """Beliefs about all cliques, given those about the ones touched."""
        nothing = np.zeros(0)
        parts = _sections(layout, self.touched, fresh)
        events = {
            name: np.concatenate(
                [
                    self._filled(
                        f"seat_{name}_{kind}", kind, layout, parts.get((name, kind), nothing)
                    )
                    for kind in (PLACES, SIDES, CALLS)
                ]
            )
            for name in EVENTS
        }
        own = nothing if fresh is None else fresh.place
        place = self._filled("seat_place", ENTRIES, layout, own)
        whole: dict[str, Any] = {**events, **self._whole(layout, fresh)}
        return SeatBeliefs(place=place.astype(np.int64), **whole)

    def _whole(self, layout: Layout, fresh: SeatBeliefs | None) -> dict[str, Any]:
        """What is said of pieces: the kept ones first, then fresh ones."""
        start = np.asarray(self.arrays["seat_piece_start"])
        count = np.diff(start)[self.then]
        chosen = ranges(start[self.then], count)
        first = np.zeros(len(self.touched), np.int64)
        first[self.now] = np.cumsum(count) - count
        own = np.zeros(0, np.int64) if fresh is None else fresh.piece + len(chosen)
        local = self._filled("seat_piece", CALLS, layout, own).astype(np.int64)
        label = layout.evidence.cliques.label
        piece = np.where(self.touched[label], local, local + first[label])
        words = {
            name: [self.words[k] for k in np.asarray(self.arrays[f"seat_{name}"])[chosen].tolist()]
            + (getattr(fresh, name) if fresh is not None else [])
            for name in WORDS
        }
        log_sum = np.asarray(self.arrays["seat_log_sum"])[:, chosen]
        proved = np.asarray(self.arrays["seat_proved"])[chosen]
        if fresh is not None:
            log_sum = np.concatenate([log_sum, fresh.log_sum], axis=1)
            proved = np.concatenate([proved, fresh.proved])
        return {"piece": piece, "log_sum": log_sum, "proved": proved, **words}


def _sections(
    layout: Layout, touched: NDArray[np.bool_], fresh: SeatBeliefs | None
) -> dict[tuple[str, str], NDArray[Any]]:
    """Events of fresh beliefs by what they are about."""
    if fresh is None:
        return {}
    mine = np.flatnonzero(touched)
    places, sides = (len(layout.all[kind].of(mine)) for kind in (PLACES, SIDES))
    cuts = {PLACES: slice(0, places), SIDES: slice(places, places + sides)}
    cuts[CALLS] = slice(places + sides, None)
    return {
        (name, kind): getattr(fresh, name)[cut] for name in EVENTS for kind, cut in cuts.items()
    }


def starts(layout: Layout) -> Arrays:
    """Where the values of every clique begin."""
    return {f"start_{kind}": one.start for kind, one in layout.all.items()}
