"""What the voices say about participant lists, known channels and names: the rate of list errors,
and every misfit with who is listed, what speaks against it and who would fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spklink.database.lists import OTHERS
from spklink.report.results import Results
from spklink.report.seats import listed_people
from spklink.runs.misfits import ABSENT, KNOWN
from spklink.runs.sentences import (
    KINDS,
    NAMES,
    contradicted_sentence,
    count_misfits,
    misfit_chance,
    rate_sentence,
)
from spklink.tables import SEPARATOR

MOST_MISFITS = 500  # on the page
MOST_CALLS = 3  # named of a misfit that is about many
MOST_TEXT = 600_000  # characters of all these
Misfit = dict[str, Any]


def lists(results: Results) -> dict[str, Any] | None:
    """All of it; None where lists were taken at their word."""
    if results.answer.binary:
        return None
    rate, count = results.answer.rate.as_json(), count_misfits(results.misfits)
    return {
        "rate": rate,
        "rate_sentence": rate_sentence(rate),
        "contradicted": count,
        "contradicted_sentence": contradicted_sentence(count),
        "count": len(results.misfits),
        "rows": _shown(results),
    }


def _shown(results: Results) -> list[Misfit]:
    """The most probable, as many as a page can hold."""
    where, rows, room = results.table.index(), [], MOST_TEXT
    for row in results.misfits[:MOST_MISFITS]:
        room -= sum(len(str(text)) for text in row)
        if room < 0:
            break
        rows.append(misfit(results, where, row))
    return rows


def misfit(results: Results, where: dict[str, int], row: Sequence[Any]) -> Misfit:
    """A row of misfits.csv, taken apart."""
    conversation, kind, _, listed, suggested, evidence = (str(text) for text in row)
    calls = conversation.split(SEPARATOR) if kind in NAMES else [conversation]
    m = where.get(conversation) if kind == ABSENT else None
    if m is None:
        people = [{"speaker": name} for name in listed.split(SEPARATOR)]
    else:
        people = listed_people(results, m)
    channel, _, who = listed.partition(": ") if kind == KNOWN else ("", "", "")
    return {
        "conversations": calls[:MOST_CALLS],
        "further": max(0, len(calls) - MOST_CALLS),
        "kind": kind,
        "what": KINDS.get(kind, kind),
        "probability": misfit_chance(row),
        "channel": channel,
        "listed": [{"speaker": who}] if kind == KNOWN else people,
        "suggested": [] if kind in NAMES else ranked(suggested),
        "suggestion": suggested if kind in NAMES else "",
        "evidence": evidence,
    }


def ranked(suggested: str) -> list[dict[str, Any]]:
    """People who would fit, each with a probability."""
    found = []
    for one in suggested.split(SEPARATOR) if suggested else []:
        name, _, chance = one.rpartition(" ")
        try:
            found.append(
                {"speaker": name, "probability": float(chance), "someone_else": name == OTHERS}
            )
        except ValueError:  # not written by a run
            found.append({"speaker": one, "probability": None, "someone_else": False})
    return found
