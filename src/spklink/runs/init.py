"""A first table: from a folder of recordings, or from a corpus as its publisher lays it out."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from spklink.corpora import folder as folder_of_recordings
from spklink.corpora.corpus import Corpus
from spklink.corpora.table import read_corpus
from spklink.errors import SpklinkError, check_file
from spklink.options import described, resolved
from spklink.table_options import InitOptions
from spklink.words import counted

TABLES = "tables"  # folder of a results folder with those of a corpus


@dataclass(frozen=True)
class Made:
    """Tables that were written."""

    corpus: Corpus
    files: dict[str, Path]  # by name: conversations, claimed, turns, tracks, speakers

    def as_json(self) -> dict[str, Any]:
        named = [call for call in self.corpus.calls if call.participants]
        return {
            "conversations": len(self.corpus.calls),
            "with_participants": len(named),
            "files": {name: str(path) for name, path in self.files.items()},
            "background": None if self.corpus.background is None else str(self.corpus.background),
            "notes": self.corpus.notes,
        }

    def options(self) -> dict[str, Any]:
        """What `link` is given of a corpus beside its conversations."""
        found: dict[str, Any] = {
            name: self.files[name] for name in ("claimed", "turns", "tracks") if name in self.files
        }
        if self.corpus.background is not None:
            found["background"] = self.corpus.background
        return found


@described(InitOptions)
def init(
    folder: str | PathLike[str] | None = None,
    out: str | PathLike[str] = "conversations.csv",
    **options: Unpack[InitOptions],
) -> Made:
    """Write a table of conversations, and beside it what else a corpus says, as tables.

    `folder` has recordings at any depth; a corpus is named instead of it. Nothing is overwritten.
    """
    asked = resolved(InitOptions, options)
    file = check_file(out)
    corpus = _corpus(folder, asked)
    clash = [path for path in corpus.paths(file).values() if path.exists()]
    if clash:
        raise SpklinkError(f"{clash[0]} is there already; give another -o, or remove it")
    return Made(corpus, corpus.write(file))


def _corpus(folder: str | PathLike[str] | None, asked: InitOptions) -> Corpus:
    named = asked["corpus"]
    if (folder is None) == (named is None):
        raise SpklinkError("give a folder of recordings, or --corpus NAME:PATH")
    if folder is not None:
        if asked["component"] is not None:
            raise SpklinkError("--component goes with --corpus")
        return folder_of_recordings.read(Path(folder), asked["audio"])
    if asked["audio"] is not None:
        raise SpklinkError("--audio is about a folder of recordings; a corpus names its own")
    return read_corpus(str(named), asked["component"])


def corpus_tables(named: str, component: str | None, out: Path) -> Made:
    """The tables of a corpus inside a results folder; those that somebody has edited stay."""
    corpus = read_corpus(named, component)
    file = out / TABLES / "conversations.csv"
    new = corpus.tables(file.parent)
    for name, path in corpus.paths(file).items():
        if path.exists() and path.read_bytes() != new[name]:
            raise SpklinkError(
                f"{path} is not what the corpus says: edited? Then link it as it is (spklink link "
                f"{file} …), or remove it"
            )
    return Made(corpus, corpus.write(file))


def in_words(made: Made) -> list[str]:
    """What was written, for people."""
    found = made.as_json()
    lines = [
        f"{counted(found['conversations'], 'conversation')}, {found['with_participants']} with "
        "participants",
        *(f"wrote {path}" for path in made.files.values()),
    ]
    lines += [f"note: {note}" for note in found["notes"]]
    given = [name for name in ("claimed", "turns", "tracks") if name in made.files]
    words = [f"--{name} {made.files[name]}" for name in given]
    words += [f"--background {found['background']}"] if found["background"] else []
    if found["with_participants"]:
        line = " ".join(["spklink link", str(made.files["conversations"]), *words, "-o results"])
        lines.append(f"next: spklink check {made.files['conversations']}, then {line}")
    return lines
