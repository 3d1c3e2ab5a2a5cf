"""Vectors of sides from a file of any format, from a DataFrame, from arrays."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.formats import csv_vectors
from spklink.formats.keys import Keys
from spklink.formats.vectors import Block, Collector, Room, Vectors
from spklink.streams import ZIP, Stream
from spklink.table_forms import OpenFile

FORMATS = (".npz", ".csv", ".parquet", ".ark", ".scp", ".txt")
PARQUET = b"PAR1"  # how such files begin


def read_vectors(
    given: Any, conversations: Conversations, room: Room, keys: Keys | None = None
) -> tuple[Vectors, list[Stream]]:
    """The vectors of the sides of a table; every problem in one error. Beside them the archives
    that a .scp names.

    `given` is a file, a DataFrame, a mapping of arrays as in a .npz, or an array of all sides in
    table order.
    """
    collector = Collector(conversations, room, keys or Keys())
    if isinstance(given, str | PathLike | Stream):
        stream = given if isinstance(given, Stream) else Stream(given, hashed=False)
        more = _read_file(stream, collector)
        return collector.finish(stream.path), more
    try:
        _take(given, collector)
    except SpklinkError as error:
        raise SpklinkError(f"embeddings: {error}") from None
    return collector.finish("embeddings"), []


def _read_file(stream: Stream, collector: Collector) -> list[Stream]:
    """By its ending; of a pipe, whose name has none, by its first bytes."""
    from spklink.formats import kaldi, npz_vectors, parquet_vectors

    name, kind = str(stream.path), stream.path.suffix.lower()
    with stream.open() as file:
        if stream.is_pipe() and kind not in FORMATS:
            kind = _kind_of(file)
        if kind in (".npz", ".parquet"):
            read = npz_vectors.read if kind == ".npz" else parquet_vectors.read
            with stream.whole(file) as whole:
                read(whole, name, collector)
        elif kind == ".csv":
            csv_vectors.read(OpenFile(stream.path, file), collector)
        elif kind == ".scp":
            return kaldi.read_scp(file, stream.path, collector)
        elif kind in (".ark", ".txt"):
            kaldi.read_ark(file, name, collector)
        else:
            raise SpklinkError(f"{name}: embeddings must be one of {', '.join(FORMATS)}")
    return []


def _kind_of(file: io.BufferedReader) -> str:
    begin = file.peek(len(PARQUET))
    return ".npz" if begin.startswith(ZIP) else ".parquet" if begin.startswith(PARQUET) else ".csv"


def _take(given: Any, collector: Collector) -> None:
    """What a program handed over."""
    if hasattr(given, "columns") and hasattr(given, "itertuples"):
        given = _of_frame(given)
    if isinstance(given, Mapping):
        collector.add(_of_arrays(given))
        return
    vectors = _numbers(given)
    sides = collector.conversations.sides
    if vectors.ndim != 2 or len(vectors) != len(sides):
        raise SpklinkError(f"an array of {vectors.shape} where the table has {len(sides)} sides")
    ids = collector.conversations.ids
    names = [ids[m] for m in sides.conversation.tolist()]
    tracks = [str(k + 1) for k in sides.position.tolist()]
    places = [f"row {k}" for k in range(len(sides))]
    collector.add(Block(vectors, places, conversation=names, channel=tracks))


def _of_frame(frame: Any) -> dict[str, Any]:
    """The arrays in a DataFrame."""
    names = [str(column) for column in frame.columns]
    columns = csv_vectors.numbers(names, "a DataFrame")
    found = {
        one: frame[one].to_numpy()
        for one in ("conversation", "channel", "key", "seconds")
        if one in names
    }
    if columns == ["embedding"]:
        rows = [np.asarray(row, np.float64).ravel() for row in frame["embedding"]]
        if len({len(row) for row in rows}) > 1:
            raise SpklinkError("embedding: lists of several lengths")
        return found | {"embedding": np.stack(rows) if rows else np.zeros((0, 0))}
    return found | {"embedding": frame[columns].to_numpy(np.float64)}


def _of_arrays(given: Mapping[str, Any]) -> Block:
    named = csv_vectors.naming([str(name) for name in given])
    for name in (*named, "embedding"):
        if name not in given:
            raise SpklinkError(f"needs an array '{name}'; found {', '.join(map(str, given))[:200]}")
    vectors = _numbers(given["embedding"])
    if vectors.ndim != 2:
        raise SpklinkError(f"array 'embedding' has the shape {vectors.shape}, not 2 dimensions")
    lists = {
        name: [str(value) for value in np.asarray(given[name]).ravel().tolist()] for name in named
    }
    seconds = given.get("seconds")
    times = None if seconds is None else np.asarray(seconds).ravel().tolist()
    for name, values in (lists | ({} if times is None else {"seconds": times})).items():
        if len(values) != len(vectors):
            raise SpklinkError(
                f"array '{name}' has {len(values)} entries, 'embedding' {len(vectors)}"
            )
    places = [f"entry {k}" for k in range(len(vectors))]
    return Block(vectors, places, seconds=times, **lists)


def _numbers(given: Any) -> NDArray[Any]:
    array = np.asarray(given)
    if array.dtype.kind not in "iuf":
        raise SpklinkError(
            f"give a file, a DataFrame, arrays by name, or an array of numbers, not "
            f"{type(given).__name__} of {array.dtype}"
        )
    return array


def hash_of(vectors: Vectors) -> str:
    """Of vectors that came from no file."""
    return hashlib.sha256("".join(vectors.hashes).encode()).hexdigest()
