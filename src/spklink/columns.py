"""Whose column is what: names of columns in people's tables turned into ours.

`Columns.parsed("conversation=Gespräch,participants=Sprecher A;Sprecher B")` says it; columns that
are several for one of ours are joined with semicolons. Where nothing says what a conversation is
called, it is called after its recording. Recordings may be named by a pattern over the columns of
a row (`{caller}_{callee}.wav`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import PurePosixPath

from spklink.column_words import AUDIO, CHANNEL, CONVERSATION, PEOPLE, PERSON, column_for, people_in
from spklink.errors import SpklinkError
from spklink.foreign_tables import SEPARATOR

Rows = Iterator[tuple[int, list[str]]]
MEANT = (CONVERSATION, AUDIO, PEOPLE, PERSON, "participant", CHANNEL)  # ours in any case of letters
ROLES = (
    *(*MEANT, "track", "status", "probability", "prior", "tracks", "group", "start", "end"),
    *("speech_seconds", "mark", "log_odds", "name", "score", "key"),
    *("conversation_1", "channel_1", "conversation_2", "channel_2"),
)
TEXTS = frozenset({*MEANT, "track", "status", "group", "key", "name", "mark"})  # hold no numbers
ENTRY = re.compile(rf"(?:^|,)\s*({'|'.join(sorted(ROLES, key=len, reverse=True))})\s*=\s*")
FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Columns:
    """What a person says about the columns of tables."""

    entries: tuple[tuple[str, tuple[str, ...]], ...] = ()
    pattern: str = ""  # of the names of recordings
    strict: bool = False  # a table of conversations: columns that are named must be there

    @classmethod
    def parsed(cls, text: str | None, pattern: str | None = None) -> Columns:
        """From `ours=theirs,ours=theirs;theirs`; names may have commas in them."""
        if not text:
            return cls(pattern=pattern or "")
        text = text.strip()
        places = list(ENTRY.finditer(text))
        if not places or places[0].start() > 0:
            raise SpklinkError(
                f"columns: {text[:80]!r} is not ours=theirs, as in 'conversation=Gespräch,"
                f"participants=Sprecher A;Sprecher B'; ours are {', '.join(ROLES[:12])} …"
            )
        ends = [*(place.start() for place in places[1:]), len(text)]
        found = []
        for place, end in zip(places, ends, strict=True):
            names = tuple(name.strip() for name in text[place.end() : end].split(SEPARATOR))
            if not all(names):
                raise SpklinkError(f"columns: {place[1]}= is followed by no name of a column")
            found.append((place[1], names))
        return cls(tuple(found), pattern or "")

    def __bool__(self) -> bool:
        return bool(self.entries or self.pattern)

    def __str__(self) -> str:
        return ",".join(f"{role}={SEPARATOR.join(names)}" for role, names in self.entries)

    def roles(self, names: Sequence[str]) -> dict[str, list[int]]:
        """The places of the columns for each of ours that a table has: those that were named, else
        those called so in any case of letters."""
        found: dict[str, list[int]] = {}
        for role, theirs in self.entries:
            at = [_place(name, names) for name in theirs]
            if role not in found and None not in at:
                found[role] = [k for k in at if k is not None]
        for role in MEANT:
            same = [k for k, name in enumerate(names) if name.casefold() == role]
            if role not in found and role not in names and len(same) == 1:
                found[role] = same
        return found

    def check(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column which was named."""
        had, theirs = self.roles(names), [name for _, some in self.entries for name in some]
        lacking = [name for name in theirs if _place(name, names) is None]
        served = [role for role, some in self.entries if role in had and set(some) & set(lacking)]
        if not lacking or served:
            return
        near = get_close_matches(lacking[0], names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)[:200]}"
        raise SpklinkError(f"no column {lacking[0]!r}, which --columns names; {hint}")


def _place(name: str, names: Sequence[str]) -> int | None:
    """Where a column is: called just so, else so but for case and Unicode form."""
    if name in names:
        return names.index(name)
    same = [k for k, other in enumerate(names) if _folded(other) == _folded(name)]
    return same[0] if len(same) == 1 else None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


class Odd(list[str]):
    """A row of another length than its header: nothing of it is taken."""

    def __init__(self, found: int, wanted: int) -> None:
        super().__init__()
        self.found, self.wanted = found, wanted


def renamed(names: list[str], rows: Rows, columns: Columns) -> tuple[list[str], Rows]:
    """A table with our names for columns; all others stay as they are, behind."""
    if columns.strict:
        columns.check(names)
    roles = columns.roles(names)
    if columns.pattern:
        names, rows = _with_audio(names, rows, columns.pattern, roles)
        roles.pop(AUDIO, None)
    if roles:
        width, (names, places) = len(names), _places(names, roles)
        rows = _joined(rows, places, width)
    if _called_after_files(names, columns):
        rows = called_after(rows, names.index(AUDIO), len(names))
        names = [CONVERSATION, *names]
    return names, rows


def placed(names: list[str], columns: Columns) -> tuple[list[str], list[list[int]]] | None:
    """Our names for columns, and the columns that each is; None where cells have to be made anew
    row by row."""
    if columns.strict:
        columns.check(names)
    found = _places(names, columns.roles(names))
    return None if columns.pattern or _called_after_files(found[0], columns) else found


def _places(names: list[str], roles: dict[str, list[int]]) -> tuple[list[str], list[list[int]]]:
    used = {k for at in roles.values() for k in at}
    rest = [k for k, name in enumerate(names) if k not in used and name not in roles]
    return [*roles, *(names[k] for k in rest)], [*roles.values(), *([k] for k in rest)]


def _called_after_files(names: list[str], columns: Columns) -> bool:
    """Whether conversations have to be called after their recordings."""
    about_calls = columns.strict or PEOPLE in names
    return about_calls and AUDIO in names and CONVERSATION not in names


def _joined(rows: Rows, places: list[list[int]], width: int) -> Rows:
    for number, fields in rows:
        if len(fields) == width:
            yield number, [_cell(fields, at) for at in places]
        else:
            yield number, _odd(fields, width)


def _odd(fields: list[str], width: int) -> Odd:
    return fields if isinstance(fields, Odd) else Odd(len(fields), width)


def _cell(fields: list[str], at: list[int]) -> str:
    return fields[at[0]] if len(at) == 1 else SEPARATOR.join(_there(fields, at))


def _there(fields: list[str], at: list[int]) -> list[str]:
    """Cells of several columns for one list: empty ones at its end are nobody."""
    cells = [fields[k].strip() for k in at]
    while len(cells) > 2 and not cells[-1]:
        cells.pop()
    return cells


def called_after(rows: Rows, audio: int, width: int) -> Rows:
    """With an id before each row: the name of its recording without the ending, with its folder
    where two recordings have one name."""
    every = [(n, fields if len(fields) == width else _odd(fields, width)) for n, fields in rows]
    files = {fields[audio].strip() for _, fields in every if fields}
    short = {file: _stem(file, whole=False) for file in files}
    whole = len(set(short.values())) < len(files)
    for number, fields in every:
        if isinstance(fields, Odd):
            yield number, fields
        else:
            yield number, [_stem(fields[audio].strip(), whole=whole), *fields]


def _stem(file: str, *, whole: bool) -> str:
    """Of several files what their names have in common."""
    paths = [PurePosixPath(one.strip().replace("\\", "/")) for one in file.split(SEPARATOR)]
    stems = [str(path.with_suffix("")) if whole and path.name else path.stem for path in paths]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*stems, strict=False))
    return "".join(letters[0] for letters in same).rstrip("_-. " * (len(stems) > 1)) or stems[0]


def _with_audio(
    names: list[str], rows: Rows, pattern: str, roles: dict[str, list[int]]
) -> tuple[list[str], Rows]:
    """With a column `audio` made of the others, in the place of one that there is."""
    fill, width = filled(pattern, names, roles), len(names)
    kept = [k for k, name in enumerate(names) if name != AUDIO]

    def made() -> Rows:
        for number, fields in rows:
            if len(fields) == width:
                yield number, [*(fields[k] for k in kept), fill(fields)]
            else:
                yield number, _odd(fields, width)

    if len(kept) < width:  # places behind it move
        moved = {k: new for new, k in enumerate(kept)}
        for role, at in roles.items():
            roles[role] = [moved.get(k, k) for k in at]
    return [*(names[k] for k in kept), AUDIO], made()


def filled(
    pattern: str, names: Sequence[str], roles: dict[str, list[int]]
) -> Callable[[list[str]], str]:
    """From a row to what a pattern makes of its cells."""
    at = {}
    for field in FIELD.findall(pattern):
        named = roles.get(field, [])
        place = _place(field, names) if len(named) != 1 else named[0]
        if place is None:
            raise SpklinkError(
                f"--audio {pattern!r}: no column {field!r}; there are {', '.join(names)[:200]}"
            )
        at[field] = place
    if not at:
        raise SpklinkError(f"--audio {pattern!r}: no {{column}} in it: every row would be one file")
    return lambda fields: FIELD.sub(lambda found: fields[at[found[1]]].strip(), pattern)


# --- what columns might be ------------------------------------------------------------------------


@dataclass(frozen=True)
class Guess:
    """What the columns of a table seem to be."""

    columns: Columns
    whole: bool  # whether all that is needed is among them


def guess(names: Sequence[str], needed: Sequence[str], sample: Iterable[list[str]] = ()) -> Guess:
    """What the columns might be, given those that a reader needs and some rows."""
    names = [name for name in names if name]
    found: dict[str, tuple[str, ...]] = {}
    several = {PEOPLE, PERSON, "participant"} & set(needed) and CHANNEL not in needed
    if several:
        found |= _people(names, list(sample))
        needed = [role for role in needed if role not in (PEOPLE, PERSON, "participant")]
        needed = [*needed, AUDIO]
    if list(needed) == [CONVERSATION]:
        needed = [CONVERSATION, AUDIO]
    for role in needed:
        free = [name for name in names if not any(name in taken for taken in found.values())]
        one = role if role in names else column_for("channel" if role == "track" else role, free)
        if one is not None:
            found[role] = (one,)
    said = tuple((role, theirs) for role in ROLES if (theirs := found.get(role)))
    enough = all(role in found for role in needed if role not in (AUDIO, CONVERSATION))
    if several:
        enough = bool({PEOPLE, PERSON} & found.keys() and {AUDIO, CONVERSATION} & found.keys())
    else:
        enough = enough and (CONVERSATION in found or CONVERSATION not in needed)
    own = tuple((role, theirs) for role, theirs in said if theirs != (role,))
    return Guess(Columns(own), enough)


def _people(names: list[str], sample: list[list[str]]) -> dict[str, tuple[str, ...]]:
    """Who takes part: a column a person, a list in one column, or one person a row."""
    if PEOPLE in names:
        return {PEOPLE: (PEOPLE,)}
    if several := people_in(names):
        return {PEOPLE: tuple(several)}
    one = column_for(PEOPLE, names) or column_for(PERSON, names)
    if one is None:
        return {}
    at = names.index(one)
    cells = [row[at] for row in sample if len(row) > at]
    listed = sum(SEPARATOR in text for text in cells)
    again = _repeated(names, sample)
    return {PERSON if again and 2 * listed <= len(cells) else PEOPLE: (one,)}


def _repeated(names: list[str], sample: list[list[str]]) -> bool:
    """Whether what a row is about is in other rows too."""
    about = column_for(AUDIO, names) or column_for(CONVERSATION, names)
    if about is None:
        return False
    cells = [row[names.index(about)] for row in sample if len(row) == len(names)]
    return len(set(cells)) < len(cells)
