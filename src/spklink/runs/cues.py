"""Other evidence than voices in a run: gathered, learned with voices as witness, written, shown.

cues.csv       conversation,track,speaker,cue,log_odds   what each cue adds to every seat
evidence.csv   conversation,cue,log_odds                 what speaks for what is claimed, voices too
conflicts.csv  conversation,cue,log_odds,against,log_odds_against

All are natural log-odds. In evidence.csv and conflicts.csv they are for what assignments.csv says,
against the two people exchanged (with more people: against the best exchange of two of them). The
rows of two certain people on two tracks add up to the log-odds of their assignment, given that the
list is right: what is no cue's is the voices'. Of other conversations only cues have rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cues.cue import (
    PRIOR,
    VOICES,
    Cue,
    Floats,
    PriorColumn,
    Terms,
    chances_of_odds,
    for_places,
    nothing,
    odds_in,
    pairs,
    seat_layout,
    with_cues,
)
from spklink.cues.given import read_cues
from spklink.database.conversations import Conversations
from spklink.database.sides import TWO
from spklink.errors import SpklinkError
from spklink.posterior.answer import Answer, certain_calls
from spklink.posterior.posterior import Posterior
from spklink.runs.evidence import Evidence
from spklink.runs.inputs import Inputs
from spklink.runs.result import Result
from spklink.tables import Table, read_cells

CUES = ("conversation", "track", "speaker", "cue", "log_odds")
EVIDENCE = ("conversation", "cue", "log_odds")
CONFLICTS = ("conversation", "cue", "log_odds", "against", "log_odds_against")
STRONG = float(np.log(19.0))  # log-odds from which two cues that disagree are told: .95
LEAST = 1e-6  # probability of a place, where it is only an estimate
BOTH = np.array([[2, 2, 1], [2, 2, 1], [1, 1, 0]])  # how many are there: on a track each, nowhere
SCALINGS = 100  # rounds; more change log-odds by less than .01
LARGEST = 36.0  # log-odds that a probability of double precision tells from certainty


@dataclass(frozen=True)
class Cues:
    """The cues of a run, and what they say."""

    learners: list[Cue] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)

    @classmethod
    def first(cls, learners: list[Cue], table: Conversations) -> Cues:
        """Each by itself."""
        return cls(learners, [one.terms(table) for one in learners])

    def with_voices(self, table: Conversations, answer: Answer) -> Cues:
        """Each learned once more, with all other evidence as its witness."""
        again = [
            cue.terms(table, _without(one, table, answer))
            for cue, one in zip(self.learners, self.terms, strict=True)
        ]
        return replace(self, terms=again)

    def on(self, table: Conversations) -> Conversations:
        """The table with what they say."""
        return with_cues(replace(table, cues=np.zeros(0)), self.terms)


def _without(one: Terms, table: Conversations, answer: Answer) -> Floats:
    """(seats,) how probable all evidence but one cue makes each seat."""
    if answer.binary:
        odds = odds_of(answer.bits) - odds_in(table, one.seat)
        return chances_of_odds(table, np.clip(odds, -LARGEST, LARGEST))
    layout, listing, pair = seat_layout(table), table.listing, pairs(table)
    found = nothing(table)
    for m in range(len(table)):
        own = layout.seats(one.seat, m)
        # Of two people each has half of what is said of both.
        own = own + own[::-1, ::-1] if pair[m] else own
        entries = range(listing.of(m).start, listing.of(m).stop)
        now = np.array([answer.places(entry).chance for entry in entries])
        if len(now):
            chance = np.clip(now, LEAST, 1.0)
            chance[:, :-1] *= np.exp(-own)
            layout.seats(found, m)[:] = (chance / chance.sum(axis=1, keepdims=True))[:, :-1]
    return found


def odds_of(posterior: Posterior) -> Floats:
    """(M,) log-odds of exchanged."""
    least = np.exp(-LARGEST)
    chance = np.clip(posterior.exchanged, least, 1.0)
    other = np.clip(1.0 - posterior.exchanged, least, 1.0)
    return np.asarray(np.log(chance) - np.log(other))


def given_cues(inputs: Inputs, table: Conversations) -> tuple[Cue, ...]:
    """Those of --cue."""
    found = inputs.table("cue")
    return () if found is None else tuple(read_cues(found, table))


def with_conflicts(result: Result) -> Result:
    """A result that says where its evidence disagrees."""
    if not result.evidence.cues:
        return result
    said = for_claimed(result.evidence, result.answer)
    note = conflict_note(conflict_rows(said, result.conversations))
    return replace(result, notes=[*result.notes, *filter(None, [note])])


# --- what is told ---------------------------------------------------------------------------------


def told_terms(evidence: Evidence) -> list[Terms]:
    """All cues, the column `prior` too where it says anything."""
    table, found = evidence.conversations, list(evidence.cues)
    if (table.prior != 0.5).any():
        found = [PriorColumn().terms(table), *found]
    return found


def for_claimed(evidence: Evidence, answer: Answer) -> dict[str, Floats]:
    """(M,) of each kind of evidence, log-odds for what is claimed; NaN where it says nothing."""
    table = evidence.conversations
    if table.plain:
        right = answer.given(lists_right=True)
        place, odds, given = right.place, odds_of(right.bits), right.bits.bits >= 0
        exchanged = right.bits.best == 1
    else:
        odds, given = exchange_odds(answer), certain_calls(table, evidence.known)
        place, exchanged = _exchanged(table, answer.beliefs.place, odds)
    found, total = {}, np.zeros(len(table))
    for one in told_terms(evidence):
        own = for_places(table, one.seat, place)
        found[one.name] = np.where(one.said(table), own, np.nan)
        total += own
    if not np.isfinite(odds).any():
        return found
    together = np.where(exchanged, odds, -odds)
    return {VOICES: np.where(given, np.nan, together - total)} | found


def exchange_odds(answer: Answer) -> Floats:
    """(M,) log-odds of exchanged, given that both people are there; NaN of all conversations but
    those of two certain people on two tracks.

    A answer has the probabilities of the places of single people, whether the other one is there
    or not. Both together are what the prior of lists makes of these, scaled until they agree."""
    table, seats = answer.table, answer.seats
    found, those = np.full(len(table), np.nan), np.flatnonzero(_certain_pairs(table))
    start = seats.place_start[seats.person_start[those]]
    alone = answer.beliefs.guess[start[:, None] + np.arange(TWO * 3)].reshape(-1, TWO, 3)
    alone = np.maximum(alone, np.exp(-LARGEST))
    one, two = np.moveaxis(alone / alone.sum(axis=2, keepdims=True), 1, 0)
    count = seats.count[seats.layout.count_start[those][:, None] + np.arange(3)]
    joint = np.exp(count - count.max(axis=1, keepdims=True))[:, BOTH] * (1.0 - np.diag([1, 1, 0]))
    for _ in range(SCALINGS):
        joint *= (one / joint.sum(axis=2))[:, :, None]
        joint *= (two / joint.sum(axis=1))[:, None, :]
    found[those] = np.clip(np.log(joint[:, 1, 0]) - np.log(joint[:, 0, 1]), -LARGEST, LARGEST)
    return found


def _certain_pairs(table: Conversations) -> NDArray[np.bool_]:
    """(M,) conversations of two certain people on two tracks."""
    possible = np.bincount(table.listing.conversation, table.possible, len(table))
    return np.asarray(pairs(table) & (possible == 0))


def _exchanged(
    table: Conversations, place: NDArray[np.int64], odds: Floats
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(entries,) places, where one of two certain people is absent as if the list were right; and
    (M,) whether two certain people are exchanged there."""
    those = np.flatnonzero(np.isfinite(odds))
    first = table.listing.start[those]
    absent = place[first] + place[first + 1] != 1
    exchanged = np.zeros(len(table), np.bool_)
    exchanged[those] = np.where(absent, odds[those] > 0.0, place[first] == 1)
    place = place.copy()
    place[first], place[first + 1] = exchanged[those], ~exchanged[those]
    return place, exchanged


def evidence_rows(said: dict[str, Floats], table: Conversations) -> Iterator[tuple[str, str, str]]:
    """Rows of evidence.csv."""
    for m, name in enumerate(table.ids):
        for cue, odds in said.items():
            if np.isfinite(odds[m]):
                yield name, cue, f"{odds[m]:.6g}"


def conflict_rows(said: dict[str, Floats], table: Conversations) -> list[tuple[str, ...]]:
    """Rows of conflicts.csv, the strongest conflict first."""
    found = []
    for one, two in combinations(said, 2):
        a, b = said[one], said[two]
        with np.errstate(invalid="ignore"):
            here = np.flatnonzero((a * b < 0.0) & (np.minimum(np.abs(a), np.abs(b)) >= STRONG))
        found += [(min(abs(a[m]), abs(b[m])), int(m), one, two) for m in here]
    found.sort(key=lambda row: (-row[0], row[1]))
    return [
        (table.ids[m], one, f"{said[one][m]:.6g}", two, f"{said[two][m]:.6g}")
        for _, m, one, two in found
    ]


def conflict_note(rows: Sequence[Sequence[str]]) -> str:
    """What a person should know about them."""
    if not rows:
        return ""
    calls = list(dict.fromkeys(row[0] for row in rows))
    named = ", ".join(calls[:3]) + (f" and {len(calls) - 3} more" if len(calls) > 3 else "")
    return f"evidence disagrees strongly about {named}: listen to them (conflicts.csv)"


# --- written and read back ------------------------------------------------------------------------


def cue_rows(evidence: Evidence) -> Iterator[tuple[str, str, str, str, str]]:
    """Rows of cues.csv: every seat of conversations that a cue says something of."""
    table = evidence.conversations
    layout = seat_layout(table)
    for one in evidence.cues:
        for m in np.flatnonzero(one.said(table)).tolist():
            own, tracks = layout.seats(one.seat, m), table.tracks(m)
            for p, person in enumerate(table.names(m)):
                for k, track in enumerate(tracks):
                    yield table.ids[m], track, person, one.name, repr(float(own[p, k]))


def read_cue_terms(path: Table, table: Conversations) -> tuple[Terms, ...]:
    """What cues.csv of a results folder says."""
    layout, where, seats = seat_layout(table), table.index(), dict[str, Floats]()
    for name, track, person, cue, odds in read_cells(
        path, dict.fromkeys(CUES[:4], str) | {CUES[4]: float}
    ):
        m = where.get(name, -1)
        if m < 0 or person not in table.names(m) or track not in table.tracks(m):
            raise SpklinkError(
                f"cues.csv: {person!r} on track {track!r} of {name!r} is not in the table; make "
                "the results anew"
            )
        own = layout.seats(seats.setdefault(cue, nothing(table)), m)
        own[table.names(m).index(person), table.tracks(m).index(track)] = odds
    return tuple(Terms(name, seat) for name, seat in seats.items())


def cue_tables(evidence: Evidence, answer: Answer) -> dict[str, tuple[Sequence[str], list[Any]]]:
    """Name, columns and rows of all that is written about cues; nothing where there are none."""
    if not evidence.cues:
        return {}
    table = evidence.conversations
    said = for_claimed(evidence, answer)
    return {
        "cues": (CUES, list(cue_rows(evidence))),
        "evidence": (EVIDENCE, list(evidence_rows(said, table))),
        "conflicts": (CONFLICTS, conflict_rows(said, table)),
    }


def about_cues(evidence: Evidence) -> dict[str, Any]:
    """What they learned, for run.json; nothing where there are none."""
    return {"cues": {one.name: one.about for one in evidence.cues}} if evidence.cues else {}


def cue_odds(evidence: Evidence) -> dict[str, NDArray[np.float64]]:
    """(M,) log-odds of exchanged, of every cue; PRIOR included."""
    table = evidence.conversations
    found = {one.name: odds_in(table, one.seat) for one in told_terms(evidence)}
    return {PRIOR: found.pop(PRIOR), **found} if PRIOR in found else found
