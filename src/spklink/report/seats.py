"""The answer in full, conversation by conversation: who is on each track, how surely, what to do
about it, and whether the people who are listed are there at all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.report.glossary import DECISION_WORDS
from spklink.report.results import Results
from spklink.runs.rows import CERTAIN, DECISIONS, POSSIBLE, UNUSABLE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = dict[str, Any]


def doubt(answer: Answer) -> Floats:
    """(M,) bits open about the least certain track of every conversation."""
    p = np.clip(answer.confidence.chance, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.where((p > 0.0) & (p < 1.0), -p * np.log2(p) - (1 - p) * np.log2(1 - p), 0.0)
    bits = np.where(p < 0.5, 2.0 - bits, bits)  # less than even is more doubtful still
    worst = np.zeros(len(answer.table))
    np.maximum.at(worst, answer.table.sides.conversation, bits)
    return worst


def settled_calls(results: Results) -> NDArray[np.bool_]:
    """(M,) conversations of which every usable track is settled, and one is."""
    kinds = np.array([DECISIONS.index(one) for one in results.decided])
    call, count = results.table.sides.conversation, len(results.table)
    done = np.bincount(call, kinds == 0, count)
    unusable = np.bincount(call, kinds == DECISIONS.index(UNUSABLE), count)
    return np.asarray((done > 0) & (done + unusable == results.table.sides.counts))


def wrong_calls(answer: Answer) -> Ints:
    """Conversations whose lists are more probably wrong than right, the worst first."""
    wrong = answer.wrong.chance
    found = np.flatnonzero(wrong > 0.5)
    return np.asarray(found[np.argsort(-wrong[found], kind="stable")])


def tracks_of(results: Results, m: int) -> list[dict[str, Any]]:
    """Who is on each track; nobody by name where it is someone else, or cannot be used."""
    answer, table = results.answer, results.table
    own, names = table.sides.of(m), table.tracks(m)
    speaker, figures = answer.speaker()[own].tolist(), answer.confidence[own]
    rows = []
    for k, decision in enumerate(results.decided[own]):
        named = decision != UNUSABLE and speaker[k] != STRANGER
        rows.append(
            {
                "track": names[k],
                "speaker": table.speakers[speaker[k]] if named else None,
                "decision": decision,
                "probability": chance(figures.chance[k]),
                "low": chance(figures.low[k]),
                "high": chance(figures.high[k]),
            }
        )
    return rows


def listed_people(results: Results, m: int) -> list[dict[str, Any]]:
    """Who is listed, and with which probability there."""
    answer, table = results.answer, results.table
    own = table.listing.of(m)
    figures = answer.presence[own]
    return [
        {
            "speaker": table.speakers[who],
            "status": POSSIBLE if possible else CERTAIN,
            "probability": chance(figures.chance[k]),
            "low": chance(figures.low[k]),
            "high": chance(figures.high[k]),
        }
        for k, (who, possible) in enumerate(
            zip(table.people[own].tolist(), table.possible[own].tolist(), strict=True)
        )
    ]


def by_probability(results: Results, edges: tuple[float, ...]) -> Table:
    """Tracks that were used, by the probability of who is said to be on them."""
    sure = results.answer.confidence.chance[np.array(results.decided) != UNUSABLE]
    place = np.clip(np.searchsorted(edges, sure, side="right") - 1, 0, len(edges) - 2)
    rows = [
        [low, high, int((place == k).sum()), float((1.0 - sure[place == k]).sum())]
        for k, (low, high) in enumerate(pairwise(edges))
    ]
    columns = ["from", "to", "tracks", "expected wrong"]
    return {"columns": columns, "rows": [row for row in rows if row[2]]}


def by_decision(results: Results) -> Table:
    """Tracks by what to do about them."""
    means = {
        "settled": "99 % or more",
        "open": "listen, or live with the probability",
        "unresolvable": "no voice can tell; a known channel would",
        "misfit": "the list is more probably wrong than right: look at it first",
        "unusable": "its sound says nothing, so it gets no name",
    }
    count = [[DECISION_WORDS[name], results.decided.count(name), means[name]] for name in DECISIONS]
    return {"columns": ["decision", "tracks", "what it means"], "rows": count}


def methods(answer: Answer) -> Table:
    """How the pieces of the network were solved."""
    beliefs, found = answer.beliefs, {}
    size = np.bincount(beliefs.piece, minlength=len(beliefs.method)).tolist()
    for key in zip(beliefs.method, beliefs.certainty, strict=True):
        found[key] = [0, 0, 0]
    for method, certainty, calls in zip(beliefs.method, beliefs.certainty, size, strict=True):
        one = found[method, certainty]
        one[:] = one[0] + 1, one[1] + calls, max(one[2], calls)
    order = sorted(found, key=lambda key: (-CERTAINTIES.index(key[1]), -found[key][2], key[0]))
    columns = ["method", "certainty", "pieces", "conversations", "the largest of"]
    return {"columns": columns, "rows": [[*key, *found[key]] for key in order]}


def measured(evaluation: Table | None) -> list[Table]:
    """What a key says of tracks, of who is there and of lists, with nothing given."""
    found = (evaluation or {}).get("seats")
    if not found:
        return []
    tracks, so = found["tracks"], (("people", "presence", "listings"), ("lists", "lists", "lists"))
    named = [
        ["named", tracks["named"], tracks["wrong_named"]],
        ["someone else", tracks["strangers"], tracks["wrong_strangers"]],
        ["sure", tracks["settled"], tracks["wrong_settled"]],
    ]
    return [
        {"title": "Channels", "columns": ["tracks", "number", "wrong"], "rows": named},
        {
            "title": "Who is there, and which lists are wrong",
            "columns": ["what", "number", "so", "expected", "errors at .5", "expected errors"],
            "rows": [
                [
                    "a listed person is there" if name == "people" else "a list is wrong",
                    found[part][count],
                    *(found[part][key] for key in ("observed", "expected")),
                    *(found[part][key] for key in ("errors", "expected_errors")),
                ]
                for name, part, count in so
            ],
        },
        _reliable("Channels: as often right as they say?", tracks, "tracks", " right"),
        _reliable("Lists: as often wrong as they say?", found["lists"], "lists"),
    ]


def _reliable(title: str, part: Table, count: str, right: str = "") -> Table:
    keys = ("low", "high", count, "predicted", "observed", "observed_low", "observed_high")
    ends = ["95 % band, low end", "95 % band, high end"]
    return {
        "title": title,
        "columns": ["from", "to", "count", f"predicted{right}", f"observed{right}", *ends],
        "rows": [[row.get(key) for key in keys] for row in part["reliability"]],
    }


def chance(value: float) -> float:
    """A probability of ten digits, never rounded up to certainty."""
    short = float(f"{float(value):.10g}")
    return float(value) if short == 1.0 and value < 1.0 else short
