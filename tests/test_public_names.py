"""Public names stay: files, columns, keys, commands, options, words, exit codes, the library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from public_names import names_now

KEPT = Path(__file__).parent / "public_names.txt"
LONG = 100  # characters; in a difference the names of longer lines have a line each


def test_public_names_are_those_of_public_names_txt(tmp_path):
    """A name that vanishes breaks what people have; one that is added is promised from then on.
    Where that is meant, edit public_names.txt (public_names.py prints it whole)."""
    kept, now = KEPT.read_text(encoding="utf-8"), names_now(tmp_path)
    if kept != now:
        said = "\n".join(["public names have changed:", *difference(kept, now)])
        pytest.fail(said, pytrace=False)


def difference(kept: str, now: str) -> Iterator[str]:
    titles = "public_names.txt", "what there is now"
    return unified_diff(list(by_name(kept)), list(by_name(now)), *titles, n=1, lineterm="")


def by_name(text: str) -> Iterator[str]:
    """The lines with their section, long ones cut into names."""
    section = ""
    for line in text.splitlines():
        if re.fullmatch(r"\[[A-Za-z].* .*\]|\[[a-z_.]+\]", line):
            section = line
        elif len(line) > LONG:
            place, _, names = line.rpartition(": ")
            yield from (f"{section} {place}: {name}" for name in re.split(", ?", names))
        elif line:
            yield f"{section} {line}"


def test_a_difference_names_what_changed():
    columns = ",".join(f"column{k}" for k in range(20))
    kept = f"[inside results]\na.csv: {columns}\nb.csv: x,y\n\n[command link]\n--seed  = 0\n"
    now = kept.replace("column7", "other").replace("--seed  = 0", "--seed  = 1")
    lines = [line for line in difference(kept, now) if line[0] in "+-"][2:]
    assert lines == [
        "-[inside results] a.csv: column7",
        "+[inside results] a.csv: other",
        "-[command link] --seed  = 0",
        "+[command link] --seed  = 1",
    ]
