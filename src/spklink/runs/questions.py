"""The questions that settle what contradicts itself: claims, lists, names, cues.

They are asked about what a run found (suspects.csv, misfits.csv, conflicts.csv), and about what is
merely open.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.review_options import FEWEST
from spklink.runs.cues import conflict_rows, for_claimed
from spklink.runs.misfits import ABSENT, KNOWN
from spklink.runs.names import ONE, PLACEHOLDER, TWO
from spklink.runs.part import Part
from spklink.runs.queue import (
    CLAIM,
    CONFLICT,
    MISFIT,
    OPEN,
    UNRESOLVABLE,
    Asked,
    Board,
    Question,
    asked,
    ordered,
)
from spklink.runs.result import Result
from spklink.tables import SEPARATOR

MOST_NAMED = 3  # conversations that a question names


def questions_of(result: Result) -> dict[int, list[Question]]:
    """By conversation: what the voices contradict, the most probable error first."""
    where, found = result.conversations.index(), defaultdict(list)
    for one in (*_misfits(result), *_claims(result), *_conflicts(result)):
        name, question = one
        if name in where:
            found[where[name]].append(question)
    return {m: sorted(some, key=lambda one: -one.doubt) for m, some in found.items()}


def _claims(result: Result) -> list[tuple[str, Question]]:
    suspects = None if result.listening is None else result.listening.suspects
    table, where, found = result.conversations, result.conversations.index(), []
    for name, probability, claimed, suggested in suspects or []:
        said, now = claimed.split(SEPARATOR), suggested.split(SEPARATOR)
        k = next((k for k, both in enumerate(zip(said, now, strict=True)) if len(set(both)) > 1), 0)
        track = table.track_name(where[name], k)
        wrong = float(probability)
        reason = f"claimed to be {said[k]}; {percent(wrong)} wrong"
        ask = f"Is this {now[k].replace(OTHERS, 'someone else')} on {track}, not {said[k]}?"
        found.append((name, Question(CLAIM, reason, ask, wrong)))
    return found


def _misfits(result: Result) -> list[tuple[str, Question]]:
    found = []
    for names, kind, probability, listed, suggested, _ in result.misfits:
        calls = names.split(SEPARATOR)
        if kind == PLACEHOLDER:
            continue  # one name for anybody: listening does not mend that
        question = _misfit(kind, float(probability), listed, suggested, calls)
        found += [(name, question) for name in calls]
    return found


def _misfit(kind: str, wrong: float, listed: str, suggested: str, calls: list[str]) -> Question:
    sure = f"with a probability of {percent(wrong)}"
    people = listed.replace(SEPARATOR, " and ")
    if kind == ABSENT:
        fits = suggested.split(SEPARATOR)[0].rsplit(" ", 1)[0] if suggested else ""
        ask = f"Is this {fits}, who is not listed?" if fits else f"Is this {people}?"
        return Question(MISFIT, f"{people} is listed but not there {sure}", ask, wrong)
    if kind == KNOWN:
        return Question(MISFIT, f"a known channel is wrong {sure}", f"Is this {people}?", wrong)
    some = ", ".join(calls[:MOST_NAMED]) + (", …" if len(calls) > MOST_NAMED else "")
    if kind == ONE:
        reason = f"{people} are one person {sure}"
    elif kind == TWO:
        reason = f"{people} is two people {sure}"
    else:
        reason = f"{kind}: {people}, {sure}"
    return Question(MISFIT, reason, f"Are these the same voice: {people} in {some}?", wrong)


def _conflicts(result: Result) -> list[tuple[str, Question]]:
    if not result.evidence.cues:
        return []
    said = for_claimed(result.evidence, result.answer)
    return [
        (name, Question(CONFLICT, f"{one} and {two} contradict each other", "Who is this?", 0.5))
        for name, one, _, two, _ in conflict_rows(said, result.conversations)
    ]


def open_question(
    board: Board, table: Conversations, m: int, names: tuple[str, ...], resolvable: bool
) -> Question:
    """What is asked of a conversation that is merely open."""
    calls = int(board.size[board.label[m]])
    named = next(((k, who) for k, who in enumerate(names) if who not in ("", OTHERS)), None)
    ask = "Who is this?"
    if named is not None:
        ask = f"Is this {named[1]} on {table.track_name(m, named[0])}?"
    if not resolvable:
        others = f" in all {calls} calls" if calls > 1 else ""
        return Question(UNRESOLVABLE, f"the same people{others}: no voice can tell", ask)
    settles = board.settles[m]
    more = f"; settles {settles:.1f} on average" if settles >= 1.05 else ""
    return Question(OPEN, f"{percent(float(board.chance[m]))} sure{more}", ask)


def first_to_hear(part: Part, count: int) -> list[Asked]:
    """Where nothing was decided yet: what settles most with fewest listens."""
    cliques, nobody = part.evidence.cliques, np.zeros(len(part.calls), np.bool_)
    board = Board(cliques.label, cliques.size)
    board.take(np.arange(len(cliques)), part)
    order = ordered(board, FEWEST, questions={}, decided=nobody, disagree=nobody, unsure=nobody)
    found = []
    for m in order[:count].tolist():
        question = open_question(board, part.table, m, part.names(m), part.resolvable(m))
        found.append(asked(board, part.table, m, question))
    return found


def percent(p: float) -> str:
    """A probability that was inferred, as people say it: never certainty, never impossibility."""
    if p > 0.9999:
        return "over 99.99 %"
    if p < 0.0001:
        return "under 0.01 %"
    digits = 2 if p > 0.99 or p < 0.01 else 0 if 0.1 <= p <= 0.9 else 1
    return f"{100.0 * p:.{digits}f} %"
