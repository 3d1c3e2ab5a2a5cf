"""One turn as a transcript has it, and the text of such files.

Text is UTF-8, or UTF-16 with its mark; what is neither is ISO-8859-1 where a format is as old as
that. Any file may be gzipped.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from dataclasses import dataclass

from spklink.errors import SpklinkError
from spklink.tables import Content

LARGEST = 1 << 28  # bytes of one file, unpacked: no transcript is as long
NOBODY = frozenset({"COMMENT", "BACKGROUND", "UNKNOWN"})  # tiers that are no person's (CGN)
SILENCE = frozenset({"", "sil", "sp", "<sil>", "#"})  # labels of an interval in which nobody speaks


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody has the turn, from one second to another; who that is the transcript says."""

    conversation: str
    speaker: str
    start: float  # NaN where it is no number
    end: float
    place: str  # where it stands in its file: "row 7"


def seconds(text: str) -> float:
    """A number of seconds; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def stem_of(content: Content) -> str:
    """The name of a file without its endings: the conversation that it is about."""
    name = content.path.name
    name = name[: -len(".gz")] if name.lower().endswith(".gz") else name
    return name.rpartition(".")[0] or name


def unpacked(content: Content) -> bytes:
    """The bytes of a file that may be gzipped."""
    if not content.data.startswith(b"\x1f\x8b"):
        return content.data
    try:
        with gzip.open(io.BytesIO(content.data)) as file:
            data = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise SpklinkError(f"{content.path}: cannot be unpacked ({error})") from None
    if len(data) > LARGEST:
        raise SpklinkError(f"{content.path}: more than {LARGEST >> 20} MB of text")
    return data


def text_of(content: Content, *, old: bool = False) -> str:
    """The text of a file; an `old` format may be ISO-8859-1."""
    data = unpacked(content)
    coding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(coding)
    except UnicodeDecodeError:
        if old and coding != "utf-16":
            return data.decode("iso-8859-1")
        raise SpklinkError(f"{content.path}: not UTF-8; save it as UTF-8") from None
