"""Hands on other machines: the workers of a dask.distributed cluster.

`--cluster local:N` starts N workers on this machine, `tcp://HOST:8786` (or `tls://`, with the
certificates that Dask is configured for) joins a cluster that is there. Between client, scheduler
and workers Dask sends pickled objects, so all of them must trust each other: a cluster belongs in a
closed network, or behind TLS. Local workers have a certificate of their own for the time of a run,
in memory alone, so that other accounts of this machine cannot talk to them. Nothing that lies on a
disk is ever unpickled.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4
from weakref import ReferenceType, finalize, ref

from numpy.typing import NDArray

from spklink.cache import Store, key_of
from spklink.cluster_flight import Flight
from spklink.cluster_tasks import Mapped, Run, carry_out, facts, forget
from spklink.errors import SpklinkError
from spklink.hands import Hands, Here, Reached
from spklink.processes import Died, interrupts_held
from spklink.threads import without_main
from spklink.whole_files import aside
from spklink.words import counted

EXTRA = 'pip install "spklink[dask]"'
LOCAL = re.compile(r"local:([1-9][0-9]{0,2})")
REMOTE = re.compile(r"(tcp|tls)://[^\s/]+:[0-9]{1,5}")
MINIMUM = 1.0  # seconds of work, below which nothing is sent
MEGABYTES = 50.0  # of results that come back in a second
BEAT = 1.0  # seconds between two looks at the cluster
CONNECTING = 20.0  # seconds until nobody answers at an address
NOBODY = 300.0  # seconds until a cluster without workers is given up
ANSWER, LEAVING = 3.0, 2.0  # seconds
LOGGERS, NOTHING = ("distributed", "tornado"), logging.CRITICAL + 1
Item = TypeVar("Item")
Result = TypeVar("Result")
Say = Callable[[str], None]


def check_address(address: str | None) -> None:
    """Refuse what is no cluster before any work; and where Dask is missing."""
    if address is None:
        return
    if not LOCAL.fullmatch(address) and not REMOTE.fullmatch(address):
        raise SpklinkError(
            f"--cluster {address!r}: give local:N (N workers on this machine), or where a "
            "scheduler is: tcp://HOST:8786 or tls://HOST:8786"
        )
    _dask()
    if LOCAL.fullmatch(address):
        _certificate()


def _dask() -> Any:
    try:
        import distributed
    except ImportError:
        raise SpklinkError(f"--cluster needs dask.distributed: {EXTRA}") from None
    return distributed


def _certificate() -> Any:
    """A new key and certificate, without which nobody is let in."""
    try:
        return _dask().Security.temporary()
    except ImportError:
        raise SpklinkError(f"--cluster local:N needs cryptography: {EXTRA}") from None


@contextmanager
def joined(
    address: str | None, cache: Path, here: Here, say: Say | None = None
) -> Iterator[Hands | None]:
    """The cluster at an address for the time of a run, whose cache all its workers see; None where
    no address is given."""
    if address is None:
        yield None
        return
    cache.mkdir(parents=True, exist_ok=True)
    with aside(cache, older_than_days=1.0) as folder, _silent(), _client(address) as client:
        folder.chmod(cache.stat().st_mode)  # workers may be other users
        cluster = Cluster(client, address, folder.absolute(), here)
        for line in cluster.greeting():
            if say is not None:
                say(line)
        try:
            yield cluster
        finally:
            cluster.leave()


@contextmanager
def _silent() -> Iterator[None]:
    """Dask tells of every worker that comes and goes; what a person should know is said here."""
    _dask()  # it sets levels when it is imported
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in LOGGERS]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(NOTHING)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """What talks to a scheduler; a cluster that is ours lives as long."""
    dask, mine = _dask(), LOCAL.fullmatch(address)
    with ExitStack() as stack:
        if mine:
            stack.enter_context(without_main())  # also for workers that are started again
            where = stack.enter_context(_local(int(mine[1])))
        try:
            client = dask.Client(where if mine else address, timeout=CONNECTING)
        except (OSError, ValueError, TypeError) as error:  # TypeError: no certificates
            text = " ".join(str(error).split())[:200]
            raise SpklinkError(
                f"--cluster {address}: no scheduler can be reached there ({text}); start one with "
                "dask scheduler, or use local:N"
            ) from None
        try:
            yield client
        finally:
            with suppress(Exception):  # it may be gone, and nothing depends on it any more
                client.close(timeout=LEAVING)


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """So many workers on this machine, which nobody else can reach, here or from another one."""
    with interrupts_held():  # Ctrl-C is for us: whoever starts workers starts them without it
        cluster = _dask().LocalCluster(
            security=_certificate(),
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=NOTHING,
        )
    try:
        yield cluster
    finally:
        with suppress(Exception):  # a busy machine takes longer; they end without us, too
            cluster.close(timeout=LEAVING)


class Cluster:
    """Workers that share a folder with this process, or a cache elsewhere."""

    far = True

    def __init__(self, client: Any, address: str, folder: Path, here: Here) -> None:
        self.client, self.address, self.here = client, address, here
        self.run, self.store = Run.signed(folder), Store(folder)
        self.laid: list[tuple[ReferenceType[NDArray[Any]], Mapped]] = []
        self.unused: list[str] = []  # files elsewhere of arrays that are gone
        self.looked, self.threads = 0.0, 0
        self.last_seen = time.monotonic()  # of any worker

    # --- what hands can do --------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Threads of all workers: they may come and go."""
        if time.monotonic() - self.looked > BEAT:
            self._look()
        return max(1, self.threads)

    def worth(self, seconds: float, *, megabytes: float = 0.0) -> Hands:
        pays = seconds >= MINIMUM and megabytes <= MEGABYTES * seconds
        return self if pays else self.here

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Generator[Result, None, None]:
        for found in self.apart(work, items):
            if isinstance(found, Died):
                raise SpklinkError(
                    f"workers of {self.address} end while they work ({found.how}); have they too "
                    "little memory? What is done is in the cache"
                )
            yield found

    def apart(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, main: bool = False
    ) -> Generator[Result | Died, None, None]:
        flight: Flight[Item, Result] = Flight(self, work, items)
        try:
            yield from flight.results()
        finally:
            flight.end()

    def reach(self, array: NDArray[Any]) -> Reached:
        for known, mapped in self.laid:
            if known() is array:
                return mapped
        self._tidy()
        mapped = Mapped(self.store.folder, key_of(uuid4().hex))
        self.store.write(mapped.name, {}, {"array": array})
        self.laid.append((ref(array), mapped))
        path = self.store.path(mapped.name)
        finalize(array, path.unlink, missing_ok=True)
        if self.store.far is not None:
            finalize(array, self.unused.append, path.name)
        return mapped

    def _tidy(self) -> None:
        """Remove elsewhere what nobody needs any more; not when an array goes, which may happen in
        any thread."""
        while self.unused and self.store.far is not None:
            self.store.far.remove(self.unused.pop())

    # --- the cluster --------------------------------------------------------------------------

    def greeting(self) -> Iterator[str]:
        """Wait for workers, see whether they are fit, and what a person should know."""
        while not self._look():
            self._give_up()
            time.sleep(BEAT / 4)
        with self._told():
            found = self.client.run(facts, self.run)
        where = counted(len(found), "worker")
        link = self.client.dashboard_link
        yield f"cluster {self.address}: {where}, dashboard {link}"
        mine = dict(facts(self.run))
        other = {n: v for one in found.values() for n, v in dict(one).items() if mine[n] != v}
        if other:
            said = ", ".join(f"{name} {other[name]} (here {mine[name]})" for name in sorted(other))
            yield f"workers differ from this machine, so the last digits may: {said}"

    def submit(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Any:
        """Items on their way; what is returned is what `outcome` takes."""
        self.check()
        name = getattr(getattr(work, "func", work), "__name__", "work").strip("_")
        with self._told():
            return self.client.submit(
                carry_out, self.run, work, items, key=f"{name}-{uuid4().hex}", pure=False
            )

    def outcome(self, future: Any) -> Any:
        """What a worker found; its error, and ours where the cluster is gone."""
        with self._told():
            return future.result()

    def settled(self, future: Any, *, wait: bool = True) -> bool:
        """Whether it is there, or has failed; perhaps after a moment."""
        if wait and not future.done():
            with self._told(), suppress(_dask().TimeoutError):
                _dask().wait([future], timeout=BEAT)
            self.check()
        return bool(future.done())

    def check(self) -> None:
        """An error where nobody is there any more."""
        self._check_connected()
        if time.monotonic() - self.looked > BEAT:
            self.run.sign.parent.touch()  # nobody takes its folder for one that was left behind
            if not self._look():
                self._give_up()

    def _check_connected(self) -> None:
        if self.client.status != "running":
            raise self.lost()

    def _look(self) -> int:
        self._check_connected()
        with self._told(), suppress(_dask().TimeoutError):  # it may be busy
            self.threads = sum(self.client.nthreads(callback_timeout=ANSWER).values())
        self.looked = time.monotonic()
        if self.threads:
            self.last_seen = self.looked
        return self.threads

    def _give_up(self) -> None:
        if time.monotonic() - self.last_seen > NOBODY:
            raise SpklinkError(
                f"--cluster {self.address}: no workers for {NOBODY / 60:.0f} minutes; start some "
                f"with dask worker {self.address}. What is done is in the cache, and the same "
                "command goes on"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the cluster as one line."""
        dask = _dask()
        try:
            yield
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("spklink"):
                raise
            raise SpklinkError(
                f"a worker of {self.address} has no spklink {self.run.version}: install it there "
                "as here"
            ) from None
        except (dask.CancelledError, dask.core.CommClosedError):
            raise self.lost() from None
        except Exception as error:  # Dask has several for a scheduler that is not there, and
            if isinstance(error, OSError):
                time.sleep(BEAT)  # some come before it has noticed
            self._check_connected()
            raise

    def lost(self) -> SpklinkError:
        return SpklinkError(
            f"the scheduler at {self.address} is gone; what was heard and learned is in the "
            "cache, and the same command goes on once there is a scheduler again"
        )

    def leave(self) -> None:
        """Workers let go of what was laid out."""
        with suppress(Exception):
            if self.client.status == "running":
                self.client.run(forget, self.run)
        if self.store.far is not None:
            self.store.far.clear()
