"""Turns as CTM, a word a line: file channel start duration word [confidence type speaker].

Who speaks is the eighth field (NIST) or, where there are fewer, the channel, if that is a name:
1, 2, A and B are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from spklink.formats.turn import Turn, seconds, text_of
from spklink.tables import Content

NUMBERS = frozenset({"0", "1", "2", "A", "B", "a", "b", "."})  # channels that are nobody's name
NO_SPEECH = frozenset({"non-speech", "non-lex"})  # in the field `type`


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with rows that are none."""
    for number, line in enumerate(text_of(content).split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        if len(fields) < 5:
            yield f"row {number}: not a line of CTM: {line[:80]!r}"
            continue
        who = fields[7] if len(fields) > 7 else fields[1]
        if len(fields) > 6 and fields[6].lower() in NO_SPEECH:
            continue
        if len(fields) < 8 and who in NUMBERS:
            yield (
                f"row {number}: no speaker; write him as the eighth field (file channel start "
                "duration word confidence lex speaker)"
            )
            continue
        start, lasts = seconds(fields[2]), seconds(fields[3])
        yield Turn(fields[0], who, start, start + lasts, f"row {number}")
