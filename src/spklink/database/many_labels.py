"""Very many labels of channels, read by whole columns: those that say nothing unusual.

That is certain people who are listed on channels 1 and 2 of conversations between two, each channel
once. All else is left to the reader that goes row by row (`labels`), which has words for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.sides import TWO, track_of, two_each
from spklink.tables import Content
from spklink.texts import Texts
from spklink.whole_columns import Column, whole_columns

Ints = NDArray[np.int64]
COLUMNS = ("conversation", "channel", "track", "speaker", "probability")
NOBODY = -1


@dataclass(frozen=True)
class ManyLabels:
    """What a table says: bits, how many rows are about other conversations, and statements."""

    exchanged: NDArray[np.float64]
    foreign: int
    said: tuple[Ints, Ints, Ints, NDArray[np.float64], Texts]


def read_many(content: Content, table: Conversations, *, every: bool) -> ManyLabels | None:
    """Labels of plain conversations; None where they have to be read row by row. `every`: each must
    be about one of the table, and may carry a probability."""
    if not table.plain or table.diarized or not len(table):
        return None
    read = whole_columns(content, COLUMNS)
    if read is None or not {"conversation", "speaker"} <= read.columns.keys():
        return None
    channel = "channel" if "channel" in read.columns else "track"
    if channel not in read.columns or (every and _filled(read.column("probability"))):
        return None
    m, k = _found(read.column("conversation"), table.ids), _channels(read.column(channel))
    there = m >= 0
    if every and not there.all():
        return None
    m, k, who = m[there], k[there], _found(read.column("speaker"), table.speakers)[there]
    listed = two_each(table.people)[m] == who[:, None]
    if (k < 0).any() or not listed.any(axis=1).all() or not len(m):
        return None
    turned = track_of(listed.argmax(axis=1).astype(np.int8), k.astype(np.int8))
    if not _agree(TWO * m + k, m, turned, len(table)):
        return None
    exchanged = np.full(len(table), np.nan)
    exchanged[m] = turned
    said = m, k, who, np.ones(len(m)), table.speakers.take(who)
    return ManyLabels(exchanged, int((~there).sum()), said)


def _filled(column: Column) -> bool:
    return len(Texts.of_arrow(column).data) > 0


def _found(column: Column, names: Texts) -> Ints:
    """Which of the names each cell is; NOBODY where none is."""
    from pyarrow import compute

    return _numbers(compute.index_in(column, names.arrow()))


def _channels(column: Column) -> Ints:
    """Tracks from 0."""
    import pyarrow as pa
    from pyarrow import compute

    return _numbers(compute.index_in(column, pa.array(["1", "2"], pa.large_string())))


def _numbers(found: Any) -> Ints:
    return np.asarray(found.fill_null(NOBODY).to_numpy(zero_copy_only=False), np.int64)


def _agree(sides: Ints, m: Ints, turned: NDArray[np.int8], size: int) -> bool:
    """Whether no channel is named twice, and both of a conversation say the same."""
    times = np.bincount(m, minlength=size)
    once = (np.bincount(sides, minlength=TWO * size) <= 1).all()
    total = np.bincount(m, turned, minlength=size)
    return bool(once and ((total == 0) | (total == times)).all())
