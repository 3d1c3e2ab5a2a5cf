"""Whether very many recordings are there: told by their folders, without a look at each.

A folder is listed once, however many recordings are in it; what it lists is a file. What it does
not list is looked for by name, as systems differ in what they take for one name; after
MAX_LOOKED_FOR without finding one, that is known of the rest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.file_names import apart
from spklink.sound.places import is_remote, located, refusal
from spklink.texts import Texts, coded

Ints = NDArray[np.int64]
Reasons = dict[str, list[int]]  # why not → which
MAX_LOOKED_FOR = 20_000  # files
NO_FILE = "no such file"


def not_there(folder: Path, files: Texts) -> Reasons:
    """Why files are not there, with the numbers of those that are not."""
    found = defaultdict[str, list[int]](list)
    missing = _not_listed(folder, files) if os.sep == "/" else np.zeros(0, np.int64)
    for k in missing[:MAX_LOOKED_FOR].tolist():
        if why := refusal(located(folder, files[k])):
            found[why].append(k)
    if len(found.get(NO_FILE, [])) == MAX_LOOKED_FOR:
        found[NO_FILE] += missing[MAX_LOOKED_FOR:].tolist()
    return dict(found)


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
