"""The one error that spklink shows to a person: it names the place, the cause and the remedy.

And what is worth saying before hours of work, not after: where results cannot go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

SHOWN = 20  # problems spelled out in one message; the rest are counted
LONGEST = 400  # characters of one problem: a cell may hold megabytes


class SpklinkError(Exception):
    """Something in the user's input or settings; the command line prints it as one line."""


@dataclass
class Problems:
    """What is wrong with one file: the first problems in words, the rest only counted, as there may
    be as many as rows."""

    first: list[str] = field(default_factory=list)
    count: int = 0

    def append(self, problem: str) -> None:
        if len(self.first) < SHOWN:
            self.first.append(problem)
        self.count += 1

    def take(self, problems: Iterator[str], count: int) -> None:
        """So many problems, of which only those are put into words that will be shown."""
        for _ in range(min(count, SHOWN - len(self.first))):
            self.first.append(next(problems))
        self.count += count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, some: slice) -> list[str]:
        return self.first[some]


def problems_in(
    path: str | PathLike[str], problems: Sequence[str] | Problems, remedy: str = ""
) -> SpklinkError:
    """All that is wrong with one file, in one error, so that it can be mended in one go; and what
    can be done about all of it."""
    shown = [one if len(one) <= LONGEST else f"{one[:LONGEST]} …" for one in problems[:SHOWN]]
    if len(problems) > SHOWN:
        shown.append(f"and {len(problems) - SHOWN} more")
    count = f"{len(problems)} problems: " if len(problems) > 1 else ""
    return SpklinkError(f"{path}: {count}{'; '.join([*shown, *filter(None, [remedy])])}")


def check_folder(out: str | PathLike[str]) -> Path:
    """A folder that is there or can be made; the folder."""
    folder = Path(out)
    for path in (folder, *folder.parents):
        if path.exists():
            if not path.is_dir():
                raise SpklinkError(f"{path} is a file; give a folder")
            break
    return folder


def check_file(out: str | PathLike[str]) -> Path:
    """A file that is there or can be made; the file."""
    file = Path(out)
    if file.is_dir():
        raise SpklinkError(f"{file} is a folder; give a file")
    check_folder(file.parent)
    return file
