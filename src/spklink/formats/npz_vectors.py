"""Vectors in a .npz file, a block at a time and never unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from spklink.errors import SpklinkError
from spklink.formats.vectors import MOST_NUMBERS, Block, Collector
from spklink.npz_files import TEXT, Arrays, Opened, open_arrays

CELLS = 1 << 22  # numbers at a time
NAMES = ("conversation", "channel")


def read(file: IO[bytes], name: str, collector: Collector) -> None:
    """All vectors of an open file into the collector."""
    with open_arrays(file, name) as arrays:
        for block in _blocks(arrays):
            collector.add(block)


def _blocks(arrays: Arrays) -> Iterator[Block]:
    named = ("key",) if "key" in arrays.names and "conversation" not in arrays.names else NAMES
    lists = {one: arrays.open(one, ndim=1, kinds=TEXT) for one in named}
    if "seconds" in arrays.names:
        lists["seconds"] = arrays.open("seconds", ndim=1)
    vectors = arrays.open("embedding", ndim=2)
    count, width = vectors.shape
    _check(lists, count, width)
    step = max(1, CELLS // max(width, 1))
    columns = [one.blocks(step) for one in lists.values()]
    begin = 0
    for flat, *values in zip(vectors.blocks(step * width), *columns, strict=True):
        texts = dict(zip(lists, values, strict=True))
        size = len(texts[named[0]])
        seconds = texts.pop("seconds", None)
        yield Block(
            flat.reshape(size, width),
            [f"entry {k}" for k in range(begin, begin + size)],
            seconds=None if seconds is None else seconds.tolist(),
            **{one: [str(value) for value in part] for one, part in texts.items()},
        )
        begin += size


def _check(lists: dict[str, Opened], count: int, width: int) -> None:
    if not 0 < width <= MOST_NUMBERS:
        raise SpklinkError(f"vectors of {width} numbers; 1 to {MOST_NUMBERS} are read")
    for name, one in lists.items():
        if one.shape != (count,):
            raise SpklinkError(
                f"array '{name}' {one.shape} and array 'embedding' of {count} rows must be of one "
                "length: an entry a side"
            )
