"""Tables of very many conversations, read a column at a time.

*Ordinary* conversations, two certain people on two tracks, are told by whole columns; all others go
row by row through `drafts`, as in any table. Where anything at all is wrong, nothing is read:
the reader that goes row by row says what it is.

Index conventions: m = conversation in table order, k = row of the table from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.column_words import PEOPLE
from spklink.database.conversation_columns import needed_columns
from spklink.database.drafts import (
    COLUMNS,
    LONGEST_NAME,
    Draft,
    Gathered,
    checked,
    prior_of,
    read_long,
    read_wide,
)
from spklink.database.lists import OTHERS, SOMEBODY, track_count
from spklink.database.sides import TWO
from spklink.errors import Problems
from spklink.tables import SEPARATOR, Content
from spklink.texts import Lists, Texts, coded, hashes
from spklink.whole_columns import (
    Column,
    Whole,
    bytes_of,
    divided,
    release_memory,
    whole_columns,
)

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
PERSONS = ("participant", "speaker")


def read_many(content: Content, *, unlisted: bool) -> Gathered | None:
    """The conversations of a table; None where it has to be read row by row."""
    wanted = ("conversation", PEOPLE, *PERSONS, "status", "probability", *COLUMNS)
    table = whole_columns(content, wanted)
    if table is None:
        return None
    needed = needed_columns(table.header)
    if any(name not in table.columns for name in needed):
        return None
    nobody = OTHERS if unlisted else ""
    found = _wide(table) if needed[1] == PEOPLE else _long(table, needed[1])
    return None if found is None else _gathered(table, found, nobody)


@dataclass(frozen=True)
class _Read:
    """Conversations as columns."""

    ids: Column  # (M,)
    rows: Ints  # (M,) the first row of each
    ordinary: Mask  # (M,) those whose lists are so
    names: Column  # two of each that is ordinary
    further: dict[str, Column]  # (M,) each, by the names of COLUMNS
    of_row: Ints  # (rows of the table,) their conversations
    person: str


def _wide(table: Whole) -> _Read | None:
    ids, who = table.column("conversation"), table.column(PEOPLE)
    if not _all_differ(ids):
        return None
    letters, start = bytes_of(who)
    ordinary = _counted(letters, start, SEPARATOR) == 1
    ordinary &= _counted(letters, start, SOMEBODY) + _counted(letters, start, OTHERS) == 0
    names, _ = divided(_some(who, ordinary))
    if ordinary.all():
        del table.columns[PEOPLE]  # nobody asks again
    rows = np.arange(len(ids), dtype=np.int64)
    further = {name: table.column(name) for name in COLUMNS}
    return _Read(ids, rows, ordinary, names, further, rows, PEOPLE)


def _long(table: Whole, person: str) -> _Read | None:
    coded = table.column("conversation").dictionary_encode()
    of_row = coded.indices.to_numpy().astype(np.int64)
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(coded.dictionary))
    first = order[np.cumsum(counts) - counts]
    who = table.column(person)
    letters, start = bytes_of(who)
    plain = np.diff(start) > 0
    plain[plain] = ~np.isin(letters[start[:-1][plain]], [ord(SOMEBODY), ord(OTHERS)])
    plain &= _counted(letters, start, SEPARATOR) == 0
    plain &= _sizes(table.column("status")) + _sizes(table.column("probability")) == 0
    ordinary = (counts == TWO) & (np.bincount(of_row, plain, len(counts)) == TWO)
    two = np.where(ordinary, np.cumsum(counts) - counts + 1, 0)
    further = {}
    for name in COLUMNS:
        cells = table.column(name)
        further[name], agree = _either(cells.take(first), cells.take(order[two]), ordinary)
        ordinary &= agree
    entries = order[ranges((np.cumsum(counts) - counts)[ordinary], counts[ordinary])]
    names = who.take(entries)
    return _Read(coded.dictionary, first, ordinary, names, further, of_row, person)


def _either(one: Column, two: Column, both: Mask) -> tuple[Column, Mask]:
    """What two rows say of one conversation, and whether they do not contradict each other."""
    from pyarrow import compute

    empty, other = _sizes(one) == 0, _sizes(two) == 0
    same = compute.equal(one, two).to_numpy(zero_copy_only=False)
    said = compute.if_else(_mask(empty & both), two, one)
    return said, np.asarray(empty | other | same)


def _gathered(table: Whole, read: _Read, nobody: str) -> Gathered | None:
    prior = _by_text(read.further["prior"], _prior)
    tracks = _by_text(read.further["tracks"], lambda text: track_count(text, TWO))
    if prior is None or tracks is None:
        return None
    several = _counted(*bytes_of(read.further["audio"]), SEPARATOR) >= TWO
    ordinary = read.ordinary & ~several & (tracks == TWO)
    drafts = _drafts(table, read, ~ordinary, nobody)
    if drafts is None or int((~ordinary).sum()) != len(drafts):
        return None
    problems = Problems()
    found = [checked(one, problems) for one in drafts]
    audio, group = (_with_drafts(read.further[n], n, ordinary, drafts) for n in ("audio", "group"))
    files, counts = divided(audio)
    names = _some(read.names, np.repeat(ordinary[read.ordinary], TWO))
    if problems or not _fit(read.ids, names, files, audio):
        return None
    release_memory()
    lists = _lists(ordinary, names, drafts)
    if lists is None:
        return None
    prior[~ordinary] = [value for value, _ in found]
    tracks[~ordinary] = [number for _, number in found]
    groups = group.dictionary_encode()
    return Gathered(
        ids=Texts.of_arrow(read.ids),
        speakers=lists.speakers,
        counts=lists.counts,
        people=lists.people,
        chance=lists.chance,
        tracks=tracks.astype(np.int64),
        audio=Lists(Texts.of_arrow(files), np.concatenate([[0], np.cumsum(counts)])),
        prior=prior,
        groups=groups.dictionary.to_pylist(),
        group=groups.indices.to_numpy().astype(np.int32),
        rows=read.rows + table.first,
        unknown=lists.unknown,
        open=lists.open,
    )


def _fit(ids: Column, names: Column, files: Column, audio: Column) -> bool:
    """Whether no id, name or file is empty, and no conversation has too many letters."""
    sizes = [_sizes(one) for one in (ids, names, names, audio)]
    enough = sum(int(one.max(initial=0)) for one in sizes) <= LONGEST_NAME
    return enough and all(bool((_sizes(one) > 0).all()) for one in (ids, names, files))


def _with_drafts(column: Column, name: str, ordinary: Mask, drafts: Sequence[Draft]) -> Column:
    """A column in which those that are not ordinary have what their drafts say."""
    import pyarrow as pa
    from pyarrow import compute

    if not drafts:
        return column
    said = pa.array([getattr(one, name) for one in drafts], pa.large_string())
    return compute.replace_with_mask(column, _mask(~ordinary), said)


def _drafts(table: Whole, read: _Read, odd: Mask, nobody: str) -> list[Draft] | None:
    """Conversations that are not ordinary, as they are read from any table."""
    if not odd.any():
        return []
    rows = np.flatnonzero(odd[read.of_row])
    names = table.header.names
    cells = [table.columns[name].take(rows).to_pylist() if name in table.columns else None
             for name in names]  # fmt: skip
    empty = [""] * len(rows)
    fields = zip(*(empty if one is None else one for one in cells), strict=True)
    numbered = zip((rows + table.first).tolist(), map(list, fields), strict=True)
    problems = Problems()
    if read.person == PEOPLE:
        drafts = read_wide(table.header, numbered, problems, nobody)
    else:
        drafts = read_long(table.header, numbered, problems, read.person, nobody)
    return None if problems else drafts


@dataclass(frozen=True)
class _Lists:
    """The lists of all conversations, put together."""

    speakers: Texts
    counts: Ints
    people: NDArray[np.int32]
    chance: NDArray[np.float64]
    unknown: NDArray[np.int32]
    open: Mask


def _lists(ordinary: Mask, names: Column, drafts: Sequence[Draft]) -> _Lists | None:
    import pyarrow as pa

    odd = np.flatnonzero(~ordinary)
    listed = [one.listed for one in drafts]
    counts = np.full(len(ordinary), TWO, np.int64)
    counts[odd] = [len(one.names) for one in listed]
    chance = np.full(int(counts.sum()), np.nan)
    unknown, others = np.zeros(len(ordinary), np.int32), np.zeros(len(ordinary), np.bool_)
    if len(odd):
        start = np.cumsum(counts) - counts
        theirs = ranges(start[odd], counts[odd])
        place = np.empty(len(chance), np.int64)
        place[ranges(start[ordinary], counts[ordinary])] = np.arange(len(names))
        place[theirs] = len(names) + np.arange(len(theirs))
        more = pa.array([name for one in listed for name in one.names], pa.large_string())
        names = pa.concat_arrays([names, more]).take(place)
        chance[theirs] = [value for one in listed for value in one.chance]
        unknown[odd], others[odd] = [one.unknown for one in listed], [one.open for one in listed]
    people, speakers = coded(names)
    pairs = people
    if len(odd):
        pairs = people[ranges((np.cumsum(counts) - counts)[ordinary], counts[ordinary])]
    if (pairs[::TWO] == pairs[1::TWO]).any():
        return None
    return _Lists(speakers, counts, people, chance, unknown, others)


# --- columns --------------------------------------------------------------------------------------


def _some(column: Column, which: Mask) -> Column:
    return column if which.all() else column.filter(_mask(which))


def _mask(which: Mask) -> Any:
    import pyarrow as pa

    return pa.array(which)


def _sizes(column: Column) -> Ints:
    """Bytes of every cell."""
    return np.diff(bytes_of(column)[1])


def _all_differ(column: Column) -> bool:
    """Whether no text is there twice, for certain."""
    found = np.sort(hashes(*bytes_of(column)))
    return bool((found[1:] != found[:-1]).all())


def _counted(letters: NDArray[np.uint8], start: Ints, mark: str) -> Ints:
    """How often a mark is in each cell."""
    at = np.flatnonzero(letters == ord(mark))
    return np.diff(np.searchsorted(at, start)) if len(at) else np.zeros(len(start) - 1, np.int64)


def _prior(text: str) -> float | str:
    said: list[str] = []
    value = prior_of(text, said.append)
    return said[0] if said else value


def _by_text(column: Column, value: Any) -> NDArray[np.float64] | None:
    """The value of every cell, worked out once a text; None where one has none but words."""
    coded = column.dictionary_encode()
    values = [value(text) for text in coded.dictionary.to_pylist()]
    if any(isinstance(one, str) for one in values):
        return None
    return np.asarray(np.array(values, np.float64)[coded.indices.to_numpy()])
