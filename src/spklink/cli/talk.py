"""How much spklink says: --quiet, --verbose, --log FILE.

A log has the command, every stage with its time, and what went wrong with where it came from. Lines
are added to whatever is in the file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from spklink.errors import SpklinkError, check_file
from spklink.words import for_screen


@dataclass
class Talk:
    """What was asked for on this command line."""

    quiet: bool = False
    verbose: bool = False
    file: TextIO | None = None

    def note(self, words: str) -> None:
        """A line of the log, where there is one; every line of a longer text is one."""
        if self.file is None:
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        for line in words.splitlines() or [""]:
            self.file.write(f"{now} {for_screen(line)}\n")
        self.file.flush()


TALK = Talk()


def begin(*, quiet: bool, verbose: bool, log: Path | None, words: list[str]) -> None:
    """What is said from here on."""
    end(None)
    TALK.quiet, TALK.verbose = quiet, verbose
    if log is not None:
        from shlex import join

        from spklink import __version__

        TALK.file = _opened(log)
        TALK.note(f"spklink {__version__}: {join(words)}")


def _opened(log: Path) -> TextIO:
    check_file(log)
    try:
        return log.open("a", encoding="utf-8")
    except OSError as error:
        raise SpklinkError(f"{log}: cannot be written ({error.strerror})") from None


def end(code: int | None) -> None:
    """The last line, where the work has ended with this code."""
    if TALK.file is not None:
        if code is not None:
            TALK.note(f"exit code {code}")
        TALK.file.close()
    TALK.quiet, TALK.verbose, TALK.file = False, False, None
