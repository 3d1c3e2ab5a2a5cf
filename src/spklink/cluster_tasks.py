"""What happens on a worker of a cluster: is it fit for a run, then item after item.

A worker finds recordings and cache under the same paths as whoever gave it the work, or a cache
elsewhere at the same address; a file in the cache, the sign of a run, tells whether it does.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from spklink.cache import Store
from spklink.errors import SpklinkError
from spklink.object_store import SIGN, SIGNED, Far, pay_all
from spklink.threads import matrix_library, one_blas_thread
from spklink.whole_files import sweep

Item = TypeVar("Item")
Result = TypeVar("Result")
LIBRARIES = ("numba", "numpy", "scipy", "soundfile", "soxr")
MAPPED = 8  # arrays that stay open


@dataclass(frozen=True)
class Run:
    """What a worker must agree with before it works for a run."""

    version: str  # of spklink
    sign: Path  # a file that it must see

    @classmethod
    def signed(cls, folder: Path) -> Run:
        sign = folder.absolute() / SIGN
        sign.write_bytes(SIGNED)
        _, far = Far.of(folder)
        if far is not None:
            far.put(sign)
        return cls(version("spklink"), sign)


class UnfitError(SpklinkError):
    """A worker that cannot work for this run."""


@dataclass(frozen=True)
class Mapped:
    """An array in a file that all workers see."""

    folder: Path
    name: str

    def get(self) -> NDArray[Any]:
        return _mapped(self.folder, self.name)


@lru_cache(MAPPED)
def _mapped(folder: Path, name: str) -> NDArray[Any]:
    kept = Store(folder).load(name)
    if kept is None:
        raise UnfitError(f"{folder / name} cannot be read on {platform.node()}")
    return kept.arrays["array"]


def forget(run: Run) -> None:
    """Let go of all arrays of runs that have ended, and of what was fetched for this one."""
    _mapped.cache_clear()
    here, far = Far.of(run.sign.parent)
    if far is not None:
        shutil.rmtree(here, ignore_errors=True)


@cache
def check_fit(run: Run) -> None:
    """Whether this process can work for a run; an error says why not."""
    mine = version("spklink")
    if mine != run.version:
        raise UnfitError(
            f"worker on {platform.node()} has spklink {mine}, and this is {run.version}; install "
            "the same version on all machines"
        )
    here, far = Far.of(run.sign.parent)
    if far is not None:
        _check_elsewhere(here.parent, far)
    elif not run.sign.exists():
        raise UnfitError(
            f"worker on {platform.node()} does not see {run.sign.parent.parent}; the cache must "
            "lie on storage that all machines reach by the same path (--cache)"
        )


def _check_elsewhere(copy: Path, far: Far) -> None:
    """Whether the store has the sign of a run; it is given what this machine still owes it."""
    try:
        seen = far.begin(SIGN, 1) is not None
        pay_all(copy)
    except SpklinkError as error:
        raise UnfitError(f"worker on {platform.node()}: {error}") from None
    if not seen:
        raise UnfitError(
            f"worker on {platform.node()} does not see this run in {far.url}; are its credentials "
            "and endpoint those of this machine?"
        )
    sweep(copy, older_than_days=1.0)


def facts(run: Run) -> tuple[tuple[str, str], ...]:
    """What the last digits may depend on, of a process that is fit."""
    check_fit(run)
    # Other libraries with threads have no kernels of their own a processor.
    told = (one.get("architecture") for one in matrix_library().info())
    blas = {one for one in told if one}
    found = {name: version(name) for name in LIBRARIES}
    found |= {"Python": platform.python_version(), "processor": " ".join(sorted(blas))}
    return tuple(sorted(found.items()))


def carry_out(
    run: Run, work: Callable[[Item], Result], items: Sequence[Item]
) -> tuple[float, list[Result]]:
    """Results, and the seconds that they took."""
    check_fit(run)
    begin = time.perf_counter()
    with one_blas_thread():
        found = [work(item) for item in items]
    return time.perf_counter() - begin, found
