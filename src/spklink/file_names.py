"""Names of very many files: folder and name apart, and seen from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.foreign_tables import SEPARATOR
from spklink.texts import Texts, coded

PROBE = "x"  # a file of a folder


def apart(files: Texts) -> tuple[Texts, Texts]:
    """Folders, with their last stroke, and names in them."""
    strokes = np.flatnonzero(files.letters == ord("/"))
    last = np.searchsorted(strokes, files.start[1:]) - 1
    cut = np.where(last >= 0, strokes[np.maximum(last, 0)] + 1, 0) if len(strokes) else last
    cut = np.maximum(cut, files.start[:-1])
    ends = np.empty(2 * len(files) + 1, np.int64)
    ends[0], ends[1::2], ends[2::2] = 0, cut, files.start[1:]
    both = Texts(files.data, ends)
    return both.take(np.arange(0, 2 * len(files), 2)), both.take(np.arange(1, 2 * len(files), 2))


def led(files: Texts, way: Callable[[str], str], folder: Path) -> Texts:
    """What `way` makes of every name, asked once a folder: it must turn folder and name into
    another folder and that name, but for names that are steps themselves, of a folder that leads
    to `folder`, or elsewhere. Empty names stay so."""
    parents, names = apart(files)
    which, folders = coded(parents.arrow())
    heads = [_head(parent, way) for parent in folders]
    steps = {".", "..", *folder.absolute().parts}
    empty = files.sizes == 0
    odd = ((names.sizes == 0) & ~empty).any() or any(name in steps for name in names)
    if os.sep != "/" or None in heads or odd:
        return Texts.of(way(name) if name else "" for name in files)
    front = Texts.of([*(head or "" for head in heads), ""])
    first = front.take(np.where(empty, len(heads), which))
    return woven(first, names)


def _head(parent: str, way: Callable[[str], str]) -> str | None:
    """What stands before the names of a folder, None where that is not the same for all."""
    if ":" in parent:
        return None  # perhaps elsewhere
    found = way(parent + PROBE)
    return found.removesuffix(PROBE) if found.endswith(PROBE) else None


def woven(one: Texts, two: Texts) -> Texts:
    """Every text of the first with that of the second behind it."""
    both = Texts.of_parts([one, two]).take(np.arange(2 * len(one)).reshape(2, -1).T.ravel())
    return Texts(both.data, both.start[::2])


def joined(parts: Texts, counts: NDArray[Any]) -> Texts:
    """So many parts for every cell, with semicolons between them."""
    last = np.zeros(len(parts), np.bool_)
    last[np.cumsum(counts)[counts > 0] - 1] = True
    marks = Texts.of([SEPARATOR, ""]).take(last.astype(np.int64))
    whole = woven(parts, marks)
    return Texts(whole.data, whole.start[np.concatenate([[0], np.cumsum(counts)])])
