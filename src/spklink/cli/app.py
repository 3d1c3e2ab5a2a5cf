"""Where the command line begins and ends: what a person can mend is one line and exit code 2.

Results go to standard output, progress and errors to standard error; `--debug` shows where an error
came from. Everything else is imported inside `main`, so that Ctrl-C is answered from the start.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from spklink.errors import SpklinkError
from spklink.words import for_screen

LONGEST = 10_000  # characters of an error: whatever is in a file, it stays readable


def main() -> None:
    """Entry point: run, and turn what a person can mend into one line and exit code 2."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        from spklink.cli.commands import carry_out

        sys.exit(carry_out())
    except (SpklinkError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has left
            sys.stderr.close()
            sys.exit(0)
        if "--debug" in sys.argv:
            _show_traceback()
        _fail(in_words(error))
    except KeyboardInterrupt:
        print("spklink: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        # Errors of usage come from the option parser, whose classes have no public home.
        if not hasattr(error, "format_message"):
            _show_traceback()
        message = " ".join(error.format_message().splitlines())  # the parser's own lines
        _fail(f"{message} (spklink --help, spklink COMMAND --help)")


def in_words(error: Exception) -> str:
    """What went wrong, where, at what, and what can be done about it."""
    when = "".join(f" {note}" for note in getattr(error, "__notes__", [])[:1])
    if isinstance(error, MemoryError):
        return (
            f"out of memory{when} ({error or 'the system gave no more'}); give it more memory, "
            "fewer --workers or less --budget-gb"
        )
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename2 or error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}{when}{_room(error)}"
    return str(error)


def _room(error: OSError) -> str:
    """How much room there is, where there was not enough."""
    import errno
    import shutil
    from pathlib import Path

    if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not error.filename:
        return ""
    folder = next((p for p in Path(error.filename).parents if p.is_dir()), Path())
    free = shutil.disk_usage(folder).free / 1e6
    return f" ({free:.1f} MB are free there); make room and run the same command again"


def _fail(message: str) -> NoReturn:
    """Names and files in the message are shown, never carried out by the terminal."""
    words = for_screen(message)
    short = words if len(words) <= LONGEST else f"{words[:LONGEST]} …"
    print(f"spklink: {short}", file=sys.stderr)
    sys.exit(2)


def _show_traceback() -> NoReturn:
    """As Python does, line by line through the same sieve."""
    import traceback

    for line in traceback.format_exc().splitlines():
        print(for_screen(line), file=sys.stderr)
    sys.exit(1)
