"""Turns as subtitles with names: WebVTT (`<v Name>`) and SubRip; in both also `Name: words` and
`[Name] words`. What has no name is nobody's turn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spklink.formats.turn import Turn, stem_of, text_of
from spklink.tables import Content

TIMES = re.compile(r"\s*(?P<start>[\d:.,]+)\s+-->\s+(?P<end>[\d:.,]+)(?:\s|$)")
CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?$")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
PREFIX = re.compile(r"\s*(?:-\s*)?(?:\[([^\]:]+)\]:?|([^\s:<>][^:<>]{0,60}):)(?:\s|$)")


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with cues that are none."""
    name, lines = stem_of(content), text_of(content).splitlines()
    number = 0
    while number < len(lines):
        found = TIMES.match(lines[number])
        number += 1
        if found is None:
            if "-->" in lines[number - 1]:
                yield f"row {number}: not two times: {lines[number - 1][:80]!r}"
            continue
        place, words = f"row {number}", []
        while number < len(lines) and lines[number].strip() and "-->" not in lines[number]:
            words.append(lines[number])
            number += 1
        start, end = (_clock(found[end]) for end in ("start", "end"))
        if start is None or end is None:
            yield f"{place}: not hours:minutes:seconds: {found[0][:80]!r}"
            continue
        for who in _names(words):
            yield Turn(name, who, start, end, place)


def _clock(text: str) -> float | None:
    found = CLOCK.match(text)
    if found is None:
        return None
    hours, minutes, seconds, part = found.groups()
    whole = 3600 * int(hours or 0) + 60 * int(minutes) + int(seconds)
    return whole + int((part or "0").ljust(3, "0")) / 1000.0


def _names(words: list[str]) -> list[str]:
    """Who speaks in one cue: as its tags say, or before a colon."""
    voices = VOICE.findall("\n".join(words))
    if not voices:
        starts = (PREFIX.match(line) for line in words)
        voices = [one[1] or one[2] for one in starts if one is not None]
    return list(dict.fromkeys(" ".join(one.split()) for one in voices))
