"""The table and the key of a made database, as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import names_on
from spklink.tables import SEPARATOR, write_csv


def write_table(folder: Path, table: Conversations, audio: Iterable[str]) -> Path:
    """conversations.csv, with the name of a sound file for each or an empty text."""
    rows = (
        (name, file, SEPARATOR.join(table.names(m)))
        for m, (name, file) in enumerate(zip(table.ids, audio, strict=True))
    )
    path = folder / "conversations.csv"
    write_csv(path, ["conversation", "audio", "participants"], rows)
    return path


def write_key(folder: Path, table: Conversations, truth: NDArray[np.int8]) -> Path:
    """key.csv: who is on which channel, counted from 1."""
    rows = (
        (name, channel, speaker)
        for m, name in enumerate(table.ids)
        for channel, speaker in enumerate(names_on(table, m, int(truth[m])), start=1)
    )
    path = folder / "key.csv"
    write_csv(path, ["conversation", "channel", "speaker"], rows)
    return path
