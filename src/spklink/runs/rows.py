"""The tables of results, a column at a time: assignments, presence, cliques; and methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import inseparable
from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.measures.evaluation import configurations
from spklink.posterior.answer import STRANGER, Answer
from spklink.posterior.inference.beliefs import CERTAINTIES
from spklink.posterior.posterior import Posterior
from spklink.tables import probability_text
from spklink.texts import Texts
from spklink.written_columns import Column, numbers, probabilities, whole_numbers, words

Mask = NDArray[np.bool_]
GIVEN, INFERRED = "given", "inferred"  # where an assignment comes from
# What to do about a track: nothing; listen to it; ask for a known channel; look at its list.
SETTLED, OPEN, UNRESOLVABLE, MISFIT = "settled", "open", "unresolvable", "misfit"
UNUSABLE = "unusable"  # its sound says nothing, so it gets no name
DECISIONS = (SETTLED, OPEN, UNRESOLVABLE, MISFIT, UNUSABLE)
UNUSED = DECISIONS.index(UNUSABLE)
ASSIGNMENTS = (
    *("conversation", "channel", "speaker", "probability", "clique", "low", "high", "certainty"),
    *("origin", "decision"),
)
PRESENCE = ("conversation", "speaker", "status", "probability", "low", "high")
CERTAIN, POSSIBLE, CANDIDATE = "certain", "possible", "candidate"
CLIQUES = (
    *("clique", "conversations", "speakers", "configurations", "resolvable"),
    *("entropy_bits", "best_probability", "relative_probability", "method"),
    *("certainty", "proved_optimal"),
)
METHODS = (
    *("clique", "method", "certainty", "best_low", "best_high", "entropy_low", "entropy_high"),
    *("log_evidence_low", "log_evidence_high", "reason"),
)


def assignment_columns(answer: Answer, given: Mask, usable: Mask | None = None) -> list[Column]:
    """One row per side, in table order; `given` marks conversations with a known channel."""
    table, figures = answer.table, answer.confidence
    label = answer.cliques.label
    asked = slice(int(table.sides.start[table.asked]))  # nobody asks who is in an enrolment
    calls = table.sides.conversation[asked]
    decision = Column(DECISIONS, decision_codes(answer, usable)[asked])
    ends = (one[asked] for one in (figures.chance, figures.low, figures.high))
    chance, low, high = probabilities(*ends)
    return [
        Column(table.ids, calls),
        whole_numbers(table.sides.position[asked] + 1),
        _named(table, answer.speaker()[asked], decision),
        chance,
        whole_numbers(label + 1).of(calls),
        low,
        high,
        Column(CERTAINTIES, answer.certainties).of(calls),
        Column((INFERRED, GIVEN), given.astype(np.int64)).of(calls),
        decision,
    ]


def _named(table: Conversations, speaker: NDArray[Any], decision: Column) -> Column:
    """Who is on each side: someone else, nobody where nothing is said, or a name."""
    nobody = len(table.speakers)
    names = Texts.of_parts([table.speakers, Texts.of(["", OTHERS])])
    who = np.where(speaker == STRANGER, nobody + 1, speaker)
    return Column(names, np.where(decision.which == UNUSED, nobody, who))


def decisions(answer: Answer, usable: Mask | None = None) -> list[str]:
    """(sides,) what to do about each."""
    return [DECISIONS[code] for code in decision_codes(answer, usable).tolist()]


def decision_codes(answer: Answer, usable: Mask | None = None) -> NDArray[np.int64]:
    """(sides,) the same by number. All tracks of a list that is more probably wrong than right are
    misfits; nothing is settled there."""
    table, calls = answer.table, answer.table.sides.conversation
    apart = ~answer.cliques.resolvable[answer.cliques.label]
    if not answer.binary:
        apart[table.listing.conversation[inseparable(table)]] = True
    unused = np.zeros(len(calls), np.bool_) if usable is None else ~usable
    cases = [
        (unused, UNUSABLE),
        ((answer.wrong.chance > 0.5)[calls], MISFIT),
        (answer.settled(), SETTLED),
        (apart[calls], UNRESOLVABLE),
    ]
    codes = [DECISIONS.index(name) for _, name in cases]
    return np.select([mask for mask, _ in cases], codes, DECISIONS.index(OPEN))


def presence_columns(answer: Answer) -> list[Column]:
    """One row an entry of the lists: whether this person is there at all."""
    table, figures = answer.table, answer.presence
    asked = slice(int(table.listing.start[table.asked]))
    status = np.select([table.candidate[asked], table.possible[asked]], [2, 1], 0)
    return [
        Column(table.ids, table.listing.conversation[asked]),
        Column(table.speakers, table.people[asked]),
        Column((CERTAIN, POSSIBLE, CANDIDATE), status),
        *probabilities(*(one[asked] for one in (figures.chance, figures.low, figures.high))),
    ]


def clique_columns(posterior: Posterior) -> list[Column]:
    """One row a clique; figures that are not exact are the middle of their interval."""
    cliques = posterior.model.cliques
    best, relative = (
        (low + high) / 2.0
        for low, high in (posterior.best_probability(), posterior.relative_probability())
    )
    truth = "false", "true"
    size = whole_numbers(cliques.size)
    [entropy] = numbers((posterior.entropy_low + posterior.entropy_high) / 2.0)
    return [
        whole_numbers(np.arange(1, len(cliques) + 1)),
        size,
        whole_numbers(cliques.speakers),
        Column([configurations(number) for number in size.cells], size.which),
        Column(truth, cliques.resolvable.astype(np.int64)),
        entropy,
        *probabilities(best, relative),
        words(posterior.method),
        words(posterior.certainty),
        Column(truth, posterior.proved_optimal().astype(np.int64)),
    ]


def method_rows(posterior: Posterior) -> Iterator[tuple[Any, ...]]:
    """How every clique beyond plain enumeration was solved, with the ends of its figures."""
    best = posterior.best_probability()
    for k in np.flatnonzero(posterior.method != "enumerate"):
        yield (
            k + 1,
            posterior.method[k],
            posterior.certainty[k],
            probability_text(float(best[0][k])),
            probability_text(float(best[1][k])),
            _digits(posterior.entropy_low[k]),
            _digits(posterior.entropy_high[k]),
            _digits(posterior.log_evidence_low[k]),
            _digits(posterior.log_evidence_high[k]),
            posterior.reason[k],
        )


def _digits(value: float) -> str:
    return f"{value:.10g}"
