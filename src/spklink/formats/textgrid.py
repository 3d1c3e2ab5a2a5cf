"""Turns as a Praat TextGrid, a tier a speaker, in the long or the short form; so are CGN's .ort.

Either form is the same row of free-standing numbers, texts in quotes and flags in angles; all else
("xmin =", "intervals [3]:", comments after !) is there for people. An interval with a text is a
turn; one without, or with a mark of silence, is none, nor are points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spklink.errors import SpklinkError
from spklink.formats.turn import NOBODY, SILENCE, Turn, seconds, stem_of, text_of
from spklink.tables import Content

TOKEN = re.compile(
    r'"(?P<text>(?:[^"]|"")*)"|(?P<flag><\w+>)|![^\n]*'
    r"|(?<!\S)(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)%?(?!\S)"
)
INTERVALS, POINTS = "IntervalTier", "TextTier"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # text, flag or number
    value: str
    line: int


class _Tokens:
    """What a file says, one thing after the other."""

    def __init__(self, content: Content) -> None:
        self.path = content.path
        data = text_of(content, old=True)
        if data.startswith("ooBinaryFile"):
            raise SpklinkError(f"{self.path}: a binary TextGrid; save it as a text file in Praat")
        self.found = self._all(data)
        self.line = 1

    @staticmethod
    def _all(data: str) -> Iterator[_Token]:
        line, done = 1, 0
        for match in TOKEN.finditer(data):
            line += data.count("\n", done, match.start())
            done = match.start()
            if match.lastgroup is not None:
                value = match.group(match.lastgroup).replace('""', '"')
                yield _Token(match.lastgroup, value, line)

    def next(self, kind: str) -> str:
        token = next(self.found, None)
        if token is None:
            raise SpklinkError(f"{self.path}: ends after line {self.line}, in the middle of a tier")
        self.line = token.line
        if token.kind != kind:
            raise SpklinkError(
                f"{self.path}: line {token.line}: {token.value[:40]!r} where a {kind} belongs; is "
                "it a TextGrid?"
            )
        return token.value

    def number(self) -> float:
        return seconds(self.next("number"))

    def count(self) -> int:
        found = self.number()
        if found < 0 or found != int(found):
            raise SpklinkError(f"{self.path}: line {self.line}: {found:g} is no count")
        return int(found)


def read(content: Content) -> Iterator[Turn | str]:
    """The turns of all tiers, and what is wrong with intervals that are none."""
    tokens, name = _Tokens(content), stem_of(content)
    if "ooTextFile" not in tokens.next("text") or tokens.next("text") != "TextGrid":
        raise SpklinkError(f"{content.path}: line {tokens.line}: not a TextGrid")
    tokens.number(), tokens.number()
    if tokens.next("flag") != "<exists>":
        return
    for _ in range(tokens.count()):
        kind, tier = tokens.next("text"), tokens.next("text").strip()
        tokens.number(), tokens.number()
        if kind == INTERVALS:
            yield from _intervals(tokens, name, tier)
        elif kind == POINTS:
            for _ in range(tokens.count()):
                tokens.number(), tokens.next("text")
        else:
            raise SpklinkError(
                f"{content.path}: line {tokens.line}: no kind of tier: {kind[:40]!r}"
            )


def _intervals(tokens: _Tokens, name: str, tier: str) -> Iterator[Turn | str]:
    before = -1e300
    for _ in range(tokens.count()):
        start, end = tokens.number(), tokens.number()
        place, text = f"line {tokens.line}", tokens.next("text")
        if start < before:
            yield (
                f"{place}: tier {tier!r}: an interval from {start:g} s begins before {before:g} s, "
                "where the one before it ends"
            )
        before = max(before, end)
        if tier not in NOBODY and text.strip().lower() not in SILENCE:
            yield Turn(name, tier, start, end, place)
