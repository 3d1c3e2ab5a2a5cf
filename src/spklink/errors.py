"""The one error that spklink shows to a person: it names the place, the cause and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

SHOWN = 20  # problems spelled out in one message; the rest are counted


class SpklinkError(Exception):
    """Something in the user's input or settings; the command line prints it as one line."""


def problems_in(
    path: str | PathLike[str], problems: Sequence[str], remedy: str = ""
) -> SpklinkError:
    """All that is wrong with one file, in one error, so that it can be mended in one go; and what
    can be done about all of it."""
    shown = list(problems[:SHOWN])
    if len(problems) > SHOWN:
        shown.append(f"and {len(problems) - SHOWN} more")
    count = f"{len(problems)} problems: " if len(problems) > 1 else ""
    return SpklinkError(f"{path}: {count}{'; '.join([*shown, *filter(None, [remedy])])}")
