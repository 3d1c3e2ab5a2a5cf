"""What only `link` writes into a results folder: sides, segments, problems, suspects.

Results of earlier versions have no segments.csv, nor have those of vectors or scores that were
given.
"""

from __future__ import annotations

from typing import Any

from spklink.database.conversations import Conversations
from spklink.result_tables import KeptTables, NewTables
from spklink.runs.claims import SUSPECTS, read_suspects
from spklink.runs.result import Listening
from spklink.sound.listening import PROBLEMS
from spklink.sound.speech_marks import COLUMNS as TIMES
from spklink.sound.speech_marks import mark_rows, read_speech_marks
from spklink.sound.speech_table import COLUMNS as SIDES
from spklink.sound.speech_table import read_speech_table, speech_rows
from spklink.tables import read_cells

SEGMENTS = "segments"
LINK_TABLES = ("sides", SEGMENTS, "problems", "suspects")


def write_listening(heard: Listening, table: Conversations, tables: NewTables) -> None:
    tables.rows("sides", SIDES, speech_rows(table, heard.speech))
    tables.rows("problems", PROBLEMS, heard.problems)
    if heard.marks is not None:
        tables.rows(SEGMENTS, TIMES, mark_rows(table, heard.marks))
    if heard.suspects is not None:
        tables.rows("suspects", SUSPECTS, heard.suspects)


def read_listening(kept: KeptTables, recognizer: dict[str, Any], table: Conversations) -> Listening:
    claimed, heard = kept.there("suspects"), kept.there(SEGMENTS)
    return Listening(
        speech=read_speech_table(kept.table("sides"), table, unknown=True),
        problems=read_cells(kept.table("problems"), dict.fromkeys(PROBLEMS, str)),
        recognizer=recognizer,
        suspects=read_suspects(kept.table("suspects"), table) if claimed else None,
        marks=read_speech_marks(kept.table(SEGMENTS), table) if heard else None,
    )
