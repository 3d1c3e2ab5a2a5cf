"""Many short texts in one piece of memory: what a list of strings is, at a tenth of its size.

Texts are UTF-8, one after the other; text k is data[start[k]:start[k + 1]]. They are read as any
sequence is, each made when it is asked for. `pyarrow` sees them without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges

Ints = NDArray[np.int64]
Item = TypeVar("Item")
SOME = 10_000  # texts that are made at a time when all are gone through
HALVES = "surrogatepass"  # what a program hands over may have halves of letters in it


class Compact(Sequence[Item]):
    """What all compact sequences have in common: they equal any other with the same items."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        more = f", … {len(self)} in all" if len(self) > 5 else ""
        return f"[{', '.join(map(repr, self[:5]))}{more}]"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Texts(Compact[str]):
    """Texts that are never changed."""

    data: bytes
    start: Ints  # (N + 1,)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """The same as any sequence of strings."""
        if isinstance(texts, Texts):
            return texts
        coded = [text.encode("utf-8", HALVES) for text in texts]
        return cls(b"".join(coded), _starts(np.fromiter(map(len, coded), np.int64, len(coded))))

    @classmethod
    def of_parts(cls, parts: Sequence[Texts]) -> Texts:
        """One after the other."""
        if not parts:
            return cls.of([])
        return cls(
            b"".join(one.data for one in parts),
            _starts(np.concatenate([one.sizes for one in parts])),
        )

    @classmethod
    def of_arrow(cls, array: Any) -> Texts:
        """From an array of strings of pyarrow, without missing ones."""
        import pyarrow as pa

        array = array.cast(pa.large_string())
        _, start, data = array.buffers()
        places = np.frombuffer(start, np.int64, len(array) + 1, 8 * array.offset)
        first, last = int(places[0]), int(places[-1])
        return cls(b"" if data is None else data[first:last].to_pybytes(), places - first)

    def arrow(self) -> Any:
        """The same as an array of pyarrow."""
        import pyarrow as pa

        start, data = pa.py_buffer(self.start), pa.py_buffer(self.data)
        return pa.LargeStringArray.from_buffers(len(self), start, data)

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        return self.data[self.start[k] : self.start[k + 1]].decode("utf-8", HALVES)

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), SOME):
            places = self.start[first : first + SOME + 1].tolist()
            for a, b in pairwise(places):
                yield self.data[a:b].decode("utf-8", HALVES)

    @property
    def sizes(self) -> Ints:
        """(N,) bytes of each."""
        return np.diff(self.start)

    @property
    def letters(self) -> NDArray[np.uint8]:
        """All bytes."""
        return np.frombuffer(self.data, np.uint8)

    def hashes(self) -> NDArray[np.uint64]:
        """(N,) the same number for the same text; two texts hardly ever have the same."""
        return hashes(self.letters, self.start)

    def coded(self) -> tuple[NDArray[np.int32], Texts]:
        """(N,) the number of each among all that differ, and these, in the order in which they
        come first."""
        return coded(self.arrow())

    def parts(self) -> Iterator[Texts]:
        """The same in pieces of some thousands, for work that needs room."""
        for first in range(0, len(self), 10 * SOME):
            places = self.start[first : first + 10 * SOME + 1]
            yield Texts(self.data[places[0] : places[-1]], places - places[0])

    def take(self, which: Sequence[int] | NDArray[Any]) -> Texts:
        """Some of them, in this order."""
        k = np.asarray(which, np.int64)
        sizes, parts = self.sizes[k], []
        for first in range(0, len(k), 10 * SOME):
            some = slice(first, first + 10 * SOME)
            parts.append(self.letters[ranges(self.start[k[some]], sizes[some])].tobytes())
        return Texts(b"".join(parts), _starts(sizes))


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Lists(Compact[tuple[str, ...]]):
    """Some texts for each of many things: list m is names[start[m]:start[m + 1]]."""

    names: Texts
    start: Ints  # (M + 1,)

    @classmethod
    def of(cls, lists: Iterable[Sequence[str]]) -> Lists:
        """The same as any sequence of sequences of strings."""
        if isinstance(lists, Lists):
            return lists
        kept = list(lists)
        counts = np.fromiter(map(len, kept), np.int64, len(kept))
        return cls(Texts.of(text for one in kept for text in one), _starts(counts))

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, k: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, k: slice) -> list[tuple[str, ...]]: ...
    def __getitem__(self, k: int | slice) -> tuple[str, ...] | list[tuple[str, ...]]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        return tuple(self.names[int(self.start[k]) : int(self.start[k + 1])])

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        names = iter(self.names)
        for count in self.counts.tolist():
            yield tuple(next(names) for _ in range(count))

    @property
    def counts(self) -> Ints:
        """(M,) how many each has."""
        return np.diff(self.start)


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def coded(array: Any) -> tuple[NDArray[np.int32], Texts]:
    """The same of an array of pyarrow."""
    found = array.dictionary_encode()
    return found.indices.to_numpy().astype(np.int32), Texts.of_arrow(found.dictionary)


# --- numbers for texts ----------------------------------------------------------------------------

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it can be divided by
VALUES = np.random.default_rng(1).integers(1, 1 << 63, 256, np.uint64)  # of every byte


def hashes(letters: NDArray[np.uint8], start: Ints) -> NDArray[np.uint64]:
    """(N,) the sum of the values of its bytes times rising powers of a base, modulo 2^64."""
    found = np.empty(len(start) - 1, np.uint64)
    power = powers(int(np.diff(start).max(initial=0)))
    for first in range(0, len(found), 10 * SOME):
        places = start[first : first + 10 * SOME + 1]
        total = running(letters, places, power)
        found[first : first + 10 * SOME] = np.diff(total[places - places[0]])
    return found


def powers(longest: int) -> NDArray[np.uint64]:
    """(longest,) powers of the base, from 0."""
    return np.concatenate([[np.uint64(1)], np.full(longest, BASE)]).cumprod(dtype=np.uint64)


def running(
    letters: NDArray[np.uint8], start: Ints, power: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """(bytes + 1,) the terms of all bytes of some texts, summed up to each."""
    within = ranges(np.zeros(len(start) - 1, np.int64), np.diff(start))
    terms = VALUES[letters[start[0] : start[-1]]] * power[within]
    return np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
