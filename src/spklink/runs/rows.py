"""The tables of results, row by row: assignments, cliques, methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spklink.database.conversations import Conversations
from spklink.database.sides import speakers_on
from spklink.measures.evaluation import configurations
from spklink.posterior.posterior import Posterior
from spklink.tables import probability_text

GIVEN, INFERRED = "given", "inferred"  # where an assignment comes from
ASSIGNMENTS = (
    *("conversation", "channel", "speaker", "probability", "clique", "low", "high", "certainty"),
    "origin",
)
CLIQUES = (
    *("clique", "conversations", "speakers", "configurations", "resolvable"),
    *("entropy_bits", "best_probability", "relative_probability", "method"),
    *("certainty", "proved_optimal"),
)
METHODS = (
    *("clique", "method", "certainty", "best_low", "best_high", "entropy_low", "entropy_high"),
    *("log_evidence_low", "log_evidence_high", "reason"),
)


def assignment_rows(table: Conversations, posterior: Posterior) -> Iterator[tuple[Any, ...]]:
    """One row a side, in table order."""
    label = posterior.model.cliques.label
    figures = [values.tolist() for values in posterior.confidence()]
    speakers = speakers_on(table, posterior.best).tolist()
    for m, name in enumerate(table.ids):
        clique = int(label[m])
        chance, low, high = (probability_text(values[m]) for values in figures)
        origin = GIVEN if posterior.bits[m] >= 0 else INFERRED
        of_call = chance, clique + 1, low, high, posterior.certainty[clique], origin
        sides = table.sides.of(m)
        for track, speaker in enumerate(speakers[sides], start=1):
            yield name, track, table.speakers[speaker], *of_call


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
