"""What only `link` writes into a results folder: sides, segments, problems, suspects.csv.

Results of earlier versions have no segments.csv, nor have those of vectors or scores that were
given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spklink.database.conversations import Conversations
from spklink.runs.claims import SUSPECTS, read_suspects
from spklink.runs.result import Listening
from spklink.sound.listening import PROBLEMS
from spklink.sound.speech_marks import read_speech_marks, write_speech_marks
from spklink.sound.speech_table import read_speech_table, write_speech_table
from spklink.tables import Table, read_cells, without_marks, write_csv

SEGMENTS = "segments.csv"
LINK_FILES = ("sides.csv", SEGMENTS, "problems.csv", "suspects.csv")


def write_listening(heard: Listening, table: Conversations, folder: Path, *, safe: bool) -> None:
    write_speech_table(folder / "sides.csv", table, heard.speech, safe=safe)
    write_csv(folder / "problems.csv", PROBLEMS, heard.problems, safe=safe)
    if heard.marks is not None:
        write_speech_marks(folder / SEGMENTS, table, heard.marks, safe=safe)
    if heard.suspects is not None:
        write_csv(folder / "suspects.csv", SUSPECTS, heard.suspects, safe=safe)


def read_listening(
    folder: Path, recognizer: dict[str, Any], table: Conversations, *, safe: bool
) -> Listening:
    read: Callable[[Path], Table] = without_marks if safe else Path
    suspects, segments = folder / "suspects.csv", folder / SEGMENTS
    return Listening(
        speech=read_speech_table(read(folder / "sides.csv"), table, unknown=True),
        problems=read_cells(read(folder / "problems.csv"), dict.fromkeys(PROBLEMS, str)),
        recognizer=recognizer,
        suspects=read_suspects(read(suspects), table) if suspects.exists() else None,
        marks=read_speech_marks(read(segments), table) if segments.exists() else None,
    )
