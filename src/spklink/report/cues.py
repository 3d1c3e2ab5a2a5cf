"""Other evidence than voices: what each kind says, how far kinds agree, where they do not.

Each kind is the other's witness: two that are calibrated and independent agree as often as their
probabilities say, p q + (1 - p)(1 - q), which needs no key.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from spklink.cues.cue import Floats
from spklink.measures.reliability import reliability
from spklink.report.results import Results
from spklink.runs.cues import conflict_rows, for_claimed

MOST_CONFLICTS = 200  # on the page
AGREEMENT = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
LN10 = float(np.log(10.0))


def cues(results: Results) -> dict[str, Any]:
    """All of it; nothing where there are voices only."""
    if not results.evidence.cues:
        return {}
    said = said_by(results)
    conflicts = conflict_rows(said, results.table)
    return {
        "cues": {
            "says": _says(said),
            "agreement": _agreement(said),
            "count": len(conflicts),
            "conflicts": [
                {
                    "conversation": name,
                    "one": one,
                    "log10": float(odds) / LN10,
                    "other": other,
                    "other_log10": float(against) / LN10,
                }
                for name, one, odds, other, against in conflicts[:MOST_CONFLICTS]
            ],
        }
    }


def said_by(results: Results) -> dict[str, Floats]:
    """(M,) of each kind of evidence, log-odds for what is claimed."""
    return for_claimed(results.evidence, results.answer)


def _says(said: dict[str, Floats]) -> dict[str, Any]:
    rows = []
    for name, odds in said.items():
        there = odds[np.isfinite(odds)]
        strong = int((np.abs(there) >= np.log(99.0)).sum())
        rows.append([name, len(there), strong, int((there < 0.0).sum())])
    columns = ["evidence", "conversations", "sure at 99 %", "against what is claimed"]
    return {"columns": columns, "rows": rows}


def _agreement(said: dict[str, Floats]) -> dict[str, Any]:
    """Expected and observed agreement of every two kinds."""
    rows = []
    for one, two in combinations(said, 2):
        a, b = said[one], said[two]
        both = np.isfinite(a) & np.isfinite(b) & (a != 0.0) & (b != 0.0)
        p, q = (1.0 / (1.0 + np.exp(-np.abs(x[both]))) for x in (a, b))
        chance, same = p * q + (1.0 - p) * (1.0 - q), a[both] * b[both] > 0.0
        for found in reliability(chance, same, AGREEMENT):
            rows.append(
                [
                    f"{one}, {two}",
                    f"{found.low:g} to {found.high:g}",
                    found.count,
                    *(found.predicted, found.observed, found.observed_low, found.observed_high),
                ]
            )
    columns = ["evidence", "probability to agree", "conversations", "predicted right"]
    columns += ["observed right", "right, low end", "right, high end"]
    return {"columns": columns, "rows": rows}
