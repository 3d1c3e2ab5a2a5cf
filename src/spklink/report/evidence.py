"""The evidence of conversations as the page and appendix.csv have it: a row a piece, log10.

    voice            one person's voice here and in another conversation: the strongest of them
    further for      all further voices that speak for what is said, together
    further against  all that speak against it
    other            another kind of evidence
    doubt            other conversations may be otherwise, and so may this one
    before           what lists, priors and known channels said before anybody listened
    other possibilities  who might be there besides the two that are compared

All but the last two are the strength of the evidence; with them they are the odds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spklink.measures.bounds import Bounds
from spklink.posterior.answer import STRANGER
from spklink.report.results import Results
from spklink.report.strength import in_words, times
from spklink.runs.weighed import Weighed

MOST_VOICES = 4  # told one by one
NOTHING = 1e-6  # log10: evidence that does not tell two people apart
APPENDIX = ("conversation", "piece", "with", "person", "log10")
VOICE, FOR, AGAINST = "voice", "further for", "further against"
OTHER, DOUBT, BEFORE, OTHERS = "other", "doubt", "before", "other possibilities"
Row = dict[str, Any]


def pieces(results: Results, weighed: Weighed, m: int) -> list[Row]:
    """All evidence of a conversation; what is nothing is left out."""
    table, own = results.table, slice(int(weighed.start[m]), int(weighed.start[m + 1]))
    values = weighed.links[own]
    rows = [
        _row(VOICE, value, {"with": table.ids[call], "speaker": table.speakers[who]})
        for value, call, who in zip(
            values[:MOST_VOICES].tolist(),
            weighed.other[own].tolist(),
            weighed.speaker[own].tolist(),
            strict=False,
        )
    ]
    rest = values[MOST_VOICES:]
    for kind, some in ((FOR, rest[rest > 0.0]), (AGAINST, rest[rest < 0.0])):
        if len(some):
            rows.append(_row(kind, float(some.sum()), {"count": len(some)}))
    for name, said in weighed.cues.items():
        if said[m] != 0.0:
            rows.append(_row(OTHER, float(said[m]), {"name": name}))
    if weighed.doubt[m] != 0.0:
        rows.append(_row(DOUBT, float(weighed.doubt[m]), {}))
    return rows


def _row(kind: str, value: float, more: Row) -> Row:
    return {"piece": kind, **more, "log10": value}


def conclusion(
    results: Results, weighed: Weighed, bounds: Bounds, m: int, scale: str | None
) -> Row:
    """What is said of a conversation, against what, and how strong the evidence is."""
    strength = float(weighed.strength()[m])
    stated = bounds.limited(strength)
    return {
        "evidence": pieces(results, weighed, m),
        "given": bool(weighed.given[m]),
        "against": against(results, weighed, m),
        "about": about(results, weighed, m),
        "interchangeable": interchangeable(results, weighed, m),
        "strength": strength,
        "stated": stated,
        "times": times(stated),
        "limited": stated != strength,
        "words": in_words(scale, stated),
        "before": float(weighed.before[m]),
        "others": float(weighed.others[m]),
        "total": float(weighed.total[m]),
    }


def against(results: Results, weighed: Weighed, m: int) -> list[str | None] | None:
    """Who would be on each track otherwise: a name, or None for someone else; None where nothing
    else can be."""
    if not weighed.possible[m]:
        return None
    who = weighed.against[results.table.sides.of(m)].tolist()
    return [None if one == STRANGER else results.table.speakers[one] for one in who]


def about(results: Results, weighed: Weighed, m: int) -> Row | None:
    """The track of the answer in full that the strength is about: who is said to be on it, and who
    would be otherwise, None being someone else. None where the alternative is an exchange."""
    if results.answer.binary or not weighed.possible[m]:
        return None
    side, people = int(weighed.side[m]), results.table.speakers
    pair = int(results.answer.speaker()[side]), int(weighed.against[side])
    said, other = (None if one == STRANGER else people[one] for one in pair)
    track = results.table.tracks(m)[side - int(results.table.sides.start[m])]
    return {"track": track, "said": said, "other": other}


def interchangeable(results: Results, weighed: Weighed, m: int) -> list[str] | None:
    """The two people whom nothing tells apart, as they are listed in the same conversations."""
    if not weighed.possible[m]:
        return None
    table, side = results.table, int(weighed.side[m])
    if results.answer.binary:
        pair = weighed.against[table.sides.of(m)].tolist()
    else:
        pair = [int(results.answer.speaker()[side]), int(weighed.against[side])]
    if STRANGER in pair:
        return None
    one, two = (np.flatnonzero(table.people == who) for who in pair)
    if not np.array_equal(table.listing.conversation[one], table.listing.conversation[two]):
        return None
    alike = abs(weighed.strength()[m]) < NOTHING or _symmetric(results, one, two)
    return [table.speakers[who] for who in pair] if alike else None


def _symmetric(results: Results, one: Any, two: Any) -> bool:
    """Whether two people, by their entries in the same lists, can be exchanged everywhere: then
    nothing tells them apart, however roughly their probabilities are known."""
    table, known = results.table, results.evidence.known
    calls = table.listing.conversation[one]
    told = bool((table.prior[calls] != 0.5).any() or results.evidence.cues or len(table.elsewhere))
    told |= known is not None and bool(np.isin(calls, known.said.conversation).any())
    return not told and np.array_equal(table.presence[one], table.presence[two])


def appendix_rows(results: Results, weighed: Weighed) -> Iterator[tuple[str, str, str, str, str]]:
    """Rows of appendix.csv: all conversations, in the order of the table."""
    for m, name in enumerate(results.table.ids):
        rest = [_row(BEFORE, float(weighed.before[m]), {})]
        if weighed.others[m] != 0.0:
            rest.append(_row(OTHERS, float(weighed.others[m]), {}))
        for row in [*pieces(results, weighed, m), *rest]:
            far = row.get("with", row.get("count", ""))
            who = row.get("speaker", row.get("name", ""))
            yield name, row["piece"], str(far), who, f"{row['log10']:.6f}"


def exchange_strength(weighed: Weighed, claimed: Any, best: Any) -> Any:
    """(M,) log10 strength against what is claimed, of two people on two channels."""
    sign = np.where(best == claimed, -1.0, 1.0)
    return sign * weighed.strength()
