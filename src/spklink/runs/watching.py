"""What is there to be linked now: rows of a table, or recordings of a folder, that are whole.

A table is taken when it is at rest, and, where its last line has no end, after a longer rest: its
writer may be in the middle of it. Rows whose recordings are not whole are left out for now.

A folder with a `conversations.csv` in it is that table. Else file names say who takes part
(--audio '{caller}_{callee}_{date}.wav'), as with `init`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from spklink.corpora import folder as of_folder
from spklink.database.conversations import Conversations, read_conversations
from spklink.errors import SpklinkError
from spklink.runs.inputs import reading
from spklink.sound.places import is_remote
from spklink.sound.whole import Arrivals
from spklink.tables import AS_IT_IS, Content, csv_bytes, open_table, read_table

TABLE = "conversations.csv"  # of a folder
TABLES = "tables"  # folder of a results folder with that of a folder of recordings
BESIDE = ("embeddings", "scores", "sides", "known", "claimed", "tracks", "turns", "cue", "speakers")
UNFINISHED = 3.0  # times the rest, for a table whose last line has no end


@dataclass(frozen=True)
class Seen:
    """One look."""

    table: Content | None  # None: nothing can be linked yet
    options: Mapping[str, Any]
    waiting: dict[str, str] = field(default_factory=dict)  # by file: why
    bad: dict[str, str] = field(default_factory=dict)  # those that nobody waits for any more


@dataclass
class Watched:
    """A table or a folder that grows."""

    source: Path
    out: Path
    options: Mapping[str, Any]
    arrivals: Arrivals

    @property
    def beside(self) -> list[Path]:
        """Other files that results depend on, and that may grow with the table."""
        given = [self.options[name] for name in BESIDE]
        return [Path(one) for one in given if isinstance(one, str | PathLike)]

    def look(self) -> Seen:
        """What is whole now."""
        moving = [str(path) for path in self.beside if not self.arrivals.at_rest(path)]
        if moving:
            return Seen(None, self.options, dict.fromkeys(moving, "being written"))
        if self.source.is_dir() and not (self.source / TABLE).exists():
            return self._folder()
        return self._table(self.source / TABLE if self.source.is_dir() else self.source)

    def _table(self, path: Path) -> Seen:
        if not path.exists():
            return Seen(None, self.options, {str(path): "not there yet"})
        if not self.arrivals.at_rest(path):
            return Seen(None, self.options, {str(path): "being written"})
        content = read_table(path, "conversations", reading(self.options))
        if _unfinished(content) and not self.arrivals.at_rest(path, UNFINISHED):
            return Seen(None, self.options, {str(path): "its last line has no end"})
        if any(self.options[name] is not None for name in ("embeddings", "scores")):
            return Seen(content, self.options)  # nobody listens
        table = read_conversations(content, unlisted=True)
        waiting, bad, left = self._recordings(table)
        if not left:
            return Seen(content, self.options, waiting, bad)
        some = _without(content, {table.ids[m] for m in left})
        options = {**self.options, "encoding": None}  # it is written anew
        return Seen(some if len(left) < len(table) else None, options, waiting, bad)

    def _recordings(self, table: Conversations) -> tuple[dict[str, str], dict[str, str], list[int]]:
        """Files that are waited for, and bad ones; the conversations that need them."""
        waiting, bad, left = dict[str, str](), dict[str, str](), list[int]()
        for m, files in enumerate(table.audio):
            whys = {name: self._why(table.path.parent, name) for name in files}
            for name, why in whys.items():
                if why:
                    gone = self.arrivals.given_up(table.path.parent / name)
                    (bad if gone else waiting)[name] = why
            if any(whys.values()):
                left.append(m)
        return waiting, bad, left

    def _why(self, folder: Path, name: str) -> str:
        return "" if is_remote(name) else self.arrivals.waits(folder / name)

    def _folder(self) -> Seen:
        whole, waiting, bad = list[Path](), dict[str, str](), dict[str, str]()
        for path in of_folder.recordings(self.source):
            why = self.arrivals.waits(path)
            if not why:
                whole.append(path)
            else:
                name = path.relative_to(self.source).as_posix()
                (bad if self.arrivals.given_up(path) else waiting)[name] = why
        if not whole:
            return Seen(None, self.options, waiting, bad)
        if self.options["audio"] is None:
            raise SpklinkError(
                f"{self.source}: nobody says who takes part; put a {TABLE} into it, or say how "
                "files are called: --audio '{caller}_{callee}_{date}.wav'"
            )
        corpus = of_folder.read(self.source, self.options["audio"], whole)
        pairs = [call for call in corpus.calls if call.participants]
        file = self.out / TABLES / TABLE
        made = replace(corpus, calls=pairs).write(file)["conversations"]
        options = {**self.options, "audio": None}  # the names have said it
        return Seen(read_table(made, "conversations"), options, waiting, bad)


def _unfinished(content: Content) -> bool:
    """Whether its writer may be in the middle of a line."""
    text = content.path.suffix.lower() in ("", ".csv", ".tsv", ".tab", ".txt", ".jsonl")
    return text and not content.data.endswith((b"\n", b"\r"))


def _without(content: Content, left_out: set[str]) -> Content:
    """The table without some conversations, under the same name."""
    with open_table(content) as (header, rows):
        at = header.column("conversation")
        kept = [cells for _, cells in rows if cells[at].strip() not in left_out]
        data = csv_bytes(header.names, kept)
    return Content(content.path, data, how=AS_IT_IS)
