"""Answers that people gave: known channels that the run was told, and decisions in its folder."""

from __future__ import annotations

from collections import Counter
from typing import Any

from spklink.database.labels import Said
from spklink.decisions.verdicts import Verdict
from spklink.report.results import Results
from spklink.words import counted

Row = dict[str, Any]
GIVEN, HEARD, UNSURE = "given", "heard", "could not tell"
DISAGREE, CHANGED = "disagree", "recording changed"


def any_answers(results: Results) -> bool:
    """Whether anybody said who is on a channel, before the run or after it."""
    return bool(given_calls(results) or _decided(results))


def given_calls(results: Results) -> int:
    """Conversations of which a channel was given to the run."""
    said = _said(results)
    return 0 if said is None else len(set(said.conversation.tolist()))


def sentence(results: Results) -> str:
    """How many answers there are, and from whom; empty where there are none."""
    told, given, decided = [], given_calls(results), _decided(results)
    if given:
        told.append(
            f"Channels of {counted(given, 'conversation')} were given to the run (known.csv)."
        )
    if decided:
        heard = [one for one in decided.values() if one.seats is not None]
        by = Counter(who for one in heard for who in one.by)
        names = ", ".join(f"{who} {count}" for who, count in sorted(by.items()))
        said = f"{counted(len(heard), 'conversation')} decided by listening"
        rest = {
            "in dispute": sum(one.disagree for one in decided.values()),
            "heard without a name": sum(one.unsure for one in decided.values()),
            "decided on a recording that has changed": sum(
                one.hear_again for one in decided.values()
            ),
        }
        more = "".join(f", {count} {what}" for what, count in rest.items() if count)
        told.append(f"{said}{f' ({names})' if names else ''}{more} (review.sqlite).")
        told.append("Decisions change figures of this page only where the run was given them.")
    if told:
        told.append("These conversations are marked.")
    return " ".join(told)


def as_json(results: Results) -> Row:
    """Those numbers, and the last entry of the log, by which a page is told from a later one."""
    decided, entries = _decided(results), results.verdicts.entries
    return {
        "given": given_calls(results),
        "decided": sum(one.seats is not None for one in decided.values()),
        "disagree": sum(one.disagree for one in decided.values()),
        "held_back": sum(one.hear_again for one in decided.values()),
        "log": entries[-1].hash if entries else None,
    }


def answers_about(results: Results, m: int) -> list[Row]:
    """What people said of one conversation: how, by whom, and who is on each track (None: nothing
    said)."""
    rows: list[Row] = []
    said, tracks = _said(results), results.table.tracks(m)
    if said is not None:
        here = (said.conversation == m).nonzero()[0].tolist()
        names: list[str | None] = [None] * len(tracks)
        for k in here:
            if said.probability[k] > 0.5:
                names[int(said.track[k])] = said.names[k]
        if here:
            rows.append({"how": GIVEN, "by": [], "speakers": names})
    one = results.verdicts[results.table.ids[m]]
    if one.disagree:
        rows.append({"how": DISAGREE, "by": list(one.by), "speakers": None})
    elif one.seats is not None:
        rows.append({"how": HEARD, "by": list(one.by), "speakers": list(one.seats)})
    elif one.unsure:
        rows.append({"how": UNSURE, "by": list(one.words), "speakers": None})
    if one.held:
        rows.append({"how": CHANGED, "by": list(one.held), "speakers": None})
    return rows


def _said(results: Results) -> Said | None:
    known = results.evidence.known
    return None if known is None else known.said


def _decided(results: Results) -> dict[str, Verdict]:
    """Conversations of which somebody has said something that stands, or is held back."""
    found = results.verdicts.by_conversation.items()
    return {name: one for name, one in found if one.words or one.held}
