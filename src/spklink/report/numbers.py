"""All numbers of a report: what report.json holds and what the page shows, and nothing else.

A table is {"columns": [...], "rows": [[...], ...]}. The last key, "times", is the only part that
differs between two reports of one folder.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spklink.errors import SpklinkError
from spklink.measures.entropy import confusion, levels
from spklink.measures.published import PRINTED_TABLE_2, PRINTED_TABLE_3
from spklink.measures.reliability import wilson
from spklink.report import answers, details, graphs, seats
from spklink.report.cues import cues
from spklink.report.lists import lists
from spklink.report.overview import asked, found, next_steps
from spklink.report.provenance import provenance
from spklink.report.recognizer import read_pairs, recognizer
from spklink.report.results import Results
from spklink.report.status import status
from spklink.report.strength import as_json, bounds_of
from spklink.result_tables import KeptTables
from spklink.runs.rows import METHODS
from spklink.runs.weighed import Weighed
from spklink.tables import read_cells
from spklink.words import counted

Table = dict[str, Any]
MOST_PROBLEMS = 200
MOST_METHODS = 100
PROBABILITY_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0)
KNOWLEDGE = {
    "I": "nothing but the recordings",
    "II": "and the number of speakers",
    "III": "and that the two sides of a call are two people",
    "IV": "and who took part in each call",
}


def gather(results: Results, weighed: Weighed, scale: str | None = None) -> dict[str, Any]:
    """Everything but the times; `scale`: the verbal one in which the strength is told."""
    drawn = graphs.drawings(results)
    shown = [edge for drawing in drawn for edge in graphs.marks(drawing)]
    chosen = details.choose(results, (m for edge in shown for m in edge["rows"]))
    there = set(chosen)
    for edge in shown:
        edge["rows"] = [m + 1 for m in edge["rows"] if m in there]
    compared = read_pairs(results, results.folder / "llrs.npz")
    bounds = bounds_of(compared)
    return _all_finite(
        {
            "spklink": results.run["spklink"],
            "tracks": int(results.table.sides.counts.max()),
            "asked": asked(results),
            "found": found(results),
            "status": status(results, bounds),
            "strength": as_json(bounds, scale),
            "lists": lists(results),
            "next": next_steps(results),
            "staircase": None if not results.table.plain else staircase(results),
            "database": {"by_size": graphs.by_size(results), "drawn": drawn},
            "recognizer": recognizer(results, compared),
            "posterior": None if not results.table.plain else posterior(results),
            "seating": None if results.answer.binary else in_full(results),
            "evaluation": None if results.evaluation is None else results.evaluation.as_json(),
            "tables": paper_tables(results),
            "suspicious": details.suspicious(results, bounds, there, scale),
            "problems": problems(results),
            "methods": None if not results.table.plain else methods(results),
            "conversations": details.conversations(results, chosen, weighed, bounds, scale),
            "provenance": provenance(results),
        }
        | cues(results)
        | ({"answers": answers.as_json(results)} if answers.any_answers(results) else {})
    )


def staircase(results: Results) -> Table:
    """The paper's Table 1 continued: bits left at every level of knowledge."""
    table = results.table
    calls = len(table)
    rows: list[list[Any]] = []

    def step(name: str, what: str, low: float, high: float) -> None:
        middle = (low + high) / 2.0
        rows.append([name, what, middle, low, high, confusion(middle, calls)])

    for level in levels(calls, len(table.speakers)):
        if level.exact:
            step(level.level, KNOWLEDGE[level.level], level.bits, level.bits)
    before, after = results.unaided, results.posterior
    assert before is not None
    least = float(before.model.cliques.attainable_bits())
    step("attainable", "and who has which voice, without error", least, least)
    heard = results.voices or before
    linked = float(heard.entropy_low.sum()), float(heard.entropy_high.sum())
    step("linked", "and what the scores say", *linked)
    if heard is not before:
        with_cues = float(before.entropy_low.sum()), float(before.entropy_high.sum())
        names = ", ".join(one.name for one in results.evidence.cues)
        step("other evidence", f"and {names}", *with_cues)
    if after is not before:
        reviewed = float(after.entropy_low.sum()), float(after.entropy_high.sum())
        known = counted(results.known, "known channel")
        step("reviewed", f"and {known}", *reviewed)
    columns = ["level", "what is known", "bits", "bits, low end", "bits, high end", "confusion F"]
    return {"columns": columns, "rows": rows}


def posterior(results: Results) -> dict[str, Any]:
    """What the probabilities say about themselves and, with a key, how that turned out."""
    cliques = results.posterior.model.cliques
    open_ = cliques.resolvable[cliques.label]
    sure = results.posterior.confidence()[0]
    return {
        "expected_wrong_conversations": float((1.0 - sure[open_]).sum()),
        "expected_wrong_cliques": float((1.0 - _maximum(results)[cliques.resolvable]).sum()),
        "maximum": _by_probability(results, open_, sure),
        "by_size": _by_size(results, sure),
    }


def _maximum(results: Results) -> Any:
    """(K,) probability that the best configuration, or one tied with it, is right."""
    low, high = results.posterior.best_probability()
    return np.minimum((low + high) / 2.0 * np.maximum(results.posterior.ties, 1), 1.0)


def _by_probability(results: Results, open_: Any, sure: Any) -> Table:
    """Conversations of resolvable cliques by the probability of what is said of them."""
    truth = None if results.key is None else results.key.bits
    place = np.searchsorted(PROBABILITY_EDGES, sure, side="right") - 1
    place = np.clip(place, 0, len(PROBABILITY_EDGES) - 2)
    rows = []
    for k, (low, high) in enumerate(pairwise(PROBABILITY_EDGES)):
        here = open_ & (place == k)
        row: list[Any] = [low, high, int(here.sum()), float((1.0 - sure[here]).sum())]
        if truth is not None:
            keyed = here & (truth >= 0)
            wrong = int((results.posterior.best[keyed] != truth[keyed]).sum())
            row += [int(keyed.sum()), float((1.0 - sure[keyed]).sum()), wrong, *_band(wrong, keyed)]
        rows.append(row)
    columns = ["from", "to", "conversations", "expected wrong"]
    if truth is not None:
        columns += ["with a key", "of these expected wrong", "observed wrong"]
        columns += ["right, low end", "right, high end"]
    return {"columns": columns, "rows": [row for row in rows if row[2]]}


def _band(wrong: int, keyed: Any) -> tuple[float | None, float | None]:
    count = int(keyed.sum())
    return wilson(1.0 - wrong / count, count) if count else (None, None)


def _by_size(results: Results, sure: Any) -> Table:
    """How certainty grows with the size of a resolvable clique."""
    cliques = results.posterior.model.cliques
    maximum, bits = _maximum(results), results.posterior.entropy_bits
    rows = []
    for name, low, high in graphs.size_classes(int(cliques.size.max())):
        here = (cliques.size >= low) & (cliques.size <= high) & cliques.resolvable
        if here.any():
            calls = here[cliques.label]
            settled = float(results.posterior.settled()[calls].mean())
            rows.append(
                [
                    name,
                    float(cliques.size[here].mean()),
                    int(here.sum()),
                    int(calls.sum()),
                    float(bits[here].sum() / calls.sum()),
                    settled,
                    float(sure[calls].mean()),
                    float((1.0 - maximum[here]).sum()),
                ]
            )
    columns = ["conversations a clique", "mean size", "cliques", "conversations"]
    columns += ["open bits a conversation", "settled at 99 %", "mean probability"]
    return {"columns": [*columns, "expected wrong cliques"], "rows": rows}


def in_full(results: Results) -> dict[str, Any]:
    """What an answer says about itself where lists may be wrong."""
    table = seats.by_probability(results, PROBABILITY_EDGES)
    return {
        "expected_wrong_tracks": float(sum(row[3] for row in table["rows"])),
        "maximum": table,
        "decisions": seats.by_decision(results),
        "methods": seats.methods(results.answer),
    }


def paper_tables(results: Results) -> dict[str, Table] | None:
    """Tables 2 and 3 in the paper's layout, the printed values beside ours; with a key, and where
    a conversation is one bit."""
    if results.evaluation is None or not results.table.plain:
        return None
    measured = results.evaluation.as_json()
    rows = [*((str(r["conversations"]), r) for r in measured["by_size"])]
    rows.append(("all resolvable", measured["resolvable"]))
    table_2, table_3 = [], []
    for name, row in rows:
        _, bits, f, error = PRINTED_TABLE_2.get(row["conversations"], (None,) * 4)
        table_2.append(
            [
                name,
                row["configurations"],
                row["cliques"],
                ends(row, "cross_entropy_bits"),
                bits,
                ends(row, "confusion"),
                f,
                row["clique_errors"],
                row["clique_error_rate"],
                None if error is None else error / 100.0,
            ]
        )
        before, after, scale = PRINTED_TABLE_3.get(row["conversations"], (None,) * 3)
        if row["cliques"] > row["unresolvable"]:
            ours = [ends(row, "resolvable_bits"), before, row["recalibrated_bits"], after]
            table_3.append([name, *ours, row["scale_ratio"], scale])
    return {
        "table_2": {
            "columns": [
                *("conversations", "|C|", "cliques", "bits", "bits, paper", "F", "F, paper"),
                *("wrong", "E", "E, paper"),
            ],
            "rows": table_2,
        },
        "table_3": {
            "columns": [
                *("conversations", "bits", "bits, paper", "recalibrated", "recalibrated, paper"),
                *("best factor", "best factor, paper"),
            ],
            "rows": table_3,
        },
    }


def ends(row: dict[str, Any], name: str) -> float | list[float] | None:
    """A figure, or both its ends where it is not exact."""
    if row[name] is None and row.get(f"{name}_low") is not None:
        return [row[f"{name}_low"], row[f"{name}_high"]]
    figure: float | None = row[name]
    return figure


def problems(results: Results) -> dict[str, Any]:
    """What was odd about recordings, and which sides were not used."""
    marks = [] if results.speech is None else results.speech.marks
    kinds = sorted({mark for mark in marks if mark})
    return {
        "listened": results.linked,
        "unused_sides": {mark: marks.count(mark) for mark in kinds},
        "count": len(results.problems),
        "columns": ["conversation", "channel", "file", "problem"],
        "rows": results.problems[:MOST_PROBLEMS],
    }


def methods(results: Results) -> dict[str, Any]:
    """How every clique beyond plain enumeration was solved, the largest first."""
    cliques = results.posterior.model.cliques
    rows = _read_methods(KeptTables(results.folder).path("methods"), len(cliques))
    rows.sort(key=lambda row: (-int(cliques.size[row[0] - 1]), row[0]))
    return {
        "count": len(rows),
        "columns": [
            *("clique", "conversations", "method", "certainty", "best from", "best to"),
            *("bits from", "bits to", "why"),
        ],
        "rows": [
            [
                row[0],
                int(cliques.size[row[0] - 1]),
                *row[1:7],
                row[9],
            ]
            for row in rows[:MOST_METHODS]
        ],
    }


def _read_methods(path: Path, cliques: int) -> list[Any]:
    words = dict.fromkeys(("method", "certainty", "reason"), str)
    kinds = dict.fromkeys(METHODS, float) | {"clique": int} | words
    rows = [*read_cells(path, kinds)]
    outside = next((row[0] for row in rows if not 1 <= row[0] <= cliques), None)
    if outside is not None:
        raise SpklinkError(f"{path}: clique {outside} of {cliques}; make the results anew")
    return rows


def _all_finite(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: finite(value) for name, value in numbers.items()}


def finite(value: Any) -> Any:
    """The same with None for every number that JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
