"""Options about tables as people have them: how they are read, made and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from spklink.options import Option
from spklink.shared_options import Attributes, Cue, Speakers, Tracks, Turns

Columns = Annotated[
    str | None,
    Option(
        "What your columns are, where they are not called as ours: conversation=Gespräch,"
        "audio=Datei,participants=Sprecher A;Sprecher B.",
        None,
    ),
]
Encoding = Annotated[
    str | None,
    Option("Encoding of your tables, where it is not recognised: cp1250 or cp1251.", None),
]
AudioPattern = Annotated[
    str | None,
    Option("Names of the recordings, made of columns: {caller}_{callee}.wav.", None),
]
Corpus = Annotated[
    str | None,
    Option("A corpus instead of a table: cgn:PATH, kaldi:PATH, lhotse:PATH and others.", None),
]
Component = Annotated[str | None, Option("Component of a corpus that has several: c.", None)]
OptionalTable = Annotated[
    Path | None,
    Option(
        "Table of conversations: conversation,audio,participants.",
        None,
        file=True,
        argument="[TABLE]",
    ),
]
Recordings = Annotated[
    Path | None,
    Option("Folder with recordings at any depth.", None, file=True, argument="[FOLDER]"),
]
FirstTable = Annotated[
    Path,
    Option(
        "The table; those of a corpus go beside it.",
        Path("conversations.csv"),
        file=True,
        flags=("--out", "-o"),
    ),
]


class InitOptions(TypedDict, total=False):
    audio: Annotated[
        str | None,
        Option("How the files are called: {caller}_{callee}_{date}.wav.", None),
    ]
    corpus: Corpus
    component: Component


class CheckOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
    audio: AudioPattern
    tracks: Tracks
    turns: Turns
    speakers: Speakers
    attribute: Attributes
    cue: Cue


class DetectOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
