"""Items on their way to the workers of a cluster and back.

They travel in tasks of several, as many as take about a second, and results come back in the order
of the items: how they were divided, and who did which, changes nothing. A task whose worker dies
goes to another. Where several workers have died of one, its items are tried one by one with nothing
else under way; an item that ends workers even then is `Died`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import ceil
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

from spklink.processes import Died

TASK = 1.0  # seconds that a task should take
AHEAD = 3  # tasks a thread of a worker that are under way,
HELD = 30  # or done before one that was sent earlier
LARGEST, GROWTH = 4096, 8  # items a task; how many times more than the largest before
RECENT = 9  # tasks by which the next are measured
Item = TypeVar("Item")
Result = TypeVar("Result")


class Carrier(Protocol):
    """What a flight needs of a cluster."""

    @property
    def count(self) -> int:
        """Threads of all workers."""

    def submit(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Any:
        """A task of these items."""

    def settled(self, future: Any, *, wait: bool = True) -> bool:
        """Whether a task is done or has failed; perhaps after a moment."""

    def outcome(self, future: Any) -> tuple[float, list[Any]]:
        """Seconds and results of a task."""


class Pace:
    """How many items make a task."""

    def __init__(self) -> None:
        self.seconds: deque[float] = deque(maxlen=RECENT)  # an item, of recent tasks
        self.largest = 1

    def told(self, seconds: float, items: int) -> None:
        self.seconds.append(seconds / items)

    def size(self, left: int, hands: int) -> int:
        """Of the next task: none so large that at the end somebody has nothing to do."""
        wanted = 1
        if self.seconds:
            wanted = int(TASK / max(median(self.seconds), TASK / LARGEST))
        share = ceil(left / (2 * hands))
        self.largest = max(1, min(wanted, share, GROWTH * self.largest))
        return self.largest


class Flight(Generic[Item, Result]):
    """All items of one piece of work."""

    def __init__(
        self, cluster: Carrier, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> None:
        self.cluster, self.work, self.items = cluster, work, items
        self.pace, self.begin = Pace(), 0
        self.tasks: deque[tuple[Sequence[Item], Any]] = deque()  # in the order of the items

    def results(self) -> Iterator[Result | Died]:
        while self.tasks or self.begin < len(self.items):
            self._send()
            some, future = self.tasks[0]
            while not self.cluster.settled(future):
                self._send()
            self.tasks.popleft()
            yield from self._arrived(some, future)

    def _send(self) -> None:
        """Keep all workers busy."""
        hands = self.cluster.count
        waiting = sum(not self.cluster.settled(one, wait=False) for _, one in self.tasks)
        while self.begin < len(self.items) and waiting < AHEAD * hands:
            if len(self.tasks) >= HELD * hands:
                return
            size = self.pace.size(len(self.items) - self.begin, hands)
            some = list(self.items[self.begin : self.begin + size])
            self.tasks.append((some, self.cluster.submit(self.work, some)))
            self.begin, waiting = self.begin + size, waiting + 1

    def _arrived(self, some: Sequence[Item], future: Any) -> Sequence[Result | Died]:
        from distributed import KilledWorker

        try:
            seconds, found = self.cluster.outcome(future)
        except KilledWorker:
            for _, other in self.tasks:
                self._wait(other)
            return [self._alone(item) for item in some]
        self.pace.told(seconds, len(some))
        return found

    def _alone(self, item: Item) -> Result | Died:
        """An item that workers may have died of."""
        from distributed import KilledWorker

        future = self.cluster.submit(self.work, [item])
        self._wait(future)
        try:
            _, [found] = self.cluster.outcome(future)
        except KilledWorker as error:
            return Died(f"{error.allowed_failures + 1} workers ended")
        result: Result = found
        return result

    def _wait(self, future: Any) -> None:
        while not self.cluster.settled(future):
            pass

    def end(self) -> None:
        """Whatever is still under way is not wanted any more."""
        with suppress(Exception):  # the cluster may be gone
            for _, future in self.tasks:
                future.cancel()
