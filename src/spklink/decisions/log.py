"""What people decided, kept for good: a log to which entries are only ever added.

Every entry carries the hash of the one before and its own, so that whoever holds the last hash can
tell whether anything was changed, left out or put in between (`verify`). An entry is on the disk
before `append` returns. The same request stored twice is stored once, so that whoever did not hear
that it was stored can ask again.

An entry is one line of JSON. Its hash is the SHA-256 of that text as it is stored, without the
field `"hash":"..."` and the comma after it (before it, where it is the last); that field stands
before the first one whose name sorts behind it. Entries are verified over their stored text and
handed over as stored, so fields of later versions, other spellings of a number and another order
of fields survive.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from spklink.errors import SpklinkError
from spklink.json_files import ANYTHING, Each, misfit, parsed

FILE = "review.sqlite"
HEARD, UNSURE, UNDO, RESOLVE = "heard", "unsure", "undo", "resolve"
VERDICTS = (HEARD, UNSURE, UNDO, RESOLVE)
FIRST = "0" * 64  # the hash before the first entry
HASH = "hash"  # the field of an entry that its hash does not cover
LONGEST = 100_000  # characters of an entry
WAIT_SECONDS = 30.0  # for another process that is writing
SHAPE = {
    "number": int,
    **dict.fromkeys(("time", "reviewer", "conversation", "verdict", "why", "request"), str),
    **dict.fromkeys(("before", "hash"), str),
    "seats": [(str, None)],
    "shown": Each(ANYTHING),
    "undoes": (int, None),
}
SCHEMA = """
create table if not exists decisions (
  number integer primary key, request text not null unique, entry text not null
);
create trigger if not exists never_changed before update on decisions
  begin select raise(abort, 'decisions are never changed'); end;
create trigger if not exists never_removed before delete on decisions
  begin select raise(abort, 'decisions are never removed'); end;
"""


@dataclass(frozen=True)
class Decision:
    """One entry of the log."""

    number: int  # 1, 2, …
    time: str  # ISO 8601, UTC
    reviewer: str
    conversation: str
    verdict: str  # heard, unsure, undo, resolve (of a disagreement)
    seats: tuple[str | None, ...]  # a track: a name, "*" for someone else, None where nobody says
    why: str
    shown: Mapping[str, Any]  # what the person saw: suggestion, probability, blind or not
    undoes: int | None  # the entry that an undo takes back
    request: str  # made by whoever asks, a new one each time
    before: str  # the hash of the entry before
    hash: str = ""
    text: str = ""  # the entry as it is stored, which may have fields of later versions

    def as_json(self) -> dict[str, Any]:
        """The fields that this version knows."""
        fields = asdict(self) | {"seats": list(self.seats), "shown": dict(self.shown)}
        del fields["text"]
        return fields

    def sealed(self) -> Decision:
        """The entry with its hash, and the text to be stored."""
        fields = self.as_json()
        del fields[HASH]
        own = sha256(_canonical(fields).encode()).hexdigest()
        return replace(self, hash=own, text=_canonical(fields | {HASH: own}))


class Decisions:
    """The log of one results folder. May be used from several threads, and by several processes."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection, self._lock = path, connection, Lock()

    @classmethod
    def open(cls, path: str | Path) -> Decisions:
        path = Path(path)
        with _in_words(path):
            connection = sqlite3.connect(
                path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            connection.executescript(SCHEMA)
        return cls(path, connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def append(
        self,
        *,
        reviewer: str,
        conversation: str,
        verdict: str,
        seats: tuple[str | None, ...] = (),
        why: str = "",
        shown: Mapping[str, Any] | None = None,
        undoes: int | None = None,
        request: str,
    ) -> Decision:
        """Store an entry; where this request was stored before, that entry."""
        if verdict not in VERDICTS:
            raise SpklinkError(f"verdict {verdict!r} is not one of {', '.join(VERDICTS)}")
        if not reviewer.strip() or not request.strip():
            raise SpklinkError("a decision needs a reviewer and a request")
        draft = Decision(
            number=0,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            reviewer=reviewer,
            conversation=conversation,
            verdict=verdict,
            seats=seats,
            why=why,
            shown=shown or {},
            undoes=undoes,
            request=request,
            before="",
        )
        with self._lock, _in_words(self.path), self._writing() as connection:
            return _insert(connection, draft, self.path)

    def all(self, after: int = 0) -> list[Decision]:
        """The entries in order, those later than number `after`."""
        with self._lock, _in_words(self.path):
            rows = self._connection.execute(
                "select number, entry from decisions where number > ? order by number", (after,)
            ).fetchall()
        return [_read(text, number, self.path) for number, text in rows]

    def last(self) -> int:
        """The number of the last entry, 0 where there is none."""
        with self._lock, _in_words(self.path):
            found = self._connection.execute("select max(number) from decisions").fetchone()[0]
        return int(found or 0)

    def verify(self) -> str:
        """The last hash; an error that names the first entry that does not fit."""
        return verify(self.all(), self.path)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One writer at a time, of all processes; what is not finished is not there."""
        self._connection.execute("begin immediate")
        try:
            yield self._connection
            self._connection.execute("commit")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise


def last_entry(folder: Path) -> str | None:
    """The hash of the last entry in the log of a results folder."""
    if not (folder / FILE).is_file():
        return None
    log = Decisions.open(folder / FILE)
    try:
        entries = log.all()
        return entries[-1].hash if entries else None
    finally:
        log.close()


def verify(entries: list[Decision], path: Path) -> str:
    """The last hash of entries from anywhere, such as an exported log.

    An error names the first entry that does not fit."""
    before = FIRST
    for place, one in enumerate(entries, start=1):
        if one.number != place:
            raise SpklinkError(f"{path}: entry {place} of the log is missing: {one.number} follows")
        if one.before != before:
            raise SpklinkError(
                f"{path}: entry {place} of the log does not follow the one before: something was "
                "changed, left out or put in between"
            )
        if not _is_intact(one):
            raise SpklinkError(f"{path}: entry {place} of the log was changed after it was stored")
        before = one.hash
    return before


def _is_intact(one: Decision) -> bool:
    """Whether the stored text is the one that the hash was computed over."""
    field = f'"{HASH}":"{one.hash}"'
    if one.text.count(field) != 1:
        return False
    with_comma = f"{field}," if f"{field}," in one.text else f",{field}"
    rest = one.text.replace(with_comma, "")
    return sha256(rest.encode()).hexdigest() == one.hash


def read_log(path: Path) -> list[Decision]:
    """The entries of an exported log, one line of JSON each."""
    with path.open("rb") as file:
        return [_read_line(line, number, path) for number, line in enumerate(file, start=1)]


def _read_line(line: bytes, number: int, path: Path) -> Decision:
    """An entry without the end of its line, which other programs may have rewritten."""
    try:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise SpklinkError(
            f"{path}: entry {number} of the log cannot be read: it is not UTF-8"
        ) from None
    return _read(text, number, path)


def _insert(connection: sqlite3.Connection, draft: Decision, path: Path) -> Decision:
    same = connection.execute(
        "select number, entry from decisions where request = ?", (draft.request,)
    ).fetchone()
    if same is not None:
        return _read(same[1], same[0], path)
    last = connection.execute(
        "select number, entry from decisions order by number desc limit 1"
    ).fetchone()
    number, before = 1, FIRST
    if last is not None:
        number, before = last[0] + 1, _read(last[1], last[0], path).hash
    entry = replace(draft, number=number, before=before).sealed()
    if len(entry.text) > LONGEST:
        raise SpklinkError(f"a decision of {len(entry.text)} characters; {LONGEST} at most")
    connection.execute(
        "insert into decisions values (?, ?, ?)", (number, entry.request, entry.text)
    )
    return entry


def _read(text: str, number: int, path: Path) -> Decision:
    try:
        value = parsed(text)
        wrong = misfit(value, SHAPE)
    except (ValueError, RecursionError) as error:
        wrong = str(error)
    if not wrong and value["verdict"] not in VERDICTS:
        wrong = f"verdict {value['verdict']!r} is not one of {', '.join(VERDICTS)}"
    if not wrong and not _in_its_place(list(value)):
        wrong = "its hash is not in its place"
    if wrong:
        raise SpklinkError(f"{path}: entry {number} of the log cannot be read: {wrong}")
    known = {name: value[name] for name in SHAPE}
    return Decision(**known | {"seats": tuple(value["seats"])}, text=text)


def _in_its_place(names: list[str]) -> bool:
    """Whether the hash stands before the first field that sorts behind it. The other fields then
    tell where it was, so that moving it is noticed too."""
    place = names.index(HASH)
    before, after = names[:place], names[place + 1 : place + 2]
    return all(name < HASH for name in before) and all(name > HASH for name in after)


def _canonical(value: Any) -> str:
    """One text for one value, whoever writes it."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Errors of the database as errors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise SpklinkError(f"{path}: decisions cannot be read or stored ({error})") from None
