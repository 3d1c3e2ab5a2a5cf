"""Calls linked as they arrive: look, link what is whole, say what changed, wait.

Every round is a `link` into the same folder, so it costs what is new (module `memory`), earlier
results stay whole until new ones are, and a watch that is killed goes on where it was. Nothing that
is wrong with a table or a recording ends it: that is told, and looked at again when it changes.
One watch at a time has a folder: a lock says so, which the system lifts when its process ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from spklink.errors import SpklinkError
from spklink.result_tables import KeptTables
from spklink.runs.folder import make_folder
from spklink.runs.link import link
from spklink.runs.result import Result
from spklink.runs.stages import Stages
from spklink.runs.watching import Seen, Watched
from spklink.sound.files import stamp
from spklink.sound.whole import Arrivals
from spklink.tables import read_cells
from spklink.words import counted

LOCK = ".watch.lock"
SETTLED = "settled"
NAMED = 3  # files that a line names
Answers = dict[tuple[str, str], tuple[str, str]]  # name and decision of every track


@dataclass(frozen=True)
class Round:
    """What one round did; a round without a result only waits."""

    number: int
    conversations: int = 0
    new: list[str] = field(default_factory=list)
    gone: int = 0
    tracks: int = 0
    settled: int = 0
    new_settled: int = 0  # tracks of new conversations
    changed: list[str] = field(default_factory=list)  # earlier conversations answered otherwise
    waiting: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    model: str | None = None
    renewed: str = ""  # why what was learned is renewed
    error: str = ""
    result: Result | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        names = [one for one in self.__dataclass_fields__ if one != "result"]
        return {name: getattr(self, name) for name in names}

    def line(self) -> str:
        """For people."""
        if self.error:
            return f"round {self.number}: {self.error}; what was there stays"
        parts = [self._arrived()] if self.result is not None else ["nothing to link yet"]
        if self.waiting:
            parts.append(f"waiting for {_named(self.waiting)}")
        if self.bad:
            parts.append(f"bad: {_named(self.bad)}")
        if self.renewed:
            parts.append(f"learned anew: {self.renewed}")
        return f"round {self.number}: " + "; ".join(parts)

    def _arrived(self) -> str:
        came = f"{counted(len(self.new), 'new conversation')}"
        if self.new:
            came += f", {self.new_settled} of their tracks settled"
        if self.gone:
            came += f", {self.gone} gone"
        changed = counted(len(self.changed), "earlier answer")
        return (
            f"{came}; {changed} changed; {self.settled:,} of {self.tracks:,} tracks settled in "
            f"{self.seconds:.1f} s"
        )


def _named(files: Mapping[str, str]) -> str:
    shown = [f"{name} ({why})" for name, why in list(files.items())[:NAMED]]
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return ", ".join(shown) + more


def watch(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    options: Mapping[str, Any],
    *,
    every: float = 10.0,
    rest: float = 3.0,
    once: bool = False,
    stages: Stages | None = None,
) -> Iterator[Round]:
    """Rounds, for ever or `once`: whenever something has arrived, or is newly waited for. `options`
    are those of `link`; recordings that turn out bad are skipped."""
    folder = make_folder(Path(out))
    options = {**options, "on_bad_audio": "skip"}
    with locked(folder):
        watched = Watched(Path(source), folder, options, Arrivals(rest))
        last, number = None, 0
        while True:
            begin, seen, error = time.monotonic(), None, ""
            try:
                seen = watched.look()
            except (SpklinkError, OSError) as found:
                error = str(found)
            now = _state(seen, watched, error)
            idle = seen is not None and seen.table is None and not seen.bad and number > 0
            if once or (now != last and not idle):
                number += 1
                one = Round(number, error=error)
                if seen is not None:
                    one = _round(number, seen, folder, stages)
                last = now if error or not one.error else None  # what failed is tried again
                yield one
            if once:
                return
            time.sleep(max(0.0, every - (time.monotonic() - begin)))


def _state(seen: Seen | None, watched: Watched, error: str) -> Any:
    """What has to change for another round: rows, recordings, or what is wrong."""
    if seen is None:
        return error
    table = None if seen.table is None else seen.table.sha256
    beside = [stamp(path) for path in watched.beside]
    return table, sorted(seen.bad), hash(frozenset(watched.arrivals.good.items())), beside


def _round(number: int, seen: Seen, folder: Path, stages: Stages | None) -> Round:
    plain = Round(number, waiting=seen.waiting, bad=seen.bad)
    if seen.table is None:
        return plain
    before, begin = answers_in(folder), time.perf_counter()
    fresh = None if stages is None else replace(stages, seconds={})
    try:
        result = link(seen.table, folder, stages=fresh, **dict(seen.options))
    except (SpklinkError, OSError) as error:
        return replace(plain, error=str(error))
    return _told(plain, result, before, answers_in(folder), time.perf_counter() - begin)


def _told(plain: Round, result: Result, before: Answers, after: Answers, took: float) -> Round:
    old, now = ({call for call, _ in one} for one in (before, after))
    new, model = now - old, result.model or {}
    changed = {key[0] for key in before.keys() & after.keys() if before[key] != after[key]}
    bad = {} if result.listening is None else _bad(result)
    return replace(
        plain,
        conversations=len(now),
        new=[name for name in result.conversations.ids if name in new],
        gone=len(old - now),
        tracks=len(after),
        settled=sum(decision == SETTLED for _, decision in after.values()),
        new_settled=sum(after[key][1] == SETTLED for key in after if key[0] in new),
        changed=[name for name in result.conversations.ids if name in changed],
        bad={**plain.bad, **bad},
        seconds=round(took, 2),
        model=model.get("name"),
        renewed=model.get("why", "") if not model.get("new") else "",
        result=result,
    )


def _bad(result: Result) -> dict[str, str]:
    """Recordings of which no track can be used, by the problem that is told of them."""
    table, listening = result.conversations, result.listening
    assert listening is not None
    marks = listening.speech.marks
    dead = {
        table.ids[m]
        for m in range(len(table))
        if all(mark == "bad audio" for mark in marks[table.sides.of(m)])
    }
    return {str(row[2]): str(row[3]) for row in listening.problems if row[0] in dead}


def answers_in(folder: Path) -> Answers:
    """Who is where in a results folder; nothing where there are no whole results."""
    kept = KeptTables(folder)
    if not kept.there("assignments") or not (folder / "run.json").exists():
        return {}
    wanted = dict.fromkeys(("conversation", "channel", "speaker", "decision"), str)
    try:
        rows = read_cells(kept.table("assignments"), wanted)
    except SpklinkError:
        return {}
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


# --- one at a time --------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else watches into this folder; the lock goes with the process, however it ends."""
    with (folder / LOCK).open("a+") as file:
        if not _take(file):
            raise SpklinkError(
                f"{folder}: another watch is at work here; end it first, or give another -o"
            )
        yield


def _take(file: IO[str]) -> bool:
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
    import msvcrt  # Windows

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
