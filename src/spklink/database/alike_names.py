"""Which of very many names can be alike at all, told by numbers; `slips` looks at these alone.

Two names are alike if they share a *key*: what is left of them without case, accents and so on, or
without one letter. Keys of all names are turned into numbers (`texts.hashes`) and sorted; a name
none of whose numbers is another's is left out. A few too many are kept where two keys have one
number, none too few.

Index conventions: k = name, flat arrays of keys with the name of each in `owner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.texts import BASE, Texts, powers

Ints = NDArray[np.int64]
Numbers = NDArray[np.uint64]
Letters = NDArray[np.uint8]
FEW = 5_000  # names that are all looked at
MOST = 200_000  # names that are compared without a letter each
MOST_NEAR = 30_000  # of these that are told apart one by one
SPACE = np.isin(np.arange(256), [*range(9, 14), *range(28, 33)])
CAPITAL = (np.arange(256) >= ord("A")) & (np.arange(256) <= ord("Z"))
SMALL = (np.arange(256) >= ord("a")) & (np.arange(256) <= ord("z"))
LOOKS_ELSE = ord("`")  # the one letter of ASCII that looks like another


def with_same_key(names: Texts, keys: Callable[[str], Iterable[str]]) -> Ints:
    """Names that may share one of their keys with another. The only key of a name in ASCII is the
    name in small letters without spaces."""
    if len(names) <= FEW:
        return np.arange(len(names))
    plain = np.concatenate([_plain(part) for part in names.parts()])
    others = np.flatnonzero(~plain)
    of_others = [list(dict.fromkeys(keys(names[k]))) for k in others.tolist()]
    small = np.concatenate([_folded(part).hashes() for part in names.parts()])
    more = Texts.of(key for some in of_others for key in some).hashes()
    owner = np.repeat(others, [len(some) for some in of_others])
    number = np.concatenate([small[plain], more])
    return _shared(number, np.concatenate([np.flatnonzero(plain), owner]).astype(np.int64))


def with_near_name(names: Texts, folded: Callable[[str], str], shortest: int) -> Ints | None:
    """Names of so many letters that one letter may keep from another; None where these are too many
    to look at."""
    if len(names) <= FEW:
        return np.arange(len(names))
    # Whatever is no letter must be the same in both, so that numbers with a letter are out.
    some = with_same_rest(names, folded, shortest)
    if len(some) > MOST:
        return None
    number, owner = without_a_letter([folded(names[k]) for k in some.tolist()])
    near = some[_shared(number, owner)]
    return None if len(near) > MOST_NEAR else near


def with_same_rest(names: Texts, folded: Callable[[str], str], shortest: int) -> Ints:
    """Names with letters whose other characters are those of another."""
    found = [_rest(part, shortest) for part in names.parts()]
    number, fit = (np.concatenate([part[k] for part in found]) for k in (0, 1))
    plain = np.concatenate([_plain(part) for part in names.parts()])
    for k in np.flatnonzero(~plain).tolist():
        text = folded(names[k])
        fit[k] = len(text) >= shortest and any(map(str.isalpha, text))
        number[k] = Texts.of(["".join(c for c in text if not c.isalpha())]).hashes()[0]
    return _shared(number[fit], np.flatnonzero(fit))


def _rest(names: Texts, shortest: int) -> tuple[Numbers, NDArray[np.bool_]]:
    """Numbers of all that is no letter, and which names are long enough and have a letter; of names
    in ASCII."""
    small = _folded(names)
    letters = SMALL[small.letters]
    rest = Texts(small.letters[~letters].tobytes(), _without(small, letters))
    return rest.hashes(), (small.sizes >= shortest) & (rest.sizes < small.sizes)


def without_a_letter(texts: Sequence[str]) -> tuple[Numbers, Ints]:
    """Numbers of every text, and of what is left of it without one letter; whose each is."""
    sizes = np.array([len(text) for text in texts], np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    power = powers(int(sizes.max(initial=0)))
    terms = _mixed(codes) * power[ranges(np.zeros(len(sizes), np.int64), sizes)]
    total = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    at = np.arange(len(codes))
    before = total[at] - total[start[owner]]
    behind = total[start[owner + 1]] - total[at + 1]
    left = before + behind * np.uint64(pow(int(BASE), -1, 1 << 64))  # letters behind move up
    whole = total[start[1:]] - total[start[:-1]]
    return np.concatenate([left, whole]), np.concatenate([owner, np.arange(len(sizes))])


def _mixed(codes: NDArray[np.uint32]) -> Numbers:
    """A number of 64 bits for every letter."""
    value = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(29)
    return np.asarray(value * np.uint64(0xBF58476D1CE4E5B9))


def _shared(number: Numbers, owner: Ints) -> Ints:
    """Owners, in order, of which another has one of the same numbers. Those of one owner come in
    a row, but for numbers that are his alone."""
    order = np.argsort(number, kind="stable")
    number, owner = number[order], owner[order]
    same = (number[1:] == number[:-1]) & (owner[1:] != owner[:-1])
    return np.unique(np.concatenate([owner[1:][same], owner[:-1][same]]))


def _plain(names: Texts) -> NDArray[np.bool_]:
    """(N,) names in ASCII of which no letter looks like another."""
    odd = np.flatnonzero((names.letters >= 0x80) | (names.letters == LOOKS_ELSE))
    return np.asarray(np.diff(np.searchsorted(odd, names.start)) == 0)


def _folded(names: Texts) -> Texts:
    """Names in small letters without spaces, as far as they are ASCII."""
    letters = names.letters
    small = np.where(CAPITAL[letters], letters + np.uint8(32), letters)
    spaces = SPACE[letters]
    return Texts(small[~spaces].tobytes(), _without(names, spaces))


def _without(names: Texts, gone: NDArray[np.bool_]) -> Ints:
    """Where texts begin when some of their letters are left out."""
    return np.asarray(names.start - np.concatenate([[0], np.cumsum(gone)])[names.start])
