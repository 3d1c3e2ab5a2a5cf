"""The table of sides: how much speech each has, and whether it can be used."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.errors import problems_in
from spklink.scores.needed import side_index
from spklink.tables import open_table, require_columns, wrong_length

COLUMNS = ("conversation", "channel", "speech_seconds", "mark")  # a mark: why it is not used


def read_sides(
    path: str | PathLike[str], conversations: Conversations
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(2M,) seconds of speech, and whether a side is usable (no mark); rows about other
    conversations are passed over."""
    where = conversations.index()
    seconds = np.full(2 * len(conversations), np.nan)
    usable = np.ones(len(seconds), np.bool_)
    problems: list[str] = []
    with open_table(path) as (header, rows):
        require_columns(header, COLUMNS[:3])
        at = [header.column(name) for name in COLUMNS]
        for number, fields in rows:
            if wrong := wrong_length(number, fields, header):
                problems.append(wrong)
                continue
            name, channel, text = (fields[k] for k in at[:3])
            side = side_index(name, channel, where)
            value = _seconds(text)
            if side < -1:
                problems.append(f"row {number}: channel {channel!r} is not 1 or 2")
            elif value is None:
                problems.append(
                    f"row {number}: speech_seconds {text!r} is not a number of 0 or more"
                )
            elif side >= 0:
                seconds[side] = value
                usable[side] = at[3] < 0 or not fields[at[3]].strip()
    missing = np.flatnonzero(np.isnan(seconds))
    if len(missing) and not problems:
        name = conversations.ids[missing[0] // 2]
        problems.append(
            f"{len(missing)} sides have no row, the first {name!r} channel {missing[0] % 2 + 1}"
        )
    if problems:
        raise problems_in(path, problems)
    return seconds, usable


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None
