"""What a results folder has in it: the tables, as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spklink.database.candidates import COLUMNS as CANDIDATES
from spklink.database.conversations import segment_rows
from spklink.database.segments import COLUMNS as SEGMENTS
from spklink.runs.cues import cue_files
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
    write_csv,
    write_json,
)
from spklink.written_columns import write_columns

COPIED = ("conversations", "known", "tracks", "enrol")  # inputs that a folder needs to stand alone


def write_files(result: Result, new: Path, folder: Path) -> None:
    for name, content in _copies(result, folder).items():
        write_bytes(new / f"{name}.csv", content)
    _write_scores(result, new)
    write_sums(result.evidence, new)
    safe, seating = is_safe(result.options), result.seating
    if result.listening is not None:
        write_listening(result.listening, result.conversations, new, safe=safe)
    write_columns(new / "assignments.csv", ASSIGNMENTS, result.assignment_columns(), safe=safe)
    if result.solution is not None:
        write_columns(new / "cliques.csv", CLIQUES, clique_columns(result.solution))
        write_csv(new / "methods.csv", METHODS, method_rows(result.solution))
    if seating is not None:
        write_columns(new / "presence.csv", PRESENCE, presence_columns(seating), safe=safe)
        write_csv(new / "misfits.csv", MISFITS, result.misfits, safe=safe)
    if result.naming is not None:
        rows = result.naming.candidates.rows(result.conversations)
        write_csv(new / "candidates.csv", CANDIDATES, rows, safe=safe)
    if result.unknown is not None:
        write_csv(new / "unknown.csv", UNKNOWN, result.unknown.rows, safe=safe)
    for name, of_cue in cue_files(result.evidence, result.solution, seating).items():
        write_csv(new / name, *of_cue, safe=safe)


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


def is_safe(options: Mapping[str, Any]) -> bool:
    """Whether formulas are marked in the tables of a folder; older folders do not say."""
    return bool(options.get("safe_csv", False))
