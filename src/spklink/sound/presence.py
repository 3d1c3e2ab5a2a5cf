"""Whether the recordings of a table are there: a look at each, or, of very many, at their folders.

A folder is listed once, however many recordings are in it; what it lists is a file, and a spread of
these is opened. What it does not list is looked for by name, as systems differ in what they take
for one name; after as many as are opened without finding one, that is known of the rest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.file_names import apart
from spklink.sound.places import is_remote, located, refusal
from spklink.texts import Texts, coded

Ints = NDArray[np.int64]
Reasons = dict[str, list[int]]  # why not → which
EACH = 20_000  # files that are opened
NO_FILE = "no such file"


def refused(folder: Path, files: Texts) -> tuple[Reasons, int]:
    """Why files cannot be read, with the numbers of those that cannot; and how many were opened."""
    if len(files) <= EACH or os.sep != "/":
        some = range(0, len(files), max(1, -(-len(files) // EACH)))
        return _in_order(_looked_at(folder, files, some)), len(some)
    found = Reasons()
    there = np.ones(len(files), np.bool_)
    missing = _not_listed(folder, files)
    there[missing] = False
    for k in missing[:EACH].tolist():
        if why := refusal(located(folder, files[k])):
            found.setdefault(why, []).append(k)
    if len(found.get(NO_FILE, [])) == EACH:
        found[NO_FILE] += missing[EACH:].tolist()
    listed = np.flatnonzero(there)
    spread = listed[:: max(1, -(-len(listed) // EACH))].tolist()
    for why, which in _looked_at(folder, files, spread).items():
        found.setdefault(why, []).extend(which)
    return _in_order(found), len(spread)


def _looked_at(folder: Path, files: Texts, some: Iterable[int]) -> Reasons:
    found = defaultdict(list)
    for k in some:
        if why := refusal(located(folder, files[k])):
            found[why].append(k)
    return dict(found)


def _in_order(found: Reasons) -> Reasons:
    """By the first of each."""
    each = {why: sorted(which) for why, which in found.items()}
    return dict(sorted(each.items(), key=lambda one: one[1][0]))


def _not_listed(folder: Path, files: Texts) -> Ints:
    """Files that their folder does not list as such, and whatever is elsewhere."""
    parents, names = apart(files)
    which, folders = coded(parents.arrow())
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(folders)))
    missing = np.ones(len(files), np.bool_)
    for parent, first, last in zip(folders, [0, *ends[:-1]], ends, strict=True):
        listed = set[str]() if is_remote(parent) else _listed(folder / parent)
        if listed:
            own = order[first:last]
            missing[own] = [name not in listed for name in names.take(own)]
    return np.flatnonzero(missing)


def _listed(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {one.name for one in entries if one.is_file()}
    except (OSError, ValueError):
        return set()
