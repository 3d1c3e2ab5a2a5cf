"""Progress on standard error: the stage at work, and a line with the time of each that is done.

A bar never goes back. Where a stage counts a second time, there is no telling how far it is, and
the bar only shows that there is work. Without a screen nothing is shown but with --verbose.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from spklink.cli.talk import TALK
from spklink.words import for_screen

if TYPE_CHECKING:
    from spklink.runs.stages import Stages

SHORT = 0.1  # seconds: stages below leave no line
EARLY = 5.0  # seconds before anything is said about the time left
SOON = 0.05  # the same as a share of the work
COMPILING = "compiling fast code for this machine: about a minute, once"


class Bar:
    """One stage after the other, as it is shown."""

    told: ClassVar[bool] = False  # that the first run takes longer: once, however many bars

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task
        self.name, self.done, self.total = "starting", 0, 0
        self.again = False
        self.since = time.monotonic()
        self.first = False  # nothing was compiled before

    def begin(self, name: str) -> None:
        self.name, self.done, self.total, self.again = for_screen(name), 0, 0, False
        self.since = time.monotonic()
        TALK.note(f"begin {name}")
        self.bar.reset(self.task, total=None, description=self.name, left="")
        _tell_of_compiling(self)

    def step(self, done: int, total: int) -> None:
        if not done:  # helpers are about to begin, and cannot say that they compile
            self.tell_first()
        self.again = self.again or done * max(self.total, 1) < self.done * total
        self.done, self.total = done, total
        if self.again:
            self.bar.update(self.task, total=None, left=f"{done} of {total}")
        else:
            self.bar.update(self.task, completed=done, total=total, left=self.left())

    def left(self) -> str:
        """How far it is, and how long it will take."""
        counted = f"{self.done} of {self.total}"
        spent, share = time.monotonic() - self.since, self.done / max(self.total, 1)
        if spent < EARLY or share < SOON or share >= 1.0:
            return counted
        return f"{counted}, {in_words(spent * (1.0 - share) / share)} left"

    def end(self, name: str, seconds: float) -> None:
        TALK.note(f"done {name}: {seconds:.2f} s")
        if seconds >= SHORT:
            line = f"{seconds:7.1f} s  {for_screen(name)}"
            if TALK.verbose or not self.bar.disable:
                self.bar.console.print(line, markup=False, highlight=False)

    def say(self, line: str) -> None:
        """One line, also where no bar is shown."""
        TALK.note(line)
        if not TALK.quiet:
            self.bar.console.print(for_screen(line), markup=False, highlight=False, soft_wrap=True)

    def compiling(self) -> None:
        self.tell_first()
        self.bar.update(self.task, description=f"{self.name} (compiling)")
        TALK.note(COMPILING)

    def tell_first(self) -> None:
        """Say once why the first run takes longer, where no compiled code was there before."""
        if not self.first or Bar.told:
            return
        Bar.told = True
        if not TALK.quiet and (TALK.verbose or not self.bar.disable):
            self.bar.console.print(f"first run: {COMPILING}", markup=False, highlight=False)
        TALK.note(f"first run: {COMPILING}")

    @property
    def where(self) -> str:
        """What was at work, for somebody who interrupts it."""
        return self.name + (f", {self.done} of {self.total} done" if self.total else "")


def in_words(seconds: float) -> str:
    """A time that nobody takes for exact."""
    if seconds < 90:
        return f"about {max(5 * round(seconds / 5), 5)} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.1f} h"


@contextmanager
def stages_on_stderr() -> Iterator[Stages]:
    """What a run is told to show its stages by. An interrupt says how far the work had come."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from spklink.runs.stages import Stages

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20))
    times = (TimeElapsedColumn(), TextColumn("{task.fields[left]}", markup=False))
    console = Console(stderr=True)
    silent = TALK.quiet or not console.is_terminal
    with Progress(*columns, *times, console=console, transient=True, disable=silent) as shown:
        bar = Bar(shown, shown.add_task("starting", total=None, left=""))
        bar.first = not is_compiled()
        try:
            yield Stages(tell=bar.begin, progress=bar.step, ended=bar.end, say=bar.say)
        except KeyboardInterrupt:
            shown.stop()
            TALK.note(f"stopped while {bar.where}")
            stopped = f"spklink: stopped while {bar.where}"
            console.print(stopped, markup=False, highlight=False, soft_wrap=True)
            raise SystemExit(130) from None


# --- the first run --------------------------------------------------------------------------------


def is_compiled() -> bool:
    """Whether code was compiled before: numba keeps it beside the modules, else in a folder of the
    user."""
    import os
    from pathlib import Path

    import spklink
    from spklink.compiled import SAID, user_folders

    home, said = Path(spklink.__file__).parent / "sound", os.environ.get(SAID)
    if not said and next((home / "__pycache__").glob("speech.*.nbi"), None):
        return True
    folders = [Path(said)] if said else user_folders()
    return any(next(one.glob("sound_*/speech.*.nbi"), None) for one in folders)


_LISTENER: list[Any] = []  # one is enough


def _tell_of_compiling(bar: Bar) -> None:
    """What this process itself compiles is said while it does."""
    if "numba" not in sys.modules:
        return
    with suppress(ImportError, AttributeError):  # a numba that says nothing
        from numba.core import event

        if not _LISTENER:

            class Listener(event.Listener):
                bar: Bar

                def on_start(self, _: Any) -> None:
                    self.bar.compiling()

                def on_end(self, _: Any) -> None:
                    self.bar.bar.update(self.bar.task, description=self.bar.name)

            _LISTENER.append(Listener())
            event.register("numba:compile", _LISTENER[0])  # type: ignore[no-untyped-call]
        _LISTENER[0].bar = bar
