"""The tables of results, row by row: assignments, cliques, methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import inseparable
from spklink.database.conversations import Conversations
from spklink.database.lists import OTHERS
from spklink.database.sides import speakers_on
from spklink.measures.evaluation import configurations
from spklink.posterior.posterior import Posterior
from spklink.posterior.seating import STRANGER, Seating
from spklink.tables import probability_text

Mask = NDArray[np.bool_]
GIVEN, INFERRED = "given", "inferred"  # where an assignment comes from
# What to do about a track: nothing; listen to it; ask for a known channel; look at its list.
SETTLED, OPEN, UNRESOLVABLE, MISFIT = "settled", "open", "unresolvable", "misfit"
UNUSABLE = "unusable"  # its sound says nothing, so it gets no name
DECISIONS = (SETTLED, OPEN, UNRESOLVABLE, MISFIT, UNUSABLE)
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


def assignment_rows(
    table: Conversations, posterior: Posterior, usable: Mask | None = None
) -> Iterator[tuple[Any, ...]]:
    """One row a side, in table order, lists taken at their word."""
    label = posterior.model.cliques.label
    figures = [values.tolist() for values in posterior.confidence()]
    speakers = speakers_on(table, posterior.best).tolist()
    settled, resolvable = posterior.settled(), posterior.model.cliques.resolvable[label]
    good = np.ones(len(speakers), np.bool_) if usable is None else usable
    for m, name in enumerate(table.ids):
        clique = int(label[m])
        chance, low, high = (probability_text(values[m]) for values in figures)
        origin = GIVEN if posterior.bits[m] >= 0 else INFERRED
        of_call = chance, clique + 1, low, high, posterior.certainty[clique], origin
        decision = SETTLED if settled[m] else OPEN if resolvable[m] else UNRESOLVABLE
        sides = table.sides.of(m)
        for track, speaker in enumerate(speakers[sides], start=1):
            if good[sides.start + track - 1]:
                yield name, track, table.speakers[speaker], *of_call, decision
            else:
                yield name, track, "", *of_call, UNUSABLE


def seat_rows(
    seating: Seating, given: Mask, usable: Mask | None = None
) -> Iterator[tuple[Any, ...]]:
    """One row a side, in table order; `given` marks conversations with a known channel."""
    table, label = seating.table, seating.cliques.label
    speaker, figures = seating.speaker().tolist(), seating.confidence
    decided = decisions(seating, usable)
    for side, (m, track) in enumerate(
        zip(table.sides.conversation.tolist(), table.sides.position.tolist(), strict=True)
    ):
        if m >= table.asked:  # nobody asks who is in an enrolment recording
            return
        who = OTHERS if speaker[side] == STRANGER else table.speakers[speaker[side]]
        yield (
            table.ids[m],
            track + 1,
            "" if decided[side] == UNUSABLE else who,
            probability_text(figures.chance[side]),
            int(label[m]) + 1,
            probability_text(figures.low[side]),
            probability_text(figures.high[side]),
            seating.certainty[int(label[m])],
            GIVEN if given[m] else INFERRED,
            decided[side],
        )


def decisions(seating: Seating, usable: Mask | None = None) -> list[str]:
    """(sides,) what to do about each. All tracks of a list that is more probably wrong than right
    are misfits; nothing is settled there."""
    table, sides = seating.table, seating.table.sides
    wrong = seating.wrong.chance > 0.5
    apart = ~seating.cliques.resolvable[seating.cliques.label]
    twins = np.zeros(len(table), np.bool_)
    twins[table.listing.conversation[inseparable(table)]] = True
    settled = seating.settled()
    found = []
    for side, m in enumerate(sides.conversation.tolist()):
        if usable is not None and not usable[side]:
            found.append(UNUSABLE)
        elif wrong[m]:
            found.append(MISFIT)
        elif settled[side]:
            found.append(SETTLED)
        else:
            found.append(UNRESOLVABLE if apart[m] or twins[m] else OPEN)
    return found


def presence_rows(seating: Seating) -> Iterator[tuple[Any, ...]]:
    """One row an entry of the lists: whether this person is there at all."""
    table, figures = seating.table, seating.presence
    for e, m in enumerate(table.listing.conversation.tolist()):
        if m >= table.asked:
            return
        yield (
            table.ids[m],
            table.speakers[table.people[e]],
            CANDIDATE if table.candidate[e] else POSSIBLE if table.possible[e] else CERTAIN,
            probability_text(figures.chance[e]),
            probability_text(figures.low[e]),
            probability_text(figures.high[e]),
        )


def clique_rows(posterior: Posterior) -> Iterator[tuple[Any, ...]]:
    """One row a clique; figures that are not exact are the middle of their interval."""
    cliques = posterior.model.cliques
    best, relative = posterior.best_probability(), posterior.relative_probability()
    proved = posterior.proved_optimal()
    for k in range(len(cliques)):
        yield (
            k + 1,
            cliques.size[k],
            cliques.speakers[k],
            configurations(int(cliques.size[k])),
            _truth(cliques.resolvable[k]),
            _middle(posterior.entropy_low[k], posterior.entropy_high[k]),
            probability_text(float(best[0][k] + best[1][k]) / 2.0),
            probability_text(float(relative[0][k] + relative[1][k]) / 2.0),
            posterior.method[k],
            posterior.certainty[k],
            _truth(proved[k]),
        )


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
            f"{posterior.entropy_low[k]:.10g}",
            f"{posterior.entropy_high[k]:.10g}",
            f"{posterior.log_evidence_low[k]:.10g}",
            f"{posterior.log_evidence_high[k]:.10g}",
            posterior.reason[k],
        )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _middle(low: float, high: float) -> str:
    return f"{(low + high) / 2.0:.10g}"
