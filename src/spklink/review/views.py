"""Everything a page shows about one conversation: who is where, why, and what hangs on it.

Evidence is in log10 of likelihood ratios, as in the report (`runs.weighed`): all rows together are
the log10 odds of the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.links import pair_starts
from spklink.database.lists import OTHERS
from spklink.decisions.log import Decision
from spklink.decisions.verdicts import Verdict
from spklink.runs.part import Part
from spklink.runs.queue import Asked
from spklink.runs.rows import (
    CERTAIN,
    GIVEN,
    INFERRED,
    OPEN,
    POSSIBLE,
    SETTLED,
    UNRESOLVABLE,
    UNUSABLE,
)

if TYPE_CHECKING:
    from spklink.review.desk import Desk

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LN10 = float(np.log(10.0))
LINK, CUE, BEFORE, REST = "link", "cue", "before", "rest"
HEARD = "heard"  # where a name comes from, beside `given` and `inferred`
MOST_NEIGHBOURS = 60
MOST_NODES = 150  # of a clique that is drawn; of a larger one what is next to the conversation
MOST_ROWS = 40  # of evidence; the rest is one row


@dataclass(frozen=True)
class Track:
    """Who is on one track."""

    track: str  # as files call it: 1, 2, … or what a diarization says
    side: int  # its number among all sides
    name: str | None  # "*" for someone else; None where the sound cannot be used
    probability: float
    low: float
    high: float
    decision: str  # settled, open, unresolvable, unusable
    origin: str  # inferred, given, heard
    by: tuple[str, ...]  # who heard it
    speech_seconds: float | None


@dataclass(frozen=True)
class ListedPerson:
    """Somebody who is listed, and how probably there."""

    name: str
    status: str  # certain, possible
    probability: float


@dataclass(frozen=True)
class EvidenceRow:
    """One bar: positive speaks for what is said."""

    kind: str  # link, cue, before, rest
    label: str
    log10: float
    other: int | None = None  # the other conversation of a link, in the whole table


@dataclass(frozen=True)
class Neighbour:
    """A track of another conversation that is said to be one of the same people."""

    m: int
    conversation: str
    track: int  # from 0
    track_label: str
    side: int
    name: str
    probability: float
    settled: bool
    decided: bool
    log10: tuple[float, ...]  # likelihood ratio to each track of this conversation: same voice


@dataclass(frozen=True)
class Node:
    """A conversation in the picture of a clique."""

    m: int
    conversation: str
    names: tuple[str, ...]
    probability: float
    kind: str  # decided, settled, open, unresolvable, disagreement


@dataclass(frozen=True)
class Graph:
    """The clique, or what is next to the conversation where it is too large."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int, tuple[str, ...]], ...]  # places in `nodes`, the people in both
    conversations: int  # of the whole clique
    certainty: str


@dataclass(frozen=True)
class View:
    """One conversation."""

    m: int
    conversation: str
    clique: int  # its number, from 0
    audio: tuple[str, ...]
    asked: Asked
    tracks: tuple[Track, ...]
    listed: tuple[ListedPerson, ...]
    certainty: str  # exact, certified, sampled, estimated
    evidence: tuple[EvidenceRow, ...]
    total: float  # log10 odds: the sum of the rows
    neighbours: tuple[Neighbour, ...]
    graph: Graph
    decisions: tuple[Decision, ...]  # all entries about it
    undone: frozenset[int]  # numbers of those that were taken back
    verdict: Verdict
    decided: bool
    disagreement: bool

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["verdict"], plain["decisions"], plain["undone"]
        entries = [one.as_json() for one in self.decisions]
        return plain | {"decisions": entries, "undone": sorted(self.undone)}


def view_of(desk: Desk, part: Part, i: int) -> View:
    """Conversation i of a part."""
    m = int(part.calls[i])
    name, verdict = desk.table.ids[m], desk.verdict(m)
    rows = tuple(_evidence(part, i))
    entries = desk.verdicts.of.get(name, [])
    return View(
        m=m,
        conversation=name,
        clique=int(desk.cliques.label[m]),
        audio=desk.table.audio[m],
        asked=desk.asked(m),
        tracks=tuple(tracks_of(desk, part, i)),
        listed=tuple(_listed(part, i)),
        certainty=part.certainty(i),
        evidence=rows,
        total=sum(row.log10 for row in rows),
        neighbours=tuple(_neighbours(desk, part, i)),
        graph=_graph(desk, part, i),
        decisions=tuple(entries),
        undone=frozenset(one.number for one in entries if one.number in desk.verdicts.undone),
        verdict=verdict,
        decided=verdict.seats is not None,
        disagreement=verdict.disagree,
    )


def tracks_of(desk: Desk, part: Part, i: int) -> Iterator[Track]:
    m, sides = int(part.calls[i]), part.table.sides.of(i)
    verdict, names = desk.verdict(m), part.names(i)
    chance, low, high = (x[sides] for x in part.track_figures)
    speech = None if desk.result.listening is None else desk.result.listening.speech.seconds
    first = int(desk.table.sides.start[m])
    for k, label in enumerate(part.table.tracks(i)):
        said = None if verdict.seats is None else verdict.seats[k]
        heard, usable = said is not None, bool(part.usable[sides][k])
        seconds = None if speech is None else float(speech[first + k])
        figures = (1.0, 1.0, 1.0) if heard else (float(chance[k]), float(low[k]), float(high[k]))
        yield Track(
            track=label,
            side=first + k,
            name=said or (names[k] or None),
            probability=figures[0],
            low=figures[1],
            high=figures[2],
            decision=_decision(part, i, figures[1], usable or heard, desk.board.certainty),
            origin=HEARD if heard else GIVEN if part.given[i] else INFERRED,
            by=verdict.by if heard else (),
            speech_seconds=None if seconds is None or np.isnan(seconds) else seconds,
        )


def _decision(part: Part, i: int, low: float, usable: bool, certainty: float) -> str:
    if not usable:
        return UNUSABLE
    if low >= certainty:
        return SETTLED
    return OPEN if part.resolvable(i) else UNRESOLVABLE


def _listed(part: Part, i: int) -> Iterator[ListedPerson]:
    own = part.table.listing.of(i)
    there = np.ones(own.stop - own.start)
    if not part.answer.binary:
        there = part.answer.presence[own].chance
    possible = part.table.possible[own].tolist()
    for name, vague, chance in zip(part.table.names(i), possible, there.tolist(), strict=True):
        yield ListedPerson(name, POSSIBLE if vague else CERTAIN, float(chance))


# --- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Link:
    """A link of a conversation with another, as seen from it."""

    person: int  # place in its list
    other: int  # conversation of the part
    other_person: int
    llr: Floats  # (own tracks, tracks of the other)


def _links(part: Part, i: int) -> Iterator[_Link]:
    links, table = part.evidence.links, part.table
    counts, start = table.sides.counts, pair_starts(links, table.sides)
    a, b = links.first[links.pair], links.second[links.pair]
    for e in np.flatnonzero((a == i) | (b == i)).tolist():
        pair, first, second = int(links.pair[e]), int(a[e]), int(b[e])
        values = part.evidence.scores.needed[start[pair] : start[pair + 1]]
        matrix = values.reshape(int(counts[first]), int(counts[second]))
        here, there = int(links.position_first[e]), int(links.position_second[e])
        if first == i:
            yield _Link(here, second, there, matrix)
        else:
            yield _Link(there, first, here, matrix.T)


def _evidence(part: Part, i: int) -> Iterator[EvidenceRow]:
    """The rows, the strongest of each kind first; all add up to the log10 odds."""
    found = part.weighed
    if found.given[i] or not found.possible[i]:
        return
    for name, values in found.cues.items():
        if values[i]:
            yield EvidenceRow(CUE, name, float(values[i]))
    own = slice(int(found.start[i]), int(found.start[i + 1]))
    columns = (column[own].tolist() for column in (found.other, found.speaker, found.links))
    strongest = list(zip(*columns, strict=True))
    for other, who, value in strongest[:MOST_ROWS]:
        yield EvidenceRow(LINK, part.table.speakers[who], value, int(part.calls[other]))
    if rest := strongest[MOST_ROWS:]:
        yield EvidenceRow(LINK, f"{len(rest)} more links", sum(row[2] for row in rest))
    if found.before[i]:
        yield EvidenceRow(BEFORE, "known before anybody listened", float(found.before[i]))
    yield EvidenceRow(REST, "other conversations may be otherwise", float(found.doubt[i]))
    if found.others[i]:
        yield EvidenceRow(REST, "others who might be there", float(found.others[i]))


def _there(part: Part, one: _Link) -> int | None:
    """The track of the shared person in the other conversation; None where he is absent."""
    entry = int(part.table.listing.start[one.other]) + one.other_person
    there = int(part.place[entry])
    return there if there < int(part.table.sides.counts[one.other]) else None


# --- what hangs on it -----------------------------------------------------------------------------


def _neighbours(desk: Desk, part: Part, i: int) -> list[Neighbour]:
    """Other tracks of the same people, heard ones first, then settled ones."""
    found: dict[tuple[int, int], Neighbour] = {}
    names = part.table.names(i)
    for one in _links(part, i):
        there = _there(part, one)
        if there is None:
            continue
        m, sides = int(part.calls[one.other]), part.table.sides
        found[m, there] = Neighbour(
            m=m,
            conversation=desk.table.ids[m],
            track=there,
            track_label=part.table.tracks(one.other)[there],
            side=int(desk.table.sides.start[m]) + there,
            name=names[one.person],
            probability=float(part.track_figures[0][int(sides.start[one.other]) + there]),
            settled=not bool(desk.board.open[m]),
            decided=desk.verdict(m).seats is not None,
            log10=tuple((one.llr[:, there] / LN10).tolist()),
        )
    order = sorted(
        found.values(), key=lambda n: (not n.decided, not n.settled, -max(n.log10), n.m, n.track)
    )
    return order[:MOST_NEIGHBOURS]


def _graph(desk: Desk, part: Part, i: int) -> Graph:
    links = part.evidence.links
    chosen = np.arange(len(part.calls))
    if len(chosen) > MOST_NODES:
        near = np.concatenate([links.second[links.first == i], links.first[links.second == i]])
        chosen = np.unique(np.concatenate([[i], near[: MOST_NODES - 1]]))
    place = {int(j): n for n, j in enumerate(chosen)}
    people: dict[tuple[int, int], list[str]] = {}
    a, b = links.first[links.pair].tolist(), links.second[links.pair].tolist()
    for first, second, position in zip(a, b, links.position_first.tolist(), strict=True):
        if first in place and second in place:
            shared = people.setdefault((place[first], place[second]), [])
            shared.append(part.table.names(first)[position])
    return Graph(
        nodes=tuple(_node(desk, part, int(j)) for j in chosen),
        edges=tuple((x, y, tuple(names)) for (x, y), names in people.items()),
        conversations=len(part.calls),
        certainty=part.certainty(i),
    )


def _node(desk: Desk, part: Part, j: int) -> Node:
    m = int(part.calls[j])
    verdict = desk.verdict(m)
    if verdict.disagree:
        kind = "disagreement"
    elif verdict.seats is not None:
        kind = "decided"
    elif not desk.board.open[m]:
        kind = SETTLED
    else:
        kind = OPEN if part.resolvable(j) else UNRESOLVABLE
    names = tuple(name or OTHERS for name in part.names(j))
    return Node(m, desk.table.ids[m], names, float(desk.board.chance[m]), kind)
