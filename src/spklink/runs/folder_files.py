"""What a results folder has in it: the tables, as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spklink.database.candidates import COLUMNS as CANDIDATES
from spklink.database.conversations import segment_rows
from spklink.database.segments import COLUMNS as SEGMENTS
from spklink.result_tables import CSV, KeptTables, NewTables
from spklink.runs.answer_file import write_answer
from spklink.runs.cues import cue_tables
from spklink.runs.inputs import seen_from
from spklink.runs.listening_files import write_listening
from spklink.runs.misfits import MISFITS
from spklink.runs.result import Result
from spklink.runs.rows import (
    ASSIGNMENTS,
    CLIQUES,
    METHODS,
    PRESENCE,
    clique_columns,
    method_rows,
    presence_columns,
)
from spklink.runs.sums import write_sums
from spklink.runs.unknown import UNKNOWN
from spklink.scores.files import write_scores
from spklink.tables import (
    csv_bytes,
    plain_bytes,
    write_bytes,
    write_json,
)

COPIED = ("conversations", "known", "tracks", "enrol")  # inputs that a folder needs to stand alone


def write_files(result: Result, new: Path, folder: Path) -> None:
    for name, content in _copies(result, folder).items():
        write_bytes(new / f"{name}.csv", content)
    _write_scores(result, new)
    write_sums(result.evidence, new)
    write_answer(result.answer, new)
    _write_tables(result, new_tables(new, result.options))


def _write_tables(result: Result, tables: NewTables) -> None:
    answer, table = result.answer, result.conversations
    if result.listening is not None:
        write_listening(result.listening, result.conversations, tables)
    tables.columns("assignments", ASSIGNMENTS, result.assignment_columns())
    if table.plain:
        right = answer.given(lists_right=True).bits
        tables.columns("cliques", CLIQUES, clique_columns(right))
        tables.rows("methods", METHODS, method_rows(right))
    if not answer.binary:
        tables.columns("presence", PRESENCE, presence_columns(answer))
        tables.rows("misfits", MISFITS, result.misfits)
    if result.naming is not None:
        rows = result.naming.candidates.rows(result.conversations)
        tables.rows("candidates", CANDIDATES, rows)
    if result.unknown is not None:
        tables.rows("unknown", UNKNOWN, result.unknown.rows)
    for name, of_cue in cue_tables(result.evidence, answer).items():
        tables.rows(name, *of_cue)


def _copies(result: Result, folder: Path) -> dict[str, bytes]:
    """The tables that go along, as they were read; RTTM as a table."""
    found = {}
    for name in COPIED:
        table = result.inputs.table(name)
        if table is not None:
            heard = name in ("conversations", "enrol")
            found[name] = seen_from(table, folder) if heard else plain_bytes(table)
    if "tracks" in found:
        found["tracks"] = csv_bytes(SEGMENTS, segment_rows(result.conversations))
    return found


def _write_scores(result: Result, folder: Path) -> None:
    table = result.conversations
    write_scores(folder / "llrs.npz", table, result.evidence.ratios())
    if result.raw is not None and result.calibration is not None:
        write_scores(folder / "scores.npz", table, result.raw)
        write_json(folder / "calibration.json", result.calibration)


def new_tables(folder: Path, options: Mapping[str, Any]) -> NewTables:
    """How tables are written, by the options of a run."""
    return NewTables(folder, options.get("tables", CSV), _is_safe(options))


def kept_tables(folder: Path, run: Mapping[str, Any]) -> KeptTables:
    """The tables of a folder, by its run.json."""
    return KeptTables(folder, _is_safe(run["options"] or {}))


def _is_safe(options: Mapping[str, Any]) -> bool:
    """Whether formulas are marked in the tables of a folder; older folders do not say."""
    return bool(options.get("safe_csv", False))
