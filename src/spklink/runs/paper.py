"""The paper's experiment on simulated databases: its three tables beside ours.

The corpus of Tables 2 and 3 cannot be simulated, only its shape: many databases of as many cliques
of each size, with scores of the same equal error rate. What the paper printed is in module
`measures.published`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import find_cliques
from spklink.measures.evaluation import averages, best_scale, keep_cliques
from spklink.measures.published import PRINTED_TABLE_2, PRINTED_TABLE_3, REMARKS, table_1
from spklink.posterior.likelihood import Model, build_model, join
from spklink.posterior.posterior import solve
from spklink.posterior.truth import CliqueScores, score_cliques
from spklink.worlds.simulate import simulate

Run = tuple[Model, NDArray[np.int8], CliqueScores]  # one database, its truth, how it fared
SPREAD_DATABASES = 40  # whose own best factor is sought, for the quartiles


@dataclass(frozen=True)
class SimulatedRow:
    """One row of Tables 2 and 3 over many simulated databases."""

    conversations: int | None  # None: all resolvable cliques
    cliques: int  # a database
    bits: float  # mean over databases
    bits_spread: float  # standard deviation between databases
    resolvable_bits: float | None
    confusion: float
    error_rate: float
    error_spread: float
    recalibrated_bits: float | None  # over all databases together
    scale_ratio: float | None
    scale_quartiles: tuple[float, float] | None  # between databases that have an optimum


def tables_2_and_3(
    *,
    databases: int = 300,
    world: str = "gaussian",
    eer: float = 7.0,
    seed: int = 0,
    tell: Callable[[int, int], None] | None = None,
) -> list[SimulatedRow]:
    """Simulate CGN-shaped databases and average them; `tell` hears (done, total)."""
    runs = []
    for k in range(databases):
        runs.append(_one_database(world, eer, seed + k))
        if tell is not None:
            tell(k + 1, databases)
    sizes: list[int | None] = [1, 2, 3, 4, 5, 6, None]
    return [_summary(runs, size) for size in sizes]


def _one_database(world: str, eer: float, seed: int) -> Run:
    made = simulate(shape="cgn", world=world, eer=eer, seed=seed)
    cliques = find_cliques(made.conversations)
    model = build_model(made.conversations, cliques, made.links, made.llr)
    return model, made.truth, score_cliques(solve(model), made.truth)


def _chosen(scores: CliqueScores, size: int | None) -> NDArray[np.bool_]:
    return scores.resolvable if size is None else scores.size == size


def _summary(runs: list[Run], size: int | None) -> SimulatedRow:
    rows = [averages(scores, _chosen(scores, size)) for _, _, scores in runs]
    parts = [keep_cliques(m, t, s, _chosen(s, size)) for m, t, s in runs]
    pooled_bits, scale = best_scale(
        join([model for model, _ in parts]), np.concatenate([truth for _, truth in parts])
    )
    singles = [best_scale(*part)[1] for part in parts[:SPREAD_DATABASES]]
    found = [single for single in singles if single is not None]
    bits = np.array([row["cross_entropy_bits"] for row in rows])
    errors = np.array([row["clique_error_rate"] for row in rows])
    solvable = [row["resolvable_bits"] for row in rows if row["resolvable_bits"] is not None]
    return SimulatedRow(
        conversations=size,
        cliques=rows[0]["cliques"],
        bits=float(bits.mean()),
        bits_spread=float(bits.std()),
        resolvable_bits=float(np.mean(solvable)) if solvable else None,
        confusion=float(np.exp2(bits.mean()) - 1.0),
        error_rate=float(errors.mean()),
        error_spread=float(errors.std()),
        recalibrated_bits=pooled_bits,
        scale_ratio=scale,
        scale_quartiles=_quartiles(found),
    )


def _quartiles(values: list[float]) -> tuple[float, float] | None:
    if not values:
        return None
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)


def as_json(rows: list[SimulatedRow], settings: dict[str, Any]) -> dict[str, Any]:
    """All three tables, computed and printed, for machines."""
    return {
        "table_1": [
            {
                "level": row.level,
                "expression": row.expression,
                "bits": row.bits,
                "confusion": row.confusion,
                "exact": row.exact,
                "printed_bits": printed[0] if printed else None,
                "printed_confusion": printed[1] if printed else None,
            }
            for row, printed in table_1()
        ],
        "tables_2_and_3": [_row_json(row) for row in rows],
        "simulation": settings,
        "remarks": list(REMARKS),
    }


def _row_json(row: SimulatedRow) -> dict[str, Any]:
    table_2 = PRINTED_TABLE_2[row.conversations]
    table_3 = PRINTED_TABLE_3.get(row.conversations)
    return vars(row) | {
        "printed": {
            "cliques": table_2[0],
            "bits": table_2[1],
            "confusion": table_2[2],
            "error_rate": None if table_2[3] is None else table_2[3] / 100.0,
            "resolvable_bits": table_3[0] if table_3 else None,
            "recalibrated_bits": table_3[1] if table_3 else None,
            "scale_ratio": table_3[2] if table_3 else None,
        }
    }
