"""Names that may be one person's, written in two ways. They are told, never joined.

Four ways to differ, from the surest: in Unicode form, case or spaces; in letters that look alike
(a Cyrillic а); in spelling (ü, ue or u); in one letter left out, added, exchanged or changed. The
last only of names that are rare, of people who never meet, and never in a digit: N01001 and N01002
are two people.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spklink.database.alike_names import Ints, with_near_name, with_same_key
from spklink.errors import SpklinkError
from spklink.texts import Texts

if TYPE_CHECKING:
    from spklink.database.conversations import Conversations

SHORTEST = 5  # letters of names that one letter may turn into another
RARE = 2  # conversations of a name that may be a slip
SHOWN = 20  # slips that are told one by one
INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
# Letters of other scripts, and marks, that look like one of ours.
_LOOKS = {
    "АВЕЅІЈКМНОРСТХУаеѕіјорсхуһԁԛԝ": "ABESIJKMHOPCTXYaesijopcxyhdqw",
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι": "ABEZHIKMNOPTYXovi",
    "‐‑‒–—−’‘ʼ´`": "------'''''",
}
LOOKS = {ord(a): b for their, ours in _LOOKS.items() for a, b in zip(their, ours, strict=True)}
SPELT = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae", "œ": "oe"}
)
BARE = str.maketrans({"ß": "ss", "ø": "o", "å": "a", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d"})
CUT = re.compile(r"\d([.,]\d+)?E\+\d+$")  # 4,91E+11
SPOILT = (
    "participant {!r} is a long number that a spreadsheet has cut; format the column as text "
    "there, and export again"
)
Met = Callable[[int, int], bool]
NOBODY = np.zeros(0, np.int64)


def refuse_spoilt(table: Conversations) -> None:
    """Refuse names that are numbers of which a few digits are left: each may be many people's."""
    if b"E+" not in table.speakers.data:
        return
    for k, name in enumerate(table.speakers):
        if "E+" in name and CUT.match(name):
            entry = int((table.people == k).argmax())
            place = table.place(int(table.listing.conversation[entry]))
            raise SpklinkError(f"{table.path}: {place}: {SPOILT.format(name)}")


def slips(names: Sequence[str], calls: Sequence[int] | Ints, met: Met) -> list[str]:
    """What looks like one name in two ways, in sentences; `met` tells whether two people take part
    in one conversation."""
    names, told, found = Texts.of(names), set[tuple[int, int]](), list[str]()
    near = with_near_name(names, _folded, SHORTEST)
    for a, b, why in _pairs(names, calls, met, NOBODY if near is None else near):
        if (a, b) not in told:
            told.add((a, b))
            found.append(f"speakers {names[a]!r} and {names[b]!r} are taken for two people: {why}")
    more = len(found) - SHOWN
    shown = found[:SHOWN]
    if more > 0:
        shown.append(f"and {more} more pairs of names that are alike")
    if near is None:
        shown.append(f"{len(names):,} names: too many to look for slips of one letter among them")
    return shown


def _pairs(
    names: Texts, calls: Sequence[int] | Ints, met: Met, near: Ints
) -> Iterator[tuple[int, int, str]]:
    some = with_same_key(names, _keys)
    for a, b in _same(names, some, lambda name: [_folded(name)]):
        yield a, b, _form(names[a], names[b])
    for a, b in _same(names, some, lambda name: [_folded(_looks(name))]):
        yield a, b, _code_points(names[a], names[b])
    for a, b in _same(names, some, _spellings):
        yield a, b, "one name in two spellings?"
    for a, b in _near(names, near):
        rare, often = sorted((int(calls[a]), int(calls[b])))
        if rare <= RARE and not met(a, b):
            yield a, b, f"a typing slip? (they have {rare} and {often} conversations)"


def _keys(name: str) -> list[str]:
    """All that two names may have in common."""
    return [_folded(name), _folded(_looks(name)), *_spellings(name)]


def _same(
    names: Texts, some: Ints, keys: Callable[[str], Sequence[str]]
) -> Iterator[tuple[int, int]]:
    """Pairs that share a key, each with the first that has it."""
    seen: dict[str, int] = {}
    for k in some.tolist():
        others = {seen.setdefault(key, k) for key in keys(names[k])}
        yield from ((other, k) for other in sorted(others - {k}))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", "".join(name.split())).casefold()


def _looks(name: str) -> str:
    return unicodedata.normalize("NFC", name).translate(INVISIBLE).translate(LOOKS)


def _bare(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.translate(BARE))
    return "".join(c for c in plain if not unicodedata.combining(c))


def _spellings(name: str) -> list[str]:
    """A name without accents, and with what is written for them."""
    folded = _folded(name)
    return list(dict.fromkeys([_bare(folded.translate(SPELT)), _bare(folded)]))


def _form(one: str, two: str) -> str:
    """How two names differ that are the same but for case, spaces and Unicode form."""
    if unicodedata.normalize("NFC", one) != unicodedata.normalize("NFC", two):
        return "a typing slip?"
    return f"the same letters in two Unicode forms ({_differ(one, two)})"


def _code_points(one: str, two: str) -> str:
    return f"they look alike, but {_differ(one, two)}"


def _differ(one: str, two: str) -> str:
    """The first place where they differ, by code points."""
    at = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
    if at is None:
        at = min(len(one), len(two))
    return f"{_named(one[at : at + 1])} in the first is {_named(two[at : at + 1])} in the second"


def _named(letter: str) -> str:
    if not letter:
        return "the end"
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'without a name')}"


def _near(names: Texts, some: Ints) -> Iterator[tuple[int, int]]:
    """Pairs that one letter keeps apart, found by what is left when a letter is left out."""
    seen: dict[str, list[int]] = {}
    folded = {k: _folded(names[k]) for k in some.tolist()}
    for k, name in folded.items():
        if len(name) < SHORTEST or not any(map(str.isalpha, name)):
            continue
        close: set[int] = set()
        for key in {name, *(name[:i] + name[i + 1 :] for i in range(len(name)))}:
            close.update(seen.get(key, ()))
            seen.setdefault(key, []).append(k)
        yield from ((other, k) for other in sorted(close) if _one_letter(folded[other], name))


def _one_letter(one: str, two: str) -> bool:
    """Whether names differ by one letter left out, changed or exchanged with its neighbour."""
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    end = 0
    while end < min(len(one), len(two)) - start and one[-1 - end] == two[-1 - end]:
        end += 1
    a, b = one[start : len(one) - end], two[start : len(two) - end]
    exchanged = len(a) == 2 and a == b[::-1]
    return (exchanged or max(len(a), len(b)) == 1) and (a + b).isalpha()
