"""Numbers in sentences; text that others wrote, made fit to be looked at.

Names and file names may hold anything. On a screen a control character can move the cursor, a
newline can feign a line of ours, and a mark of direction can turn around what stands beside it.
"""

from __future__ import annotations

import re
import unicodedata

# Control characters (C0, DEL, C1), ends of lines and paragraphs, marks that embed, override or
# isolate a direction, and halves of characters, which no file of UTF-8 can hold.
UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSEEN = re.compile(f"[{UNSEEN}]")
_IN_JSON = re.compile(f"(?!\n)[{UNSEEN}]")  # lines of the JSON itself may end
_BLANK = {"Zs", "Zl", "Zp", "Cf", "Cc"}  # categories of characters that leave no ink
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
_R = r"\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
_RIGHT_TO_LEFT = re.compile(f"[{_R}](?:[{_R} ]*[{_R}])?")
ISOLATE, END = "\u2068", "\u2069"


def counted(number: int, noun: str, *, several: str = "", thousands: str = ",") -> str:
    """1 call, 2 calls, 12,345 calls; 2 people, where that is what `several` are called; `thousands`
    is what stands between groups of digits."""
    return f"{number:{thousands}} {noun if number == 1 else several or f'{noun}s'}"


def chance_text(chance: float | None, nothing: str = "–") -> str:
    """A probability as everybody is told it: per cent with one digit and never as certainty, as no
    more could be vouched for. (Shares that were counted are another matter: all of them is 100 %.)
    """
    if chance is None:
        return nothing
    if chance >= 0.9995:
        return "over 99.9 %"
    return "under 0.1 %" if chance < 0.0005 else f"{100.0 * chance:.1f} %"


def printable(text: str) -> str:
    r"""Text on one line that does nothing but be read: `\x1b` for what would be carried out."""
    return _UNSEEN.sub(lambda found: _escape(found[0]), text)


def printable_json(text: str) -> str:
    """JSON that means the same and has no such characters either."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_screen(text: str) -> str:
    """Printable, and words that run from right to left kept from turning their neighbours."""
    return _RIGHT_TO_LEFT.sub(lambda found: isolated(found[0]), printable(text))


def readable(name: str) -> str:
    """A name for a page: printable, and spelled out in escapes where it would look empty."""
    shown = printable(name)
    return shown if any(map(_has_ink, shown)) else _escape(name)


def isolated(text: str) -> str:
    """Printable text whose direction is its own, where there are no elements to say so."""
    return f"{ISOLATE}{text}{END}"


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode()


def _has_ink(letter: str) -> bool:
    return unicodedata.category(letter) not in _BLANK and letter not in _BLANK_LETTERS
