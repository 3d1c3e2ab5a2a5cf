"""Hands: whoever does work that can be divided, with the same bytes whoever it is.

Work is a function that is given one item at a time; results come in the order of the items, few of
them held. `Here` is this machine: threads of this process, and helper processes for work that may
end the process it runs in. `cluster.Cluster` is other machines.

Hands that are far share no memory with this process: what they are handed travels, so that it must
be small, made of what any process can import, and the work worth the journey (`worth`). Large
arrays are laid out once, where all hands reach them (`reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from spklink.processes import Died, in_processes
from spklink.threads import in_order

Item = TypeVar("Item")
Result = TypeVar("Result")


class Reached(Protocol):
    """An array that all hands reach."""

    def get(self) -> NDArray[Any]:
        """The array, wherever this is asked; not to be written to."""


class Hands(Protocol):
    """Whoever does the work."""

    @property
    def count(self) -> int:
        """How many are at work at a time."""

    @property
    def far(self) -> bool:
        """Whether they share no memory with this process."""

    def worth(self, seconds: float, *, megabytes: float = 0.0) -> Hands:
        """Who should do so many seconds of a core's work, with results of such a size: these hands
        or, where that would not pay, those of this process."""

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[Result, None, None]:
        """work(item) of all items."""

    def apart(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, main: bool = False
    ) -> Generator[Result | Died, None, None]:
        """The same where work may end its process: then the result is a `Died`. With `main` its
        class is one that only the caller's script has."""

    def reach(self, array: NDArray[Any]) -> Reached:
        """An array laid out for all hands."""


@dataclass(frozen=True)
class Held:
    """An array in the memory of this process."""

    array: NDArray[Any]

    def get(self) -> NDArray[Any]:
        return self.array


@dataclass(frozen=True)
class Here:
    """This machine."""

    count: int = 1
    far: bool = False

    def worth(self, seconds: float, *, megabytes: float = 0.0) -> Hands:
        return self

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[Result, None, None]:
        yield from in_order(work, items, self.count)

    def apart(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, main: bool = False
    ) -> Generator[Result | Died, None, None]:
        with closing(in_processes(work, items, self.count, main=main)) as found:
            yield from found

    def reach(self, array: NDArray[Any]) -> Reached:
        return Held(array)


ALONE = Here()
